//! `/cdx`: captures as a CDX server lists them, so that its clients read them.
//!
//! ```text
//! spellings of a page, or URLs that match --> captures --> filter --> collapse --> limit --> lines
//! ```
//!
//! Captures of a page are in order of time, those of several pages in order of UIDs, then of time. The fields
//! `mimetype`, `digest` and `length` are `-`: a store has links, not records. Without `limit` all captures are listed;
//! the answer is sent as it is made. A resume key is the position of the last line, from which collapsing goes on.
//! Memory: [`CHUNK`] captures; the captures of all spellings of one page; the last lines, with a negative limit.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use futures_util::stream::{once, try_unfold};
use futures_util::{StreamExt, future};
use regex_lite::Regex;
use serde_json::json;
use tonic::Status;
use webstrata_layers::{CaptureTime, Uid, format_digits};

use crate::clerk::Pinned;
use crate::http::answer::Answer;
use crate::http::answer::walk::{Match, Walk};
use crate::http::names::captures_of;
use crate::http::question::address::meant;
use crate::http::question::params::Params;
use crate::http::question::resume::{PagePosition, Start};
use crate::http::{Refused, pinned};
use crate::protocol::status::bad;
use crate::server::Shared;

pub(in crate::http) const CDX: &[&str] = &[
    "url",
    "matchType",
    "from",
    "to",
    "limit",
    "filter",
    "collapse",
    "fl",
    "output",
    "gzip",
    "showResumeKey",
    "resumeKey",
    "epoch",
];

/// Captures that are looked up together, at most.
const CHUNK: usize = 4096;
/// The largest `limit`, and the largest negative one.
const LIMITS: [u64; 2] = [1_000_000_000, 100_000];
/// Bytes of a filter, at most.
const FILTER_BYTES: usize = 256;

/// A field of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Urlkey,
    Timestamp,
    Original,
    Mimetype,
    Statuscode,
    Digest,
    Length,
}

impl Field {
    const ALL: [Self; 7] =
        [Self::Urlkey, Self::Timestamp, Self::Original, Self::Mimetype, Self::Statuscode, Self::Digest, Self::Length];

    fn name(self) -> &'static str {
        match self {
            Self::Urlkey => "urlkey",
            Self::Timestamp => "timestamp",
            Self::Original => "original",
            Self::Mimetype => "mimetype",
            Self::Statuscode => "statuscode",
            Self::Digest => "digest",
            Self::Length => "length",
        }
    }

    fn parse(parameter: &str, text: &str) -> Result<Self, Status> {
        let found = Self::ALL.into_iter().find(|field| field.name() == text);
        found.ok_or_else(|| {
            let all = Self::ALL.map(Self::name).join(", ");
            bad(format!("{parameter}: no such field: {text:?} (expected {all})"))
        })
    }

    fn of(self, line: &Line) -> String {
        match self {
            Self::Urlkey => webstrata_url::surt(&line.url),
            Self::Timestamp => format_digits(line.capture.time),
            Self::Original => line.url.to_string(),
            Self::Statuscode => line.capture.status.code().to_string(),
            Self::Mimetype | Self::Digest | Self::Length => "-".to_owned(),
        }
    }
}

/// A capture of a URL.
#[derive(Clone, Debug)]
struct Line {
    url: Arc<str>,
    capture: CaptureTime,
    position: PagePosition,
}

/// Keeps the lines whose field matches, or does not match.
struct Filter {
    field: Field,
    is_negative: bool,
    pattern: Regex,
}

impl Filter {
    /// Parses `[!]field:pattern`.
    fn parse(text: &str) -> Result<Self, Status> {
        let is_negative = text.starts_with('!');
        let Some((field, pattern)) = text[usize::from(is_negative)..].split_once(':') else {
            return Err(bad(format!("filter: {text:?} (expected as statuscode:200 or !statuscode:200)")));
        };
        let pattern = (pattern.len() <= FILTER_BYTES).then(|| Regex::new(&format!("^(?:{pattern})$")).ok()).flatten();
        let pattern = pattern.ok_or_else(|| bad(format!("filter: not a regular expression: {text:?}")))?;
        Ok(Self { field: Field::parse("filter", field)?, is_negative, pattern })
    }

