//! `wcc`: weakly connected components, links taken both ways. A component is named by its least UID.
//!
//! One pass over the links by all workers at once. Memory: see [`super::union_find`], and 12 bytes a URL where results
//! are.

use super::adjacency::Adjacency;
use super::{Fact, Found, Ground, sizes};
use webstrata_pipeline::engine::job::Stopped;

pub(super) fn wcc(ground: &mut Ground<'_>, graph: &Adjacency) -> Result<Found, Stopped> {
    let sets = ground.union_find();
    for at in 0..graph.pages.len() {
        graph.links_of(at).iter().for_each(|&link| sets.join(graph.uid(at), link));
    }
    sets.unite(ground)?;
    if ground.worker.index() > 0 {
        return Ok(Found::of_all());
    }
    Ok(components(sets.labels()))
}

/// What is known of components that are named by the least of their UIDs.
pub(super) fn components(labels: Vec<u32>) -> Found {
    let sizes = sizes(&labels);
    let count = sizes.iter().filter(|&&size| size > 0).count();
    let largest = sizes.iter().max().copied().unwrap_or(0);
    let single = sizes.iter().filter(|&&size| size == 1).count();
    let facts = vec![
        Fact::new("components", count as f64),
        Fact::new("URLs in the largest", largest as f64),
        Fact::new("of one URL", single as f64),
    ];
    let size = labels.iter().map(|&label| sizes[label as usize]).collect::<Vec<u64>>();
    let component = labels.into_iter().map(u64::from).collect::<Vec<u64>>();
    Found::of_all().with("component", component).with("size", size).and(facts)
}
