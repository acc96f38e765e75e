//! The job `remove`: takes captures and links out of a store by adding a row that states the affected captures again.
//!
//! ```text
//! rules, store -> select -> outlinks -> inlinks -> held -> commit
//! ```
//!
//! The row has one record for each page that the rules touch. A record lists only the captures that the rules touch. A
//! removed capture has the status [`Status::REMOVED`], and a capture with a removed link is listed without the link.
//! The newest row decides ([`webstrata_layers::record::precedence`]), so no question sees the removed data once the
//! epoch is committed. A merge of all rows then drops the data from the files ([`crate::merge`]). The manifest holds
//! the rules, and builds and updates keep out the captures and links that the rules name.
//!
//! If the record of a revisit itself names a removed link, the capture is no longer a revisit. The other links of the
//! capture stay as they are, whatever captures come later.
//!
//! Selection record: key = UID of a page (8 bytes); payload = number of a rule, and the UID of a removed target plus 1,
//! or 0 if captures of the page are removed, in LEB128.
//!
//! Cost: the UIDs that the rules select, the in-links of the UIDs that are removed as targets, and the records of the
//! pages that are found in this way.

mod held;

use crate::row::{Offsets, partition_number, row_of, share};
use crate::stages::held::entries;
use crate::stages::inlinks::inlinks;
use crate::stages::outlinks::{Origin, outlinks};
use crate::stages::page_links::{links_at, woven};
use crate::stages::page_record;
use crate::stages::partition::record_bounds;
use crate::stages::state::BuildState;
use crate::{Error, PARTITION_URLS};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use timely::worker::Worker;
use webstrata_engine::{
    Collector, Committing, Context, Error as JobError, Identity, JobStage, JobState, Outbox, Progress, RunOptions,
    Runs, Sorted, Sorter, Stopped, Work, shuffle, wire,
};
use webstrata_layers::held::HeldEntry;
use webstrata_layers::record::form::{self, link_of};
use webstrata_layers::{
    Effort, Evidence, FileEntry, Links, NewEpoch, Page, Payload, Precision, Provenance, Reader, Removal, Removals,
    Revisit, Status, Uid, UrlWriter, Window, push_status,
};

/// The options of a removal.
#[derive(Clone, Debug)]
pub struct RemoveOptions {
    /// The store, the workers and the memory.
    pub run: RunOptions,
    /// The rules: the captures and links to take out.
    pub rules: Vec<Removal>,
    /// Whether the store keeps the texts of the rules, and not only their hashes.
    pub keep_names: bool,
}

/// The counts of a removal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Removed {
    /// The number of pages that lost captures.
    pub pages: u64,
    /// The number of captures that were removed.
    pub captures: u64,
    /// The number of pages that lost links.
    pub sources: u64,
    /// The number of pairs of a capture and a link that were removed from captures that stay.
    pub occurrences: u64,
}

/// The report of a removal, for all processes together.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RemoveReport {
    /// The number of the new epoch; if nothing was left to remove, the number of the current epoch.
    pub epoch: u64,
    /// The counts of the captures and links that were removed.
    pub removed: Removed,
}

/// The state of a worker of a removal after a stage.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct RemoveState {
    build: BuildState,
    removed: Removed,
    /// The files of held links that this worker has written; `None` if the files of the store stay.
    held: Option<Vec<HeldEntry>>,
}

impl JobState for RemoveState {
    fn collections(&self) -> Vec<&Runs> {
        self.build.collections()
    }

    fn files(&self) -> &[FileEntry] {
        self.build.files()
    }
}

/// The stages, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Select,
    Outlinks,
    Inlinks,
    Held,
}

impl JobStage for Stage {
    const ALL: &'static [Self] = &[Self::Select, Self::Outlinks, Self::Inlinks, Self::Held];

    fn name(self) -> &'static str {
        match self {
            Self::Select => "select",
            Self::Outlinks => "outlinks",
            Self::Inlinks => "inlinks",
            Self::Held => "held",
        }
    }
}

/// The work of a removal.
struct Remove {
    rules: Arc<Vec<Removal>>,
    keep_names: bool,
}

impl Work for Remove {
    type Report = RemoveReport;
    type Stage = Stage;
    type State = RemoveState;

    const NAME: &'static str = "remove";

    fn reads_store(&self) -> bool {
        true
    }

    fn effort(&self) -> Effort {
        Effort::Quick
    }

    fn input_bytes(&self, stage: Stage, state: &RemoveState) -> u64 {
        match stage {
            Stage::Select | Stage::Held => 0,
            Stage::Outlinks => state.build.page_records.bytes(),
            Stage::Inlinks => state.build.in_links.bytes(),
        }
    }

