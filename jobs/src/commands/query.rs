//! `webstrata query`: reads questions as JSON lines, and writes answers as JSON lines in the same order.
//!
//! A store is asked one question after the other. Servers are asked all questions that have arrived, at most [`BATCH`]
//! at once; these questions and their answers are in memory. No question waits for another question: output is buffered
//! while more whole lines have arrived, and flushed when none has, so that a program can talk to `query` through a pair
//! of pipes. A line that is not a question gets an answer that says so, and the next line is read. The run ends early
//! only if a store or a stream cannot be read, or if servers fail.

use crate::args::{Outcome, size};
use crate::ask::{self, Ambiguous, NotInStore, SourceArgs};
use clap::Args;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use webstrata_layers::answers::lines::Answered;
use webstrata_layers::read::question::lines::{Line, Lines};
use webstrata_layers::read::question::{Asked, Kind, Matching, Meant};
use webstrata_layers::{
    Direction, Links, PageLinks, Precision, Spelled, Uid, Way, Window, answer_of, captures_of_page,
};
use webstrata_serve::answering::{Answering, BATCH, Long};
use webstrata_serve::clerk::{Refused, Remote};
use webstrata_url::{canonical, meant};

const FORMS: &str = r#"Each input line is one query, of 65,536 bytes at most:
  {"id", "op": "links", "url", "direction": "out"|"in", "from", "to"}
        links of captures in [from, to]; "from" and "to" may be omitted
  {"id", "op": "links", "url", "direction": "out"|"in", "at", "max_age", "failures"}
        links of the latest capture at or before "at"; "max_age" (as "30d") and
        "failures" ("end", "ignore", "all") may be omitted
  {"id", "op": "captures", "url"}
        times of the captures of a page
With "match": "surt", a query asks all spellings of the page together. For a
"url" without a scheme, http and https are tried, as `webstrata links` does.
Each output line is one answer, in the same order:
  {"id", "links": [URL, ...]}   {"id", "captures": [TIME, ...]}
  {"id", "error": TEXT}         {"line": NUMBER, "error": TEXT}
"unknown" in an answer means that links are not known. For a query with "at",
it is true for the links of a page; with "direction": "in", it lists the pages
that may link: they linked in some capture, and their links are unknown at "at".
For a query for captures it is a list of captures.

Examples:
  webstrata query STORE < queries.jsonl > answers.jsonl
  webstrata query --server 127.0.0.1:7400 < queries.jsonl"#;

/// Arguments of `query`.
#[derive(Args, Debug)]
#[command(after_help = FORMS)]
pub(crate) struct QueryArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    /// Memory for recently read pages, if the store has no cells
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = size)]
    pub(crate) memory: usize,
}

pub(crate) fn run(args: &QueryArgs, questions: impl Read, out: &mut dyn Write) -> anyhow::Result<Outcome> {
    match args.source.servers()? {
        Some(servers) => of_servers(&servers, &mut Questions::new(&servers, questions), out)?,
        None => {
            let links = args.source.open(args.memory)?;
            of_store(&*links, &mut Questions::new(&*links, questions), out)?;
        }
    }
    Ok(Outcome::Done)
}

/// The questions of the input.
struct Questions<'a, R> {
    /// Finds URLs without a scheme.
    links: &'a dyn Links,
    input: BufReader<R>,
    has_ended: bool,
    lines: Lines,
}

impl<'a, R: Read> Questions<'a, R> {
    fn new(links: &'a dyn Links, input: R) -> Self {
        let input = BufReader::with_capacity(1 << 16, input);
        Self { links, input, has_ended: false, lines: Lines::default() }
    }

    /// Waits for the next question; `None` at the end of the input.
    fn next(&mut self) -> anyhow::Result<Option<Asked>> {
        loop {
            if let Some(question) = self.next_buffered()? {
                return Ok(Some(question));
            }
            if self.has_ended {
                return Ok(None);
            }
            let text = match self.input.fill_buf() {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                text => text?,
            };
            self.has_ended = text.is_empty();
            if self.has_ended {
                self.lines.finish();
            } else {
                self.lines.take_in(text);
            }
            let bytes = text.len();
            self.input.consume(bytes);
        }
    }

    /// The next question, if it has already arrived.
    fn next_buffered(&mut self) -> anyhow::Result<Option<Asked>> {
        self.lines.take(1).pop().map(|line| self.question(&line)).transpose()
    }

