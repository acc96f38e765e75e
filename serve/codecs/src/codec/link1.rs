//! Link1: 32-bit starts and 32-bit successors (Randall et al., *The Link Database*, SRC-RR-175, section 2.3).
//!
//! UIDs here have 64 bits, so an array whose values do not fit in 32 has 64 for each. The bytes are those of
//! [`super::csr`], and so is the reader. The paper stores where a list starts and reads its end from the start of the
//! next; here are ends, and a list starts at the end of the one before.

pub use super::csr::Csr as Link1;
use webstrata_cells::links::lists::Lists;

/// Encodes lists in 32 bits an end and a link, where they fit.
pub fn encode(lists: &Lists) -> Vec<u8> {
    super::csr::encode_narrow(lists)
}
