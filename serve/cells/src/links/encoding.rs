//! The two link stores of a cell, forward and backward, and their encodings (Najork 2009 has one of each a server).
//!
//! [`ForwardStore`] returns the links of pages over time, [`BackwardStore`] the pages that link to URLs. Both take
//! [`Node`]s and hold [`Number`]s of the cell. A [`Thin`] store of in-links names pages that may link, and the forward
//! store decides. The head of an image carries the [`Tag`] of its [`Encoding`]; callers that open images pass the table
//! of [`Encodings`] that they can read. This crate has strata, in two profiles, and with thin in-links. All encodings
//! give the same answers.

use std::fmt;
use std::ops::Range;
use std::path::Path;

use bytes::Bytes;
use webstrata_layers::{CaptureTime, InLinks, Lifespan, Page, Window};

use crate::error::{Damage, Error};
use crate::links::backward::{self, Backward, Found, Wanted};
use crate::links::lists::Sizes;
use crate::links::scratch::StoreScratch;
use crate::links::strata::{self, Profile, Strata};
use crate::links::thin::{self, PageBlocks, Thin};
use crate::mapped::guard::Section;
use crate::numbers::{Node, Number};

/// The links of pages, ready to answer. A node outside the cell and damaged bytes are errors of all calls.
pub trait ForwardStore: Send + Sync {
    /// Whether a node has a record.
    ///
    /// # Errors
    /// See [`ForwardStore`]; this holds for all calls.
    fn has(&self, node: Node) -> Result<bool, Damage>;

    /// Replaces the contents of `links` by the links of a node in the window.
    ///
    /// # Errors
    /// See [`ForwardStore`].
    fn window(
        &self,
        node: Node,
        window: Window,
        scratch: &mut StoreScratch,
        links: &mut Vec<Number>,
    ) -> Result<(), Damage>;

    /// Whether a node has a link in any capture. For nodes near one another, asked in order, stores may keep what they
    /// share in `scratch`.
    ///
    /// # Errors
    /// See [`ForwardStore`].
    fn ever_links(&self, node: Node, link: Number, scratch: &mut StoreScratch) -> Result<bool, Damage> {
        self.links_in(node, link, Window::ALWAYS, scratch)
    }

    /// Whether a node has a link in the window, for nodes as in [`Self::ever_links`].
    ///
    /// # Errors
    /// See [`ForwardStore`].
    fn links_in(&self, node: Node, link: Number, window: Window, scratch: &mut StoreScratch) -> Result<bool, Damage> {
        let mut links = Vec::new();
        self.window(node, window, scratch, &mut links)?;
        Ok(links.binary_search(&link).is_ok())
    }

    /// Replaces the contents of `captures` by the captures of a node, in order of time. Empty if the node has no
    /// record.
    ///
    /// # Errors
    /// See [`ForwardStore`].
    fn captures(&self, node: Node, scratch: &mut StoreScratch, captures: &mut Vec<CaptureTime>) -> Result<(), Damage>;

    /// Whether a node was captured in the closed interval.
    ///
    /// # Errors
    /// See [`ForwardStore`].
    fn captured(&self, node: Node, interval: (i64, i64), scratch: &mut StoreScratch) -> Result<bool, Damage>;

    /// Replaces the contents of `lifespans` by the lifespans of the links of a node, as in
    /// `webstrata_layers::Links::lifespans`.
    ///
    /// # Errors
    /// See [`ForwardStore::page`].
    fn lifespans(
        &self,
        node: Node,
        scratch: &mut StoreScratch,
        lifespans: &mut Vec<Lifespan<Number>>,
    ) -> Result<(), Damage>;

