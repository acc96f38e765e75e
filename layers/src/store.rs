//! The store: epochs, rows and the file CURRENT. This module opens an epoch, and commits a new one.
//!
//! ```text
//! STORE/LOCK                         held by the one writer while it works
//! STORE/CURRENT                      the number of the current epoch and the digest of its manifest; replaced last
//!                                    in S3, perhaps a second line, the fence of a writer that took the lock over
//! STORE/epochs/000001.json           manifests
//! STORE/rows/000001/ol/part-00000.parquet
//! ```
//!
//! Invariants: files that an epoch up to CURRENT names never change. If a writer dies, whenever that is, the store
//! keeps the epoch before. Rows and manifests that no such epoch names are invisible. The next writer removes them,
//! except one row that it may keep in order to continue the row. Everything is durable before CURRENT names it. Many
//! processes may write files of one row. One of these processes has the [`StoreWriter`], and the others open the row by
//! its number. Source: Najork 2009 (epochs); [`mod@crate::format`].

pub mod beside;
pub mod gc;
pub mod held;
pub(crate) mod inputs;
pub mod log;
pub(crate) mod manifest;
pub(crate) mod notes;
pub mod overview;
pub(crate) mod sealed;
pub(crate) mod translation;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::error::Error;
use crate::error::manifest::ManifestFlaw;
use crate::file::entry::FileEntry;
use crate::file::row_dir::RowDir;
use crate::identity::{Digest, EpochId};
use crate::location::body::Body;
use crate::location::lease::{Lease, Leased};
use crate::location::names::{CURRENT, EPOCHS, LEASES, LOCK, ROWS, manifest_name, row_name};
use crate::location::{Location, Lock, Version, draft, unique};
use crate::store::held::{HELD, row_of_held};
use crate::store::inputs::{INPUTS, inputs_name, row_of_inputs};
use crate::store::manifest::history::{PastEpoch, TRANSLATIONS, history_after, row_of_translation, translation_name};
use crate::store::manifest::{FORMAT, Manifest, NewEpoch, RowEntry};

/// An epoch of a store, open for reading. It has a [`Lease`] where the reader can have one, so that the epoch stays
/// while this value or a clone lives.
#[derive(Clone, Debug)]
pub struct Store {
    location: Location,
    id: EpochId,
    manifest: Manifest,
    lease: Option<Lease>,
}

impl Store {
    /// Opens the current epoch.
    ///
    /// # Errors
    /// There is no store, or no such epoch. The manifest has a newer format, or contradicts itself.
    pub fn open(location: impl Into<Location>) -> Result<Store, Error> {
        let location = location.into();
        let mut id = current(&location)?.ok_or_else(|| Error::NotAStore { path: location.path("") })?;
        loop {
            let opened = Self::open_leased(&location, id);
            if let Ok(Some(store)) = opened {
                return Ok(store);
            }
            // The epoch was retired, or the store was rebuilt, after CURRENT was read. In both cases CURRENT has moved
            // on.
            match current(&location)? {
                Some(now) if now != id => id = now,
                _ => return opened?.ok_or(Error::MissingEpoch { path: location.path(""), epoch: id.epoch }),
            }
        }
    }

    /// Opens an epoch by number.
    ///
    /// # Errors
    /// As [`Store::open`]; [`Error::RetiredEpoch`] for an epoch that was removed, or that is older than an epoch that
    /// took something out.
    pub fn open_epoch(location: impl Into<Location>, epoch: u64) -> Result<Store, Error> {
        Self::open_past(location.into(), epoch, false)
    }

    /// As [`Store::open_epoch`], and also opens an epoch that no longer answers questions, to look at the contents of
    /// its files.
    ///
    /// # Errors
    /// As [`Store::open`]; [`Error::RetiredEpoch`] for an epoch that was removed.
    pub fn inspect(location: impl Into<Location>, epoch: u64) -> Result<Store, Error> {
        Self::open_past(location.into(), epoch, true)
    }

    fn open_past(location: Location, epoch: u64, even_retired: bool) -> Result<Store, Error> {
        let path = || location.path("");
        let newest = Self::open(&location)?;
        let current = newest.manifest.epoch;
        if epoch == current {
            return Ok(newest);
        }
        let id = newest.manifest.past(epoch).ok_or_else(|| Error::MissingEpoch { path: path(), epoch })?;
        let retired = || Error::RetiredEpoch { path: path(), epoch, current };
        if newest.manifest.has_retired(epoch) && !even_retired {
            return Err(retired());
        }
        Self::open_leased(&location, id)?.ok_or_else(retired)
    }

