//! `hits`: hubs and authorities. A good hub links to good authorities, and good hubs link to a good authority. The
//! values are the dominant singular vectors of the links, each with the sum 1. If several vectors are dominant, the
//! result is the one that iteration from equal hubs converges to.
//!
//! Each iteration makes two passes over the links. Memory: 24 bytes per URL besides the slice. Source: Kleinberg 1999.

use super::exchange::sums;
use super::slice::Slice;
use super::{AnalysisContext, Fact, Found, Iterations};
use webstrata_engine::Stopped;

/// Returns the hub and authority values of this worker's URLs.
pub(super) fn hits(context: &mut AnalysisContext<'_>, slice: &Slice, iterations: Iterations) -> Result<Found, Stopped> {
    let mut hubs = vec![1.0; slice.graph.urls()];
    let mut authorities = authorities_of(context, slice, &hubs)?;
    let (mut done, mut delta) = (0, f64::INFINITY);
    while done < iterations.most && delta > iterations.tolerance {
        let seen = slice.pull(context, &authorities)?;
        let mut next = vec![0.0; slice.graph.urls()];
        for (at, &page) in slice.graph.pages.iter().enumerate() {
            next[page as usize] = slice.graph.links_of(at).iter().map(|&link| seen[link.index()]).sum();
        }
        scale(context, &mut next)?;
        let moved: f64 = next.iter().zip(&hubs).map(|(new, old)| (new - old).abs()).sum();
        hubs = next;
        [delta] = sums(context, [moved])?;
        authorities = authorities_of(context, slice, &hubs)?;
        done += 1;
    }
    let facts = vec![Fact::new("iterations", done as f64), Fact::new("last change", delta)];
    Ok(Found::of_worker().with("authority", authorities).with("hub", hubs).and(facts))
}

fn authorities_of(context: &mut AnalysisContext<'_>, slice: &Slice, hubs: &[f64]) -> Result<Vec<f64>, Stopped> {
    let mut authorities = slice.push(context, 0.0, |_, page| hubs[page as usize], |a, b| a + b)?;
    scale(context, &mut authorities)?;
    Ok(authorities)
}

/// Scales the values of all workers so that their sum is 1, unless all values are 0.
fn scale(context: &mut AnalysisContext<'_>, values: &mut [f64]) -> Result<(), Stopped> {
    let [sum] = sums(context, [values.iter().sum()])?;
    if sum > 0.0 {
        values.iter_mut().for_each(|value| *value /= sum);
    }
    Ok(())
}
