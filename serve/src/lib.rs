//! Serving: cells, servers and the clerk. So far cells: the graph in memory.
//!
//! A cell is one partition of one row, compressed: a URL store, a forward and a backward link store. An image is the file
//! of a cell; it is mapped into memory and answers without a decode pass. Servers that hold cells, and the clerk that asks
//! the right server, are not built yet.
//!
//! ```text
//! layers --> [load: url_store, store] --> [image] --> [Cells: Links] --> answers
//! ```
//!
//! Map: [`url_store`] URLs and their numbers; [`codec`] lists of links, one encoding a file, of which [`codec::strata`] also
//! knows time; [`backward`] in-links over strata; [`union`] any encoding with its times beside it (`side`); [`store`] what is
//! asked of all of them; [`image`] the file of a cell, [`load`] writes it from layers, `numbers` the places of its URLs; [`cell`] answers from it,
//! `row` from the cells of a row, [`cells`] from all of an epoch;
//! [`codec_bench`] measures encodings, [`cell_bench`] cells; [`probe`] damages all of it;
//! `bits` and `huffman` what they are written in.

pub mod backward;
mod bits;
pub mod cell;
pub mod cell_bench;
pub mod cells;
pub mod codec;
pub mod codec_bench;
mod error;
mod huffman;
pub mod image;
pub mod load;
mod numbers;
pub mod probe;
mod row;
mod side;
pub mod store;
pub mod union;
pub mod url_store;

pub use cells::Cells;
pub use error::{Damage, EncodeError, Error};
