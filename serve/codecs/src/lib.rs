//! Encodings of links from the literature, beside strata: for comparison, and for callers that want one of them in
//! cells.
//!
//! [`codec`] has one encoding a file. [`union`] adds plain times to any of them, so that cells can be written in it,
//! and [`encodings`] is the table of all. [`mod@bench`] measures them, and [`probe`] damages them.

pub mod bench;
pub mod codec;
pub mod encodings;
pub mod probe;
pub mod union;

pub use codec::CodecTag;
pub use encodings::ENCODINGS;
