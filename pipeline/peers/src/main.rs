//! PageRank, strongly and weakly connected components by webgraph-algo: `webstrata-analysis-peers BASENAME`.
//!
//! Reads BV files, as `webstrata export --format webgraph` writes them (`BASENAME` and, for PageRank, the transpose
//! `BASENAME-t`), into memory. Prints a JSON line an algorithm: wall seconds and the result. rayon decides the number
//! of threads (RAYON_NUM_THREADS). `tests/interop/analysis_speed.py` compares the output with other tools.

use dsi_bitstream::prelude::BE;
use dsi_progress_logger::no_logging;
use serde_json::json;
use std::path::PathBuf;
use std::time::Instant;
use webgraph::prelude::*;
use webgraph_algo::rank::pagerank::{PageRank, preds};
use webgraph_algo::sccs;

fn main() -> anyhow::Result<()> {
    let basename = std::env::args_os().nth(1).map(PathBuf::from).ok_or_else(|| anyhow::anyhow!("give a basename"))?;
    let transposed = PathBuf::from(format!("{}-t", basename.display()));
    let load = |basename: &PathBuf| BvGraph::with_basename(basename).endianness::<BE>().mode::<LoadMem>().load();
    let (graph, transpose) =
        timed("load", || Ok((leaked(load(&basename)?), leaked(load(&transposed)?))), |(graph, _)| graph.num_nodes())?;
    timed("scc", || Ok(sccs::tarjan(graph, no_logging![])), |found| found.num_components())?;
    let both =
        timed("symmetrize", || Ok(CsrGraph::from_seq_graph(&UnionGraph(graph, transpose))), |both| both.num_nodes())?;
    timed("wcc", || Ok(sccs::symm_par(&both, no_logging![])), |found| found.num_components())?;
    let iterations = preds::MaxIter::from(20);
    timed(
        "pagerank",
        || {
            let mut ranks = PageRank::new(transpose);
            ranks.run(iterations);
            Ok(ranks.rank().iter().copied().fold(0.0, f64::max))
        },
        |&greatest| greatest,
    )?;
    Ok(())
}

/// Leaks a value, so that it lives to the end: graphs of graphs need that.
fn leaked<T>(graph: T) -> &'static T {
    Box::leak(Box::new(graph))
}

/// Runs an algorithm, and prints its time and its result.
fn timed<T, F: serde::Serialize>(
    name: &str,
    run: impl FnOnce() -> anyhow::Result<T>,
    found: impl FnOnce(&T) -> F,
) -> anyhow::Result<T> {
    let started = Instant::now();
    let done = run()?;
    let seconds = started.elapsed().as_secs_f64();
    println!("{}", json!({"algorithm": name, "seconds": seconds, "found": found(&done)}));
    Ok(done)
}
