//! Divides pages into supernodes (Raghavan & Garcia-Molina, *Representing Web Graphs*, section 3.2).
//!
//! *URL split*: at first the pages of a domain (its top two labels) are together, then the pages that share the host,
//! then the pages that share one, two and three directories. Pages are in the order of their keys, so all of these are
//! intervals of pages. Without keys, intervals of equal length replace them.
//!
//! *Clustered split*: k-means over bit vectors splits an interval further. Each page has a vector with a bit for each
//! supernode that the interval links to. k begins with the number of these supernodes and grows by 2 while the clusters
//! do not settle; after a few attempts the split is given up. Intervals are tried in random order, until as many
//! consecutive splits as 6 % of all intervals have failed.
//!
//! Two rules are not in the paper. Neighbouring intervals with at most `pages_min` pages together are joined, because
//! link targets that were never captured are nodes here too, and most of their domains have one or two of them. After a
//! split, supernodes have at least `pages_min` pages on average, and no supernode has more than `pages_max` pages,
//! because a look-up costs as many steps as its graphs have pages and superedges.

use std::collections::{BTreeMap, BTreeSet};

use super::Options;

/// The number of directories of a URL that URL split considers.
const LEVELS: usize = 3;
/// The rounds in which clusters must settle, and the attempts with more clusters.
const ROUNDS_MAX: usize = 12;
const ATTEMPTS_MAX: usize = 3;
/// The largest number of clusters of a split: with more, clusters would be smaller than supernodes may be.
const CLUSTERS_MAX: usize = 16;

/// An interval of pages and the supernodes that it is divided into.
#[derive(Clone, Debug)]
pub(super) struct PageInterval {
    pub(super) start: usize,
    pub(super) end: usize,
    /// The members of each supernode, rising. An interval that is not divided has one supernode with all its pages.
    pub(super) clusters: Vec<Vec<usize>>,
}

/// The prefix of a key at a depth of URL split: the domain at depth 0, the host at 1, then directories.
fn prefix(key: &[u8], depth: usize) -> &[u8] {
    let host = key.iter().position(|&byte| byte == b')').unwrap_or(key.len());
    let nth = |bytes: &[u8], mark: u8, count: usize| {
        bytes.iter().enumerate().filter(|(_, byte)| **byte == mark).nth(count).map(|(at, _)| at + 1)
    };
    match depth {
        0 => &key[..nth(&key[..host], b',', 1).unwrap_or(host)],
        1 => &key[..host],
        _ => &key[..nth(&key[host..], b'/', depth - 1).map_or(key.len(), |length| host + length)],
    }
}

/// The domain of a key.
pub(super) fn domain(key: &[u8]) -> &[u8] {
    prefix(key, 0)
}

/// The start and the end of an interval.
type Bounds = (usize, usize);

/// Divides pages into intervals, by keys if they are given.
fn url_split((start, end): Bounds, keys: Option<&[Vec<u8>]>, depth: usize, options: &Options, out: &mut Vec<Bounds>) {
    if let Some(keys) = keys.filter(|_| depth <= LEVELS + 1 && (depth == 0 || end - start > options.pages_max)) {
        let mut from = start;
        for at in start + 1..=end {
            if at == end || prefix(&keys[at], depth) != prefix(&keys[from], depth) {
                url_split((from, at), Some(keys), depth + 1, options, out);
                from = at;
            }
        }
        return;
    }
    let mut from = start;
    while from < end {
        let to = end.min(from + options.pages_max);
        out.push((from, to));
        from = to;
    }
}

/// Divides `pages` pages. The first `inner` of them are nodes, with `keys` if given, and `links` returns the links of a
/// page.
pub(super) fn refine<'a>(
    pages: usize,
    inner: usize,
    keys: Option<&[Vec<u8>]>,
    links: &impl Fn(usize) -> &'a [u32],
    options: &Options,
) -> Vec<PageInterval> {
    let mut bounds = Vec::new();
    url_split((0, inner), keys, 0, options, &mut bounds);
    bounds.dedup_by(|next, last| {
        let few = next.1 - last.0 <= options.pages_min;
        if few {
            last.1 = next.1;
        }
        few
    });
    // Targets outside the cell have no links.
    url_split((inner, pages), None, 0, options, &mut bounds);
    let one_cluster = |(start, end)| PageInterval { start, end, clusters: vec![(start..end).collect()] };
    let mut intervals: Vec<PageInterval> = bounds.into_iter().map(one_cluster).collect();
    let mut supernode = vec![0usize; pages];
    let mut supernodes = 0;
    for interval in &intervals {
        supernode[interval.start..interval.end].fill(supernodes);
        supernodes += 1;
    }
    let mut state = 0u64;
    let mut random = |bound: usize| {
        // SplitMix64: Steele, Lea & Flood 2014.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ mixed >> 31) % bound.max(1) as u64).unwrap_or(0)
    };
    let mut order: Vec<(usize, usize)> = (0..intervals.len()).map(|interval| (interval, 0)).collect();
    (1..order.len()).rev().for_each(|at| order.swap(at, random(at + 1)));
    let mut given_up = 0;
    // The clusters of a split go to the end of the order, so each is tried once.
    let mut next = 0;
    while next < order.len() && options.clustered && given_up * 100 <= order.len() * 6 + 100 {
        let (interval, index) = order[next];
        next += 1;
        let members = std::mem::take(&mut intervals[interval].clusters[index]);
        if members.len() < 2 * options.pages_min {
            intervals[interval].clusters[index] = members;
            continue;
        }
        match clustered_split(&members, &supernode, links, options.pages_min) {
            None => {
                given_up += 1;
                intervals[interval].clusters[index] = members;
            }
            Some(clusters) => {
                given_up = 0;
                for (at, cluster) in clusters.into_iter().enumerate() {
                    if at == 0 {
                        intervals[interval].clusters[index] = cluster;
                        order.push((interval, index));
                    } else {
                        cluster.iter().for_each(|&page| supernode[page] = supernodes);
                        supernodes += 1;
                        order.push((interval, intervals[interval].clusters.len()));
                        intervals[interval].clusters.push(cluster);
                    }
                }
            }
        }
    }
    intervals
}

