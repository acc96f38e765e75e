//! `webstrata export`: writes a store as files for other tools.

use crate::args::{AsOfArgs, Outcome, interval, location, time_from, time_to, unfit};
use crate::ask;
use crate::commands::analyze::NodesArg;
use crate::running::RunArgs;
use anyhow::Context;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use indicatif::HumanCount;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use webstrata_analysis::Error;
use webstrata_analysis::{
    DRAWN_MAX, ExportOptions, ExportReport, Fold, Format, Names, Target, What, export, format_of,
};
use webstrata_layers::{Location, Window, counted};

const ABOUT: &str = "\
Records (--what), one row for each:
  edges    page and link: src, dst, first_seen, last_seen, captures,
           captures_with_link
  events   link that appears or disappears: src, dst, timestamp, present
  nodes    URL: id, url, surt, host, domain, first_capture, last_capture,
           captures
  hosts    two hosts (or what --unit says): src, dst, pages, links,
           occurrences, first_seen, last_seen
  layers   page: uid, url, timestamps, known, and lifespans, a list of link,
           first, last, captures

Formats (--format):
  parquet, csv, arrow   all records (layers not as csv)
  graphml, gexf         edges or hosts as a graph; gexf with times
  webgraph              edges as BV files: FILE.graph, .properties, .offsets and
                        .ef, the transpose as FILE-t, and FILE.urls; needs a
                        binary installed with --features webgraph
  mtx                   edges as a Matrix Market pattern, numbered from 1
  networkit             edges as an EdgeListTabOne, numbered from 1
  cc-graph              hosts or domains (--by) as Common Crawl publishes them:
                        FILE/vertices.txt.gz, edges.txt.gz and ranks.txt.gz
  neo4j                 edges or hosts for neo4j-admin database import:
                        FILE/nodes.csv and FILE/links.csv
  icebug                edges or hosts as tables that LadybugDB mounts:
                        FILE/schema.cypher and three Parquet files

UIDs are those of the exported epoch. --names sets the column names that a tool
expects; with aut, edges have one row per capture: crawl_date, src, dest. With
--at, --from or --to, only captures in that window count. Nodes are then the
URLs with a page in the window, and those that a page links to. mtx, networkit,
webgraph and cc-graph number these nodes; --nodes all numbers all URLs of the
store.

The ending of FILE selects the format unless --format is given: .parquet, .csv,
.arrow, .feather, .graphml, .gexf or .mtx. A further .gz compresses text
(.csv.gz). `--out -` writes text to standard output. FILE appears only when it
is complete. FILE must not be inside a store.

A single file is written by one thread. With --parts, each worker writes a part
into a directory: FILE/part-00000.parquet and so on. The parts in this order are
the table. Several processes (--hosts) can write parts to a shared disk.

Examples:
  webstrata export STORE --out edges.parquet
  webstrata export STORE --what nodes --out nodes.parquet
  webstrata export STORE --from 2006 --to 2006 --format gexf --out 2006.gexf
  webstrata export STORE --what hosts --unit domain --format csv --out -
  webstrata export STORE --at 2008-06-01 --format webgraph --out graph
  webstrata export STORE --from 2024-05 --to 2024-05 --format cc-graph --out graph
  webstrata export STORE --parts --format parquet --out edges";

/// Arguments of `export`.
#[derive(Args, Debug)]
#[command(after_help = ABOUT)]
pub(crate) struct ExportArgs {
    /// Store: a directory, or s3://bucket/prefix
    #[arg(value_parser = location())]
    pub(crate) store: Location,
    /// Records to write [default: edges; of cc-graph: hosts]
    #[arg(long, value_name = "WHAT", value_parser = what())]
    pub(crate) what: Option<What>,
    /// Format of the file [default: by the ending of --out]
    #[arg(long, value_name = "FORMAT", value_parser = format())]
    pub(crate) format: Option<Format>,
    /// Column names
    #[arg(long, value_name = "NAMES", default_value = Names::Default.name(), value_parser = names())]
    pub(crate) names: Names,
    /// File to write, or - for standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// Only the latest capture of each page at or before this time
    #[arg(long, value_name = "T", value_parser = time_to, conflicts_with_all = ["from", "to"])]
    pub(crate) at: Option<i64>,
    #[command(flatten)]
    pub(crate) as_of: AsOfArgs,
    /// Only captures at or after this time
    #[arg(long, value_name = "T", value_parser = time_from)]
    pub(crate) from: Option<i64>,
    /// Only captures at or before this time
    #[arg(long, value_name = "T", value_parser = time_to)]
    pub(crate) to: Option<i64>,
    /// Nodes: URLs of the time window, or all URLs of the store
    #[arg(long, value_name = "NODES", value_enum, default_value_t)]
    pub(crate) nodes: NodesArg,
    /// With hosts: group by host, domain or prefix:N
    #[arg(long, visible_alias = "by", value_name = "WHAT")]
    pub(crate) unit: Option<Fold>,
    /// Write URLs, not UIDs, in tables of edges and events
    #[arg(long)]
    pub(crate) urls: bool,
    /// Write parts of a table into the directory FILE
    #[arg(long)]
    pub(crate) parts: bool,
    #[command(flatten)]
    pub(crate) run: RunArgs,
}

