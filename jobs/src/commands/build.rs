//! `webstrata build`: reads crawl files, and writes a new epoch of a store.

pub(crate) mod ranks;

use crate::args::release::ReleaseArgs;
use crate::args::{EffortArgs, Format, Outcome, location};
use crate::ask;
use crate::commands::info::print_counts;
use crate::running::{Run, RunArgs, write_json};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use indicatif::{BinaryBytes, HumanCount};
use serde_json::json;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use webstrata_datasets::{EXAMPLES_PER_KIND_MAX, Finding, GenerateOptions, LinkKinds, Tally, URL_BYTES_MAX, names_in};
use webstrata_engine::RunOptions;
use webstrata_layers::answers::contents::EpochCounts;
use webstrata_layers::{Location, RangeLength, counted, format_time};
use webstrata_pipeline::{BuildOptions, BuildReport, Digests, Error, build};

/// The number of damaged places of each kind that the text report names.
const PLACES_SHOWN: usize = 2;
/// The number of files not read that the text report names.
const FILES_SHOWN: usize = 10;

const EXAMPLES: &str = "\
build detects the format from the content, not from the name: WARC, ARC, WAT,
WACZ, links files, JSON lines, capture Parquet, tables of Archives Unleashed
and LGA. CDX, CDXJ and crawl logs give captures with unknown links. Web graphs
of Common Crawl need --format cc-graph and --time.
Inputs may be plain, or compressed with gzip or zstd.

Dates of captures:
  14 digits   YYYYMMDDhhmmss
  text        also fewer digits, or ISO 8601
  numbers     in JSON and integer columns also 10 digits (seconds since 1970)
              or 13 digits (milliseconds)
Other dates, and years outside 1 to 9999, count as damage.

build counts and skips damaged records. It keeps the good records around them.

