//! `wcc`: weakly connected components, where links count in both directions. The least UID of a component is its name.
//!
//! All workers together make one pass over the links. Memory: see [`super::union_find`], and 12 bytes per URL in the
//! process of worker 0.

use super::adjacency::Adjacency;
use super::shared_nodes::SharedNodes;
use super::{AnalysisContext, Fact, Found, sizes};
use crate::nodes::Nodes;
use webstrata_engine::Stopped;
use webstrata_layers::Uid;

pub(super) fn wcc(context: &mut AnalysisContext<'_>, graph: &Adjacency, nodes: &SharedNodes) -> Result<Found, Stopped> {
    let sets = context.union_find();
    for at in 0..graph.pages.len() {
        graph.links_of(at).iter().for_each(|&link| sets.join(graph.uid(at), link));
    }
    sets.unite(context)?;
    Ok(nodes.all.as_ref().map_or_else(Found::of_all, |nodes| components(sets.labels(), nodes)))
}

/// Returns the result for components that are named by their least UID. A URL that is not a node is a component by
/// itself and is not counted.
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
