//! Link2: gaps in nybbles, and compressed starts (Randall et al., *The Link Database*, SRC-RR-175, section 3).
//!
//! The first link of a list is written as its signed difference from the UID of the node, and each other link as its
//! difference from the link before. Both are nybble codes. A list ends where the next one starts. The paper gets
//! classes of degree by its numbering of URLs; here they are classes of 16 neighbours, see `super::starts`.
//!
//! Bytes: a header of two words (nodes, first UID), then starts in nybbles.

use bytes::Bytes;

use super::nybble;
use super::starts::{Starts, StartsWriter};
use webstrata_cells::Damage;
use webstrata_cells::coding::sections::{Sections, push_words};
use webstrata_cells::links::codec::LinkCodec;
use webstrata_cells::links::lists::{Lists, Sizes};
use webstrata_cells::links::scratch::StoreScratch;

const HEADER: usize = 16;

/// Encodes lists.
pub fn encode(lists: &Lists) -> Vec<u8> {
    let mut starts = StartsWriter::new(4);
    for (node, uid) in (0..lists.nodes()).zip(lists.first..) {
        let mut before = None;
        for &link in lists.list(node) {
            nybble::write(step(before, link, uid), starts.bits());
            before = Some(link);
        }
        starts.end_list();
    }
    let mut out = Vec::new();
    push_words(&mut out, &[lists.nodes() as u64, lists.first]);
    let (mut directory, mut data) = starts.finish();
    out.append(&mut directory);
    out.append(&mut data);
    out
}

/// The number that is written for a link: its difference from the link before, or its signed difference from the node.
pub(super) fn step(before: Option<u64>, link: u64, uid: u64) -> u64 {
    match before {
        None => nybble::fold(link.wrapping_sub(uid).cast_signed()),
        Some(before) => link.wrapping_sub(before),
    }
}

/// The first link of a list, from the number that [`step`] returned.
#[inline]
pub(super) fn first_link(step: u64, uid: u64) -> u64 {
    uid.wrapping_add_signed(nybble::unfold(step))
}

/// Link2, ready to answer.
#[derive(Clone, Debug)]
pub struct Link2 {
    first: u64,
    starts: Starts,
}

impl Link2 {
    /// Opens the bytes that [`encode`] wrote.
    ///
    /// # Errors
    /// A header that does not fit the bytes.
    pub fn open(bytes: Bytes) -> Result<Self, Damage> {
        let mut sections = Sections::new(bytes, "Link2");
        let (nodes, first) = (sections.length()?, sections.word()?);
        Ok(Self { first, starts: Starts::take(sections, nodes, 4)? })
    }
}

impl LinkCodec for Link2 {
    fn nodes(&self) -> usize {
        self.starts.nodes()
    }

    fn list(&self, node: usize, _: &mut StoreScratch, links: &mut Vec<u64>) -> Result<(), Damage> {
        links.clear();
        let (mut bits, end) = self.starts.find(node)?;
        if bits.position() < end {
            let mut link = first_link(nybble::read(&mut bits), self.first.wrapping_add(node as u64));
            links.push(link);
            while bits.position() < end {
                link = link.wrapping_add(nybble::read(&mut bits));
                links.push(link);
            }
        }
        Ok(())
    }

    fn sizes(&self) -> Sizes {
        let (data, index) = self.starts.sizes();
        Sizes { data, index, tables: HEADER as u64 }
    }
}
