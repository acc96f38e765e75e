//! `webstrata generate`: a made-up crawl, the same for the same options, as WARC, JSON lines or Parquet.

use crate::args::{Outcome, Usage, unfit};
use anyhow::Context;
use clap::{Args, ValueEnum};
use std::io::Write;
use std::path::PathBuf;
use webstrata_analysis::{Ending, Outlet, Target, format_of};
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

The same options give the same bytes. What is written follows from the ending of
FILE: .jsonl, .jsonl.gz, .warc, .warc.gz or .parquet. A WARC file is compressed
with either ending, a gzip member a record.

Examples:
  webstrata generate uk:occurrences=1000000 --out crawl.jsonl
  webstrata generate uk:from=9,to=12 --out autumn.jsonl
  webstrata generate irregular:seed=7,months=60 --out crawl.warc.gz";

/// Arguments of `generate`.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct GenerateArgs {
    /// What to make up, see below
    #[arg(value_name = "CRAWL", default_value = "uk")]
    pub(crate) crawl: GenerateOptions,
    /// What to write; as the ending of --out says if not given, JSON lines to
    /// standard output
    #[arg(long = "as", value_name = "FORM", value_enum)]
    pub(crate) form: Option<Form>,
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

impl Ending for Form {
    const ENDINGS: &'static [(&'static str, Self, bool)] =
        &[("jsonl", Form::Jsonl, true), ("warc", Form::Warc, true), ("parquet", Form::Parquet, false)];
}

impl GenerateArgs {
    /// What to write, where the option and the name of the file agree.
    fn form(&self, target: &Target) -> anyhow::Result<Form> {
        let Target::File(path) = target else { return Ok(self.form.unwrap_or(Form::Jsonl)) };
        match (self.form, format_of(path)) {
            (None, named) => named.map_err(unfit),
            (Some(form), Ok(named)) if form != named => {
                Err(Usage("--as and the ending of --out say different things: leave one of them out").into())
            }
            (Some(form), _) => Ok(form),
        }
    }
}

pub(crate) fn run(args: &GenerateArgs, out: &mut dyn Write) -> anyhow::Result<Outcome> {
    let mut crawl = Generator::new(args.crawl);
    let target = Target::of(&args.out);
    let form = args.form(&target)?;
    let Target::File(path) = &target else {
        write(form, &mut crawl, out)?;
        return Ok(Outcome::Done);
    };
    // Its records are compressed already, one by one, as WARC files are.
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

/// Writes a form that any output takes.
fn write(form: Form, crawl: &mut Generator, mut out: &mut dyn Write) -> anyhow::Result<()> {
    match form {
        Form::Warc => write_warc(&mut out, crawl)?,
        Form::Jsonl => write_jsonl(&mut out, crawl)?,
        Form::Parquet => return Err(Usage("a Parquet file needs a name: --out FILE").into()),
    };
    Ok(())
}
