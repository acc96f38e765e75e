//! `webstrata generate`: a made-up crawl, the same for the same options, as WARC, JSON lines or Parquet.

use crate::cli::{Outcome, Usage};
use anyhow::Context;
use clap::{Args, ValueEnum};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use webstrata_datasets::generate::{write_jsonl, write_parquet, write_warc};
use webstrata_datasets::{GenerateOptions, Generator};

const HELP: &str = "\
A crawl is a profile, and after a colon what is not as usual:
  occurrences=N   links in captures, all together, about (100000)
  seed=N          another number makes another crawl (1)
  months=N        how long the crawl goes on, up to 1200 (12)
  from=N, to=N    only the captures of these months of it, from 1 (all)

Profiles:
  uk              monthly, little change, like the UK crawls of 2006-07
  hard            monthly, much change
  irregular       1 to 50 captures of a page, at any second

The same options give the same bytes.

Examples:
  webstrata generate uk:occurrences=1000000 --out crawl.jsonl
  webstrata generate uk:from=9,to=12 --out autumn.jsonl
  webstrata generate irregular:seed=7,months=60 --as warc --out crawl.warc";

/// Arguments of `generate`.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct GenerateArgs {
    /// What to make up, see below
    #[arg(value_name = "CRAWL", default_value = "uk")]
    pub(crate) crawl: GenerateOptions,
    /// What to write
    #[arg(long = "as", value_name = "FORM", value_enum, default_value = "jsonl")]
    pub(crate) form: Form,
    /// File to write; - for standard output
    #[arg(long, value_name = "FILE", default_value = "-")]
    pub(crate) out: PathBuf,
}

/// A form of crawl file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// WARC 1.0, a gzip member a record
    Warc,
    /// One capture a line: url, ts, links
    Jsonl,
    /// A table of captures: url, ts, links; needs --out FILE
    Parquet,
}

pub(crate) fn run(args: &GenerateArgs, out: &mut dyn Write) -> anyhow::Result<Outcome> {
    let mut crawl = Generator::new(args.crawl);
    if args.out == Path::new("-") {
        write(args.form, &mut crawl, out)?;
        return Ok(Outcome::Done);
    }
    let name = || args.out.display().to_string();
    let file = File::create(&args.out).with_context(name)?;
    if args.form == Form::Parquet {
        write_parquet(file, &mut crawl).with_context(name)?;
    } else {
        let mut file = BufWriter::new(file);
        write(args.form, &mut crawl, &mut file).with_context(name)?;
        file.flush().with_context(name)?;
    }
    Ok(Outcome::Done)
}

/// Writes a form that any output takes.
fn write(form: Form, crawl: &mut Generator, mut out: &mut dyn Write) -> anyhow::Result<()> {
    match form {
        Form::Warc => write_warc(&mut out, crawl)?,
        Form::Jsonl => write_jsonl(&mut out, crawl)?,
        Form::Parquet => return Err(Usage("a Parquet file needs a name: --out FILE").into()),
    };
    Ok(())
}
