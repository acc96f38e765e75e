//! One cell: one partition of one row. A URL store, a forward and a backward link store, in the bytes of a mapped
//! image.
//!
//! A cell answers from its own records only. Callers combine the answers of several rows. Link stores hold [`Number`]s
//! and callers use [`Uid`]s; the cell translates. A [`Node`] is the index of a record. [`Cell::node`] finds the node of
//! a UID, and the other calls about records take a node.

mod content;
mod summary;

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use webstrata_layers::record::capture::deciding;
use webstrata_layers::{
    Backlink, CaptureTime, Error as LayersError, InLinks, KeyOrder, Lifespan, Page, PartitionEntry, RowEntry, Spans,
    Spelled, Store, Uid, Window, status_stretches, times_of,
};

use crate::error::{Damage, Error};
use crate::image::label::{Label, label_of, path_of};
use crate::image::{Counts, Image, Residence};
use crate::links::backward::{Found, Wanted};
use crate::links::encoding::{Encoding, Encodings, ForwardStore, InLinkStore, LinkStores};
use crate::links::scratch::StoreScratch;
use crate::mapped::guard::Guard;
use crate::numbers::{Node, Number, Numbers};
use crate::scratch::Scratch;
use crate::statuses::Statuses;
use crate::url_store::UrlStore;

pub(crate) use content::Content;
use summary::Summary;
pub use summary::{BUSIEST, HostUrls};

/// One partition of one row.
pub struct Cell {
    path: PathBuf,
    label: Label,
    counts: Counts,
    bytes: u64,
    urls: UrlStore,
    numbers: Numbers,
    forward: Box<dyn ForwardStore>,
    backward: InLinkStore,
    statuses: Statuses,
    summary: OnceLock<Summary>,
    /// Checks a mapped image.
    guard: Guard,
    /// Whether the image is known to have changed.
    is_damaged: AtomicBool,
}

impl Cell {
    /// Opens the image of a partition. Returns `None` if there is no image, or if the image was made from other layers.
    ///
    /// # Errors
    /// An image that cannot be read, is damaged, or has another version.
    pub(crate) fn open(
        store: &Store,
        directory: &Path,
        row: &RowEntry,
        partition: &PartitionEntry,
        (residence, encodings): (Residence, Encodings),
    ) -> Result<Option<Self>, Error> {
        let path = path_of(directory, row.row, partition.partition);
        if !path.try_exists().map_err(|source| Error::Io { path: path.clone(), source })? {
            return Ok(None);
        }
        let image = Image::open(&path, residence)?;
        if image.label != label_of(store, row, partition, image.label.encoding) {
            return Ok(None);
        }
        let encoding = encodings.of(&path, image.label.encoding)?;
        Self::of(path, image, encoding).map(Some)
    }

    /// Opens the cell of an image.
    ///
    /// # Errors
    /// Sections that do not fit together.
    pub(crate) fn of(path: PathBuf, image: Image, encoding: &dyn Encoding) -> Result<Self, Error> {
        let Image { label, counts, urls, numbers, forward, backward, statuses, guard, .. } = image;
        let bytes = [&urls, &numbers, &forward, &backward, &statuses].map(|section| section.bytes().len() as u64);
        let bytes = bytes.iter().sum();
        let damaged = |damage| Error::Damaged { path: path.clone(), damage };
        let urls = UrlStore::open_section(&urls).map_err(damaged)?;
        if urls.len() != label.urls {
            return Err(damaged(Damage::Outside { part: "URLs", value: urls.len(), bound: label.urls }));
        }
        let [numbers, statuses] = [numbers, statuses].map(|section| section.resident(section.bytes().clone()));
        let numbers = Numbers::open(numbers, label.first_record..label.end_record).map_err(damaged)?;
        let first = numbers.first();
        let links = encoding.open([&forward, &backward], first, numbers.len()).map_err(damaged)?;
        let LinkStores { forward, backward } = links;
        let statuses = Statuses::open(statuses).map_err(damaged)?;
        let (summary, is_damaged) = (OnceLock::new(), AtomicBool::new(false));
        Ok(Self { path, label, counts, bytes, urls, numbers, forward, backward, statuses, summary, guard, is_damaged })
    }

    /// The partition and row that the cell was made from.
    pub fn label(&self) -> &Label {
        &self.label
    }

    /// The counts of the contents.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// The number of URLs in a block.
    pub(crate) fn url_block(&self) -> usize {
        self.urls.block()
    }

    /// The size of the URLs and links in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The path of the image.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The guard that checks the blocks of a mapped image when they are read, and the whole image on request.
    pub fn guard(&self) -> &Guard {
        &self.guard
    }