// The parsers accept only these names.

fn what() -> impl TypedValueParser<Value = What> {
    let names = What::ALL.iter().map(|what| what.name());
    PossibleValuesParser::new(names).map(|name| What::from_name(&name).unwrap_or(What::Edges))
}

fn format() -> impl TypedValueParser<Value = Format> {
    let names = Format::ALL.iter().map(|format| format.name());
    PossibleValuesParser::new(names).map(|name| Format::from_name(&name).unwrap_or(Format::Parquet))
}

fn names() -> impl TypedValueParser<Value = Names> {
    let names = Names::ALL.iter().map(|names| names.name());
    PossibleValuesParser::new(names).map(|name| Names::from_name(&name).unwrap_or(Names::Default))
}

impl ExportArgs {
    fn options(&self) -> anyhow::Result<ExportOptions> {
        let (from, to) = interval(self.from, self.to)?;
        self.as_of.need(self.at.is_some())?;
        let target = Target::of(&self.out);
        let format = match (self.format, &target) {
            (Some(format), _) => format,
            (None, Target::Stream) => Format::Csv,
            // A directory needs no extension.
            (None, Target::File(path)) if self.parts && path.extension().is_none() => Format::Parquet,
            (None, Target::File(path)) => format_of(path).map_err(unfit)?,
        };
        Ok(ExportOptions {
            run: self.run.options(&self.store)?,
            what: self.what.unwrap_or(if format == Format::CcGraph { What::Hosts } else { What::Edges }),
            format,
            names: self.names,
            target,
            window: self.at.map_or(Window::Seen { from, to }, |at| self.as_of.window(at)),
            nodes: self.nodes.into(),
            fold: self.unit,
            urls: self.urls,
            parts: self.parts,
        })
    }
}

pub(crate) fn run(args: &ExportArgs, out: &mut dyn Write) -> anyhow::Result<Outcome> {
    let options = args.options()?;
    options.fits().map_err(unfit)?;
    let (done, run) = args.run.shown(|progress| export(&options, &mut BufWriter::new(io::stdout()), progress))?;
    args.run.write_report(&run, done.as_ref().err())?;
    let report = match done {
        Ok(report) => report,
        // A reader that closes the output early is not a failure.
        Err(Error::Output { source, .. }) if source.kind() == io::ErrorKind::BrokenPipe => return Err(source.into()),
        Err(error) => return Err(error).with_context(|| format!("export of {}", args.store)),
    };
    print_report(&options, report, out)?;
    Ok(Outcome::Done)
}

fn print_report(options: &ExportOptions, report: ExportReport, out: &mut dyn Write) -> io::Result<()> {
    if options.format == Format::Gexf && report.nodes > DRAWN_MAX {
        let (nodes, max) = (HumanCount(report.nodes), HumanCount(DRAWN_MAX));
        ask::note(&format!(
            "the graph has {nodes} nodes; most drawing tools are slow above {max}: use a shorter window, or --what \
             hosts"
        ));
    }
    let Target::File(path) = &options.target else { return Ok(()) };
    let written = if options.format.is_table() {
        counted(report.records, "row")
    } else {
        format!("{}, {}", counted(report.records, "edge"), counted(report.nodes, "node"))
    };
    writeln!(out, "{}: {written}, epoch {}", path.display(), report.epoch)
}
