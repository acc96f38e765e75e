//! What every form of a graph answers about one URL: the trait [`Links`], with the answers about time written once.
//! [`mod@crate::questions`] has the questions about several URLs.
//!
//! An implementation of the trait gives pages and in-link records. Answers are UIDs in rising order, and times in
//! seconds, UTC. Captures with unknown links never give links. Methods that end in `_into` replace the contents of the
//! memory that they fill, so that a caller with many questions allocates once. [`crate::Batch`] holds many answers in
//! one. Source: Avcular & Suel 2011, section 7 (the calls).

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use crate::error::Error;
use crate::questions::{Direction, Precision, Program};
use crate::read::drive::drive;
use crate::read::spellings::Spelled;
use crate::record::capture::lifespan::{Lifespan, Spans};
use crate::record::capture::{CaptureTime, first_and_last};
use crate::record::join::with_sources;
use crate::record::page::{InLinks, Page};
use crate::record::presence;
use crate::record::sample::Sample;
use crate::record::time::{RangeLength, Window};
use crate::record::uid::{Uid, in_order};

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

    /// Whether any capture of the graph is cut or has unknown links. An implementation may return true if it does not
    /// know.
    fn has_unknown(&self) -> bool {
        true
    }

    /// Takes a program through its steps: answers each of its questions until it asks no more. The function
    /// [`answer_of`](crate::read::drive::answer_of) gives the answer. An implementation over a network answers about
    /// many items in one call.
    ///
    /// # Errors
    /// See [`Links::url`].
    fn drive(&self, program: &mut dyn Program) -> Result<(), Error> {
        drive(self, program)
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
            keep_linking(&mut sources, |source| self.has_link(source, uid, window))?;
        }
        Ok(sources)
    }

    /// For each link of the page, in order, its lifespans: see [`Lifespan`] for what begins and ends them.
    ///
    /// # Errors
    /// See [`Links::url`].
    fn lifespans(&self, uid: Uid) -> Result<Vec<Lifespan>, Error> {
        let mut lifespans = Vec::new();
        self.spans_into(uid, Spans::Lifespans, &mut lifespans)?;
        Ok(lifespans)
    }

    /// Replaces the contents of `found` by the lifespans or runs of each link of the page, in order.
    ///
    /// # Errors
    /// See [`Links::url`].
    fn spans_into(&self, uid: Uid, spans: Spans, found: &mut Vec<Lifespan>) -> Result<(), Error> {
        found.clear();
        if let Some(page) = self.page(uid)? {
            spans.of_page(&page, found);
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
    let Window::Seen { from, to } = window.of_ranges(length) else { return };
    let first = record.ranges.partition_point(|&start| start < from);
    let stretch = first_and_last(first, record.ranges.partition_point(|&start| start <= to));
    let present = |at| sources.extend_from_slice(&record.sources[at]);
    presence::visit_in(&record.changes, record.sources.len(), stretch.as_slice(), present);
}

/// Keeps only the sources for which `has_link` is true.
///
/// # Errors
/// The first error of `has_link`.
pub fn keep_linking<E>(sources: &mut Vec<Uid>, mut has_link: impl FnMut(Uid) -> Result<bool, E>) -> Result<(), E> {
    let mut failed = None;
    sources.retain(|&source| {
        failed.is_none()
            && has_link(source).unwrap_or_else(|error| {
                failed = Some(error);
                false
            })
    });
    failed.map_or(Ok(()), Err)
}
