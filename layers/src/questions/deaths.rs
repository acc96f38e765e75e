//! The pages that died, with the times and the number of pages that still link to them.
//!
//! ```text
//! pages with failures, by UID --[count]--> their deaths --+--> periods, statuses: counters
//!                                                        +--> rows: a heap of the requested rows
//! ```
//!
//! [`mod@crate::record::capture::fate`] has the rule. A page may die several times, so a row is one death. The periods
//! count all deaths of the given pages; statuses and rows count only selected deaths. On request, the first failures of
//! pages that were never there take the place of deaths. Memory: the requested rows. Cost: linear in the captures of
//! the pages with failures. With [`Order::Most`], also the number of pages that link to each selected page.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use super::backlinks::referrers::Order;
use super::backlinks::top::{Place, Top, rising};
use super::unknown::Unknown;
use super::{Ask, Direction, Facts, Given, Precision, Program, Question, Rest};
use crate::record::capture::CaptureTime;
use crate::record::capture::fate::{Death, deaths, missing};
use crate::record::status::Status;
use crate::record::time::{AsOf, RangeLength, Window};
use crate::record::uid::Uid;

/// The most pages that one answer names.
const NAMES_MAX: usize = 100_000;
/// The most pages whose linking pages are asked for together.
const PAGES: usize = 1000;
/// To this day: as of the latest captures.
const TODAY: AsOf = AsOf::new(i64::MAX);
/// The direction of pages that link; each page is checked.
const LINKERS: Direction = Direction::In(Precision::Exact);

/// A question about pages that died.
#[derive(Clone, Copy, Debug)]
pub struct DeathsAsked {
    /// Only deaths in this closed interval of seconds are selected.
    pub interval: (i64, i64),
    /// The first failures of pages that were never there, in the place of deaths.
    pub missing: bool,
    /// Only deaths of pages that have not returned.
    pub still: bool,
    /// Only deaths with this status.
    pub status: Option<Status>,
    /// The length of the periods.
    pub period: RangeLength,
    /// The order of the rows: by time of death; latest first; most linking pages first; or by URL key.
    pub order: Order,
    /// Only rows after this place in the order.
    pub after: Option<Place>,
    /// The most rows in the answer.
    pub limit: usize,
}

/// The deaths in a period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Toll {
    /// The number of deaths in the period.
    pub died: u64,
    /// The number of pages that returned in the period.
    pub returned: u64,
    /// The number of pages that are gone at the end of the period.
    pub gone: u64,
}

/// A page that died, or was never there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeadPage {
    /// The page.
    pub page: Uid,
    /// The death of the page, or its first failure.
    pub death: Death,
}

/// The answer: pages that died.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deaths {
    /// The tolls, with the first second of each period, from the first period with a death to the last period with a
    /// death or a return.
    pub periods: Vec<(i64, Toll)>,
    /// The number of selected deaths for each status, the status with the most first.
    pub statuses: Vec<(Status, u64)>,
    /// The number of deaths of the given pages.
    pub total: u64,
    /// The number of selected deaths.
    pub selected: u64,
    /// The number of selected deaths after the last row.
    pub left: u64,
    /// The selected deaths, in order.
    pub rows: Vec<DeadPage>,
}

/// The pages that link to a page to this day.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Linkers {
    /// The number of pages that link.
    pub linking: u64,
    /// The number of pages of which this is unknown.
    pub unknown: u64,
    /// The first pages that link, by UID, up to the number in the question.
    pub pages: Vec<Uid>,
}

impl DeathsAsked {
    fn selects(&self, death: &Death) -> bool {
        let (from, to) = self.interval;
        (from..=to).contains(&death.died)
            && (!self.still || death.returned.is_none())
            && self.status.is_none_or(|status| status == death.status)
    }

    /// The place of a row, given the number of pages that link to its page.
    #[must_use]
    pub fn place(&self, DeadPage { page, death }: &DeadPage, linking: u64) -> Place {
        let died = rising(death.died);
        Place(match self.order {
            Order::First => [died, page.0, 0],
            Order::Last => [!died, page.0, 0],
            Order::Most => [!linking, died, page.0],
            Order::Key => [page.0, died, 0],
        })
    }
}