    /// The next question. Before a wait, the answers are flushed, because the caller may wait for an answer before it
    /// sends the next question or the rest of a line.
    fn next_after(&mut self, out: &mut dyn Write) -> anyhow::Result<Option<Asked>> {
        if let Some(question) = self.next_buffered()? {
            return Ok(Some(question));
        }
        out.flush()?;
        self.next()
    }

    fn question(&self, line: &Line) -> anyhow::Result<Asked> {
        let question = Asked::of(line, |url| canonical(None, url).ok());
        if question.question().is_ok() {
            return Ok(question);
        }
        let Some((text, first)) = Asked::bare(line, |text| meant(text).ok()?.into_iter().next()) else {
            return Ok(question);
        };
        if !first.is_open() {
            return Ok(first);
        }
        let meant = match ask::find(self.links, &text) {
            Ok(found) => Meant::Url(found.url),
            Err(error) if error.is::<NotInStore>() => Meant::Nothing,
            Err(error) if error.is::<Ambiguous>() => Meant::Both,
            Err(error) => return Err(error),
        };
        Ok(first.meaning(&text, meant))
    }
}

fn of_store<R: Read>(links: &dyn Links, questions: &mut Questions<'_, R>, out: &mut dyn Write) -> anyhow::Result<()> {
    while let Some(question) = questions.next_after(out)? {
        write(out, &question.line(links.epoch(), answer(links, &question)?))?;
    }
    Ok(())
}

fn of_servers<R: Read>(servers: &Remote, questions: &mut Questions<'_, R>, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut answering = Answering::new(servers.pinned().clone(), Long::Whole);
    while let Some(first) = questions.next_after(out)? {
        answering.push(first);
        let mut waiting = 1;
        while waiting < BATCH {
            let Some(question) = questions.next_buffered()? else { break };
            answering.push(question);
            waiting += 1;
        }
        while waiting > 0 {
            let answers = servers.wait(answering.next());
            waiting -= answers.len();
            for (question, answer) in answers {
                write(out, &question.line(answering.epoch(), answer.map_err(Refused)?))?;
            }
        }
    }
    Ok(())
}

fn write(out: &mut dyn Write, line: &Answered) -> io::Result<()> {
    serde_json::to_writer(&mut *out, line)?;
    out.write_all(b"\n")
}

/// The answer without its id. Returns an error only if the store cannot be read.
fn answer(links: &dyn Links, question: &Asked) -> anyhow::Result<Answered> {
    let (kind, url) = match question.question() {
        Ok(kind_and_url) => kind_and_url,
        Err(error) => return Ok(Answered::error(error)),
    };
    if question.matching() == Matching::Surt {
        return answer_of_page(links, kind, url);
    }
    let Some(uid) = links.uid(url)? else { return Ok(Answered::not_there()) };
    let (direction, window) = match kind {
        Kind::Captures => return Ok(Answered::captures(&links.captures(uid)?)),
        Kind::Links(direction, window) => (direction, window),
    };
    let found = links.links(uid, way_of(direction), window)?;
    let unknown = ask::unknown(links, uid, way_of(direction), window)?;
    answered(links, &found, direction, &unknown, window)
}

/// The answer about all spellings of a page.
fn answer_of_page(links: &dyn Links, kind: Kind, url: &str) -> anyhow::Result<Answered> {
    let found = links.spellings(&Spelled::new(url, webstrata_url::surt))?;
    if found.is_empty() {
        return Ok(Answered::not_there());
    }
    let (way, window) = match kind {
        Kind::Captures => {
            let lists = found.iter().map(|&uid| links.captures(uid)).collect::<Result<Vec<_>, _>>()?;
            let captures = captures_of_page(lists.iter().map(Vec::as_slice));
            return Ok(Answered::captures_of_page(&captures, &links.urls_of(&found)?));
        }
        Kind::Links(way, window) => (way, window),
    };
    let (uids, unknown) = answer_of(links, PageLinks::new(&found, way_of(way), window))?;
    answered(links, &uids, way, &unknown, window)
}

fn answered(links: &dyn Links, found: &[Uid], way: Way, unknown: &[Uid], window: Window) -> anyhow::Result<Answered> {
    let last_known = ask::last_known(links, unknown, way_of(way), window)?;
    let urls = |uids: &[Uid]| links.urls_of(uids);
    // A link that another spelling of the page has is known.
    let last_known: Vec<Uid> = last_known.into_iter().filter(|link| found.binary_search(link).is_err()).collect();
    Ok(Answered::links(urls(found)?, way, urls(unknown)?, urls(&last_known)?))
}

fn way_of(way: Way) -> Direction {
    if way == Way::Out { Direction::Out } else { Direction::In(Precision::Exact) }
}
