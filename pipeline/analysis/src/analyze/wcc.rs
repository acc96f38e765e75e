//! `wcc`: weakly connected components, links taken both ways. A component is named by its least UID.
//!
//! One pass over the links by all workers at once. Memory: see [`super::union_find`], and 12 bytes a URL where results
//! are.

use super::adjacency::Adjacency;
use super::shared_nodes::SharedNodes;
use super::{Fact, Found, Ground, sizes};
use crate::nodes::Nodes;
use webstrata_layers::Uid;
use webstrata_pipeline::engine::job::Stopped;

pub(super) fn wcc(ground: &mut Ground<'_>, graph: &Adjacency, nodes: &SharedNodes) -> Result<Found, Stopped> {
    let sets = ground.union_find();
    for at in 0..graph.pages.len() {
        graph.links_of(at).iter().for_each(|&link| sets.join(graph.uid(at), link));
    }
    sets.unite(ground)?;
    Ok(nodes.all.as_ref().map_or_else(Found::of_all, |nodes| components(sets.labels(), nodes)))
}

/// What is known of components that are named by the least of their UIDs. What is no node is a component by itself, and
/// does not count.
pub(super) fn components(labels: Vec<u32>, nodes: &Nodes) -> Found {
    let sizes = sizes(&labels);
    let of_nodes =
        || (0..).zip(&sizes).filter(|(uid, size)| **size > 0 && nodes.holds(Uid(*uid))).map(|(_, size)| *size);
    let count = of_nodes().count();
    let largest = of_nodes().max().unwrap_or(0);
    let single = of_nodes().filter(|size| *size == 1).count();
    let facts = vec![
        Fact::new("components", count as f64),
        Fact::new("URLs in the largest", largest as f64),
        Fact::new("of one URL", single as f64),
    ];
    let size = labels.iter().map(|&label| sizes[label as usize]).collect::<Vec<u64>>();
    let component = labels.into_iter().map(u64::from).collect::<Vec<u64>>();
    Found::of_all().with("component", component).with("size", size).and(facts)
}