/// The question which pages of these intervals died.
#[derive(Debug)]
pub struct DeathSearch {
    asked: DeathsAsked,
    /// The intervals to come, the next one last.
    intervals: Vec<Range<Uid>>,
    /// Pages that may have a failure.
    failing: Rest,
    periods: BTreeMap<i64, Toll>,
    statuses: BTreeMap<Status, u64>,
    total: u64,
    selected: u64,
    /// Selected deaths whose number of linking pages decides their place, and their pages.
    waiting: Vec<DeadPage>,
    waiting_pages: Rest,
    top: Top<DeadPage>,
}

impl DeathSearch {
    /// The most rows of one answer over a network.
    pub const ROWS_MAX: u64 = 10_000;
    /// The most linking pages that such an answer names for a row.
    pub const LINKERS_MAX: u64 = 100;

    /// The most rows of an answer of at most `limit` rows, each with `linkers` linking pages.
    #[must_use]
    pub fn rows_max(limit: usize, linkers: usize) -> usize {
        limit.min(NAMES_MAX / (1 + linkers))
    }

    /// Asks about pages in intervals of UIDs.
    pub fn new(pages: &[Range<Uid>], asked: DeathsAsked) -> Self {
        Self {
            intervals: pages.iter().rev().filter(|uids| !uids.is_empty()).cloned().collect(),
            failing: Rest::default(),
            periods: BTreeMap::new(),
            statuses: BTreeMap::new(),
            total: 0,
            selected: 0,
            waiting: Vec::new(),
            waiting_pages: Rest::default(),
            top: Top::new(asked.after, asked.limit),
            asked,
        }
    }

    /// Counts a page with its captures, in order of time.
    fn count(&mut self, page: Uid, captures: &[CaptureTime]) {
        let captures = captures.iter().copied();
        for death in if self.asked.missing { missing(captures).into_iter().collect() } else { deaths(captures) } {
            self.total += 1;
            self.period(death.died).died += 1;
            if let Some(returned) = death.returned {
                self.period(returned).returned += 1;
            }
            if !self.asked.selects(&death) {
                continue;
            }
            self.selected += 1;
            *self.statuses.entry(death.status).or_default() += 1;
            let dead = DeadPage { page, death };
            if self.asked.order == Order::Most {
                self.waiting.push(dead);
            } else {
                self.top.put(self.asked.place(&dead, 0), dead);
            }
        }
    }

    fn period(&mut self, time: i64) -> &mut Toll {
        self.periods.entry(self.asked.period.start(time)).or_default()
    }
}

impl Program for DeathSearch {
    fn asks(&mut self, _: Facts) -> Option<Ask<'_>> {
        if !self.waiting_pages.is_done() {
            return Some(Ask::Degrees(self.waiting_pages.items(), LINKERS, Window::AsOf(TODAY)));
        }
        if !self.failing.is_done() {
            return Some(Ask::Captures(self.failing.items()));
        }
        self.intervals.last().map(|uids| Ask::Failing(uids.clone()))
    }

    fn take(&mut self, given: Given) {
        match given {
            Given::Part(pages, next) => {
                self.failing = Rest::of(pages);
                let rest = self.intervals.pop().zip(next).map(|(uids, next)| next..uids.end);
                self.intervals.extend(rest.filter(|uids| !uids.is_empty()));
            }
            Given::Captures(captures) => {
                let pages = self.failing.done(captures.len()).to_vec();
                pages.into_iter().zip(captures.iter()).for_each(|(page, captures)| self.count(page, captures));
                self.waiting_pages = Rest::of(self.waiting.iter().map(|dead| dead.page).collect());
            }
            Given::Counts(linking) => {
                self.waiting_pages.done(linking.len());
                for (dead, linking) in self.waiting.drain(..linking.len()).zip(linking) {
                    self.top.put(self.asked.place(&dead, linking), dead);
                }
            }
            _ => {}
        }
    }

    fn bytes(&self) -> usize {
        (self.top.len() + self.waiting.len()) * size_of::<(Place, DeadPage)>() + size_of_val(self.failing.items())
    }
}

