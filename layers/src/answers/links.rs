//! Links of a page or of matching URLs, their lifespans and changes, and the pages that linked first.

use schemars::JsonSchema;
use serde::Serialize;

use super::Time;
use crate::questions::Way;
use crate::questions::changed::LinkChange;
use crate::record::capture::lifespan::Lifespan;
use crate::record::key::matching::Match;
use crate::record::status::Failures;
use crate::record::time::{AsOf, Window};
use crate::record::uid::Uid;

/// For one URL: `url`, `uid`, and `links` or `count`. For all spellings of a page (`match` is `surt`): `spellings`, and
/// `links` or `count`. For matching URLs: `items` in order of UIDs, without URLs that have no links. An item cut by the
/// limit continues as the first item of the next answer.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Links {
    /// The question.
    #[serde(flatten)]
    pub about: About,
    /// The links.
    #[serde(flatten)]
    pub list: List,
    /// The matching URLs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<Vec<Item>>,
    /// There is more. Repeat the question with this key to continue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resume_key: Option<String>,
}

/// A question about the links of a page, with the URL as the store spells it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct About {
    /// The epoch of the answer. UIDs are valid in this epoch only.
    pub epoch: u64,
    /// The URL, if the question is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The UID of the URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<Uid>,
    /// Whether these are the links of the page or the pages that link to it.
    pub direction: Way,
    /// Which URLs match, if not the URL alone.
    #[serde(rename = "match", skip_serializing_if = "Option::is_none")]
    pub matching: Option<Match>,
    /// The spellings of the page, if the question is about all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spellings: Option<Vec<String>>,
    /// The first second of the window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Time>,
    /// The last second of the window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Time>,
    /// The time, for links as of a time; not there if the latest captures decide.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Time>,
    /// With `at` and a greatest age: the first second of captures that count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
    /// With `at`: which failures count, if not those that end a page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failures: Option<Failures>,
}

impl About {
    /// A question about links in a window.
    pub fn of(epoch: u64, direction: Way, window: Window) -> Self {
        let (from, to, as_of) = match window {
            Window::Seen { from, to } => (from, to, None),
            Window::AsOf(as_of) => (i64::MIN, i64::MAX, Some(as_of)),
        };
        Self {
            epoch,
            url: None,
            uid: None,
            direction,
            matching: None,
            spellings: None,
            from: (from > i64::MIN).then_some(Time(from)),
            to: (to < i64::MAX).then_some(Time(to)),
            at: as_of.filter(|as_of| as_of.time < i64::MAX).map(|as_of| Time(as_of.time)),
            since: as_of.filter(|as_of| as_of.since > i64::MIN).map(|AsOf { since, .. }| Time(since)),
            failures: as_of.map(|as_of| as_of.failures).filter(|failures| *failures != Failures::default()),
        }
    }

    /// The question, about one URL.
    #[must_use]
    pub fn url(self, url: String, uid: Uid) -> Self {
        Self { url: Some(url), uid: Some(uid), ..self }
    }
}

/// Links, or their number.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct List {
    /// The links, or the pages that link, in order of UIDs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub links: Option<Vec<String>>,
    /// The number of links, if only a number was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// The unknown part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown: Option<UnknownLinks>,
    /// For links of a page as of a time, if some are unknown: the links that it had when they were last known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown_links: Option<Vec<String>>,
}

impl List {
    /// Links, and the unknown part.
    pub fn of(links: Vec<String>, unknown: Option<UnknownLinks>) -> Self {
        Self { links: Some(links), count: None, unknown, unknown_links: None }
    }

    /// A number of links, and the unknown part.
    pub fn counted(count: u64, unknown: Option<UnknownLinks>) -> Self {
        Self { links: None, count: Some(count), unknown, unknown_links: None }
    }

    /// The same, with the links that the page may have ([`crate::LastKnown`]).
    #[must_use]
    pub fn with_last_known(self, links: Vec<String>) -> Self {
        Self { unknown_links: Some(links).filter(|links| !links.is_empty()), ..self }
    }
}

/// Unknown links. A capture leaves links unknown if nothing is known of its links, or if its body was cut. For
/// out-links, true: a capture of the window leaves links unknown, or as of a time the capture that answers. For
/// in-links, the pages that may or may not link, or their number if only a number was asked. Each of these pages linked
/// in some capture, and a capture in the window leaves its links unknown. These pages count for the limit, and an
/// answer in parts has them in each part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum UnknownLinks {
    /// The links of the page are unknown.
    Page(bool),
    /// The pages that may or may not link.
    Pages(Vec<String>),
    /// The number of these pages.
    Count(u64),
}

