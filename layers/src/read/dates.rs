//! The rule for differences between two dates.
//!
//! As of a date, a page is present if the capture that decides is not a failure ([`crate::record::capture::deciding`]).
//! If that capture leaves links unknown, no link is lost at the second date, or gained after the first, and the page is
//! also counted as unknown. If the page is absent at one of the dates, all its links of the other date are gained or
//! lost.
//!
//! All lists of UIDs rise. Cost: one pass over both lists.

use serde::Serialize;

use crate::questions::changed::without;
use crate::record::capture::{CaptureTime, Linking};
use crate::record::uid::Uid;

/// The state of a page as of a date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// No capture counts, or the capture that decides is a failure.
    Absent,
    /// The page is present. Its links are unknown, or the capture is cut.
    Unknown,
    /// The page is present, and the capture is whole.
    Known,
}

impl Standing {
    pub(crate) fn of(capture: Option<CaptureTime>) -> Self {
        match capture {
            decides if Linking::of(decides, false) == Linking::Unknown => Standing::Unknown,
            Some(capture) if !capture.status.is_failure() => Standing::Known,
            _ => Standing::Absent,
        }
    }
}

/// How a page differs from one date to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PageChange {
    /// The page is present at the second date only.
    Gained,
    /// The page is present at the first date only.
    Lost,
    /// The page is present at both dates.
    Stayed,
}

/// A page that differs between two dates, or may differ because its links are unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageBetween {
    /// The page.
    pub uid: Uid,
    /// Whether the page came, went or stayed.
    pub change: PageChange,
    /// Whether links are unknown at a date at which the page is present. If so at the first date, no links are gained;
    /// at the second, none are lost.
    pub unknown: bool,
    /// The links of the second date that the page lacks at the first date, rising.
    pub gained: Vec<Uid>,
    /// The links of the first date that the page lacks at the second date, rising.
    pub lost: Vec<Uid>,
}

impl PageBetween {
    /// How a page differs, given its standing and its links (rising) at both dates; `None` if the page is the same.
    pub(crate) fn new(uid: Uid, standings: [Standing; 2], links: [&[Uid]; 2]) -> Option<Self> {
        let change = match standings {
            [Standing::Absent, Standing::Absent] => return None,
            [Standing::Absent, _] => PageChange::Gained,
            [_, Standing::Absent] => PageChange::Lost,
            _ => PageChange::Stayed,
        };
        let unknown = standings.contains(&Standing::Unknown);
        let [lost, gained] = [0, 1].map(|date| match standings[1 - date] {
            Standing::Unknown => Vec::new(),
            _ => without(links[date], links[1 - date]),
        });
        let page = Self { uid, change, unknown, gained, lost };
        let is_same = change == PageChange::Stayed && !unknown && page.gained.is_empty() && page.lost.is_empty();
        (!is_same).then_some(page)
    }

    /// Whether the page is present at both dates with different links.
    pub fn is_changed(&self) -> bool {
        self.change == PageChange::Stayed && !(self.gained.is_empty() && self.lost.is_empty())
    }
}

/// The numbers of differences between two dates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DateChanges {
    /// Pages that are present at the second date only.
    pub pages_gained: u64,
    /// Pages that are present at the first date only.
    pub pages_lost: u64,
    /// Pages that are present at both dates, with different links.
    pub pages_changed: u64,
    /// Pages with unknown links at one of the dates, whether the pages came, went or stayed.
    pub pages_unknown: u64,
    /// Pairs of a page and a link at the second date only.
    pub links_gained: u64,
    /// Pairs of a page and a link at the first date only.
    pub links_lost: u64,
}

impl DateChanges {
    /// Adds a page to the counts.
    pub fn add(&mut self, page: &PageBetween) {
        self.pages_gained += u64::from(page.change == PageChange::Gained);
        self.pages_lost += u64::from(page.change == PageChange::Lost);
        self.pages_changed += u64::from(page.is_changed());
        self.pages_unknown += u64::from(page.unknown);
        self.links_gained += page.gained.len() as u64;
        self.links_lost += page.lost.len() as u64;
    }
}
