//! What a reader keeps of a store's files: decoded row groups, and files that were fetched, each by its name.

use std::sync::Arc;

use crate::file::evidence::EvidenceBlock;
use crate::file::schema::Layer;
use crate::location::body::Body;
use crate::read::blocks::{Block, TimesBlock, UrlBlock};

/// What a cache knows a block by.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct BlockId {
    pub(crate) kind: Kind,
    pub(crate) partition: usize,
    pub(crate) group: usize,
}

/// What a block is of.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Urls,
    Out,
    In,
    Evidence,
    Times,
    /// A file that was fetched; it has no groups here.
    File(Layer),
}

impl Kind {
    /// The layers of links, times and changes.
    pub(crate) fn layers(self) -> [Layer; 3] {
        if self == Kind::In { [Layer::Il, Layer::Tr, Layer::Ibv] } else { [Layer::Ol, Layer::Ts, Layer::Bv] }
    }
}

/// A block in a cache.
#[derive(Clone)]
pub(crate) enum Cached {
    Urls(Arc<UrlBlock>),
    Records(Arc<Block>),
    Evidence(Arc<EvidenceBlock>),
    Times(Arc<TimesBlock>),
    File(Body),
}
