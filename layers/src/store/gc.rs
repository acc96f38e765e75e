//! Garbage collection: removes epochs that are no longer wanted, and the files that only these epochs had.
//!
//! A collection holds the lock of the one writer. It keeps the newest epochs, as many as the caller asks for, and every
//! older epoch on which a reader has a [`crate::Lease`]. First it removes the manifests of all other epochs,
//! oldest first. It removes a manifest while no reader can take a lease on the epoch. When these removals are durable,
//! it removes the rows, cells, translations, lists of inputs, held links, overviews and leases that belong to no
//! remaining epoch. So no manifest ever names a file that is gone. If a collection is killed, the next collection or
//! the next writer removes the rest.
//!
//! A row with a number above all committed rows is not touched, and neither are its translation and its lists, because
//! a killed job may continue the row. Translations outlive their epochs: every manifest names those that lead to its
//! epoch. Reads the manifests, and holds them in memory.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::Error;
use crate::location::Location;
use crate::location::names::{LEASES, ROWS, manifest_name, row_name};
use crate::store::held::{HELD, row_of_held};
use crate::store::inputs::{INPUTS, row_of_inputs};
use crate::store::manifest::Manifest;
use crate::store::manifest::history::{TRANSLATIONS, row_of_translation};
use crate::store::overview::overview_name;
use crate::store::sealed::Sealed;
use crate::store::{current, manifests};

/// The directory of the cells of rows.
pub(crate) const CELLS: &str = "cells";

/// The result of a collection; after a dry run, the result that a collection would have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// The current epoch.
    pub current: u64,
    /// Epochs kept because they are new, oldest first.
    pub kept: Vec<u64>,
    /// Older epochs kept for readers that have them open, oldest first.
    pub leased: Vec<u64>,
    /// Epochs removed, oldest first.
    pub removed: Vec<u64>,
    /// Rows removed, also those that an earlier collection left over.
    pub rows: Vec<u32>,
    /// Rows whose cells were removed.
    pub cells: Vec<u32>,
    /// Translations removed, as paths in the store.
    pub translations: Vec<String>,
    /// Bytes of the layers and translations that only removed epochs had; cells and leftovers do not count.
    pub bytes: u64,
}

/// Removes all epochs but the newest `keep` (at least the current one) and those that readers have open.
///
/// `owner` names the collector in the lock, as in [`crate::StoreWriter::open`].
///
/// # Errors
/// There is no store; a writer has the store open ([`Error::Locked`]); the manifest of any epoch cannot be read: then
/// nothing is removed; an error of the disk or of the server.
pub fn collect(location: impl Into<Location>, owner: &str, keep: usize) -> Result<Collected, Error> {
    let location = location.into();
    let storage = location.storage();
    let not_a_store = || Error::NotAStore { path: location.path("") };
    current(&location)?.ok_or_else(not_a_store)?;
    let lock = storage.lock(owner)?;
    let mut retired = Vec::new();
    let plan = Plan::new(&location, keep)?;
    for &epoch in &plan.old {
        lock.check()?;
        if let Some(retiring) = storage.retire(epoch)? {
            storage.remove(&manifest_name(epoch))?;
            drop(retiring);
            retired.push(epoch);
        }
    }
    let (collected, orphans) = plan.finish(&location, retired)?;
    lock.check()?;
    orphans.iter().try_for_each(|orphan| match orphan {
        Orphan::File(name) => storage.remove(name),
        Orphan::Directory(name) => storage.remove_all(name),
    })?;
    Ok(collected)
}

/// Returns what [`collect`] would remove now. Writes nothing, and takes no lock.
///
/// # Errors
/// As [`collect`], except for the lock.
pub fn foretell(location: impl Into<Location>, keep: usize) -> Result<Collected, Error> {
    let location = location.into();
    let plan = Plan::new(&location, keep)?;
    let is_free = |&epoch: &u64| location.storage().is_leased(epoch).map(|leased| (!leased).then_some(epoch));
    let free: Vec<Option<u64>> = plan.old.iter().map(is_free).collect::<Result<_, _>>()?;
    Ok(plan.finish(&location, free.into_iter().flatten().collect())?.0)
}

/// The readers that have an epoch open, if the location can list them: processes of this machine, or leases in S3.
///
/// # Errors
/// An error of the disk or of the server.
pub fn holders(location: &Location, epoch: u64) -> Result<Vec<String>, Error> {
    location.storage().holders(epoch)
}

/// A file or a directory that no manifest names.
enum Orphan {
    File(String),
    Directory(String),
}

/// The state of the store before anything is removed.
struct Plan {
    current: u64,
    manifests: BTreeMap<u64, Manifest>,
    /// Epochs that may be removed, oldest first.
    old: Vec<u64>,
}

