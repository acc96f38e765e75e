//! The interface of an encoding of lists without time.
//!
//! A codec reads bytes that may be damaged. It returns [`Damage`] then, and never panics, reads outside, or takes time
//! or memory out of proportion to the bytes.

use crate::error::Damage;
use crate::links::lists::Sizes;
use crate::links::scratch::StoreScratch;

/// Encoded lists, ready to answer.
pub trait LinkCodec: Send + Sync {
    /// The number of nodes.
    fn nodes(&self) -> usize;

    /// Replaces the contents of `links` by the list of a node, rising.
    ///
    /// # Errors
    /// A node outside the cell, and damaged bytes.
    fn list(&self, node: usize, scratch: &mut StoreScratch, links: &mut Vec<u64>) -> Result<(), Damage>;

    /// The length of a node's list. If the encoding does not store the length, the list is decoded.
    ///
    /// # Errors
    /// See [`LinkCodec::list`].
    fn degree(&self, node: usize) -> Result<usize, Damage> {
        let (mut scratch, mut links) = (StoreScratch::default(), Vec::new());
        self.list(node, &mut scratch, &mut links)?;
        Ok(links.len())
    }

    /// Calls `visit` with each node and its list, in order of nodes. Encodings that profit from the order override this
    /// method.
    ///
    /// # Errors
    /// Damaged bytes.
    fn scan(&self, visit: &mut dyn FnMut(usize, &[u64])) -> Result<(), Damage> {
        let (mut scratch, mut links) = (StoreScratch::default(), Vec::new());
        for node in 0..self.nodes() {
            self.list(node, &mut scratch, &mut links)?;
            visit(node, &links);
        }
        Ok(())
    }

    /// The size of the parts in bytes.
    fn sizes(&self) -> Sizes;
}
