//! Questions about URLs: the UIDs of URLs, the URLs of UIDs, URLs with a prefix or that match another, and URLs
//! captured in an interval.

use std::ops::Range;
use tonic::Status;
use webstrata_layers::record::key::{key, key_of};
use webstrata_layers::{CaptureTime, Lookup, Match, Uid, Window, in_order};

use super::call::other_kind;
use super::links::chosen;
use super::pinned::Pinned;
use super::split::Split;
use crate::map::RowMap;
use crate::protocol::proto::answer::Answer as AnswerKind;
use crate::protocol::proto::question::Question as QuestionKind;
use crate::protocol::proto::{self, Find, Listing, Prefix};
use crate::protocol::status::bad;

/// UIDs scanned in one step of a listing.
const STEP: u64 = 1 << 17;

impl Pinned {
    /// The UIDs of URLs (WHATWG-serialised, without fragment); `None` for URLs that are not in the store.
    ///
    /// # Errors
    /// See [`Pinned`].
    pub async fn uids(&self, urls: &[impl AsRef<str>]) -> Result<Vec<Option<Uid>>, Status> {
        let mut split = Split::of(&self.graph);
        let mut keys = Vec::with_capacity(urls.len());
        for (item, url) in urls.iter().enumerate() {
            let mut url_key = Vec::new();
            key(url.as_ref(), &mut url_key);
            for (row, cells) in self.graph.rows.iter().enumerate() {
                if let Some(cell) = cells.cell_of_key(&url_key) {
                    split.add(row, cell, item);
                }
            }
            keys.push(url_key);
        }
        let find = split.cell_questions(|question| {
            QuestionKind::Find(Find { keys: question.items.iter().map(|&item| keys[item].clone()).collect() })
        });
        let answers = self.ask(&find).await?;
        let mut uids = vec![None; urls.len()];
        for position in &split.positions {
            let AnswerKind::Uids(found) = &answers[position.question] else { return Err(other_kind()) };
            let found = found.uids.get(position.index).ok_or_else(other_kind)?.checked_sub(1).map(Uid);
            uids[position.item] = uids[position.item].or(found);
        }
        Ok(uids)
    }

    /// The URLs of UIDs.
    ///
    /// # Errors
    /// See [`Pinned`].
    pub async fn urls(&self, uids: &[Uid]) -> Result<Vec<String>, Status> {
        self.known(uids)?;
        let mut split = Split::of(&self.graph);
        for (item, &uid) in uids.iter().enumerate() {
            let row = self.graph.rows.partition_point(|row| row.end_uid <= uid);
            let cell = self.graph.rows.get(row).and_then(|row| row.cell_of_url(uid));
            split.add(row, cell.ok_or_else(|| Status::internal(format!("no cell covers UID {uid}")))?, item);
        }
        let questions = split.cell_questions(|question| QuestionKind::Urls(chosen(uids, &question.items)));
        let mut answers = self.ask(&questions).await?;
        let text = |position: &super::split::ItemPosition| match answers.get_mut(position.question) {
            Some(AnswerKind::Urls(urls)) => {
                urls.urls.get_mut(position.index).map(std::mem::take).ok_or_else(other_kind)
            }
            _ => Err(other_kind()),
        };
        split.positions.iter().map(text).collect()
    }

    /// The UIDs of the URLs with keys that begin with `prefix` (see [`mod@webstrata_layers::record::key`]): one
    /// interval for each row that has such URLs, in increasing order.
    ///
    /// # Errors
    /// See [`Pinned`].
    pub async fn with_prefix(&self, prefix: &[u8]) -> Result<Vec<Range<Uid>>, Status> {
        let mut split = Split::of(&self.graph);
        for (row, cells) in self.graph.rows.iter().enumerate() {
            cells.cells_of_prefix(prefix).for_each(|cell| split.add(row, cell, row));
        }
        let questions = split.cell_questions(|_| QuestionKind::Prefix(Prefix { prefix: prefix.to_vec() }));
        let answers = self.ask(&questions).await?;
        let mut intervals: Vec<Option<Range<Uid>>> = vec![None; self.graph.rows.len()];
        for position in &split.positions {
            let AnswerKind::Range(uids) = &answers[position.question] else { return Err(other_kind()) };
            if uids.first < uids.end {
                let (first, end) = (Uid(uids.first), Uid(uids.end));
                let interval = intervals[position.item].get_or_insert(first..end);
                interval.start = interval.start.min(first);
                interval.end = interval.end.max(end);
            }
        }
        Ok(intervals.into_iter().flatten().collect())
    }

    /// The UIDs of the URLs that match a canonical URL, in increasing order; empty if no URL of the store matches.
    /// `field` is the field of the request in which the caller wrote the URL.
    ///
    /// # Errors
    /// BAD_REQUEST for the host or the domain of a URL without a host name; see [`Pinned`].
    pub(crate) async fn matching(&self, matched: Match, url: &str, field: &str) -> Result<Vec<Range<Uid>>, Status> {
        let one_by_one = match matched.lookup(url) {
            Some(Lookup::Keys(prefix)) => return self.with_prefix(&prefix).await,
            Some(Lookup::Url) => self.uids(&[url]).await?.into_iter().flatten().collect(),
            Some(Lookup::Spellings) => self.spellings(url).await?,
            None => return Err(bad(format!("{field}: cannot list the URLs of {url}: no host name"))),
        };
        Ok(one_by_one.into_iter().map(|uid| uid..uid + 1).collect())
    }