    fn run(
        &self,
        worker: &mut Worker,
        context: &Context,
        stage: Stage,
        state: &mut RemoveState,
    ) -> Result<(), Stopped> {
        match stage {
            Stage::Select => select(worker, context, &self.rules, state),
            Stage::Outlinks => {
                let store = context.job.check(context.store())?;
                outlinks(worker, context, store.in_range(), (Origin::Store, &Removals::default()), &mut state.build)
            }
            Stage::Inlinks => inlinks(worker, context, &mut state.build),
            Stage::Held => {
                let store = context.job.check(context.store())?;
                state.held = held::held(worker, context, store, &self.rules)?;
                Ok(())
            }
        }
    }

    fn commit(&self, writer: Committing, context: &Context, states: &[RemoveState]) -> Result<RemoveReport, JobError> {
        let mut removed = Removed::default();
        for Removed { pages, captures, sources, occurrences } in states.iter().map(|state| state.removed) {
            removed.pages += pages;
            removed.captures += captures;
            removed.sources += sources;
            removed.occurrences += occurrences;
        }
        let writer = match writer {
            Committing::Open(writer) => writer,
            Committing::Done(epoch) => return Ok(RemoveReport { epoch, removed }),
        };
        let (mut row, _) = row_of(context, 1, &states.iter().map(|state| &state.build.row).collect::<Vec<_>>());
        row.removes = true;
        let manifest = context.store()?.store().manifest();
        let mut removals = manifest.provenance.removals.clone();
        let root = context.store()?.store().root().to_string();
        for rule in self.rules.iter() {
            let rule = rule.kept(&root, self.keep_names).map_err(Error::from)?;
            match removals.iter_mut().find(|known| known.is_same(&rule)) {
                // The caller's last choice decides whether the name is kept.
                Some(known) => *known = rule,
                None => removals.push(rule),
            }
        }
        if removed == Removed::default() && removals == manifest.provenance.removals {
            // Everything was removed before: the epoch stays.
            writer.abandon(&context.row)?;
            return Ok(RemoveReport { epoch: manifest.epoch, removed });
        }
        let rows = manifest.rows.iter().cloned().chain([row]).collect();
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let (removed_in, retires_before) = (Some(manifest.epoch + 1), Some(manifest.epoch + 1));
        let mut provenance =
            Provenance { version, removals, removed_in, retires_before, ..manifest.provenance.clone() };
        if states.iter().any(|state| state.held.is_some()) {
            provenance.held = entries(states.iter().flat_map(|state| &state.held));
        }
        let epoch = writer.commit(NewEpoch { rows, in_range: manifest.in_range, provenance, translation: None })?;
        Ok(RemoveReport { epoch, removed })
    }
}

/// Takes captures and links out of a store; see the head of this file and [`webstrata_engine::run()`].
///
/// # Errors
/// The store does not exist, is damaged, or is being written by another process; a rule selects something that is not a
/// host; a disk is full; a process is gone. After an error, the store answers as before, and the same call resumes
/// after the last finished stage.
///
/// ```
/// use webstrata_layers::{Removal, RemovedAs, Selection};
/// use webstrata_engine::{Progress, RunOptions};
/// use webstrata_pipeline::{BuildOptions, RemoveOptions, build, remove};
///
/// let dir = tempfile::tempdir()?;
/// let crawl = dir.path().join("crawl.jsonl");
/// std::fs::write(&crawl, r#"{"url": "http://example.org/", "ts": "2008", "links": ["http://example.com/"]}"#)?;
/// let run = RunOptions::new(dir.path().join("store"));
/// build(&BuildOptions::new(run.clone(), vec![crawl]), &Progress::default())?;
///
/// let host = Selection::Host("example.org".to_owned());
/// let rule = Removal { select: host, removed_as: RemovedAs::Page, from: None, to: None, reason: None };
/// let report = remove(&RemoveOptions { run, rules: vec![rule], keep_names: false }, &Progress::default())?;
/// assert_eq!((report.epoch, report.removed.pages, report.removed.captures), (2, 1, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn remove(options: &RemoveOptions, progress: &Progress) -> Result<RemoveReport, Error> {
    let mut rules = options.rules.clone();
    rules.sort();
    rules.dedup();
    rules.iter().try_for_each(|rule| rule.select.keys().map(drop))?;
    let keep_names = options.keep_names;
    let identity = Identity { bytes: format!("{rules:?} {keep_names}"), times: String::new() };
    let work = Remove { rules: Arc::new(rules), keep_names };
    Ok(webstrata_engine::run(work, &identity, &options.run, progress)?)
}

/// Returns the UIDs that the rules select, as (number of the rule, UIDs).
fn selected(store: &Reader, rules: &[Removal]) -> Result<Vec<(usize, Range<Uid>)>, Error> {
    let mut selected = Vec::new();
    for (number, rule) in rules.iter().enumerate() {
        // No key is a prefix of another key, so a whole key as prefix selects only the URL with this key.
        let (prefix, _) = rule.select.keys()?;
        selected.extend(store.with_prefix(&prefix)?.into_iter().map(|uids| (number, uids)));
    }
    Ok(selected)
}

