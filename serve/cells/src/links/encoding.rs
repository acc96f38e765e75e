//! The two link stores of a cell, forward and backward, and how they are encoded (Najork 2009 has one of each a
//! server).
//!
//! [`ForwardStore`] gives the links of pages over time, [`BackwardStore`] the pages that link to URLs. Both take
//! [`Node`]s and hold [`Number`]s of the cell. The head of an image carries the [`Tag`] of its [`Encoding`]; whoever
//! opens images hands in the table of [`Encodings`] that it can read. This crate has strata, in two profiles; all
//! encodings give the same answers.

use std::fmt;
use std::ops::Range;
use std::path::Path;

use bytes::Bytes;
use webstrata_layers::{CaptureTime, InLinks, Lifespan, Page, Window};

use crate::error::{Damage, Error};
use crate::image::guard::Section;
use crate::links::backward::{self, Backward, Found, Wanted};
use crate::links::lists::Sizes;
use crate::links::strata::{self, Profile, Strata};
use crate::numbers::{Node, Number};
use crate::scratch::StoreScratch;

/// Links of pages, ready to answer. A node outside the cell and damaged bytes are errors of all calls.
pub trait ForwardStore: Send + Sync {
    /// Whether a node has a record.
    ///
    /// # Errors
    /// See [`ForwardStore`]; so in all calls.
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

    /// Replaces the contents of `captures` by those of a node, in order of time; none without a record.
    ///
    /// # Errors
    /// See [`ForwardStore`].
    fn captures(&self, node: Node, scratch: &mut StoreScratch, captures: &mut Vec<CaptureTime>) -> Result<(), Damage>;

    /// Whether a node was captured in the closed interval.
    ///
    /// # Errors
    /// See [`ForwardStore`].
    fn captured(&self, node: Node, interval: (i64, i64), scratch: &mut StoreScratch) -> Result<bool, Damage>;

    /// Replaces the contents of `lifespans` by when each link of a node was there:
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

    /// Replaces the contents of `lifespans` by those of a node's links in these rising ranges alone, in order, and
    /// those of `captures` by the node's captures.
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

    /// All of a node's record; `None` where it has none.
    ///
    /// # Errors
    /// See [`ForwardStore`], and a record that is not sound.
    fn page(&self, node: Node) -> Result<Option<Page<Number>>, Damage>;

    /// Where the bytes are.
    fn sizes(&self) -> Sizes;
}

/// What links to URLs, ready to answer. A node outside the cell and damaged bytes are errors of all calls.
pub trait BackwardStore: Send + Sync {
    /// Calls `visit` with each source of a node, rising, that links in the ranges that `select_ranges` selects of the
    /// node's list of ranges (`None`: no ranges), and in which of them.
    ///
    /// # Errors
    /// See [`BackwardStore`]; so in all calls.
    fn sources(
        &self,
        node: Node,
        select_ranges: &dyn Fn(&[i64]) -> Option<Wanted>,
        scratch: &mut StoreScratch,
        visit: &mut dyn FnMut(Number, Found),
    ) -> Result<(), Damage>;

    /// Calls `visit` with each source of a node, rising, that ever links.
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

    /// The record of a node as the layers have it; `None` where nothing links to it.
    ///
    /// # Errors
    /// See [`BackwardStore`], and a record that is not sound.
    fn record(&self, node: Node) -> Result<Option<InLinks<Number>>, Damage>;

    /// Where the bytes are.
    fn sizes(&self) -> Sizes;
}

/// Records in order of nodes, as encoders of stores read them.
pub type Records<'a, T> = Box<dyn Iterator<Item = Result<T, Error>> + 'a>;

/// What encoders of link stores are given, besides records.
#[derive(Clone, Copy, Debug)]
pub struct CellShape<'a> {
    /// The number of node 0.
    pub first: Number,
    /// Number of nodes.
    pub nodes: usize,
    /// Number of records.
    pub count: usize,
    /// The URL keys of all nodes, in order, where the encoding goes by them: [`Encoding::reads_keys`].
    pub keys: Option<&'a [Vec<u8>]>,
}

/// The number of an encoding in the head of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(pub u32);

/// A way to encode the link stores of a cell. `pages` and `records` are called as often as the encoder passes over
/// them.
pub trait Encoding: fmt::Debug + Send + Sync {
    /// Its number in images.
    fn tag(&self) -> Tag;

    /// The name that users know it by.
    fn name(&self) -> &'static str;

    /// Whether the encoder goes by the keys of URLs.
    fn reads_keys(&self) -> bool {
        false
    }