    /// The UIDs of the URLs with keys that are not below `key`: one interval for each row that has such URLs, in
    /// increasing order. Cost: a binary search in each row, which reads the texts of about log2(n) of its n URLs, one
    /// at a time.
    ///
    /// # Errors
    /// See [`Pinned`].
    pub async fn from_key(&self, key: &[u8]) -> Result<Vec<Range<Uid>>, Status> {
        let ends: Vec<Uid> = self.graph.rows.iter().map(|row| row.end_uid).collect();
        let starts = std::iter::once(Uid(0)).chain(ends.iter().copied());
        // The first URL with a key that is not below `key` lies in the interval, or is the URL after it.
        let mut sought: Vec<Range<Uid>> = starts.zip(&ends).map(|(start, &end)| start..end).collect();
        while sought.iter().any(|uids| !uids.is_empty()) {
            let open = || sought.iter().enumerate().filter(|(_, uids)| !uids.is_empty());
            let middles: Vec<(usize, Uid)> =
                open().map(|(row, uids)| (row, uids.start + (uids.end.0 - uids.start.0) / 2)).collect();
            let urls = self.urls(&middles.iter().map(|(_, uid)| *uid).collect::<Vec<_>>()).await?;
            for ((row, uid), url) in middles.into_iter().zip(urls) {
                match key_of(&url).as_slice() < key {
                    true => sought[row].start = uid + 1,
                    false => sought[row].end = uid,
                }
            }
        }
        let found = sought.into_iter().zip(ends).map(|(uids, end)| uids.start..end);
        Ok(found.filter(|uids| !uids.is_empty()).collect())
    }

    /// The UIDs of pages with a capture in the closed interval, whether its links are known or not. One call scans the
    /// first part of `uids` and also returns the rest to scan. Cost: reads the times of each page.
    ///
    /// # Errors
    /// See [`Pinned`].
    pub async fn captured(&self, uids: Range<Uid>, (from, to): (i64, i64)) -> Result<(Vec<Uid>, Range<Uid>), Status> {
        let listing = |step: &Range<Uid>| Listing { first: step.start.0, end: step.end.0, from, to };
        let overlaps = |row: &RowMap| row.overlaps(Window::Seen { from, to });
        let (mut found, rest) = self.listed(uids, overlaps, |step| QuestionKind::Listing(listing(step))).await?;
        if self.graph.removes {
            // A newer row may have taken the captures out.
            let captures = self.captures(&found).await?;
            let mut lists = captures.iter();
            let is_captured = |list: &[CaptureTime]| list.iter().any(|capture| (from..=to).contains(&capture.time));
            found.retain(|_| lists.next().is_some_and(is_captured));
        }
        Ok((found, rest))
    }

    /// The UIDs of pages that may have a failure: all pages that have one, and maybe pages whose failures were taken
    /// out by a newer row. One call scans the first part of `uids` and also returns the rest to scan.
    ///
    /// # Errors
    /// See [`Pinned`].
    pub async fn failing(&self, uids: Range<Uid>) -> Result<(Vec<Uid>, Range<Uid>), Status> {
        let range = |step: &Range<Uid>| proto::Range { first: step.start.0, end: step.end.0 };
        self.listed(uids, |_| true, |step| QuestionKind::Failing(range(step))).await
    }

    /// The UIDs that the cells of some rows list for the first part of `uids`, in increasing order, and the rest of
    /// `uids`.
    async fn listed(
        &self,
        uids: Range<Uid>,
        is_asked: impl Fn(&RowMap) -> bool,
        question: impl Fn(&Range<Uid>) -> QuestionKind,
    ) -> Result<(Vec<Uid>, Range<Uid>), Status> {
        let end = uids.end.min(Uid(self.graph.urls));
        let step = uids.start..end.min(uids.start.saturating_add(STEP)).max(uids.start);
        let mut split = Split::of(&self.graph);
        for (row, cells) in self.graph.rows.iter().enumerate() {
            if step.is_empty() || !is_asked(cells) {
                continue;
            }
            let overlaps = |records: &Range<Uid>| records.start < step.end && step.start < records.end;
            let overlapping = cells.cells.iter().enumerate().filter(|(_, cell)| overlaps(&cell.records));
            overlapping.for_each(|(cell, _)| split.add(row, cell, 0));
        }
        let mut found = Vec::new();
        for answer in self.ask(&split.cell_questions(|_| question(&step))).await? {
            let AnswerKind::Listing(uids) = answer else { return Err(other_kind()) };
            found.extend_from_slice(Uid::slice(&uids.uids));
        }
        Ok((in_order(found), step.end..end.max(step.end)))
    }
}
