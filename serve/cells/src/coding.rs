//! The building blocks of all encodings here: [`bits`], words and [`sections`], and [`huffman`] codes.

pub mod bits;
pub mod huffman;
pub mod sections;
