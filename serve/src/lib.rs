//! Serving: cells, servers that hold them, and the clerk that asks the right server.
//!
//! A cell is one partition of one row, compressed: a URL store, a forward and a backward link store. An image is the file
//! of a cell; it is mapped into memory and answers without a decode pass. A server holds cells of a store, says to the others
//! which, and answers any question by its clerk, which asks the servers that have the cells.
//!
//! ```text
//! layers --> [load: url_store, store] --> [image] --> [Cells: Links] --> answers in the process
//!                                           |
//!            [cluster: shelf, placement] <--+--> [held] --> [server] <-- [clerk: map, dial] <-- questions
//!                                                           [http]  --^
//! ```
//!
//! Cells: [`url_store`] URLs and their numbers; [`codec`] lists of links, one encoding a file, of which [`codec::strata`]
//! also knows time; [`backward`] in-links over strata; [`union`] any encoding with its times beside it (`side`); [`store`]
//! what is asked of all of them; [`image`] the file of a cell, [`load`] writes it from layers, a file that is not there
//! before it is whole, `numbers` the places of its URLs; [`cell`] answers from it, [`row`] from those cells of a row that
//! are held, [`cells`] from all of an epoch; `bits` and `huffman` what they are written in. [`codec_bench`] measures
//! encodings, [`cell_bench`] cells; [`check`](mod@check) compares them with their layers; [`probe`] damages all of it,
//! `compressible` writes what compresses best.
//!
//! Servers: [`proto`] what is asked over the network, [`status`] how that fails; [`cluster`] who is there, whose a cell is,
//! and how it comes there, [`shelf`] where it stays on disk; [`map`] what one knows of all that; [`held`] answers for a
//! server's own cells, by lists of links as [`gaps`], [`clerk`] for all, through [`dial`]; [`server`] the port and its gRPC
//! services, [`http`] the same questions for people, [`question`] the form of their lines, `resume` where answers in parts
//! go on; [`guard`] what stands around every call.

pub mod backward;
mod bits;
pub mod cell;
pub mod cell_bench;
pub mod cells;
pub mod check;
pub mod clerk;
pub mod cluster;
pub mod codec;
pub mod codec_bench;
#[cfg(test)]
mod compressible;
pub mod dial;
mod error;
pub mod gaps;
pub mod guard;
pub mod held;
pub mod http;
mod huffman;
pub mod image;
pub mod load;
pub mod map;
mod numbers;
pub mod probe;
pub mod proto;
pub mod question;
mod resume;
pub mod row;
pub mod server;
pub mod shelf;
mod side;
pub mod status;
pub mod store;
pub mod union;
pub mod url_store;

pub use cells::Cells;
pub use error::{Damage, EncodeError, Error};
pub use row::Row;
pub use shelf::Shelf;
