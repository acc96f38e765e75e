//! `pagerank`: the stationary distribution of a random surfer. The surfer follows a link with probability `damping`,
//! and otherwise jumps to any node of the date. From a URL without links, the surfer always jumps.
//!
//! Each iteration makes one pass over the links. Several workers add the same numbers in a different order than one
//! worker, so ranks differ by rounding (about 1e-16). Memory: 24 bytes per URL besides the slice. Source: Brin & Page
//! 1998; URLs without links are treated as in NetworkX.

use super::exchange::sums;
use super::shared_nodes::SharedNodes;
use super::slice::Slice;
use super::{AnalysisContext, Fact, Found, Iterations};
use webstrata_engine::Stopped;

/// The default of the damping factor.
pub const DAMPING: f64 = 0.85;

impl Default for Iterations {
    fn default() -> Self {
        Self { most: 1000, tolerance: 1e-10 }
    }
}

/// Returns the ranks of this worker's URLs. The iteration begins with the ranks in `start`, if given. A URL that is not
/// a node has rank 0.
pub(super) fn pagerank(
    context: &mut AnalysisContext<'_>,
    slice: &Slice,
    nodes: &SharedNodes,
    damping: f64,
    iterations: Iterations,
    start: Option<Vec<f64>>,
) -> Result<Found, Stopped> {
    let (count, first) = (nodes.count.max(1) as f64, slice.graph.uids.start);
    let is_node: Vec<bool> = (0..slice.graph.urls()).map(|index| nodes.holds(first, index)).collect();
    let mut ranks = start.unwrap_or_else(|| vec![1.0; slice.graph.urls()]);
    ranks.iter_mut().zip(&is_node).filter(|(_, is_node)| !**is_node).for_each(|(rank, _)| *rank = 0.0);
    let [sum] = sums(context, [ranks.iter().sum()])?;
    // It is possible that no node of the earlier date is left.
    let scale = if sum > 0.0 { 1.0 / sum } else { 0.0 };
    ranks.iter_mut().for_each(|rank| *rank *= scale);
    let [mut stranded] = sums(context, [without_links(slice, &ranks)])?;
    let (mut done, mut delta) = (0, f64::INFINITY);
    while done < iterations.most && delta > iterations.tolerance {
        let rank = |at: usize, page: u32| ranks[page as usize] / slice.graph.links_of(at).len() as f64;
        let mut next = slice.push(context, 0.0, rank, |a, b| a + b)?;
        let surfer = Surfer { damping, stranded, nodes: count };
        for (rank, &is_node) in next.iter_mut().zip(&is_node) {
            *rank = if is_node { surfer.rank(*rank) } else { 0.0 };
        }
        let moved: f64 = next.iter().zip(&ranks).map(|(new, old)| (new - old).abs()).sum();
        ranks = next;
        [delta, stranded] = sums(context, [moved, without_links(slice, &ranks)])?;
        done += 1;
    }
    let facts = vec![Fact::new("iterations", done as f64), Fact::new("last change", delta)];
    Ok(Found::of_worker().with("pagerank", ranks).and(facts))
}

/// A step of the surfer.
pub(crate) struct Surfer {
    pub(crate) damping: f64,
    /// The sum of the ranks of nodes without links.
    pub(crate) stranded: f64,
    /// The number of nodes.
    pub(crate) nodes: f64,
}

impl Surfer {
    /// Returns the next rank of a node to which links carry this much of the ranks of their pages.
    pub(crate) fn rank(&self, carried: f64) -> f64 {
        self.damping * carried + (1.0 - self.damping + self.damping * self.stranded) / self.nodes
    }
}

/// Returns the sum of the ranks of URLs without links.
fn without_links(slice: &Slice, ranks: &[f64]) -> f64 {
    let (mut from, mut sum) = (0, 0.0);
    for &page in &slice.graph.pages {
        sum += ranks[from..page as usize].iter().sum::<f64>();
        from = page as usize + 1;
    }
    sum + ranks[from..].iter().sum::<f64>()
}
