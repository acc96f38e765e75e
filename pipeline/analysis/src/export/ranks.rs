//! The ranks of a graph of hosts or domains, as Common Crawl publishes them.
//!
//! ```text
//! #harmonicc_pos  #harmonicc_val  #pr_pos  #pr_val               #host_rev    (graphs of domains: #n_hosts)
//! 1               13.5            2        0.05871034            com.example
//! ```
//!
//! Columns are separated by tabs, and rows are in the order of the first column. Positions count from 1; hosts with one
//! value are in the order of names. The values are those of the analyses `harmonic`, with 256 registers, and
//! `pagerank`, with their default options, on the graph whose pages are the hosts: the same sets, the same steps, and
//! the same hashes. Here the graph is in memory already, so no worker exchanges anything.
//!
//! Memory: 560 bytes for each vertex, and 16 for each edge.

use super::Export;
use crate::Error;
use crate::analyze::harmonic::{begin, estimate, raise};
use crate::analyze::pagerank::Surfer;
use crate::analyze::{DAMPING, Iterations, LOG2_REGISTERS};
use crate::outlet::Outlet;
use std::io::Write;
use std::path::Path;
use webstrata_url::reversed;

/// The registers of a counter.
const REGISTERS: usize = 1 << LOG2_REGISTERS;

/// Writes the ranks of the vertices with these names. Edges are sorted, and `hosts` is the number of hosts of a vertex.
pub(super) fn write(
    export: &Export<'_>,
    path: &Path,
    names: &[&str],
    edges: &[(usize, usize)],
    hosts: impl Fn(usize) -> Option<u64>,
) -> Result<(), Error> {
    let harmonic = harmonic(export, names, edges)?;
    let pagerank = pagerank(export, names.len(), edges)?;
    let (by_harmonic, by_pagerank) = (order(&harmonic), order(&pagerank));
    let mut positions = vec![0; names.len()];
    (1..).zip(by_pagerank).for_each(|(position, vertex)| positions[vertex] = position);
    let mut file = Outlet::file(path)?;
    let count = if names.is_empty() { None } else { hosts(0) };
    let columns = "#harmonicc_pos\t#harmonicc_val\t#pr_pos\t#pr_val\t#host_rev";
    let columns = columns.to_owned() + if count.is_some() { "\t#n_hosts" } else { "" };
    writeln!(file, "{columns}").map_err(|source| file.failed(source))?;
    for (position, vertex) in (1u64..).zip(by_harmonic) {
        export.job.go_on()?;
        let count = hosts(vertex).map(|hosts| format!("\t{hosts}")).unwrap_or_default();
        let (harmonic, by_pagerank, pagerank) = (harmonic[vertex], positions[vertex], pagerank[vertex]);
        let name = reversed(names[vertex]);
        let written = writeln!(file, "{position}\t{harmonic}\t{by_pagerank}\t{pagerank}\t{name}{count}");
        written.map_err(|source| file.failed(source))?;
    }
    file.finish()
}

/// The vertices by value, the greatest first; vertices with one value in their own order.
fn order(values: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[b].total_cmp(&values[a]));
    order
}

/// As [`crate::analyze::pagerank`].
fn pagerank(export: &Export<'_>, vertices: usize, edges: &[(usize, usize)]) -> Result<Vec<f64>, Error> {
    let mut degrees = vec![0.0; vertices];
    edges.iter().for_each(|&(from, _)| degrees[from] += 1.0);
    let nodes = vertices.max(1) as f64;
    let mut ranks = vec![1.0 / nodes; vertices];
    let Iterations { most, tolerance } = Iterations::default();
    for _ in 0..most {
        export.job.go_on()?;
        let stranded = ranks.iter().zip(&degrees).filter(|(_, degree)| **degree == 0.0).map(|(rank, _)| rank).sum();
        let surfer = Surfer { damping: DAMPING, stranded, nodes };
        let mut next = vec![0.0; vertices];
        edges.iter().for_each(|&(from, to)| next[to] += ranks[from] / degrees[from]);
        next.iter_mut().for_each(|rank| *rank = surfer.rank(*rank));
        let moved: f64 = next.iter().zip(&ranks).map(|(new, old)| (new - old).abs()).sum();
        ranks = next;
        if moved <= tolerance {
            break;
        }
    }
    Ok(ranks)
}

/// As [`crate::analyze::harmonic`].
fn harmonic(export: &Export<'_>, names: &[&str], edges: &[(usize, usize)]) -> Result<Vec<f64>, Error> {
    let mut counters = vec![[0u8; REGISTERS]; names.len()];
    for (counter, name) in counters.iter_mut().zip(names) {
        begin(counter, &format!("http://{name}/"));
    }
    let one = counters.first().map_or(0.0, |counter| estimate(counter));
    let (mut counts, mut sums, mut changed) = (vec![one; names.len()], vec![0.0; names.len()], vec![true; names.len()]);
    let mut distance = 0u32;
    while changed.contains(&true) {
        export.job.go_on()?;
        distance += 1;
        let before = counters.clone();
        let mut rose = vec![false; names.len()];
        for &(from, to) in edges.iter().filter(|edge| changed[edge.0]) {
            rose[to] |= raise(&mut counters[to], &before[from]);
        }
        for (vertex, _) in rose.iter().enumerate().filter(|(_, rose)| **rose) {
            let count = estimate(&counters[vertex]);
            sums[vertex] += (count - counts[vertex]) / f64::from(distance);
            counts[vertex] = count;
        }
        changed = rose;
    }
    Ok(sums)
}
