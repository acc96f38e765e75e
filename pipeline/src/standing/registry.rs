//! What is watched of a store: a small file for each standing result, beside the layers.
//!
//! ```text
//! STORE/watches/top.json     what is kept, where its tables go, and the last epoch whose changes were written
//! STORE/watches/top.lock     locked by the process that follows
//! ```
//!
//! The file is replaced as a whole after the tables of an epoch are there, so whoever begins again writes the epochs after it
//! and none twice but the one at which it was killed, with the same rows. The store itself does not read these files;
//! removing them forgets the watch and nothing else. A store in S3 has no place for them.

use super::Standing;
use crate::Error;
use crate::table::write_file;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use webstrata_layers::Location;

const WATCHES: &str = "watches";

/// What stands in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registration {
    /// What is kept.
    pub standing: Standing,
    /// Where tables go; `None` for lines on standard output.
    pub out: Option<PathBuf>,
    /// Whether each epoch's whole result is written, too.
    pub whole: bool,
    /// The last epoch that was written.
    pub epoch: Option<u64>,
}

/// A registration that this process follows; nobody else does until it is dropped.
#[derive(Debug)]
pub struct Registered {
    path: PathBuf,
    _lock: File,
}

/// All registrations of a store, by name.
///
/// # Errors
/// Files that cannot be read or make no sense.
pub fn registered(store: &Location) -> Result<Vec<(String, Registration)>, Error> {
    let directory = directory(store)?;
    let names = match fs::read_dir(&directory) {
        Ok(names) => names,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(Error::Watch { path: directory, source }),
    };
    let mut all = Vec::new();
    for name in names {
        let path = name.map_err(|source| Error::Watch { path: directory.clone(), source })?.path();
        if path.extension().is_some_and(|ending| ending == "json")
            && let Some(name) = path.file_stem().and_then(|name| name.to_str())
            && let Some(registration) = read(&path)?
        {
            all.push((name.to_owned(), registration));
        }
    }
    all.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(all)
}

impl Registered {
    /// Takes a name in a store that is there: gives also what is registered under it.
    ///
    /// # Errors
    /// A store in S3; a name that another process follows ([`Error::Watched`]); files that cannot be read or written.
    pub fn take(store: &Location, name: &str) -> Result<(Self, Option<Registration>), Error> {
        let directory = directory(store)?;
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| Error::Watch { path, source }
        };
        fs::create_dir_all(&directory).map_err(failed(&directory))?;
        let path = directory.join(format!("{name}.lock"));
        let lock = File::options().create(true).truncate(false).write(true).open(&path).map_err(failed(&path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(Error::Watched { path }),
            Err(TryLockError::Error(source)) => return Err(failed(&path)(source)),
        }
        let path = directory.join(format!("{name}.json"));
        let registration = read(&path)?;
        Ok((Self { path, _lock: lock }, registration))
    }

    /// Writes the file anew.
    ///
    /// # Errors
    /// What the system refuses.
    pub fn write(&self, registration: &Registration) -> Result<(), Error> {
        let mut json = serde_json::to_vec_pretty(registration).map_err(Error::State)?;
        json.push(b'\n');
        write_file(&self.path, &json)
    }

    /// Removes the file.
    ///
    /// # Errors
    /// What the system refuses.
    pub fn forget(self) -> Result<(), Error> {
        for path in [&self.path, &self.path.with_extension("lock")] {
            fs::remove_file(path).map_err(|source| Error::Watch { path: path.clone(), source })?;
        }
        Ok(())
    }
}

fn directory(store: &Location) -> Result<PathBuf, Error> {
    let directory = store.directory().map(|directory| directory.join(WATCHES));
    directory.ok_or_else(|| Error::WatchElsewhere { store: store.to_string() })
}

fn read(path: &Path) -> Result<Option<Registration>, Error> {
    let failed = |source| Error::Watch { path: path.to_owned(), source };
    match fs::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|error| failed(error.into())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(failed(source)),
    }
}