    /// Opens an epoch that was opened before, perhaps by another process: exactly that epoch, never another epoch with
    /// the same number.
    ///
    /// # Errors
    /// As [`Store::open_epoch`]; [`Error::Replaced`] if another store is at the location now.
    pub fn open_known(location: impl Into<Location>, known: EpochId) -> Result<Store, Error> {
        let location = location.into();
        match Self::open_epoch(&location, known.epoch) {
            Ok(store) if store.id == known => Ok(store),
            Ok(store) => Err(Error::Replaced { path: location.path(""), known, found: Some(store.id) }),
            Err(Error::MissingEpoch { path, .. }) => Err(Error::Replaced { path, known, found: None }),
            Err(error) => Err(error),
        }
    }

    /// Takes the lease first and then reads the manifest: see [`crate::location::lease`]. `None` if the epoch is
    /// retired or never existed.
    fn open_leased(location: &Location, id: EpochId) -> Result<Option<Store>, Error> {
        let lease = match location.storage().lease(id.epoch)? {
            Leased::Held(lease) => Some(lease),
            Leased::Unable => None,
            Leased::Gone => return Ok(None),
        };
        match read_manifest(location, id) {
            Ok(manifest) => Ok(Some(Store { location: location.clone(), id, manifest, lease })),
            Err(Error::MissingEpoch { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The identity of the epoch, which tells it from epochs of other stores.
    pub fn id(&self) -> EpochId {
        self.id
    }

    /// The identity of the store, whatever the epoch: the digest of its first epoch. Two stores that were built from
    /// the same captures and then got different updates have the same root.
    pub fn root(&self) -> Digest {
        self.manifest.history.first().map_or(self.id.digest, |first| first.digest)
    }

    /// Whether this epoch is `known`, or comes after `known` in the same store.
    pub fn follows(&self, known: EpochId) -> bool {
        self.id == known || self.manifest.past(known.epoch) == Some(known)
    }

    /// The lease that keeps the epoch; `None` if the reader cannot have a lease.
    pub fn lease(&self) -> Option<&Lease> {
        self.lease.as_ref()
    }

    /// The location of the store.
    pub fn location(&self) -> &Location {
        &self.location
    }

    /// The manifest of the epoch.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Compares a file with its size and checksum in the manifest. Cost: reads the whole file.
    ///
    /// # Errors
    /// A file that cannot be read, or does not match the size and the checksum of its entry.
    pub fn verify(&self, entry: &FileEntry) -> Result<(), Error> {
        self.body(entry).map(drop)
    }

    /// The bytes of a file, verified.
    pub(crate) fn body(&self, entry: &FileEntry) -> Result<Body, Error> {
        verified_body(&self.location, entry)
    }
}

/// Compares a file of a store with its entry. The file may be of a row that no epoch has yet. Cost: reads the whole
/// file.
///
/// # Errors
/// A file that cannot be read, or does not match the size and the checksum of its entry.
pub fn verify_file(location: &Location, entry: &FileEntry) -> Result<(), Error> {
    verified_body(location, entry).map(drop)
}

fn verified_body(location: &Location, entry: &FileEntry) -> Result<Body, Error> {
    let body = location.storage().body(&entry.path)?;
    body.verify(&location.path(&entry.path), entry.bytes, &entry.checksum)?;
    Ok(body)
}

/// The one writer of a store. It holds the lock of the store until it is dropped.
pub struct StoreWriter {
    location: Location,
    current: Option<EpochId>,
    /// The file CURRENT that this writer has read or written.
    version: Version,
    /// The rows of all epochs.
    rows: BTreeSet<u32>,
    /// The uncommitted row that was kept when the store was opened.
    keep: Option<u32>,
    /// The number of the row that was begun last; at first the greatest row number of all epochs.
    last_row: AtomicU32,
    lock: Box<dyn Lock>,
    /// Whether this writer created the place of the store.
    made: bool,
}

impl StoreWriter {
    /// Opens a store for writing, or makes a new store in an empty or missing directory. Removes what dead writers
    /// left, except the row `keep`.
    ///
    /// `owner` is the text in the lock that names the writer: a job, its host, its process. In a directory the lock
    /// ends with the process. In S3 the lock outlives a killed process for a time, and a writer with the same text
    /// takes the lock over at once. A job that may be resumed therefore needs a text that is always the same, and that
    /// no other job has, in another container neither (see [`crate::unique`]).
    ///
    /// # Errors
    /// A store that another writer has open ([`Error::Locked`]), a directory that holds other files, manifests that
    /// cannot be read.
    pub fn open(location: impl Into<Location>, owner: &str, keep: Option<u32>) -> Result<StoreWriter, Error> {
        let location = location.into();
        if let Some(directory) = location.directory()
            && let Some(store) = store_around(directory.parent().unwrap_or(directory))
        {
            return Err(Error::InsideStore { path: directory.to_owned(), store });
        }
        let made = location.storage().prepare()?;
        if current(&location)?.is_none() {
            let ours = |name: &str| {
                [CURRENT, LOCK, EPOCHS, ROWS, TRANSLATIONS, INPUTS, HELD, LEASES].contains(&name)
                    || draft::is_of(name, CURRENT)
            };
            if let Some(found) = location.storage().names("")?.into_iter().find(|name| !ours(name)) {
                return Err(Error::NotEmpty { path: location.path(""), found });
            }
        }
        let lock = location.storage().lock(owner)?;
        // Read CURRENT again: the previous writer may have committed between the first look and the lock.
        let (current, version) = current_version(&location)?;
        let mut writer = StoreWriter {
            location,
            current,
            version,
            rows: BTreeSet::new(),
            keep,
            last_row: AtomicU32::new(0),
            lock,
            made,
        };
        let last = writer.clean()?;
        writer.last_row = AtomicU32::new(last.saturating_add(writer.lock.given_up()));
        Ok(writer)
    }

    /// The current epoch; `None` in a new store.
    pub fn current(&self) -> Option<EpochId> {
        self.current
    }

    /// The current epoch and its entry for a row; `None` if the current epoch does not have the row.
    ///
    /// # Errors
    /// A manifest that cannot be read.
    pub fn committed(&self, row: u32) -> Result<Option<(u64, RowEntry)>, Error> {
        let Some(id) = self.current.filter(|_| self.rows.contains(&row)) else { return Ok(None) };
        let manifest = read_manifest(&self.location, id)?;
        Ok(manifest.rows.into_iter().find(|entry| entry.row == row).map(|entry| (id.epoch, entry)))
    }

    /// Begins a new row, which stays invisible until it is committed. In S3, files of the row wait for their upload in
    /// the system's directory for temporary files; [`RowDir::open`] takes another directory.
    ///
    /// # Errors
    /// All row numbers are used.
    pub fn begin_row(&self) -> Result<RowDir, Error> {
        loop {
            // Relaxed: the numbers only need to differ.
            let row = self.last_row.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
            if row == 0 {
                return Err(self.cannot_resume(row, "there are no more numbers for rows"));
            }
            if self.keep != Some(row) {
                return Ok(RowDir::open(&self.location, row, &std::env::temp_dir()));
            }
        }
    }

    /// Continues the row that was kept. Its files stay, except those that are written again and so replaced.
    ///
    /// # Errors
    /// A row that was not kept, or that an epoch has by now.
    pub fn resume_row(&self, row: u32) -> Result<RowDir, Error> {
        if self.rows.contains(&row) {
            return Err(self.cannot_resume(row, "an epoch has it"));
        }
        if self.keep != Some(row) {
            return Err(self.cannot_resume(row, "it was not kept when the store was opened"));
        }
        Ok(RowDir::open(&self.location, row, &std::env::temp_dir()))
    }

    /// Removes a row that was begun and will not be committed, and releases the lock. Removes the whole store if the
    /// store has no epoch and is a directory. In S3, an empty lock stays.
    ///
    /// # Errors
    /// An error of the disk or of the server.
    pub fn abandon(self, row: &RowDir) -> Result<(), Error> {
        self.lock.check()?;
        let storage = self.location.storage();
        storage.remove_all(&row_name(row.row()))?;
        for name in storage.names(HELD)?.into_iter().filter(|name| row_of_held(name) == Some(row.row())) {
            storage.remove(&format!("{HELD}/{name}"))?;
        }
        if self.current.is_none() && self.location.directory().is_some() {
            [ROWS, EPOCHS, TRANSLATIONS, HELD].iter().try_for_each(|name| storage.remove_all(name))?;
            drop(self.lock);
            storage.forsake(self.made)?;
        }
        Ok(())
    }

    fn cannot_resume(&self, row: u32, why: &'static str) -> Error {
        Error::CannotResume { path: self.location.path(""), row, why }
    }

    /// Makes a new epoch current and returns its number. The files of the epoch are made durable first. Then the
    /// manifest is created, if no manifest has this number. CURRENT is replaced last.
    ///
    /// # Errors
    /// Files that are missing or differ from their entries in size, a manifest that contradicts itself, a lock that was
    /// taken away, an error of the disk or of the server. The epoch before then stays current.
    pub fn commit(mut self, manifest_parts: NewEpoch) -> Result<u64, Error> {
        let epoch = self.current.map_or(0, |id| id.epoch) + 1;
        let name = manifest_name(epoch);
        let path = self.location.path(&name);
        let previous = self.current.map(|id| Ok((id, read_manifest(&self.location, id)?))).transpose()?;
        let history = history_after(previous, &manifest_parts);
        let manifest = history.map(|history| Manifest::new(epoch, manifest_parts, history));
        let manifest = manifest.and_then(|manifest| manifest.flaw().map_or(Ok(manifest), Err));
        let manifest = manifest.map_err(|flaw| Error::BadManifest { path: path.clone(), flaw })?;
        let json = serde_json::to_string_pretty(&manifest);
        let json = json.map_err(|source| Error::ManifestSyntax { path: path.clone(), source })? + "\n";
        let storage = self.location.storage();
        let files = manifest.files().map(|entry| (entry.path.as_str(), entry.bytes));
        let files = files.chain(manifest.translations().map(|entry| (entry.path.as_str(), entry.bytes)));
        let inputs = manifest.provenance.inputs.iter().map(|entry| (entry.path.as_str(), entry.bytes));
        let held = manifest.provenance.held.iter().map(|entry| (entry.path.as_str(), entry.bytes));
        let files: Vec<_> = files.chain(inputs).chain(held).collect();
        let settled = storage.settle(&files);
        // First: a writer that has taken the lock removes the files of this one.
        self.lock.check()?;
        settled?;
        // A manifest with these bytes is from this writer: the answer to the first attempt may have been lost on the
        // way.
        if !storage.create(&name, json.as_bytes())? {
            let (found, version) = storage.read_version(&name)?;
            if found.as_deref() != Some(json.as_bytes()) {
                if !self.may_stall() {
                    return Err(Error::EpochTaken { path });
                }
                // Of a writer that was given up. It may go on at any moment, but not make its epoch current any more.
                self.fence()?;
                if self.location.storage().replace_version(&name, json.as_bytes(), &version)?.is_none() {
                    return Err(Error::EpochTaken { path });
                }
            }
        }
        let id = EpochId { epoch, digest: Digest::of(json.as_bytes()) };
        self.set_current(&format!("{id}\n"))?;
        self.lock.committed();
        Ok(epoch)
    }

    /// Whether a writer that was given up may go on: in a directory, a lock ends with its process.
    fn may_stall(&self) -> bool {
        self.location.directory().is_none()
    }

    /// Whether this writer still holds the lock of the store. A job that takes long asks now and then, and ends early.
    ///
    /// # Errors
    /// [`Error::LockLost`] if it does not; an error of the server.
    pub fn check(&self) -> Result<(), Error> {
        self.lock.check()
    }

    /// Replaces CURRENT, if no other writer has done so since this writer has read it.
    fn set_current(&mut self, text: &str) -> Result<(), Error> {
        let version = self.location.storage().replace_version(CURRENT, text.as_bytes(), &self.version)?;
        let path = || self.location.path(CURRENT);
        self.version = version.ok_or_else(|| Error::LockLost { path: path(), owner: String::new() })?;
        Ok(())
    }

    /// Keeps writers that were given up, and that may be stalled just before they replace CURRENT, from doing so:
    /// writes CURRENT with the same epoch and a second line that makes it another version. Directories need no fence.
    fn fence(&mut self) -> Result<(), Error> {
        self.lock.check()?;
        if self.location.directory().is_some() {
            return Ok(());
        }
        let id = self.current.map(|id| id.to_string()).unwrap_or_default();
        self.set_current(&format!("{id}\nfence {}\n", unique()))
    }

    /// Removes rows, translations, lists of inputs and held links that no epoch up to the current one names, and all
    /// later manifests. The row `keep` stays, and so do the files that may belong to it. Other names than those that
    /// writers make are not touched. Returns the greatest number of a row that must not be used again.
    ///
    /// In S3, this writer may be stalled before it removes a file, and given up. Names that the next writer may then
    /// use stay: manifests, which are replaced. Rows get other numbers.
    fn clean(&mut self) -> Result<u32, Error> {
        let (mut files, keep) = (BTreeSet::new(), self.keep);
        let storage = self.location.storage();
        for manifest in manifests(&self.location)?.values() {
            self.rows.extend(manifest.rows.iter().map(|row| row.row));
            files.extend(manifest.translations().map(|entry| entry.path.clone()));
            files.extend(manifest.provenance.inputs.iter().map(|entry| entry.path.clone()));
            files.extend(manifest.provenance.held.iter().map(|entry| entry.path.clone()));
        }
        let may_stall = self.may_stall();
        let is_later = |&epoch: &u64| !may_stall && self.current.is_none_or(|current| epoch > current.epoch);
        let later: Vec<String> = epochs(&self.location)?.into_iter().filter(is_later).map(manifest_name).collect();
        let row = |name: &String| name.parse::<u32>().ok().filter(|&row| row_name(row) == format!("{ROWS}/{name}"));
        let orphans: Vec<u32> = storage.names(ROWS)?.iter().filter_map(row).collect();
        let orphans = orphans.into_iter().filter(|row| !self.rows.contains(row) && keep != Some(*row));
        let orphans: Vec<u32> = orphans.collect();
        files.extend(keep.map(translation_name));
        files.extend(keep.map(inputs_name));
        let translations = storage.names(TRANSLATIONS)?.into_iter().filter(|name| row_of_translation(name).is_some());
        let translations = translations.map(|name| format!("{TRANSLATIONS}/{name}"));
        let inputs = storage.names(INPUTS)?.into_iter().filter(|name| row_of_inputs(name).is_some());
        let inputs = inputs.map(|name| format!("{INPUTS}/{name}"));
        let of_others = |name: &String| row_of_held(name).is_some_and(|row| keep != Some(row));
        let held = storage.names(HELD)?.into_iter().filter(of_others).map(|name| format!("{HELD}/{name}"));
        let left = translations.chain(inputs).chain(held).filter(|path| !files.contains(path));
        let left: Vec<String> = left.chain(later).collect();
        let last = self.rows.last().copied().unwrap_or(0);
        if left.is_empty() && orphans.is_empty() {
            return Ok(last);
        }
        self.fence()?;
        let storage = self.location.storage();
        for row in &orphans {
            storage.remove_all(&row_name(*row))?;
        }
        left.iter().try_for_each(|path| storage.remove(path))?;
        // After a writer that was given up, its numbers are not used again: it may go on to write its files.
        let given_up = orphans.last().copied().filter(|_| self.lock.given_up() > 0);
        Ok(last.max(given_up.unwrap_or(0)))
    }
}

impl std::fmt::Debug for StoreWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoreWriter").field("location", &self.location).field("current", &self.current).finish()
    }
}

/// The epochs that have manifests, oldest first. Epochs above CURRENT are from dead writers.
pub(crate) fn epochs(location: &Location) -> Result<BTreeSet<u64>, Error> {
    let names = location.storage().names(EPOCHS)?;
    let epoch = |name: &String| name.strip_suffix(".json")?.parse().ok();
    Ok(names
        .iter()
        .filter_map(|name| epoch(name).filter(|&epoch| manifest_name(epoch) == format!("{EPOCHS}/{name}")))
        .collect())
}

/// The identity of the epoch that CURRENT names; `None` if CURRENT does not exist.
pub(crate) fn current(location: &Location) -> Result<Option<EpochId>, Error> {
    identity(location, location.storage().read(CURRENT)?)
}

/// As [`current`], with the version of CURRENT.
fn current_version(location: &Location) -> Result<(Option<EpochId>, Version), Error> {
    let (bytes, version) = location.storage().read_version(CURRENT)?;
    Ok((identity(location, bytes)?, version))
}

/// The identity in the first line of CURRENT. The second line is a fence, before which there may be no epoch yet.
fn identity(location: &Location, bytes: Option<Vec<u8>>) -> Result<Option<EpochId>, Error> {
    let Some(bytes) = bytes else { return Ok(None) };
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(60)]).into_owned();
    let line = text.lines().next().unwrap_or_default().trim_end();
    match (line.parse(), line.parse()) {
        _ if text.starts_with("\nfence ") => Ok(None),
        (Ok(id), _) => Ok(Some(id)),
        // Written by a format that had no digests yet. The manifest says which format.
        (_, Ok(epoch)) => {
            Err(version_error(location, epoch)?.unwrap_or(Error::BadCurrent { path: location.path(CURRENT), text }))
        }
        _ => Err(Error::BadCurrent { path: location.path(CURRENT), text }),
    }
}

