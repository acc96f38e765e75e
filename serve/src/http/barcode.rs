//! `/v1/barcode`: when each link of a page was there, in columns; or when each page linked to a URL. A picture is drawn
//! from the answer, so the answer is small: times are differences, and runs of captures are pairs of counts.
//!
//! ```text
//! direction=out   captures -> runs of each link, as indexes of captures
//! direction=in    captures of the URL, and for each page that links: runs as times (first, last, gone)
//! ```
//!
//! A run goes from the first to the last of consecutive captures with the link. It passes over captures with unknown
//! links and over failures that do not end a page. With direction=out, it ends before a cut capture in which the link
//! was not found ([`webstrata_layers::Spans::Runs`]); with direction=in, it is a [`webstrata_layers::Lifespan`]. `gone`
//! is the first capture after the run that shows the page without the link. `replay` is the prefix of the URLs of
//! mementos, before the 14 digits of a capture.
//!
//! The answer has at most `limit` rows: the rows with the longest runs in total. For the other rows, the answer has
//! their number, and how many of them had the link in each month: in a run, or, with direction=in, in a capture. Cost:
//! the lifespans of the page, or of every page that links. With more than `limit` pages that link, the ranges of the
//! in-links give their number by month and select the rows, so only the pages in the answer are read. The number of
//! pages that link says first whether an answer can have them. [`svg`] draws the answer.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};

use axum::extract::{RawQuery, State};
use axum::response::Response;
use tonic::Status;
use webstrata_layers::answers::barcode as answers;
use webstrata_layers::record::capture::{gone_after, telling};
use webstrata_layers::record::join::with_sources;
use webstrata_layers::{
    CaptureTime, Direction, InLinks, Lifespan, Precision, RangeLength, Spans, Uid, Way, Window, format_digits,
};

use super::answer::text::told;
use super::describe::{Call, call};
use super::question::address::find;
use super::question::parameter::{Parameter, number};
use super::question::parameters::{DIRECTION, EPOCH, URL};
use super::question::params::Params;
use super::{Refused, pinned};
use crate::clerk::Pinned;
use crate::guard::limits::Bounds;
use crate::protocol::status::fits_in_parts;
use crate::shared::Shared;

pub(super) mod svg;

const LIMIT: Parameter = number(
    "limit",
    "The most rows in the answer. Rows whose runs are longest in all are kept. 0: as many as one answer may have.",
    0,
    100_000,
)
.default(5_000)
.example(&["100"]);
pub(super) const BARCODE: Call = call::<answers::Barcode>(
    "barcode",
    "When each link of a page was there, or each page that links to a URL, in columns for pictures.",
    &[URL, DIRECTION, LIMIT, EPOCH],
);

/// The number of pages per batch of questions for lifespans.
const SOURCES: usize = 1000;
/// The least number of values of a row in the answer: a URL, a run, a count and a time.
const ROW: usize = 8;

/// Rows that are not in an answer.
#[derive(Default)]
struct Rest {
    links: usize,
    /// The number of these rows that had the link, by the first second of the month.
    months: BTreeMap<i64, u64>,
}

impl Rest {
    fn shown(&self) -> Option<answers::Rest> {
        let month = |(start, links): (&i64, &u64)| {
            let digits = format_digits(*start);
            (format!("{}-{}", &digits[..4], &digits[4..6]), *links)
        };
        let months = || self.months.iter().map(month).collect();
        (self.links > 0).then(|| answers::Rest { links: self.links, months: months() })
    }
}

/// The rows of an answer: the link of each row, and its runs, one after the other.
#[derive(Default)]
struct Rows {
    links: Vec<Uid>,
    counts: Vec<usize>,
    runs: Vec<i64>,
}

impl Rows {
    fn push(&mut self, link: Uid, count: usize, runs: impl Iterator<Item = i64>) {
        self.links.push(link);
        self.counts.push(count);
        self.runs.extend(runs);
    }
}

/// A page over time.
struct Barcode {
    url: String,
    uid: Uid,
    is_inward: bool,
    captures: Vec<CaptureTime>,
    rows: Rows,
    rest: Rest,
    /// For pages that link: the first capture of each page that tells its links.
    found: Vec<i64>,
}

