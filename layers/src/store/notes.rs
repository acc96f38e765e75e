//! Notes: small files that lie with a store and are no part of it, in which a program keeps what it has to know of the
//! store the next time.
//!
//! ```text
//! STORE/watches/top.json     the note `top` of the notes `watches`
//! STORE/watches/top.lock     of the process that holds it
//! ```
//!
//! A note is written as a whole by the process that holds it, and is durable then; everybody may read it. In a
//! directory the lock is one of the operating system: it goes with its process, and meanwhile nobody else gets the
//! note. In S3 the lock of a killed process would stay, so there the last process that asks holds the note, and the one
//! before is told when it writes.

use std::fmt;
use std::path::PathBuf;

use crate::error::Error;
use crate::location::{Location, Lock};

const ENDING: &str = ".json";

/// The notes of one kind, of one store. Cheap to clone.
#[derive(Clone)]
pub struct Notes {
    store: Location,
    /// The directory in the store.
    kind: &'static str,
}

impl Notes {
    /// Those in the directory `kind` of a store. Nothing is looked up yet.
    pub fn of(store: &Location, kind: &'static str) -> Self {
        Self { store: store.clone(), kind }
    }

    /// A note as messages name it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.store.path(&self.file(name))
    }

    fn file(&self, name: &str) -> String {
        format!("{}/{name}{ENDING}", self.kind)
    }

    /// The names of all notes, in order.
    ///
    /// # Errors
    /// What the place refuses.
    pub fn names(&self) -> Result<Vec<String>, Error> {
        let names = self.store.storage().names(self.kind)?;
        let mut names: Vec<_> = names.iter().filter_map(|name| name.strip_suffix(ENDING)).map(str::to_owned).collect();
        names.sort_unstable();
        Ok(names)
    }

    /// The bytes of a note; `None` where there is none.
    ///
    /// # Errors
    /// What the place refuses.
    pub fn read(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        self.store.storage().read(&self.file(name))
    }

    /// Holds a note, which may not be there yet, until the value is dropped.
    ///
    /// # Errors
    /// In a directory one that another process holds ([`Error::Locked`]); what the place refuses.
    pub fn hold(&self, name: &str) -> Result<HeldNote, Error> {
        let lock = self.store.storage().hold(&format!("{}/{name}.lock", self.kind))?;
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
    /// Writes the note anew.
    ///
    /// # Errors
    /// In S3 a note that another process holds meanwhile ([`Error::LockLost`]); what the place refuses.
    pub fn write(&self, bytes: &[u8]) -> Result<(), Error> {
        self.lock.check()?;
        self.notes.store.storage().replace(&self.notes.file(&self.name), bytes)
    }

    /// Removes the note, and its lock.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn remove(self) -> Result<(), Error> {
        self.lock.check()?;
        let storage = self.notes.store.storage();
        storage.remove(&self.notes.file(&self.name))?;
        storage.remove(&format!("{}/{}.lock", self.notes.kind, self.name))
    }
}

impl fmt::Debug for HeldNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HeldNote").field(&self.notes.path(&self.name)).finish()
    }
}