    /// Replaces the contents of `lifespans` by the lifespans of a node's links in these rising ranges only, in order,
    /// and the contents of `captures` by the node's captures. For nodes near one another, asked in order, stores may
    /// keep what they share in `scratch`.
    ///
    /// # Errors
    /// See [`ForwardStore`].
    fn lifespans_within(
        &self,
        node: Node,
        ranges: &[Range<Number>],
        scratch: &mut StoreScratch,
        (lifespans, captures): (&mut Vec<Lifespan<Number>>, &mut Vec<CaptureTime>),
    ) -> Result<(), Damage> {
        self.lifespans(node, scratch, lifespans)?;
        lifespans.retain(|lifespan| ranges.iter().any(|range| range.contains(&lifespan.link)));
        self.captures(node, scratch, captures)
    }

    /// The whole record of a node; `None` if the node has none.
    ///
    /// # Errors
    /// See [`ForwardStore`], and an unsound record.
    fn page(&self, node: Node) -> Result<Option<Page<Number>>, Damage>;

    /// The size of the parts in bytes.
    fn sizes(&self) -> Sizes;
}

/// The in-links of URLs, ready to answer. A node outside the cell and damaged bytes are errors of all calls.
pub trait BackwardStore: Send + Sync {
    /// Calls `visit` with each source of a node that links in the selected ranges, in rising order, and with the ranges
    /// in which the source links. `select_ranges` gets the list of ranges of the node and selects some of them (`None`:
    /// no ranges).
    ///
    /// # Errors
    /// See [`BackwardStore`]; this holds for all calls.
    fn sources(
        &self,
        node: Node,
        select_ranges: &dyn Fn(&[i64]) -> Option<Wanted>,
        scratch: &mut StoreScratch,
        visit: &mut dyn FnMut(Number, Found),
    ) -> Result<(), Damage>;

    /// Calls `visit` with each source that links to a node in any range, in rising order.
    ///
    /// # Errors
    /// See [`BackwardStore`].
    fn each_source(&self, node: Node, scratch: &mut StoreScratch, visit: &mut dyn FnMut(Number)) -> Result<(), Damage> {
        let all = |ranges: &[i64]| {
            let all = (0, ranges.len().checked_sub(1)?);
            Some(Wanted { ranges: all, inner: Some(all) })
        };
        self.sources(node, &all, scratch, &mut |source, _| visit(source))
    }

    /// Calls `visit` with each source that links to one of these nodes in any range, at least once, in no order.
    ///
    /// # Errors
    /// See [`BackwardStore`].
    fn each_source_of(
        &self,
        nodes: Range<Node>,
        scratch: &mut StoreScratch,
        visit: &mut dyn FnMut(Number),
    ) -> Result<(), Damage> {
        (nodes.start.0..nodes.end.0).try_for_each(|node| self.each_source(Node(node), scratch, visit))
    }

    /// The record of a node as in the layers; `None` if nothing links to the node.
    ///
    /// # Errors
    /// See [`BackwardStore`], and an unsound record.
    fn record(&self, node: Node) -> Result<Option<InLinks<Number>>, Damage>;

    /// The size of the parts in bytes.
    fn sizes(&self) -> Sizes;
}

/// Records in order of nodes, as the encoders of link stores read them.
pub type Records<'a, T> = Box<dyn Iterator<Item = Result<T, Error>> + 'a>;

/// The input of the encoders of link stores, besides records.
#[derive(Clone, Copy, Debug)]
pub struct CellShape<'a> {
    /// The number of node 0.
    pub first: Number,
    /// The number of nodes.
    pub nodes: usize,
    /// The URL keys of all nodes, in order, if the encoding uses them: [`Encoding::reads_keys`].
    pub keys: Option<&'a [Vec<u8>]>,
}

/// The number of an encoding in the head of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(pub u32);

/// The in-links of a cell, ready to answer.
pub enum InLinkStore {
    /// A store with times.
    Timed(Box<dyn BackwardStore>),
    /// A store without times.
    Thin(Box<Thin>),
}

/// The link stores of a cell, ready to answer.
pub struct LinkStores {
    /// The links of pages.
    pub forward: Box<dyn ForwardStore>,
    /// The in-links of URLs.
    pub backward: InLinkStore,
}

