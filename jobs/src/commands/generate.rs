//! `webstrata generate`: a made-up crawl, the same for the same options, as WARC, JSON lines, Parquet or web graphs.

use crate::args::{Outcome, Usage, unfit};
use anyhow::Context;
use clap::{Args, ValueEnum};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use webstrata_analysis::{Ending, Outlet, Target, format_of, outside_stores};
use webstrata_datasets::generate::{MonthGraph, write_jsonl, write_parquet, write_warc};
use webstrata_datasets::{GenerateOptions, Generator};

const HELP: &str = "\
CRAWL is a profile, optionally followed by a colon and options:
  occurrences=N   approximate number of links in all captures (100000)
  seed=N          seed of the random numbers (1)
  months=N        length of the crawl in months, up to 1200 (12)
  from=N, to=N    only captures of these months, counted from 1 (all)
  deaths=N        at each capture, N of 10,000 pages are gone from then on (0)

Profiles:
  uk              monthly, few changes, like the UK crawls of 2006-07
  hard            monthly, many changes
  irregular       1 to 50 captures per page, at any second

The same options give the same bytes. The ending of FILE selects the form:
.jsonl, .jsonl.gz, .warc, .warc.gz or .parquet. WARC files are compressed with
either ending, one gzip member per record. With --as cc-graph, FILE is a
directory, and each month a release: FILE/2006-05/vertices.txt.gz and
edges.txt.gz, in which each page is a host.

Examples:
  webstrata generate uk:occurrences=1000000 --out crawl.jsonl
  webstrata generate uk:from=9,to=12 --out autumn.jsonl
  webstrata generate irregular:seed=7,months=60 --out crawl.warc.gz
  webstrata generate uk:occurrences=1000000 --as cc-graph --out releases";

/// Arguments of `generate`.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct GenerateArgs {
    /// Synthetic crawl: a profile and its options, see below
    #[arg(value_name = "CRAWL", default_value = "uk")]
    pub(crate) crawl: GenerateOptions,
    /// Form of the crawl [default: by the ending of --out; JSON lines on standard output]
    #[arg(long = "as", value_name = "FORM", value_enum)]
    pub(crate) form: Option<Form>,
    /// File to write; - for standard output
    #[arg(long, value_name = "FILE", default_value = "-")]
    pub(crate) out: PathBuf,
}

/// A form of crawl file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// WARC 1.0, one gzip member per record
    Warc,
    /// JSON lines, one capture per line: url, ts, links
    Jsonl,
    /// Table of captures: url, ts, links; needs --out FILE
    Parquet,
    /// Directory of web graphs as of Common Crawl, one per month; needs --out FILE
    CcGraph,
}

impl Ending for Form {
    const ENDINGS: &'static [(&'static str, Self, bool)] =
        &[("jsonl", Form::Jsonl, true), ("warc", Form::Warc, true), ("parquet", Form::Parquet, false)];
}

impl GenerateArgs {
    /// The format to write. The option and the name of the file must agree.
    fn form(&self, target: &Target) -> anyhow::Result<Form> {
        let Target::File(path) = target else { return Ok(self.form.unwrap_or(Form::Jsonl)) };
        match (self.form, format_of(path)) {
            (None, named) => named.map_err(unfit),
            (Some(form), Ok(named)) if form != named => Err(Usage(
                "--as and the ending of --out name different formats: omit --as, or change the ending".into(),
            )
            .into()),
            (Some(form), _) => Ok(form),
        }
    }
}

pub(crate) fn run(args: &GenerateArgs, out: &mut dyn Write) -> anyhow::Result<Outcome> {
    let target = Target::of(&args.out);
    let form = args.form(&target)?;
    if let (Form::CcGraph, Target::File(directory)) = (form, &target) {
        write_graphs(args.crawl, directory)?;
        return Ok(Outcome::Done);
    }
    let mut crawl = Generator::new(args.crawl);
    let Target::File(path) = &target else {
        write(form, &mut crawl, out)?;
        return Ok(Outcome::Done);
    };
    // Records are already compressed one by one, as in WARC files.
    let mut outlet = if form == Form::Warc { Outlet::plain(path) } else { Outlet::file(path) }?;
    let name = || path.display().to_string();
    if form == Form::Parquet {
        write_parquet(&mut outlet, &mut crawl).with_context(name)?;
    } else {
        write(form, &mut crawl, &mut outlet).with_context(name)?;
    }
    outlet.finish()?;
    Ok(Outcome::Done)
}

/// Writes each month of a crawl as a web graph, into a directory of its own.
fn write_graphs(crawl: GenerateOptions, directory: &Path) -> anyhow::Result<()> {
    for month in crawl.selected() {
        let Some(graph) = MonthGraph::of(crawl, month)? else { continue };
        let release = directory.join(graph.month());
        let name = || release.display().to_string();
        outside_stores(&release)?;
        fs::create_dir_all(&release).with_context(name)?;
        let mut vertices = Outlet::file(&release.join("vertices.txt.gz"))?;
        graph.write_vertices(&mut vertices).with_context(name)?;
        vertices.finish()?;
        let mut edges = Outlet::file(&release.join("edges.txt.gz"))?;
        graph.write_edges(&mut edges).with_context(name)?;
        edges.finish()?;
    }
    Ok(())
}

/// Writes a format that needs no file name.
fn write(form: Form, crawl: &mut Generator, mut out: &mut dyn Write) -> anyhow::Result<()> {
    match form {
        Form::Warc => write_warc(&mut out, crawl)?,
        Form::Jsonl => write_jsonl(&mut out, crawl)?,
        Form::Parquet => return Err(Usage("a Parquet file needs a name: --out FILE".into()).into()),
        Form::CcGraph => return Err(Usage("web graphs need a directory: --out FILE".into()).into()),
    };
    Ok(())
}
