//! `webstrata demo`: a small made-up crawl, built and asked three questions, each shown as the command to type.
//!
//! What runs is what the shown commands run: the demo calls the same functions with the same arguments.

use crate::args::Outcome;
use crate::ask;
use crate::commands::build::BuildArgs;
use crate::commands::{build, generate, links};
use crate::running::RunArgs;
use anyhow::{Context, bail};
use clap::{Args, Parser};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use webstrata_layers::{Links, Precision, Reader, Store, Uid, Window, format_time};

/// How many lines of an answer are shown.
const LINES_SHOWN: usize = 12;
/// How many URLs are looked at for good examples.
const URLS_SEEN: u64 = 3000;

/// Arguments of `demo`.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  webstrata demo --dir /tmp/try-webstrata")]
pub(crate) struct DemoArgs {
    /// Directory for the crawl and the store [default: a new temporary directory]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

pub(crate) fn run(args: &DemoArgs, out: &mut dyn Write) -> anyhow::Result<Outcome> {
    let dir = match &args.dir {
        Some(dir) => {
            fs::create_dir_all(dir).with_context(|| dir.display().to_string())?;
            dir.clone()
        }
        None => tempfile::Builder::new().prefix("webstrata-demo-").tempdir().context("temporary directory")?.keep(),
    };
    let (crawl, store) = (quoted(&dir.join("crawl.warc")), quoted(&dir.join("store")));

    writeln!(out, "A made-up web of a few hosts, crawled every month for a year, as a WARC file:\n")?;
    let size = "uk:occurrences=40000,seed=2006 --as warc";
    step(out, &format!("webstrata generate {size} --out {crawl}"))?;
    writeln!(out, "\nThe crawl becomes a store: Parquet files with every link and when it was there.\n")?;
    step(out, &format!("webstrata build --out {store} {crawl}"))?;

    let reader = Reader::new(Store::open(dir.join("store"))?, ask::READ_MEMORY);
    let Some(examples) = Examples::find(&reader)? else {
        bail!("no page of the demo crawl changes; please report this");
    };
    let Examples { page, from, to, target, at } = &examples;
    writeln!(out, "\n1. What did a page link to between two dates?\n")?;
    step(out, &format!("webstrata links {store} {page} --from {from} --to {to}"))?;
    writeln!(out, "\n2. Who linked to a page, as of a date?\n")?;
    step(out, &format!("webstrata links {store} {target} --in --at {at}"))?;
    writeln!(out, "\n3. How long did each link of a page live? (first capture, last capture)\n")?;
    step(out, &format!("webstrata links {store} {page} --lifespans"))?;

    writeln!(
        out,
        "\nWhat to try next:
  webstrata captures {store} {page}
  webstrata info {store}
  webstrata check {store}
  webstrata links {store} {target} --in --lifespans --format json
  webstrata serve {store}
  curl -G http://127.0.0.1:7400/v1/links --data-urlencode url={page}
  webstrata build --out STORE YOUR-CRAWL.warc.gz
  webstrata help
Or read the Parquet files in {store}/rows with DuckDB, pandas or Polars.
All of this lies in {}; remove it when you are done.",
        quoted(&dir)
    )?;
    Ok(Outcome::Done)
}

/// Shows a command, runs it, and shows the first lines of what it prints.
fn step(out: &mut dyn Write, command: &str) -> anyhow::Result<()> {
    writeln!(out, "$ {command}")?;
    out.flush()?;
    let words = unquoted(command);
    let mut answer = Vec::new();
    let Some((_, of_command)) = words.split_first() else { return Ok(()) };
    match of_command.first().map(String::as_str) {
        Some("generate") => generate::run(&parsed(of_command)?, &mut answer)?,
        Some("build") => {
            let args: BuildArgs = parsed(of_command)?;
            let run = RunArgs { workers: Some(args.run.workers.unwrap_or(2)), ..args.run };
            build::run(&BuildArgs { run, ..args }, &mut answer)?
        }
        Some("links") => links::run(&parsed(of_command)?, &mut answer)?,
        other => bail!("the demo does not run {other:?}"),
    };
    let text = String::from_utf8_lossy(&answer);
    let lines: Vec<_> = text.lines().collect();
    for line in lines.iter().take(LINES_SHOWN) {
        writeln!(out, "{line}")?;
    }
    if lines.len() > LINES_SHOWN {
        writeln!(out, "... and {} more", lines.len() - LINES_SHOWN)?;
    }
    Ok(())
}

/// The arguments of a subcommand, whose name is the first word.
fn parsed<A: Args>(words: &[String]) -> anyhow::Result<A> {
    #[derive(Parser)]
    struct Only<A: Args> {
        #[command(flatten)]
        args: A,
    }
    Ok(Only::try_parse_from(words)?.args)
}

/// The arguments of the demo's questions, as a person types them.
struct Examples {
    page: String,
    from: String,
    to: String,
    target: String,
    at: String,
}

impl Examples {
    /// Looks for a page whose links change, and for a URL whose sources change; `None` if there are none.
    fn find(reader: &Reader) -> anyhow::Result<Option<Examples>> {
        let counts = reader.store().manifest().counts;
        let (first, last) = (counts.first_time.unwrap_or(0), counts.last_time.unwrap_or(0));
        let third = (last - first) / 3;
        let (from, to, at) = (month(first + third), month(last - third), day(first + third * 2));
        let middle = Window::Seen { from: first + third, to: last - third };
        let (mut page, mut target) = (None, None);
        for uid in Uid::each(Uid::below(counts.urls.min(URLS_SEEN))) {
            let lifespans = reader.lifespans(uid)?;
            let changing =
                lifespans.iter().filter(|span| span.first > first + third || span.last < last - third).count();
            if reader.captures(uid)?.len() >= 3 && changing > 0 {
                let links = reader.out_links(uid, middle)?.len();
                keep_best(&mut page, distance(links, 8) + distance(changing, 3), uid);
            }
            let sources = reader.in_links(uid, Window::as_of(first + third * 2), Precision::Exact)?.len();
            if sources > 0 {
                keep_best(&mut target, distance(sources, 8), uid);
            }
        }
        let (Some((_, page)), Some((_, target))) = (page, target) else { return Ok(None) };
        let (page, target) = (quoted(Path::new(&reader.url(page)?)), quoted(Path::new(&reader.url(target)?)));
        Ok(Some(Examples { page, from, to, target, at }))
    }
}

fn distance(have: usize, want: usize) -> usize {
    have.abs_diff(want)
}

fn keep_best(best: &mut Option<(usize, Uid)>, cost: usize, uid: Uid) {
    if best.is_none_or(|(least, _)| cost < least) {
        *best = Some((cost, uid));
    }
}

fn month(time: i64) -> String {
    format_time(time).chars().take(7).collect()
}

fn day(time: i64) -> String {
    format_time(time).chars().take(10).collect()
}

/// A word as a POSIX shell reads it back.
fn quoted(word: &Path) -> String {
    let word = word.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:,@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) { word } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

/// The words of a command line made with [`quoted`].
fn unquoted(command: &str) -> Vec<String> {
    let (mut words, mut word, mut inside, mut escaped) = (Vec::new(), String::new(), false, false);
    for c in command.chars() {
        match c {
            _ if escaped => {
                word.push(c);
                escaped = false;
            }
            '\\' if !inside => escaped = true,
            '\'' => inside = !inside,
            ' ' if !inside => words.push(std::mem::take(&mut word)),
            _ => word.push(c),
        }
    }
    words.push(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_words_come_back() {
        for word in ["http://a.example/x?a=1&b=2", "it's here", "/plain/path", "~tilde", ""] {
            assert_eq!(unquoted(&format!("webstrata {}", quoted(Path::new(word)))), ["webstrata", word]);
        }
        assert_eq!(quoted(Path::new("http://a.example/x.html")), "http://a.example/x.html");
    }
}
