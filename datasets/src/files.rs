//! Bytes of an input: their digest ([`hashed`]), decompression ([`compressed`]), the beginning that shows the format
//! ([`head`]), lines of any length ([`lines`], [`long_line`]), lines of JSON ([`json_text`]), where it is ([`place`]),
//! its ranges on this and other machines ([`source`]), copies of what can be read only once ([`spool`]), and the
//! members of ZIP archives ([`zip`]).

pub(crate) mod compressed;
pub(crate) mod hashed;
pub(crate) mod head;
pub(crate) mod json_text;
pub(crate) mod lines;
pub(crate) mod long_line;
pub(crate) mod place;
pub(crate) mod source;
pub(crate) mod spool;
pub(crate) mod zip;
