//! The rows of a store one by one, in order, for updates and merges.
//!
//! Streams give the URLs and records of one row in a range of UIDs ([`RowPages`], [`RowInLinks`], [`RowUrls`]). A
//! cursor finds rising keys among the URLs of one row ([`UrlCursor`]). Rows are numbered from 0, the oldest. A stream
//! holds one row group at a time, which it takes from the cache of the reader or reads once, with the same checks as
//! all answers. A stream ends after its first error.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use crate::error::{Damage, Error};
use crate::file::evidence::EvidenceBlock;
use crate::file::schema::Layer;
use crate::file::uids::uids_of;
use crate::read::blocks::{Block, UrlBlock, View};
use crate::read::cached::Kind;
use crate::read::query::Links;
use crate::read::reader::Reader;
use crate::read::spellings::{KeyOrder, Spelled};
use crate::record::join;
use crate::record::key::key;
use crate::record::page::evidence::Evidence;
use crate::record::page::{InLinks, Page};
use crate::record::uid::{Uid, in_order};

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

    /// The UID of a row's first URL whose key is not below `url_key`, and whether the URL has this key. If there is no
    /// such URL, the UID after the row's last.
    ///
    /// # Errors
    /// Errors of the storage.
    pub fn first_at_least(&self, row: usize, url_key: &[u8]) -> Result<(Uid, bool), Error> {
        UrlCursor::new(self, row).seek(url_key)
    }

    /// The page records of a row, for UIDs in a range.
    pub fn row_pages(&self, row: usize, uids: Range<Uid>) -> RowPages<'_> {
        RowPages { records: self.row_records(row, uids, Kind::Out), evidence: None }
    }

    /// The in-link records of a row, for UIDs in a range.
    pub fn row_in_links(&self, row: usize, uids: Range<Uid>) -> RowInLinks<'_> {
        RowInLinks { records: self.row_records(row, uids, Kind::In), ahead: None }
    }

    /// The URLs of a row, for UIDs in a range, with or without their urlkeys.
    pub fn row_urls(&self, row: usize, uids: Range<Uid>, with_surts: bool) -> RowUrls<'_> {
        RowUrls { groups: self.groups(row, Layer::Url, uids), block: None, with_surts }
    }

    /// The row groups of a row's pages: for each the least UID, the greatest UID and the number of pages.
    ///
    /// # Errors
    /// Errors of the storage.
    pub fn row_groups(&self, row: usize) -> Result<Vec<(Uid, Uid, usize)>, Error> {
        let mut groups = Vec::new();
        for partition in self.rows[row].partitions.clone() {
            let partition_groups = self.footer(partition, Layer::Ol)?.groups.iter();
            groups.extend(partition_groups.map(|group| (group.first_uid, group.last_uid, group.rows)));
        }
        Ok(groups)
    }

    /// Calls `visit` with the UIDs of a range that a row uses as pages or as link targets, in no order. The own links
    /// of revisits are not among them: see [`Reader::row_links_of_revisits`].
    ///
    /// # Errors
    /// Errors of the storage.
    pub fn row_used(&self, row: usize, uids: Range<Uid>, mut visit: impl FnMut(Uid)) -> Result<(), Error> {
        for layer in [Layer::Ol, Layer::Il] {
            let mut groups = self.groups(row, layer, uids.clone());
            while let Some((partition, group)) = groups.next()? {
                let file = self.file(partition, layer)?;
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

    /// Calls `visit` with the own links that revisits have in a row, for pages of a range. Some pages next to the range
    /// count, too.
    ///
    /// # Errors
    /// Errors of the storage.
    pub fn row_links_of_revisits(&self, row: usize, pages: Range<Uid>, visit: impl FnMut(Uid)) -> Result<(), Error> {
        let (mut groups, mut visit) = (self.groups(row, Layer::Rv, pages), visit);
        while let Some((partition, group)) = groups.next()? {
            let found = EvidenceBlock::read(&self.file(partition, Layer::Rv)?, group)?.links_of_revisits();
            found.into_iter().for_each(&mut visit);
        }
        Ok(())
    }

    /// Calls `visit` with each page of a range and each wanted link that a revisit of the page has of its own. Row
    /// groups without such a link are skipped.
    ///
    /// # Errors
    /// Errors of the storage, and a damaged record.
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

    /// Calls `visit` with each page of a range that has, in a row, a capture with a wanted digest.
    ///
    /// # Errors
    /// Errors of the storage.
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

    /// Calls `visit` with each page of a range that has, in a row, a revisit of another URL, and with the digest of the
    /// revisit.
    ///
    /// # Errors
    /// Errors of the storage, and a damaged record.
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

    /// The UIDs of a range for which a row has a page record, rising.
    ///
    /// # Errors
    /// The stream yields errors of the storage, and ends after the first.
    pub fn pages_with_records(&self, row: usize, uids: Range<Uid>) -> impl Iterator<Item = Result<Uid, Error>> + '_ {
        let mut records = self.row_records(row, uids, Kind::Out);
        let mut ended = false;
        std::iter::from_fn(move || {
            let next = if ended { None } else { records.advance().transpose() };
            ended = !matches!(next, Some(Ok(_)));
            next
        })
    }

    /// The records of one side, as its three layers hold them.
    pub(crate) fn row_records(&self, row: usize, uids: Range<Uid>, kind: Kind) -> Records<'_> {
        Records { groups: self.groups(row, kind.layers()[0], uids), kind, block: None, row: 0 }
    }

    fn groups(&self, row: usize, layer: Layer, uids: Range<Uid>) -> Groups<'_> {
        Groups { reader: self, layer, partitions: self.rows[row].partitions.clone(), group: 0, row: 0, uids }
    }
}

