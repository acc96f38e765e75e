//! Link3: a list as a change of a list before it (Randall et al., *The Link Database*, SRC-RR-175, section 4,
//! LimitSelect-K-L).
//!
//! The representative is the one of the K lists before that makes the record shortest, if any of them makes it shorter.
//! Chains have fewer than L steps. *Ref*, the number of deletes and the deletes have Huffman codes. Adds are nybbles as
//! in [`super::link2`]; in the variant that the paper calls +huff they have a Huffman code too. The bytes are those of
//! `super::referenced`.

pub use super::referenced::Referenced as Link3;
use super::referenced::{Choice, Options};
use webstrata_cells::links::lists::Lists;

/// K of the paper: the number of earlier lists that may be a representative.
pub const K: u8 = 8;
/// L of the paper: a chain has fewer steps than this.
pub const L: u8 = 4;

/// Encodes lists. The default for `k` is [`K`], and for `l` [`L`]. `huffman_adds` selects the variant +huff.
pub fn encode(lists: &Lists, k: u8, l: u8, huffman_adds: bool) -> Vec<u8> {
    let hops_max = l.saturating_sub(1);
    let options = Options { choice: Choice::Shortest, distance_max: k, hops_max, fixed_refs: false, huffman_adds };
    super::referenced::encode(lists, &options)
}
