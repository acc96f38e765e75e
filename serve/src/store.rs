//! The two link stores of a cell, forward and backward, whatever they are encoded in (Najork 2009 has one of each a server).
//!
//! [`ForwardStore`] gives links of pages over time, [`BackwardStore`] what links to URLs; nodes are places in the cell. Strata
//! code all of a page together; every other encoding holds the union of links with times and presence in plain arrays
//! beside it ([`Union`]). All give the same answers. A tag in the head of the image says which it is.

use bytes::Bytes;
use webstrata_layers::{CaptureTime, InLinks, Lifespan, Page, Window};

use crate::backward::{self, Backward, Found, Wanted};
use crate::codec::strata::{self, Profile, Strata};
use crate::codec::{CodecTag, Sizes};
use crate::error::{Damage, EncodeError};
use crate::union::{self, Union};

/// Links of pages, ready to answer. A node outside the cell and damaged bytes are errors of all calls.
pub trait ForwardStore: Send + Sync {
    /// Whether a node has a record.
    ///
    /// # Errors
    /// See [`ForwardStore`]; so in all calls.
    fn has(&self, node: usize) -> Result<bool, Damage>;

    /// Replaces the contents of `links` by the links of a node in the window.
    ///
    /// # Errors
    /// See [`ForwardStore`].
    fn window(&self, node: usize, window: Window, links: &mut Vec<u64>) -> Result<(), Damage>;

    /// Replaces the contents of `captures` by those of a node, in order of time; none without a record.
    ///
    /// # Errors
    /// See [`ForwardStore`].
    fn captures(&self, node: usize, captures: &mut Vec<CaptureTime>) -> Result<(), Damage>;

    /// Whether a node was captured in the closed interval.
    ///
    /// # Errors
    /// See [`ForwardStore`].
    fn captured(&self, node: usize, from: i64, to: i64) -> Result<bool, Damage>;

    /// Replaces the contents of `spans` by when each link of a node was there: `webstrata_layers::Links::lifespans`.
    ///
    /// # Errors
    /// See [`ForwardStore::page`].
    fn lifespans(&self, node: usize, spans: &mut Vec<Lifespan>) -> Result<(), Damage>;

    /// All of a node's record; `None` where it has none.
    ///
    /// # Errors
    /// See [`ForwardStore`], and a record that is not sound.
    fn page(&self, node: usize) -> Result<Option<Page>, Damage>;

    /// Where the bytes are.
    fn sizes(&self) -> Sizes;
}

/// What links to URLs, ready to answer. A node outside the cell and damaged bytes are errors of all calls.
pub trait BackwardStore: Send + Sync {
    /// Calls `visit` with each source of a node, rising, that links in the ranges `wanted` of the node's list of ranges
    /// (`None`: it asks for none), and in which of them. Neither may ask a store of this thread.
    ///
    /// # Errors
    /// See [`BackwardStore`]; so in all calls.
    fn sources(
        &self,
        node: usize,
        wanted: &dyn Fn(&[i64]) -> Option<Wanted>,
        visit: &mut dyn FnMut(u64, Found),
    ) -> Result<(), Damage>;

    /// The record of a node as the layers have it; `None` where nothing links to it.
    ///
    /// # Errors
    /// See [`BackwardStore`], and a record that is not sound.
    fn record(&self, node: usize) -> Result<Option<InLinks>, Damage>;

    /// Where the bytes are.
    fn sizes(&self) -> Sizes;
}

/// Records in order of UIDs, as encoders of stores read them.
pub type Records<'a, T, E> = Box<dyn Iterator<Item = Result<T, E>> + 'a>;

/// What encoders of link stores are given, besides records.
#[derive(Clone, Copy, Debug)]
pub struct Given<'a> {
    /// How links are coded.
    pub tag: CodecTag,
    /// UID of node 0.
    pub first: u64,
    /// Number of nodes.
    pub nodes: usize,
    /// Number of records.
    pub count: usize,
    /// The URL keys of all nodes, in order, where the encoding goes by them: [`CodecTag::reads_keys`].
    pub keys: Option<&'a [Vec<u8>]>,
}

/// The profile of strata that a tag stands for.
fn profile(tag: CodecTag) -> Option<Profile> {
    match tag {
        CodecTag::Strata => Some(Profile::ARCHIVE),
        CodecTag::StrataSpeed => Some(Profile::SPEED),
        _ => None,
    }
}

/// Encodes the pages of a cell. `pages` is called more than once, but for encodings other than strata, which have all links
/// in memory.
///
/// # Errors
/// Those of `pages`, and links that the encoding cannot hold.
pub fn encode_forward<'a, E: From<EncodeError> + 'a>(
    given: Given<'a>,
    pages: &dyn Fn() -> Records<'a, Page, E>,
) -> Result<Vec<u8>, E> {
    match profile(given.tag) {
        Some(profile) => strata::encode_pages(given.first, (given.nodes, given.count), pages, profile),
        None => union::encode(given, pages()),
    }
}

/// As [`encode_forward`], for in-links.
///
/// # Errors
/// See [`encode_forward`].
pub fn encode_backward<'a, E: From<EncodeError> + 'a>(
    given: Given<'a>,
    records: &dyn Fn() -> Records<'a, InLinks, E>,
) -> Result<Vec<u8>, E> {
    let page = |InLinks { uid, ranges, sources, changes }| Page {
        uid,
        timestamps: ranges,
        unknown: Vec::new(),
        links: sources,
        changes,
    };
    match profile(given.tag) {
        Some(profile) => backward::encode(given.first, (given.nodes, given.count), records, profile),
        None => union::encode(given, records().map(|record| record.map(page))),
    }
}

/// Opens what [`encode_forward`] wrote.
///
/// # Errors
/// Bytes whose parts do not fit together.
pub fn open_forward(tag: CodecTag, bytes: Bytes, first: u64, nodes: usize) -> Result<Box<dyn ForwardStore>, Damage> {
    Ok(match profile(tag) {
        Some(_) => Box::new(Strata::open(bytes)?),
        None => Box::new(Union::open(tag, bytes, first, nodes)?),
    })
}

/// Opens what [`encode_backward`] wrote.
///
/// # Errors
/// Bytes whose parts do not fit together.
pub fn open_backward(tag: CodecTag, bytes: Bytes, first: u64, nodes: usize) -> Result<Box<dyn BackwardStore>, Damage> {
    Ok(match profile(tag) {
        Some(_) => Box::new(Backward::open(bytes, first, nodes)?),
        None => Box::new(Union::open(tag, bytes, first, nodes)?),
    })
}
