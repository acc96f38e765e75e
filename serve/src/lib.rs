//! Serving: cells, servers and the clerk. So far cells: the graph in memory.
//!
//! A cell is one partition of one row, compressed: a URL store, a forward and a backward link store. An image is the file
//! of a cell; it is mapped into memory and answers without a decode pass. Servers that hold cells, and the clerk that asks
//! the right server, are not built yet.
//!
//! Map: [`codec`] lists of links, one encoding a file; [`codec_bench`] measures them; `bits` and `huffman` what the
//! encodings are written in.

mod bits;
pub mod codec;
pub mod codec_bench;
mod error;
mod huffman;

pub use error::{Damage, EncodeError};
