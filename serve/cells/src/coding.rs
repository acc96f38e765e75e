//! The building blocks of all encodings here: [`bits`], words and [`sections`], [`huffman`] codes, and numbers as
//! symbols.

pub mod bits;
pub mod huffman;
pub(crate) mod magnitudes;
pub(crate) mod number_codes;
pub mod sections;
