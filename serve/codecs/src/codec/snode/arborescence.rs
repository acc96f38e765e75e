//! A spanning tree of directed edges with the least weight (Chu & Liu 1965, Edmonds 1967). Each node but the root has
//! one edge that leads into it, and the root reaches all nodes.
//!
//! Each node takes its lightest edge. If these edges form circles, each circle becomes one node. An edge into a circle
//! then weighs the difference to the edge that it would replace, and the algorithm repeats. Time: edges times rounds.

/// From, to, weight.
pub(super) type Edge = (usize, usize, u64);

/// For each node, the index in `edges` of the edge that leads into it; `None` for the root and if no edge leads there.
pub(super) fn lightest(nodes: usize, root: usize, edges: &[Edge]) -> Vec<Option<usize>> {
    let mut into: Vec<Option<usize>> = vec![None; nodes];
    for (at, &(from, to, weight)) in edges.iter().enumerate() {
        if to != root && from != to && into[to].is_none_or(|best| weight < edges[best].2) {
            into[to] = Some(at);
        }
    }
    let (group, groups, circular) = circles(&into, edges);
    if circular.iter().all(|&circular| !circular) {
        return into;
    }
    // Repeats with each circle as one node. `origins` maps each new edge to its original.
    let mut inner = Vec::new();
    let mut origins = Vec::new();
    for (at, &(from, to, weight)) in edges.iter().enumerate() {
        if group[from] != group[to] && to != root {
            let replaced = into[to].filter(|_| circular[group[to]]).map_or(0, |best| edges[best].2);
            inner.push((group[from], group[to], weight - replaced));
            origins.push(at);
        }
    }
    let chosen = lightest(groups, group[root], &inner);
    for at in chosen.into_iter().flatten() {
        let origin = origins[at];
        into[edges[origin].1] = Some(origin);
    }
    into
}

/// The group of each node, the number of groups, and which groups are circles of chosen edges. Every other node is a
/// group of its own.
fn circles(into: &[Option<usize>], edges: &[Edge]) -> (Vec<usize>, usize, Vec<bool>) {
    const NONE: usize = usize::MAX;
    let (mut group, mut visit) = (vec![NONE; into.len()], vec![NONE; into.len()]);
    let mut circular = Vec::new();
    for start in 0..into.len() {
        let mut node = start;
        while visit[node] == NONE {
            visit[node] = start;
            match into[node] {
                Some(edge) => node = edges[edge].0,
                None => break,
            }
        }
        // The walk from this start came back to its path: a circle.
        if visit[node] == start && group[node] == NONE && into[node].is_some() {
            while group[node] == NONE {
                group[node] = circular.len();
                node = into[node].map_or(node, |edge| edges[edge].0);
            }
            circular.push(true);
        }
    }
    for group in group.iter_mut().filter(|group| **group == NONE) {
        *group = circular.len();
        circular.push(false);
    }
    (group, circular.len(), circular)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The least weight over all ways to give each node an edge such that the root reaches all.
    fn slow(nodes: usize, edges: &[Edge]) -> Option<u64> {
        fn reached(into: &[usize]) -> bool {
            (1..=into.len()).all(|start| {
                let mut node = start;
                (0..into.len()).for_each(|_| node = if node == 0 { 0 } else { into[node - 1] });
                node == 0
            })
        }
        fn go(node: usize, nodes: usize, edges: &[Edge], into: &mut Vec<usize>, sum: u64, best: &mut Option<u64>) {
            if node == nodes {
                if reached(into) && best.is_none_or(|best| sum < best) {
                    *best = Some(sum);
                }
                return;
            }
            for &(from, to, weight) in edges.iter().filter(|edge| edge.1 == node && edge.0 != node) {
                let _ = to;
                into.push(from);
                go(node + 1, nodes, edges, into, sum + weight, best);
                into.pop();
            }
        }
        let mut best = None;
        go(1, nodes, edges, &mut Vec::new(), 0, &mut best);
        best
    }

    proptest! {
        #[test]
        fn as_light_as_the_lightest_of_all(
            edges in proptest::collection::vec((0usize..6, 0usize..6, 0u64..20), 0..18)
        ) {
            // An edge leads from the root to each node, as if each list could stand alone.
            let edges: Vec<Edge> = edges.into_iter().chain((1..6).map(|to| (0, to, 25))).collect();
            let into = lightest(6, 0, &edges);
            let sum: u64 = into.iter().flatten().map(|&at| edges[at].2).sum();
            prop_assert_eq!(Some(sum), slow(6, &edges));
            for start in 1..6 {
                let (mut node, mut steps) = (start, 0);
                while node != 0 {
                    node = edges[into[node].unwrap()].0;
                    steps += 1;
                    prop_assert!(steps < 7);
                }
            }
        }
    }
}
