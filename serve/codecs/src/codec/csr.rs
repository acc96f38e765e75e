//! Plain ends and links, 64 bits each: the baseline, without any decoding. [`super::link1`] is the same in 32 bits.
//!
//! Bytes: a header of five words (nodes, first UID, links, bytes an end, bytes a link; 4 or 8 bytes), then for each
//! node the end of its list in the links, then the links. A look-up reads two ends and copies the links.

use bytes::Bytes;

use webstrata_cells::Damage;
use webstrata_cells::coding::sections::{Sections, no_such_node, push_wide, push_words, wide_at, width_of};
use webstrata_cells::links::codec::LinkCodec;
use webstrata_cells::links::lists::{Lists, Sizes};
use webstrata_cells::links::scratch::StoreScratch;

const PART: &str = "plain lists";
const HEADER: usize = 40;

/// Encodes lists with 8 bytes an end and a link.
pub fn encode(lists: &Lists) -> Vec<u8> {
    encode_with(lists, 8, 8)
}

/// Like [`encode`], with 4 bytes an end or a link if the values fit.
pub(super) fn encode_narrow(lists: &Lists) -> Vec<u8> {
    let widest = lists.links.iter().copied().max().unwrap_or(0);
    encode_with(lists, width_of(lists.links.len() as u64), width_of(widest))
}

fn encode_with(lists: &Lists, end_bytes: usize, link_bytes: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEADER + lists.nodes() * end_bytes + lists.links.len() * link_bytes);
    let counts = [lists.nodes() as u64, lists.first, lists.links.len() as u64, end_bytes as u64, link_bytes as u64];
    push_words(&mut out, &counts);
    lists.ends.iter().for_each(|&end| push_wide(&mut out, end as u64, end_bytes));
    lists.links.iter().for_each(|&link| push_wide(&mut out, link, link_bytes));
    out
}

/// Plain lists, ready to answer.
#[derive(Clone, Debug)]
pub struct Csr {
    nodes: usize,
    end_bytes: usize,
    link_bytes: usize,
    ends: Bytes,
    links: Bytes,
}

impl Csr {
    /// Opens the bytes that [`encode`] or [`super::link1::encode`] wrote.
    ///
    /// # Errors
    /// A header that does not fit the bytes.
    pub fn open(bytes: Bytes) -> Result<Self, Damage> {
        let mut sections = Sections::new(bytes, PART);
        let (nodes, _first, links) = (sections.length()?, sections.word()?, sections.length()?);
        let mut width = || match sections.word()? {
            4 => Ok(4),
            8 => Ok(8),
            value => Err(Damage::Outside { part: PART, value, bound: 8 }),
        };
        let (end_bytes, link_bytes) = (width()?, width()?);
        let (ends, links) = (sections.take(nodes, end_bytes)?, sections.take(links, link_bytes)?);
        Ok(Self { nodes, end_bytes, link_bytes, ends, links })
    }

    /// The range of the list of a node in the bytes of links.
    #[inline]
    fn range(&self, node: usize) -> Result<(usize, usize), Damage> {
        let end = |node| wide_at(&self.ends, node, self.end_bytes);
        let (Some(start), Some(end)) = (node.checked_sub(1).map_or(Some(0), end), end(node)) else {
            return Err(no_such_node(node, self.nodes));
        };
        let bound = (self.links.len() / self.link_bytes) as u64;
        if start > end || end > bound {
            return Err(Damage::Outside { part: PART, value: end, bound });
        }
        let offset = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).saturating_mul(self.link_bytes);
        Ok((offset(start), offset(end)))
    }
}

impl LinkCodec for Csr {
    fn nodes(&self) -> usize {
        self.nodes
    }

    fn list(&self, node: usize, _: &mut StoreScratch, links: &mut Vec<u64>) -> Result<(), Damage> {
        let (start, end) = self.range(node)?;
        let bytes = &self.links[start..end];
        links.clear();
        if self.link_bytes == 4 {
            links.extend(bytes.as_chunks().0.iter().map(|link| u64::from(u32::from_le_bytes(*link))));
        } else {
            links.extend(bytes.as_chunks().0.iter().map(|link| u64::from_le_bytes(*link)));
        }
        Ok(())
    }

    fn degree(&self, node: usize) -> Result<usize, Damage> {
        self.range(node).map(|(start, end)| (end - start) / self.link_bytes)
    }

    fn sizes(&self) -> Sizes {
        Sizes { data: self.links.len() as u64, index: self.ends.len() as u64, tables: HEADER as u64 }
    }
}
