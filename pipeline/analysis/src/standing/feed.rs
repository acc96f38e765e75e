//! The collection: pages of a store as pairs for the dataflow, and a later epoch as differences of pairs.
//!
//! The feed reads all pages of the first epoch. Of a later epoch, it reads only the records of new rows, which are
//! those that an update wrote. (A merge alone changes no page and is not read. If epochs in between were removed,
//! merged rows are read once.) The feed therefore keeps, for each page, the links that count and their time: 24 bytes
//! per URL and 4 per link. It gives pairs of keys ([`super::circuit::Key`]): a page and a link, or their hosts. It
//! takes away exactly the pairs that it gave for a page before, so the pairs are always those of the current epoch.
//!
//! New rows are the newest, and the newest row that has a capture decides about the capture. If new rows have a known
//! capture of a page at or after the latest one, the links of that capture count now. If new rows do not have the
//! latest capture, nothing has changed. If new rows take the latest capture back (its links are now unknown), the page
//! is read from all rows. If something was taken out of the store, all pages are read, and pages that are no longer in
//! the store lose their links.

use super::Standing;
use super::circuit::{Key, Labels, Pair};
use super::numbers::{Lasting, Numbers};
use crate::Error;
use crate::Fold;
use differential_dataflow::consolidation::consolidate;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::PoisonError;
use webstrata_engine::Job;
use webstrata_layers::record::key::{domain_prefix, host_prefix};
use webstrata_layers::{Links, Page, Reader, Uid, Window};
use xxhash_rust::xxh3::xxh3_64;

/// The pages of a store as pairs for the dataflow.
pub(super) struct Feed {
    pub(super) numbers: Numbers,
    about: About,
    /// The pages, by number.
    pages: Vec<Counted>,
}

/// The links of a page that count.
#[derive(Default)]
struct Counted {
    /// The time of the latest known capture, which has the links. `None` if there is no such capture, and for watched
    /// links.
    time: Option<i64>,
    /// The numbers of the links.
    links: Box<[Lasting]>,
}

/// The data about URLs that a result needs besides their numbers.
enum About {
    Nothing,
    /// A label of each URL, for the dataflow.
    Labels(Labels),
    /// The host of each URL.
    Hosts(Hosts),
    /// The prefix of the keys of watched URLs, and their UIDs in the current epoch.
    Watched(Vec<u8>, Vec<Range<Uid>>),
}

/// Numbered hosts, domains or paths.
struct Hosts {
    fold: Fold,
    names: Vec<String>,
    numbers: HashMap<String, Key>,
    /// The host of each URL, by number of the URL.
    of: Vec<Key>,
}

impl Feed {
    /// Reads an epoch whole and calls `give` with each pair and its multiplicity.
    pub(super) fn load(
        standing: &Standing,
        labels: Labels,
        epoch: &Reader,
        job: &Job,
        give: impl FnMut(Pair, isize),
    ) -> Result<Self, Error> {
        let about = match standing {
            Standing::Degrees | Standing::Top { .. } => About::Nothing,
            Standing::Components => About::Labels(labels),
            Standing::Hosts { unit } => {
                About::Hosts(Hosts { fold: *unit, names: Vec::new(), numbers: HashMap::new(), of: Vec::new() })
            }
            Standing::NewLinks { host, subdomains } => {
                let prefix = if *subdomains { domain_prefix(host) } else { host_prefix(host) };
                About::Watched(prefix.ok_or(Error::Internal("the watched host is no host"))?, Vec::new())
            }
        };
        let mut feed = Self { numbers: Numbers::load(epoch)?, about, pages: Vec::new() };
        feed.learn(epoch, 0, job)?;
        feed.read(epoch, 0, job, give)?;
        Ok(feed)
    }

    /// Advances to a later epoch and calls `give` with each pair that has come or gone.
    pub(super) fn advance(
        &mut self,
        older: &Reader,
        newer: &Reader,
        job: &Job,
        give: impl FnMut(Pair, isize),
    ) -> Result<(), Error> {
        let known = self.numbers.len();
        self.numbers.advance(older, newer)?;
        self.learn(newer, known, job)?;
        let [before, now] = [older, newer].map(|epoch| epoch.store().manifest().provenance.removed_in);
        if before != now {
            return self.read_again(newer, job, give);
        }
        let last = newer.store().manifest().history.last();
        if last.is_some_and(|past| past.epoch == older.epoch() && past.translation.is_some()) {
            // The newer epoch is one merge of the older epoch.
            return Ok(());
        }
        let [before, now] = [older, newer].map(|epoch| epoch.store().manifest().rows.iter().map(|row| row.row));
        let stayed = before.zip(now).take_while(|(before, now)| before == now).count();
        self.read(newer, stayed, job, give)
    }

    /// Reads all pages of an epoch, from which pages may have been taken out.
    fn read_again(&mut self, epoch: &Reader, job: &Job, mut give: impl FnMut(Pair, isize)) -> Result<(), Error> {
        let mut pairs = Vec::new();
        let mut is_there = vec![false; self.pages.len()];
        let (mut pages, mut page) = (epoch.pages(Uid::below(epoch.urls())), Page::default());
        while pages.read(&mut page)? {
            job.go_on()?;
            let Some(source) = self.numbers.of(page.uid) else { continue };
            is_there[source.0 as usize] = true;
            let now = self.counted(&page);
            self.replace(source, now, &mut pairs, &mut give);
        }
        for (number, _) in (0..).zip(is_there).filter(|(_, is_there)| !is_there) {
            self.replace(Lasting(number), Counted::default(), &mut pairs, &mut give);
        }
        Ok(())
    }

