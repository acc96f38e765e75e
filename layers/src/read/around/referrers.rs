//! Who links to a target: backlinks by page, by host or by domain, which of them are selected, and in which order.
//!
//! [`super::tally`] counts them. The rule of stays is that of [`mod@crate::record::backlink`]. Times are seconds, UTC.

use super::top::{Place, rising};
use crate::record::backlink::{Backlink, Began};
use crate::record::capture::Linking;
use crate::record::uid::Uid;

/// The most rows of one answer over a network.
pub const ROWS_MAX: u64 = 10_000;

/// What is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unit {
    /// Pages.
    #[default]
    Page,
    /// Hosts of pages.
    Host,
    /// Registrable domains of hosts.
    Domain,
}

impl Unit {
    /// Its word.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Page => "page",
            Unit::Host => "host",
            Unit::Domain => "domain",
        }
    }
}

/// Which rows are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Event {
    /// Those that came or went: all, in an interval without bounds.
    #[default]
    Any,
    /// Those that were found, new or returned.
    Came,
    /// Those that were new.
    New,
    /// Those that returned.
    Returned,
    /// Those that were lost.
    Lost,
    /// Those that stand at the end of the interval.
    Standing,
}

impl Event {
    /// Each with its word.
    pub fn words() -> [(&'static str, Event); 6] {
        [
            ("any", Event::Any),
            ("came", Event::Came),
            ("new", Event::New),
            ("returned", Event::Returned),
            ("lost", Event::Lost),
            ("standing", Event::Standing),
        ]
    }
}

/// In which order rows are shown, the same for all who ask unless they say another; rows that are equal in it go by
/// their first link, then by UID.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Who linked first comes first.
    #[default]
    First,
    /// Who linked last comes first.
    Last,
    /// Whoever has the most pages comes first, or of pages the one that links to the most URLs of the target.
    Most,
    /// In the order of the store: pages of one host stand together.
    Key,
}

impl Order {
    /// Each with its word.
    pub fn words() -> [(&'static str, Order); 4] {
        [("first", Order::First), ("last", Order::Last), ("most", Order::Most), ("key", Order::Key)]
    }

    /// The place of a row.
    pub fn place(self, row: &Referrer) -> Place {
        let Referrer { page, pages, backlink, .. } = row;
        let first = rising(backlink.first());
        match self {
            Order::First => Place([first, page.0, 0]),
            Order::Last => Place([!rising(backlink.stays.last().map_or(i64::MIN, |stay| stay.last)), first, page.0]),
            Order::Most => {
                let targets = backlink.targets.min((1 << TARGET_BITS) - 1);
                Place([!((pages.min(&(u64::MAX >> TARGET_BITS)) << TARGET_BITS) | targets), first, page.0])
            }
            Order::Key => Place([page.0, 0, 0]),
        }
    }
}

/// Bits for the links of one page in a place; a page has fewer than 2^22.
const TARGET_BITS: u32 = 24;

/// A page, a host or a domain that links to a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Referrer {
    /// The page; of a host or a domain the page that linked first.
    pub page: Uid,
    /// The host or the domain; `None` for a page.
    pub name: Option<String>,
    /// How many pages of it ever linked.
    pub pages: u64,
    /// When it linked.
    pub backlink: Backlink,
}

impl Referrer {
    /// Whether it has such an event in the closed interval.
    pub fn has(&self, event: Event, (from, to): (i64, i64)) -> bool {
        let within = |time: i64| (from..=to).contains(&time);
        let began = |word: Option<Began>| {
            let stays = self.backlink.stays.iter();
            stays.filter(|stay| word.is_none_or(|word| stay.began == word)).any(|stay| within(stay.first))
        };
        let lost = || self.backlink.stays.iter().any(|stay| stay.gone.is_some_and(within));
        match event {
            Event::Any => began(None) || lost(),
            Event::Came => began(None),
            Event::New => began(Some(Began::New)),
            Event::Returned => began(Some(Began::Returned)),
            Event::Lost => lost(),
            Event::Standing => self.backlink.links_at(to) == Linking::Yes,
        }
    }
}

/// What is said of a host of pages that link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReferringHost {
    /// Its name.
    pub host: String,
    /// Pages that ever linked.
    pub pages: u64,
    /// Pages that link as of their latest captures.
    pub standing: u64,
    /// The first capture with a link.
    pub first: i64,
}