    fn keeps(&self, line: &Line) -> bool {
        self.pattern.is_match(&self.field.of(line)) != self.is_negative
    }
}

/// Keeps the first of adjacent lines that have the same field, or the same beginning of it.
struct Collapse {
    field: Field,
    length: usize,
    before: Option<String>,
}

impl Collapse {
    /// Parses `field` or `field:length`.
    fn parse(text: &str) -> Result<Self, Status> {
        let (field, length) = text.split_once(':').unwrap_or((text, ""));
        let length = match length {
            "" if field == text => Some(usize::MAX),
            _ => length.parse().ok().filter(|length| *length > 0),
        };
        let length = length.ok_or_else(|| bad(format!("collapse: {text:?} (expected as timestamp:4 or urlkey)")))?;
        Ok(Self { field: Field::parse("collapse", field)?, length, before: None })
    }

    fn keeps(&mut self, line: &Line) -> bool {
        let value: String = self.field.of(line).chars().take(self.length).collect();
        let keeps = self.before.as_ref() != Some(&value);
        self.before = Some(value);
        keeps
    }
}

/// How many lines are listed.
enum Limit {
    All,
    /// The first, of which so many are left.
    First(u64),
    /// The last.
    Last(usize),
}

impl Limit {
    fn of(params: &Params) -> Result<Self, Status> {
        let [first, last] = LIMITS;
        let number = |text: &str, most| text.parse().ok().filter(|number| (1..=most).contains(number));
        let Some(text) = params.get("limit")? else { return Ok(Self::All) };
        let limit = match text.strip_prefix('-') {
            Some(text) => number(text, last).and_then(|number| usize::try_from(number).ok()).map(Self::Last),
            None => number(text, first).map(Self::First),
        };
        limit.ok_or_else(|| bad(format!("limit: {text:?} is not a number from 1 to {first}, or from -{last} to -1")))
    }
}

/// Which URLs match, and the URL: `matchType`, or `example.org/*` and `*.example.org`. A page is all its spellings.
fn matched<'a>(params: &Params, text: &'a str) -> Result<(Match, &'a str), Status> {
    let words = [("exact", Match::Surt), ("prefix", Match::Prefix), ("host", Match::Host), ("domain", Match::Domain)];
    let matched = params.choice("matchType", words)?;
    if params.get("matchType")?.is_some() {
        return Ok((matched, text));
    }
    Ok(match (text.strip_suffix('*'), text.strip_prefix("*.")) {
        (_, Some(domain)) => (Match::Domain, domain.trim_end_matches('*').trim_end_matches('/')),
        (Some(prefix), None) => (Match::Prefix, prefix),
        (None, None) => (Match::Surt, text),
    })
}

/// Where captures come from.
enum Source {
    /// Those of one page, once.
    Page(Vec<Line>),
    /// Those of URLs that match.
    Walk {
        uid_intervals: Vec<Range<Uid>>,
        from: PagePosition,
    },
    Ended,
}

impl Source {
    async fn of_page(pinned: &Pinned, url: &str, question: &Question) -> Result<Self, Status> {
        let spellings = pinned.spellings(&meant(url)?.swap_remove(0)).await?;
        let (captures, urls) = tokio::try_join!(pinned.captures_of_page(&spellings), pinned.urls(&spellings))?;
        let urls: Vec<Arc<str>> = urls.into_iter().map(Arc::from).collect();
        let (from, to) = question.interval;
        let in_interval = captures.into_iter().filter(|(capture, _)| (from..=to).contains(&capture.time));
        let lines = in_interval.enumerate().map(|(sent, (capture, spelling))| {
            let position = PagePosition { uid: Uid(0), sent };
            Line { url: urls[spelling].clone(), capture, position }
        });
        Ok(Self::Page(lines.skip(question.position.sent).collect()))
    }

