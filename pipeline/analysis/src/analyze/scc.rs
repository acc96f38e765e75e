//! `scc`: strongly connected components, which are URLs that lead to each other along links. The least UID of a
//! component is its name.
//!
//! Worker 0 makes one depth-first walk and reads the links of each URL once. Memory there: 4 bytes per link and 16 per
//! URL. Each URL on the path takes 24 bytes more, and 4 for each of its links; the path may have all URLs. Source:
//! Tarjan 1972 in the form of Pearce 2005, which has one number for each URL: its place on the path while it is there,
//! and the number of its component afterwards.

use super::adjacency::Adjacency;
use super::shared_nodes::SharedNodes;
use super::wcc::components;
use super::whole::WholeGraph;
use super::{AnalysisContext, Found};
use crate::Error;
use webstrata_engine::Stopped;

pub(super) fn scc(context: &mut AnalysisContext<'_>, graph: Adjacency, nodes: &SharedNodes) -> Result<Found, Stopped> {
    let graph = WholeGraph::gather(context, graph)?;
    let Some((graph, nodes)) = graph.zip(nodes.all.as_ref()) else { return Ok(Found::of_all()) };
    let urls = u32::try_from(graph.urls()).unwrap_or(u32::MAX);
    let mut read = 0u32;
    let links_of = |uid: u32, links: &mut Vec<u32>| -> Result<(), Error> {
        links.extend_from_slice(graph.of(uid));
        read += 1;
        if read.is_multiple_of(STRIDE) {
            context.job.go_on()?;
        }
        Ok(())
    };
    let numbers = context.job.check(strongly_connected(urls, links_of))?;
    drop(graph);
    Ok(components(named_by_least(&numbers), nodes))
}

/// The number of URLs between two checks for a request to stop.
const STRIDE: u32 = 1 << 16;

/// A URL on the path. `first` is the index of its first link among the links of all URLs on the path, and `next` the
/// index of its next link. `is_root` says that no URL below it has led above it so far.
struct Step {
    uid: u32,
    first: usize,
    next: usize,
    is_root: bool,
}

/// Finds the strongly connected components of any graph with links from and to the numbers below `urls`. Returns a
/// number above 0 for each, which is the same for all members of a component. `links_of` is called once for each
/// number, and appends its links. The graph may be in any form, such as arrays or compressed lists.
///
/// # Errors
/// The errors of `links_of`.
///
/// ```
/// // 0 -> 1 -> 2 -> 0, and 2 -> 3.
/// let links: [&[u32]; 4] = [&[1], &[2], &[0, 3], &[]];
/// let components = webstrata_analysis::strongly_connected(4, |number, out| {
///     out.extend_from_slice(links[number as usize]);
///     Ok::<(), std::convert::Infallible>(())
/// })?;
/// assert!(components[0] == components[1] && components[1] == components[2]);
/// assert_ne!(components[2], components[3]);
/// # Ok::<(), std::convert::Infallible>(())
/// ```
pub fn strongly_connected<E>(
    urls: u32,
    mut links_of: impl FnMut(u32, &mut Vec<u32>) -> Result<(), E>,
) -> Result<Vec<u32>, E> {
    // Places on the path rise from 1, and numbers of components fall from the number of URLs. They never meet, because
    // each URL has only one of the two.
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
            // The links of the last URL on the path are at the end of `links`.
            let Some(step) = path.last_mut() else { break };
            let mut least = numbers[step.uid as usize];
            while let Some(&link) = links.get(step.next) {
                let number = numbers[link as usize];
                if number == 0 {
                    // The link is examined again when its target has a number.
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

/// Returns, for each URL, the least UID with the same number.
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
