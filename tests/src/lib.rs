//! The base of the end-to-end tests: a slow oracle that needs no store, and small random crawls.
//!
//! The oracle and the crawls share no code with the crates under test, so a fault there cannot hide itself. Map:
//! [`oracle`] answers every question from sets; [`crawls`] makes crawls and writes them as JSON lines and WARC;
//! [`rows`] makes stores of several rows; [`stores`] builds stores in temporary directories and compares answers and
//! bytes; [`clusters`] serves stores; [`raw`] asks one server through the public protocol, and [`served`] asks over
//! HTTP; [`suite`] has the questions that every way to ask must answer, and [`ways`] runs the suite over all ways;
//! [`wire`] sends what no client should send; [`story`] is a store that grows, with the right answers of each epoch,
//! and [`load`] asks a cluster of this store all the time.

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

use std::ops::Range;
use std::path::{Path, PathBuf};

/// The page of the book about Rust. Its code is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../docs/book/programs/rust.md")]
pub struct PageAboutRust;

/// The root of the workspace.
pub fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map_or_else(PathBuf::new, Path::to_owned)
}

/// The number in an environment variable, or the default if the variable is not set. Tests use it for sizes and seeds.
///
/// # Panics
/// If the variable is not a number.
pub fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable)
        .map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{variable} is no number: {text}")))
}

/// The seeds of a test over random crawls: every third one, and all of them in a longer run, for which
/// `WEBSTRATA_QUESTIONS` is set.
pub fn seeds(all: Range<u64>) -> impl Iterator<Item = u64> {
    let step = if number("WEBSTRATA_QUESTIONS", 0) > 0 { 1 } else { 3 };
    all.step_by(step)
}

/// A file or directory of the shared test data: below `WEBSTRATA_SHARED`, else below `shared` beside the workspace.
///
/// # Panics
/// If the file is missing. Tests that need the file are ignored by default.
pub fn shared(name: &str) -> PathBuf {
    shared::shared(name)
}