    /// The next captures, at most about `count`; `None` at the end.
    async fn next(&mut self, question: &Question, count: usize) -> Result<Option<Vec<Line>>, Status> {
        match std::mem::replace(self, Self::Ended) {
            Self::Page(lines) => Ok(Some(lines)),
            Self::Ended => Ok(None),
            Self::Walk { uid_intervals, from } => {
                let mut answer = Answer::sized(from, count, question.bytes);
                let mut walk =
                    Walk::new(question.pinned.clone(), uid_intervals.clone(), Some(question.interval), from.uid);
                captures_of(&question.pinned, &mut walk, question.interval, &mut answer).await?;
                if let Some(from) = answer.next_page {
                    *self = Self::Walk { uid_intervals, from };
                }
                let lines = answer.items.into_iter().flat_map(|item| {
                    let sent = if item.uid == from.uid { from.sent } else { 0 };
                    let (url, uid) = (Arc::<str>::from(item.url), item.uid);
                    let line =
                        move |(sent, capture)| Line { url: url.clone(), capture, position: PagePosition { uid, sent } };
                    (sent..).zip(item.values).map(line)
                });
                Ok(Some(lines.collect()))
            }
        }
    }
}

/// A question, without what changes while it is answered.
struct Question {
    pinned: Pinned,
    start: Start,
    position: PagePosition,
    interval: (i64, i64),
    /// Bytes of the text of a chunk.
    bytes: usize,
    fields: Vec<Field>,
    is_json: bool,
    /// Whether the answer ends with the key of the next page.
    shows_key: bool,
}

/// One answer, as far as it is made.
struct Listing {
    question: Question,
    source: Source,
    filters: Vec<Filter>,
    collapses: Vec<Collapse>,
    limit: Limit,
    /// Whether the first line that comes was the last one of the page before.
    continues: bool,
    /// The position of the last line.
    last: Option<PagePosition>,
    /// The last lines, with a negative limit.
    kept: VecDeque<Line>,
    has_lines: bool,
    is_ended: bool,
}

impl Listing {
    /// The text of the next lines; `None` at the end.
    async fn next(&mut self) -> Result<Option<String>, Status> {
        let mut out = String::new();
        while out.is_empty() {
            if self.is_ended {
                return Ok(None);
            }
            let count = match self.limit {
                Limit::First(left) if self.filters.is_empty() && self.collapses.is_empty() => {
                    usize::try_from(left).unwrap_or(CHUNK).saturating_add(2).min(CHUNK)
                }
                _ => CHUNK,
            };
            match self.source.next(&self.question, count).await? {
                Some(lines) => self.take(lines, &mut out),
                None => {
                    let kept = std::mem::take(&mut self.kept);
                    kept.iter().for_each(|line| self.write(line, &mut out));
                    self.end(None, &mut out);
                }
            }
        }
        Ok(Some(out))
    }

    fn take(&mut self, lines: Vec<Line>, out: &mut String) {
        for line in lines {
            if std::mem::take(&mut self.continues) {
                self.last = Some(line.position);
                self.collapses.iter_mut().for_each(|collapse| {
                    collapse.keeps(&line);
                });
                continue;
            }
            if !self.filters.iter().all(|filter| filter.keeps(&line)) {
                continue;
            }
            if !self.collapses.iter_mut().all(|collapse| collapse.keeps(&line)) {
                continue;
            }
            match &mut self.limit {
                Limit::All => self.write(&line, out),
                Limit::Last(count) => {
                    if self.kept.len() == *count {
                        self.kept.pop_front();
                    }
                    self.kept.push_back(line);
                }
                Limit::First(0) => {
                    self.end(self.last, out);
                    return;
                }
                Limit::First(left) => {
                    *left -= 1;
                    let is_enough = *left == 0 && !self.question.shows_key;
                    self.write(&line, out);
                    if is_enough {
                        self.end(None, out);
                        return;
                    }
                }
            }
        }
    }

