//! Answers about the cells that a server holds: the service `Cells`, without the network.
//!
//! [`Held`] is the set of cells. Each question names one cell, and its answer ignores other rows. A set is replaced as
//! a whole, so a question keeps the cells that it began with. Cost: the look-ups in the cells, and a copy of each
//! answer into the message.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use tonic::Status;
use webstrata_layers::record::capture::deciding;
use webstrata_layers::{
    Backlink, CaptureTime, Direction as LinkDirection, InLinks, Lifespan, Spans, Spelled, Uid, Window as TimeWindow,
    in_order,
};

use crate::guard::limits::Bounds;
use crate::protocol::backlinks::{put_backlink, room_for_backlinks};
use crate::protocol::gaps;
use crate::protocol::proto::answer::Answer as AnswerKind;
use crate::protocol::proto::question::Question as QuestionKind;
use crate::protocol::proto::{
    Answer, BacklinkLists, BacklinksOf, Counts, HasLinks, Host, HostList, HostSearch, InRecord, InRecordList,
    LinkLists, LinksOf, Listing, Page, PageList, Question, Range, SourcesOf, SpanLists, TimeLists, Truths, UidList,
    UrlList,
};
use crate::protocol::status::{bad, damaged_here, not_here, status_of};
use crate::protocol::values::{clear_if_ok, direction_of, narrow, numbers_of, sample_of, window_of};
use webstrata_cells::cells::cell::HostUrls;
use webstrata_cells::cells::row::InRecord as RowInRecord;
use webstrata_cells::{Cell, Row, Scratch};

/// The cells that a server holds.
#[derive(Clone, Default)]
pub struct Held {
    /// The rows by number; a row may have only some of its cells.
    pub rows: BTreeMap<u32, Arc<Row>>,
    /// The bounds of the answers to one call.
    pub bounds: Bounds,
}

impl Held {
    /// The answers to questions, in order.
    ///
    /// # Errors
    /// The first failure: CELL_NOT_HERE, DAMAGED, ANSWER_TOO_LARGE or BAD_REQUEST.
    pub fn ask(&self, questions: &[Question]) -> Result<Vec<Answer>, Status> {
        let mut values = 0;
        Scratch::lend(|scratch| {
            let answers = questions.iter().map(|question| self.answer(question, scratch, &mut values)).collect();
            // Many threads answer, and the next questions of a thread are rarely about pages near these.
            scratch.forget_near();
            answers
        })
    }

    /// The largest memory in bytes for making the answer to a question: the memory for the longest list in the cell.
    pub(crate) fn work_bytes(&self, question: &Question) -> usize {
        let row = question.cell.and_then(|name| Some((self.rows.get(&name.row)?, name.partition)));
        let Some(cell) = row.and_then(|(row, partition)| row.cell(partition).ok()) else { return 0 };
        let counts = cell.counts();
        let (longest, bytes) = match &question.question {
            // Sources, their masks, the list, and its coded form.
            Some(QuestionKind::Links(links)) if links.direction != 0 => {
                let is_whole = window_of(links.window.as_ref()).is_ok_and(|window| window == TimeWindow::ALWAYS);
                (cell.sources_max(), if is_whole { 24 } else { 40 })
            }
            Some(QuestionKind::Sources(_)) => (cell.sources_max(), 24),
            Some(QuestionKind::InRecords(_)) => (cell.sources_max(), 80),
            Some(
                QuestionKind::Links(_)
                | QuestionKind::Lifespans(_)
                | QuestionKind::Runs(_)
                | QuestionKind::Pages(_)
                | QuestionKind::HasLinks(_)
                | QuestionKind::Backlinks(_),
            ) => (counts.max_out_degree, 40),
            _ => (0, 0),
        };
        usize::try_from(longest).unwrap_or(usize::MAX).saturating_mul(bytes)
    }

