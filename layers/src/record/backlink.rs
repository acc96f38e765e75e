//! Backlinks: the rule that says when a page linked to a target.
//!
//! A target is one URL or many, such as all URLs of a host. A capture of a page links to the target if it has a link to
//! any of these URLs. The captures of the page, in order of time, give a list of stays:
//!
//! | a capture | before it | what happens |
//! |---|---|---|
//! | links | no capture of the page with known links | the stay is *found*: the link may be older |
//! | links | only captures without | the stay is *new* |
//! | links | a stay that has ended | the stay has *returned* |
//! | does not link, or is a failure that ends the page | a stay | the stay is *lost* with this capture |
//! | has unknown links, or is cut without a link | anything | *unknown* until the next that tells; a stay goes on |
//! | is a failure of the server | anything | nothing |
//!
//! [`Failures::End`] says which failures end a page. Whether the page links at a moment is an answer as of that moment
//! ([`Linking`]). It is unknown while the latest capture that counts leaves it unknown, in a stay or not. Otherwise the
//! page *stands* if it is in a stay. The pages in a stay at the end of a period are therefore the pages of the period
//! before, plus the pages that were found, new or returned in the period, minus the pages that were lost in it.
//!
//! Times are seconds, UTC. Cost: linear in the captures of a page, and in the events of a series.

use std::collections::BTreeMap;

use serde::Serialize;

pub(crate) mod united;

use crate::record::capture::{CaptureTime, Linking};
use crate::record::status::Failures;
use crate::record::time::RangeLength;
use crate::word::words;

/// How a stay began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Began {
    /// The stay began with the first capture of the page with known links: the link may be older.
    Found,
    /// The stay began with a capture after others that did not link.
    New,
    /// The stay began with a capture after an earlier stay.
    Returned,
}

words!(Began { Found = "found", New = "new", Returned = "returned" });

/// A stretch of time in which a page linked to the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stay {
    /// The time of the first capture that links.
    pub first: i64,
    /// The time of the last capture that links.
    pub last: i64,
    /// The time of the first later capture that does not link; `None` if the store has none.
    pub until: Option<i64>,
    /// How the stay began.
    pub began: Began,
}

/// When a page, or the pages of a host, linked to the target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Backlink {
    /// The stays, in order of time. Stays do not touch.
    pub stays: Vec<Stay>,
    /// Closed intervals in which it is unknown whether the page links, in stays or outside of them, in order of time.
    /// The end of the last one is [`i64::MAX`] if no later capture tells.
    pub unknown: Vec<(i64, i64)>,
    /// The number of URLs of the target that the page ever linked to.
    pub targets: u64,
}

impl Backlink {
    /// Removes the contents, and keeps the memory.
    pub fn clear(&mut self) {
        self.stays.clear();
        self.unknown.clear();
        self.targets = 0;
    }

    /// Replaces the stays by the stays of a page. `captures` are the captures of the page in order of time. `lifespans`
    /// are the runs of these links ([`runs_of`](super::capture::lifespan::runs_of)), in any order, each as its first
    /// and last capture.
    pub fn set(&mut self, captures: impl IntoIterator<Item = CaptureTime>, runs: &mut [(i64, i64)]) {
        self.stays.clear();
        self.unknown.clear();
        if runs.is_empty() {
            return;
        }
        runs.sort_unstable();
        let (mut at, mut end) = (0, i64::MIN);
        let (mut open, mut unknown_since, mut is_known): (Option<Stay>, Option<i64>, bool) = (None, None, false);
        for capture in captures {
            let CaptureTime { time, status, .. } = capture;
            if !Failures::End.counts(status) {
                continue;
            }
            while let Some(&(first, last)) = runs.get(at).filter(|run| run.0 <= time) {
                debug_assert!(first <= last, "a run that ends before it begins");
                end = end.max(last);
                at += 1;
            }
            let links = capture.known && !status.is_failure() && time <= end;
            if capture.linking(links) == Linking::Unknown {
                unknown_since = unknown_since.or(Some(time));
                continue;
            }
            self.unknown.extend(unknown_since.take().map(|since| (since, time - 1)));
            match &mut open {
                Some(stay) if links => stay.last = time,
                Some(stay) => {
                    self.stays.push(Stay { until: Some(time), ..*stay });
                    open = None;
                }
                None if links => {
                    let began = match (is_known, self.stays.is_empty()) {
                        (false, _) => Began::Found,
                        (true, true) => Began::New,
                        (true, false) => Began::Returned,
                    };
                    open = Some(Stay { first: time, last: time, until: None, began });
                }
                None => {}
            }
            is_known = true;
        }
        self.unknown.extend(unknown_since.map(|since| (since, i64::MAX)));
        self.stays.extend(open);
    }

