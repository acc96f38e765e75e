//! The in-links of a cell without times: for each URL, the blocks of pages that have a page which links to it.
//!
//! In-links mirror out-links, so a page's own record says whether and when it links. A block has sixteen pages, one
//! after the other in order of keys. The pages of a site that link to a URL are close together, so few blocks have most
//! of them. A question reads the records of all pages in the blocks of a URL.
//!
//! Pages of the cell are numbered by their place among the records of its forward store, so that a block here is some
//! groups of records there. URLs of other cells keep their order around them. Which of these are pages is not known
//! here, so their blocks have w numbers: the largest power of two up to 16 nodes / pages, but at most 256. If other
//! cells are like this one, such a block has sixteen pages or fewer. The bytes are strata without times, whose links
//! are blocks: see [`strata`](crate::links::strata).
//!
//! ```text
//! below the cell, number n           block n / w
//! page of the cell, p pages before   block b + p / 16, where b = first number / w, rounded up
//! above the cell, n numbers between  block b + pages / 16, rounded up, + n / w
//! ```

use std::ops::Range;

use webstrata_layers::InLinks;

use crate::error::{Damage, Error};
use crate::links::codec::LinkCodec;
use crate::links::encoding::EachPass;
use crate::links::lists::Sizes;
use crate::links::scratch::StoreScratch;
use crate::links::strata::ranks::{self, Nodes};
use crate::links::strata::{NodeList, Numbering, Profile, Strata, encode_streamed};
use crate::mapped::guard::Section;
use crate::numbers::{Node, Number};

/// The bits of a page within its block.
const BLOCK_BITS: u32 = 4;
/// The number of pages in a block.
const BLOCK: u64 = 1 << BLOCK_BITS;
/// The most bits of a number of another cell within its block. A server may ask other cells for each number.
const OUTSIDE_BITS_MAX: u32 = 8;

/// The blocks of a cell's pages.
pub(crate) struct PageBlocks {
    /// The number of node 0, and the number of nodes.
    first: u64,
    nodes: u64,
    /// The number of nodes that are pages.
    pages: u64,
    /// The bits of a number of another cell within its block.
    outside_bits: u32,
    numbering: Numbering,
}

impl PageBlocks {
    /// The blocks of the pages with a record in `forward`.
    pub(crate) fn of(forward: &Strata, Number(first): Number, nodes: usize) -> Self {
        let (pages, ranks) = forward.nodes_with_records();
        let (nodes, pages) = (nodes as u64, pages as u64);
        let outside_bits = (BLOCK.saturating_mul(nodes) / pages.max(1)).max(BLOCK).ilog2().min(OUTSIDE_BITS_MAX);
        let numbering = Numbering { first: first.div_ceil(1 << outside_bits), ranks, shift: BLOCK_BITS };
        Self { first, nodes, pages, outside_bits, numbering }
    }

    /// The most numbers in a block.
    fn block_max(&self) -> u64 {
        1 << self.outside_bits
    }

    /// The number of blocks of pages in the cell.
    fn own(&self) -> u64 {
        self.pages.div_ceil(BLOCK)
    }

    /// The block of a source; `None` for a URL of the cell that is not a page.
    fn block_of(&self, Number(source): Number) -> Option<u64> {
        let Some(node) = source.checked_sub(self.first) else { return Some(source >> self.outside_bits) };
        if node >= self.nodes {
            return Some(self.numbering.first + self.own() + ((node - self.nodes) >> self.outside_bits));
        }
        let node = usize::try_from(node).ok()?;
        let is_page = self.numbering.ranks.as_ref().is_none_or(|ranks| ranks::record_of(ranks, node).is_some());
        is_page.then(|| self.numbering.of(node))
    }

    /// Calls `visit` with each page of the cell and each URL of other cells that is in a block, in rising order.
    fn each(&self, block: u64, pages: &mut Nodes<'_>, visit: &mut dyn FnMut(Number)) {
        let Some(own) = block.checked_sub(self.numbering.first) else {
            let start = block << self.outside_bits;
            return (start..self.first.min(start + self.block_max())).for_each(|number| visit(Number(number)));
        };
        let Some(above) = own.checked_sub(self.own()) else {
            for page in own * BLOCK..self.pages.min((own + 1) * BLOCK) {
                let page = usize::try_from(page).unwrap_or(usize::MAX);
                let node = if self.numbering.ranks.is_none() { Some(page) } else { pages.node(page) };
                node.into_iter().for_each(|node| visit(Number(self.first + node as u64)));
            }
            return;
        };
        let start = above.checked_mul(self.block_max()).and_then(|above| above.checked_add(self.first + self.nodes));
        // Damaged bytes may have blocks that no URL is in.
        let Some(start) = start else { return };
        (start..start.saturating_add(self.block_max())).for_each(|number| visit(Number(number)));
    }
}

