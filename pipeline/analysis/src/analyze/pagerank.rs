//! `pagerank`: the stationary distribution of a surfer who follows a link with probability `damping`, and else goes
//! anywhere; from a URL without links, too. Every URL of the store takes part, also those that are not linked at the
//! date.
//!
//! By iteration: one pass over the links each. Two workers add the same numbers in another order than one, so that
//! ranks differ by rounding (some 1e-16). Memory: 24 bytes a URL besides the slice. Source: Brin & Page 1998; dangling
//! URLs as networkx.

use super::exchange::sums;
use super::slice::Slice;
use super::{Fact, Found, Ground, Iterations};
use webstrata_layers::Links;
use webstrata_pipeline::engine::job::Stopped;

/// Ranks of this worker's URLs, which begin with `start` where it is given.
pub(super) fn pagerank(
    ground: &mut Ground<'_>,
    slice: &Slice,
    damping: f64,
    iterations: Iterations,
    start: Option<Vec<f64>>,
) -> Result<Found, Stopped> {
    let urls = ground.store.urls() as f64;
    let mut ranks = start.unwrap_or_else(|| vec![1.0 / urls; slice.graph.urls()]);
    let [mut stranded] = sums(ground, [without_links(slice, &ranks)])?;
    let (mut done, mut delta) = (0, f64::INFINITY);
    while done < iterations.most && delta > iterations.tolerance {
        let rank = |at: usize, page: u32| ranks[page as usize] / slice.graph.links_of(at).len() as f64;
        let mut next = slice.push(ground, 0.0, rank, |a, b| a + b)?;
        let everywhere = (1.0 - damping + damping * stranded) / urls;
        next.iter_mut().for_each(|rank| *rank = damping * *rank + everywhere);
        let moved: f64 = next.iter().zip(&ranks).map(|(new, old)| (new - old).abs()).sum();
        ranks = next;
        [delta, stranded] = sums(ground, [moved, without_links(slice, &ranks)])?;
        done += 1;
    }
    let facts = vec![Fact::new("iterations", done as f64), Fact::new("last change", delta)];
    Ok(Found::of_worker().with("pagerank", ranks).and(facts))
}

/// The rank that lies on URLs without links.
fn without_links(slice: &Slice, ranks: &[f64]) -> f64 {
    let (mut from, mut sum) = (0, 0.0);
    for &page in &slice.graph.pages {
        sum += ranks[from..page as usize].iter().sum::<f64>();
        from = page as usize + 1;
    }
    sum + ranks[from..].iter().sum::<f64>()
}
