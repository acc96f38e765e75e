//! The store directory: epochs, rows and the file CURRENT; how a new epoch is committed, and how one is opened.
//!
//! ```text
//! STORE/LOCK                         held by the one writer while it works; empty
//! STORE/CURRENT                      the number of the current epoch; replaced by rename, last
//! STORE/epochs/000001.json           manifests
//! STORE/rows/000001/ol/part-00000.parquet
//! ```
//!
//! Invariants: files named by an epoch up to CURRENT never change. A writer that dies at any moment leaves the epoch before:
//! row directories and manifests that no such epoch names are invisible, and the next writer removes them. Everything is
//! synced to disk before CURRENT names it. Source: Najork 2009 (epochs); DESIGN: the contract.

use std::fs::{self, File, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::manifest::{FORMAT, FileEntry, Manifest, ManifestFlaw, NewEpoch};
use crate::schema::Layer;

const CURRENT: &str = "CURRENT";
const LOCK: &str = "LOCK";
const EPOCHS: &str = "epochs";
const ROWS: &str = "rows";

/// An epoch of a store, open for reading.
#[derive(Clone, Debug)]
pub struct Store {
    dir: PathBuf,
    manifest: Manifest,
}

impl Store {
    /// Opens the current epoch.
    ///
    /// # Errors
    /// No store, no such epoch, a manifest of a newer format or that contradicts itself.
    pub fn open(dir: &Path) -> Result<Store, Error> {
        let epoch = current(dir)?.ok_or_else(|| Error::NotAStore { path: dir.to_owned() })?;
        Self::open_epoch(dir, epoch)
    }

    /// Opens an epoch by number.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open_epoch(dir: &Path, epoch: u64) -> Result<Store, Error> {
        Ok(Store { dir: dir.to_owned(), manifest: read_manifest(dir, epoch)? })
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// What the epoch has.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Compares a file with its size and checksum in the manifest. Cost: reads it whole.
    ///
    /// # Errors
    /// A file that cannot be read, or is not as written.
    pub fn verify(&self, entry: &FileEntry) -> Result<(), Error> {
        let path = self.dir.join(&entry.path);
        let mut file = File::open(&path).map_err(Error::io(&path))?;
        let got = file.metadata().map_err(Error::io(&path))?.len();
        if got != entry.bytes {
            return Err(Error::Size { path, expected: entry.bytes, got });
        }
        let (mut hash, mut block) = (xxhash_rust::xxh3::Xxh3::new(), vec![0u8; 1 << 17]);
        loop {
            let read = std::io::Read::read(&mut file, &mut block).map_err(Error::io(&path))?;
            if read == 0 {
                break;
            }
            hash.update(&block[..read]);
        }
        let got = format!("{:016x}", hash.digest());
        if got == entry.checksum {
            Ok(())
        } else {
            Err(Error::Checksum { path, expected: entry.checksum.clone(), got })
        }
    }
}

/// The one writer of a store. The lock goes with it.
#[derive(Debug)]
pub struct StoreWriter {
    dir: PathBuf,
    current: Option<u64>,
    /// The highest row number ever used by an epoch.
    last_row: u32,
    _lock: File,
}

impl StoreWriter {
    /// Opens a store for writing, or makes a new one in an empty or missing directory; removes what dead writers left.
    ///
    /// # Errors
    /// A store that another writer has open ([`Error::Locked`]), a directory with other things in it, manifests that cannot be read.
    pub fn open(dir: &Path, keep: Option<u32>) -> Result<StoreWriter, Error> {
        if dir.exists() && !dir.is_dir() {
            return Err(Error::NotADirectory { path: dir.to_owned() });
        }
        fs::create_dir_all(dir).map_err(Error::io(dir))?;
        let current = current(dir)?;
        if current.is_none() {
            let ours = |name: &str| [LOCK, EPOCHS, ROWS].contains(&name) || name.starts_with(CURRENT);
            if let Some(found) = names(dir)?.into_iter().find(|name| !ours(name)) {
                return Err(Error::NotEmpty { path: dir.to_owned(), found });
            }
        }
        let path = dir.join(LOCK);
        let lock = File::options().create(true).truncate(false).write(true).open(&path).map_err(Error::io(&path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(Error::Locked { path }),
            Err(TryLockError::Error(source)) => return Err(Error::Io { path, source }),
        }
        for name in [EPOCHS, ROWS] {
            fs::create_dir_all(dir.join(name)).map_err(Error::io(dir))?;
        }
        // Read again: the writer before may have committed between the first look and the lock.
        let current = self::current(dir)?;
        let last_row = clean(dir, current, keep)?;
        Ok(StoreWriter { dir: dir.to_owned(), current, last_row, _lock: lock })
    }

    /// The number of the current epoch; `None` in a new store.
    pub fn current(&self) -> Option<u64> {
        self.current
    }

    /// Whether a row is there, committed or not.
    pub fn has_row(&self, row: u32) -> bool {
        self.dir.join(ROWS).join(number(row)).is_dir()
    }

    /// The current epoch, if it has this row.
    ///
    /// # Errors
    /// A manifest that cannot be read.
    pub fn current_with_row(&self, row: u32) -> Result<Option<u64>, Error> {
        let Some(epoch) = self.current else { return Ok(None) };
        let has = read_manifest(&self.dir, epoch)?.rows.iter().any(|entry| entry.row == row);
        Ok(has.then_some(epoch))
    }

    /// Makes the directory of a new row, which stays invisible until it is committed.
    ///
    /// # Errors
    /// When the directory cannot be made.
    pub fn begin_row(&self) -> Result<RowDir, Error> {
        let mut row = self.last_row;
        loop {
            row += 1;
            let path = self.dir.join(ROWS).join(number(row));
            match fs::create_dir(&path) {
                Ok(()) => return Ok(RowDir { store: self.dir.clone(), row }),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(source) => return Err(Error::Io { path, source }),
            }
        }
    }

    /// Makes a new epoch current and gives its number. All its files are synced to disk first; CURRENT is replaced last.
    ///
    /// # Errors
    /// Files that are missing or have another size than their entries say, a manifest that contradicts itself, and what the
    /// disk refuses. The epoch before then stays current.
    pub fn commit(self, manifest_parts: NewEpoch) -> Result<u64, Error> {
        let epoch = self.current.unwrap_or(0) + 1;
        let manifest = Manifest::new(epoch, manifest_parts);
        let path = manifest_path(&self.dir, epoch);
        if let Some(flaw) = manifest.flaw() {
            return Err(Error::BadManifest { path, flaw });
        }
        let mut directories = std::collections::BTreeSet::new();
        for entry in manifest.files() {
            let path = self.dir.join(&entry.path);
            let file = File::open(&path).map_err(Error::io(&path))?;
            let got = file.metadata().map_err(Error::io(&path))?.len();
            if got != entry.bytes {
                return Err(Error::Size { path, expected: entry.bytes, got });
            }
            file.sync_all().map_err(Error::io(&path))?;
            let inside = path.ancestors().skip(1).take_while(|directory| *directory != self.dir);
            directories.extend(inside.map(Path::to_owned));
        }
        directories.iter().try_for_each(|directory| sync_dir(directory))?;
        let json = serde_json::to_string_pretty(&manifest);
        let mut json = json.map_err(|source| Error::ManifestSyntax { path: path.clone(), source })?;
        json.push('\n');
        replace(&path, json.as_bytes())?;
        sync_dir(&self.dir)?;
        replace(&self.dir.join(CURRENT), format!("{epoch}\n").as_bytes())?;
        Ok(epoch)
    }
}

/// The directory of a row that is being written.
#[derive(Clone, Debug)]
pub struct RowDir {
    store: PathBuf,
    row: u32,
}

impl RowDir {
    /// The directory of a row that a [`StoreWriter`], maybe of another process, has begun.
    ///
    /// # Errors
    /// None for local stores.
    pub fn open(dir: &Path, row: u32) -> Result<RowDir, Error> {
        Ok(RowDir { store: dir.to_owned(), row })
    }

    /// The number of the row.
    pub fn row(&self) -> u32 {
        self.row
    }

    /// The directory.
    pub fn path(&self) -> PathBuf {
        self.store.join(ROWS).join(number(self.row))
    }

    /// The store that it is in.
    pub(crate) fn store(&self) -> PathBuf {
        self.store.clone()
    }

    /// The path of a file of this row, and the same relative to the store; makes the layer's directory.
    pub(crate) fn file(&self, layer: Layer, partition: u32) -> Result<(PathBuf, String), Error> {
        let directory = self.path().join(layer.name());
        fs::create_dir_all(&directory).map_err(Error::io(&directory))?;
        let relative = format!("{ROWS}/{}/{layer}/part-{partition:05}.parquet", number(self.row));
        Ok((self.store.join(&relative), relative))
    }
}

/// Numbers of rows in names.
fn number(row: u32) -> String {
    format!("{row:06}")
}

fn manifest_path(dir: &Path, epoch: u64) -> PathBuf {
    dir.join(EPOCHS).join(format!("{epoch:06}.json"))
}

/// The number in CURRENT; `None` without that file.
fn current(dir: &Path) -> Result<Option<u64>, Error> {
    let path = dir.join(CURRENT);
    let bytes = match fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(Error::Io { path, source }),
    };
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(40)]).into_owned();
    let digits = text.trim_end();
    match digits.parse() {
        Ok(epoch) if digits.bytes().all(|byte| byte.is_ascii_digit()) => Ok(Some(epoch)),
        _ => Err(Error::BadCurrent { path, text }),
    }
}

