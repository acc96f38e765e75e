//! The questions that take several steps. One question is one file: what is asked, what is answered, and a program that
//! finds the answer without input and output.
//!
//! ```text
//! question --> program --[Program::asks]--> driver --> primitives: layers, cells, or the servers of a cluster
//!                      <--[Program::take]---       <-- answers about the first items, as many as fit
//!              program --[Question::answer]--> answer
//! ```
//!
//! A program asks for primitives ([`Ask`]) about many items at once. A driver answers about the first items, at least
//! one, and the program asks again for the rest. So a program knows neither files nor servers, and a driver knows no
//! question: [`drive`](crate::read::drive::drive) answers from any implementation of [`Links`](crate::Links), and the
//! clerk of a cluster answers with batches, repeats and budgets of memory.
//!
//! | file | question |
//! |---|---|
//! | [`unknown`] | of which pages is it unknown whether they link in a window |
//! | [`last_known`] | which links may a page have whose links are unknown as of a time |
//! | [`changed`] | which links differ between two dates |
//! | [`dead_links`] | which links of a page lead to pages that are gone |
//! | [`first`] | which pages linked to a URL, the first one first |
//! | [`page`] | the links of one page with several spellings |
//! | [`backlinks`] | which pages, hosts or domains linked to a target, and when |
//! | [`neighbourhood`] | the URLs one or two links away, with times |
//! | [`ways`] | the shortest paths of links between two pages |
//! | [`deaths`] | which pages died, and which pages still link to them |

pub(crate) mod backlinks;
pub(crate) mod changed;
pub(crate) mod dead_links;
pub(crate) mod deaths;
pub(crate) mod first;
pub(crate) mod last_known;
pub(crate) mod neighbourhood;
pub(crate) mod page;
pub(crate) mod unknown;
pub(crate) mod ways;

use std::ops::Range;
use std::sync::Arc;

use crate::record::backlink::Backlink;
use crate::record::batch::Batch;
use crate::record::capture::CaptureTime;
use crate::record::capture::lifespan::Lifespan;
use crate::record::page::InLinks;
use crate::record::time::{RangeLength, Window};
use crate::record::uid::Uid;
use crate::word::words;

/// The precision of answers about in-links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// As exact as out-links: the captures of each source are checked.
    Exact,
    /// The precision of the time ranges of the in-link layers: maybe too many sources, never too few.
    Range,
}

/// The direction of links, without a precision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Way {
    /// The links of a page.
    #[default]
    Out,
    /// The pages that link to a URL, exactly.
    In,
}

words!(Way { Out = "out", In = "in" });
words!(Precision { Exact = "exact", Range = "range" });

/// The direction of the links of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The links of a page.
    Out,
    /// The pages that link to a URL.
    In(Precision),
}