impl UnknownLinks {
    /// The unknown part, given the page itself or the pages that may link; `None` without pages.
    pub fn of(direction: Way, pages: Vec<String>) -> Option<Self> {
        match direction {
            _ if pages.is_empty() => None,
            Way::Out => Some(Self::Page(true)),
            Way::In => Some(Self::Pages(pages)),
        }
    }

    /// The same, given their number.
    pub fn counted(direction: Way, pages: usize) -> Option<Self> {
        match direction {
            _ if pages == 0 => None,
            Way::Out => Some(Self::Page(true)),
            Way::In => Some(Self::Count(pages as u64)),
        }
    }
}

/// A matching URL, with its links.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "LinksItem")]
pub struct Item {
    /// The URL.
    pub url: String,
    /// Its UID.
    pub uid: Uid,
    /// Its links.
    #[serde(flatten)]
    pub list: List,
}

/// Lifespans of the links of a page, or of the links to a URL.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Lifespans {
    /// The question.
    #[serde(flatten)]
    pub about: About,
    /// The lifespans, in order of UIDs and times.
    pub lifespans: Vec<LinkLifespan>,
    /// The unknown part: captures in the window leave links unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown: Option<UnknownLinks>,
    /// There is more. Repeat the question with this key to continue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resume_key: Option<String>,
}

/// A lifespan of a link: captures with the link, without a capture between them that is known to lack it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct LinkLifespan {
    /// The link. For in-links, the page that has the link.
    pub link: String,
    /// The first capture of the lifespan.
    pub first: Time,
    /// The last capture of the lifespan.
    pub last: Time,
}

impl LinkLifespan {
    /// A lifespan, with the URL of the link.
    pub fn of(link: String, lifespan: &Lifespan) -> Self {
        Self { link, first: Time(lifespan.first), last: Time(lifespan.last) }
    }
}

/// Links of a page to pages that are gone.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DeadLinks {
    /// The question.
    #[serde(flatten)]
    pub about: About,
    /// The links to pages that are gone, in order of UIDs.
    pub dead: Vec<DeadLink>,
    /// All links of the page.
    pub links: usize,
    /// Links to URLs without a capture that decides: it is unknown whether they are gone.
    pub unknown_links: usize,
    /// True if the capture that decides leaves links of the page unknown: there may be more dead links.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown: Option<bool>,
}

impl DeadLinks {
    /// The answer to a question about links as of a time. `urls` has the URL of each dead link.
    pub fn of(about: About, found: &crate::DeadLinks, urls: Vec<String>) -> Self {
        let dead = urls.into_iter().zip(&found.dead).map(|(url, dead)| DeadLink {
            url,
            status: dead.ended_by.status.code(),
            since: Time(dead.ended_by.time),
            last_status: dead.last.status.code(),
            last: Time(dead.last.time),
        });
        DeadLinks {
            about,
            dead: dead.collect(),
            links: found.links,
            unknown_links: found.unknown,
            unknown: found.is_open.then_some(true),
        }
    }
}

/// A link to a page that is gone.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DeadLink {
    /// The link.
    pub url: String,
    /// The status of the failure that ended the page.
    pub status: u16,
    /// The time of that failure.
    pub since: Time,
    /// The status of the latest failure.
    pub last_status: u16,
    /// The time of the latest failure.
    pub last: Time,
}

/// The links that differ between two dates.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Changed {
    /// The epoch of the answer. UIDs are valid in this epoch only.
    pub epoch: u64,
    /// The URL.
    pub url: String,
    /// Its UID.
    pub uid: Uid,
    /// Whether these are links of the page or pages that link to it.
    pub direction: Way,
    /// The first date.
    pub from_date: Time,
    /// The second date.
    pub to_date: Time,
    /// True if links of the page are unknown at one of the dates. A link is then gained or lost only if this is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown: Option<bool>,
    /// The changes, in order of the UIDs of the links.
    pub changes: Vec<ChangedLink>,
    /// There is more. Repeat the question with this key to continue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resume_key: Option<String>,
}

/// A link that differs between two dates.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ChangedLink {
    /// The link. For in-links, the page that links.
    pub link: String,
    /// How it differs. Unknown, for in-links: the page links at one date, and its links are unknown at the other.
    pub change: LinkChange,
}

/// The pages that linked first to a URL.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct First {
    /// The epoch of the answer. UIDs are valid in this epoch only.
    pub epoch: u64,
    /// The URL.
    pub url: String,
    /// Its UID.
    pub uid: Uid,
    /// The number of pages that ever linked to the URL.
    pub pages: usize,
    /// The pages, the one that linked first at the beginning.
    pub first: Vec<FirstLink>,
    /// There is more. Repeat the question with this key to continue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resume_key: Option<String>,
}

/// A page that linked.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FirstLink {
    /// The first capture with the link.
    pub first: Time,
    /// The page.
    pub page: String,
    /// Its host or its registrable domain, if these count once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}
