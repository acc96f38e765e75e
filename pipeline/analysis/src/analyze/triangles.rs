//! `triangles`: the number of triangles that each URL is part of, and the local clustering. Links are taken as edges
//! without direction.
//!
//! Each edge is directed from the end with fewer neighbours to the other end. Each triangle is then found once, where
//! the lists of two URLs meet. All threads of process 0 divide the URLs among themselves. Cost: at most the number of
//! links times its square root. Memory in process 0: 24 bytes per link and 24 per URL. Source: Schank & Wagner 2005
//! (forward).

use super::adjacency::Adjacency;
use super::shared_nodes::SharedNodes;
use super::whole::WholeGraph;
use super::{AnalysisContext, Fact, Found};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use webstrata_engine::{Job, Stopped};

pub(super) fn triangles(
    context: &mut AnalysisContext<'_>,
    graph: Adjacency,
    nodes: &SharedNodes,
) -> Result<Found, Stopped> {
    let Some(directed) = WholeGraph::gather(context, graph)? else { return Ok(Found::of_all()) };
    let edges = directed.undirected();
    drop(directed);
    let rank = |uid: u32| (edges.of(uid).len(), uid);
    let greater = edges.only(|uid, other| rank(other) > rank(uid));
    let counts = count(&greater, context.job);
    context.job.check(context.job.go_on())?;
    let degree = |uid: u32| edges.of(uid).len() as u64;
    let clustering = (0u32..).zip(&counts).map(|(uid, &count)| {
        let pairs = degree(uid) * degree(uid).saturating_sub(1) / 2;
        if pairs == 0 { 0.0 } else { count as f64 / pairs as f64 }
    });
    let clustering: Vec<f64> = clustering.collect();
    let all = counts.iter().sum::<u64>() / 3;
    let mean = clustering.iter().sum::<f64>() / nodes.count.max(1) as f64;
    let facts = vec![
        Fact::new("triangles", all as f64),
        Fact::new("edges", edges.links() as f64 / 2.0),
        Fact::new("mean clustering", mean),
    ];
    Ok(Found::of_all().with("triangles", counts).with("clustering", clustering).and(facts))
}

/// The number of URLs that a thread takes at once.
const TAKEN: u32 = 256;

/// Counts the triangles of each URL. `greater` has each edge under its lesser end.
fn count(greater: &WholeGraph, job: &Job) -> Vec<u64> {
    let urls = u32::try_from(greater.urls()).unwrap_or(u32::MAX);
    let counts: Vec<AtomicU64> = (0..urls).map(|_| AtomicU64::new(0)).collect();
    let next = AtomicU32::new(0);
    let work = || {
        // The position of each URL among the greater neighbours of the current URL, plus one; 0 for other URLs.
        let mut marked = vec![0u32; urls as usize];
        let mut found: Vec<u64> = Vec::new();
        loop {
            let first = next.fetch_add(TAKEN, Relaxed);
            if first >= urls || job.failed() {
                return;
            }
            for uid in first..urls.min(first.saturating_add(TAKEN)) {
                let others = greater.of(uid);
                found.clear();
                found.resize(others.len(), 0);
                for (number, &other) in (1u32..).zip(others) {
                    marked[other as usize] = number;
                }
                let mut count = 0;
                for (at, &other) in others.iter().enumerate() {
                    for &third in greater.of(other) {
                        let number = marked[third as usize];
                        if number > 0 {
                            found[at] += 1;
                            found[number as usize - 1] += 1;
                            count += 1;
                        }
                    }
                }
                for (&other, &found) in others.iter().zip(&found) {
                    marked[other as usize] = 0;
                    counts[other as usize].fetch_add(found, Relaxed);
                }
                counts[uid as usize].fetch_add(count, Relaxed);
            }
        }
    };
    std::thread::scope(|scope| {
        (1..job.workers()).for_each(|_| _ = scope.spawn(work));
        work();
    });
    counts.into_iter().map(AtomicU64::into_inner).collect()
}