/// The number of records of one kind, and the records, once for each pass of an encoder.
pub type EachPass<'a, 'b, T> = (usize, &'b dyn Fn() -> Records<'a, T>);

/// The records of a cell.
pub struct CellRecords<'a, 'b> {
    /// The pages.
    pub pages: EachPass<'a, 'b, Page<Number>>,
    /// The in-links.
    pub in_links: EachPass<'a, 'b, InLinks<Number>>,
}

/// An encoding of both link stores of a cell.
pub trait Encoding: fmt::Debug + Send + Sync {
    /// The tag of the encoding in images.
    fn tag(&self) -> Tag;

    /// The name of the encoding for users.
    fn name(&self) -> &'static str;

    /// Whether the encoder uses the keys of URLs.
    fn reads_keys(&self) -> bool {
        false
    }

    /// Encodes a cell: the bytes of its forward and of its backward store.
    ///
    /// # Errors
    /// The errors of the records, and links that the encoding cannot hold.
    fn encode<'a>(&self, shape: CellShape<'a>, records: CellRecords<'a, '_>) -> Result<[Vec<u8>; 2], Error>;

    /// Opens the sections that [`Encoding::encode`] wrote for `nodes` nodes. The first node has the number `first`.
    ///
    /// # Errors
    /// Bytes whose parts do not fit together.
    fn open(&self, sections: [&Section; 2], first: Number, nodes: usize) -> Result<LinkStores, Damage>;
}

/// An encoding with times in both directions, each of them a store that needs no other.
pub trait SideEncoding: Encoding {
    /// Encodes the pages of a cell.
    ///
    /// # Errors
    /// See [`Encoding::encode`].
    fn encode_forward<'a>(&self, shape: CellShape<'a>, pages: EachPass<'a, '_, Page<Number>>)
    -> Result<Vec<u8>, Error>;

    /// Encodes the in-links of a cell.
    ///
    /// # Errors
    /// See [`Encoding::encode`].
    fn encode_backward<'a>(
        &self,
        shape: CellShape<'a>,
        in_links: EachPass<'a, '_, InLinks<Number>>,
    ) -> Result<Vec<u8>, Error>;

    /// Opens a section that [`SideEncoding::encode_forward`] wrote.
    ///
    /// # Errors
    /// See [`Encoding::open`].
    fn open_forward(&self, section: &Section, first: Number, nodes: usize) -> Result<Box<dyn ForwardStore>, Damage>;

    /// Opens a section that [`SideEncoding::encode_backward`] wrote.
    ///
    /// # Errors
    /// See [`Encoding::open`].
    fn open_backward(&self, section: &Section, first: Number, nodes: usize) -> Result<Box<dyn BackwardStore>, Damage>;

    /// [`Encoding::encode`], one side after the other.
    ///
    /// # Errors
    /// See [`Encoding::encode`].
    fn encode_sides<'a>(&self, shape: CellShape<'a>, records: CellRecords<'a, '_>) -> Result<[Vec<u8>; 2], Error> {
        Ok([self.encode_forward(shape, records.pages)?, self.encode_backward(shape, records.in_links)?])
    }

    /// [`Encoding::open`], one side after the other.
    ///
    /// # Errors
    /// See [`Encoding::open`].
    fn open_sides(&self, sections: [&Section; 2], first: Number, nodes: usize) -> Result<LinkStores, Damage> {
        Ok(LinkStores {
            forward: self.open_forward(sections[0], first, nodes)?,
            backward: InLinkStore::Timed(self.open_backward(sections[1], first, nodes)?),
        })
    }
}

/// The encodings that a program can read.
#[derive(Clone, Copy, Debug)]
pub struct Encodings(pub &'static [&'static dyn Encoding]);

impl Encodings {
    /// The encodings of this crate.
    pub const STRATA: Encodings = Encodings(&[&STRATA, &STRATA_SPEED, &STRATA_THIN]);

