//! Links without time: lists of numbers, one a node, and the bytes that an encoding of them takes.
//!
//! Nodes are `0..nodes`; node `i` has the number `first + i`. Links are numbers of any URLs. Which numbering they are
//! of is known to the store around the lists, as [`crate::numbers::Number`] or the like; an encoding needs the order
//! and the distances alone.

/// Lists of links, one a node, one after the other: what encoders read, and the slow form that others are compared
/// with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lists {
    /// The number of node 0.
    pub first: u64,
    /// Where each list ends in `links`.
    pub ends: Vec<usize>,
    /// The lists, each rising, without repeats.
    pub links: Vec<u64>,
}

impl Lists {
    /// Number of nodes.
    pub fn nodes(&self) -> usize {
        self.ends.len()
    }

    /// The list of a node. Panics when there is no such node.
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

/// Bytes of an encoding, by use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Links themselves.
    pub data: u64,
    /// What leads from a node to its list.
    pub index: u64,
    /// Header, tables of codes and the like.
    pub tables: u64,
}
