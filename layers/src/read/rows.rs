//! The rows of a store one by one, in order: what updates and merges read.
//!
//! Streams of the URLs and records of one row ([`RowPages`], [`RowInLinks`], [`RowUrls`]), each from a UID on or
//! between two; and a cursor that finds rising keys in the URLs of one row ([`UrlCursor`]). Rows go by number, the
//! oldest is 0. Streams hold one row group and read each once; what they read is checked as all answers are. A stream
//! ends after its first error.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use crate::error::{Damage, Error};
use crate::file::evidence::{Evidence, EvidenceBlock};
use crate::file::schema::Layer;
use crate::read::blocks::{Block, UrlBlock, View, uids_of};
use crate::read::query::Links;
use crate::read::reader::Reader;
use crate::read::spellings::{KeyOrder, Spelled, in_order};
use crate::record::join;
use crate::record::key::key;
use crate::record::page::{InLinks, Page};
use crate::record::uid::Uid;

impl Reader {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows.len()
    }

    /// The UIDs of a row's URLs.
    pub fn row_uids(&self, row: usize) -> Range<Uid> {
        let entry = &self.store.manifest().rows[row];
        entry.first_uid..entry.end_uid()
    }

    /// The UID of a row's first URL whose key is not below `url_key`, the UID after its last where there is none, and
    /// whether that URL has this key.
    ///
    /// # Errors
    /// What the storage refuses.
    pub fn first_at_least(&self, row: usize, url_key: &[u8]) -> Result<(Uid, bool), Error> {
        UrlCursor::new(self, row).seek(url_key)
    }

    /// The records of pages that a row has, of UIDs in a range.
    pub fn row_pages(&self, row: usize, uids: Range<Uid>) -> RowPages<'_> {
        RowPages { records: self.row_records(row, uids, [Layer::Ol, Layer::Ts, Layer::Bv]), evidence: None }
    }

    /// The records of in-links that a row has, of UIDs in a range.
    pub fn row_in_links(&self, row: usize, uids: Range<Uid>) -> RowInLinks<'_> {
        RowInLinks { records: self.row_records(row, uids, [Layer::Il, Layer::Tr, Layer::Ibv]), ahead: None }
    }

    /// A row's URLs, of UIDs in a range, with their urlkeys or without.
    pub fn row_urls(&self, row: usize, uids: Range<Uid>, with_surts: bool) -> RowUrls<'_> {
        RowUrls { groups: self.groups(row, Layer::Url, uids), block: None, with_surts }
    }

    /// The row groups of a row's pages: the least and the greatest UID and the number of pages of each.
    ///
    /// # Errors
    /// What the storage refuses.
    pub fn row_groups(&self, row: usize) -> Result<Vec<(Uid, Uid, usize)>, Error> {
        let mut groups = Vec::new();
        for partition in self.rows[row].partitions.clone() {
            let partition_groups = self.footer(partition, Layer::Ol)?.groups.iter();
            groups.extend(partition_groups.map(|group| (group.first_uid, group.last_uid, group.rows)));
        }
        Ok(groups)
    }

    /// Calls `visit` with the UIDs of a range that a row uses: of pages, of URLs that are linked to; of those out of
    /// range that revisits of pages in it have as links of their own. In no order.
    ///
    /// # Errors
    /// What the storage refuses.
    pub fn row_used(&self, row: usize, uids: Range<Uid>, mut visit: impl FnMut(Uid)) -> Result<(), Error> {
        for layer in [Layer::Ol, Layer::Il, Layer::Rv] {
            let mut groups = self.groups(row, layer, uids.clone());
            while let Some((partition, group)) = groups.next()? {
                let file = self.file(partition, layer)?;
                if layer == Layer::Rv {
                    EvidenceBlock::read(&file, group)?.links_of_revisits().into_iter().for_each(&mut visit);
                    continue;
                }
                let damaged = |(row, damage)| file.damaged(file.groups[group].first_row + row, damage);
                uids_of(&file.read(group, 1)?, layer.has_repeated_uids())
                    .map_err(damaged)?
                    .iter()
                    .copied()
                    .filter(|uid| uids.contains(uid))
                    .for_each(&mut visit);
            }
        }
        Ok(())
    }

    /// Calls `visit` with each page of a range, and each link that a revisit of it has of its own and that is wanted.
    /// Row groups without such a link are passed over.
    ///
    /// # Errors
    /// What the storage refuses, and a record that is not sound.
    pub fn row_named_by_revisits(
        &self,
        row: usize,
        uids: Range<Uid>,
        is_wanted: impl Fn(Uid) -> bool,
        mut visit: impl FnMut(Uid, Uid),
    ) -> Result<(), Error> {
        let mut groups = self.groups(row, Layer::Rv, uids.clone());
        while let Some((partition, group)) = groups.next()? {
            let file = self.file(partition, Layer::Rv)?;
            if !EvidenceBlock::read(&file, group)?.links_of_revisits().into_iter().any(&is_wanted) {
                continue;
            }
            let Some(bounds) = file.groups.get(group) else { continue };
            let within = bounds.first_uid.max(uids.start)..(bounds.last_uid + 1).min(uids.end);
            for record in self.row_pages(row, within) {
                let (page, evidence) = record?;
                let links = evidence.revisits.iter().flat_map(|revisit| &revisit.links);
                links.filter(|link| is_wanted(**link)).for_each(|&link| visit(page.uid, link));
            }
        }
        Ok(())
    }

    /// Calls `visit` with the pages of a range that have, in a row, a capture with a digest that is wanted.
    ///
    /// # Errors
    /// What the storage refuses.
    pub fn row_with_digest(
        &self,
        row: usize,
        uids: Range<Uid>,
        is_wanted: impl Fn(u64) -> bool,
        mut visit: impl FnMut(Uid) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut groups = self.groups(row, Layer::Rv, uids.clone());
        while let Some((partition, group)) = groups.next()? {
            let found = EvidenceBlock::read(&self.file(partition, Layer::Rv)?, group)?.with_digest(&is_wanted);
            found.into_iter().filter(|uid| uids.contains(uid)).try_for_each(&mut visit)?;
        }
        Ok(())
    }

    /// Calls `visit` with the pages of a range that have, in a row, a revisit of another URL, and its digest.
    ///
    /// # Errors
    /// What the storage refuses, and a record that is not sound.
    pub fn row_elsewhere(
        &self,
        row: usize,
        uids: Range<Uid>,
        mut visit: impl FnMut(Uid, u64) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut groups = self.groups(row, Layer::Rv, uids.clone());
        while let Some((partition, group)) = groups.next()? {
            let file = self.file(partition, Layer::Rv)?;
            let first_row = file.groups.get(group).map_or(0, |group| group.first_row);
            let found = EvidenceBlock::read(&file, group)?.elsewhere();
            let found = found.map_err(|damage| file.damaged(first_row, damage))?;
            found.into_iter().filter(|(uid, _)| uids.contains(uid)).try_for_each(|(uid, digest)| visit(uid, digest))?;
        }
        Ok(())
    }

    /// The UIDs of a range of which a row has a record as pages, rising.
    ///
    /// # Errors
    /// In the stream: what the storage refuses. The first one ends it.
    pub fn pages_with_records(&self, row: usize, uids: Range<Uid>) -> impl Iterator<Item = Result<Uid, Error>> + '_ {
        let mut records = self.row_records(row, uids, [Layer::Ol, Layer::Ts, Layer::Bv]);
        let mut ended = false;
        std::iter::from_fn(move || {
            let next = if ended { None } else { records.advance().transpose() };
            ended = !matches!(next, Some(Ok(_)));
            next
        })
    }

    /// The records of one side, as its three layers have them.
    pub(crate) fn row_records(&self, row: usize, uids: Range<Uid>, layers: [Layer; 3]) -> Records<'_> {
        Records { groups: self.groups(row, layers[0], uids), layers, block: None, row: 0 }
    }

    fn groups(&self, row: usize, layer: Layer, uids: Range<Uid>) -> Groups<'_> {
        Groups { reader: self, layer, partitions: self.rows[row].partitions.clone(), group: 0, row: 0, uids }
    }
}

