//! `scc`: strongly connected components: URLs that lead to each other along links. A component is named by its least
//! UID.
//!
//! One walk by depth in worker 0, the links of each URL read once. Memory there: 4 bytes a link, 16 a URL, and for each
//! URL on the way 24 and 4 a link of it, which may be all. Source: Tarjan 1972 in the form of Pearce 2005, which has
//! one number a URL: its place on the way while it is on it, the number of its component after that.

use super::adjacency::Adjacency;
use super::shared_nodes::SharedNodes;
use super::wcc::components;
use super::whole::WholeGraph;
use super::{Found, Ground};
use crate::Error;
use webstrata_pipeline::engine::job::Stopped;

pub(super) fn scc(ground: &mut Ground<'_>, graph: Adjacency, nodes: &SharedNodes) -> Result<Found, Stopped> {
    let graph = WholeGraph::gather(ground, graph)?;
    let Some((graph, nodes)) = graph.zip(nodes.all.as_ref()) else { return Ok(Found::of_all()) };
    let urls = u32::try_from(graph.urls()).unwrap_or(u32::MAX);
    let mut read = 0u32;
    let links_of = |uid: u32, links: &mut Vec<u32>| -> Result<(), Error> {
        links.extend_from_slice(graph.of(uid));
        read += 1;
        if read.is_multiple_of(STRIDE) {
            ground.job.go_on()?;
        }
        Ok(())
    };
    let numbers = ground.job.check(strongly_connected(urls, links_of))?;
    drop(graph);
    Ok(components(named_by_least(&numbers), nodes))
}

/// URLs between two looks at whether to stop.
const STRIDE: u32 = 1 << 16;

/// A URL on the way, where its links begin among those of all on the way, which of them comes next, and whether nothing
/// below it leads above it so far.
struct Step {
    uid: u32,
    first: usize,
    next: usize,
    is_root: bool,
}

/// Strongly connected components of any graph with links from and to the numbers below `urls`: a number above 0 for
/// each, the same for those of one component. `links_of` is asked once for each, and adds its links to what is there;
/// whatever holds a graph can be walked, in arrays or compressed.
///
/// # Errors
/// Those of `links_of`.
pub fn strongly_connected<E>(
    urls: u32,
    mut links_of: impl FnMut(u32, &mut Vec<u32>) -> Result<(), E>,
) -> Result<Vec<u32>, E> {
    // Places on the way rise from 1, numbers of components fall from the number of URLs: they never meet, since a URL
    // has one or the other.
    let mut numbers = vec![0u32; urls as usize];
    let (mut next_number, mut component) = (1u32, urls);
    let (mut path, mut links, mut finished) = (Vec::<Step>::new(), Vec::<u32>::new(), Vec::<u32>::new());
    for root in 0..urls {
        if numbers[root as usize] != 0 {
            continue;
        }
        let mut next_uid = Some(root);
        loop {
            if let Some(uid) = next_uid.take() {
                numbers[uid as usize] = next_number;
                next_number += 1;
                let first = links.len();
                links_of(uid, &mut links)?;
                path.push(Step { uid, first, next: first, is_root: true });
            }
            // Links of the last URL on the way are the last ones.
            let Some(step) = path.last_mut() else { break };
            let mut least = numbers[step.uid as usize];
            while let Some(&link) = links.get(step.next) {
                let number = numbers[link as usize];
                if number == 0 {
                    // It is looked at again when what it leads to has its number.
                    next_uid = Some(link);
                    break;
                }
                step.next += 1;
                if number < least {
                    (least, step.is_root) = (number, false);
                }
            }
            numbers[step.uid as usize] = least;
            if next_uid.is_some() {
                continue;
            }
            let Some(Step { uid, first, is_root, .. }) = path.pop() else { break };
            links.truncate(first);
            if !is_root {
                finished.push(uid);
                continue;
            }
            next_number -= 1;
            while let Some(&last) = finished.last().filter(|&&last| numbers[last as usize] >= least) {
                finished.pop();
                numbers[last as usize] = component;
                next_number -= 1;
            }
            numbers[uid as usize] = component;
            component -= 1;
        }
    }
    Ok(numbers)
}

/// The least UID with the same number, for each.
fn named_by_least(numbers: &[u32]) -> Vec<u32> {
    let mut least = vec![u32::MAX; numbers.len() + 1];
    for (uid, &number) in (0u32..).zip(numbers) {
        let first = &mut least[number as usize];
        *first = (*first).min(uid);
    }
    numbers.iter().map(|&number| least[number as usize]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_component_is_what_leads_to_each_other(
            links in proptest::collection::vec((0usize..12, 0usize..12), 0..40)
        ) {
            let mut leads = [[false; 12]; 12];
            (0..12).for_each(|at| leads[at][at] = true);
            links.iter().for_each(|&(from, to)| leads[from][to] = true);
            for by in 0..12 {
                for from in 0..12 {
                    (0..12).for_each(|to| leads[from][to] |= leads[from][by] && leads[by][to]);
                }
            }
            let mut asked = Vec::new();
            let numbers = strongly_connected(12, |uid, all| {
                asked.push(uid);
                let linked = |&(_, to): &(u32, usize)| links.contains(&(uid as usize, to));
                all.extend((0u32..).zip(0..12).filter(linked).map(|(to, _)| to));
                Ok::<(), ()>(())
            });
            let numbers = numbers.unwrap();
            for a in 0..12 {
                prop_assert!(numbers[a] > 0);
                for b in 0..12 {
                    prop_assert_eq!(numbers[a] == numbers[b], leads[a][b] && leads[b][a], "{} and {}", a, b);
                }
            }
            asked.sort_unstable();
            prop_assert_eq!(asked, (0..12).collect::<Vec<u32>>());
        }
    }

    #[test]
    fn an_error_ends_the_walk() {
        let chain = |uid: u32, all: &mut Vec<u32>| {
            if uid < 5 {
                all.push(uid + 1);
                Ok(())
            } else {
                Err(uid)
            }
        };
        assert_eq!(strongly_connected(9, chain), Err(5));
    }
}
