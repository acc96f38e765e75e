//! Notes: small files that lie with a store and are no part of it, in which a program keeps what it has to know of the
//! store the next time.
//!
//! ```text
//! STORE/watches/top.json     the note `top` of the notes `watches`
//! STORE/watches/top.lock     of the process that holds it
//! ```
//!
//! A note has its digest ([`Sealed`]) and is written as a whole by the process that holds it, and is durable then;
//! everybody may read it. In a directory the lock is one of the operating system: it goes with its process, and
//! meanwhile nobody else gets the note. In S3 the lock of a killed process would stay, so there the last process that
//! asks holds the note, and the one before is told when it writes.

use std::fmt;
use std::path::PathBuf;

use crate::error::Error;
use crate::location::{Location, Lock};
use crate::store::sealed::Sealed;

const ENDING: &str = ".json";

/// The notes of one kind, of one store. Cheap to clone.
#[derive(Clone)]
pub struct Notes {
    store: Location,
    kind: Sealed,
}

impl Notes {
    /// Those of a kind in a store. Nothing is looked up yet.
    pub fn of(store: &Location, kind: Sealed) -> Self {
        Self { store: store.clone(), kind }
    }

    /// A note as messages name it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.store.path(&self.file(name))
    }

    fn file(&self, name: &str) -> String {
        format!("{}/{name}{ENDING}", self.kind.directory())
    }

    fn lock(&self, name: &str) -> String {
        format!("{}/{name}.lock", self.kind.directory())
    }

    /// Whether there is a note of this name, or a part of one whose removal was stopped.
    ///
    /// # Errors
    /// What the place refuses.
    pub fn has(&self, name: &str) -> Result<bool, Error> {
        let is_there = |name: &str| Ok(self.store.storage().modified(name)?.is_some());
        Ok(is_there(&self.file(name))? || is_there(&self.lock(name))?)
    }

    /// The names of all notes, in order.
    ///
    /// # Errors
    /// What the place refuses.
    pub fn names(&self) -> Result<Vec<String>, Error> {
        let names = self.kind.names(&self.store)?;
        let name = |path: &String| Some(path.rsplit_once('/')?.1.strip_suffix(ENDING)?.to_owned());
        Ok(names.iter().filter_map(name).collect())
    }

    /// The bytes of a note; `None` where there is none.
    ///
    /// # Errors
    /// What the place refuses, and a note that is not as it was written ([`Error::Unsealed`]).
    pub fn read(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        self.kind.read(&self.store, &self.file(name))
    }

    /// What is said of a note that makes no sense.
    pub fn damaged(&self, name: &str, flaw: impl fmt::Display) -> Error {
        self.kind.damaged(&self.store, &self.file(name), flaw.to_string())
    }

    /// Holds a note, which may not be there yet, until the value is dropped.
    ///
    /// # Errors
    /// In a directory one that another process holds ([`Error::Locked`]); what the place refuses.
    pub fn hold(&self, name: &str) -> Result<HeldNote, Error> {
        let lock = self.store.storage().hold(&self.lock(name))?;
        Ok(HeldNote { notes: self.clone(), name: name.to_owned(), lock })
    }
}

/// A note that this process holds.
pub struct HeldNote {
    notes: Notes,
    name: String,
    lock: Box<dyn Lock>,
}

impl HeldNote {
    /// The notes that it is one of.
    pub fn notes(&self) -> &Notes {
        &self.notes
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Writes the note anew.
    ///
    /// # Errors
    /// In S3 a note that another process holds meanwhile ([`Error::LockLost`]); what the place refuses.
    pub fn write(&self, bytes: &[u8]) -> Result<(), Error> {
        self.lock.check()?;
        self.notes.kind.write(&self.notes.store, &self.notes.file(&self.name), bytes)
    }

    /// Removes the note, and its lock.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn remove(self) -> Result<(), Error> {
        self.lock.check()?;
        let storage = self.notes.store.storage();
        storage.remove(&self.notes.file(&self.name))?;
        let lock = self.notes.lock(&self.name);
        let removed = storage.remove(&lock);
        // A crash may bring it back, as one that nobody holds.
        if matches!(storage.modified(&lock), Ok(None)) { Ok(()) } else { removed }
    }
}

impl fmt::Debug for HeldNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HeldNote").field(&self.notes.path(&self.name)).finish()
    }
}
