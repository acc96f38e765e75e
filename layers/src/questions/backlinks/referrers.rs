//! The pages, hosts or domains that link to a target: which are selected, and in which order.
//!
//! [`super::tally`] counts them. The rule of stays is in [`mod@crate::record::backlink`]. Times are seconds, UTC.

use super::top::{Place, rising};
use crate::record::backlink::{Backlink, Began};
use crate::record::capture::Linking;
use crate::record::uid::Uid;
use crate::word::words;

/// The unit that is counted.
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

words!(Unit { Page = "page", Host = "host", Domain = "domain" });

/// The event that selects rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Event {
    /// Any: the row was gained or lost. Without bounds of the interval, this selects all rows.
    #[default]
    Any,
    /// The row was found, new or returned.
    Gained,
    /// The row was new.
    New,
    /// The row returned.
    Returned,
    /// The row was lost.
    Lost,
    /// The row stands at the end of the interval.
    Standing,
}

words!(Event {
    Any = "any",
    Gained = "gained",
    New = "new",
    Returned = "returned",
    Lost = "lost",
    Standing = "standing",
});

/// The order of rows, with the same default for all interfaces. Equal rows are ordered by their first link, then by
/// UID.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Rows with the earliest first link come first.
    #[default]
    First,
    /// Rows with the latest last link come first.
    Last,
    /// Rows with the most pages come first; among pages, the pages that link to the most URLs of the target.
    Most,
    /// In the order of the store: pages of one host are neighbours.
    Key,
}

words!(Order { First = "first", Last = "last", Most = "most", Key = "key" });

impl Order {
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

/// The bits of a place for the number of links of one page; a page has fewer than 2^22 links.
const TARGET_BITS: u32 = 24;

/// A page, a host or a domain that links to a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Referrer {
    /// The page. For a host or a domain, the page that linked first.
    pub page: Uid,
    /// The host or the domain; `None` for a page.
    pub name: Option<String>,
    /// The number of its pages that ever linked.
    pub pages: u64,
    /// The times at which it linked.
    pub backlink: Backlink,
}

impl Referrer {
    /// Whether the row has such an event in the closed interval.
    pub fn has(&self, event: Event, (from, to): (i64, i64)) -> bool {
        let within = |time: i64| (from..=to).contains(&time);
        let began = |word: Option<Began>| {
            let stays = self.backlink.stays.iter();
            stays.filter(|stay| word.is_none_or(|word| stay.began == word)).any(|stay| within(stay.first))
        };
        let lost = || self.backlink.stays.iter().any(|stay| stay.until.is_some_and(within));
        match event {
            Event::Any => began(None) || lost(),
            Event::Gained => began(None),
            Event::New => began(Some(Began::New)),
            Event::Returned => began(Some(Began::Returned)),
            Event::Lost => lost(),
            Event::Standing => self.backlink.links_at(to) == Linking::Yes,
        }
    }
}

/// The counts of one host of pages that link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReferringHost {
    /// The name of the host.
    pub host: String,
    /// The number of pages that ever linked.
    pub pages: u64,
    /// The number of pages that link as of their latest captures.
    pub standing: u64,
    /// The time of the first capture with a link.
    pub first: i64,
}