/// The row groups of a layer, and of those aligned with it, that may have UIDs of a range.
struct Groups<'a> {
    reader: &'a Reader,
    layer: Layer,
    /// Partitions to come, and the next row group of the first of them.
    partitions: Range<usize>,
    group: usize,
    /// The next row of the block that is held.
    row: usize,
    uids: Range<Uid>,
}

impl Groups<'_> {
    /// The next one: its partition and number.
    fn next(&mut self) -> Result<Option<(usize, usize)>, Error> {
        while !self.uids.is_empty() && !self.partitions.is_empty() {
            let partition = self.partitions.start;
            let groups = &self.reader.footer(partition, self.layer)?.groups;
            let remaining_groups = groups.iter().enumerate().skip(self.group);
            let found = remaining_groups.clone().find(|(_, group)| group.last_uid >= self.uids.start);
            if let Some((at, group)) = found {
                if group.first_uid >= self.uids.end {
                    return Ok(None);
                }
                (self.group, self.row) = (at + 1, 0);
                return Ok(Some((partition, at)));
            }
            (self.partitions.start, self.group) = (partition + 1, 0);
        }
        Ok(None)
    }

    /// The next row of those given that has a UID of the range; `None` after the last.
    fn row(&mut self, rows: usize, uid: impl Fn(usize) -> Uid) -> Option<usize> {
        while self.row < rows && uid(self.row) < self.uids.start {
            self.row += 1;
        }
        let row = self.row;
        self.row += 1;
        (row < rows && uid(row) < self.uids.end).then_some(row)
    }

    /// What a stream gives; after an error it gives nothing more.
    fn end_after<T>(&mut self, next: Result<Option<T>, Error>) -> Option<Result<T, Error>> {
        if next.is_err() {
            self.uids = Uid(0)..Uid(0);
        }
        next.transpose()
    }

    fn damaged(&self, (partition, group): (usize, usize), row: usize, damage: Damage) -> Error {
        match self.reader.footer(partition, self.layer) {
            Ok(file) => file.damaged(file.groups.get(group).map_or(0, |group| group.first_row) + row as u64, damage),
            Err(error) => error,
        }
    }
}