fn read_manifest(dir: &Path, epoch: u64) -> Result<Manifest, Error> {
    #[derive(serde::Deserialize)]
    struct Version {
        format: u32,
    }
    let path = manifest_path(dir, epoch);
    let text = match fs::read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(Error::MissingEpoch { path: dir.to_owned(), epoch });
        }
        Err(source) => return Err(Error::Io { path, source }),
    };
    let syntax = |source| Error::ManifestSyntax { path: path.clone(), source };
    // The version first: a newer manifest may have another shape.
    let version: Version = serde_json::from_slice(&text).map_err(syntax)?;
    if version.format > FORMAT {
        return Err(Error::NewerFormat { path, found: version.format, known: FORMAT });
    }
    let manifest: Manifest = serde_json::from_slice(&text).map_err(syntax)?;
    let named = (manifest.epoch != epoch).then_some(ManifestFlaw::Epoch(manifest.epoch));
    match named.or_else(|| manifest.flaw()) {
        Some(flaw) => Err(Error::BadManifest { path, flaw }),
        None => Ok(manifest),
    }
}

/// Removes row directories that no epoch up to the current one names, later manifests, and temporary files; gives the highest row
/// number in use. Only names that writers make are touched.
fn clean(dir: &Path, current: Option<u64>, keep: Option<u32>) -> Result<u32, Error> {
    let (mut rows, epochs) = (std::collections::BTreeSet::new(), dir.join(EPOCHS));
    for name in names(&epochs)? {
        let path = epochs.join(&name);
        let Some(stem) = name.strip_suffix(".json") else {
            if name.ends_with(".json.tmp") {
                fs::remove_file(&path).map_err(Error::io(&path))?;
            }
            continue;
        };
        match stem.parse::<u64>() {
            Ok(epoch) if current.is_some_and(|current| epoch <= current) => {
                rows.extend(read_manifest(dir, epoch)?.rows.iter().map(|row| row.row));
            }
            Ok(_) => fs::remove_file(&path).map_err(Error::io(&path))?,
            Err(_) => {}
        }
    }
    if let Some(epoch) = current.filter(|&epoch| !manifest_path(dir, epoch).exists()) {
        return Err(Error::MissingEpoch { path: dir.to_owned(), epoch });
    }
    for name in names(&dir.join(ROWS))? {
        let orphan = name.parse::<u32>().is_ok_and(|row| number(row) == name && !rows.contains(&row) && keep != Some(row));
        if orphan {
            let path = dir.join(ROWS).join(&name);
            fs::remove_dir_all(&path).map_err(Error::io(&path))?;
        }
    }
    Ok(rows.last().copied().unwrap_or(0))
}

/// The names in a directory.
fn names(dir: &Path) -> Result<Vec<String>, Error> {
    let entries =
        fs::read_dir(dir).and_then(|entries| entries.collect::<Result<Vec<_>, _>>()).map_err(Error::io(dir))?;
    Ok(entries.into_iter().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect())
}

/// Replaces a file so that it is at any moment the old one or the new one, also after a crash.
fn replace(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".tmp");
    let temporary = PathBuf::from(temporary);
    let write = || -> std::io::Result<()> {
        let mut file = File::create(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()
    };
    write().map_err(Error::io(&temporary))?;
    fs::rename(&temporary, path).map_err(Error::io(path))?;
    path.parent().map_or(Ok(()), sync_dir)
}

fn sync_dir(dir: &Path) -> Result<(), Error> {
    File::open(dir).and_then(|dir| dir.sync_all()).map_err(Error::io(dir))
}
