//! Translations: the file that says how a merge replaced UIDs, and the translation of UIDs through several merges.
//!
//! ```text
//! translations/000007.parquet      old, new, count (uint64 each): UIDs old..old + count of the epoch before the merge
//!                                  that made row 7 are new..new + count after it
//! ```
//!
//! Rows are *shifts*, rising in `old`. Shifts come from several rows of the store, so `new` does not rise. UIDs below
//! `below` in the manifest's entry stay the same. Other UIDs that are in no shift are gone or, when translating
//! backward, did not exist yet. Invariants: shifts do not overlap, neither in `old` nor in `new`, so two UIDs never
//! become one.
//!
//! The writer holds one row group of shifts. A loaded translation takes 32 bytes a shift. A look-up is a binary search
//! in each merge between the two epochs. Source: Najork 2009 (merges leave tables from old to new).

use crate::error::{Damage, Error};
use crate::file::parquet::{TableWriter, read_table};
use crate::file::row_dir::RowDir;
use crate::location::Location;
use crate::location::body::Body;
use crate::record::uid::Uid;
use crate::store::Store;
use crate::store::manifest::history::{PastEpoch, TranslationEntry, translation_name};

const COLUMNS: [&str; 3] = ["old", "new", "count"];
/// Shifts in a row group.
const SHIFTS_MAX: usize = 1 << 16;

/// UIDs that keep their distances: `old..old + count` become `new..new + count`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shift {
    old: Uid,
    new: Uid,
    count: u64,
}

/// Writes the translation of a merge. Without a call of `finish`, nothing is written.
pub struct TranslationWriter {
    file: TableWriter,
    below: Uid,
    /// The shifts of the next row group.
    shifts: Vec<Shift>,
    /// The last shift, which may still grow.
    open: Option<Shift>,
}

impl TranslationWriter {
    /// Creates the file, in the store of the row that the merge makes. The translation leads from the epoch before the
    /// row to the epoch with it, and must be committed with the row. UIDs below `below`, the first UID of the merged
    /// rows, stay the same and are not given.
    ///
    /// # Errors
    /// The file or its directory cannot be created.
    pub fn create(row: &RowDir, below: Uid) -> Result<Self, Error> {
        let file = TableWriter::create(row, translation_name(row.row()), &COLUMNS)?;
        Ok(Self { file, below, shifts: Vec::new(), open: None })
    }

    /// Records that UIDs `old..old + count` become `new..new + count`. A shift that continues the last shift on both
    /// sides is joined with it. A shift without UIDs is ignored.
    ///
    /// # Errors
    /// A shift with old UIDs that are not above the old UIDs before, or with UIDs below `below` or above 64 bits; an
    /// error of the disk.
    pub fn push(&mut self, old: Uid, new: Uid, count: u64) -> Result<(), Error> {
        let disorder = |previous: Uid, got: Uid| {
            let (previous, got) = (previous.to_string(), got.to_string());
            Err(Error::OutOfOrder { what: "UID", previous, got })
        };
        let Some(last_distance) = count.checked_sub(1) else { return Ok(()) };
        if let Some(open) = self.open.filter(|open| old < open.old + open.count) {
            return disorder(open.old + (open.count - 1), old);
        }
        if let Some(uid) = [old, new].into_iter().find(|&uid| uid < self.below) {
            return disorder(self.below, uid);
        }
        // The number after the last UID must fit, too.
        if let Some(uid) = [old, new].into_iter().find(|uid| uid.0.checked_add(count).is_none()) {
            return disorder(uid, Uid(uid.0.wrapping_add(last_distance)));
        }
        match &mut self.open {
            Some(open) if open.old + open.count == old && open.new + open.count == new => open.count += count,
            open => {
                let full = open.replace(Shift { old, new, count });
                self.shifts.extend(full);
                if self.shifts.len() == SHIFTS_MAX {
                    self.write()?;
                }
            }
        }
        Ok(())
    }