/// The error for a manifest of another format. `None` if the epoch has this format, or no readable manifest.
fn version_error(location: &Location, epoch: u64) -> Result<Option<Error>, Error> {
    let name = manifest_name(epoch);
    let text = location.storage().read(&name)?.unwrap_or_default();
    Ok(other_version(&text, location.path(&name)))
}

fn other_version(text: &[u8], path: PathBuf) -> Option<Error> {
    #[derive(serde::Deserialize)]
    struct Version {
        format: u32,
    }
    match serde_json::from_slice::<Version>(text).ok()?.format {
        FORMAT => None,
        found if found > FORMAT => Some(Error::NewerFormat { path, found, known: FORMAT }),
        found => Some(Error::OlderFormat { path, found, known: FORMAT }),
    }
}

pub(crate) fn read_manifest(location: &Location, id: EpochId) -> Result<Manifest, Error> {
    let (name, EpochId { epoch, digest: expected }) = (manifest_name(id.epoch), id);
    let path = location.path(&name);
    let Some(text) = location.storage().read(&name)? else {
        return Err(Error::MissingEpoch { path: location.path(""), epoch });
    };
    let got = Digest::of(&text);
    if got != expected {
        return Err(Error::DamagedManifest { path, expected, got });
    }
    // Check the version first: a newer manifest may have different fields.
    if let Some(error) = other_version(&text, path.clone()) {
        return Err(error);
    }
    let manifest: Manifest =
        serde_json::from_slice(&text).map_err(|source| Error::ManifestSyntax { path: path.clone(), source })?;
    let named = (manifest.epoch != epoch).then_some(ManifestFlaw::Epoch(manifest.epoch));
    match named.or_else(|| manifest.flaw()) {
        Some(flaw) => Err(Error::BadManifest { path, flaw }),
        None => Ok(manifest),
    }
}

