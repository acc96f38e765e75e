//! The pages that died, with the times and the number of pages that still link to them. Does no input and output.
//!
//! ```text
//! pages with failures, by UID --[take]--> their deaths --+--> periods, statuses: counters
//!                                                        +--> rows: a heap of the requested rows
//! ```
//!
//! [`mod@crate::record::capture::fate`] has the rule. A page may die several times, so a row is one death. The periods
//! count all deaths of the given pages; statuses and rows count only selected deaths. Memory: the requested rows. Cost:
//! linear in the captures of the pages with failures. With [`Order::Most`], also the number of pages that link to each
//! selected page.

use std::collections::BTreeMap;
use std::ops::Range;

use super::referrers::Order;
use super::top::{Place, Top, rising};
use crate::error::Error;
use crate::read::query::{Direction, Links, Precision};
use crate::record::capture::CaptureTime;
use crate::record::capture::fate::{Death, deaths};
use crate::record::status::Status;
use crate::record::time::{AsOf, RangeLength, Window};
use crate::record::uid::Uid;

/// The most rows of one answer over a network; [`LINKERS_MAX`] is the most linking pages that it names for a row.
pub const ROWS_MAX: u64 = 10_000;
/// See [`ROWS_MAX`].
pub const LINKERS_MAX: u64 = 100;
/// The most pages that one answer names.
const NAMES_MAX: usize = 100_000;
/// The number of UIDs that are checked in one step.
const STEP: u64 = 1 << 16;
/// To this day: as of the latest captures.
pub const TODAY: AsOf = AsOf::new(i64::MAX);
/// The direction of pages that link; each page is checked.
pub const LINKERS: Direction = Direction::In(Precision::Exact);

/// The most rows of an answer of at most `limit` rows, each with `linkers` linking pages.
#[must_use]
pub fn rows_max(limit: usize, linkers: usize) -> usize {
    limit.min(NAMES_MAX / (1 + linkers))
}

/// A question about pages that died.
#[derive(Clone, Copy, Debug)]
pub struct DeathsAsked {
    /// Only deaths in this closed interval of seconds are selected.
    pub interval: (i64, i64),
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

/// A page that died.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeadPage {
    /// The page.
    pub page: Uid,
    /// The death of the page.
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

/// The count so far.
pub struct DeathCount {
    asked: DeathsAsked,
    periods: BTreeMap<i64, Toll>,
    statuses: BTreeMap<Status, u64>,
    total: u64,
    selected: u64,
    /// Selected deaths that wait for the number of linking pages.
    waiting: Vec<DeadPage>,
    top: Top<DeadPage>,
}

impl DeathCount {
    /// Creates an empty count.
    pub fn new(asked: DeathsAsked) -> Self {
        let (periods, statuses) = (BTreeMap::new(), BTreeMap::new());
        let top = Top::new(asked.after, asked.limit);
        Self { asked, periods, statuses, total: 0, selected: 0, waiting: Vec::new(), top }
    }

    /// Adds a page with its captures, in order of time.
    pub fn take(&mut self, page: Uid, captures: &[CaptureTime]) {
        for death in deaths(captures.iter().copied()) {
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

    /// The pages that need the number of linking pages, in the order in which they were added.
    pub fn asks(&self) -> Vec<Uid> {
        self.waiting.iter().map(|dead| dead.page).collect()
    }

    /// Adds the number of linking pages for each page from [`DeathCount::asks`].
    pub fn answer(&mut self, linking: impl IntoIterator<Item = u64>) {
        for (dead, linking) in std::mem::take(&mut self.waiting).into_iter().zip(linking) {
            self.top.put(self.asked.place(&dead, linking), dead);
        }
    }

    /// Approximate bytes of memory.
    pub fn bytes(&self) -> usize {
        (self.top.len() + self.waiting.len()) * size_of::<(Place, DeadPage)>()
    }

    /// The answer.
    #[must_use]
    pub fn finish(self) -> Deaths {
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

/// The deaths of pages with these UIDs, for any implementation of [`Links`].
pub(crate) fn count<L: Links + ?Sized>(links: &L, pages: &[Range<Uid>], asked: DeathsAsked) -> Result<Deaths, Error> {
    let mut count = DeathCount::new(asked);
    let mut captures = Vec::new();
    for uids in pages {
        let mut rest = uids.clone();
        while !rest.is_empty() {
            let step = rest.start..rest.end.min(rest.start.saturating_add(STEP));
            rest.start = step.end;
            for page in links.failing(step)? {
                links.captures_into(page, &mut captures)?;
                count.take(page, &captures);
            }
            let linking = count.asks().into_iter().map(|page| links.degree(page, LINKERS, Window::AsOf(TODAY)));
            count.answer(linking.map(|count| count.map(|count| count as u64)).collect::<Result<Vec<_>, _>>()?);
        }
    }
    Ok(count.finish())
}

/// The pages that link to a page to this day, with the first `most` pages, for any implementation of [`Links`].
pub(crate) fn linkers_of<L: Links + ?Sized>(links: &L, page: Uid, most: usize) -> Result<Linkers, Error> {
    let mut pages = links.links(page, LINKERS, Window::AsOf(TODAY))?;
    let unknown = links.unknown(page, LINKERS, TODAY)?.len() as u64;
    let linking = pages.len() as u64;
    pages.truncate(most);
    Ok(Linkers { linking, unknown, pages })
}