/// The records of one side of a row, one after the other; a row group is read when the one before it is done.
pub(crate) struct Records<'a> {
    groups: Groups<'a>,
    layers: [Layer; 3],
    /// The row group that is held, with its partition and number, and the row of it that was gone to.
    block: Option<((usize, usize), Block)>,
    row: usize,
}

impl Records<'_> {
    /// Goes to the next record; its UID, `None` after the last.
    pub(crate) fn advance(&mut self) -> Result<Option<Uid>, Error> {
        loop {
            if let Some((_, block)) = &self.block
                && let Some(row) = self.groups.row(block.len(), |row| block.uid(row))
            {
                self.row = row;
                return Ok(Some(block.uid(row)));
            }
            let Some(group_id @ (partition, group)) = self.groups.next()? else { return Ok(None) };
            let [links, times, changes] = self.layers.map(|layer| self.groups.reader.file(partition, layer));
            self.block = Some((group_id, Block::read([&links?, &times?, &changes?], group)?));
        }
    }

    /// What `read` makes of the record that was gone to; `None` before the first.
    pub(crate) fn read<T>(&self, read: impl FnOnce(View<'_>) -> Result<T, Damage>) -> Result<Option<T>, Error> {
        let Some((group_id, block)) = &self.block else { return Ok(None) };
        read(block.view(self.row)).map(Some).map_err(|damage| self.groups.damaged(*group_id, self.row, damage))
    }
}

/// A stream of pages, with what their captures say of one another; see the head of this file.
pub struct RowPages<'a> {
    records: Records<'a>,
    /// Of the row group that is held.
    evidence: Option<((usize, usize), EvidenceBlock)>,
}

/// Errors: files that cannot be read, do not have their checksum, or hold a record that is not sound.
impl Iterator for RowPages<'_> {
    type Item = Result<(Page, Evidence), Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.advance();
        self.records.groups.end_after(next)
    }
}

impl RowPages<'_> {
    fn advance(&mut self) -> Result<Option<(Page, Evidence)>, Error> {
        let Self { records, evidence } = self;
        if records.advance()?.is_none() {
            return Ok(None);
        }
        if let Some((group_id @ (partition, group), _)) = &records.block
            && evidence.as_ref().is_none_or(|(held, _)| held != group_id)
        {
            let file = records.groups.reader.file(*partition, Layer::Rv)?;
            if file.groups.len() <= *group {
                return Err(file.damaged(0, Damage::NotAligned));
            }
            *evidence = Some((*group_id, EvidenceBlock::read(&file, *group)?));
        }
        let Some((_, evidence)) = evidence else { return Ok(None) };
        let row = records.row;
        records.read(|view| {
            let page_evidence = evidence.of(row, view.uid, view.times.len())?;
            Ok((view.page()?, page_evidence))
        })
    }
}

/// A stream of in-links; see the head of this file.
pub struct RowInLinks<'a> {
    records: Records<'a>,
    /// The first record of the next URL.
    ahead: Option<InLinks>,
}

/// Errors: see [`RowPages`].
impl Iterator for RowInLinks<'_> {
    type Item = Result<InLinks, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let Self { records, ahead } = self;
        let next = join::next_in_links(ahead, || match records.advance()? {
            Some(_) => records.read(|view| view.in_links()),
            None => Ok(None),
        });
        self.records.groups.end_after(next)
    }
}

