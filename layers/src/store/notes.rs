//! Notes: small files beside the layers of a store. A program keeps in a note what it must remember about the store.
//!
//! ```text
//! STORE/watches/top.json     the note `top` of the notes `watches`
//! STORE/watches/top.lock     the lock of the process that holds the note
//! ```
//!
//! A note has its digest ([`Sealed`]). The process that holds a note writes it as a whole and durably. Every process
//! may read a note. In a directory, the lock of a note is a lock of the operating system: it ends with its process, and
//! until then no other process gets the note. In S3, the lock of a killed process would stay. There, the last process
//! that asks holds the note, and the earlier holder gets an error when it writes.

use std::fmt;
use std::path::PathBuf;

use crate::error::Error;
use crate::location::{Location, Lock};
use crate::store::sealed::Sealed;

const ENDING: &str = ".json";

/// The notes of one kind in one store. Cheap to clone.
#[derive(Clone)]
pub struct Notes {
    store: Location,
    kind: Sealed,
}

impl Notes {
    /// The notes of a kind in a store. Does not access the store yet.
    pub fn of(store: &Location, kind: Sealed) -> Self {
        Self { store: store.clone(), kind }
    }

    /// The path of a note, as in messages.
    pub fn path(&self, name: &str) -> PathBuf {
        self.store.path(&self.file(name))
    }

    fn file(&self, name: &str) -> String {
        format!("{}/{name}{ENDING}", self.kind.directory())
    }

    fn lock(&self, name: &str) -> String {
        format!("{}/{name}.lock", self.kind.directory())
    }

    /// Whether there is a note of this name, or the rest of a note that was not removed completely.
    ///
    /// # Errors
    /// An error of the disk or of the server.
    pub fn has(&self, name: &str) -> Result<bool, Error> {
        let is_there = |name: &str| Ok(self.store.storage().modified(name)?.is_some());
        Ok(is_there(&self.file(name))? || is_there(&self.lock(name))?)
    }

    /// The names of all notes, in order.
    ///
    /// # Errors
    /// An error of the disk or of the server.
    pub fn names(&self) -> Result<Vec<String>, Error> {
        let names = self.kind.names(&self.store)?;
        let name = |path: &String| Some(path.rsplit_once('/')?.1.strip_suffix(ENDING)?.to_owned());
        Ok(names.iter().filter_map(name).collect())
    }

    /// The bytes of a note; `None` if there is no such note.
    ///
    /// # Errors
    /// An error of the disk or of the server, and a note that does not match its digest ([`Error::Unsealed`]).
    pub fn read(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        self.kind.read(&self.store, &self.file(name))
    }

    /// The error for a note that makes no sense.
    pub fn damaged(&self, name: &str, flaw: impl fmt::Display) -> Error {
        self.kind.damaged(&self.store, &self.file(name), flaw.to_string())
    }

    /// Holds a note until the returned value is dropped. The note need not exist yet.
    ///
    /// # Errors
    /// In a directory, another process holds the note ([`Error::Locked`]); an error of the disk or of the server.
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
    /// The notes that this note belongs to.
    pub fn notes(&self) -> &Notes {
        &self.notes
    }

    /// The name of the note.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Writes the note and replaces its earlier content.
    ///
    /// # Errors
    /// In S3, another process holds the note by now ([`Error::LockLost`]); an error of the disk or of the server.
    pub fn write(&self, bytes: &[u8]) -> Result<(), Error> {
        self.lock.check()?;
        self.notes.kind.write(&self.notes.store, &self.notes.file(&self.name), bytes)
    }

    /// Removes the note and its lock.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn remove(self) -> Result<(), Error> {
        self.lock.check()?;
        let storage = self.notes.store.storage();
        storage.remove(&self.notes.file(&self.name))?;
        let lock = self.notes.lock(&self.name);
        let removed = storage.remove(&lock);
        // A crash may bring the lock file back, but then no process holds it.
        if matches!(storage.modified(&lock), Ok(None)) { Ok(()) } else { removed }
    }
}

impl fmt::Debug for HeldNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HeldNote").field(&self.notes.path(&self.name)).finish()
    }
}