/// Returns the UIDs at which the records of the row are cut into partitions, so that each partition covers about
/// equally many records of the store.
fn records(store: &Reader, end: Uid) -> Result<Offsets, Error> {
    let mut sampled = Vec::new();
    for row in 0..store.rows() {
        for (first, last, count) in store.row_groups(row)? {
            sampled.extend([(first, count as u64), (last, count as u64)]);
        }
    }
    let partitions = usize::try_from(end.0.div_ceil(*PARTITION_URLS.end())).unwrap_or(usize::MAX).max(1);
    Ok(Offsets(record_bounds(sampled, partitions, end)))
}

/// Finds the pages that the rules touch and makes the records of the row. Also writes the URL layer of the row, which
/// has no URL.
fn select(
    worker: &mut Worker,
    context: &Context,
    rules: &Arc<Vec<Removal>>,
    state: &mut RemoveState,
) -> Result<(), Stopped> {
    let job = &context.job;
    let (index, peers) = (worker.index(), worker.peers());
    let store = Arc::clone(job.check(context.store())?);
    let end = Uid(store.urls());
    let records = job.check(records(&store, end))?;
    state.build.row.offsets = Offsets(vec![end; records.partitions() + 1]);
    state.build.row.records = records.clone();
    for partition in (0..records.partitions()).filter(|&partition| Offsets::worker(partition, peers) == index) {
        let files = job.check(empty_urls(context, partition))?;
        state.build.row.files.extend(files);
    }
    let mut uids: Vec<(usize, Range<Uid>)> = job.check(selected(&store, rules))?;
    let mut by_revisits = job.check(named_by_revisits(&store, rules, &uids, (index, peers)))?;
    let found = Collector::new(Sorter::new(job.scratch(), "selected", job.budget_beside_record(40)));
    let (produce, of_producer) = (Arc::clone(&store), Arc::clone(rules));
    let mut payload = Vec::new();
    shuffle(
        worker,
        job,
        "select",
        move |outbox: &mut Outbox| {
            let mut send = |page: Uid, number: usize, target: u64| {
                payload.clear();
                wire::put(&mut payload, number as u64);
                wire::put(&mut payload, target);
                let owner = Offsets::worker(records.of(page), outbox.workers());
                outbox.send(owner, &page.0.to_be_bytes(), &payload);
            };
            if let Some((page, number, target)) = by_revisits.pop() {
                send(page, number, target.0 + 1);
                return Ok(true);
            }
            let Some((number, uids_left)) = uids.last_mut() else { return Ok(false) };
            let Some(uid) = Uid::each(uids_left.clone()).next() else {
                uids.pop();
                return Ok(true);
            };
            let (number, rule) = (*number, &of_producer[*number]);
            uids_left.start = uid + 1;
            if uid.0 % peers as u64 != index as u64 {
                return Ok(true);
            }
            if rule.of_pages() {
                send(uid, number, 0);
            }
            if rule.of_targets() {
                // Ranges may name too many pages, never too few.
                for source in produce.in_links(uid, Window::ALWAYS, Precision::Range)? {
                    send(source, number, uid.0 + 1);
                }
            }
            Ok(true)
        },
        found.consumer(),
    )?;
    let found = job.check(found.into_inner().and_then(Sorter::finish))?;
    state.build.page_records = job.check(restate_all(context, &store, rules, found, &mut state.removed))?;
    Ok(())
}

/// Returns the removed links that records of revisits name, for one worker's share of the pages: (page, rule, target).
fn named_by_revisits(
    store: &Reader,
    rules: &[Removal],
    selected: &[(usize, Range<Uid>)],
    (index, peers): (usize, usize),
) -> Result<Vec<(Uid, usize, Uid)>, Error> {
    let targets: Vec<_> = selected.iter().filter(|(number, _)| rules[*number].of_targets()).collect();
    let mut found = Vec::new();
    if targets.is_empty() {
        return Ok(found);
    }
    let share = share(store.urls(), index, peers);
    let by = |target: Uid| targets.iter().filter(move |(_, uids)| uids.contains(&target)).map(|(number, _)| *number);
    for row in 0..store.rows() {
        let wanted = |link: Uid| by(link).next().is_some();
        store.row_named_by_revisits(row, Uid(share.start)..Uid(share.end), wanted, |page, link| {
            found.extend(by(link).map(|number| (page, number, link)));
        })?;
    }
    Ok(found)
}