    /// The encoding of an image with a tag.
    ///
    /// # Errors
    /// A tag that no encoding of the table has.
    pub fn of(self, path: &Path, tag: Tag) -> Result<&'static dyn Encoding, Error> {
        let found = self.0.iter().copied().find(|encoding| encoding.tag() == tag);
        found.ok_or_else(|| Error::Image { path: path.to_owned(), what: "its encoding of links is unknown" })
    }
}

/// An encoding by strata with one profile.
#[derive(Debug)]
pub struct InStrata {
    tag: Tag,
    name: &'static str,
    profile: Profile,
}

/// Strata for small size.
pub static STRATA: InStrata = InStrata { tag: Tag(16), name: "strata", profile: Profile::ARCHIVE };
/// Strata for speed.
pub static STRATA_SPEED: InStrata = InStrata { tag: Tag(17), name: "strata-speed", profile: Profile::SPEED };

impl Encoding for InStrata {
    fn tag(&self) -> Tag {
        self.tag
    }

    fn name(&self) -> &'static str {
        self.name
    }

    fn encode<'a>(&self, shape: CellShape<'a>, records: CellRecords<'a, '_>) -> Result<[Vec<u8>; 2], Error> {
        self.encode_sides(shape, records)
    }

    fn open(&self, sections: [&Section; 2], first: Number, nodes: usize) -> Result<LinkStores, Damage> {
        self.open_sides(sections, first, nodes)
    }
}

impl SideEncoding for InStrata {
    fn encode_forward<'a>(
        &self,
        shape: CellShape<'a>,
        pages: EachPass<'a, '_, Page<Number>>,
    ) -> Result<Vec<u8>, Error> {
        let (count, pages) = pages;
        let plain = || -> Records<'a, Page<u64>> { Box::new(pages().map(|page| Ok(page?.renumbered(u64::from)))) };
        strata::encode_pages(shape.first.0, (shape.nodes, count), &plain, self.profile)
    }

    fn encode_backward<'a>(
        &self,
        shape: CellShape<'a>,
        in_links: EachPass<'a, '_, InLinks<Number>>,
    ) -> Result<Vec<u8>, Error> {
        let (count, records) = in_links;
        backward::encode(shape.first, (shape.nodes, count), records, self.profile)
    }

    fn open_forward(&self, section: &Section, _: Number, _: usize) -> Result<Box<dyn ForwardStore>, Damage> {
        Ok(Box::new(Strata::open_section(section, None)?))
    }

    fn open_backward(&self, section: &Section, first: Number, nodes: usize) -> Result<Box<dyn BackwardStore>, Damage> {
        Ok(Box::new(Backward::open_section(section, first, nodes)?))
    }
}

/// Strata with thin in-links.
#[derive(Debug)]
pub struct InThinStrata;

/// Strata for the smallest size: in-links take a third of the bytes, and answers about them many times as long.
pub static STRATA_THIN: InThinStrata = InThinStrata;

impl Encoding for InThinStrata {
    fn tag(&self) -> Tag {
        Tag(18)
    }

    fn name(&self) -> &'static str {
        "strata-thin"
    }

    fn encode<'a>(&self, shape: CellShape<'a>, records: CellRecords<'a, '_>) -> Result<[Vec<u8>; 2], Error> {
        let forward = Bytes::from(STRATA.encode_forward(shape, records.pages)?);
        let damaged = |damage| Error::Damaged { path: "the new out-links".into(), damage };
        let opened = Strata::open(forward.clone()).map_err(damaged)?;
        let blocks = PageBlocks::of(&opened, shape.first, shape.nodes);
        let backward = thin::encode(&blocks, records.in_links, STRATA.profile)?;
        drop((opened, blocks));
        Ok([forward.into(), backward])
    }

    fn open(&self, sections: [&Section; 2], first: Number, nodes: usize) -> Result<LinkStores, Damage> {
        let forward = Strata::open_section(sections[0], None)?;
        let backward = Thin::open_section(sections[1], PageBlocks::of(&forward, first, nodes))?;
        Ok(LinkStores { forward: Box::new(forward), backward: InLinkStore::Thin(Box::new(backward)) })
    }
}
