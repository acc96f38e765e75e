//! What the end-to-end tests stand on: a slow oracle that needs no store, and small random crawls.
//!
//! Nothing here shares code with the crates under test: a fault in them must not hide itself. Map: [`oracle`] answers
//! every question from sets; [`crawls`] makes crawls and writes them as JSON lines and WARC; [`rows`] makes stores of
//! several rows; [`stores`] builds stores in temporary directories and compares answers and bytes; [`clusters`] serves
//! them, [`raw`] asks one server as anybody may, and [`served`] over HTTP; [`suite`] is what every way to ask must
//! answer, and [`ways`] are all of them; [`wire`] sends what nobody should; [`story`] is a store that grows, with what
//! each of its epochs must answer, and [`load`] asks a cluster of it all the time.

pub mod clusters;
pub mod crawls;
pub mod load;
pub mod oracle;
pub mod raw;
pub mod rows;
pub mod served;
mod shared;
pub mod stores;
pub mod story;
pub mod suite;
pub mod ways;
pub mod wire;

use std::path::{Path, PathBuf};

/// The page of the book about Rust: its code is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../docs/book/programs/rust.md")]
pub struct PageAboutRust;

/// The root of the workspace.
pub fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map_or_else(PathBuf::new, Path::to_owned)
}

/// What an environment variable says, which is a number: how much of a test, or its seed.
///
/// # Panics
/// Where it says something else.
pub fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable)
        .map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{variable} is no number: {text}")))
}

/// A file or directory of the shared test data: below `WEBSTRATA_SHARED`, else below `shared` beside the workspace.
///
/// # Panics
/// Where it is missing: tests that need it are ignored unless they are asked for.
pub fn shared(name: &str) -> PathBuf {
    shared::shared(name)
}