    /// The time of the first capture that linked; [`i64::MAX`] if no capture did.
    pub fn first(&self) -> i64 {
        self.stays.first().map_or(i64::MAX, |stay| stay.first)
    }

    /// Whether the page links as of a time.
    pub fn links_at(&self, time: i64) -> Linking {
        if self.unknown.iter().any(|&(since, until)| (since..=until).contains(&time)) {
            return Linking::Unknown;
        }
        let is_there = |stay: &Stay| stay.first <= time && stay.until.is_none_or(|until| time < until);
        if self.stays.iter().any(is_there) { Linking::Yes } else { Linking::No }
    }

    /// Calls `visit` with each stretch of a stay in which it is known that the page links, in order. A stretch is given
    /// by its first second and the second after its last one. The latter is [`i64::MAX`] if the stretch goes on.
    fn each_standing(&self, mut visit: impl FnMut(i64, i64)) {
        let mut unknown = &self.unknown[..];
        for stay in &self.stays {
            let (mut first, end) = (stay.first, stay.until.unwrap_or(i64::MAX));
            unknown = &unknown[unknown.partition_point(|&(_, until)| until < first)..];
            for &(since, until) in unknown.iter().take_while(|(since, _)| *since < end) {
                if first < since {
                    visit(first, since);
                }
                first = first.max(until.saturating_add(1));
            }
            if first < end {
                visit(first, end);
            }
        }
    }
}

/// The events in a period, and the state at its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Period {
    /// The number of pages that stand at the end.
    pub standing: u64,
    /// The number of pages for which it is unknown at the end whether they link.
    pub unknown: u64,
    /// The number of stays that began in the period as *found*.
    pub found: u64,
    /// The number of stays that began in the period as *new*.
    pub new: u64,
    /// The number of stays that began in the period as *returned*.
    pub returned: u64,
    /// The number of stays that were lost in the period.
    pub lost: u64,
}

/// The number of pages that link, period by period.
#[derive(Clone, Debug)]
pub struct Series {
    length: RangeLength,
    /// By the first second of a period.
    periods: BTreeMap<i64, Counted>,
}

/// A period of a series.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    /// The last second.
    last: i64,
    events: Period,
    /// The differences of `standing` and `unknown` to the period before.
    differences: [i64; 2],
}

impl Series {
    /// A series without pages, with periods of this length.
    pub fn new(length: RangeLength) -> Self {
        Self { length, periods: BTreeMap::new() }
    }

    fn at(&mut self, time: i64) -> &mut Counted {
        // Most times are in a known period, which is found without a calendar.
        let start = match self.periods.range(..=time).next_back() {
            Some((&start, known)) if time <= known.last => start,
            _ => self.length.start(time),
        };
        let new = || Counted { last: self.length.end(start), ..Counted::default() };
        self.periods.entry(start).or_insert_with(new)
    }

    /// Adds a page to the counts.
    pub fn add(&mut self, backlink: &Backlink) {
        for stay in &backlink.stays {
            let period = &mut self.at(stay.first).events;
            match stay.began {
                Began::Found => period.found += 1,
                Began::New => period.new += 1,
                Began::Returned => period.returned += 1,
            }
            if let Some(until) = stay.until {
                self.at(until).events.lost += 1;
            }
        }
        backlink.each_standing(|first, end| self.stretch(0, (first, end)));
        for &(since, until) in &backlink.unknown {
            self.stretch(1, (since, until.saturating_add(1)));
        }
    }

    /// Adds a stretch to one of the differences. It is given by its first second and the second after its last one.
    fn stretch(&mut self, number: usize, (first, end): (i64, i64)) {
        self.at(first).differences[number] += 1;
        if end < i64::MAX {
            self.at(end).differences[number] -= 1;
        }
    }

    /// All periods from the first to the last with an event, each with its first second.
    pub fn periods(&self) -> Vec<(i64, Period)> {
        let Some((&first, _)) = self.periods.first_key_value() else { return Vec::new() };
        let last = self.periods.last_key_value().map_or(first, |(&last, _)| last);
        let (mut standing, mut unknown) = (0_i64, 0_i64);
        let period = |start: i64| {
            let Counted { events: mut period, differences, .. } = self.periods.get(&start).copied().unwrap_or_default();
            standing += differences[0];
            unknown += differences[1];
            (period.standing, period.unknown) = (standing.unsigned_abs(), unknown.unsigned_abs());
            (start, period)
        };
        self.length.starts(first, last).map(period).collect()
    }
}

#[cfg(test)]
mod tests;
