//! Lasting numbers of URLs. A lasting number names a URL inside the dataflow, whatever its UIDs in the epochs.
//!
//! At the first epoch of a run, the number of a URL is its UID. URLs that come later get the next numbers. A merge
//! gives URLs other UIDs and keeps their numbers, so nothing moves in the dataflow. A URL that a merge drops keeps its
//! number, and no other URL ever gets the number. The text of a dropped URL stays here. Memory: 8 bytes per URL, and
//! the texts of dropped URLs. Cost: an update takes time for its new URLs, and a merge some nanoseconds for each URL.

use crate::Error;
use std::collections::HashMap;
use webstrata_layers::{Links, Reader, Translations, Uid};

/// The number of a URL that stays the same while epochs come and UIDs change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Lasting(pub(super) u32);

/// The mark for a number without a UID.
const GONE: u32 = u32::MAX;

/// The lasting numbers of URLs.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    /// The numbers, by UID of the epoch that was read last.
    by_uid: Vec<Lasting>,
    /// The UIDs in that epoch, by number, in 32 bits like numbers.
    uids: Vec<u32>,
    gone: HashMap<Lasting, String>,
}

impl Numbers {
    /// Numbers the URLs of the first epoch.
    pub(super) fn load(epoch: &Reader) -> Result<Self, Error> {
        let urls: Vec<u32> = (0..bounded(epoch.urls())?).collect();
        Ok(Self { by_uid: urls.iter().copied().map(Lasting).collect(), uids: urls, gone: HashMap::new() })
    }

    /// Returns the number of a UID of the epoch that was read last.
    pub(super) fn of(&self, uid: Uid) -> Option<Lasting> {
        self.by_uid.get(uid.after(Uid(0))?).copied()
    }

    /// Returns how many numbers there are.
    pub(super) fn len(&self) -> usize {
        self.uids.len()
    }

    /// Returns the UID of a number in the epoch that was read last. If the URL is gone, the result is above all UIDs.
    pub(super) fn uid(&self, number: Lasting) -> Uid {
        Uid(self.uids.get(number.0 as usize).map_or(u64::MAX, |&uid| u64::from(uid)))
    }

    /// Returns the URL of a number. `epoch` is the epoch that was read last.
    pub(super) fn url(&self, number: Lasting, epoch: &Reader) -> Result<String, Error> {
        match self.gone.get(&number) {
            Some(url) => Ok(url.clone()),
            None => Ok(epoch.url(self.uid(number))?),
        }
    }

    /// Advances to a later epoch.
    pub(super) fn advance(&mut self, older: &Reader, newer: &Reader) -> Result<(), Error> {
        let translations = Translations::between(newer.store(), older.epoch())?;
        let urls = bounded(newer.urls())?;
        let mut past = newer.store().manifest().lineage().iter().filter(|past| past.epoch >= older.epoch());
        if past.all(|past| past.translation.is_none()) {
            for uid in bounded(self.by_uid.len() as u64)?..urls {
                self.add(uid)?;
            }
            return Ok(());
        }
        let before = std::mem::take(&mut self.by_uid);
        for (uid, &number) in (0..).map(Uid).zip(&before) {
            if translations.forward(uid).is_none() {
                self.gone.insert(number, older.url(uid)?);
                self.uids[number.0 as usize] = GONE;
            }
        }
        for uid in 0..urls {
            let old = translations.backward(Uid(uid.into())).and_then(|old| before.get(old.after(Uid(0))?));
            match old {
                Some(&number) => {
                    self.by_uid.push(number);
                    self.uids[number.0 as usize] = uid;
                }
                None => self.add(uid)?,
            }
        }
        Ok(())
    }

    /// Gives the next number to the URL of this UID.
    fn add(&mut self, uid: u32) -> Result<(), Error> {
        self.by_uid.push(Lasting(bounded(self.uids.len() as u64)?));
        self.uids.push(uid);
        Ok(())
    }
}

/// Checks a count of URLs, which is also the next number.
fn bounded(urls: u64) -> Result<u32, Error> {
    u32::try_from(urls)
        .ok()
        .filter(|&urls| urls < GONE)
        .ok_or(Error::Internal("standing results are kept of less than 4,294,967,295 URLs"))
}
