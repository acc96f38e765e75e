//! What differs between two dates: the rule.
//!
//! As of a date, a page is there if the capture that decides is no failure ([`crate::record::capture::deciding`]). If
//! that capture has unknown links, no link of the page is gained or lost, and the page is counted as unknown too. If
//! the page is not there at one of the dates, all its links of the other date are gained or lost.
//!
//! UIDs rise. Cost: one pass over both lists.

use serde::Serialize;

use crate::record::capture::{CaptureTime, Linking, is_unknown};
use crate::record::time::AsOf;
use crate::record::uid::Uid;

/// What is known of a page as of a date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// No capture counts, or the one that decides is a failure.
    Absent,
    /// It is there, and its links are unknown.
    Unknown,
    /// It is there with these links.
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
    /// It is there at the second date only.
    Gained,
    /// It is there at the first date only.
    Lost,
    /// It is there at both dates.
    Stayed,
}

/// A page that is not at the second date as it was at the first, or of which that is unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageBetween {
    /// The page.
    pub uid: Uid,
    /// Whether it came, went or stayed.
    pub change: PageChange,
    /// Whether its links are unknown at one of the dates where it is there: none are then gained or lost.
    pub unknown: bool,
    /// Links of the second date that are not of the first, rising.
    pub gained: Vec<Uid>,
    /// Links of the first date that are not of the second, rising.
    pub lost: Vec<Uid>,
}

impl PageBetween {
    /// How a page differs, given its standing at both dates, and its links of both, rising; `None` where it is the
    /// same.
    pub(crate) fn new(uid: Uid, standings: [Standing; 2], links: [&[Uid]; 2]) -> Option<Self> {
        let change = match standings {
            [Standing::Absent, Standing::Absent] => return None,
            [Standing::Absent, _] => PageChange::Gained,
            [_, Standing::Absent] => PageChange::Lost,
            _ => PageChange::Stayed,
        };
        let unknown = standings.contains(&Standing::Unknown);
        let [lost, gained] =
            if unknown { Default::default() } else { [without(links[0], links[1]), without(links[1], links[0])] };
        let page = Self { uid, change, unknown, gained, lost };
        let is_same = change == PageChange::Stayed && !unknown && page.gained.is_empty() && page.lost.is_empty();
        (!is_same).then_some(page)
    }

    /// Whether the page is there at both dates with other links.
    pub fn is_changed(&self) -> bool {
        self.change == PageChange::Stayed && !self.unknown
    }
}

/// How much differs from one date to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DateChanges {
    /// Pages that are there at the second date only.
    pub pages_gained: u64,
    /// Pages that are there at the first date only.
    pub pages_lost: u64,
    /// Pages that are there at both dates, with other links.
    pub pages_changed: u64,
    /// Pages whose links are unknown at one of the dates, whether they came, went or stayed.
    pub pages_unknown: u64,
    /// Pairs of a page and a link that are of the second date only.
    pub links_gained: u64,
    /// Pairs of a page and a link that are of the first date only.
    pub links_lost: u64,
}

impl DateChanges {
    /// Counts a page in.
    pub fn add(&mut self, page: &PageBetween) {
        self.pages_gained += u64::from(page.change == PageChange::Gained);
        self.pages_lost += u64::from(page.change == PageChange::Lost);
        self.pages_changed += u64::from(page.is_changed());
        self.pages_unknown += u64::from(page.unknown);
        self.links_gained += page.gained.len() as u64;
        self.links_lost += page.lost.len() as u64;
    }
}

/// Links of one URL that differ from one date to another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangedLinks {
    /// Of the second date only, rising.
    pub gained: Vec<Uid>,
    /// Of the first date only, rising.
    pub lost: Vec<Uid>,
    /// Pages whose links are unknown at one of the dates, rising: the page itself, or with in-links the pages that link
    /// to the URL at the other date.
    pub unknown: Vec<Uid>,
}

impl ChangedLinks {
    /// All that differ, gained or lost, rising.
    pub fn links(&self) -> Vec<Uid> {
        let mut links = [&self.gained[..], &self.lost].concat();
        links.sort_unstable();
        links
    }

    /// The same from a UID on, and at most so many links.
    #[must_use]
    pub fn part(mut self, first: Uid, links_max: usize) -> Self {
        let links = self.links();
        let begin = links.partition_point(|&link| link < first);
        let end = links.get(begin.saturating_add(links_max)).copied();
        for links in [&mut self.gained, &mut self.lost, &mut self.unknown] {
            links.retain(|&link| first <= link && end.is_none_or(|end| link < end));
        }
        self
    }

    /// The pages whose captures tell whether these links are known: none where no capture of the store has unknown
    /// links; of in-links each page that is named, of out-links the page itself.
    pub fn in_doubt(&self, uid: Uid, is_inward: bool, has_unknown: bool) -> Vec<Uid> {
        match is_inward {
            _ if !has_unknown => Vec::new(),
            true => self.links(),
            false => vec![uid],
        }
    }

    /// The same of in-links, given the pages among them whose links are unknown at one of the dates, rising.
    #[must_use]
    pub fn set_apart(mut self, unknown: Vec<Uid>) -> Self {
        for links in [&mut self.gained, &mut self.lost] {
            links.retain(|link| unknown.binary_search(link).is_err());
        }
        Self { unknown, ..self }
    }

    /// The same of out-links, unless those of the page itself are unknown at one of the dates.
    #[must_use]
    pub fn unless_unknown(self, unknown: Option<Uid>) -> Self {
        unknown.map_or(self, |page| Self { unknown: vec![page], ..Self::default() })
    }
}

/// What differs from the links of one date to those of another, both rising.
pub fn differing(before: &[Uid], after: &[Uid]) -> ChangedLinks {
    ChangedLinks { gained: without(after, before), lost: without(before, after), unknown: Vec::new() }
}

/// Whether the links of a page with these captures are unknown at one of the dates.
pub fn is_unknown_at(captures: &[CaptureTime], dates: [AsOf; 2]) -> bool {
    dates.iter().any(|&date| is_unknown(captures, date))
}

/// The links of one list that another has not; both rise.
fn without(list: &[Uid], other: &[Uid]) -> Vec<Uid> {
    let mut others = other.iter().copied().peekable();
    let is_missing = |&link: &Uid| {
        while others.next_if(|&other| other < link).is_some() {}
        others.peek() != Some(&link)
    };
    list.iter().copied().filter(is_missing).collect()
}