/// Writes the URL layer of a partition that has no URLs.
fn empty_urls(context: &Context, partition: usize) -> Result<Vec<FileEntry>, Error> {
    Ok(UrlWriter::create(&context.row, partition_number(partition)?)?.finish()?.into_iter().collect())
}

/// Makes the records of the pages that were found.
fn restate_all(
    context: &Context,
    store: &Reader,
    rules: &[Removal],
    mut found: Sorted,
    removed: &mut Removed,
) -> Result<Runs, Error> {
    let job = &context.job;
    let mut records = Sorter::new(job.scratch(), "page-records", job.budget_beside_record(35));
    let mut record = Vec::new();
    let (mut of_page, mut of_targets): (Vec<&Removal>, Vec<(Uid, &Removal)>) = (Vec::new(), Vec::new());
    let mut next = found.next()?.map(read_selection);
    while let Some((uid, ..)) = next {
        of_page.clear();
        of_targets.clear();
        while let Some((_, number, target)) = next.filter(|next| next.0 == uid) {
            match target {
                None => of_page.push(&rules[number]),
                Some(target) => of_targets.push((target, &rules[number])),
            }
            next = found.next()?.map(read_selection);
        }
        let Some((page, evidence)) = store.formed_page(uid)? else { continue };
        if let Some((page, evidence)) = restate(&page, &evidence, &of_page, &of_targets, removed) {
            record.clear();
            page_record::write(&mut record, &page, &evidence);
            records.push(&uid.0.to_be_bytes(), &record)?;
        }
        job.go_on()?;
    }
    Ok(records.into_runs()?)
}

fn read_selection((mut key, mut payload): (&[u8], &[u8])) -> (Uid, usize, Option<Uid>) {
    let (uid, number) = (wire::take_uid(&mut key), wire::take(&mut payload));
    (uid, usize::try_from(number).unwrap_or(usize::MAX), wire::take(&mut payload).checked_sub(1).map(Uid))
}

/// Returns the captures of a formed page that rules touch, in the form that the new row states them; `None` if rules
/// touch no capture.
fn restate(
    page: &Page,
    evidence: &Evidence,
    of_page: &[&Removal],
    of_targets: &[(Uid, &Removal)],
    removed: &mut Removed,
) -> Option<(Page, Evidence)> {
    let mut restated = Page { uid: page.uid, ..Page::default() };
    let mut said = Evidence::default();
    let mut links: Vec<(u32, Vec<Uid>)> = Vec::new();
    let (before, plain) = (*removed, form::plain(page));
    for (at, &time) in (0u32..).zip(&page.timestamps) {
        let capture = u32::try_from(restated.timestamps.len()).unwrap_or(u32::MAX);
        let is_removed = of_page.iter().any(|rule| rule.covers(time));
        let targets: Vec<Uid> = of_targets.iter().filter(|(_, rule)| rule.covers(time)).map(|&(uid, _)| uid).collect();
        let has = |link: &&Uid| !page.is_blank(at) && plain.has_link_within(**link, [(at, at)]);
        let revisit = evidence.revisit(at);
        let names = |link: &Uid| revisit.is_some_and(|revisit| revisit.links.contains(link));
        if !is_removed && !targets.iter().any(|target| has(&target) || names(target)) {
            continue;
        }
        restated.timestamps.push(time);
        if is_removed {
            removed.captures += 1;
            restated.blank.push(capture);
            push_status(&mut restated.statuses, capture, Status::REMOVED);
            said.digests.push(0);
            continue;
        }
        push_status(&mut restated.statuses, capture, page.status(at));
        said.digests.push(evidence.digest(at as usize));
        if let Some(revisit) = revisit.filter(|revisit| !targets.iter().any(|target| revisit.links.contains(target))) {
            said.revisits.push(Revisit { capture, ..revisit.clone() });
        }
        let mut payloads = evidence.payloads_of(at).to_vec();
        for payload in &mut payloads {
            payload.capture = capture;
            payload.links.retain(|link| !targets.contains(&link_of(*link)));
        }
        if page.is_blank(at) {
            restated.blank.push(capture);
            said.payloads.append(&mut payloads);
            continue;
        }
        let mut left = links_at(page, at);
        left.retain(|link| !targets.contains(&link_of(*link)));
        if Payload::say_more(&payloads, left.len()) {
            said.payloads.append(&mut payloads);
        }
        removed.occurrences += targets.iter().filter(has).collect::<BTreeSet<_>>().len() as u64;
        links.push((capture, left));
    }
    if restated.timestamps.is_empty() {
        return None;
    }
    if said.digests.iter().all(|&digest| digest == 0) {
        said.digests.clear();
    }
    removed.pages += u64::from(removed.captures > before.captures);
    removed.sources += u64::from(removed.occurrences > before.occurrences);
    (restated.links, restated.changes) = woven(&links);
    Some((restated, said))
}