impl Barcode {
    async fn of(pinned: &Pinned, params: &Params, limit: usize, bounds: Bounds) -> Result<Self, Status> {
        let is_inward = params.word::<Way>("direction")? == Way::In;
        let (url, uid) = find(pinned, params.required("url")?).await?;
        let captures = pinned.captures(&[uid]).await?.into_values();
        let mut found = Vec::new();
        let (rows, rest) = if is_inward {
            let number = pinned.degrees(&[uid], Direction::In(Precision::Exact), Window::ALWAYS).await?;
            let number = number.first().map_or(0, |&number| usize::try_from(number).unwrap_or(usize::MAX));
            // To select the rows, all pages that link are read in one answer of a cell.
            let read = if number > limit { number } else { 0 };
            bounds.admit_values(read.saturating_add(number.min(limit).saturating_mul(ROW)))?;
            inward_rows(pinned, uid, limit, &mut found).await?
        } else {
            outward_rows(&captures, pinned.spans(&[uid], Spans::Runs).await?.values(), limit)
        };
        Ok(Self { url, uid, is_inward, captures, rows, rest, found })
    }
}

/// `/v1/barcode`.
pub(super) async fn barcode(State(shared): State<Shared>, RawQuery(query): RawQuery) -> Result<Response, Refused> {
    let params = Params::of(query.as_deref(), BARCODE.parameters)?;
    let limit = params.limit()?;
    let pinned = pinned(&shared, params.epoch()?).await?;
    let Barcode { url, uid, is_inward, captures, rows, rest, found } =
        Barcode::of(&pinned, &params, limit, shared.bounds).await?;
    let mut before = 0;
    let differences = captures.iter().map(|capture| capture.time - std::mem::replace(&mut before, capture.time));
    let captured = differences.collect();
    told(
        &pinned,
        answers::Barcode {
            epoch: pinned.epoch(),
            url,
            uid,
            direction: if is_inward { Way::In } else { Way::Out },
            captures: captured,
            unknown: places(&captures, |capture| !capture.is_whole()).collect(),
            cut: cut(&captures),
            statuses: statuses(&captures),
            replay: shared.http.replay.clone(),
            links: pinned.urls(&rows.links).await?,
            first_known: is_inward.then_some(found),
            counts: rows.counts,
            runs: rows.runs,
            rest: rest.shown(),
        },
    )
    .await
}

fn places(captures: &[CaptureTime], select: impl Fn(&CaptureTime) -> bool) -> impl Iterator<Item = usize> {
    captures.iter().enumerate().filter(move |(_, capture)| select(capture)).map(|(place, _)| place)
}

/// The indexes of captures by status, without status 200.
fn statuses(captures: &[CaptureTime]) -> BTreeMap<String, Vec<usize>> {
    let mut places: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (place, capture) in captures.iter().enumerate() {
        if capture.status.code() != webstrata_layers::Status::OK.code() {
            places.entry(capture.status.code().to_string()).or_default().push(place);
        }
    }
    places
}

/// The indexes of cut captures by reason.
fn cut(captures: &[CaptureTime]) -> BTreeMap<String, Vec<usize>> {
    let mut places: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (place, reason) in captures.iter().enumerate().filter_map(|(at, own)| Some((at, own.status.reason()?))) {
        places.entry(reason.name().to_owned()).or_default().push(place);
    }
    places
}

/// The rows of a page: its links in order of UIDs, with runs as indexes of captures.
fn outward_rows(captures: &[CaptureTime], runs: &[Lifespan], limit: usize) -> (Rows, Rest) {
    let links: Vec<&[Lifespan]> = runs.chunk_by(|one, other| one.link == other.link).collect();
    let life = |runs: &[Lifespan]| runs.iter().map(|run| run.last - run.first + 1).sum::<i64>();
    let chosen = longest(links.iter().map(|runs| life(runs)), limit);
    let place = |time: i64| captures.partition_point(|capture| capture.time < time) as i64;
    let (mut rows, mut rest) = (Rows::default(), Rest::default());
    for (row, runs) in links.into_iter().enumerate() {
        if !chosen.contains(&row) {
            rest.links += 1;
            let mut months: Vec<i64> =
                runs.iter().flat_map(|run| RangeLength::Month.starts(run.first, run.last)).collect();
            months.dedup();
            months.into_iter().for_each(|month| *rest.months.entry(month).or_default() += 1);
            continue;
        }
        let mut end = 0;
        let pairs = runs.iter().flat_map(|run| {
            let (first, last) = (place(run.first), place(run.last));
            let pair = [first - end, last - first];
            end = last + 1;
            pair
        });
        rows.push(runs[0].link, runs.len(), pairs);
    }
    (rows, rest)
}