    /// Encodes the pages of a cell.
    ///
    /// # Errors
    /// Those of `pages`, and links that the encoding cannot hold.
    fn encode_forward<'a>(
        &self,
        shape: CellShape<'a>,
        pages: &dyn Fn() -> Records<'a, Page<Number>>,
    ) -> Result<Vec<u8>, Error>;

    /// Encodes the in-links of a cell.
    ///
    /// # Errors
    /// See [`Encoding::encode_forward`].
    fn encode_backward<'a>(
        &self,
        shape: CellShape<'a>,
        records: &dyn Fn() -> Records<'a, InLinks<Number>>,
    ) -> Result<Vec<u8>, Error>;

    /// Opens what [`Encoding::encode_forward`] wrote for `nodes` nodes, the first of which has the number `first`.
    ///
    /// # Errors
    /// Bytes whose parts do not fit together.
    fn open_forward(&self, bytes: Bytes, first: Number, nodes: usize) -> Result<Box<dyn ForwardStore>, Damage>;

    /// Opens what [`Encoding::encode_backward`] wrote.
    ///
    /// # Errors
    /// See [`Encoding::open_forward`].
    fn open_backward(&self, bytes: Bytes, first: Number, nodes: usize) -> Result<Box<dyn BackwardStore>, Damage>;

    /// As [`Encoding::open_forward`], of a section that may be mapped. An encoding that does not say how reads it
    /// without checks.
    ///
    /// # Errors
    /// See [`Encoding::open_forward`].
    fn open_forward_section(
        &self,
        section: &Section,
        first: Number,
        nodes: usize,
    ) -> Result<Box<dyn ForwardStore>, Damage> {
        self.open_forward(section.bytes().clone(), first, nodes)
    }

    /// As [`Encoding::open_backward`], of a section that may be mapped.
    ///
    /// # Errors
    /// See [`Encoding::open_forward`].
    fn open_backward_section(
        &self,
        section: &Section,
        first: Number,
        nodes: usize,
    ) -> Result<Box<dyn BackwardStore>, Damage> {
        self.open_backward(section.bytes().clone(), first, nodes)
    }
}

/// The encodings that a program can read.
#[derive(Clone, Copy, Debug)]
pub struct Encodings(pub &'static [&'static dyn Encoding]);

impl Encodings {
    /// Those of this crate.
    pub const STRATA: Encodings = Encodings(&[&STRATA, &STRATA_SPEED]);

    /// The encoding of an image with a tag.
    ///
    /// # Errors
    /// A tag that is none of theirs.
    pub fn of(self, path: &Path, tag: Tag) -> Result<&'static dyn Encoding, Error> {
        let found = self.0.iter().copied().find(|encoding| encoding.tag() == tag);
        found.ok_or_else(|| Error::Image { path: path.to_owned(), what: "its encoding of links is unknown" })
    }
}

/// An encoding as strata.
#[derive(Debug)]
pub struct InStrata {
    tag: Tag,
    name: &'static str,
    profile: Profile,
}

/// Strata, small.
pub static STRATA: InStrata = InStrata { tag: Tag(16), name: "strata", profile: Profile::ARCHIVE };
/// Strata, fast.
pub static STRATA_SPEED: InStrata = InStrata { tag: Tag(17), name: "strata-speed", profile: Profile::SPEED };

impl Encoding for InStrata {
    fn tag(&self) -> Tag {
        self.tag
    }

    fn name(&self) -> &'static str {
        self.name
    }

    fn encode_forward<'a>(
        &self,
        shape: CellShape<'a>,
        pages: &dyn Fn() -> Records<'a, Page<Number>>,
    ) -> Result<Vec<u8>, Error> {
        let plain = || -> Records<'a, Page<u64>> { Box::new(pages().map(|page| Ok(page?.renumbered(u64::from)))) };
        strata::encode_pages(shape.first.0, (shape.nodes, shape.count), &plain, self.profile)
    }

    fn encode_backward<'a>(
        &self,
        shape: CellShape<'a>,
        records: &dyn Fn() -> Records<'a, InLinks<Number>>,
    ) -> Result<Vec<u8>, Error> {
        backward::encode(shape.first, (shape.nodes, shape.count), records, self.profile)
    }

    fn open_forward(&self, bytes: Bytes, _: Number, _: usize) -> Result<Box<dyn ForwardStore>, Damage> {
        Ok(Box::new(Strata::open(bytes)?))
    }

    fn open_backward(&self, bytes: Bytes, first: Number, nodes: usize) -> Result<Box<dyn BackwardStore>, Damage> {
        Ok(Box::new(Backward::open(bytes, first, nodes)?))
    }

    fn open_forward_section(&self, section: &Section, _: Number, _: usize) -> Result<Box<dyn ForwardStore>, Damage> {
        Ok(Box::new(Strata::open_section(section, None)?))
    }

    fn open_backward_section(
        &self,
        section: &Section,
        first: Number,
        nodes: usize,
    ) -> Result<Box<dyn BackwardStore>, Damage> {
        Ok(Box::new(Backward::open_section(section, first, nodes)?))
    }
}
