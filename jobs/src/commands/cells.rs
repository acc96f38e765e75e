//! `webstrata cells`: writes the cells of a store, so that questions are answered from memory.

use crate::args::{Format, FormatArgs, Outcome, location, processors, size};
use crate::ask::note;
use crate::commands::overview;
use anyhow::bail;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde_json::json;
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use webstrata_analysis::Error as AnalysisError;
use webstrata_cells::Encoding;
use webstrata_cells::disk::load::{Options, Written, find_cell, write_cell};
use webstrata_cells::disk::memory::memory_needed;
use webstrata_cells::image::label::{directory, partitions};
use webstrata_cells::url_store;
use webstrata_codecs::{CodecTag, ENCODINGS};
use webstrata_engine::{Error as JobError, Progress, RunOptions, meter, workers_within};
use webstrata_layers::{Location, Store, counted};

const ABOUT: &str = "\
A cell is the compressed image of one partition of a row: its URLs, and its
links in both directions with their times. Cells are files in STORE/cells.
`links` and `query` read them when the current epoch has all its cells. They
map cells into memory, so that no time is spent on loading.

Cells of rows from earlier epochs are kept. This command writes only cells that
are missing, damaged, or made with other options. It reads each new cell back
from disk and compares it with the layers before it renames the file into place.

strata-speed is fast. strata is about 12 % smaller, and questions about links
take twice as long. strata-thin is strata without times of in-links: these take
a quarter of the bytes, and questions about them many times as long. The other
encodings are from the literature and are there for comparison: they give the
same answers, and store times in plain arrays. bv needs a binary that was
installed with --features webgraph.

A cell needs more memory than the records of one direction, or the links of its
most linked URL, take. If --memory is too little for a cell, nothing is written,
and the error says how much is needed. The bytes of cells do not depend on it.

The overview of the epoch is written too; see `webstrata overview`. If --memory
is too little for the overview, only the overview is left out. An overview of
millions of hosts may take more than --memory.

Example:
  webstrata cells STORE --codec strata";

/// Arguments of `cells`.
#[derive(Args, Debug)]
#[command(after_help = ABOUT)]
pub(crate) struct CellsArgs {
    /// Store: a directory
    #[arg(value_parser = location())]
    pub(crate) store: Location,
    /// Encoding of links
    #[arg(long, value_name = "NAME", default_value = Options::default().encoding.name(), value_parser = codec())]
    pub(crate) codec: &'static dyn Encoding,
    /// URLs per block, 4 to 64: larger blocks are smaller and slower
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u8).range(4..=64))]
    pub(crate) url_block: u8,
    /// Cells to make in parallel [default: number of processors]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) workers: Option<u16>,
    /// Memory limit of this process; with less memory, fewer cells are made in parallel
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = size)]
    pub(crate) memory: usize,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

/// The name of an encoding.
fn codec() -> impl TypedValueParser<Value = &'static dyn Encoding> {
    // The parser accepts only these names.
    PossibleValuesParser::new(ENCODINGS.0.iter().map(|encoding| encoding.name())).map(|name| {
        let found = ENCODINGS.0.iter().copied().find(|encoding| encoding.name() == name);
        found.unwrap_or(Options::default().encoding)
    })
}

pub(crate) fn run(args: &CellsArgs, out: &mut dyn Write) -> anyhow::Result<Outcome> {
    CodecTag::from_name(args.codec.name()).map_or(Ok(()), CodecTag::present)?;
    let store = Store::open(&args.store)?;
    let directory = directory(&store)?;
    let urls = url_store::Options { block: usize::from(args.url_block), ..url_store::Options::default() };
    let options = Options { encoding: args.codec, urls };
    let all: Vec<_> = partitions(&store).collect();
    let workers = args.workers.map_or_else(processors, usize::from);
    let found = each(workers, &all, |&(row, partition)| Ok(find_cell(&store, directory, row, partition, options)?))?;
    let (mut written, mut missing) = (Vec::new(), Vec::new());
    for (&(row, partition), found) in all.iter().zip(found) {
        match found {
            Some(found) => written.push(found),
            None => missing.push((row, partition, memory_needed(&store, row, partition, args.codec)?)),
        }
    }
    let free = (args.memory as u64).saturating_sub(PROCESS_BYTES);
    if let Some((row, partition, needed)) = missing.iter().max_by_key(|(_, _, needed)| *needed).filter(|it| it.2 > free)
    {
        bail!(
            "--memory of {} MiB is too little for the cell of row {}, partition {}: use at least {} MiB",
            args.memory >> 20,
            row.row,
            partition.partition,
            (PROCESS_BYTES + needed).div_ceil(1 << 20)
        );
    }
    meter::give_back_large();
    let budget = Budget { free: Mutex::new(free), freed: Condvar::new() };
    written.extend(each(workers, &missing, |&(row, partition, needed)| {
        budget.lend(needed, || Ok(write_cell(&store, directory, row, partition, options)?))
    })?);
    let workers = workers.min(workers_within(args.memory));
    let run = RunOptions { workers, memory_max: args.memory, ..RunOptions::new(&args.store) };
    let not_kept = match overview::kept(&store, &run, &Progress::default()) {
        Ok((_, not_kept)) => not_kept.map(anyhow::Error::from),
        Err(error) if needs_memory(&error) => {
            note(&format!("no overview was written: {error:#}\nTry `webstrata overview {} --memory SIZE`", args.store));
            None
        }
        Err(error) => Some(error.into()),
    };
    let outcome = report(args, &store, (&written, missing.len()), out)?;
    match not_kept {
        Some(error) => Err(error.context("no overview was written")),
        None => Ok(outcome),
    }
}