Examples:
  webstrata build --out STORE crawl/ more/*.warc.gz
  webstrata build --out STORE --memory 4G --spill /scratch crawl/
  webstrata build --out STORE --links redirects,embeds --strict crawl.warc.gz
  webstrata build --out STORE --generate uk:occurrences=10000000,seed=9
  webstrata build --out STORE --hosts hosts.txt --process 0 crawl/
  webstrata build --out STORE --replace crawl/
  webstrata build --out STORE 's3://bucket/crawl/*.warc.gz'
  webstrata build --out STORE --files-from warc.paths.gz --prefix https://host
  webstrata build --out STORE --format cc-graph --time 2024-05..2024-07 release/
  zcat captures.jsonl.gz | webstrata build --out STORE -";

/// Arguments of `build`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct BuildArgs {
    #[command(flatten)]
    pub(crate) read: ReadArgs,
    /// Store to make: a directory, or s3://bucket/prefix; to add captures to a store, use update
    #[arg(long, value_name = "STORE", value_parser = location())]
    pub(crate) out: Location,
    /// If STORE is already a store, make a new epoch in it that has only the captures of this build
    #[arg(long)]
    pub(crate) replace: bool,
    #[command(flatten)]
    pub(crate) run: RunArgs,
    /// Length of the time ranges of in-links: month, day, year, or a number of days
    #[arg(long, value_name = "LENGTH", default_value = "month")]
    pub(crate) in_range: RangeLength,
    /// Approximate number of URLs per partition, also of later jobs [default: 8 partitions per row,
    /// of 8192 to 524288 URLs each]
    #[arg(long, value_name = "URLS")]
    pub(crate) partition_urls: Option<u64>,
    #[command(flatten)]
    pub(crate) effort: EffortArgs,
    #[command(flatten)]
    pub(crate) release: ReleaseArgs,
}

/// What builds and updates read.
#[derive(Args, Debug)]
pub(crate) struct ReadArgs {
    /// Crawl files, directories, globs, s3://bucket/key, https:// addresses, or - for standard input
    #[arg(required_unless_present_any = ["generate", "files_from"], value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// Read the inputs that a file names, one a line; the file may be compressed, an address, or -
    #[arg(long, value_name = "LIST")]
    files_from: Vec<PathBuf>,
    /// Put this before the names in LIST, such as https://data.commoncrawl.org
    #[arg(long, value_name = "PREFIX", requires = "files_from", default_value = "", hide_default_value = true)]
    prefix: String,
    /// Read a synthetic crawl: see `webstrata help generate`
    #[arg(long, value_name = "CRAWL")]
    pub(crate) generate: Vec<GenerateOptions>,
    /// Kinds of links to keep, besides anchors [default of update: those of the store]
    #[arg(long, value_name = "KINDS", value_enum, value_delimiter = ',')]
    pub(crate) links: Vec<Kind>,
    /// Omit URLs that were never captured and that fewer pages link to; update applies this to new
    /// URLs [default of update: that of the store]
    #[arg(long, value_name = "PAGES")]
    pub(crate) min_sources: Option<u64>,
    /// Omit pages and links whose URLs are longer than this [default: 65536; of update: that of the
    /// store]
    #[arg(long, value_name = "BYTES", value_parser = url_bytes)]
    pub(crate) url_bytes: Option<usize>,
    /// Payload digests to keep, which revisits in later updates may need [default: all; of update:
    /// that of the store]
    #[arg(long, value_name = "DIGESTS", value_parser = digests())]
    pub(crate) digests: Option<Digests>,
    /// Also read captures and links that `webstrata remove` has removed
    #[arg(long)]
    pub(crate) with_removed: bool,
    /// Exit with code 1 if any input is damaged, or is a crawl file that cannot be read; index
    /// files and other files beside the crawl files are no error
    #[arg(long)]
    pub(crate) strict: bool,
}

impl ReadArgs {
    /// The options of a build that reads this.
    pub(crate) fn options(&self, run: RunOptions, release: &ReleaseArgs) -> anyhow::Result<BuildOptions> {
        let lists: Result<Vec<_>, _> = self.files_from.iter().map(|list| names_in(list, &self.prefix)).collect();
        Ok(BuildOptions {
            lists: lists?,
            graph: release.graph()?,
            generate: self.generate.clone(),
            kinds: kinds(&self.links),
            url_bytes_max: self.url_bytes,
            min_sources: self.min_sources,
            digests: self.digests,
            with_removed: self.with_removed,
            ..BuildOptions::new(run, self.inputs.clone())
        })
    }
}

/// A kind of link that a user can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// a, area, frame, iframe; included unless no-anchors is given
    Anchors,
    /// Location headers and meta refresh
    Redirects,
    /// Images, scripts, style sheets, forms, media
    Embeds,
    /// Heritrix outlink lines in metadata records
    Outlinks,
    /// In a Heritrix crawl log, the page on which each URL was found first
    Via,
    /// Omit anchors: keep only the other kinds given
    NoAnchors,
}

/// Parses the digests to keep.
fn digests() -> impl TypedValueParser<Value = Digests> {
    let values = Digests::CHOICES.map(|digests| {
        PossibleValue::new(digests.name()).help(match digests {
            Digests::All => "Those of all captures",
            Digests::None => "Those of revisits with unknown links; later revisits need the time of their original",
        })
    });
    PossibleValuesParser::new(values)
        .map(|name| Digests::CHOICES.into_iter().find(|digests| digests.name() == name).unwrap_or(Digests::All))
}

/// Parses the limit of the length of a URL. The bounds let every host name fit, and limit the memory of readers.
fn url_bytes(text: &str) -> Result<usize, String> {
    const URL_BYTES_MIN: usize = 300;
    let bytes_max = text.parse().ok().filter(|bytes| (URL_BYTES_MIN..=URL_BYTES_MAX).contains(bytes));
    bytes_max.ok_or_else(|| format!("expected a number of bytes from {URL_BYTES_MIN} to {URL_BYTES_MAX}"))
}

/// The kinds of links to keep; `None` if no kinds are given.
pub(crate) fn kinds(named: &[Kind]) -> Option<LinkKinds> {
    let has = |kind| named.contains(&kind);
    let kinds = LinkKinds {
        anchors: !has(Kind::NoAnchors),
        redirects: has(Kind::Redirects),
        embeds: has(Kind::Embeds),
        outlinks: has(Kind::Outlinks),
        via: has(Kind::Via),
    };
    (!named.is_empty()).then_some(kinds)
}

pub(crate) fn run(args: &BuildArgs, out: &mut dyn Write) -> anyhow::Result<Outcome> {
    let options = BuildOptions {
        replace: args.replace,
        in_range: args.in_range,
        partition_urls: args.partition_urls,
        effort: args.effort.effort(),
        ..args.read.options(args.run.options(&args.out)?, &args.release)?
    };
    if let Some(table) = args.release.ranks() {
        ranks::write(&options, table)?;
    }
    let (built, run) = args.run.shown(|progress| build(&options, progress))?;
    if let Some(path) = &args.run.report {
        write_report(path, &built, &run)?;
    }
    let report = built?;
    match args.release.report() {
        Format::Text => print_text(&report, &run, args, out)?,
        Format::Json => writeln!(out, "{}", json_of(&report, &run, &args.out))?,
    }
    note_folded(&report.tally);
    outcome(&report, args.read.strict, out)
}

/// Says that hosts of a web graph were folded, if some were.
pub(crate) fn note_folded(tally: &Tally) {
    let folded = tally.of(Finding::FoldedHost);
    if folded > 0 {
        ask::note(&format!(
            "{} folded: a leading www is left out, as in releases before November 2025; --www keep keeps such hosts \
             apart, in another store",
            counted(folded, "host")
        ));
    }
}

/// The outcome of a build or an update that printed its report.
pub(crate) fn outcome(report: &BuildReport, strict: bool, out: &mut dyn Write) -> anyhow::Result<Outcome> {
    let (damaged, unread) = (report.tally.damaged(), report.tally.of(Finding::UnreadFile));
    if strict && damaged + unread > 0 {
        out.flush()?;
        let counted = |count: u64, one: &str, many: &str| format!("{count} {}", if count == 1 { one } else { many });
        let damaged = (damaged > 0).then(|| counted(damaged, "damaged place", "damaged places"));
        let unread =
            (unread > 0).then(|| counted(unread, "crawl file that is not read", "crawl files that are not read"));
        let found = damaged.into_iter().chain(unread).collect::<Vec<_>>().join(" and ");
        writeln!(io::stderr(), "error: --strict, and the input has {found}")?;
        return Ok(Outcome::Failed);
    }
    Ok(Outcome::Done)
}

/// Writes the figures of each stage in this process, even if the build failed.
pub(crate) fn write_report(path: &Path, built: &Result<BuildReport, Error>, run: &Run) -> anyhow::Result<()> {
    let (mut epoch, mut counts, mut rejects, mut error) = (None, None, serde_json::Map::new(), None);
    match built {
        Ok(report) => {
            (epoch, counts) = (Some(report.epoch), Some(report.counts));
            rejects = findings(&report.tally);
        }
        Err(failed) => error = Some(failed.to_string()),
    }
    let value = json!({
        "epoch": epoch,
        "error": error,
        "seconds": run.seconds,
        "spilled_bytes": run.spilled,
        "counts": counts.as_ref().map(EpochCounts::from),
        "rejects": rejects,
        "stages": run.stages,
    });
    write_json(path, &value)
}

/// The URLs of input that was left out, with the kinds of findings.
pub(crate) fn left_out(tally: &Tally) -> Vec<serde_json::Value> {
    tally.named().map(|(finding, url)| json!({"kind": finding.name(), "url": url})).collect()
}

/// Counts by kind.
pub(crate) fn findings(tally: &Tally) -> serde_json::Map<String, serde_json::Value> {
    tally.counts().map(|(finding, count)| (finding.name().to_owned(), json!(count))).collect()
}

/// The counts of the parts of findings: the reasons of cut captures, and the methods other than GET.
fn parts(tally: &Tally) -> serde_json::Map<String, serde_json::Value> {
    let mut all = serde_json::Map::new();
    for (finding, _) in tally.counts() {
        let parts = tally.parts(finding).map(|(name, count)| (name.to_owned(), json!(count)));
        let parts: serde_json::Map<String, serde_json::Value> = parts.collect();
        if !parts.is_empty() {
            all.insert(finding.name().to_owned(), parts.into());
        }
    }
    all
}

fn print_text(report: &BuildReport, run: &Run, args: &BuildArgs, out: &mut dyn Write) -> io::Result<()> {
    let counts = &report.counts;
    writeln!(out, "{}: epoch {}, built in {:.1} s", args.out, report.epoch, run.seconds)?;
    print_counts(counts, out)?;
    if let (Some(first), Some(last)) = (counts.first_time, counts.last_time) {
        writeln!(out, "  from {} to {}", format_time(first), format_time(last))?;
    }
    if report.counts.captures == 0 {
        writeln!(out, "  no captures: the store is empty; the input contained only")?;
        return print_tally(&report.tally, out);
    }
    let imbalance = report.largest_over_mean;
    writeln!(out, "  partitions: {}, the largest {imbalance:.2} times the mean", report.partitions)?;
    writeln!(out, "  temporary files: {} written", BinaryBytes(run.spilled))?;
    print_tally(&report.tally, out)
}

pub(crate) fn print_tally(tally: &Tally, out: &mut dyn Write) -> io::Result<()> {
    let findings = |belongs: fn(Finding) -> bool| tally.counts().filter(move |&(finding, _)| belongs(finding));
    let left_out = |finding: Finding| !finding.is_damage() && !finding.is_file() && !finding.is_skipped();
    for (title, belongs) in
        [("damaged, passed over:", Finding::is_damage as fn(Finding) -> bool), ("left out or changed:", left_out)]
    {
        for (index, (finding, count)) in findings(belongs).enumerate() {
            if index == 0 {
                writeln!(out, "{title}")?;
            }
            let parts: Vec<_> =
                tally.parts(finding).map(|(name, count)| format!("{name} {}", HumanCount(count))).collect();
            let parts = if parts.is_empty() { String::new() } else { format!("  {}", parts.join(", ")) };
            writeln!(out, "  {:<26} {:>15}{parts}", finding.name(), HumanCount(count).to_string())?;
        }
    }
    for (finding, url) in tally.named() {
        writeln!(out, "  {}: {url}", finding.name())?;
    }
    let skipped = findings(Finding::is_skipped).map(|(finding, count)| counted(count, finding.name()));
    let skipped: Vec<_> = skipped.collect();
    if !skipped.is_empty() {
        writeln!(out, "skipped: {}", skipped.join(", "))?;
    }
    let files: Vec<_> = findings(Finding::is_file).collect();
    if !files.is_empty() {
        let counts = files.iter().map(|&(finding, count)| counted(count, finding.name()));
        writeln!(out, "files not read: {}", counts.collect::<Vec<_>>().join(", "))?;
    }
    let not_read = tally.files();
    for file in not_read.iter().take(FILES_SHOWN) {
        writeln!(out, "  {}: {}: {}", file.path.display(), file.finding.name(), file.detail)?;
    }
    if not_read.len() > FILES_SHOWN {
        writeln!(out, "  and more; --format json lists up to {} of each kind", EXAMPLES_PER_KIND_MAX)?;
    }
    let all = tally.examples();
    let shown: Vec<_> =
        all.chunk_by(|a, b| a.finding == b.finding).flat_map(|kind| kind.iter().take(PLACES_SHOWN)).collect();
    if !shown.is_empty() {
        writeln!(out, "first damaged places of each kind (file, offset):")?;
    }
    for example in &shown {
        writeln!(
            out,
            "  {} {}: {}: {}",
            example.path.display(),
            example.offset,
            example.finding.name(),
            example.detail
        )?;
    }
    if all.len() > shown.len() {
        writeln!(out, "  and more; --format json lists up to {} of each kind", EXAMPLES_PER_KIND_MAX)?;
    }
    Ok(())
}

/// The report of a build or an update as JSON.
pub(crate) fn json_of(report: &BuildReport, run: &Run, store: &Location) -> serde_json::Value {
    let damaged: Vec<_> = report
        .tally
        .examples()
        .iter()
        .map(|place| {
            let (kind, file) = (place.finding.name(), place.path.display().to_string());
            json!({"kind": kind, "file": file, "offset": place.offset, "detail": place.detail})
        })
        .collect();
    let not_read: Vec<_> = report
        .tally
        .files()
        .iter()
        .map(
            |file| json!({"kind": file.finding.name(), "file": file.path.display().to_string(), "detail": file.detail}),
        )
        .collect();
    json!({
        "store": store.to_string(),
        "epoch": report.epoch,
        "seconds": run.seconds,
        "counts": EpochCounts::from(&report.counts),
        "partitions": report.partitions,
        "largest_over_mean": report.largest_over_mean,
        "spilled_bytes": run.spilled,
        "captures_read": report.captures_read,
        "captures_stored": report.captures_stored,
        "findings": findings(&report.tally),
        "damaged": report.tally.damaged(),
        "damaged_places": damaged,
        "files_not_read": not_read,
        "left_out": left_out(&report.tally),
        "findings_by_part": parts(&report.tally),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_add_to_anchors() {
        assert_eq!(kinds(&[]), None);
        assert_eq!(kinds(&[Kind::Anchors]), Some(LinkKinds::default()));
        let redirects = kinds(&[Kind::Redirects]).unwrap();
        assert!(redirects.anchors && redirects.redirects && !redirects.embeds && !redirects.outlinks);
        assert!(!kinds(&[Kind::Outlinks, Kind::NoAnchors]).unwrap().anchors);
        assert!(kinds(&[Kind::Via]).unwrap().via && !redirects.via);
    }

    #[test]
    fn the_report_names_damage_with_file_and_offset() {
        let mut tally = Tally::default();
        for offset in 0..12 {
            tally.damage(Finding::Truncated, "a.warc".as_ref(), offset, "ends in a header");
        }
        tally.damage(Finding::BadDate, "b.warc".as_ref(), 7, "2014-01");
        tally.count(Finding::NotHtml);
        tally.count_many(Finding::Request, 2808);
        tally.count(Finding::FileInfo);
        let mut out = Vec::new();
        print_tally(&tally, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let places = "  a.warc 1: truncated: ends in a header\n  b.warc 7: bad date: 2014-01\n  and more";
        assert!(text.contains(places), "{text}");
        assert!(!text.contains("a.warc 2:"), "{text}");
        assert!(text.contains("left out or changed:\n  not HTML"), "{text}");
        assert!(text.contains("\nskipped: 2,808 request records, 1 warcinfo record\n"), "{text}");
    }
}