impl Question for DeathSearch {
    type Answer = Deaths;

    /// The answer.
    fn answer(self) -> Deaths {
        let Self { asked, periods, statuses, total, selected, top, .. } = self;
        let (rows, left) = top.finish();
        let mut statuses: Vec<(Status, u64)> = statuses.into_iter().collect();
        statuses.sort_by_key(|&(status, count)| (std::cmp::Reverse(count), status));
        let bounds = periods.keys().next().zip(periods.keys().next_back());
        let starts = bounds.into_iter().flat_map(|(&first, &last)| asked.period.starts(first, last));
        let mut gone = 0;
        let toll = |start| {
            let mut toll: Toll = periods.get(&start).copied().unwrap_or_default();
            gone = gone + toll.died - toll.returned;
            toll.gone = gone;
            (start, toll)
        };
        Deaths { periods: starts.map(toll).collect(), statuses, total, selected, left, rows }
    }
}

/// The question which pages link to pages to this day.
#[derive(Debug)]
pub struct StillLinking {
    most: usize,
    pages: Rest,
    /// The number of pages of which this is unknown, for the next pages of the answer.
    unknown: Step,
    linkers: Vec<Linkers>,
    /// The number of pages that `linkers` names.
    named: usize,
}

#[derive(Debug)]
enum Step {
    Asks(Box<Unknown>),
    Has(VecDeque<u64>),
}

impl StillLinking {
    /// Asks about pages, and names the first `most` linking pages of each.
    pub fn new(pages: &[Uid], most: usize) -> Self {
        let (pages, unknown) = (Rest::of(pages.to_vec()), Step::Has(VecDeque::new()));
        Self { most, pages, unknown, linkers: Vec::new(), named: 0 }
    }
}

impl Program for StillLinking {
    fn asks(&mut self, facts: Facts) -> Option<Ask<'_>> {
        if self.pages.is_done() {
            return None;
        }
        let pages = self.pages.items();
        let pages = &pages[..pages.len().min(PAGES)];
        if let Step::Has(counts) = &self.unknown
            && counts.is_empty()
        {
            self.unknown = Step::Asks(Box::new(Unknown::new(pages, LINKERS, Window::AsOf(TODAY))));
        }
        if let Step::Asks(program) = &mut self.unknown
            && program.asks(facts).is_none()
        {
            let empty = Step::Has(VecDeque::new());
            if let Step::Asks(program) = std::mem::replace(&mut self.unknown, empty) {
                self.unknown = Step::Has(program.answer().iter().map(|pages| pages.len() as u64).collect());
            }
        }
        match &mut self.unknown {
            Step::Asks(program) => program.asks(facts),
            Step::Has(counts) => Some(Ask::Begin(&pages[..counts.len()], LINKERS, Window::AsOf(TODAY), self.most)),
        }
    }

    fn take(&mut self, given: Given) {
        match (&mut self.unknown, given) {
            (Step::Asks(program), given) => program.take(given),
            (Step::Has(counts), Given::Begun(lists, linking)) => {
                self.pages.done(lists.len());
                for ((pages, linking), unknown) in lists.iter().zip(linking).zip(counts.drain(..lists.len())) {
                    self.named += pages.len();
                    self.linkers.push(Linkers { linking, unknown, pages: pages.to_vec() });
                }
            }
            _ => {}
        }
    }

    fn bytes(&self) -> usize {
        let inner = if let Step::Asks(program) = &self.unknown { program.bytes() } else { 0 };
        inner + size_of::<Uid>() * self.named + size_of_val(&*self.linkers)
    }
}

impl Question for StillLinking {
    type Answer = Vec<Linkers>;

    fn answer(self) -> Vec<Linkers> {
        self.linkers
    }
}
