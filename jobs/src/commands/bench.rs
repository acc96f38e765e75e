//! `webstrata bench`: compares encodings of links on a graph or a store, in a table for each direction, and measures
//! how long questions to the cells of a store take.

use crate::args::{Outcome, location};
use crate::ask;
use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;
use webstrata_analysis::write_file;
use webstrata_cells::Cells;
use webstrata_cells::bench;
use webstrata_cells::image::Residence;
use webstrata_codecs::bench::{Step, Table, graph, measure, measure_store, picture, transpose};
use webstrata_codecs::{CodecTag, ENCODINGS};
use webstrata_layers::{Location, Store};

/// Arguments of `bench`.
#[derive(Args, Debug)]
#[command(after_help = "Example: webstrata bench codecs cnr-2000")]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Compare the size, speed and answers of encodings of links
    Codecs(CodecsArgs),
    /// Measure how long queries to the cells of a store take
    Cells(CellsArgs),
}

#[derive(Args, Debug)]
#[command(after_help = "Example: webstrata cells STORE && webstrata bench cells STORE")]
struct CellsArgs {
    /// Store: a directory with cells
    #[arg(value_parser = location())]
    store: Location,
    /// Number of queries of each kind
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    questions: usize,
    /// Seed of the random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Read cells into memory; do not map them
    #[arg(long)]
    in_memory: bool,
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  webstrata bench codecs cnr-2000\n  \
                        webstrata bench codecs cnr-2000 uk-2007-05 --svg codecs.svg\n  \
                        webstrata bench codecs STORE")]
struct CodecsArgs {
    /// Stores, or WebGraph graphs without time: BASENAME of BASENAME.graph and BASENAME.properties
    /// (needs the feature webgraph)
    #[arg(required = true, value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// Also write the figures as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Also draw size against speed, as SVG
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

pub(crate) fn run(args: &BenchArgs, out: &mut dyn Write) -> anyhow::Result<Outcome> {
    match &args.what {
        What::Codecs(args) => codecs(args, out),
        What::Cells(args) => cells(args, out),
    }
}

fn cells(args: &CellsArgs, out: &mut dyn Write) -> anyhow::Result<Outcome> {
    let store = Store::open(&args.store)?;
    let residence = if args.in_memory { Residence::Memory } else { Residence::Mapped };
    let start = Instant::now();
    let Some(cells) = Cells::open(&store, residence, ENCODINGS)? else {
        bail!("{} has no cells for its current epoch; run `webstrata cells` to write them", args.store);
    };
    let counts = store.manifest().counts;
    writeln!(out, "ready in {:.1} ms\n", start.elapsed().as_secs_f64() * 1e3)?;
    let times = (counts.first_time.unwrap_or(0), counts.last_time.unwrap_or(0));
    writeln!(out, "| question | p50 us | p99 us | CPU ns a question | answers a question | million answers a CPU s |")?;
    writeln!(out, "|---|---|---|---|---|---|")?;
    ask::note(&format!("running {} queries of each kind", args.questions));
    for row in bench::measure(&cells, args.questions, args.seed, times)? {
        writeln!(
            out,
            "| {} | {:.2} | {:.2} | {:.0} | {:.1} | {:.1} |",
            row.what,
            row.p50.as_secs_f64() * 1e6,
            row.p99.as_secs_f64() * 1e6,
            row.ns_a_question(),
            row.answers as f64 / row.questions.max(1) as f64,
            row.answers_a_second() / 1e6
        )?;
    }
    Ok(Outcome::Done)
}

fn codecs(args: &CodecsArgs, out: &mut dyn Write) -> anyhow::Result<Outcome> {
    let mut tables = Vec::new();
    for input in &args.inputs {
        let name = input.file_name().unwrap_or_default().to_string_lossy();
        ask::note(&format!("reading {}", input.display()));
        let both = if input.is_dir() {
            measure_store(&name, &Store::open(input)?, &print_step)?
        } else {
            let of_webgraph = || format!("{}: a graph as files of WebGraph", input.display());
            CodecTag::Bv.present().with_context(of_webgraph)?;
            let forward = graph(input)?;
            let backward = transpose(&forward)?;
            let measure = |direction, lists| measure(&format!("{name}, {direction}"), lists, None, &print_step);
            [measure("forward", &forward)?, measure("backward", &backward)?]
        };
        for table in both {
            print(&table, out)?;
            tables.push(table);
        }
    }
    if let Some(path) = &args.json {
        let tables: Vec<_> = tables.iter().map(to_json).collect();
        write_file(path, serde_json::to_string_pretty(&tables)?.as_bytes())?;
    }
    if let Some(path) = &args.svg {
        write_file(path, picture(&tables).as_bytes())?;
    }
    Ok(Outcome::Done)
}

/// Notes which encoding is measured now: all encodings take minutes on large graphs.
fn print_step(Step { graph, codec, with_time, number, count }: Step<'_>) {
    let with_time = if with_time { ", with time" } else { "" };
    ask::note(&format!("{graph}: codec {number} of {count}{with_time}: {codec}"));
}

/// Prints one table as Markdown.
fn print(table: &Table, out: &mut dyn Write) -> anyhow::Result<()> {
    writeln!(
        out,
        "{}: {} nodes, {} links{}; every list of every codec is the same.\n",
        table.graph,
        table.nodes,
        table.links,
        table.occurrences.map_or_else(String::new, |count| format!(", {count} occurrences"))
    )?;
    let timed = if table.occurrences.is_some() { " bits an occurrence |" } else { "" };
    writeln!(out, "| codec | data, bits a link | index | total |{timed} sequential, ns a link | random | build, s |")?;
    writeln!(out, "|---|---|---|---|{}---|---|---|", if timed.is_empty() { "" } else { "---|" })?;
    for row in &table.rows {
        let bits =
            [row.data_bytes, row.index_bytes, row.data_bytes + row.index_bytes].map(|bytes| table.bits_a_link(bytes));
        let timed = match table.bits_an_occurrence(row) {
            Some(bits) => format!(" {bits:.3} |"),
            None if timed.is_empty() => String::new(),
            None => " |".to_owned(),
        };
        writeln!(
            out,
            "| {} | {:.2} | {:.2} | {:.2} |{timed} {:.1} | {:.1} | {:.2} |",
            row.codec,
            bits[0],
            bits[1],
            bits[2],
            row.sequential_ns,
            row.random_ns,
            row.build.as_secs_f64()
        )?;
    }
    writeln!(out)?;
    out.flush()?;
    Ok(())
}

fn to_json(table: &Table) -> serde_json::Value {
    let row = |row: &webstrata_codecs::bench::Row| {
        json!({
            "codec": row.codec,
            "data_bytes": row.data_bytes,
            "index_bytes": row.index_bytes,
            "bits_a_link": table.bits_a_link(row.data_bytes + row.index_bytes),
            "bits_an_occurrence": table.bits_an_occurrence(row),
            "sequential_ns_a_link": row.sequential_ns,
            "random_ns_a_link": row.random_ns,
            "build_cpu_seconds": row.build.as_secs_f64(),
        })
    };
    let rows: Vec<_> = table.rows.iter().map(row).collect();
    json!({
        "graph": table.graph, "nodes": table.nodes, "links": table.links,
        "occurrences": table.occurrences, "codecs": rows,
    })
}
