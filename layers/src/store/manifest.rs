//! The manifest of an epoch: its rows, partitions and files, with counts and checksums. One JSON file.
//!
//! Reads and writes `epochs/NNNNNN.json`. Pure data: [`Manifest::flaw`] finds contradictions, and [`crate::Store`]
//! reads the file. Invariants: paths are relative and stay inside the store. Rows number UIDs without gaps from 0, and
//! partitions number the UIDs of their row. Each partition has one file for each layer. A manifest has no dates and no
//! machine names, so that the same input gives the same bytes.

pub(crate) mod history;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Component, Path};

use serde::{Deserialize, Serialize};

use crate::error::manifest::ManifestFlaw;
use crate::file::entry::FileEntry;
use crate::file::schema::Layer;
use crate::identity::Digest;
use crate::record::key::from_hex;
use crate::record::page::counts::Counts;
use crate::record::removal::{RemovalRule, Removals, SelectedBy};
use crate::record::time::RangeLength;
use crate::record::uid::Uid;
use crate::store::held::HeldEntry;
use crate::store::manifest::history::{PastEpoch, TranslationEntry};

/// The newest format that this version reads, and the format that it writes.
pub(crate) const FORMAT: u32 = 5;

/// One partition of a row: a slice of the key order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartitionEntry {
    /// The number of the partition in its row.
    pub partition: u32,
    /// The UID of the first URL.
    pub first_uid: Uid,
    /// The number of URLs. The UIDs of the partition are `first_uid..first_uid + urls`.
    pub urls: u64,
    /// The least UID that may have records here, in all layers but url. The records end below the `first_record` of the
    /// next partition, or at the end of the row. In the oldest row of a store this equals `first_uid`. Later rows also
    /// have records of URLs of older rows.
    pub first_record: Uid,
    /// The key of the first URL in hexadecimal digits; empty if the partition has no URL.
    pub first_key: String,
    /// The files: one for each layer, in the order of [`Layer::ALL`].
    pub files: Vec<FileEntry>,
}

/// One row: an immutable generation of layers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowEntry {
    /// The number of the row.
    pub row: u32,
    /// The UID of the first URL.
    pub first_uid: Uid,
    /// The number of URLs.
    pub urls: u64,
    /// The number of builds and updates that the row holds. The schedule of merges uses this number.
    pub updates: u64,
    /// Whether the row takes out captures or links of older rows; not written if false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub removes: bool,
    /// Whether links that captures of other URLs lent to a revisit are lost: a record of this row, or of an older one,
    /// displaces the revisit. Not written if false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub displaces: bool,
    /// The number of captures that are revisits of captures of other URLs; not written if zero.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub elsewhere: u64,
    /// The partitions, in key order.
    pub partitions: Vec<PartitionEntry>,
    /// The counts of the row.
    pub counts: Counts,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl RowEntry {
    /// The identity of the row: a digest of the layers, sizes and checksums of its files, in the order of partitions
    /// and layers. The number of the row is not in it.
    pub fn digest(&self) -> Digest {
        let files = self.partitions.iter().flat_map(|partition| &partition.files);
        Digest::of_all(files.map(|file| format!("{} {} {}\n", file.layer, file.bytes, file.checksum)))
    }

    /// Whether URLs may have lost their last use because of this row: URLs of this row, too.
    pub fn takes_uses(&self) -> bool {
        self.removes || self.displaces
    }

    /// The UID after the last UID of the row.
    pub fn end_uid(&self) -> Uid {
        self.first_uid + self.urls
    }

    /// The UIDs that may have records in a partition, given by the index of the partition.
    pub fn records(&self, partition: usize) -> Range<Uid> {
        let first = self.partitions.get(partition).map_or(self.end_uid(), |entry| entry.first_record);
        first..self.partitions.get(partition + 1).map_or(self.end_uid(), |next| next.first_record)
    }
}

/// The file that lists the inputs of one job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputsEntry {
    /// Path relative to the store, with `/`.
    pub path: String,
    /// The number of inputs in the file.
    pub inputs: u64,
    /// The size of the file in bytes.
    pub bytes: u64,
    /// XXH3-64 of the file, 16 hexadecimal digits.
    pub checksum: String,
}