/// Encodes the in-links of `count` of the nodes of a cell.
///
/// # Errors
/// The errors of `records`, which is called more than once.
pub(crate) fn encode<'a>(
    blocks: &PageBlocks,
    (count, records): EachPass<'a, '_, InLinks<Number>>,
    profile: Profile,
) -> Result<Vec<u8>, Error> {
    let list = |record: Result<InLinks<Number>, Error>| {
        record.map(|record| {
            let node = usize::try_from(record.uid.0 - blocks.first).unwrap_or(usize::MAX);
            (node, blocks_of(blocks, &record).0)
        })
    };
    let lists = || -> Box<dyn Iterator<Item = Result<NodeList, Error>> + '_> { Box::new(records().map(list)) };
    let nodes = usize::try_from(blocks.nodes).unwrap_or(usize::MAX);
    encode_streamed(blocks.first, (nodes, count), &lists, &blocks.numbering, profile)
}

/// The blocks of a record's sources, rising, and whether all sources are in a block.
fn blocks_of(blocks: &PageBlocks, record: &InLinks<Number>) -> (Vec<u64>, bool) {
    let found: Vec<Option<u64>> = record.sources.iter().map(|&source| blocks.block_of(source)).collect();
    let are_all = found.iter().all(Option::is_some);
    let mut found: Vec<u64> = found.into_iter().flatten().collect();
    found.dedup();
    (found, are_all)
}

/// The in-links of a cell, ready to answer.
pub struct Thin {
    blocks: PageBlocks,
    strata: Strata,
}

impl Thin {
    /// Opens the bytes that [`encode`] wrote for a cell with these pages.
    ///
    /// # Errors
    /// Bytes whose parts do not fit together.
    pub(crate) fn open_section(section: &Section, blocks: PageBlocks) -> Result<Self, Damage> {
        let strata = Strata::open_section(section, Some(blocks.numbering.clone()))?;
        Ok(Self { blocks, strata })
    }

    /// Calls `visit` with each source that may link to a node, in rising order. All that link are among them.
    ///
    /// # Errors
    /// A node outside the cell, and damaged bytes.
    pub(crate) fn candidates(
        &self,
        Node(node): Node,
        scratch: &mut StoreScratch,
        visit: &mut dyn FnMut(Number),
    ) -> Result<(), Damage> {
        let mut found = std::mem::take(&mut scratch.links);
        let read = self.strata.list(node, scratch, &mut found);
        let mut pages = Nodes::new(self.blocks.numbering.ranks.as_deref().unwrap_or_default());
        if read.is_ok() {
            found.iter().for_each(|&block| self.blocks.each(block, &mut pages, visit));
        }
        scratch.links = found;
        read
    }

    /// Like [`Self::candidates`], of all these nodes, at least once each, in no order.
    ///
    /// # Errors
    /// See [`Self::candidates`].
    pub(crate) fn candidates_of(
        &self,
        nodes: Range<Node>,
        scratch: &mut StoreScratch,
        visit: &mut dyn FnMut(Number),
    ) -> Result<(), Damage> {
        let mut pages = Nodes::new(self.blocks.numbering.ranks.as_deref().unwrap_or_default());
        let mut visit = |block: u64| self.blocks.each(block, &mut pages, visit);
        scratch.near.each_link(&self.strata, nodes.start.0..nodes.end.0, &mut visit)
    }

    /// Whether a node has the blocks of this record.
    ///
    /// # Errors
    /// See [`Self::candidates`].
    pub(crate) fn has(
        &self,
        Node(node): Node,
        record: &InLinks<Number>,
        scratch: &mut StoreScratch,
    ) -> Result<bool, Damage> {
        let mut found = Vec::new();
        self.strata.list(node, scratch, &mut found)?;
        Ok(blocks_of(&self.blocks, record) == (found, true))
    }

    /// The most candidates of a node.
    pub(crate) fn candidates_max(&self) -> u64 {
        self.blocks.block_max().saturating_mul(self.strata.links_max() as u64)
    }

    /// The number of URLs that have in-links.
    pub(crate) fn records(&self) -> usize {
        self.strata.nodes_with_records().0
    }