    /// Writes the remaining shifts, and returns the entry of the file for [`crate::NewEpoch::translation`].
    ///
    /// # Errors
    /// An error of the disk.
    pub fn finish(mut self) -> Result<TranslationEntry, Error> {
        self.shifts.extend(self.open.take());
        if !self.shifts.is_empty() {
            self.write()?;
        }
        let below = self.below;
        let table = self.file.finish()?;
        Ok(TranslationEntry { below, path: table.path, rows: table.rows, bytes: table.bytes, checksum: table.checksum })
    }

    fn write(&mut self) -> Result<(), Error> {
        let column = |of: fn(&Shift) -> u64| self.shifts.iter().map(of).collect();
        self.file.write([column(|shift| shift.old.0), column(|shift| shift.new.0), column(|shift| shift.count)])?;
        self.shifts.clear();
        Ok(())
    }
}

impl TranslationEntry {
    /// Compares the file with its size and checksum.
    pub(crate) fn verify(&self, store: &Location) -> Result<(), Error> {
        self.body(store).map(drop)
    }

    /// The bytes of the file, verified.
    fn body(&self, store: &Location) -> Result<Body, Error> {
        let body = store.storage().body(&self.path)?;
        body.verify(&store.path(&self.path), self.bytes, &self.checksum)?;
        Ok(body)
    }
}

/// How one merge replaced UIDs, in memory.
#[derive(Clone, Debug)]
pub struct Translation {
    below: Uid,
    /// Rising in `old`.
    shifts: Vec<Shift>,
    /// Indexes in `shifts`, rising in `new`.
    by_new: Vec<usize>,
}

impl Translation {
    /// Reads the translation of an epoch with `urls_before` URLs to the next epoch, which has `urls_after` URLs.
    fn load(store: &Store, entry: &TranslationEntry, urls_before: u64, urls_after: u64) -> Result<Self, Error> {
        let path = store.location().path(&entry.path);
        let body = entry.body(store.location())?;
        let mut shifts: Vec<Shift> = Vec::new();
        read_table(&path, &body, COLUMNS, |[old, new, count]| {
            let rows = old.iter().zip(new).zip(count);
            shifts.extend(rows.map(|((&old, &new), &count)| Shift { old: Uid(old), new: Uid(new), count }));
            Ok(())
        })?;
        let damaged = |row: usize, damage| Error::Damaged { path: path.clone(), row: row as u64, damage };
        if shifts.len() as u64 != entry.rows {
            return Err(damaged(shifts.len(), Damage::NotAligned));
        }
        for (row, shift) in shifts.iter().enumerate() {
            for (first, end) in [(shift.old, Uid(urls_before)), (shift.new, Uid(urls_after))] {
                let inside = first >= entry.below && shift.count > 0 && first < end && shift.count <= end - first;
                if !inside {
                    let uid = Uid(first.0.saturating_add(shift.count.saturating_sub(1)));
                    return Err(damaged(row, Damage::UidOutside { uid, first: entry.below, end }));
                }
            }
        }
        let mut by_new: Vec<usize> = (0..shifts.len()).collect();
        let overlap = |order: &[usize], first: fn(&Shift) -> Uid| {
            let mut pairs = order.iter().zip(order.iter().skip(1)).map(|(&a, &b)| (b, shifts[a], shifts[b]));
            let found = pairs.find(|(_, a, b)| first(a) + a.count > first(b));
            found.map_or(Ok(()), |(row, a, b)| {
                let (previous, got) = (first(&a).0 + a.count - 1, first(&b).0);
                Err(damaged(row, Damage::Order { previous, got }))
            })
        };
        overlap(&by_new, |shift| shift.old)?;
        by_new.sort_unstable_by_key(|&at| shifts[at].new);
        overlap(&by_new, |shift| shift.new)?;
        Ok(Self { below: entry.below, shifts, by_new })
    }

