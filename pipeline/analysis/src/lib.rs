//! Computations on a store, on the engine of the jobs: analyses, standing results and exports.
//!
//! ```text
//! layers -> [analyze] -> values by UID, statistics -> [table] -> [outlet]
//!        -> [stretches] -> [export] -> files of other tools
//! epochs -> [standing] -> results that follow the store, on differential dataflow
//! ```
//!
//! | module | content |
//! |---|---|
//! | `analyze` | algorithms on the graph as of a date, and statistics of how the graph changes |
//! | `export` | stores in the formats of other tools |
//! | [`standing`] | results that are kept up to date as epochs appear |
//! | `stretches` | the links of a page in a window, with the captures that have them |
//! | `hosts` | URLs folded into hosts, domains or paths |
//! | `outlet`, `table` | the files and streams that take results, and tables as Parquet, CSV or Arrow |
//!
//! ```
//! use webstrata_analysis::{Analysis, AnalyzeOptions, Dates, NodeRule, Target, analyze};
//! use webstrata_layers::{Window, parse_time};
//! use webstrata_engine::{Progress, RunOptions};
//! use webstrata_pipeline::{BuildOptions, build};
//!
//! let dir = tempfile::tempdir()?;
//! let crawl = dir.path().join("crawl.jsonl");
//! std::fs::write(&crawl, r#"{"url": "http://example.org/", "ts": "2008", "links": ["/a", "/b"]}"#)?;
//! let run = RunOptions::new(dir.path().join("store"));
//! build(&BuildOptions::new(run.clone(), vec![crawl]), &Progress::default())?;
//!
//! // In-links and out-links of each URL at the end of 2008, as a table with URLs.
//! let out = dir.path().join("degrees.csv");
//! let options = AnalyzeOptions {
//!     run,
//!     analysis: Analysis::Degrees,
//!     dates: Dates::One(Window::as_of(parse_time("2008", true)?)),
//!     nodes: NodeRule::OfDate,
//!     out: Some(Target::File(out.clone())),
//!     urls: true,
//! };
//! let report = analyze(&options, std::io::sink(), &Progress::default())?;
//! assert_eq!((report.rows, report.dates[0].nodes), (3, Some(3)));
//! assert!(std::fs::read_to_string(out)?.contains("http://example.org/a"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod analyze;
mod error;
mod export;
mod hosts;
mod nodes;
mod outlet;
pub mod standing;
mod stretches;
mod table;

pub use analyze::{
    Analysis, AnalyzeOptions, AnalyzeReport, DAMPING, DateReport, Dates, Fact, Iterations, LOG2_REGISTERS, NodeRule,
    Sheet, SheetColumn, Top, analyze, overview, strongly_connected,
};
pub use error::Error;
pub use export::{DRAWN_MAX, ExportOptions, ExportReport, Format, Names, Unfit, What, export};
pub use hosts::{Fold, FoldError, UrlGroups};
pub use outlet::{Ending, Outlet, Target, UnknownEnding, format_of, outside_stores, write_file};
pub use table::{TableFormat, TableWriter, csv_text, time, times};
