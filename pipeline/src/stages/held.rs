//! Stage 8, only with `--min-sources`: writes the links that are left out to the files of held links
//! ([`webstrata_layers::held`]), from which the next update brings them back.
//!
//! `outlinks` has taken these links out of the pages. The links go to the workers that have the texts of their targets.
//! With these texts, the links then go to the files, by range of the page's key. The number of files follows from the
//! number of pages with held links, and a sample of these pages by hash gives the boundaries. The files therefore
//! depend only on the held links.
//!
//! Link record: key = number of the target (8 bytes, [`links`]); payload = length of the page's key and the key, the
//! form, the digest of payloads or 0, times. Held record: key = key of the page, key of the target, form, digest (8
//! bytes); payload = length of the page's key, times.
//! No URL key is a prefix of another URL key.

pub(crate) mod links;
pub(crate) mod pages;

use crate::Error;
use crate::row::{Offsets, partition_number};
use crate::stages::held::links::{place_of, read_times, write_times};
use crate::stages::partition::{Boundaries, Sample, Weights, join_sample};
use crate::stages::state::BuildState;
use timely::worker::Worker;
use webstrata_engine::{Collector, Context, Job, Outbox, RunReader, Sorted, Sorter, Stopped, gather, shuffle, wire};
use webstrata_layers::RowDir;
use webstrata_layers::held::{HeldEntry, HeldLink, HeldWriter, OF_REVISITS};
use webstrata_layers::record::form::{form_of, link_of};
use webstrata_layers::record::key::url_of_key;
use xxhash_rust::xxh3::xxh3_128;

/// The approximate number of pages in a file.
const PAGES: u64 = 1 << 17;

/// Adds the link records of a page.
pub(crate) fn push_links(records: &mut Sorter, page_key: &[u8], held: &[links::HeldLink]) -> Result<(), Error> {
    let mut payload = Vec::new();
    for links::HeldLink { link, of_revisits, digest, times } in held {
        payload.clear();
        wire::put(&mut payload, page_key.len() as u64);
        payload.extend_from_slice(page_key);
        payload.push(if *of_revisits { OF_REVISITS } else { form_of(*link) });
        wire::put(&mut payload, *digest);
        write_times(&mut payload, times);
        records.push(&link_of(*link).0.to_be_bytes(), &payload)?;
    }
    Ok(())
}

/// The held records of this worker, on their way to the files.
pub(crate) struct HeldRecords {
    records: Sorter,
    sample: Sample,
    key: Vec<u8>,
    payload: Vec<u8>,
    /// Whether a record has a digest.
    has_digests: bool,
}

impl HeldRecords {
    pub(crate) fn new(job: &Job, percent: usize) -> Self {
        let records = Sorter::new(job.scratch(), "held", job.budget_beside_record(percent));
        Self { records, sample: Sample::default(), key: Vec::new(), payload: Vec::new(), has_digests: false }
    }

    /// Adds a link of a page; `times` as in link records.
    fn push_coded(&mut self, page: &[u8], link: &[u8], (form, digest): (u8, u64), times: &[u8]) -> Result<(), Error> {
        let Self { records, sample, key, payload, has_digests } = self;
        *has_digests |= digest != 0;
        sample.offer(xxh3_128(page), page);
        key.clear();
        key.extend_from_slice(page);
        key.extend_from_slice(link);
        key.push(form);
        key.extend_from_slice(&digest.to_be_bytes());
        payload.clear();
        wire::put(payload, page.len() as u64);
        payload.extend_from_slice(times);
        Ok(records.push(key, payload)?)
    }

    /// Adds a held record.
    pub(crate) fn push_record(&mut self, key: &[u8], payload: &[u8]) -> Result<(), Error> {
        let (page, _) = split(key, &mut &*payload);
        self.sample.offer(xxh3_128(page), page);
        self.has_digests |= !key.ends_with(&[0; 8]);
        Ok(self.records.push(key, payload)?)
    }

    /// Returns the records, for a later stage.
    pub(crate) fn into_sorter(self) -> Sorter {
        self.records
    }

    /// Adds a link, given by the keys of its page and of its target, with its form and the digest of its payloads or 0.
    pub(crate) fn push(&mut self, page: &[u8], link: &[u8], of: (u8, u64), times: &[i64]) -> Result<(), Error> {
        let mut coded = Vec::new();
        write_times(&mut coded, times);
        self.push_coded(page, link, of, &coded)
    }
}

