//! The questions that every form of a graph answers: trait [`Links`], with the answers about time written once.
//!
//! Reads pages and in-link records from whoever implements the trait; gives UIDs, rising, and seconds, UTC. Captures
//! whose links are unknown never give links. Calls that end in `_into` replace the contents of what they fill, so that
//! who asks often allocates once; [`crate::Batch`] has many answers in one. Source: Avcular & Suel 2011, section 7 (the
//! calls).

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use crate::error::Error;
use crate::read::around::deaths::{self, Deaths, DeathsAsked, Linkers};
use crate::read::around::scope::Scope;
use crate::read::around::tally::{self, Ranked, Ranking};
use crate::read::dates::{ChangedLinks, differing, is_unknown_at};
use crate::read::spellings::{Spelled, deciding, in_order};
use crate::record::backlink::Backlink;
use crate::record::capture::{CaptureTime, Captures, first_and_last, is_unknown};
use crate::record::join::with_sources;
use crate::record::page::{InLinks, Page};
use crate::record::presence::{self, Change};
use crate::record::sample::Sample;
use crate::record::time::{AsOf, RangeLength, Window};
use crate::record::uid::Uid;

/// Consecutive known captures that had a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lifespan<L = Uid> {
    /// The link.
    pub link: L,
    /// Time of the first of the captures.
    pub first: i64,
    /// Time of the last of them.
    pub last: i64,
}

/// How right answers about in-links are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// As right as out-links: each source is asked.
    Exact,
    /// To the time ranges of the in-link layers: maybe sources too many, never too few.
    Range,
}

/// Which links are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Those of a page.
    Out,
    /// The pages that link to a URL.
    In(Precision),
}

/// The pages in a scope that link to a target at range precision, by UID.
pub(crate) fn sources_of<L: Links + ?Sized>(
    links: &L,
    target: &[Range<Uid>],
    scope: &Scope,
) -> Result<Vec<Uid>, Error> {
    let mut sources = Vec::new();
    for uid in target.iter().cloned().flat_map(Uid::each) {
        let linking = links.in_links(uid, Window::ALWAYS, Precision::Range)?;
        sources.extend(linking.into_iter().filter(|&source| scope.has(source)));
    }
    Ok(in_order(sources))
}

/// Asks when pages linked to a target, one after the other.
pub(crate) struct AskedBacklinks<'a> {
    target: &'a [Range<Uid>],
    lifespans: Vec<Lifespan>,
    captures: Vec<CaptureTime>,
    times: Vec<(i64, i64)>,
}

impl<'a> AskedBacklinks<'a> {
    pub(crate) fn of(target: &'a [Range<Uid>]) -> Self {
        Self { target, lifespans: Vec::new(), captures: Vec::new(), times: Vec::new() }
    }

    /// When a page linked; `None` if it never did.
    pub(crate) fn ask<L: Links + ?Sized>(&mut self, links: &L, source: Uid) -> Result<Option<Backlink>, Error> {
        let Self { target, lifespans, captures, times } = self;
        links.lifespans_into(source, lifespans)?;
        let targets = times_of(lifespans, target, times);
        if times.is_empty() {
            return Ok(None);
        }
        links.captures_into(source, captures)?;
        let mut backlink = Backlink { targets, ..Backlink::default() };
        backlink.set(captures.iter().copied(), times);
        Ok(Some(backlink))
    }
}

/// A link graph over time.
pub trait Links {
    /// The epoch in which its UIDs are true.
    fn epoch(&self) -> u64;

    /// How many URLs it has; UIDs are below that.
    fn urls(&self) -> u64;

    /// The UID of a URL (WHATWG-serialised, without fragment).
    ///
    /// # Errors
    /// What the storage refuses; so in all calls.
    fn uid(&self, url: &str) -> Result<Option<Uid>, Error>;

    /// The URL of a UID.
    ///
    /// # Errors
    /// [`Error::UnknownUid`], here and in all calls that take a UID.
    fn url(&self, uid: Uid) -> Result<String, Error>;

    /// Replaces the contents of `url` by the URL of a UID, in UTF-8.
    ///
    /// # Errors
    /// See [`Links::url`].
    fn url_into(&self, uid: Uid, url: &mut Vec<u8>) -> Result<(), Error> {
        *url = self.url(uid)?.into_bytes();
        Ok(())
    }