/// Clusters of pages by the supernodes that they link to; `None` if no clusters are found.
fn clustered_split<'a>(
    members: &[usize],
    supernode: &[usize],
    links: &impl Fn(usize) -> &'a [u32],
    pages_min: usize,
) -> Option<Vec<Vec<usize>>> {
    let members_supernode = supernode[members[0]];
    let mut targets = BTreeMap::new();
    let vectors: Vec<Vec<usize>> = members
        .iter()
        .map(|&page| {
            let to: BTreeSet<usize> = links(page).iter().map(|&link| supernode[link as usize]).collect();
            let number = |target: usize| {
                let next = targets.len();
                *targets.entry(target).or_insert(next)
            };
            to.into_iter().filter(|&target| target != members_supernode).map(number).collect()
        })
        .collect();
    let clusters_max = CLUSTERS_MAX.min(members.len() / pages_min);
    let mut k = targets.len().clamp(2, clusters_max.max(2));
    for _ in 0..ATTEMPTS_MAX {
        if let Some(labels) = k_means(&vectors, targets.len(), k) {
            let mut clusters = vec![Vec::new(); k];
            labels.iter().zip(members).for_each(|(&label, &page)| clusters[label].push(page));
            return Some(join_small(clusters, pages_min)).filter(|clusters| clusters.len() > 1);
        }
        k += 2;
    }
    None
}

/// Joins all clusters that are too small into one. If that cluster is too small as well, joins it to the largest.
fn join_small(clusters: Vec<Vec<usize>>, pages_min: usize) -> Vec<Vec<usize>> {
    let (mut clusters, small): (Vec<_>, Vec<_>) = clusters.into_iter().partition(|cluster| cluster.len() >= pages_min);
    let mut rest: Vec<usize> = small.into_iter().flatten().collect();
    match clusters.iter_mut().max_by_key(|cluster| cluster.len()).filter(|_| rest.len() < pages_min) {
        Some(largest) => {
            largest.append(&mut rest);
            largest.sort_unstable();
        }
        None => {
            rest.sort_unstable();
            clusters.push(rest);
        }
    }
    clusters
}

/// The cluster of each bit vector, given as the places of its ones; `None` if clusters do not settle. The first centers
/// are vectors at equal distances.
fn k_means(vectors: &[Vec<usize>], bits: usize, k: usize) -> Option<Vec<usize>> {
    let mut centers = vec![vec![0f32; bits]; k];
    for (at, center) in centers.iter_mut().enumerate() {
        vectors[at * vectors.len() / k].iter().for_each(|&bit| center[bit] = 1.0);
    }
    let mut labels = vec![0; vectors.len()];
    for round in 0..ROUNDS_MAX {
        // |v - c|^2 = |v| + |c|^2 - 2 v c, and |v| is the same for all centers.
        let squares: Vec<f32> = centers.iter().map(|center| center.iter().map(|x| x * x).sum()).collect();
        let nearest = |vector: &Vec<usize>| {
            let distance = |at: usize| squares[at] - 2.0 * vector.iter().map(|&bit| centers[at][bit]).sum::<f32>();
            (0..k).min_by(|&a, &b| distance(a).total_cmp(&distance(b))).unwrap_or(0)
        };
        let found: Vec<usize> = vectors.iter().map(nearest).collect();
        if round > 0 && found == labels {
            return Some(labels);
        }
        labels = found;
        let mut sizes = vec![0f32; k];
        centers.iter_mut().for_each(|center| center.fill(0.0));
        for (vector, &label) in vectors.iter().zip(&labels) {
            sizes[label] += 1.0;
            vector.iter().for_each(|&bit| centers[label][bit] += 1.0);
        }
        for (center, size) in centers.iter_mut().zip(sizes) {
            center.iter_mut().for_each(|sum| *sum /= size.max(1.0));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_of_a_key_grow_by_a_level() {
        let key = b"com,example,www,)/a/b/c/d.html http";
        let prefixes = [&b"com,example,"[..], b"com,example,www,", b"com,example,www,)/a/", b"com,example,www,)/a/b/"];
        for (depth, wanted) in prefixes.into_iter().enumerate() {
            assert_eq!(prefix(key, depth), wanted, "{depth}");
        }
        assert_eq!(prefix(b"localhost)/", 0), b"localhost");
    }

    #[test]
    fn clusters_are_pages_that_link_to_the_same_supernodes() {
        let vectors: Vec<Vec<usize>> = (0..40).map(|at| if at % 2 == 0 { vec![0, 1] } else { vec![2, 3] }).collect();
        let labels = k_means(&vectors, 4, 3).unwrap();
        assert!((2..40).all(|at| labels[at] == labels[at - 2]));
        assert_ne!(labels[0], labels[1]);
    }
}
