//! The questions that every form of a graph answers: the trait [`Links`], with the answers about time written once.
//!
//! An implementation of the trait gives pages and in-link records. Answers are UIDs in rising order, and times in
//! seconds, UTC. Captures with unknown links never give links. Methods that end in `_into` replace the contents of the
//! memory that they fill, so that a caller with many questions allocates once. [`crate::Batch`] holds many answers in
//! one. Source: Avcular & Suel 2011, section 7 (the calls).

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
///
/// ```
/// use webstrata_layers::{Captures, Change, Lifespan, Uid, lifespans_of};
///
/// // A link that is in the first capture, and again in the third and the fourth one.
/// let captures = Captures { times: &[100, 200, 300, 400], ..Captures::default() };
/// let changes = [1, 2].map(|capture| Change { link: 0, capture });
/// let mut lifespans = Vec::new();
/// lifespans_of(captures, &[Uid(9)], changes.into_iter(), &mut lifespans);
/// assert_eq!(lifespans, [(100, 100), (300, 400)].map(|(first, last)| Lifespan { link: Uid(9), first, last }));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lifespan<L = Uid> {
    /// The link.
    pub link: L,
    /// Time of the first of the captures.
    pub first: i64,
    /// Time of the last of the captures.
    pub last: i64,
}

/// The precision of answers about in-links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// As exact as out-links: the captures of each source are checked.
    Exact,
    /// The precision of the time ranges of the in-link layers: maybe too many sources, never too few.
    Range,
}

/// The direction of the links of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The links of a page.
    Out,
    /// The pages that link to a URL.
    In(Precision),
}

/// The pages in a scope that link to a target at range precision, in order of UID.
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