/// The store that contains a path, or would contain the path if it existed. A store contains its own directory, too.
pub fn store_around(path: &Path) -> Option<PathBuf> {
    let path = std::path::absolute(path).ok()?;
    // The part of the path that exists, with symbolic links resolved. The rest does not exist, so no store is in it.
    let existing = path.ancestors().find_map(|part| std::fs::canonicalize(part).ok())?;
    let is_store = |directory: &&Path| directory.join(CURRENT).is_file() && directory.join(EPOCHS).is_dir();
    existing.ancestors().find(is_store).map(Path::to_owned)
}

/// The manifests of a store up to the current one, oldest first. Each is the one that the newest manifest names. Empty
/// for a new store.
pub(crate) fn manifests(location: &Location) -> Result<BTreeMap<EpochId, Manifest>, Error> {
    let Some(id) = current(location)? else { return Ok(BTreeMap::new()) };
    let newest = read_manifest(location, id)?;
    let kept_epochs = epochs(location)?;
    let past: Vec<EpochId> =
        newest.history.iter().map(PastEpoch::id).filter(|past| kept_epochs.contains(&past.epoch)).collect();
    // An epoch that is removed meanwhile is left out.
    let past = past.into_iter().filter_map(|id| match read_manifest(location, id) {
        Err(Error::MissingEpoch { .. }) => None,
        read => Some(read.map(|manifest| (id, manifest))),
    });
    past.chain([Ok((id, newest))]).collect()
}

#[cfg(all(test, feature = "remote"))]
mod tests;
