//! x
#![allow(missing_docs, clippy::all, clippy::unwrap_used, clippy::cast_possible_truncation)]
mod page;
pub mod presence;
mod stub;
pub use page::{InLinks, Page};
pub use stub::*;
