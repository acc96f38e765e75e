//! A file that is there whole or not at all: a draft beside its place, renamed when it is whole and durable.
//!
//! A writer locks its draft, so that those of killed writers are known: nobody holds their locks. Drafts of one place have names
//! of their own, also in one process. One that is dropped goes away.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::Error;

/// How many drafts this process began.
static BEGUN: AtomicU64 = AtomicU64::new(0);

/// A file that is being written.
pub(crate) struct Draft {
    file: File,
    path: PathBuf,
    /// Where it will lie.
    place: PathBuf,
}

impl Draft {
    /// An empty draft of a file, whose directory is made, and cleared of drafts of killed writers.
    pub(crate) fn create(place: &Path) -> Result<Self, Error> {
        let failed = |source| Error::Io { path: place.to_owned(), source };
        let directory = place.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(directory).map_err(failed)?;
        let name = place.file_name().unwrap_or_default().to_string_lossy();
        clear(directory, &format!(".{name}.")).map_err(failed)?;
        loop {
            let number = BEGUN.fetch_add(1, Ordering::Relaxed);
            let path = directory.join(format!(".{name}.{}-{number}.tmp", std::process::id()));
            let file = match OpenOptions::new().read(true).write(true).create_new(true).open(&path) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                file => file.map_err(failed)?,
            };
            let draft = Self { file, path, place: place.to_owned() };
            draft.file.lock().map_err(failed)?;
            // Who clears may have come between: then another one is begun.
            if draft.path.exists() {
                return Ok(draft);
            }
        }
    }

    /// Where it lies now.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Appends bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.file.write_all(bytes).map_err(|source| Error::Io { path: self.place.clone(), source })
    }

    /// Makes it durable, and puts it in its place.
    pub(crate) fn finish(self) -> Result<(), Error> {
        let directory = self.place.parent().unwrap_or(Path::new("."));
        let done = self.file.sync_all().and_then(|()| {
            std::fs::rename(&self.path, &self.place)?;
            File::open(directory)?.sync_all()
        });
        done.map_err(|source| Error::Io { path: self.place.clone(), source })
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // After it was renamed there is none; one that stays is cleared by the next writer.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Removes the drafts in a directory whose names begin so and that nobody writes any more.
pub(crate) fn clear(directory: &Path, beginning: &str) -> io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if !name.starts_with(beginning) || !name.ends_with(".tmp") {
            continue;
        }
        // The lock is held until it is gone. Whoever else clears may be first.
        if let Ok(draft) = File::open(&path)
            && draft.try_lock().is_ok()
            && let Err(error) = std::fs::remove_file(&path)
            && error.kind() != ErrorKind::NotFound
        {
            return Err(error);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draft_is_in_its_place_when_it_is_finished_and_gone_when_it_is_dropped() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("deep/file");
        let names = || std::fs::read_dir(place.parent().unwrap()).unwrap().count();
        // Two at a time of the same file: the last one stays.
        let (mut one, mut other) = (Draft::create(&place).unwrap(), Draft::create(&place).unwrap());
        one.push(b"one").unwrap();
        other.push(b"oth").unwrap();
        other.push(b"er").unwrap();
        assert!(!place.exists() && names() == 2);
        one.finish().unwrap();
        assert_eq!(std::fs::read(&place).unwrap(), b"one");
        other.finish().unwrap();
        assert_eq!(std::fs::read(&place).unwrap(), b"other");
        let mut dropped = Draft::create(&place).unwrap();
        dropped.push(b"none").unwrap();
        assert_eq!(names(), 2);
        drop(dropped);
        assert_eq!((names(), std::fs::read(&place).unwrap()), (1, b"other".to_vec()));
    }

    #[test]
    fn drafts_of_killed_writers_are_removed() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        for name in [".file.7-0.tmp", ".file.7.tmp", ".file2.7-0.tmp", "file.7.tmp", ".file.keep"] {
            std::fs::write(at(name), "half").unwrap();
        }
        let held = Draft::create(&at("file")).unwrap();
        let next = Draft::create(&at("file")).unwrap();
        assert_eq!([".file.7-0.tmp", ".file.7.tmp"].map(|name| at(name).exists()), [false; 2]);
        assert_eq!([".file2.7-0.tmp", "file.7.tmp", ".file.keep"].map(|name| at(name).exists()), [true; 3]);
        assert!(held.path().exists() && next.path().exists());
    }
}