    /// Whether the image is known to have changed since it was opened. Such a cell is unusable.
    pub fn is_damaged(&self) -> bool {
        self.is_damaged.load(Ordering::Relaxed)
    }

    /// Checks whether the file of a mapped image was written to. Call it before questions that come later than others.
    /// Cost: a system call, or none for an image in memory.
    ///
    /// # Errors
    /// An image that was truncated.
    pub fn refresh(&self) -> Result<(), LayersError> {
        self.guard.refresh().map_err(|damage| self.damaged(damage))
    }

    /// Verifies blocks of a mapped image, whether or not they were read.
    ///
    /// # Errors
    /// An image that has changed.
    pub fn verify(&self, blocks: Range<usize>) -> Result<(), LayersError> {
        self.guard.verify(blocks).map_err(|damage| self.damaged(damage))
    }

    #[cold]
    fn damaged(&self, damage: Damage) -> LayersError {
        // Other damage is in the question, or in bytes that no checksum covers.
        if matches!(damage, Damage::Changed { .. } | Damage::Unreadable { .. } | Damage::Cut) {
            self.is_damaged.store(true, Ordering::Relaxed);
        }
        LayersError::Elsewhere(Box::new(Error::Damaged { path: self.path.clone(), damage }))
    }

    /// Replaces the contents of `url` by the URL of a UID of this cell.
    ///
    /// # Errors
    /// A UID that does not belong to a URL of the cell, and a damaged image.
    pub fn url(&self, uid: Uid, url: &mut String) -> Result<(), LayersError> {
        self.urls.url(uid.0.wrapping_sub(self.label.first_uid.0), url).map_err(|damage| self.damaged(damage))
    }

    /// The UID of a key, if the key belongs to a URL of the cell.
    ///
    /// # Errors
    /// See [`Self::window`].
    pub fn find(&self, key: &[u8]) -> Result<Option<Uid>, LayersError> {
        let at = self.urls.find(key).map_err(|damage| self.damaged(damage))?;
        Ok(at.map(|at| self.label.first_uid + at))
    }

    /// The UIDs of the cell's URLs whose keys begin with `prefix`. These UIDs are contiguous.
    ///
    /// # Errors
    /// See [`Self::window`].
    pub fn prefix(&self, prefix: &[u8]) -> Result<Range<Uid>, LayersError> {
        let uids = self.urls.prefix(prefix).map_err(|damage| self.damaged(damage))?;
        Ok(self.label.first_uid + uids.start..self.label.first_uid + uids.end)
    }

    /// Appends the UIDs of the cell's URLs that are spellings of a page.
    ///
    /// # Errors
    /// See [`Self::window`].
    pub fn spellings(&self, page: &Spelled, found: &mut Vec<Uid>) -> Result<(), LayersError> {
        page.search(self, found)
    }

    /// The node of a UID; `None` if the UID has no record here, neither of out-links nor of in-links.
    #[inline]
    pub fn node(&self, uid: Uid) -> Option<Node> {
        self.numbers.node(uid)
    }

    /// Whether a node has captures.
    ///
    /// # Errors
    /// See [`Self::window`].
    pub fn has_page(&self, node: Node) -> Result<bool, LayersError> {
        self.forward.has(node).map_err(|damage| self.damaged(damage))
    }

    /// Replaces the contents of `links` by the links of a node in the window.
    ///
    /// # Errors
    /// A node outside the cell, and a damaged image.
    #[inline]
    pub fn window(
        &self,
        node: Node,
        window: Window,
        scratch: &mut Scratch,
        links: &mut Vec<Uid>,
    ) -> Result<(), LayersError> {
        self.numbers_in(node, window, scratch).map_err(|damage| self.damaged(damage))?;
        self.numbers.uids_into(&scratch.numbers, links);
        Ok(())
    }

    /// The window in which the link store has the answer about a window; `None` if no capture decides.
    #[inline]
    fn stored_window(&self, node: Node, window: Window, scratch: &mut Scratch) -> Result<Option<Window>, Damage> {
        let (Window::AsOf(as_of), false) = (window, self.statuses.is_empty()) else { return Ok(Some(window)) };
        self.statuses.changes(node, &mut scratch.statuses)?;
        if scratch.statuses.is_empty() {
            return Ok(Some(window));
        }
        let mut captures = std::mem::take(&mut scratch.captures);
        self.captures_of(node, scratch, &mut captures)?;
        let decides = deciding(&captures, as_of).map(|capture| capture.time);
        scratch.captures = captures;
        // The link store has no statuses, so the question is about the capture that decides.
        Ok(decides.map(|time| Window::Seen { from: time, to: time }))
    }