/// How an epoch was made: the program, its options and its inputs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// The version of the program that wrote the epoch.
    pub version: String,
    /// The options that select captures and links of the inputs, by name; the same for all rows.
    #[serde(default)]
    pub options: BTreeMap<String, String>,
    /// The removals, in order, which are also kept out of later inputs; not written if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removals: Vec<RemovalRule>,
    /// The last epoch that took something out of answers; not written if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removed_in: Option<u64>,
    /// The last epoch that took something out of answers, or out of files after an earlier epoch took it out of
    /// answers. All epochs before this one are retired. Not written if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retires_before: Option<u64>,
    /// The files of the links that `--min-sources` leaves out so far, see [`crate::store::held`]; not written if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<HeldEntry>,
    /// The archives that hold originals of revisits of the store and were never an input, by file name, in order. Not
    /// written if empty.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub missing_containers: BTreeSet<String>,
    /// The inputs of each job since the last build from scratch, oldest first.
    #[serde(default)]
    pub inputs: Vec<InputsEntry>,
}

/// The parts of a new epoch that its writer gives. The store adds the number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewEpoch {
    /// All rows of the epoch, old and new, oldest first.
    pub rows: Vec<RowEntry>,
    /// Length of the ranges of the in-link layers.
    pub in_range: RangeLength,
    /// How the epoch was made.
    pub provenance: Provenance,
    /// If rows were merged: how UIDs of the current epoch are translated to UIDs of the new epoch.
    pub translation: Option<TranslationEntry>,
}

/// An epoch: everything that a reader needs to find and check its files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The version of the format ([`mod@crate::format`]).
    pub format: u32,
    /// The number of the epoch.
    pub epoch: u64,
    /// Length of the ranges of the in-link layers.
    pub in_range: RangeLength,
    /// Sums over the rows.
    pub counts: Counts,
    /// How the epoch was made.
    pub provenance: Provenance,
    /// The rows, oldest first.
    pub rows: Vec<RowEntry>,
    /// All earlier epochs, oldest first; not written if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<PastEpoch>,
}

impl Manifest {
    /// The manifest of a new epoch.
    pub(crate) fn new(epoch: u64, new: NewEpoch, history: Vec<PastEpoch>) -> Self {
        let mut counts = Counts::default();
        new.rows.iter().for_each(|row| counts.add(&row.counts));
        let NewEpoch { rows, in_range, provenance, translation: _ } = new;
        Self { format: FORMAT, epoch, in_range, counts, provenance, rows, history }
    }

    /// Whether a row takes out captures or links of older rows. The files of the older rows still have them.
    pub fn removes(&self) -> bool {
        self.rows.iter().any(|row| row.removes)
    }

    /// Whether the counts are exact: counts of distinct pages, captures and links. Counts are sums over rows. If
    /// several rows have captures, or a row takes some out, the same page, capture or link may count more than once.
    /// Then all counts except the number of URLs are *at most*.
    pub fn counts_are_exact(&self) -> bool {
        !self.removes() && self.rows.iter().filter(|row| row.counts.captures > 0).count() <= 1
    }

    /// Whether an epoch may no longer answer questions because a later epoch took something out. Its files may still
    /// exist.
    pub fn has_retired(&self, epoch: u64) -> bool {
        self.provenance.retires_before.is_some_and(|first| epoch < first)
    }

    /// The removals, ready to be looked up.
    pub fn removals(&self) -> Removals {
        // Only a store that has an epoch gets rules, so the history is not empty then.
        let root = self.history.first().map(|first| first.digest.to_string()).unwrap_or_default();
        Removals::new(&root, self.provenance.removals.iter().cloned())
    }

    /// All files of the epoch.
    pub fn files(&self) -> impl Iterator<Item = &FileEntry> {
        self.rows.iter().flat_map(|row| &row.partitions).flat_map(|partition| &partition.files)
    }

    /// The first contradiction that is found; `None` for a sound manifest.
    pub fn flaw(&self) -> Option<ManifestFlaw> {
        self.sound().err()
    }

