//! `webstrata generate`: a made-up crawl, the same for the same options, as WARC or JSON lines.

use crate::cli::Outcome;
use anyhow::Context;
use clap::{Args, ValueEnum};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use webstrata_datasets::generate::{GenerateOptions, Generator, Profile, write_jsonl, write_warc};

const EXAMPLES: &str = "\
The same options give the same bytes.

Examples:
  webstrata generate --occurrences 1000000 --out crawl.jsonl
  webstrata generate --profile irregular --seed 7 --as warc --out crawl.warc";

/// Arguments of `generate`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct GenerateArgs {
    /// How pages are captured and how they change
    #[arg(long, value_enum, default_value = "uk")]
    pub(crate) profile: CrawlProfile,
    /// Links in captures, all together (about)
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    pub(crate) occurrences: u64,
    /// Another number makes another crawl
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Months that the crawl goes on
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = clap::value_parser!(u32).range(1..=1200))]
    pub(crate) months: u32,
    /// What to write
    #[arg(long = "as", value_name = "FORM", value_enum, default_value = "jsonl")]
    pub(crate) form: Form,
    /// File to write; - for standard output
    #[arg(long, value_name = "FILE", default_value = "-")]
    pub(crate) out: PathBuf,
}

/// A model of how the web changes.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum CrawlProfile {
    /// Monthly crawls, little change, like the UK crawl of 2006-07
    Uk,
    /// Monthly crawls, much change
    Hard,
    /// Captures at any second, with repetitions and empty pages
    Irregular,
}

/// A form of crawl file.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Form {
    /// WARC 1.1, not compressed
    Warc,
    /// One capture a line: url, ts, links
    Jsonl,
}

pub(crate) fn run(args: &GenerateArgs, out: &mut dyn Write) -> anyhow::Result<Outcome> {
    if args.out == Path::new("-") {
        write(args, out)?;
        return Ok(Outcome::Done);
    }
    let name = || args.out.display().to_string();
    let mut file = BufWriter::new(File::create(&args.out).with_context(name)?);
    write(args, &mut file).and_then(|()| file.flush()).with_context(name)?;
    Ok(Outcome::Done)
}

fn write(args: &GenerateArgs, mut out: &mut dyn Write) -> std::io::Result<()> {
    let profile = match args.profile {
        CrawlProfile::Uk => Profile::Uk,
        CrawlProfile::Hard => Profile::Hard,
        CrawlProfile::Irregular => Profile::Irregular,
    };
    let options = GenerateOptions { profile, occurrences: args.occurrences, seed: args.seed, months: args.months };
    let mut crawl = Generator::new(options);
    match args.form {
        Form::Warc => write_warc(&mut out, &mut crawl)?,
        Form::Jsonl => write_jsonl(&mut out, &mut crawl)?,
    };
    Ok(())
}