    fn answer(&self, question: &Question, scratch: &mut Scratch, values: &mut usize) -> Result<Answer, Status> {
        let cell = question.cell.ok_or_else(|| bad("question.cell: missing; name a row and a partition"))?;
        let row = self.rows.get(&cell.row).ok_or_else(|| not_here(cell.row, cell.partition))?;
        let cell = row.cell(cell.partition).map_err(|_| not_here(cell.row, cell.partition))?;
        let made_anew = || damaged_here(cell.label().row, cell.label().partition);
        // A file that was truncated or found changed gives no answers, whatever its image looks like now.
        if cell.refresh().is_err() || cell.is_damaged() {
            return Err(made_anew());
        }
        let mut answering = CellAnswer { held: self, row, cell, scratch, values };
        let question = question.question.as_ref().ok_or_else(|| bad("question.question: missing; set one kind"))?;
        let answer = answering.answer(question);
        Ok(Answer { answer: Some(answer.map_err(|status| if cell.is_damaged() { made_anew() } else { status })?) })
    }
}

/// The cell of a question, and the count of values answered so far.
struct CellAnswer<'a> {
    held: &'a Held,
    row: &'a Row,
    cell: &'a Cell,
    scratch: &'a mut Scratch,
    values: &'a mut usize,
}

impl CellAnswer<'_> {
    fn answer(&mut self, question: &QuestionKind) -> Result<AnswerKind, Status> {
        Ok(match question {
            QuestionKind::Find(find) => AnswerKind::Uids(self.find(&find.keys)?),
            QuestionKind::Urls(uids) => AnswerKind::Urls(self.urls(Uid::slice(&uids.uids))?),
            QuestionKind::Links(links) => AnswerKind::Links(self.links(links)?),
            QuestionKind::Captures(uids) => AnswerKind::Captures(self.captures(Uid::slice(&uids.uids))?),
            QuestionKind::Lifespans(uids) => {
                AnswerKind::Lifespans(self.spans(Uid::slice(&uids.uids), Spans::Lifespans)?)
            }
            QuestionKind::Runs(uids) => AnswerKind::Lifespans(self.spans(Uid::slice(&uids.uids), Spans::Runs)?),
            QuestionKind::Pages(uids) => AnswerKind::Pages(self.pages(Uid::slice(&uids.uids))?),
            QuestionKind::InRecords(uids) => AnswerKind::InRecords(self.in_records(Uid::slice(&uids.uids))?),
            QuestionKind::HasLinks(pairs) => AnswerKind::Truths(self.has_links(pairs)?),
            QuestionKind::Listing(listing) => AnswerKind::Listing(self.listing(listing)?),
            QuestionKind::Failing(uids) => AnswerKind::Listing(self.failing(uids)?),
            QuestionKind::Prefix(prefix) => AnswerKind::Range(self.prefix(&prefix.prefix)?),
            QuestionKind::Spellings(page) => AnswerKind::Listing(self.spellings(&page.url)?),
            QuestionKind::Counts(_) => AnswerKind::Counts(self.counts()?),
            QuestionKind::Hosts(search) => AnswerKind::Hosts(self.hosts(search)?),
            QuestionKind::Busiest(_) => AnswerKind::Listing(self.busiest()?),
            QuestionKind::Sources(sources) => AnswerKind::Sources(self.sources(sources)?),
            QuestionKind::HostsOf(uids) => AnswerKind::Stretches(self.hosts_of(Uid::slice(&uids.uids))?),
            QuestionKind::Backlinks(backlinks) => AnswerKind::Backlinks(self.backlinks(backlinks)?),
        })
    }

    /// Counts answered values, within the bounds.
    fn spend(&mut self, values: usize) -> Result<(), Status> {
        *self.values += values;
        self.held.bounds.admit_values(*self.values)
    }

    fn find(&mut self, keys: &[Vec<u8>]) -> Result<UidList, Status> {
        self.spend(keys.len())?;
        let cell = self.cell;
        let uid = |key: &Vec<u8>| Ok(cell.find(key).map_err(|error| status_of(&error))?.map_or(0, |uid| uid.0 + 1));
        Ok(UidList { uids: keys.iter().map(uid).collect::<Result<_, Status>>()? })
    }

    fn spellings(&mut self, url: &str) -> Result<UidList, Status> {
        let mut found = Vec::new();
        let page = Spelled::new(url, webstrata_url::surt);
        self.cell.spellings(&page, &mut found).map_err(|error| status_of(&error))?;
        self.spend(1 + found.len())?;
        Ok(UidList { uids: Uid::numbers(&in_order(found)).to_vec() })
    }

    fn hosts(&mut self, search: &HostSearch) -> Result<HostList, Status> {
        let hosts = self.cell.hosts().map_err(|error| status_of(&error))?;
        let mut found: Vec<_> = hosts.iter().filter(|known| known.host.contains(&search.contains)).collect();
        found.sort_by_key(|known| Reverse(known.urls));
        found.truncate(search.limit as usize);
        self.spend(1 + 8 * found.len())?;
        let host = |known: &HostUrls| Host { host: known.host.to_string(), urls: known.urls };
        Ok(HostList { hosts: found.into_iter().map(host).collect() })
    }

    fn hosts_of(&mut self, uids: &[Uid]) -> Result<HostList, Status> {
        let (mut hosts, mut url) = (Vec::new(), String::new());
        let mut rest = uids;
        while let Some(&uid) = rest.first() {
            has_url(self.cell, uid)?;
            let (host, next) = self.cell.host(uid, &mut url).map_err(|error| status_of(&error))?;
            self.spend(2 + host.len() / size_of::<u64>())?;
            let pages = rest.partition_point(|&uid| uid < next).max(1);
            hosts.push(Host { host: host.to_owned(), urls: pages as u64 });
            rest = &rest[pages..];
        }
        Ok(HostList { hosts })
    }

    fn busiest(&mut self) -> Result<UidList, Status> {
        let uids = self.cell.busiest().map_err(|error| status_of(&error))?;
        self.spend(1 + uids.len())?;
        Ok(UidList { uids: Uid::numbers(uids).to_vec() })
    }

    fn urls(&mut self, uids: &[Uid]) -> Result<UrlList, Status> {
        let mut urls = Vec::with_capacity(uids.len());
        for &uid in uids {
            let mut url = String::new();
            url_of(self.cell, uid, &mut url)?;
            // Count one value for each eight bytes of the URL.
            self.spend(1 + url.len() / size_of::<u64>())?;
            urls.push(url);
        }
        Ok(UrlList { urls })
    }

    fn links(&mut self, request: &LinksOf) -> Result<LinkLists, Status> {
        let (window, direction) = (window_of(request.window.as_ref())?, direction_of(request.direction)?);
        let mut lists = LinkLists { counts: Vec::with_capacity(request.uids.len()), ..LinkLists::default() };
        let (mut links, mut unsure, mut captures) = (Vec::new(), Vec::new(), Vec::new());
        let (mut bytes, mut answered) = (Vec::new(), 0);
        let cell = self.cell;
        let stretch = stretch_of(request);
        for &uid in Uid::slice(&request.uids) {
            links.clear();
            unsure.clear();
            let (mut found, mut time, mut count) = (false, 0, 0);
            if let Some(node) = cell.node(uid) {
                match direction {
                    LinkDirection::Out => {
                        found = cell.has_page(node).map_err(|error| status_of(&error))?;
                        if found {
                            cell.window(node, window, self.scratch, &mut links).map_err(|error| status_of(&error))?;
                        }
                        if let (TimeWindow::AsOf(as_of), true) = (window, found) {
                            cell.captures(node, self.scratch, &mut captures).map_err(|error| status_of(&error))?;
                            let latest = deciding(&captures, as_of);
                            found = latest.is_some();
                            time = latest.map_or(0, |latest| latest.time);
                        }
                    }
                    // Every source of the row counts, so only the sources that the request asks for are collected.
                    LinkDirection::In(_) if window == TimeWindow::ALWAYS && cell.has_in_link_times() => {
                        let most = usize::try_from(request.most).ok().filter(|&most| most > 0).unwrap_or(usize::MAX);
                        let mut visit = |source: Uid| {
                            if source >= Uid(request.first) && links.len() < most {
                                if request.count {
                                    count += 1;
                                } else {
                                    links.push(source);
                                }
                            }
                        };
                        self.row.each_source(uid, self.scratch, &mut visit).map_err(|error| status_of(&error))?;
                    }
                    LinkDirection::In(precision) => self
                        .row
                        .sources_into(uid, window, precision, stretch, self.scratch, (&mut links, &mut unsure))
                        .map_err(|error| status_of(&error))?,
                }
            }
            if direction == LinkDirection::Out {
                lists.found.push(found);
                if matches!(window, TimeWindow::AsOf(_)) {
                    lists.times.push(time);
                }
            }
            cut(&mut links, &mut unsure, request);
            if let (Some(drawing), true) = (&request.sample, unsure.is_empty()) {
                sample_of(drawing).draw(uid, &mut links);
            }
            if request.count && !unsure.is_empty() {
                // Counts need sure lists. If a source is unsure, the clerk asks again for the links.
                return Ok(LinkLists::default());
            }
            self.spend(1 + if request.count { 0 } else { links.len() })?;
            if request.count {
                lists.degrees.push((count + links.len()) as u64);
                continue;
            }
            lists.unsure.extend(unsure.iter().map(|&index| narrow(answered + index)));
            lists.counts.push(narrow(links.len()));
            gaps::put(Uid::numbers(&links), &mut bytes);
            answered += links.len();
        }
        lists.links = bytes.into();
        Ok(lists)
    }

    fn sources(&mut self, request: &SourcesOf) -> Result<LinkLists, Status> {
        let most = usize::try_from(request.most).ok().filter(|&most| most > 0).unwrap_or(usize::MAX);
        // Keeps the first `most` sources from `first` on, in order. Only sources before `end` may still be among these.
        let mut end = Uid(if request.end == 0 { u64::MAX } else { request.end });
        let mut sources: Vec<Uid> = Vec::new();
        let first = |sources: &mut Vec<Uid>, end: &mut Uid| {
            *sources = in_order(std::mem::take(sources));
            if sources.len() > most {
                sources.truncate(most);
                *end = sources.last().map_or(*end, |&last| last);
            }
        };
        for range in &request.target {
            let mut visit = |source: Uid| {
                if source >= Uid(request.first) && source < end {
                    sources.push(source);
                    if sources.len() >= most.saturating_mul(2) {
                        first(&mut sources, &mut end);
                    }
                }
            };
            let target = Uid(range.first)..Uid(range.end);
            self.cell.each_source_of(&target, self.scratch, &mut visit).map_err(|error| status_of(&error))?;
        }
        first(&mut sources, &mut end);
        self.spend(1 + sources.len())?;
        let mut lists = LinkLists { counts: vec![narrow(sources.len())], ..LinkLists::default() };
        let mut bytes = Vec::new();
        gaps::put(Uid::numbers(&sources), &mut bytes);
        lists.links = bytes.into();
        Ok(lists)
    }

    fn backlinks(&mut self, request: &BacklinksOf) -> Result<BacklinkLists, Status> {
        let target: Vec<_> = request.target.iter().map(|range| Uid(range.first)..Uid(range.end)).collect();
        let (mut lists, mut backlink) = (room_for_backlinks(request.pages.len()), Backlink::default());
        for (at, &page) in (0..).zip(Uid::slice(&request.pages)) {
            backlink.clear();
            if let Some(node) = self.cell.node(page) {
                self.cell.backlink(node, &target, self.scratch, &mut backlink).map_err(|error| status_of(&error))?;
            }
            self.spend(2 + 4 * backlink.stays.len() + 3 * backlink.unknown.len())?;
            put_backlink(&mut lists, at, &backlink);
        }
        Ok(lists)
    }

    fn captures(&mut self, uids: &[Uid]) -> Result<TimeLists, Status> {
        let mut lists = TimeLists::default();
        let mut captures: Vec<CaptureTime> = Vec::new();
        for &uid in uids {
            captures.clear();
            if let Some(node) = self.cell.node(uid) {
                self.cell.captures(node, self.scratch, &mut captures).map_err(|error| status_of(&error))?;
            }
            self.spend(1 + captures.len())?;
            lists.counts.push(narrow(captures.len()));
            for capture in &captures {
                if !capture.known {
                    lists.unknown.push(narrow(lists.times.len()));
                }
                lists.times.push(capture.time);
            }
            lists.statuses.extend(numbers_of(&captures));
        }
        clear_if_ok(&mut lists.statuses);
        Ok(lists)
    }

    fn spans(&mut self, uids: &[Uid], spans: Spans) -> Result<SpanLists, Status> {
        let mut lists = SpanLists::default();
        let mut lifespans: Vec<Lifespan> = Vec::new();
        for &uid in uids {
            lifespans.clear();
            if let Some(node) = self.cell.node(uid) {
                self.cell.spans(node, spans, self.scratch, &mut lifespans).map_err(|error| status_of(&error))?;
            }
            self.spend(1 + 3 * lifespans.len())?;
            lists.counts.push(narrow(lifespans.len()));
            lists.links.extend(lifespans.iter().map(|lifespan| lifespan.link.0));
            lists.firsts.extend(lifespans.iter().map(|lifespan| lifespan.first));
            lists.lasts.extend(lifespans.iter().map(|lifespan| lifespan.last));
        }
        Ok(lists)
    }

    fn pages(&mut self, uids: &[Uid]) -> Result<PageList, Status> {
        let mut pages = Vec::with_capacity(uids.len());
        for &uid in uids {
            let page = match self.cell.node(uid) {
                Some(node) => self.cell.page(node).map_err(|error| status_of(&error))?,
                None => None,
            };
            let page = page.unwrap_or_default();
            self.spend(1 + page.timestamps.len() + page.links.len() + 2 * page.changes.len())?;
            pages.push(Page {
                change_links: page.changes.iter().map(|change| change.link).collect(),
                change_captures: page.changes.iter().map(|change| change.capture).collect(),
                timestamps: page.timestamps,
                blank: page.blank,
                status_captures: page.statuses.iter().map(|change| change.capture).collect(),
                statuses: page.statuses.iter().map(|change| change.status.number().into()).collect(),
                links: Uid::numbers(&page.links).to_vec(),
            });
        }
        Ok(PageList { pages })
    }

    fn in_records(&mut self, uids: &[Uid]) -> Result<InRecordList, Status> {
        let mut records = Vec::with_capacity(uids.len());
        for &uid in uids {
            let record = match self.row.in_record(uid, self.scratch).map_err(|error| status_of(&error))? {
                RowInRecord::Whole(record) => record.unwrap_or_default(),
                // Pages that other servers have decide; see the protocol.
                RowInRecord::OfSome(sources) => InLinks { sources, ..InLinks::default() },
            };
            self.spend(1 + record.ranges.len() + record.sources.len() + 2 * record.changes.len())?;
            records.push(InRecord {
                change_sources: record.changes.iter().map(|change| change.link).collect(),
                change_ranges: record.changes.iter().map(|change| change.capture).collect(),
                ranges: record.ranges,
                sources: Uid::numbers(&record.sources).to_vec(),
            });
        }
        Ok(InRecordList { records })
    }

    fn has_links(&mut self, pairs: &HasLinks) -> Result<Truths, Status> {
        if pairs.pages.len() != pairs.links.len() {
            return Err(bad(format!("has_links: {} pages but {} links", pairs.pages.len(), pairs.links.len())));
        }
        self.spend(pairs.pages.len())?;
        let window = window_of(pairs.window.as_ref())?;
        let mut has = |(&page, &link): (&Uid, &Uid)| match self.cell.node(page) {
            Some(node) => self.cell.has_link(node, link, window, self.scratch).map_err(|error| status_of(&error)),
            None => Ok(false),
        };
        Ok(Truths {
            truths: Uid::slice(&pairs.pages)
                .iter()
                .zip(Uid::slice(&pairs.links))
                .map(&mut has)
                .collect::<Result<_, Status>>()?,
        })
    }

    fn listing(&mut self, listing: &Listing) -> Result<UidList, Status> {
        let mut uids = Vec::new();
        let cell = self.cell;
        let label = cell.label();
        let interval = Uid(listing.first).max(label.first_record)..Uid(listing.end).min(label.end_record);
        for uid in Uid::each(interval) {
            let Some(node) = cell.node(uid) else { continue };
            if cell.captured(node, (listing.from, listing.to), self.scratch).map_err(|error| status_of(&error))? {
                uids.push(uid.0);
            }
        }
        self.spend(uids.len())?;
        Ok(UidList { uids })
    }

    fn failing(&mut self, uids: &Range) -> Result<UidList, Status> {
        let mut failing = Vec::new();
        self.cell.failing(Uid(uids.first)..Uid(uids.end), &mut failing).map_err(|error| status_of(&error))?;
        self.spend(failing.len())?;
        Ok(UidList { uids: Uid::into_numbers(failing) })
    }

    fn counts(&mut self) -> Result<Counts, Status> {
        self.spend(1)?;
        let (counts, urls) = (self.cell.counts(), self.cell.label().urls);
        Ok(Counts {
            urls,
            pages: counts.pages,
            captures: counts.captures,
            links: counts.links,
            max_out_degree: counts.max_out_degree,
            max_in_degree: counts.max_in_degree,
            bytes: self.cell.bytes(),
        })
    }

    fn prefix(&mut self, prefix: &[u8]) -> Result<Range, Status> {
        self.spend(1)?;
        let uids = self.cell.prefix(prefix).map_err(|error| status_of(&error))?;
        Ok(Range { first: uids.start.0, end: uids.end.0 })
    }
}

