//! The neighbourhood of a page, and the ways to another page.

use schemars::JsonSchema;
use serde::Serialize;

use crate::questions::neighbourhood::Edge;
use crate::questions::neighbourhood::folding::Grain;
use crate::record::uid::Uid;

/// The nodes around a page, and the links between them. Links are columns with places of `nodes`, so that a picture for
/// all dates is one small answer. Links of a node to itself are left out.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Neighbourhood {
    /// The epoch of the answer. UIDs are valid in this epoch only.
    pub epoch: u64,
    /// The URL in the centre.
    pub url: String,
    /// Its UID.
    pub uid: Uid,
    /// The unit: a node is a page, a directory, a host or a domain.
    pub unit: Grain,
    /// How many links away from the centre nodes are, at most.
    pub hops: u8,
    /// The place of the centre.
    pub centre: usize,
    /// The names of the nodes.
    pub nodes: Vec<String>,
    /// The links, sorted by source and target.
    pub links: Edges,
    /// The domains of the nodes.
    pub domains: Vec<String>,
    /// For each node, the place of its domain in `domains`.
    pub domain: Vec<usize>,
    /// Nodes that were never captured, if nodes are pages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_captured: Option<Vec<usize>>,
    /// The URLs of each node, if nodes are not pages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub urls: Option<Vec<usize>>,
    /// Nodes beyond the limit.
    pub left_out: usize,
    /// Pages with too many links, which were not read.
    pub unread: usize,
    /// Pages in the centre and one step away that may have more links: a capture leaves their links unknown, or the one
    /// that decides at the date. Missing if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown_pages: Option<usize>,
}

/// Links in columns; times are seconds since 1970.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[schemars(rename = "NeighbourhoodLinks")]
pub struct Edges {
    /// Places of the nodes that link.
    pub source: Vec<usize>,
    /// Places of the nodes that are linked to.
    pub target: Vec<usize>,
    /// The first captures with the link.
    pub from: Vec<i64>,
    /// The first captures after them without the link; null where the store has none.
    pub until: Vec<Option<i64>>,
    /// Since when it is unknown whether the link is there; null where it is known. Missing if it is known of all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown: Option<Vec<Option<i64>>>,
}

impl Edges {
    /// Links in columns.
    pub fn of(edges: &[Edge]) -> Self {
        let has_unknown = edges.iter().any(|edge| edge.unknown.is_some());
        Self {
            source: edges.iter().map(|edge| edge.source).collect(),
            target: edges.iter().map(|edge| edge.target).collect(),
            from: edges.iter().map(|edge| edge.from).collect(),
            until: edges.iter().map(|edge| edge.until).collect(),
            unknown: has_unknown.then(|| edges.iter().map(|edge| edge.unknown).collect()),
        }
    }
}

/// The shortest ways of links from one page to another.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Ways {
    /// The epoch of the answer. UIDs are valid in this epoch only.
    pub epoch: u64,
    /// The page where ways begin.
    pub url: String,
    /// The page where they end.
    pub target: String,
    /// The number of links of each way; null if no way was found.
    pub links: Option<usize>,
    /// Whether the search ended before all pages were read: there may be a way.
    pub is_cut: bool,
    /// The ways: the pages of each, from the first to the last.
    pub ways: Vec<Vec<String>>,
    /// Pages with unknown links that the search met, up to the limit. Missing if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown: Option<Vec<String>>,
    /// How many these are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown_pages: Option<usize>,
}