/// What a program asks next. Each kind says with which [`Given`] it is answered. No list of items is empty.
#[derive(Clone, Debug)]
pub enum Ask<'a> {
    /// The intervals of UIDs of the rows of URLs, in order: [`Given::Rows`].
    Rows,
    /// The links of each item in the window, rising: [`Given::Lists`].
    Links(&'a [Uid], Direction, Window),
    /// The number of links of each item in the window: [`Given::Counts`].
    Degrees(&'a [Uid], Direction, Window),
    /// The first links of each item in the window, at most so many, and the number of all: [`Given::Begun`].
    Begin(&'a [Uid], Direction, Window, usize),
    /// The captures of each page, in order of time; none of a URL that was never captured: [`Given::Captures`].
    Captures(&'a [Uid]),
    /// The lifespans of the links of each page, in order of links: [`Given::Lifespans`].
    Lifespans(&'a [Uid]),
    /// The runs of the links of each page, in order of links, and its captures: [`Given::Lives`].
    Lives(&'a [Uid]),
    /// When pages linked to a target: [`Given::Backlinks`].
    Backlinks(&'a [Uid], &'a [Range<Uid>]),
    /// The same of pages whose UIDs rise, and the hosts of the pages that linked: [`Given::Referrers`].
    Referrers(&'a [Uid], &'a [Range<Uid>]),
    /// The pages of an interval that link to a target at range precision, rising: [`Given::Part`]. Pages that do not
    /// link may be among them, and the part may go beyond the interval.
    Sources(&'a [Range<Uid>], Range<Uid>),
    /// The pages of an interval that may have a failure, rising: [`Given::Part`].
    Failing(Range<Uid>),
    /// The in-link record of a URL: [`Given::Record`].
    InRecord(Uid),
}

impl Ask<'_> {
    /// The name of the kind.
    pub fn name(&self) -> &'static str {
        match self {
            Ask::Rows => "rows",
            Ask::Links(..) => "links",
            Ask::Degrees(..) => "degrees",
            Ask::Begin(..) => "begin",
            Ask::Captures(_) => "captures",
            Ask::Lifespans(_) => "lifespans",
            Ask::Lives(_) => "lives",
            Ask::Backlinks(..) => "backlinks",
            Ask::Referrers(..) => "referrers",
            Ask::Sources(..) => "sources",
            Ask::Failing(_) => "failing",
            Ask::InRecord(_) => "in-record",
        }
    }
}

/// The answer to an [`Ask`]: one value for each of the first items, at least one, in the order of the items.
#[derive(Debug)]
pub enum Given {
    /// Intervals of UIDs.
    Rows(Vec<Range<Uid>>),
    /// Lists of UIDs.
    Lists(Batch<Uid>),
    /// Numbers.
    Counts(Vec<u64>),
    /// Beginnings of lists of UIDs, and the lengths of the whole lists.
    Begun(Batch<Uid>, Vec<u64>),
    /// Captures.
    Captures(Batch<CaptureTime>),
    /// Lifespans.
    Lifespans(Batch<Lifespan>),
    /// Runs and captures.
    Lives(Batch<Lifespan>, Batch<CaptureTime>),
    /// The number of pages that are answered, and those of them that ever linked.
    Backlinks(usize, Vec<(Uid, Backlink)>),
    /// The same, and the stretches of the pages that linked with one host: the name of the host (empty for URLs without
    /// a host), and the number of pages.
    Referrers(usize, Vec<(Uid, Backlink)>, Vec<(String, u64)>),
    /// A part of a list, and the UID from which on it is not known; `None` if the whole list is known.
    Part(Vec<Uid>, Option<Uid>),
    /// A record; `None` if no page ever linked to the URL.
    Record(Option<Arc<InLinks>>),
}

/// What a program knows of the graph that answers.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// Whether any capture is cut or has unknown links. True if this is not known.
    pub has_unknown: bool,
    /// The length of the time ranges of in-link records.
    pub in_range: RangeLength,
}

/// The steps to an answer. A driver repeats [`Program::asks`] and [`Program::take`] until nothing is asked.
pub trait Program: Send {
    /// What the program asks next; `None` if it has all that it needs.
    fn asks(&mut self, facts: Facts) -> Option<Ask<'_>>;

    /// Takes the answer to the last [`Program::asks`].
    fn take(&mut self, given: Given);

    /// The answer about the first item alone is too large. Returns whether the program can go on without it; if not,
    /// the question fails.
    fn skip(&mut self) -> bool {
        false
    }

    /// Approximate bytes that the program holds.
    fn bytes(&self) -> usize {
        0
    }
}

/// A program with its answer.
pub trait Question: Program {
    /// The answer.
    type Answer;

    /// The answer, after the last step.
    fn answer(self) -> Self::Answer;
}

/// Items that a program asks about, part by part.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rest {
    items: Vec<Uid>,
    done: usize,
}

impl Rest {
    pub(crate) fn of(items: Vec<Uid>) -> Self {
        Self { items, done: 0 }
    }

    /// Appends items.
    pub(crate) fn add(&mut self, items: impl Iterator<Item = Uid>) {
        self.items.drain(..self.done);
        self.done = 0;
        self.items.extend(items);
    }

    /// The items without an answer.
    pub(crate) fn items(&self) -> &[Uid] {
        &self.items[self.done..]
    }

    /// Drops the first items, which have an answer, and returns them.
    pub(crate) fn done(&mut self, count: usize) -> &[Uid] {
        let start = self.done;
        self.done = self.items.len().min(start + count);
        &self.items[start..self.done]
    }

    /// The number of items with an answer.
    pub(crate) fn done_count(&self) -> usize {
        self.done
    }

    pub(crate) fn is_done(&self) -> bool {
        self.done == self.items.len()
    }
}
