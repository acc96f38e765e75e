//! A file that is mapped into memory, with checks where its bytes are read: [`guard`] compares blocks with their
//! checksums, and `pages` asks the system whether bytes can be read.

pub mod guard;
pub(crate) mod pages;