/// A stream of URLs; see the head of this file.
pub struct RowUrls<'a> {
    groups: Groups<'a>,
    block: Option<UrlBlock>,
    with_surts: bool,
}

impl RowUrls<'_> {
    /// The next URL: its UID, its text, and its urlkey where it was asked for.
    ///
    /// # Errors
    /// See [`RowPages`].
    pub fn next_url(&mut self) -> Result<Option<(Uid, &str, &str)>, Error> {
        loop {
            let Self { groups, block, with_surts } = self;
            let first = block.as_ref().map_or(Uid(0), UrlBlock::first_uid);
            if let Some(row) = groups.row(block.as_ref().map_or(0, UrlBlock::len), |row| first + row as u64) {
                let uid = first + row as u64;
                let block = self.block.as_ref();
                return Ok(block.and_then(|block| Some((uid, block.url(uid)?, block.surt(uid).unwrap_or_default()))));
            }
            let Some((partition, group)) = groups.next()? else { return Ok(None) };
            *block = Some(UrlBlock::read(&groups.reader.file(partition, Layer::Url)?, group, *with_surts)?);
        }
    }
}

/// Finds keys in the URLs of one row. Keys that rise make it read each row group once, and look near the one before.
pub struct UrlCursor<'a> {
    reader: &'a Reader,
    row: usize,
    /// The block looked at last: its partition and group.
    at: Option<((usize, usize), Arc<UrlBlock>)>,
    /// Where in the block the last answer was.
    near: Uid,
    probe: Vec<u8>,
}

impl<'a> UrlCursor<'a> {
    /// A cursor of a row.
    pub fn new(reader: &'a Reader, row: usize) -> Self {
        Self { reader, row, at: None, near: Uid(0), probe: Vec::new() }
    }

    /// As [`Reader::first_at_least`].
    ///
    /// # Errors
    /// What the storage refuses.
    pub fn seek(&mut self, url_key: &[u8]) -> Result<(Uid, bool), Error> {
        let Some(group_id) = self.reader.url_group(self.row, url_key)? else {
            return Ok((self.reader.row_uids(self.row).start, false));
        };
        let block = match &self.at {
            Some((at, block)) if *at == group_id => Arc::clone(block),
            _ => {
                let block = self.reader.url_block(group_id.0, group_id.1)?;
                self.near = block.first_uid();
                self.at = Some((group_id, Arc::clone(&block)));
                block
            }
        };
        let end = block.first_uid() + block.len() as u64;
        let mut compare = |uid: Uid| {
            key(block.url(uid).unwrap_or_default(), &mut self.probe);
            self.probe.as_slice().cmp(url_key)
        };
        // Steps from the last answer on, each twice as long, lead to an interval that has the key.
        let (mut low, mut high, mut step) = (block.first_uid(), end, 1);
        let mut at = self.near;
        loop {
            match compare(at) {
                Ordering::Equal => {
                    self.near = at;
                    return Ok((at, true));
                }
                Ordering::Greater => {
                    high = at;
                    break;
                }
                Ordering::Less => low = at + 1,
            }
            at = at.saturating_add(step);
            step *= 2;
            if at >= end {
                break;
            }
        }
        let mut found = false;
        while low < high {
            let middle = low + (high - low) / 2;
            match compare(middle) {
                Ordering::Less => low = middle + 1,
                order => (high, found) = (middle, order == Ordering::Equal),
            }
        }
        self.near = low.min(Uid(end.0 - 1));
        Ok((low, found))
    }
}

/// A row in the order of its URLs.
struct RowOrder<'a> {
    reader: &'a Reader,
    row: usize,
}

impl KeyOrder for RowOrder<'_> {
    fn seek(&self, key: &[u8]) -> Result<Uid, Error> {
        Ok(self.reader.first_at_least(self.row, key)?.0)
    }

    fn end(&self) -> Uid {
        self.reader.row_uids(self.row).end
    }

    fn url_into(&self, uid: Uid, url: &mut String) -> Result<(), Error> {
        *url = self.reader.url(uid)?;
        Ok(())
    }
}

impl Reader {
    /// As [`Links::spellings`]: row by row.
    pub(crate) fn spellings_in_rows(&self, page: &Spelled) -> Result<Vec<Uid>, Error> {
        let mut found = Vec::new();
        for row in 0..self.rows() {
            page.search(&RowOrder { reader: self, row }, &mut found)?;
        }
        Ok(in_order(found))
    }
}