    /// The size of the parts in bytes.
    pub fn sizes(&self) -> Sizes {
        Strata::sizes(&self.strata)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::Random;
    use crate::links::encoding::Records;
    use crate::links::strata::encode_pages;
    use std::convert::Infallible;
    use webstrata_layers::Page;

    const FIRST: u64 = 1003;
    const NODES: usize = 200;

    /// The forward store of a cell in which every `every`-th node is a page.
    fn forward(every: usize) -> Strata {
        let page = |node: usize| Page { uid: FIRST + node as u64, timestamps: vec![1], ..Page::default() };
        let pages = || -> Box<dyn Iterator<Item = Result<Page<u64>, Infallible>>> {
            Box::new((0..NODES).step_by(every).map(move |node| Ok(page(node))))
        };
        let count = NODES.div_ceil(every);
        let bytes =
            encode_pages(FIRST, (NODES, count), &pages, Profile::ARCHIVE).unwrap_or_else(|never| match never {});
        Strata::open(bytes.into()).unwrap()
    }

    /// In-links from pages of the cell and from other cells.
    fn records(every: usize) -> Vec<InLinks<Number>> {
        let (mut random, every) = (Random::new(5), every as u64);
        let mut all = Vec::new();
        for node in (0..NODES as u64).step_by(2) {
            let mut sources: Vec<Number> = Vec::new();
            for _ in 0..=random.below(9) {
                let own = FIRST + random.below((NODES as u64).div_ceil(every)) * every;
                let others = [random.below(FIRST), FIRST + NODES as u64 + random.below(600), own, own];
                sources.push(Number(others[usize::try_from(random.below(4)).unwrap()]));
            }
            sources.sort_unstable();
            sources.dedup();
            all.push(InLinks { uid: Number(FIRST + node), ranges: vec![0], sources, changes: Vec::new() });
        }
        all
    }

    fn encoded(every: usize, records: &[InLinks<Number>]) -> Vec<u8> {
        let blocks = PageBlocks::of(&forward(every), Number(FIRST), NODES);
        let again = || -> Records<'_, InLinks<Number>> { Box::new(records.iter().cloned().map(Ok)) };
        encode(&blocks, (records.len(), &again), Profile::ARCHIVE).unwrap()
    }

    fn opened(every: usize, bytes: Vec<u8>) -> Result<Thin, Damage> {
        let blocks = PageBlocks::of(&forward(every), Number(FIRST), NODES);
        Thin::open_section(&bytes.into(), blocks)
    }

    #[test]
    fn all_sources_are_candidates_and_few_others() {
        for every in [1, 3] {
            let records = records(every);
            let thin = opened(every, encoded(every, &records)).unwrap();
            assert_eq!(thin.records(), records.len());
            let mut scratch = StoreScratch::default();
            for record in &records {
                let node = Node(usize::try_from(record.uid.0 - FIRST).unwrap());
                let mut found = Vec::new();
                thin.candidates(node, &mut scratch, &mut |source| found.push(source)).unwrap();
                assert!(found.is_sorted_by(|one, other| one < other), "{found:?}");
                assert!(record.sources.iter().all(|source| found.binary_search(source).is_ok()), "{found:?}");
                assert!(found.len() as u64 <= thin.blocks.block_max() * record.sources.len() as u64);
                assert!(found.len() as u64 <= thin.candidates_max());
                let own = found.iter().filter_map(|source| source.0.checked_sub(FIRST)).filter(|&at| at < NODES as u64);
                assert!(own.into_iter().all(|at| at % every as u64 == 0), "{found:?}");
                assert!(thin.has(node, record, &mut scratch).unwrap());
                let mut other = record.clone();
                other.sources.push(Number(FIRST + NODES as u64 + 10_000));
                assert!(!thin.has(node, &other, &mut scratch).unwrap());
            }
            thin.candidates(Node(1), &mut scratch, &mut |source| panic!("{source:?}")).unwrap();
            assert!(thin.candidates(Node(NODES), &mut scratch, &mut |_| {}).is_err());
        }
    }

    #[test]
    fn a_source_that_is_no_page_is_noticed() {
        let record = InLinks { uid: Number(FIRST), ranges: vec![0], sources: vec![Number(FIRST + 1)], changes: vec![] };
        let thin = opened(3, encoded(3, std::slice::from_ref(&record))).unwrap();
        assert!(!thin.has(Node(0), &record, &mut StoreScratch::default()).unwrap());
    }

    #[test]
    fn damaged_bytes_give_errors_or_other_candidates() {
        let (whole, mut random) = (encoded(3, &records(3)), Random::new(8));
        let (mut scratch, mut opened_count) = (StoreScratch::default(), 0);
        for _ in 0..2000 {
            let mut bytes = whole.clone();
            for _ in 0..=random.below(3) {
                let at = usize::try_from(random.below(bytes.len() as u64)).unwrap();
                bytes[at] ^= 1 << random.below(8);
            }
            let Ok(thin) = opened(3, bytes) else { continue };
            opened_count += 1;
            for node in 0..NODES {
                let _ = thin.candidates(Node(node), &mut scratch, &mut |_| {});
            }
        }
        assert!(opened_count > 1000, "{opened_count}");
    }
}
