//! Bytes of an input: whatever its container ([`compressed`]), which format they are ([`detect`]), and their [`lines`],
//! of any length ([`long_line`]).

pub(crate) mod compressed;
pub(crate) mod detect;
pub(crate) mod lines;
pub(crate) mod long_line;