    /// Translates a UID from before the merge to after the merge; `None` if the UID is gone.
    pub fn forward(&self, old: Uid) -> Option<Uid> {
        if old < self.below {
            return Some(old);
        }
        let at = self.shifts.partition_point(|shift| shift.old <= old).checked_sub(1)?;
        let shift = self.shifts[at];
        let distance = old - shift.old;
        (distance < shift.count).then(|| shift.new + distance)
    }

    /// Translates a UID from after the merge to before the merge; `None` if the UID did not exist then.
    pub fn backward(&self, new: Uid) -> Option<Uid> {
        if new < self.below {
            return Some(new);
        }
        let at = self.by_new.partition_point(|&at| self.shifts[at].new <= new).checked_sub(1)?;
        let shift = self.shifts[self.by_new[at]];
        let distance = new - shift.new;
        (distance < shift.count).then(|| shift.old + distance)
    }
}

/// Translates UIDs of an earlier epoch to the open epoch, and back, through all merges between them.
#[derive(Clone, Debug)]
pub struct Translations {
    /// The earlier epoch, and the number of its URLs.
    from: (u64, u64),
    /// The later epoch, and the number of its URLs.
    to: (u64, u64),
    /// The merges, oldest first.
    merges: Vec<Translation>,
}

impl Translations {
    /// Translates between epoch `from` and the epoch of `store`. Cost: reads all translations between the two epochs,
    /// each as a whole.
    ///
    /// # Errors
    /// An epoch that does not exist yet, or that is older than the last build from scratch; files that cannot be read
    /// or are damaged.
    pub fn between(store: &Store, from: u64) -> Result<Self, Error> {
        let manifest = store.manifest();
        let path = || store.location().path("");
        if from == 0 || from > manifest.epoch {
            return Err(Error::MissingEpoch { path: path(), epoch: from });
        }
        let first = manifest.lineage().first().map_or(manifest.epoch, |past| past.epoch);
        if from < first {
            return Err(Error::NoTranslation { path: path(), from, first });
        }
        let past: Vec<&PastEpoch> = manifest.lineage().iter().filter(|past| past.epoch >= from).collect();
        let urls_to = manifest.urls();
        let urls_from = past.first().map_or(urls_to, |past| past.urls);
        let urls_after = past.iter().skip(1).map(|past| past.urls).chain([urls_to]);
        let merges = past.iter().zip(urls_after).filter_map(|(past, urls_after)| {
            let entry = past.translation.as_ref()?;
            Some(Translation::load(store, entry, past.urls, urls_after))
        });
        let (from, to) = ((from, urls_from), (manifest.epoch, urls_to));
        Ok(Self { from, to, merges: merges.collect::<Result<_, _>>()? })
    }

    /// Translates a UID that a caller gives, from the earlier to the later epoch or `back`. `None` if the UID is gone
    /// or did not exist yet.
    ///
    /// # Errors
    /// [`Error::UnknownUid`]: the epoch of the UID never had it.
    pub fn translate(&self, uid: Uid, back: bool) -> Result<Option<Uid>, Error> {
        let (epoch, urls) = if back { self.to } else { self.from };
        if uid.0 >= urls {
            return Err(Error::UnknownUid { uid, epoch, urls });
        }
        Ok(if back { self.backward(uid) } else { self.forward(uid) })
    }

    /// Translates a UID of the earlier epoch to the later one; `None` if the UID is gone, or never existed.
    pub fn forward(&self, uid: Uid) -> Option<Uid> {
        let known = Some(uid).filter(|&uid| uid.0 < self.from.1)?;
        self.merges.iter().try_fold(known, |uid, merge| merge.forward(uid))
    }

    /// Translates a UID of the later epoch to the earlier one; `None` if the UID did not exist yet.
    pub fn backward(&self, uid: Uid) -> Option<Uid> {
        let known = Some(uid).filter(|&uid| uid.0 < self.to.1)?;
        let past = self.merges.iter().rev().try_fold(known, |uid, merge| merge.backward(uid));
        past.filter(|&uid| uid.0 < self.from.1)
    }
}