    /// Writes the links of a node in the window to `scratch.numbers`.
    #[inline]
    fn numbers_in(&self, node: Node, window: Window, scratch: &mut Scratch) -> Result<(), Damage> {
        match self.stored_window(node, window, scratch)? {
            Some(window) => self.forward.window(node, window, &mut scratch.store, &mut scratch.numbers),
            None => {
                scratch.numbers.clear();
                Ok(())
            }
        }
    }

    /// Replaces the contents of `captures` by the captures of a node. `scratch.statuses` must have the changes of its
    /// statuses.
    fn captures_of(&self, node: Node, scratch: &mut Scratch, captures: &mut Vec<CaptureTime>) -> Result<(), Damage> {
        self.forward.captures(node, &mut scratch.store, captures)?;
        let count = u32::try_from(captures.len()).unwrap_or(u32::MAX);
        for (first, end, status) in status_stretches(&scratch.statuses, count) {
            for capture in captures.get_mut(first as usize..end as usize).unwrap_or_default() {
                capture.status = status;
                capture.known |= status.is_failure();
            }
        }
        Ok(())
    }

    /// Whether a node has a link in the window.
    ///
    /// # Errors
    /// See [`Self::window`].
    pub fn has_link(&self, node: Node, link: Uid, window: Window, scratch: &mut Scratch) -> Result<bool, LayersError> {
        let Some(number) = self.numbers.number(link) else { return Ok(false) };
        self.numbers_in(node, window, scratch).map_err(|damage| self.damaged(damage))?;
        Ok(scratch.numbers.binary_search(&number).is_ok())
    }

    /// Whether a node has a link in the window, for a node that probably never has it. The nodes of a question are near
    /// one another and come in order.
    pub(crate) fn perhaps_has_link(
        &self,
        node: Node,
        link: Uid,
        window: Window,
        scratch: &mut Scratch,
    ) -> Result<bool, LayersError> {
        let Some(number) = self.numbers.number(link) else { return Ok(false) };
        let mut decide = || {
            let ever = self.forward.ever_links(node, number, &mut scratch.store)?;
            if !ever || window == Window::ALWAYS {
                return Ok(ever);
            }
            match self.stored_window(node, window, scratch)? {
                Some(window) => self.forward.links_in(node, number, window, &mut scratch.store),
                None => Ok(false),
            }
        };
        decide().map_err(|damage| self.damaged(damage))
    }

    /// Replaces the contents of `captures` by the captures of a node.
    ///
    /// # Errors
    /// See [`Self::window`].
    pub fn captures(
        &self,
        node: Node,
        scratch: &mut Scratch,
        captures: &mut Vec<CaptureTime>,
    ) -> Result<(), LayersError> {
        let mut read = |scratch: &mut Scratch| {
            self.statuses.changes(node, &mut scratch.statuses)?;
            self.captures_of(node, scratch, captures)
        };
        read(scratch).map_err(|damage| self.damaged(damage))
    }

    /// Whether some capture of the cell has a status other than 200.
    pub fn has_statuses(&self) -> bool {
        !self.statuses.is_empty()
    }

    /// Appends the pages of an interval of UIDs that have a failure here, in rising order. Cost: proportional to the
    /// pages of the interval with a status other than 200.
    ///
    /// # Errors
    /// See [`Self::page`].
    pub fn failing(&self, uids: Range<Uid>, failing: &mut Vec<Uid>) -> Result<(), LayersError> {
        let Label { first_record, end_record, .. } = self.label;
        let first = self.numbers.first().0;
        let node = |uid: Uid| {
            let Number(number) = self.numbers.lower_bound(uid.clamp(first_record, end_record));
            Node(usize::try_from(number - first).unwrap_or(usize::MAX))
        };
        let mut translator = self.numbers.uids();
        let mut visit = |Node(node): Node| {
            failing.push(translator.of(Number(first + node as u64)));
        };
        let found = self.statuses.failing(node(uids.start)..node(uids.end), &mut visit);
        found.map_err(|damage| self.damaged(damage))
    }

    /// Whether a node was captured in the closed interval.
    ///
    /// # Errors
    /// See [`Self::window`].
    pub fn captured(&self, node: Node, (from, to): (i64, i64), scratch: &mut Scratch) -> Result<bool, LayersError> {
        self.forward.captured(node, (from, to), &mut scratch.store).map_err(|damage| self.damaged(damage))
    }