/// The rows of a URL: the pages that link to it in order of UIDs, with runs as times. `found` gets the first capture of
/// each page that tells its links.
async fn inward_rows(pinned: &Pinned, uid: Uid, limit: usize, found: &mut Vec<i64>) -> Result<(Rows, Rest), Status> {
    let (sources, rest) = sources(pinned, uid, limit).await?;
    let mut rows = Rows::default();
    let (mut waiting, mut step) = (&sources[..], SOURCES);
    while !waiting.is_empty() {
        let (batch, others) = waiting.split_at(step.min(waiting.len()));
        let (lifespans, captures) = match tokio::try_join!(pinned.lifespans(batch), pinned.captures(batch)) {
            Err(status) if fits_in_parts(&status) && batch.len() > 1 => {
                step = batch.len() / 2;
                continue;
            }
            answers => answers?,
        };
        for ((&source, lifespans), captures) in batch.iter().zip(lifespans.iter()).zip(captures.iter()) {
            let runs: Vec<&Lifespan> = lifespans.iter().filter(|run| run.link == uid).collect();
            if !runs.is_empty() {
                let telling = telling(captures);
                found.push(telling.first().copied().unwrap_or_default());
                let triples =
                    runs.iter().flat_map(|run| [run.first, run.last, gone_after(&telling, run.last).unwrap_or(0)]);
                rows.push(source, runs.len(), triples);
            }
        }
        waiting = others;
    }
    Ok((rows, rest))
}

/// The pages to show that link to a URL, and the numbers of the other pages.
async fn sources(pinned: &Pinned, uid: Uid, limit: usize) -> Result<(Vec<Uid>, Rest), Status> {
    let all = pinned.all_links(uid, Direction::In(Precision::Exact), Window::ALWAYS).await?;
    if all.len() <= limit {
        return Ok((all, Rest::default()));
    }
    let Some(record) = pinned.in_records(&[uid]).await?.pop().flatten() else { return Ok(Default::default()) };
    // Ranges may name a page with a capture that a newer row replaced.
    let links = |source: Uid| all.binary_search(&source).is_ok();
    let is_exact = record.sources.len() == all.len();
    let record = if is_exact { Some(record) } else { with_sources(&record, links) };
    let Some(record) = record else { return Ok(Default::default()) };
    let chosen = longest(record.lives(pinned.graph().in_range).into_iter(), limit);
    let rest = Rest { links: record.sources.len() - chosen.len(), months: months_of_others(&record, &chosen) };
    let in_order = record.sources.iter().enumerate().filter(|(source, _)| chosen.contains(source));
    Ok((in_order.map(|(_, &source)| source).collect(), rest))
}

/// The number of sources that are not chosen and that linked, by month.
fn months_of_others(record: &InLinks, chosen: &HashSet<usize>) -> BTreeMap<i64, u64> {
    // If ranges are shorter than a month, several ranges have the same month.
    let starts: Vec<i64> = record.ranges.iter().map(|&start| RangeLength::Month.start(start)).collect();
    let mut months = starts.clone();
    months.dedup();
    let month_of: Vec<usize> = starts.iter().map(|start| months.partition_point(|month| month < start)).collect();
    // `steps` marks where a stretch of months begins and ends. `counted` has a source and the month after its last
    // counted month.
    let mut steps = vec![0_i64; months.len() + 1];
    let mut counted = (usize::MAX, 0);
    record.each_stretch(|source, ranges| {
        if chosen.contains(&source) {
            return;
        }
        let free = if counted.0 == source { counted.1 } else { 0 };
        let (first, end) = (month_of[ranges.start].max(free), month_of[ranges.end - 1] + 1);
        if first < end {
            steps[first] += 1;
            steps[end] -= 1;
        }
        counted = (source, end);
    });
    let mut number = 0;
    let numbers = steps.into_iter().map(|step| {
        number += step;
        number.unsigned_abs()
    });
    months.into_iter().zip(numbers).filter(|(_, number)| *number > 0).collect()
}

/// The indexes of the `limit` largest values; of equal values the first.
fn longest(values: impl Iterator<Item = i64>, limit: usize) -> HashSet<usize> {
    let mut places: Vec<(Reverse<i64>, usize)> = values.map(Reverse).zip(0..).collect();
    if places.len() > limit {
        places.select_nth_unstable(limit);
        places.truncate(limit);
    }
    places.into_iter().map(|(_, place)| place).collect()
}