/// Replaces the contents of `url` by the URL of a UID of a cell.
fn url_of(cell: &Cell, uid: Uid, url: &mut String) -> Result<(), Status> {
    has_url(cell, uid)?;
    cell.url(uid, url).map_err(|error| status_of(&error))
}

/// Refuses a UID whose URL a cell does not hold.
fn has_url(cell: &Cell, uid: Uid) -> Result<(), Status> {
    let label = cell.label();
    if !(label.first_uid..label.first_uid + label.urls).contains(&uid) {
        return Err(bad(format!("urls: cell {} does not hold the URL of UID {uid}", label.partition)));
    }
    Ok(())
}

/// The first link that a request is about, and the largest number of links from there on.
fn stretch_of(request: &LinksOf) -> (Uid, usize) {
    let most = usize::try_from(request.most).ok().filter(|&most| most > 0).unwrap_or(usize::MAX);
    (Uid(request.first), most)
}

/// Cuts a list, and the indexes `unsure` into it, to the links that a request is about.
fn cut(list: &mut Vec<Uid>, unsure: &mut Vec<usize>, request: &LinksOf) {
    let (first, links_max) = stretch_of(request);
    let start = list.partition_point(|&link| link < first);
    let end = list.len().min(start.saturating_add(links_max));
    list.truncate(end);
    list.drain(..start);
    unsure.retain(|index| (start..end).contains(index));
    unsure.iter_mut().for_each(|index| *index -= start);
}