/// Writes the held links; see the head of this file.
pub(crate) fn held(worker: &mut Worker, context: &Context, state: &mut BuildState) -> Result<(), Stopped> {
    let job = &context.job;
    let mut links = job.check(Sorted::of(&std::mem::take(&mut state.held_links), job.scratch()))?;
    let named = Collector::new(Sorter::new(job.scratch(), "held-links", job.budget_beside_record(40)));
    let send = move |outbox: &mut Outbox| {
        let Some((key, payload)) = links.next()? else { return Ok(false) };
        let mut number = key;
        outbox.send(place_of(wire::take_uid(&mut number)).0, key, payload);
        Ok(true)
    };
    shuffle(worker, job, "held", send, named.consumer())?;
    let urls = std::mem::take(&mut state.held_urls);
    let mut records = HeldRecords::new(job, 40);
    job.check(named.into_inner().and_then(Sorter::finish).and_then(|mut named| {
        let mut urls = urls.0.first().map(|run| RunReader::open(run, job.scratch())).transpose()?;
        let mut next = 0;
        let mut target = Vec::new();
        while let Some((mut number, mut payload)) = named.next()? {
            let (_, place) = place_of(wire::take_uid(&mut number));
            while next <= place {
                let url = urls.as_mut().map_or(Ok(None), RunReader::next)?;
                let (key, _) = url.ok_or(Error::Internal("a held URL without a text"))?;
                target.clear();
                target.extend_from_slice(key);
                next += 1;
            }
            let length = wire::take_usize(&mut payload);
            let (page, mut rest) = payload.split_at(length.min(payload.len()));
            let [form] = wire::take_array(&mut rest);
            let digest = wire::take(&mut rest);
            records.push_coded(page, &target, (form, digest), rest)?;
            job.go_on()?;
        }
        Ok(())
    }))?;
    state.held = write(worker, job, &context.row, records)?;
    Ok(())
}

/// Writes held records to the files of this worker's ranges.
pub(crate) fn write(
    worker: &mut Worker,
    job: &Job,
    row: &RowDir,
    records: HeldRecords,
) -> Result<Vec<HeldEntry>, Stopped> {
    let HeldRecords { records, sample, has_digests, .. } = records;
    let has_digests = gather(worker, job, None, &has_digests)?.contains(&true);
    let mut records = job.check(records.finish())?;
    let sample = join_sample(worker, job, &job.check(sample.into_runs(job.scratch()))?)?;
    let boundaries = sample.boundaries(Some(PAGES), &Weights::new());
    let ranged = Collector::new(Sorter::new(job.scratch(), "held", job.budget_beside_record(40)));
    let of_send = boundaries.clone();
    let send = move |outbox: &mut Outbox| {
        let Some((key, payload)) = records.next()? else { return Ok(false) };
        let (page, _) = split(key, &mut &*payload);
        outbox.send(Offsets::worker(of_send.of(page), outbox.workers()), key, payload);
        Ok(true)
    };
    shuffle(worker, job, "held", send, ranged.consumer())?;
    let ranged = job.check(ranged.into_inner().and_then(Sorter::finish))?;
    job.check(write_files(job, (row, has_digests), &boundaries, ranged))
}

/// Returns the key of the page, and the key of the target with the form and the digest.
fn split<'a>(key: &'a [u8], payload: &mut &[u8]) -> (&'a [u8], &'a [u8]) {
    let length = wire::take_usize(payload);
    key.split_at(length.min(key.len()))
}

fn write_files(
    job: &Job,
    (row, has_digests): (&RowDir, bool),
    boundaries: &Boundaries,
    mut records: Sorted,
) -> Result<Vec<HeldEntry>, Error> {
    let mut entries = Vec::new();
    let mut current: Option<(usize, HeldWriter)> = None;
    let text = |key: &[u8]| url_of_key(key).ok_or(Error::Internal("a URL key that is no URL"));
    while let Some((key, mut payload)) = records.next()? {
        let (page, rest) = split(key, &mut payload);
        let part = boundaries.of(page);
        let mut writer = match current.take() {
            Some((of, writer)) if of == part => writer,
            before => {
                entries.extend(before.map(|(_, writer)| writer.finish()).transpose()?);
                HeldWriter::create(row, partition_number(part)?, has_digests)?
            }
        };
        let (link, mut of) = rest.split_at(rest.len().saturating_sub(9));
        let ([form], digest) = (wire::take_array(&mut of), u64::from_be_bytes(wire::take_array(&mut of)));
        let (page, link) = (text(page)?, text(link)?);
        writer.push(&HeldLink { page, link, form, digest, times: read_times(&mut payload) })?;
        current = Some((part, writer));
        job.go_on()?;
    }
    entries.extend(current.map(|(_, writer)| writer.finish()).transpose()?);
    Ok(entries)
}

/// Returns the files that all workers wrote, sorted by path.
pub(crate) fn entries<'a>(states: impl Iterator<Item = &'a Vec<HeldEntry>>) -> Vec<HeldEntry> {
    let mut all: Vec<HeldEntry> = states.flatten().cloned().collect();
    all.sort_unstable_by(|one, other| one.path.cmp(&other.path));
    all
}