    /// The URLs of UIDs, in order.
    ///
    /// # Errors
    /// See [`Links::url`].
    fn urls_of(&self, uids: &[Uid]) -> Result<Vec<String>, Error> {
        uids.iter().map(|&uid| self.url(uid)).collect()
    }

    /// The page, or `None` when the URL was never captured.
    ///
    /// # Errors
    /// See [`Links::url`].
    fn page(&self, uid: Uid) -> Result<Option<Arc<Page>>, Error>;

    /// What linked to the URL, or `None` when nothing ever did.
    ///
    /// # Errors
    /// See [`Links::url`].
    fn in_record(&self, uid: Uid) -> Result<Option<Arc<InLinks>>, Error>;

    /// The length of the time ranges of in-link records.
    fn in_range(&self) -> RangeLength;

    /// The captures of the page, in order of time.
    ///
    /// # Errors
    /// See [`Links::url`].
    fn captures(&self, uid: Uid) -> Result<Vec<CaptureTime>, Error> {
        let mut captures = Vec::new();
        self.captures_into(uid, &mut captures)?;
        Ok(captures)
    }

    /// As [`Links::captures`], into memory that is there.
    ///
    /// # Errors
    /// See [`Links::url`].
    fn captures_into(&self, uid: Uid, captures: &mut Vec<CaptureTime>) -> Result<(), Error> {
        captures.clear();
        let Some(page) = self.page(uid)? else { return Ok(()) };
        captures.extend(page.captures().iter());
        Ok(())
    }

    /// The UIDs of the URLs whose keys begin with `prefix`: of a host, of a domain, of a path (see
    /// [`mod@crate::record::key`]). One range for each row that has such URLs, in order.
    ///
    /// # Errors
    /// See [`Links::url`].
    fn with_prefix(&self, prefix: &[u8]) -> Result<Vec<Range<Uid>>, Error>;

    /// The links of a page that differ from one date to another, or the pages that began or ceased to link to a URL.
    ///
    /// Cost: the question at both dates; with in-links, the captures of each source of one of the dates alone, where
    /// the store has unknown links.
    ///
    /// # Errors
    /// As of all questions.
    fn changed(&self, uid: Uid, is_inward: bool, dates: [AsOf; 2]) -> Result<ChangedLinks, Error> {
        let direction = if is_inward { Direction::In(Precision::Exact) } else { Direction::Out };
        let [before, after] = dates.map(|date| self.links(uid, direction, Window::AsOf(date)));
        let changed = differing(&before?, &after?);
        let (mut captures, mut unknown) = (Vec::new(), Vec::new());
        for page in changed.in_doubt(uid, is_inward, self.has_unknown()) {
            self.captures_into(page, &mut captures)?;
            unknown.extend(is_unknown_at(&captures, dates).then_some(page));
        }
        Ok(if is_inward { changed.set_apart(unknown) } else { changed.unless_unknown(unknown.pop()) })
    }

    /// Whether it may be unknown at all what a page links to: whether a capture has unknown links.
    fn has_unknown(&self) -> bool {
        true
    }

    /// The pages of which it is unknown as of a time whether they link ([`crate::Linking`]), rising: the page itself if
    /// its links are unknown then; or of the pages that ever linked to the URL those whose links are unknown then.
    ///
    /// Cost: the captures of these pages; nothing where no capture has unknown links.
    ///
    /// # Errors
    /// As of all questions.
    fn unknown(&self, uid: Uid, direction: Direction, as_of: AsOf) -> Result<Vec<Uid>, Error> {
        if !self.has_unknown() {
            return Ok(Vec::new());
        }
        let pages = match direction {
            Direction::Out => vec![uid],
            Direction::In(_) => self.in_links(uid, Window::ALWAYS, Precision::Exact)?,
        };
        let (mut unknown, mut captures) = (Vec::new(), Vec::new());
        for page in pages {
            self.captures_into(page, &mut captures)?;
            unknown.extend(is_unknown(&captures, as_of).then_some(page));
        }
        Ok(unknown)
    }

    /// The pages that ever linked to a URL, each with the time of its first capture with the link: oldest first, then
    /// by UID.
    ///
    /// Cost: the lifespans of each of these pages.
    ///
    /// # Errors
    /// As of all questions.
    fn first(&self, uid: Uid) -> Result<Vec<(i64, Uid)>, Error> {
        let (mut firsts, mut lifespans) = (Vec::new(), Vec::<Lifespan>::new());
        for source in self.in_links(uid, Window::ALWAYS, Precision::Exact)? {
            self.lifespans_into(source, &mut lifespans)?;
            let to_url = lifespans.iter().filter(|lifespan| lifespan.link == uid);
            firsts.extend(to_url.map(|lifespan| lifespan.first).min().map(|first| (first, source)));
        }
        firsts.sort_unstable();
        Ok(firsts)
    }

