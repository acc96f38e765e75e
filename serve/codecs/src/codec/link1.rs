//! Link1: 32-bit starts and 32-bit successors (Randall et al., *The Link Database*, SRC-RR-175, section 2.3).
//!
//! UIDs here have 64 bits, so an array with values that do not fit in 32 bits has 64 bits a value. Bytes and reader are
//! those of [`super::csr`]. The paper stores the start of each list and reads its end from the next start. Here ends
//! are stored, and a list starts at the end of the one before.

pub use super::csr::Csr as Link1;
use webstrata_cells::links::lists::Lists;

/// Encodes lists in 32 bits an end and a link, if they fit.
pub fn encode(lists: &Lists) -> Vec<u8> {
    super::csr::encode_narrow(lists)
}
