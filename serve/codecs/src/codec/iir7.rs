//! A row in terms of one of the seven before it (Manning, Raghavan & Schütze, *Introduction to Information Retrieval*,
//! section 20.4).
//!
//! Three bits say which of the seven preceding rows is the prototype, or that there is none. Then come the integers
//! dropped and those added, as gaps in Huffman codes ("tightly, based on the distribution of their values"). The
//! prototype is the row most similar to this one (links of both, divided by links of either), and must reach a
//! threshold. Of equally similar rows, the one with the shortest chain behind it is taken. The book limits chains by
//! the threshold only. On sites with rows that are all alike, chains would be as long as the site, so here they end
//! after [`STEPS_MAX`] steps.
//!
//! The bytes are those of `super::referenced`, with a code of 3 bits for each distance.

pub use super::referenced::Referenced as Iir7;
use super::referenced::{Choice, Options};
use webstrata_cells::links::lists::Lists;

/// The least similarity of a prototype: 1 in 4 links in common.
pub const THRESHOLD: f64 = 0.25;
/// The longest chain of prototypes.
pub const STEPS_MAX: u8 = 64;

/// Encodes lists. The default for `threshold` is [`THRESHOLD`].
pub fn encode(lists: &Lists, threshold: f64) -> Vec<u8> {
    let choice = Choice::MostSimilar { threshold };
    let options = Options { choice, distance_max: 7, hops_max: STEPS_MAX, fixed_refs: true, huffman_adds: true };
    super::referenced::encode(lists, &options)
}