    /// When each page in a scope linked to a target, which is the URLs of these UIDs, by UID; pages that never did are
    /// left out. The rule is that of [`mod@crate::record::backlink`].
    ///
    /// Cost: the sources of each URL of the target, and the lifespans and captures of each source in the scope once.
    /// Memory: the answer, and the UIDs of these sources.
    ///
    /// # Errors
    /// As of all questions.
    fn backlinks(&self, target: &[Range<Uid>], scope: &Scope) -> Result<Vec<(Uid, Backlink)>, Error> {
        let mut backlinks = Vec::new();
        let mut asking = AskedBacklinks::of(target);
        for source in sources_of(self, target, scope)? {
            backlinks.extend(asking.ask(self, source)?.map(|backlink| (source, backlink)));
        }
        Ok(backlinks)
    }

    /// Who links to a target: [`Links::backlinks`] counted, selected and in an order.
    ///
    /// Memory: the UIDs of the sources in the scope, and the rows of the answer.
    ///
    /// # Errors
    /// As of all questions.
    fn referrers(&self, target: &[Range<Uid>], scope: &Scope, ranking: Ranking) -> Result<Ranked, Error> {
        tally::count(self, target, scope, ranking)
    }

    /// The deaths of pages with these UIDs, counted, selected and in an order.
    ///
    /// Cost: the captures of each page with a failure; with [`Order::Most`](crate::Order::Most) also the links to each
    /// page that is selected. Memory: the rows of the answer.
    ///
    /// # Errors
    /// As of all questions.
    fn deaths(&self, pages: &[Range<Uid>], asked: DeathsAsked) -> Result<Deaths, Error> {
        deaths::count(self, pages, asked)
    }

    /// For each page who links to it to this day, with the first `most` pages that link.
    ///
    /// Cost: the links to each page.
    ///
    /// # Errors
    /// As of all questions.
    fn linkers(&self, pages: &[Uid], most: usize) -> Result<Vec<Linkers>, Error> {
        pages.iter().map(|&page| deaths::linkers_of(self, page, most)).collect()
    }

    /// The URLs of the store that are spellings of a page, in order.
    ///
    /// # Errors
    /// As of all questions.
    fn spellings(&self, page: &Spelled) -> Result<Vec<Uid>, Error> {
        let mut found = Vec::new();
        for prefix in page.prefixes() {
            for uid in self.with_prefix(&prefix)?.into_iter().flat_map(Uid::each) {
                if page.is_spelled(&self.url(uid)?) {
                    found.push(uid);
                }
            }
        }
        Ok(in_order(found))
    }

    /// The links of one page, given its spellings, and the spellings that decide if their links are unknown; with
    /// [`Direction::In`], the pages that link to any spelling, and those of which that is unknown ([`Links::unknown`]).
    ///
    /// # Errors
    /// As of all questions.
    fn links_of_page(
        &self,
        spellings: &[Uid],
        direction: Direction,
        window: Window,
    ) -> Result<(Vec<Uid>, Vec<Uid>), Error> {
        let (mut all, mut unknown) = (Vec::new(), Vec::new());
        let asked = match (direction, window) {
            (Direction::Out, Window::AsOf(as_of)) => {
                let captures = spellings.iter().map(|&uid| self.captures(uid)).collect::<Result<Vec<_>, _>>()?;
                let (decide, is_unknown) = deciding(captures.iter().map(Vec::as_slice), as_of);
                let decide: Vec<Uid> = decide.into_iter().map(|spelling| spellings[spelling]).collect();
                unknown.extend_from_slice(if is_unknown { &decide } else { &[] });
                decide
            }
            (Direction::In(_), Window::AsOf(as_of)) => {
                for &uid in spellings {
                    unknown.extend(self.unknown(uid, direction, as_of)?);
                }
                spellings.to_vec()
            }
            _ => spellings.to_vec(),
        };
        for uid in asked {
            all.extend(self.links(uid, direction, window)?);
        }
        Ok((in_order(all), in_order(unknown)))
    }