    /// Replaces the contents of `lifespans` by the lifespans or runs of the links of a node.
    ///
    /// # Errors
    /// See [`Self::page`].
    pub fn spans(
        &self,
        node: Node,
        spans: Spans,
        scratch: &mut Scratch,
        lifespans: &mut Vec<Lifespan>,
    ) -> Result<(), LayersError> {
        if !self.statuses.is_empty() {
            self.statuses.changes(node, &mut scratch.statuses).map_err(|damage| self.damaged(damage))?;
            if !scratch.statuses.is_empty() {
                lifespans.clear();
                if let Some(page) = self.page(node)? {
                    spans.of_page(&page, lifespans);
                }
                return Ok(());
            }
        }
        // Without statuses no capture is cut, so that runs are lifespans.
        let Scratch { store, lifespans: numbered, .. } = scratch;
        self.forward.lifespans(node, store, numbered).map_err(|damage| self.damaged(damage))?;
        let mut uids = self.numbers.uids();
        lifespans.clear();
        lifespans.extend(numbered.iter().map(|&Lifespan { link, first, last }| Lifespan {
            link: uids.of(link),
            first,
            last,
        }));
        Ok(())
    }

    /// Sets `backlink` to when a node linked to URLs of a target. It has no stays if the node never did.
    ///
    /// # Errors
    /// See [`Self::page`].
    pub fn backlink(
        &self,
        node: Node,
        target: &[Range<Uid>],
        scratch: &mut Scratch,
        backlink: &mut Backlink,
    ) -> Result<(), LayersError> {
        backlink.clear();
        let (mut links, mut times) = (std::mem::take(&mut scratch.links), std::mem::take(&mut scratch.times));
        let mut captures = std::mem::take(&mut scratch.captures);
        let mut set = |scratch: &mut Scratch| {
            self.runs_within(node, target, scratch, (&mut links, &mut captures))?;
            backlink.targets = times_of(&links, target, &mut times);
            if !times.is_empty() {
                backlink.set(captures.iter().copied(), &mut times);
            }
            Ok(())
        };
        let answer = set(scratch);
        (scratch.links, scratch.times, scratch.captures) = (links, times, captures);
        answer
    }

    /// Replaces the contents of `lifespans` by the runs of at least the links of a node to these UIDs, and the contents
    /// of `captures` by the captures of the node.
    fn runs_within(
        &self,
        node: Node,
        target: &[Range<Uid>],
        scratch: &mut Scratch,
        (lifespans, captures): (&mut Vec<Lifespan>, &mut Vec<CaptureTime>),
    ) -> Result<(), LayersError> {
        if !self.statuses.is_empty() {
            self.statuses.changes(node, &mut scratch.statuses).map_err(|damage| self.damaged(damage))?;
            if !scratch.statuses.is_empty() {
                self.spans(node, Spans::Runs, scratch, lifespans)?;
                return self.captures(node, scratch, captures);
            }
        }
        let Scratch { store, lifespans: numbered, ranges, .. } = scratch;
        ranges.clear();
        ranges.extend(target.iter().map(|uids| {
            let [start, end] = [uids.start, uids.end].map(|uid| self.numbers.lower_bound(uid));
            start..end
        }));
        self.forward
            .lifespans_within(node, ranges, store, (numbered, captures))
            .map_err(|damage| self.damaged(damage))?;
        let mut uids = self.numbers.uids();
        lifespans.clear();
        lifespans.extend(numbered.iter().map(|&Lifespan { link, first, last }| Lifespan {
            link: uids.of(link),
            first,
            last,
        }));
        Ok(())
    }

    /// The page of a node; `None` if the node has no captures.
    ///
    /// # Errors
    /// See [`Self::window`], and an unsound record.
    pub fn page(&self, node: Node) -> Result<Option<Page>, LayersError> {
        self.page_of(node).map_err(|damage| self.damaged(damage))
    }

    fn page_of(&self, node: Node) -> Result<Option<Page>, Damage> {
        let mut uids = self.numbers.uids();
        let Some(page) = self.forward.page(node)? else { return Ok(None) };
        let mut page = page.renumbered(|number| uids.of(number));
        self.statuses.changes(node, &mut page.statuses)?;
        match page.flaw().filter(|_| !page.statuses.is_empty()) {
            Some(flaw) => Err(Damage::Record { part: "statuses", flaw }),
            None => Ok(Some(page)),
        }
    }

    /// Whether the in-links have times. If they have none, the pages of the row decide which sources link, and when.
    pub fn has_in_link_times(&self) -> bool {
        matches!(self.backward, InLinkStore::Timed(_))
    }