/// The row groups of a layer, and of the layers aligned with it, that may have UIDs of a range.
struct Groups<'a> {
    reader: &'a Reader,
    layer: Layer,
    /// The partitions to come, and the next row group of the first of these partitions.
    partitions: Range<usize>,
    group: usize,
    /// The next row of the current block.
    row: usize,
    uids: Range<Uid>,
}

impl Groups<'_> {
    /// The next row group: its partition and number.
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

    /// The next row, below `rows`, with a UID of the range; `None` after the last.
    fn row(&mut self, rows: usize, uid: impl Fn(usize) -> Uid) -> Option<usize> {
        while self.row < rows && uid(self.row) < self.uids.start {
            self.row += 1;
        }
        let row = self.row;
        self.row += 1;
        (row < rows && uid(row) < self.uids.end).then_some(row)
    }

    /// Turns a result into the next item of a stream; an error ends the stream.
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

/// The records of one side of a row, one after the other. Each row group is read when the previous one is done.
pub(crate) struct Records<'a> {
    groups: Groups<'a>,
    kind: Kind,
    /// The current row group, with its partition and number, and the current row in the row group.
    block: Option<((usize, usize), Arc<Block>)>,
    row: usize,
}

impl Records<'_> {
    /// Advances to the next record and returns its UID; `None` after the last.
    pub(crate) fn advance(&mut self) -> Result<Option<Uid>, Error> {
        loop {
            if let Some((_, block)) = &self.block
                && let Some(row) = self.groups.row(block.len(), |row| block.uid(row))
            {
                self.row = row;
                return Ok(Some(block.uid(row)));
            }
            let Some(group_id @ (partition, group)) = self.groups.next()? else { return Ok(None) };
            self.block = Some((group_id, self.groups.reader.passing_block(self.kind, partition, group)?));
        }
    }

    /// Calls `read` with the current record; `None` before the first.
    pub(crate) fn read<T>(&self, read: impl FnOnce(View<'_>) -> Result<T, Damage>) -> Result<Option<T>, Error> {
        let Some((group_id, block)) = &self.block else { return Ok(None) };
        read(block.view(self.row)).map(Some).map_err(|damage| self.groups.damaged(*group_id, self.row, damage))
    }
}

/// A stream of pages with their evidence; see the head of this file.
pub struct RowPages<'a> {
    records: Records<'a>,
    /// The evidence of the current row group.
    evidence: Option<((usize, usize), EvidenceBlock)>,
}

/// Errors: files that cannot be read, files with a wrong checksum, damaged records.
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
            let page_evidence = evidence.of(row, view.uid, view.times)?;
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
    /// The next URL: its UID, its text, and its urlkey if the stream has urlkeys, else an empty string.
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

/// Finds keys among the URLs of one row. With rising keys, the cursor reads each row group once, and searches near the
/// previous answer.
pub struct UrlCursor<'a> {
    reader: &'a Reader,
    row: usize,
    /// The last block, with its partition and row group.
    at: Option<((usize, usize), Arc<UrlBlock>)>,
    /// The last answer in the block.
    near: Uid,
    probe: Vec<u8>,
}

impl<'a> UrlCursor<'a> {
    /// A cursor of a row.
    pub fn new(reader: &'a Reader, row: usize) -> Self {
        Self { reader, row, at: None, near: Uid(0), probe: Vec::new() }
    }

    /// Like [`Reader::first_at_least`].
    ///
    /// # Errors
    /// Errors of the storage.
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
        // Steps from the last answer on, each twice as long as the step before, lead to an interval that contains the
        // key.
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

/// The URLs of a row in the order of their keys.
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
    /// Answers [`Links::spellings`] row by row.
    pub(crate) fn spellings_in_rows(&self, page: &Spelled) -> Result<Vec<Uid>, Error> {
        let mut found = Vec::new();
        for row in 0..self.rows() {
            page.search(&RowOrder { reader: self, row }, &mut found)?;
        }
        Ok(in_order(found))
    }
}
