//! x
mod page;
pub mod presence;
pub use page::{InLinks, Page};