/// Answers when pages linked to a target, one page after the other.
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

    /// The times at which a page linked to the target; `None` if it never did.
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
    /// The epoch in which the UIDs of this graph are valid.
    fn epoch(&self) -> u64;

    /// The number of URLs; all UIDs are below this number.
    fn urls(&self) -> u64;

    /// The UID of a URL (WHATWG-serialised, without fragment).
    ///
    /// # Errors
    /// Errors of the storage, as in all methods.
    fn uid(&self, url: &str) -> Result<Option<Uid>, Error>;

    /// The URL of a UID.
    ///
    /// # Errors
    /// Errors of the storage. [`Error::UnknownUid`] if the UID is not in the graph, here and in all methods that take a
    /// UID.
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

    /// The page, or `None` if the URL was never captured.
    ///
    /// # Errors
    /// See [`Links::url`].
    fn page(&self, uid: Uid) -> Result<Option<Arc<Page>>, Error>;

    /// The in-link record of the URL, or `None` if no page ever linked to the URL.
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

    /// Like [`Links::captures`], into memory of the caller.
    ///
    /// # Errors
    /// See [`Links::url`].
    fn captures_into(&self, uid: Uid, captures: &mut Vec<CaptureTime>) -> Result<(), Error> {
        captures.clear();
        let Some(page) = self.page(uid)? else { return Ok(()) };
        captures.extend(page.captures().iter());
        Ok(())
    }

    /// The UIDs of the URLs whose keys begin with `prefix`, for example the URLs of a host, a domain or a path (see
    /// [`mod@crate::record::key`]). One range for each row with such URLs, in order.
    ///
    /// # Errors
    /// See [`Links::url`].
    fn with_prefix(&self, prefix: &[u8]) -> Result<Vec<Range<Uid>>, Error>;

    /// The links of a page that differ between two dates, or the pages that began or ceased to link to a URL.
    ///
    /// Cost: the question at both dates. With in-links, if the store has unknown links, also the captures of each
    /// source that links at only one of the dates.
    ///
    /// # Errors
    /// See [`Links::url`].
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

    /// Whether any capture of the graph has unknown links. An implementation may return true if it does not know.
    fn has_unknown(&self) -> bool {
        true
    }

    /// The pages of which it is unknown as of a time whether they link ([`crate::Linking`]), rising. For out-links: the
    /// page itself, if its links are unknown then. For in-links: the pages that ever linked to the URL and have unknown
    /// links then.
    ///
    /// Cost: the captures of these pages; nothing if no capture has unknown links.
    ///
    /// # Errors
    /// See [`Links::url`].
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

    /// The pages that ever linked to a URL, each with the time of its first capture with the link. Ordered by time,
    /// then by UID.
    ///
    /// Cost: the lifespans of each of these pages.
    ///
    /// # Errors
    /// See [`Links::url`].
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

    /// The backlinks of a target, which is the URLs of these UIDs: for each page in a scope that ever linked to the
    /// target, when it linked. Ordered by UID. The rule is in [`mod@crate::record::backlink`].
    ///
    /// Cost: the sources of each URL of the target; once, the lifespans and captures of each source in the scope.
    /// Memory: the answer, and the UIDs of these sources.
    ///
    /// # Errors
    /// See [`Links::url`].
    fn backlinks(&self, target: &[Range<Uid>], scope: &Scope) -> Result<Vec<(Uid, Backlink)>, Error> {
        let mut backlinks = Vec::new();
        let mut asking = AskedBacklinks::of(target);
        for source in sources_of(self, target, scope)? {
            backlinks.extend(asking.ask(self, source)?.map(|backlink| (source, backlink)));
        }
        Ok(backlinks)
    }

    /// The pages that link to a target: [`Links::backlinks`], counted, selected and ordered.
    ///
    /// Memory: the UIDs of the sources in the scope, and the rows of the answer.
    ///
    /// # Errors
    /// See [`Links::url`].
    fn referrers(&self, target: &[Range<Uid>], scope: &Scope, ranking: Ranking) -> Result<Ranked, Error> {
        tally::count(self, target, scope, ranking)
    }

    /// The deaths of pages with these UIDs, counted, selected and ordered.
    ///
    /// Cost: the captures of each page with a failure. With [`Order::Most`](crate::Order::Most), also the links to each
    /// selected page. Memory: the rows of the answer.
    ///
    /// # Errors
    /// See [`Links::url`].
    fn deaths(&self, pages: &[Range<Uid>], asked: DeathsAsked) -> Result<Deaths, Error> {
        deaths::count(self, pages, asked)
    }

    /// For each page, the pages that link to it to this day: counted, and the first `most` of them.
    ///
    /// Cost: the links to each page.
    ///
    /// # Errors
    /// See [`Links::url`].
    fn linkers(&self, pages: &[Uid], most: usize) -> Result<Vec<Linkers>, Error> {
        pages.iter().map(|&page| deaths::linkers_of(self, page, most)).collect()
    }

    /// The URLs of the store that are spellings of a page, in order.
    ///
    /// # Errors
    /// See [`Links::url`].
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

    /// The links of one page, given its spellings. Also returns the spellings that decide, if their links are unknown.
    /// With [`Direction::In`]: the pages that link to any spelling, and the pages of which this is unknown
    /// ([`Links::unknown`]).
    ///
    /// # Errors
    /// See [`Links::url`].
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

    /// Calls `visit` with each page of these UIDs that has a capture in the closed interval, in order, until `visit`
    /// breaks. Captures with unknown links count.
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

    /// The pages of these UIDs that may have a failure, rising: all pages that have one, and maybe pages whose failures
    /// were all taken out by a newer row.
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

    /// The links of the page, or the pages that link to the URL, in the window, rising.
    ///
    /// # Errors
    /// See [`Links::url`].
    fn links(&self, uid: Uid, direction: Direction, window: Window) -> Result<Vec<Uid>, Error> {
        match direction {
            Direction::Out => self.out_links(uid, window),
            Direction::In(precision) => self.in_links(uid, window, precision),
        }
    }

    /// Like [`Links::links`], into memory of the caller.
    ///
    /// # Errors
    /// See [`Links::url`].
    fn links_into(&self, uid: Uid, direction: Direction, window: Window, links: &mut Vec<Uid>) -> Result<(), Error> {
        *links = self.links(uid, direction, window)?;
        Ok(())
    }

    /// The number of UIDs that [`Links::links`] gives.
    ///
    /// # Errors
    /// See [`Links::url`].
    fn degree(&self, uid: Uid, direction: Direction, window: Window) -> Result<usize, Error> {
        Ok(self.links(uid, direction, window)?.len())
    }

    /// A sample of the UIDs that [`Links::links`] gives, rising; all of them if they fit into the sample.
    ///
    /// # Errors
    /// See [`Links::url`].
    fn sample(&self, uid: Uid, direction: Direction, window: Window, sample: Sample) -> Result<Vec<Uid>, Error> {
        let mut links = Vec::new();
        self.sample_into(uid, direction, window, sample, &mut links)?;
        Ok(links)
    }

    /// Like [`Links::sample`], into memory of the caller.
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

    /// The pages that link to the URL in the window: the pages with the URL in their [`Links::out_links`].
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

    /// For each link of the page, in order, the intervals of consecutive captures that had the link. Captures with
    /// unknown links neither begin nor end an interval. The same holds for failures of the server; other failures end
    /// an interval ([`Failures::End`](crate::record::status::Failures::End)).
    ///
    /// # Errors
    /// See [`Links::url`].
    fn lifespans(&self, uid: Uid) -> Result<Vec<Lifespan>, Error> {
        let mut lifespans = Vec::new();
        self.lifespans_into(uid, &mut lifespans)?;
        Ok(lifespans)
    }

    /// Like [`Links::lifespans`], into memory of the caller.
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

/// Keeps only the sources of an in-link record that ever link to the URL, asking `has_link` for each; see
/// [`with_sources`].
///
/// # Errors
/// The first error of `has_link`.
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

/// Appends the sources of a record that link in a range that overlaps the window. A source that has the link at a time
/// is marked in the range of that time.
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

/// Replaces the contents of `times` by the lifespans of a page's links to a target, given the lifespans of all its
/// links in order. Returns the number of URLs of the target that the page ever linked to.
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

/// Keeps only the sources that have the link in the window.
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

/// Appends the lifespans of links; see [`Links::lifespans`]. The changes must be sorted.
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