    fn sound(&self) -> Result<(), ManifestFlaw> {
        let mut paths = std::collections::BTreeSet::new();
        for file in self.files() {
            if !is_plain(&file.path) {
                return Err(ManifestFlaw::Path(file.path.clone()));
            }
            if !paths.insert(&file.path) {
                return Err(ManifestFlaw::Twice(file.path.clone()));
            }
        }
        let (mut next, mut counts) = (0u64, Counts::default());
        let expect = |row: u32, expected: u64, got: Uid| {
            if expected == got.0 { Ok(()) } else { Err(ManifestFlaw::Uids { row, expected, got: got.0 }) }
        };
        for row in &self.rows {
            expect(row.row, next, row.first_uid)?;
            let mut key_before = Vec::new();
            for partition in &row.partitions {
                expect(row.row, next, partition.first_uid)?;
                next = next.checked_add(partition.urls).ok_or(ManifestFlaw::Counts)?;
                partition.sound(row.row, &mut key_before)?;
            }
            expect(row.row, row.first_uid.0.saturating_add(row.urls), Uid(next))?;
            row.records_sound()?;
            let pages = row.partitions.iter().filter_map(|p| p.file(Layer::Ol));
            let pages = pages.fold(0u64, |pages, file| pages.saturating_add(file.rows));
            if row.counts.urls != row.urls || row.counts.pages != pages {
                return Err(ManifestFlaw::Counts);
            }
            counts.add(&row.counts);
        }
        let beside = self.provenance.inputs.iter().map(|entry| &entry.path);
        let mut beside = beside.chain(self.provenance.held.iter().map(|entry| &entry.path));
        if let Some(path) = beside.find(|path| !is_plain(path)) {
            return Err(ManifestFlaw::Path(path.clone()));
        }
        let is_odd = |rule: &&RemovalRule| rule.bytes.is_some() != (rule.select == SelectedBy::Prefix);
        if let Some(rule) = self.provenance.removals.iter().find(is_odd) {
            return Err(ManifestFlaw::Removal(rule.select));
        }
        let Provenance { removed_in, retires_before, .. } = self.provenance;
        if removed_in > retires_before || retires_before.is_some_and(|epoch| epoch > self.epoch) {
            return Err(ManifestFlaw::Retired(retires_before.or(removed_in).unwrap_or(0)));
        }
        if counts == self.counts { self.history_sound() } else { Err(ManifestFlaw::Counts) }
    }
}

impl RowEntry {
    fn records_sound(&self) -> Result<(), ManifestFlaw> {
        let mut least = Uid(0);
        for (at, PartitionEntry { partition, first_record, .. }) in self.partitions.iter().enumerate() {
            let in_order = if at == 0 { *first_record == Uid(0) } else { *first_record >= least };
            if !in_order || *first_record > self.end_uid() {
                return Err(ManifestFlaw::Records { row: self.row, partition: *partition, got: *first_record });
            }
            least = *first_record;
        }
        Ok(())
    }
}

impl PartitionEntry {
    /// The file of a layer.
    pub fn file(&self, layer: Layer) -> Option<&FileEntry> {
        self.files.iter().find(|file| file.layer == layer)
    }

    /// The key of the first URL: empty without URLs, `None` if the text is not hexadecimal.
    pub fn first_key_bytes(&self) -> Option<Vec<u8>> {
        from_hex(&self.first_key)
    }

    fn sound(&self, row: u32, key_before: &mut Vec<u8>) -> Result<(), ManifestFlaw> {
        let partition = self.partition;
        let in_order = self.files.iter().map(|file| (file.layer, file.partition));
        if !in_order.eq(Layer::ALL.map(|layer| (layer, partition))) {
            return Err(ManifestFlaw::Files { row, partition });
        }
        let rows = |layer| self.file(layer).map_or(0, |file| file.rows);
        let out = [Layer::Ts, Layer::Bv, Layer::Rv].iter().all(|&layer| rows(layer) == rows(Layer::Ol));
        let into = rows(Layer::Il) == rows(Layer::Tr) && rows(Layer::Il) == rows(Layer::Ibv);
        if rows(Layer::Url) != self.urls || !out || !into {
            return Err(ManifestFlaw::Rows { row, partition });
        }
        let flaw = || ManifestFlaw::FirstKey { row, partition, key: self.first_key.clone() };
        let key = self.first_key_bytes().ok_or_else(flaw)?;
        if key.is_empty() != (self.urls == 0) {
            return Err(flaw());
        }
        if !key.is_empty() {
            if *key_before >= key {
                return Err(flaw());
            }
            *key_before = key;
        }
        Ok(())
    }
}

/// Whether a path consists of plain names between single slashes.
pub(crate) fn is_plain(path: &str) -> bool {
    let plain = Path::new(path).components().all(|component| matches!(component, Component::Normal(_)));
    plain && path.split('/').all(|name| !name.is_empty() && name != "." && !name.contains(['\\', ':', '\0']))
}