    /// Replaces the counted links of a page and gives the differences. `pairs` is scratch memory.
    fn replace(
        &mut self,
        source: Lasting,
        now: Counted,
        pairs: &mut Vec<(Pair, isize)>,
        give: &mut impl FnMut(Pair, isize),
    ) {
        let before = std::mem::replace(&mut self.pages[source.0 as usize], now);
        let now = &self.pages[source.0 as usize];
        let pair = |link: Lasting| (self.key(source), self.key(link));
        pairs.extend(before.links.iter().map(|&link| (pair(link), -1)));
        pairs.extend(now.links.iter().map(|&link| (pair(link), 1)));
        consolidate(pairs);
        pairs.drain(..).for_each(|(pair, difference)| give(pair, difference));
    }

    /// Reads the rows of an epoch from `first` on. They are newer than all rows that were read before.
    fn read(
        &mut self,
        epoch: &Reader,
        first: usize,
        job: &Job,
        mut give: impl FnMut(Pair, isize),
    ) -> Result<(), Error> {
        let mut pairs = Vec::new();
        let (mut records, mut record) =
            (epoch.pages_of(first..epoch.rows(), Uid::below(epoch.urls())), Page::default());
        while records.read(&mut record)? {
            job.go_on()?;
            // All UIDs of the epoch have numbers.
            let Some(source) = self.numbers.of(record.uid) else { continue };
            let Some(now) = self.now(&record, &self.pages[source.0 as usize], epoch)? else { continue };
            self.replace(source, now, &mut pairs, &mut give);
        }
        Ok(())
    }

    /// Returns the counted links of a page. `page` has everything that decides about these links.
    fn counted(&self, page: &Page) -> Counted {
        let (mut links, mut time) = (Vec::new(), None);
        match &self.about {
            About::Watched(_, watched) => {
                let is_watched = |link: &Uid| watched.iter().any(|uids| uids.contains(link));
                links.extend(page.links.iter().copied().filter(is_watched));
            }
            _ => {
                time = latest(page);
                if let Some(time) = time {
                    page.links_in(Window::Seen { from: time, to: time }, &mut links);
                }
            }
        }
        Counted { time, links: links.into_iter().filter_map(|link| self.numbers.of(link)).collect() }
    }

    /// Returns the counted links of a page, given the records of new rows. `None` if they have not changed.
    fn now(&self, record: &Page, before: &Counted, epoch: &Reader) -> Result<Option<Counted>, Error> {
        let is_whole = match (&self.about, before.time) {
            // If new rows repeat a capture, links of that capture may be gone.
            (About::Watched(..), _) => before.links.is_empty(),
            (_, None) => true,
            (_, Some(time)) if latest(record) >= Some(time) => true,
            (_, Some(time)) if record.timestamps.binary_search(&time).is_err() => return Ok(None),
            _ => false,
        };
        if is_whole {
            return Ok(Some(self.counted(record)));
        }
        Ok(epoch.page(record.uid)?.map(|page| self.counted(&page)))
    }

    /// Returns the key of a URL: its number, or its host.
    fn key(&self, number: Lasting) -> Key {
        match &self.about {
            About::Hosts(hosts) => hosts.of[number.0 as usize],
            _ => Key(number.0),
        }
    }

    /// Returns the name of a key: a URL, or a host. `epoch` is the epoch that was read last.
    pub(super) fn name(&self, key: Key, epoch: &Reader) -> Result<String, Error> {
        match &self.about {
            About::Hosts(hosts) => Ok(hosts.names[key.0 as usize].clone()),
            _ => self.numbers.url(Lasting(key.0), epoch),
        }
    }

    /// Reads what the result needs about an epoch, and about URLs with numbers from `first` on.
    fn learn(&mut self, epoch: &Reader, first: usize, job: &Job) -> Result<(), Error> {
        let numbers = &self.numbers;
        self.pages.resize_with(numbers.len(), Counted::default);
        let mut url = Vec::new();
        let mut each = |learn: &mut dyn FnMut(&[u8]) -> Result<(), Error>| -> Result<(), Error> {
            for number in first..numbers.len() {
                let number = u32::try_from(number).map_err(|_| Error::Internal("too many URLs"))?;
                job.go_on()?;
                epoch.url_into(numbers.uid(Lasting(number)), &mut url)?;
                learn(&url)?;
            }
            Ok(())
        };
        match &mut self.about {
            About::Nothing => Ok(()),
            About::Watched(prefix, uids) => {
                *uids = epoch.with_prefix(prefix)?;
                Ok(())
            }
            About::Labels(labels) => {
                let mut labels = labels.write().unwrap_or_else(PoisonError::into_inner);
                each(&mut |url| {
                    labels.push(xxh3_64(url));
                    Ok(())
                })
            }
            About::Hosts(hosts) => each(&mut |url| hosts.add(&String::from_utf8_lossy(url))),
        }
    }
}

impl Hosts {
    /// Finds the host of the next URL.
    fn add(&mut self, url: &str) -> Result<(), Error> {
        let name = self.fold.name_of(url);
        // Neighbours are mostly on the same host.
        let last = self.of.last().copied().filter(|&last| self.names[last.0 as usize] == *name);
        let number = match last.or_else(|| self.numbers.get(&*name).copied()) {
            Some(number) => number,
            None => {
                let number = Key(u32::try_from(self.names.len()).map_err(|_| Error::Internal("too many hosts"))?);
                self.names.push(name.clone().into_owned());
                self.numbers.insert(name.into_owned(), number);
                number
            }
        };
        self.of.push(number);
        Ok(())
    }
}

/// Returns the time of the latest capture that tells which links the page has.
fn latest(page: &Page) -> Option<i64> {
    let last = u32::try_from(page.timestamps.len()).unwrap_or(u32::MAX);
    (0..last).rev().find(|&at| page.tells(at)).map(|at| page.timestamps[at as usize])
}