    /// The most sources that are read for a URL.
    pub fn sources_max(&self) -> u64 {
        match &self.backward {
            InLinkStore::Timed(_) => self.counts.max_in_degree,
            InLinkStore::Thin(thin) => thin.candidates_max(),
        }
    }

    /// The in-links of a node; `None` if nothing links to the node, and if in-links have no times: then a row knows
    /// them, see [`Row::in_record`](crate::Row::in_record).
    pub(crate) fn in_record(&self, node: Node) -> Result<Option<InLinks>, LayersError> {
        self.in_record_of(node).map_err(|damage| self.damaged(damage))
    }

    fn in_record_of(&self, node: Node) -> Result<Option<InLinks>, Damage> {
        let InLinkStore::Timed(backward) = &self.backward else { return Ok(None) };
        let mut uids = self.numbers.uids();
        Ok(backward.record(node)?.map(|record| record.renumbered(|number| uids.of(number))))
    }

    /// Calls `visit` with each source of a node, in rising order: see [`BackwardStore::sources`]. If in-links have no
    /// times, no ranges are selected.
    ///
    /// [`BackwardStore::sources`]: crate::links::encoding::BackwardStore::sources
    pub(crate) fn sources(
        &self,
        node: Node,
        select_ranges: &dyn Fn(&[i64]) -> Option<Wanted>,
        scratch: &mut StoreScratch,
        visit: &mut dyn FnMut(Uid, Found),
    ) -> Result<(), LayersError> {
        let mut uids = self.numbers.uids();
        let mut visit = |number: Number, found: Found| visit(uids.of(number), found);
        let read = match &self.backward {
            InLinkStore::Timed(backward) => backward.sources(node, select_ranges, scratch, &mut visit),
            InLinkStore::Thin(thin) => thin.candidates(node, scratch, &mut |number| visit(number, Found::Perhaps)),
        };
        read.map_err(|damage| self.damaged(damage))
    }

    /// Calls `visit` with each source that links to a node in any range, in rising order. If in-links have no times,
    /// with each source that may link.
    pub(crate) fn each_source(
        &self,
        node: Node,
        scratch: &mut StoreScratch,
        visit: &mut dyn FnMut(Uid),
    ) -> Result<(), LayersError> {
        let mut uids = self.numbers.uids();
        let mut visit = |number: Number| visit(uids.of(number));
        let read = match &self.backward {
            InLinkStore::Timed(backward) => backward.each_source(node, scratch, &mut visit),
            InLinkStore::Thin(thin) => thin.candidates(node, scratch, &mut visit),
        };
        read.map_err(|damage| self.damaged(damage))
    }

    /// Calls `visit` with each source that links to one of these UIDs in any range, at least once, in no order. If
    /// in-links have no times, with each source that may link. UIDs outside the cell have no sources here.
    ///
    /// # Errors
    /// A damaged image.
    pub fn each_source_of(
        &self,
        uids: &Range<Uid>,
        scratch: &mut Scratch,
        visit: &mut dyn FnMut(Uid),
    ) -> Result<(), LayersError> {
        let nodes = self.numbers.nodes_in(uids);
        let mut uids = self.numbers.uids();
        let mut visit = |number: Number| visit(uids.of(number));
        let read = match &self.backward {
            InLinkStore::Timed(backward) => backward.each_source_of(nodes, &mut scratch.store, &mut visit),
            InLinkStore::Thin(thin) => thin.candidates_of(nodes, &mut scratch.store, &mut visit),
        };
        read.map_err(|damage| self.damaged(damage))
    }

    /// The starts of the ranges in which a node links to a URL, rising, as in-link records have them.
    pub(crate) fn ranges_of(&self, node: Node, link: Uid, scratch: &mut Scratch) -> Result<Vec<i64>, LayersError> {
        if !self.perhaps_has_link(node, link, Window::ALWAYS, scratch)? {
            return Ok(Vec::new());
        }
        Ok(self.page(node)?.map_or_else(Vec::new, |page| page.ranges_of(link, self.label.in_range)))
    }
}

impl KeyOrder for Cell {
    fn seek(&self, key: &[u8]) -> Result<Uid, LayersError> {
        let at = self.urls.lower_bound(key).map_err(|damage| self.damaged(damage))?;
        Ok(self.label.first_uid + at)
    }

    fn end(&self) -> Uid {
        self.label.first_uid + self.label.urls
    }

    fn url_into(&self, uid: Uid, url: &mut String) -> Result<(), LayersError> {
        self.url(uid, url)
    }
}