impl Plan {
    fn new(location: &Location, keep: usize) -> Result<Self, Error> {
        let manifests: BTreeMap<u64, Manifest> =
            manifests(location)?.into_iter().map(|(id, manifest)| (id.epoch, manifest)).collect();
        let newest = manifests.keys().next_back().copied();
        let current = newest.ok_or_else(|| Error::NotAStore { path: location.path("") })?;
        let old = manifests.keys().copied().take(manifests.len().saturating_sub(keep.max(1))).collect();
        Ok(Self { current, manifests, old })
    }

    /// The result and the orphans if these epochs are removed.
    fn finish(self, location: &Location, removed: Vec<u64>) -> Result<(Collected, Vec<Orphan>), Error> {
        let Self { current, manifests, old } = self;
        let (gone, remaining): (Vec<_>, Vec<_>) = manifests.iter().partition(|(epoch, _)| removed.contains(epoch));
        let (leased, kept) = remaining.iter().map(|(epoch, _)| **epoch).partition(|epoch| old.contains(epoch));
        let mut collected = Collected { current, kept, leased, removed, ..Collected::default() };

        let rows: BTreeSet<u32> =
            remaining.iter().flat_map(|(_, manifest)| &manifest.rows).map(|row| row.row).collect();
        let last_row = rows.last().copied().unwrap_or(0);
        let of_no_epoch = |dir: &str| -> Result<Vec<u32>, Error> {
            let names = location.storage().names(dir)?;
            let numbers = names.iter().filter_map(|name| {
                let row = name.parse().ok().filter(|&row| row_name(row) == format!("{ROWS}/{name}"))?;
                (row < last_row && !rows.contains(&row)).then_some(row)
            });
            Ok(numbers.collect::<BTreeSet<_>>().into_iter().collect())
        };
        collected.rows = of_no_epoch(ROWS)?;
        collected.cells = of_no_epoch(CELLS)?;

        let named: BTreeSet<String> = remaining
            .iter()
            .flat_map(|(_, manifest)| manifest.translations())
            .map(|entry| entry.path.clone())
            .collect();
        let below = |name: &String| row_of_translation(name).is_some_and(|row| row < last_row);
        let names = location.storage().names(TRANSLATIONS)?.into_iter().filter(below);
        let paths: BTreeSet<_> = names.map(|name| format!("{TRANSLATIONS}/{name}")).collect();
        collected.translations = paths.difference(&named).cloned().collect();
        let listed: BTreeSet<&String> =
            remaining.iter().flat_map(|(_, manifest)| &manifest.provenance.inputs).map(|entry| &entry.path).collect();
        let names = location.storage().names(INPUTS)?;
        let below = |name: &&String| row_of_inputs(name).is_some_and(|row| row < last_row);
        let inputs = names.iter().filter(below).map(|name| format!("{INPUTS}/{name}"));
        let inputs: Vec<String> = inputs.filter(|path| !listed.contains(path)).collect();
        let listed: BTreeSet<&String> =
            remaining.iter().flat_map(|(_, manifest)| &manifest.provenance.held).map(|entry| &entry.path).collect();
        let names = location.storage().names(HELD)?;
        let held = names.iter().filter(|name| row_of_held(name).is_some_and(|row| row < last_row));
        let held = held.map(|name| format!("{HELD}/{name}"));
        let held: Vec<String> = held.filter(|path| !listed.contains(path)).collect();

        let files = gone.iter().flat_map(|(_, manifest)| manifest.rows.iter().filter(|row| !rows.contains(&row.row)));
        let files = files.flat_map(|row| &row.partitions).flat_map(|partition| &partition.files);
        let sizes = files.map(|file| (&file.path, file.bytes)).chain(
            gone.iter()
                .flat_map(|(_, manifest)| manifest.translations())
                .filter(|entry| !named.contains(&entry.path))
                .map(|entry| (&entry.path, entry.bytes)),
        );
        collected.bytes = sizes.collect::<BTreeMap<_, _>>().into_values().sum();

        let directory = |dir: &str, row: &u32| Orphan::Directory(format!("{dir}/{row:06}"));
        let mut orphans: Vec<Orphan> = collected.rows.iter().map(|row| directory(ROWS, row)).collect();
        orphans.extend(collected.cells.iter().map(|row| directory(CELLS, row)));
        orphans.extend(collected.translations.iter().cloned().chain(inputs).chain(held).map(Orphan::File));
        let leases = location.storage().names(LEASES)?.into_iter().filter(|name| {
            name.parse::<u64>()
                .is_ok_and(|epoch| epoch < current && !remaining.iter().any(|(remaining, _)| **remaining == epoch))
        });
        orphans.extend(leases.map(|name| Orphan::Directory(format!("{LEASES}/{name}"))));
        let names = location.storage().names(Sealed::Overviews.directory())?;
        let overviews = names.iter().map(|name| format!("{}/{name}", Sealed::Overviews.directory()));
        let stays: BTreeSet<String> = remaining.iter().map(|(epoch, _)| overview_name(**epoch)).collect();
        orphans.extend(overviews.filter(|path| !stays.contains(path)).map(Orphan::File));
        Ok((collected, orphans))
    }
}
