//! Bytes of an input: decompression ([`compressed`]), format detection ([`detect`]), and lines of any length
//! ([`lines`], [`long_line`]).

pub(crate) mod compressed;
pub(crate) mod detect;
pub(crate) mod lines;
pub(crate) mod long_line;