/// The memory of the process beyond the memory of cells, in bytes.
const PROCESS_BYTES: u64 = 30 << 20;

/// Does work on each item, with several threads. Returns the results in the order of the items. No work begins after an
/// error.
fn each<T: Sync, R: Send>(
    workers: usize,
    items: &[T],
    work: impl Fn(&T) -> anyhow::Result<R> + Sync,
) -> anyhow::Result<Vec<R>> {
    let (next, done) = (AtomicUsize::new(0), Mutex::<Vec<(usize, anyhow::Result<R>)>>::default());
    std::thread::scope(|scope| {
        for _ in 0..workers.min(items.len()) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(at) else { break };
                    let result = work(item);
                    if result.is_err() {
                        next.store(items.len(), Ordering::Relaxed);
                    }
                    done.lock().unwrap_or_else(PoisonError::into_inner).push((at, result));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_unstable_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

/// Memory that threads borrow.
struct Budget {
    free: Mutex<u64>,
    freed: Condvar,
}

impl Budget {
    /// Does work when its memory is free. All memory together must be enough for the work.
    fn lend<T>(&self, bytes: u64, work: impl FnOnce() -> T) -> T {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        *self.freed.wait_while(free, |free| *free < bytes).unwrap_or_else(PoisonError::into_inner) -= bytes;
        let done = work();
        meter::give_back();
        *self.free.lock().unwrap_or_else(PoisonError::into_inner) += bytes;
        self.freed.notify_all();
        done
    }
}

/// Whether an overview failed because it takes more memory than cells take.
fn needs_memory(error: &AnalysisError) -> bool {
    let too_little =
        |error: &JobError| matches!(error, JobError::TooLittleMemory { .. } | JobError::TooLittleAddressSpace { .. });
    matches!(error, AnalysisError::GraphTooLarge { .. }) || matches!(error, AnalysisError::Job(job) if too_little(job))
}

/// Prints the sizes of all cells, and how many cells were made now.
fn report(
    args: &CellsArgs,
    store: &Store,
    (written, made): (&[Written], usize),
    out: &mut dyn Write,
) -> anyhow::Result<Outcome> {
    let counts = store.manifest().counts;
    let [urls, numbers, forward, backward] =
        [0, 1, 2, 3].map(|section| written.iter().map(|cell| cell.bytes[section]).sum::<u64>());
    let per = |bytes: u64, count: u64, unit: f64| if count == 0 { 0.0 } else { bytes as f64 * unit / count as f64 };
    if args.format.format == Format::Json {
        let cells = written.len();
        let all = json!({
            "cells": cells,
            "made": made,
            "numbers": {"bytes": numbers},
            "urls": {"count": counts.urls, "bytes": urls},
            "forward": {"occurrences": counts.occurrences, "bytes": forward},
            "backward": {"occurrences": counts.occurrences, "bytes": backward},
        });
        writeln!(out, "{all}")?;
        return Ok(Outcome::Done);
    }
    let cells = counted(written.len(), "cell");
    writeln!(out, "{cells} of epoch {}, {made} of them made now", store.manifest().epoch)?;
    writeln!(out, "  urls      {urls:>14} bytes  {:>7.3} a URL", per(urls, counts.urls, 1.0))?;
    if numbers > 0 {
        writeln!(out, "  numbers   {numbers:>14} bytes")?;
    }
    let bits = |bytes| per(bytes, counts.occurrences, 8.0);
    writeln!(out, "  forward   {forward:>14} bytes  {:>7.3} bits a link occurrence", bits(forward))?;
    writeln!(out, "  backward  {backward:>14} bytes  {:>7.3} bits a link occurrence", bits(backward))?;
    Ok(Outcome::Done)
}