    fn write(&mut self, line: &Line, out: &mut String) {
        self.last = Some(line.position);
        let question = &self.question;
        let values: Vec<String> = question.fields.iter().map(|field| field.of(line)).collect();
        if !question.is_json {
            out.push_str(&values.join(" "));
            out.push('\n');
        } else {
            if !self.has_lines {
                let names: Vec<&str> = question.fields.iter().map(|field| field.name()).collect();
                out.push_str(&format!("[{}", json!(names)));
            }
            out.push_str(&format!(",\n{}", json!(values)));
        }
        self.has_lines = true;
    }

    /// Ends the answer, with the key of the lines after a position.
    fn end(&mut self, after: Option<PagePosition>, out: &mut String) {
        let key = after.map(|position| self.question.start.key(self.question.pinned.epoch(), position));
        let text = match (self.question.is_json, key) {
            (false, None) => String::new(),
            (false, Some(key)) => format!("\n{key}\n"),
            (true, None) if self.has_lines => "]\n".to_owned(),
            (true, None) => "[]\n".to_owned(),
            (true, Some(key)) => format!(",\n[],\n{}]\n", json!([key])),
        };
        out.push_str(&text);
        self.is_ended = true;
    }
}

/// `/cdx`.
pub(in crate::http) async fn cdx(State(shared): State<Shared>, RawQuery(query): RawQuery) -> Result<Response, Refused> {
    let params = Params::of(query.as_deref(), CDX, &["filter", "collapse"])?;
    let start = Start::of(shared.cluster.store(), "/cdx", &params)?;
    let (matched, url) = matched(&params, params.required("url")?)?;
    let limit = Limit::of(&params)?;
    if start.position.is_some() && matches!(limit, Limit::Last(_)) {
        return Err(bad("limit: a negative limit cannot be combined with resumeKey").into());
    }
    // How an answer is compressed, its header Accept-Encoding says; clients of other servers say it here, too.
    params.flag("gzip")?;
    let fields = params.get("fl")?.map(|text| text.split(',').map(|field| Field::parse("fl", field)).collect());
    let question = Question {
        pinned: pinned(&shared, start.epoch).await?,
        start,
        position: start.position.unwrap_or_default(),
        interval: params.interval()?.unwrap_or((i64::MIN, i64::MAX)),
        bytes: shared.bounds.values.saturating_mul(size_of::<u64>()),
        fields: fields.unwrap_or_else(|| Ok(Field::ALL.to_vec()))?,
        is_json: params.choice("output", [("text", false), ("json", true)])?,
        shows_key: params.flag("showResumeKey")?,
    };
    let source = match matched {
        Match::Exact | Match::Surt => Source::of_page(&question.pinned, url, &question).await?,
        Match::Prefix | Match::Host | Match::Domain => {
            let uid_intervals = matched.uid_intervals(&question.pinned, url).await?;
            Source::Walk { uid_intervals, from: question.position }
        }
    };
    let mut listing = Listing {
        source,
        filters: params.all("filter").map(Filter::parse).collect::<Result<_, _>>()?,
        collapses: params.all("collapse").map(Collapse::parse).collect::<Result<_, _>>()?,
        limit,
        continues: question.start.position.is_some(),
        last: None,
        kept: VecDeque::new(),
        has_lines: false,
        is_ended: false,
        question,
    };
    let content_type = if listing.question.is_json { "application/json" } else { "text/plain; charset=utf-8" };
    // What is refused at once is told; a later failure cuts the answer.
    let Some(first) = listing.next().await? else { return Ok(([(CONTENT_TYPE, content_type)], "").into_response()) };
    let rest =
        try_unfold(
            listing,
            |mut listing| async move { Ok::<_, Status>(listing.next().await?.map(|text| (text, listing))) },
        );
    let body = Body::from_stream(once(future::ready(Ok(first))).chain(rest));
    Ok(([(CONTENT_TYPE, content_type)], body).into_response())
}
