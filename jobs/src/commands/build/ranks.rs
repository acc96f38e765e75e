//! `--ranks` of `build` and `update`: writes the ranks of a release of a web graph as a table, beside the store.
//!
//! | column | type | meaning |
//! |---|---|---|
//! | `url` | string | the page of the host in the store |
//! | `host` | string | the name as it is published, with its labels reversed |
//! | `time` | timestamp | the time of the release |
//! | `harmonic_position`, `pagerank_position` | uint64 or null | the position among the hosts, from 1 |
//! | `harmonic`, `pagerank` | float64 or null | the rank |
//! | `hosts` | uint64 or null | the number of hosts of a domain |
//!
//! Rows have the order of the files. If folding makes one host of two, both rows have its URL. Memory: some rows.

use crate::args::unfit;
use crate::ask;
use arrow_array::{ArrayRef, Float64Array, StringArray, UInt64Array};
use arrow_schema::{DataType, Field};
use std::path::Path;
use std::sync::Arc;
use webstrata_analysis::{Outlet, TableFormat, TableWriter, format_of, time, times};
use webstrata_datasets::{HostRank, Tally};
use webstrata_layers::counted;
use webstrata_pipeline::{BuildOptions, ranks};

/// The number of rows that are written at a time.
const CHUNK: usize = 1 << 13;

/// Writes the ranks among the inputs of a build. In a job of several processes, the first one does.
pub(crate) fn write(options: &BuildOptions, path: &Path) -> anyhow::Result<()> {
    let format = format_of::<TableFormat>(path).map_err(unfit)?;
    let Some(graph) = options.graph else { return Ok(()) };
    if options.run.cluster.as_ref().is_some_and(|cluster| cluster.process > 0) {
        return Ok(());
    }
    let optional = |name, of| Field::new(name, of, true);
    let columns = vec![
        Field::new("url", DataType::Utf8, false),
        Field::new("host", DataType::Utf8, false),
        Field::new("time", time(), false),
        optional("harmonic_position", DataType::UInt64),
        optional("harmonic", DataType::Float64),
        optional("pagerank_position", DataType::UInt64),
        optional("pagerank", DataType::Float64),
        optional("hosts", DataType::UInt64),
    ];
    let outlet = if format == TableFormat::Csv { Outlet::file(path)? } else { Outlet::plain(path)? };
    let mut table = TableWriter::create(outlet, format, columns, &[])?;
    let (mut reader, mut tally, mut rows) = (ranks(options)?, Tally::default(), Vec::new());
    loop {
        let rank = reader.read(&mut tally)?;
        let is_end = rank.is_none();
        rows.extend(rank);
        if rows.len() == CHUNK || is_end && !rows.is_empty() {
            table.write(columns_of(&rows, graph.time))?;
            rows.clear();
        }
        if is_end {
            break;
        }
    }
    let written = table.finish()?;
    let damaged = match tally.damaged() {
        0 => String::new(),
        damaged => format!(", {} left out", counted(damaged, "damaged row")),
    };
    ask::note(&format!("{}: the ranks of {}{damaged}", path.display(), counted(written, "host")));
    Ok(())
}

fn columns_of(rows: &[HostRank], time: i64) -> Vec<ArrayRef> {
    let texts =
        |of: fn(&HostRank) -> &String| -> ArrayRef { Arc::new(StringArray::from_iter_values(rows.iter().map(of))) };
    let counts =
        |of: fn(&HostRank) -> Option<u64>| -> ArrayRef { Arc::new(rows.iter().map(of).collect::<UInt64Array>()) };
    let values =
        |of: fn(&HostRank) -> Option<f64>| -> ArrayRef { Arc::new(rows.iter().map(of).collect::<Float64Array>()) };
    vec![
        texts(|rank| &rank.url),
        texts(|rank| &rank.host),
        times(rows.iter().map(|_| Some(time))),
        counts(|rank| rank.harmonic_position),
        values(|rank| rank.harmonic),
        counts(|rank| rank.pagerank_position),
        values(|rank| rank.pagerank),
        counts(|rank| rank.hosts),
    ]
}
