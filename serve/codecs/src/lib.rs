//! Encodings of links from the literature, beside strata: to compare, and for whoever wants one of them in cells.
//!
//! [`codec`] has one encoding a file, and the table of all; [`union`] adds plain times to any of them, so that cells can be
//! written in it; [`bench`] measures them; [`probe`] damages them.

pub mod bench;
pub mod codec;
pub mod probe;
pub mod union;

pub use codec::{CodecTag, ENCODINGS};
