//! What is watched of a store: a [note](Notes) for each standing result, beside the layers.
//!
//! ```text
//! STORE/watches/top.json     what is kept, where its tables go, and the last epoch whose changes were written
//! STORE/watches/top.lock     of the process that follows
//! ```
//!
//! The note is written after the tables of an epoch are there, so whoever begins again writes the epochs after it and
//! none twice but the one at which it was killed, with the same rows. The store itself does not read these files;
//! removing them forgets the watch and nothing else.

use super::Standing;
use crate::Error;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use webstrata_layers::{EpochId, Error as StoreError, HeldNote, Location, Notes, Sealed};
use webstrata_pipeline::Error as JobError;

const WATCHES: Sealed = Sealed::Watches;

/// What stands in a note.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registration {
    /// What is kept.
    pub standing: Standing,
    /// Where tables go; `None` for lines on standard output.
    pub out: Option<PathBuf>,
    /// Whether each epoch's whole result is written, too.
    pub whole: bool,
    /// The last epoch that was written.
    pub epoch: Option<EpochId>,
}

/// A registration that this process follows; see [`Notes`] for who else may.
#[derive(Debug)]
pub struct Registered(HeldNote);

/// A registration under its name, or what is wrong with its file.
pub type Listed = (String, Result<Registration, Error>);

/// All registrations of a store, in order of their names; instead of one that is damaged, what is said of it.
///
/// # Errors
/// A directory that cannot be read.
pub fn registered(store: &Location) -> Result<Vec<Listed>, Error> {
    let notes = Notes::of(store, WATCHES);
    let names = notes.names()?;
    // One that is removed meanwhile is not there.
    let known = |name: String| read(&notes, &name).transpose().map(|registration| (name, registration));
    Ok(names.into_iter().filter_map(known).collect())
}

impl Registered {
    /// Whether a watch is registered under this name, or one whose [`forget`](Self::forget) was stopped.
    ///
    /// # Errors
    /// What the place refuses.
    pub fn is_there(store: &Location, name: &str) -> Result<bool, Error> {
        Ok(Notes::of(store, WATCHES).has(name)?)
    }

    /// Takes a name in a store that is there, whether a watch is registered under it or not.
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

    /// What is registered under the name.
    ///
    /// # Errors
    /// A note that cannot be read, or is damaged.
    pub fn registration(&self) -> Result<Option<Registration>, Error> {
        read(self.0.notes(), self.0.name())
    }

    /// Writes the note anew.
    ///
    /// # Errors
    /// Where another process has taken the name, in S3; what the place refuses.
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
