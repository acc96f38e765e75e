//! The watches of a store: a [note](Notes) for each standing result, beside the layers.
//!
//! ```text
//! STORE/watches/top.json     the result, the target of its tables, and the last epoch whose changes were written
//! STORE/watches/top.lock     the lock of the process that follows
//! ```
//!
//! The note is written after the tables of an epoch are complete. A process that starts again writes the epochs after
//! the epoch in the note. Only the epoch at which the process was killed is written twice, with the same rows. The
//! store does not read these files. If they are removed, the watch is forgotten, and nothing else changes.

use super::Standing;
use crate::Error;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use webstrata_engine::Error as JobError;
use webstrata_layers::{EpochId, Error as StoreError, HeldNote, Location, Notes, Sealed};

const WATCHES: Sealed = Sealed::Watches;

/// The content of a note.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registration {
    /// The standing result.
    pub standing: Standing,
    /// The directory for tables; `None` for lines on standard output.
    pub out: Option<PathBuf>,
    /// Whether the whole result of each epoch is written, too.
    pub whole: bool,
    /// The last epoch that was written.
    pub epoch: Option<EpochId>,
}

/// A registration that this process follows. See [`Notes`] for the other processes that may follow it.
#[derive(Debug)]
pub struct Registered(HeldNote);

/// The name of a registration, and the registration or the error of its file.
pub type Listed = (String, Result<Registration, Error>);

/// Returns all registrations of a store, sorted by name. A damaged registration comes as its error.
///
/// # Errors
/// A directory that cannot be read.
pub fn registered(store: &Location) -> Result<Vec<Listed>, Error> {
    let notes = Notes::of(store, WATCHES);
    let names = notes.names()?;
    // A registration that is removed in the meantime is left out.
    let known = |name: String| read(&notes, &name).transpose().map(|registration| (name, registration));
    Ok(names.into_iter().filter_map(known).collect())
}

impl Registered {
    /// Whether a watch is registered under this name, or a watch whose [`forget`](Self::forget) was interrupted.
    ///
    /// # Errors
    /// Errors of the storage.
    pub fn is_there(store: &Location, name: &str) -> Result<bool, Error> {
        Ok(Notes::of(store, WATCHES).has(name)?)
    }

    /// Takes a name in an existing store, whether or not a watch is registered under it.
    ///
    /// # Errors
    /// A name that another process follows ([`Error::Watched`]); notes that cannot be written.
    pub fn take(store: &Location, name: &str) -> Result<Self, Error> {
        let notes = Notes::of(store, WATCHES);
        let held = notes.hold(name).map_err(|error| match error {
            StoreError::Locked { path, .. } => Error::Watched { path },
            error => error.into(),
        })?;
        Ok(Self(held))
    }

    /// Returns the registration under the name.
    ///
    /// # Errors
    /// A note that cannot be read, or is damaged.
    pub fn registration(&self) -> Result<Option<Registration>, Error> {
        read(self.0.notes(), self.0.name())
    }

    /// Replaces the note.
    ///
    /// # Errors
    /// Another process has taken the name (in S3 only); errors of the storage.
    pub fn write(&self, registration: &Registration) -> Result<(), Error> {
        let mut json = serde_json::to_vec_pretty(registration).map_err(JobError::State)?;
        json.push(b'\n');
        Ok(self.0.write(&json)?)
    }

    /// Removes the note.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn forget(self) -> Result<(), Error> {
        Ok(self.0.remove()?)
    }
}

fn read(notes: &Notes, name: &str) -> Result<Option<Registration>, Error> {
    let Some(bytes) = notes.read(name)? else { return Ok(None) };
    serde_json::from_slice(&bytes).map(Some).map_err(|flaw| notes.damaged(name, flaw).into())
}
