//! The hosts of a release: the key of each id, and the URL of each key.
//!
//! Several hosts have one key if folding unites them, or if a name occurs twice. Names are sorted, so such hosts stand
//! where all names between them begin with the shorter name, and a stack of the beginnings of the name at hand finds
//! them without a search ([`Folding`]).
//!
//! Memory: the URL of each host ([`HostUrls`]: its name and 10.5 bytes), a bit for each host, and 8 bytes for each id
//! if some hosts have one key. Readers of the captures keep 16 bytes a host and worker. Damage takes memory in
//! proportion to the files, whatever ids they claim: a gap between ids is a new run, and takes 16 bytes.

use super::{cell, lines_of, names, number};
use crate::capture::dictionary::{Dictionary, HostUrls};
use crate::files::hashed::DigestCell;
use crate::files::place::Place;
use crate::release::{GraphPart, Release, Table, Www};
use crate::{Capture, CaptureReader, EXAMPLES_PER_KIND_MAX, Error, Finding, Tally};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::AcqRel, Ordering::Relaxed};

/// The hosts of a release; see the head of this file.
pub(crate) struct Vertices {
    urls: Arc<Dictionary>,
    runs: Runs,
    /// The key of each place, if it is not the place itself.
    keys: Option<Vec<u64>>,
    /// A bit for each key: whether an edge was read that leads from or to the host.
    linked: Vec<AtomicU64>,
    /// The number of inputs with edges that are not yet read to their end.
    edges_left: AtomicUsize,
    /// The findings and the digest of each file with hosts.
    files: Vec<Found>,
}

/// The findings and the digest of a file with hosts.
#[derive(Default)]
struct Found {
    tally: Tally,
    digest: DigestCell,
}

/// Runs of consecutive ids, rising. The place of a host is its number among all hosts, from 0.
#[derive(Default)]
struct Runs {
    /// The first id and the first place of each run.
    starts: Vec<(u64, u64)>,
    places: u64,
    /// The last id.
    last: Option<u64>,
}

impl Runs {
    /// Adds an id that is greater than all before.
    fn push(&mut self, id: u64) {
        if self.last.and_then(|last| last.checked_add(1)) != Some(id) {
            self.starts.push((id, self.places));
        }
        self.last = Some(id);
        self.places += 1;
    }

    /// The place of an id. `near` is the run of the id that was looked up before.
    #[inline]
    fn place(&self, id: u64, near: &mut usize) -> Option<u64> {
        let end = |run: usize| self.starts.get(run + 1).map_or(self.places, |next| next.1);
        let within = |run: usize| {
            let &(first, place) = self.starts.get(run)?;
            let place = place.checked_add(id.checked_sub(first)?)?;
            (place < end(run)).then_some(place)
        };
        within(*near).or_else(|| {
            *near = self.starts.partition_point(|&(first, _)| first <= id).saturating_sub(1);
            within(*near)
        })
    }
}

/// Splits a line into its id and the rest, which begins with the name; `None` if the line has another form.
pub(super) fn parse(line: &[u8]) -> Option<(u64, &[u8])> {
    let (id, rest) = cell(line);
    Some((number(id)?, rest?)).filter(|(_, rest)| !cell(rest).0.is_empty())
}

impl Vertices {
    /// Reads the hosts of a release.
    pub(super) fn load(release: &Release) -> Result<Self, Error> {
        let mut hosts = Hosts::new(release.www);
        let mut files = Vec::new();
        for place in &release.vertices {
            let mut found = Found::default();
            hosts.read(place, &mut found)?;
            files.push(found);
        }
        let Hosts { mut urls, runs, mut keys, .. } = hosts;
        urls.shrink();
        if let Some(keys) = &mut keys {
            keys.shrink_to_fit();
        }
        let urls = Arc::new(Dictionary::of_hosts(urls));
        let linked = std::iter::repeat_with(AtomicU64::default).take(urls.len().div_ceil(64)).collect();
        Ok(Vertices { urls, runs, keys, linked, edges_left: AtomicUsize::new(release.edges), files })
    }

    /// The number of hosts with ids.
    pub(super) fn hosts(&self) -> u64 {
        self.runs.places
    }

    /// The URLs of the hosts by key.
    pub(super) fn urls(&self) -> &Arc<Dictionary> {
        &self.urls
    }

    /// The key of the host with an id, if there is one. `near` is a hint that later calls improve.
    #[inline]
    pub(super) fn key(&self, id: u64, near: &mut usize) -> Option<u64> {
        let place = self.runs.place(id, near)?;
        match &self.keys {
            Some(keys) => keys.get(usize::try_from(place).ok()?).copied(),
            None => Some(place),
        }
    }

    /// Notes that an edge leads from or to a host.
    #[inline]
    pub(super) fn link(&self, key: u64) {
        let (word, bit) = (usize::try_from(key / 64).unwrap_or(usize::MAX), 1 << (key % 64));
        // Relaxed: `end_edges` orders the bits of all readers before the count. Most bits are set already.
        if let Some(word) = self.linked.get(word)
            && word.load(Relaxed) & bit == 0
        {
            word.fetch_or(bit, Relaxed);
        }
    }