    /// Calls `visit` with each page of these UIDs that has a capture in the closed interval, its links known or not, in
    /// order, until it breaks.
    ///
    /// # Errors
    /// See [`Links::url`].
    fn uids(
        &self,
        uids: Range<Uid>,
        (from, to): (i64, i64),
        visit: &mut dyn FnMut(Uid) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        for uid in Uid::each(uids) {
            let Some(page) = self.page(uid)? else { continue };
            let next = page.timestamps.partition_point(|&time| time < from);
            if page.timestamps.get(next).is_some_and(|&time| time <= to) && visit(uid).is_break() {
                break;
            }
        }
        Ok(())
    }

    /// The pages of these UIDs that may have a failure: all that have one, and maybe pages of which a newer row took
    /// it out. Rising.
    ///
    /// # Errors
    /// See [`Links::url`].
    fn failing(&self, uids: Range<Uid>) -> Result<Vec<Uid>, Error> {
        let (mut failing, mut captures) = (Vec::new(), Vec::new());
        for uid in Uid::each(uids) {
            self.captures_into(uid, &mut captures)?;
            failing.extend(captures.iter().any(|capture| capture.status.is_failure()).then_some(uid));
        }
        Ok(failing)
    }

    /// The links of the page, or what links to the URL, in the window, rising.
    ///
    /// # Errors
    /// See [`Links::url`].
    fn links(&self, uid: Uid, direction: Direction, window: Window) -> Result<Vec<Uid>, Error> {
        match direction {
            Direction::Out => self.out_links(uid, window),
            Direction::In(precision) => self.in_links(uid, window, precision),
        }
    }

    /// As [`Links::links`], into memory that is there.
    ///
    /// # Errors
    /// See [`Links::url`].
    fn links_into(&self, uid: Uid, direction: Direction, window: Window, links: &mut Vec<Uid>) -> Result<(), Error> {
        *links = self.links(uid, direction, window)?;
        Ok(())
    }

    /// How many [`Links::links`] gives.
    ///
    /// # Errors
    /// See [`Links::url`].
    fn degree(&self, uid: Uid, direction: Direction, window: Window) -> Result<usize, Error> {
        Ok(self.links(uid, direction, window)?.len())
    }

    /// A sample of what [`Links::links`] gives, rising; all of it where that is no more than the sample may hold.
    ///
    /// # Errors
    /// See [`Links::url`].
    fn sample(&self, uid: Uid, direction: Direction, window: Window, sample: Sample) -> Result<Vec<Uid>, Error> {
        let mut links = Vec::new();
        self.sample_into(uid, direction, window, sample, &mut links)?;
        Ok(links)
    }

    /// As [`Links::sample`], into memory that is there.
    ///
    /// # Errors
    /// See [`Links::url`].
    fn sample_into(
        &self,
        uid: Uid,
        direction: Direction,
        window: Window,
        sample: Sample,
        links: &mut Vec<Uid>,
    ) -> Result<(), Error> {
        self.links_into(uid, direction, window, links)?;
        sample.draw(uid, links);
        Ok(())
    }

    /// The links of the page in the window.
    ///
    /// # Errors
    /// See [`Links::url`].
    fn out_links(&self, uid: Uid, window: Window) -> Result<Vec<Uid>, Error> {
        let mut links = Vec::new();
        if let Some(page) = self.page(uid)? {
            page.links_in(window, &mut links);
        }
        Ok(links)
    }

    /// Whether the page has the link in the window.
    ///
    /// # Errors
    /// See [`Links::url`].
    fn has_link(&self, uid: Uid, link: Uid, window: Window) -> Result<bool, Error> {
        Ok(self.page(uid)?.is_some_and(|page| page.has_link(link, window)))
    }

    /// The pages that link to the URL in the window: those whose [`Links::out_links`] have it.
    ///
    /// # Errors
    /// See [`Links::url`].
    fn in_links(&self, uid: Uid, window: Window, precision: Precision) -> Result<Vec<Uid>, Error> {
        let Some(record) = self.in_record(uid)? else { return Ok(Vec::new()) };
        let mut sources = Vec::new();
        sources_in(&record, self.in_range(), window, &mut sources);
        if precision == Precision::Exact {
            keep_linking(self, &mut sources, uid, window)?;
        }
        Ok(sources)
    }

