//! Links without time: lists of numbers, one a node, and the size of an encoding of them.
//!
//! Nodes are `0..nodes`; node `i` has the number `first + i`. Links are numbers of any URLs. The store around the lists
//! knows which numbers these are, such as [`crate::numbers::Number`]. An encoding needs only their order and their
//! distances.

/// Lists of links, one a node, one after the other: the input of encoders, and the plain form that tests compare with.
///
/// ```
/// use webstrata_cells::links::lists::Lists;
///
/// // Node 0 has the number 1000.
/// let mut lists = Lists { first: 1000, ..Lists::default() };
/// lists.push(&[1000, 1001]);
/// lists.push(&[]);
/// assert_eq!((lists.nodes(), lists.list(0), lists.list(1)), (2, &[1000, 1001][..], &[][..]));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lists {
    /// The number of node 0.
    pub first: u64,
    /// The end of each list in `links`.
    pub ends: Vec<usize>,
    /// The lists, each rising, without repeats.
    pub links: Vec<u64>,
}

impl Lists {
    /// The number of nodes.
    pub fn nodes(&self) -> usize {
        self.ends.len()
    }

    /// The list of a node. Panics if the node does not exist.
    pub fn list(&self, node: usize) -> &[u64] {
        let start = node.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.links[start..self.ends[node]]
    }

    /// Appends the list of the next node.
    pub fn push(&mut self, list: &[u64]) {
        self.links.extend_from_slice(list);
        self.ends.push(self.links.len());
    }
}

/// The sizes of the parts of an encoding in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// The links themselves.
    pub data: u64,
    /// The data that leads from a node to its list.
    pub index: u64,
    /// The header, tables of codes and similar data.
    pub tables: u64,
}