    /// Ends an input with edges. The last one counts the hosts without edges. If other processes read some of the
    /// inputs, no process knows these hosts, and they are not counted.
    pub(super) fn end_edges(&self, tally: &mut Tally) {
        if self.edges_left.fetch_sub(1, AcqRel) != 1 {
            return;
        }
        let mut alone = 0u64;
        for key in 0..self.urls.len() {
            if self.linked[key / 64].load(Relaxed) & (1 << (key % 64)) == 0 {
                alone += 1;
                if alone <= EXAMPLES_PER_KIND_MAX as u64 {
                    tally.name(Finding::LoneHost, self.urls.get(key as u64).to_owned());
                }
            }
        }
        tally.count_many(Finding::LoneHost, alone.saturating_sub(EXAMPLES_PER_KIND_MAX as u64));
    }
}

/// The hosts that were read so far.
struct Hosts {
    www: Www,
    urls: HostUrls,
    runs: Runs,
    keys: Option<Vec<u64>>,
    folding: Folding,
}

impl Hosts {
    fn new(www: Www) -> Self {
        let (urls, runs, folding) = (HostUrls::default(), Runs::default(), Folding::default());
        Hosts { www, urls, runs, keys: None, folding }
    }

    /// Reads a file with hosts.
    fn read(&mut self, place: &Place, found: &mut Found) -> Result<(), Error> {
        let (path, (mut lines, notes)) = (&place.path, lines_of(place, Arc::clone(&found.digest))?);
        let tally = &mut found.tally;
        while lines.read(tally)? {
            if let Err((finding, detail)) = self.take(lines.line(), tally) {
                tally.damage(finding, path, lines.start, detail);
            }
        }
        if let Ok(mut notes) = notes.lock() {
            notes.drain(tally, path);
        }
        Ok(())
    }

    /// Takes a line.
    fn take(&mut self, line: &[u8], tally: &mut Tally) -> Result<(), (Finding, String)> {
        if line.is_empty() {
            return Ok(());
        }
        let (id, rest) = parse(line).ok_or_else(|| (Finding::BadRow, "not an id, a tab and a name".to_owned()))?;
        if let Some(last) = self.runs.last.filter(|&last| id <= last) {
            return Err((Finding::Unsorted, format!("the id {id} after {last}")));
        }
        let (name, hosts) = cell(rest);
        let name = names::checked(name)?;
        self.runs.push(id);
        self.folding.turn_to(name);
        // Names of domain graphs have the number of their hosts.
        let short = names::folded(name, self.www).filter(|_| hosts.is_none());
        tally.count_many(Finding::FoldedHost, u64::from(short.is_some()));
        let read = short.unwrap_or(name);
        let Hosts { folding, urls, .. } = self;
        let key = folding.key(read.len(), || urls.push(&names::page(read)));
        let place = self.runs.places - 1;
        if self.keys.is_none() && key != place {
            self.keys = Some((0..place).collect());
        }
        if let Some(keys) = &mut self.keys {
            keys.push(key);
        }
        Ok(())
    }
}

/// The name at hand, and the hosts before it whose names are its beginnings.
#[derive(Default)]
struct Folding {
    name: String,
    /// The lengths of these names, rising, and the keys of the hosts.
    beginnings: Vec<(usize, u64)>,
}

impl Folding {
    /// Goes on to the next name.
    fn turn_to(&mut self, name: &str) {
        let both = self.name.bytes().zip(name.bytes());
        let common = both.take_while(|(before, now)| before == now).count();
        while self.beginnings.last().is_some_and(|&(length, _)| length > common) {
            self.beginnings.pop();
        }
        self.name.clear();
        self.name.push_str(name);
    }

    /// The key of the host that has the first `length` bytes of the name at hand as its name. `add` makes the key of a
    /// new host.
    fn key(&mut self, length: usize, add: impl FnOnce() -> u64) -> u64 {
        match self.beginnings.binary_search_by_key(&length, |&(length, _)| length) {
            Ok(at) => self.beginnings[at].1,
            Err(at) => {
                let key = add();
                self.beginnings.insert(at, (length, key));
                key
            }
        }
    }
}

/// The reader of a file with hosts. It has no captures, and reports the findings in the file.
pub(crate) struct HostFile {
    part: GraphPart,
    digest: DigestCell,
    is_reported: bool,
}

impl HostFile {
    pub(crate) fn new(part: GraphPart, digest: DigestCell) -> Self {
        HostFile { part, digest, is_reported: false }
    }
}

impl CaptureReader for HostFile {
    fn read(&mut self, capture: &mut Capture, tally: &mut Tally) -> Result<bool, Error> {
        capture.clear();
        let Table::Vertices(number) = self.part.table else { return Ok(false) };
        if !std::mem::replace(&mut self.is_reported, true)
            && let Some(found) = self.part.release.hosts(Vertices::load)?.files.get(number)
        {
            tally.add(found.tally.clone());
            if let Some(digest) = found.digest.get() {
                self.digest.get_or_init(|| *digest);
            }
        }
        Ok(false)
    }
}
