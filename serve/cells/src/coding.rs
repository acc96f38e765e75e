//! What everything in a cell is written in: [`bits`], words and [`sections`], and [`huffman`] codes.

pub mod bits;
pub mod huffman;
pub mod sections;
