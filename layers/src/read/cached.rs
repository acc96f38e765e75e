//! The contents of a reader's cache: decoded row groups, and fetched files, each with its identifier.

use std::sync::Arc;

use crate::file::evidence::EvidenceBlock;
use crate::file::schema::Layer;
use crate::location::body::Body;
use crate::read::blocks::{Block, TimesBlock, UrlBlock};

/// The identifier of a block in a cache.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct BlockId {
    pub(crate) kind: Kind,
    pub(crate) partition: usize,
    pub(crate) group: usize,
}

/// The kind of a block.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Urls,
    Out,
    In,
    Evidence,
    Times,
    /// A fetched file, without groups.
    File(Layer),
}

impl Kind {
    /// The layers of the links, times and changes of this kind.
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
