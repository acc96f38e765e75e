//! `salsa`: authorities and hubs as the stationary distributions of a walk that follows a link forward and another link
//! back.
//!
//! Consider the bipartite graph of pages that link and URLs that are linked to. The walk never leaves a component of
//! this graph. Inside a component, the share of an authority is its share of in-links, and the share of a hub is its
//! share of out-links. The share of a component is its share of all authorities (or hubs). So no iteration is needed:
//! one pass over the links, joins of the URLs that one page links to, and sums by component. Memory: 4 bytes per URL in
//! each process, and 36 in the process of worker 0.
//!
//! Source: Lempel & Moran 2001, proposition 6; Najork 2009 measures SALSA on stores like this one.

use super::degrees::in_degrees;
use super::slice::Slice;
use super::{AnalysisContext, Fact, Found};
use webstrata_engine::Stopped;

pub(super) fn salsa(context: &mut AnalysisContext<'_>, slice: &Slice) -> Result<Found, Stopped> {
    let sets = context.union_find();
    let mut first = vec![u32::MAX; slice.graph.urls()];
    for (at, &page) in slice.graph.pages.iter().enumerate() {
        let mut links = slice.graph.links_of(at).iter().map(|&link| slice.mirrors.uids[link.index()]);
        let Some(least) = links.next() else { continue };
        first[page as usize] = least;
        links.for_each(|link| sets.join(least, link));
    }
    let into = in_degrees(context, slice)?;
    sets.unite(context)?;
    let into = context.gather(&into)?;
    let out = context.gather(&slice.graph.out_degrees())?;
    let first = context.gather(&first)?;
    let (Some(into), Some(out), Some(first)) = (into, out, first) else { return Ok(Found::of_all()) };
    let labels = sets.labels();
    // By component: the number of links, of authorities and of hubs.
    let mut sums = vec![[0u64; 3]; labels.len()];
    let (mut authorities, mut hubs) = (0u64, 0u64);
    for (&label, &degree) in labels.iter().zip(&into).filter(|(_, degree)| **degree > 0) {
        sums[label as usize][0] += degree;
        sums[label as usize][1] += 1;
        authorities += 1;
    }
    for &link in first.iter().filter(|&&link| link < u32::MAX) {
        sums[labels[link as usize] as usize][2] += 1;
        hubs += 1;
    }
    let share = |degree: u64, component: u32, of: usize, all: u64| {
        let sums = sums[component as usize];
        degree as f64 / sums[0] as f64 * sums[of] as f64 / all as f64
    };
    let authority =
        |(&label, &degree): (&u32, &u64)| if degree == 0 { 0.0 } else { share(degree, label, 1, authorities) };
    let authority: Vec<f64> = labels.iter().zip(&into).map(authority).collect();
    let hub = |(&link, &degree): (&u32, &u64)| match labels.get(link as usize) {
        Some(&label) => share(degree, label, 2, hubs),
        None => 0.0,
    };
    let hub: Vec<f64> = first.iter().zip(&out).map(hub).collect();
    let components = sums.iter().filter(|sums| sums[0] > 0).count();
    let facts = vec![
        Fact::new("authorities", authorities as f64),
        Fact::new("hubs", hubs as f64),
        Fact::new("components", components as f64),
    ];
    Ok(Found::of_all().with("authority", authority).with("hub", hub).and(facts))
}
