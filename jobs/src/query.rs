//! `webstrata query`: questions as JSON lines in, answers as JSON lines out, in the same order.
//!
//! One question is in memory at a time. Output is buffered while more questions wait and flushed when none does, so
//! that a program can talk to `query` through a pair of pipes. A line that is no question gets an answer that says so,
//! and the next line is read; only an unreadable store or stream ends the run.

use crate::ask::{self, SourceArgs};
use crate::cli::{Outcome, size};
use clap::Args;
use serde_json::{Value, json};
use std::io::{self, BufRead, BufReader, Read, Write};
use webstrata_datasets::canonical;
use webstrata_layers::{Links, Precision, format_time};
use webstrata_serve::question::{Op, Question, Way};

const FORMS: &str = r#"A question is one line:
  {"id", "op": "links", "url", "direction": "out"|"in", "from", "to"}
        links of any capture in [from, to]; both ends may be left out
  {"id", "op": "links", "url", "direction": "out"|"in", "at"}
        links of the latest capture not after that time
  {"id", "op": "captures", "url"}
An answer is one line:
  {"id", "links": [URL, ...]}   {"id", "captures": [TIME, ...]}
  {"id", "error": TEXT}         {"line": NUMBER, "error": TEXT}
"unknown" in an answer: true for as-of links, or a list of captures, where
links are not known.

Example:
  webstrata query STORE < questions.jsonl > answers.jsonl
  webstrata query --server 127.0.0.1:7400 < questions.jsonl"#;

/// Arguments of `query`.
#[derive(Args, Debug)]
#[command(after_help = FORMS)]
pub(crate) struct QueryArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    /// Memory for pages that were read lately, where there are no cells
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = size)]
    pub(crate) memory: usize,
}

pub(crate) fn run(args: &QueryArgs, questions: impl Read, out: &mut dyn Write) -> anyhow::Result<Outcome> {
    let links = args.source.open(args.memory)?;
    answer_all(&*links, questions, out)?;
    Ok(Outcome::Done)
}

fn answer_all(links: &dyn Links, questions: impl Read, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut questions = BufReader::with_capacity(1 << 16, questions);
    let mut line = Vec::new();
    let mut number = 0u64;
    while questions.read_until(b'\n', &mut line)? > 0 {
        number += 1;
        if !line.trim_ascii().is_empty() {
            serde_json::to_writer(&mut *out, &answer_line(links, &line, number)?).map_err(io::Error::from)?;
            out.write_all(b"\n")?;
            // Whoever asks may wait for this answer before the next question.
            if questions.buffer().is_empty() {
                out.flush()?;
            }
        }
        line.clear();
    }
    Ok(())
}

/// The answer to one line; an error only where the store cannot be read.
fn answer_line(links: &dyn Links, line: &[u8], number: u64) -> anyhow::Result<Value> {
    let error = match serde_json::from_slice::<Question>(line) {
        Ok(question) => match answer(links, &question)? {
            Ok(mut answer) => {
                answer["id"] = question.id;
                answer["epoch"] = json!(links.epoch());
                return Ok(answer);
            }
            Err(error) => error,
        },
        Err(error) => format!("not a question: {error}"),
    };
    let id = serde_json::from_slice::<Value>(line).ok().and_then(|value| value.get("id").cloned());
    Ok(match id {
        Some(id) => json!({"id": id, "epoch": links.epoch(), "error": error}),
        None => json!({"line": number, "epoch": links.epoch(), "error": error}),
    })
}

/// The answer without its id, or what is wrong with the question.
fn answer(links: &dyn Links, question: &Question) -> anyhow::Result<Result<Value, String>> {
    let window = match question.window() {
        Ok(window) => window,
        Err(error) => return Ok(Err(error)),
    };
    let Ok(url) = canonical(None, &question.url) else {
        return Ok(Err(format!("not an http or https URL: {}", question.url)));
    };
    let Some(uid) = links.uid(&url)? else {
        return Ok(Err("url not in store".to_owned()));
    };
    if matches!(question.op, Op::Captures) {
        let captures = links.captures(uid)?;
        let times: Vec<_> = captures.iter().map(|capture| format_time(capture.time)).collect();
        let unknown: Vec<_> = captures.iter().filter(|c| !c.known).map(|c| format_time(c.time)).collect();
        let mut answer = json!({"captures": times});
        if !unknown.is_empty() {
            answer["unknown"] = json!(unknown);
        }
        return Ok(Ok(answer));
    }
    let found = match question.direction {
        Way::Out => links.out_links(uid, window)?,
        Way::In => links.in_links(uid, window, Precision::Exact)?,
    };
    let urls = links.urls_of(&found)?;
    let mut answer = json!({"links": urls});
    if matches!(question.direction, Way::Out) && ask::is_unknown(links, uid, window)? {
        answer["unknown"] = json!(true);
    }
    Ok(Ok(answer))
}