    /// For each link of the page, in order, the intervals of consecutive captures that had it. Captures of unknown
    /// links neither begin nor end an interval, nor do failures of the server; other failures end it
    /// ([`Failures::End`](crate::record::status::Failures::End)).
    ///
    /// # Errors
    /// See [`Links::url`].
    fn lifespans(&self, uid: Uid) -> Result<Vec<Lifespan>, Error> {
        let mut lifespans = Vec::new();
        self.lifespans_into(uid, &mut lifespans)?;
        Ok(lifespans)
    }

    /// As [`Links::lifespans`], into memory that is there.
    ///
    /// # Errors
    /// See [`Links::url`].
    fn lifespans_into(&self, uid: Uid, lifespans: &mut Vec<Lifespan>) -> Result<(), Error> {
        lifespans.clear();
        if let Some(page) = self.page(uid)? {
            lifespans_of(page.captures(), &page.links, page.changes.iter().copied(), lifespans);
        }
        Ok(())
    }
}

/// Leaves of in-links the sources that ever link to the URL, one by one; see [`with_sources`].
///
/// # Errors
/// The first of a question.
pub fn still_linking(
    record: &InLinks,
    mut has_link: impl FnMut(Uid) -> Result<bool, Error>,
) -> Result<Option<InLinks>, Error> {
    let mut failed = None;
    let left = with_sources(record, |source| {
        failed.is_none()
            && has_link(source).unwrap_or_else(|error| {
                failed = Some(error);
                false
            })
    });
    failed.map_or(Ok(left), Err)
}

/// Appends the sources of a record that link in a range that the window meets: a source that has the link at some time
/// has it in the range of that time.
pub(crate) fn sources_in(record: &InLinks, length: RangeLength, window: Window, sources: &mut Vec<Uid>) {
    let (from, to) = match window {
        Window::Seen { from, to } if from > to => return,
        Window::Seen { from, to } => (from, to),
        Window::AsOf(AsOf { time, .. }) => (i64::MIN, time),
    };
    let first = record.ranges.partition_point(|&start| length.end(start) < from);
    let stretch = first_and_last(first, record.ranges.partition_point(|&start| start <= to));
    let present = |at| sources.extend_from_slice(&record.sources[at]);
    presence::visit_in(&record.changes, record.sources.len(), stretch.as_slice(), present);
}

/// Replaces the contents of `times` by the lifespans of a page's links to a target, given those of all its links in
/// order; returns how many URLs of the target the page ever linked to.
pub fn times_of(lifespans: &[Lifespan], target: &[Range<Uid>], times: &mut Vec<(i64, i64)>) -> u64 {
    times.clear();
    let (mut targets, mut before) = (0, None);
    for uids in target {
        let first = lifespans.partition_point(|lifespan| lifespan.link < uids.start);
        for lifespan in lifespans[first..].iter().take_while(|lifespan| lifespan.link < uids.end) {
            targets += u64::from(before != Some(lifespan.link));
            before = Some(lifespan.link);
            times.push((lifespan.first, lifespan.last));
        }
    }
    targets
}

/// Leaves of the sources those that have the link in the window.
pub(crate) fn keep_linking<L: Links + ?Sized>(
    links: &L,
    sources: &mut Vec<Uid>,
    link: Uid,
    window: Window,
) -> Result<(), Error> {
    let mut failed = None;
    sources.retain(|&source| {
        failed.is_none()
            && links.has_link(source, link, window).unwrap_or_else(|error| {
                failed = Some(error);
                false
            })
    });
    failed.map_or(Ok(()), Err)
}

/// Appends the lifespans of links; see [`Links::lifespans`]. Changes are sorted.
pub fn lifespans_of<L: Copy>(
    captures: Captures<'_>,
    links: &[L],
    changes: impl Iterator<Item = Change>,
    lifespans: &mut Vec<Lifespan<L>>,
) {
    let times = captures.times;
    let ends = captures.ends();
    let mut changes = changes.peekable();
    for (at, &link) in (0u32..).zip(links) {
        let mut add_lifespan = |first: usize, end: usize| {
            let alive = captures.between_ends(&ends, first, end.min(times.len()));
            let lifespan = |(first, last)| Lifespan { link, first: times[first as usize], last: times[last as usize] };
            lifespans.extend(alive.map(lifespan));
        };
        let mut since = Some(0);
        while let Some(change) = changes.next_if(|change| change.link <= at) {
            let capture = change.capture as usize;
            since = match since {
                None => Some(capture),
                Some(first) => {
                    add_lifespan(first, capture);
                    None
                }
            };
        }
        since.into_iter().for_each(|first| add_lifespan(first, times.len()));
    }
}
