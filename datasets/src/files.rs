//! Bytes of an input: their digest ([`hashed`]), decompression ([`compressed`]), format detection ([`detect`]), and
//! lines of any length ([`lines`], [`long_line`]).

pub(crate) mod compressed;
pub(crate) mod detect;
pub(crate) mod hashed;
pub(crate) mod lines;
pub(crate) mod long_line;
