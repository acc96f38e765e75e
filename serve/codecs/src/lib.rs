//! Encodings of links from the literature, beside strata: for comparison, and for callers that want one of them in
//! cells.
//!
//! [`codec`] has one encoding a file. [`union`] adds plain times to any of them, so that cells can be written in it,
//! and [`encodings`] is the table of all. [`mod@bench`] measures them, and [`probe`] damages them.
//!
//! ```
//! use webstrata_cells::links::lists::Lists;
//! use webstrata_cells::links::scratch::StoreScratch;
//! use webstrata_codecs::codec::{encode, open};
//! use webstrata_codecs::CodecTag;
//!
//! // A hundred pages with the same menu of twenty links, and a link of their own.
//! let mut lists = Lists::default();
//! for page in 0..100 {
//!     let menu = 0..20;
//!     lists.push(&menu.chain([20 + page]).collect::<Vec<u64>>());
//! }
//! let (mut scratch, mut links) = (StoreScratch::default(), Vec::new());
//! let mut bytes = |tag| -> Result<usize, Box<dyn std::error::Error>> {
//!     let encoded = encode(tag, &lists, None)?;
//!     let size = encoded.len();
//!     open(tag, encoded.into())?.list(42, &mut scratch, &mut links)?;
//!     assert_eq!(links, lists.list(42));
//!     Ok(size)
//! };
//! // Link3 names the links that a list has in common with an earlier list, and Link2 writes all links.
//! assert!(bytes(CodecTag::Link3)? < bytes(CodecTag::Link2)?);
//! assert!(bytes(CodecTag::Link2)? < bytes(CodecTag::Csr)?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod bench;
pub mod codec;
pub mod encodings;
pub mod probe;
pub mod union;

pub use codec::CodecTag;
pub use encodings::ENCODINGS;
