//! What everything in a cell is written in: [`bits`], the words and [`parts`] of a section, and [`huffman`] codes.

pub mod bits;
pub mod huffman;
pub mod parts;
