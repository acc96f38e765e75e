//! Files and directories that are there whole or not at all: a draft beside their place, renamed when it is whole and
//! durable.
//!
//! ```text
//! .edges.csv.4711-0.webstrata-draft      a file: each draft has a name of its own
//! .edges.webstrata-draft/LOCK            a directory: one draft a place, which many processes may fill
//! ```
//!
//! A writer holds a lock on its draft, and the lock goes with the process, however that ends. So drafts of killed
//! writers are known, and whoever begins a draft in a directory removes them there. A draft that is dropped goes away.
//! In place of a draft, a named pipe or a device is written as it is, and of a link to a file, the file is replaced.
//!
//! A process that a signal ends drops nothing. Such a process calls [`Draft::forsake_all`] first, which knows all
//! drafts of the process, as each of them begins and ends in [`HELD`].
//!
//! Where the file system has no locks, drafts of killed writers stay.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::location::regular;

/// How the name of a draft ends.
const ENDING: &str = ".webstrata-draft";
/// What is locked of a directory.
const LOCK: &str = "LOCK";
/// How often a draft is removed that others fill meanwhile.
const FORSAKEN_TRIES: usize = 5;

/// How many drafts this process began.
static BEGUN: AtomicU64 = AtomicU64::new(0);
/// The drafts of this process that are neither in their place nor gone.
static HELD: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

fn held() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes a draft and adds it to those of this process. No draft is made while the lock is held elsewhere.
fn begun<T>(path: &Path, make: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let mut held = held();
    let made = make()?;
    held.insert(path.to_owned());
    Ok(made)
}

/// What is being written; see the head of this file.
#[derive(Debug)]
pub struct Draft {
    /// The file; of a directory its lock.
    file: File,
    path: PathBuf,
    target: PathBuf,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    File,
    Directory,
    /// No draft, but what the place leads to: it is neither renamed nor removed. A draft that was finished, too.
    Place,
}

impl Draft {
    /// Begins a file, and removes what killed writers have left in its directory.
    ///
    /// # Errors
    /// What the system refuses; [`ErrorKind::IsADirectory`] where one is in the way.
    pub fn create(target: &Path) -> io::Result<Self> {
        let found = fs::metadata(target).ok();
        if target.file_name().is_none() || found.as_ref().is_some_and(fs::Metadata::is_dir) {
            return Err(ErrorKind::IsADirectory.into());
        }
        if found.as_ref().is_some_and(|found| !found.is_file()) {
            let file = File::options().write(true).open(target)?;
            return Ok(Self { file, path: target.to_owned(), target: target.to_owned(), kind: Kind::Place });
        }
        Self::over(if target.is_symlink() && found.is_some() { fs::canonicalize(target)? } else { target.to_owned() })
    }

    /// Writes a small file over what is there. Of a link, the link is replaced, and a named pipe or a device too.
    ///
    /// # Errors
    /// What the system refuses.
    pub fn write(target: &Path, bytes: &[u8]) -> io::Result<()> {
        let draft = Self::over(target.to_owned())?;
        draft.file().write_all(bytes)?;
        draft.finish()
    }

    /// Begins a file that will take the place of what has its name then.
    fn over(target: PathBuf) -> io::Result<Self> {
        clear(directory_of(&target))?;
        loop {
            let path = beside(&target, &format!(".{}-{}", process::id(), BEGUN.fetch_add(1, Ordering::Relaxed)));
            let made = begun(&path, || File::options().read(true).write(true).create_new(true).open(&path));
            let file = match made {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                file => file?,
            };
            let draft = Self { file, path, target: target.clone(), kind: Kind::File };
            if is_locked(&draft.file, &draft.path)? {
                return Ok(draft);
            }
        }
    }

    /// Begins a directory, and removes what killed writers have left beside it.
    ///
    /// # Errors
    /// What the system refuses; [`ErrorKind::AlreadyExists`] where the place is taken, [`ErrorKind::ResourceBusy`]
    /// where another process has a draft of it.
    pub fn directory(target: &Path) -> io::Result<Self> {
        if target.file_name().is_none() || fs::symlink_metadata(target).is_ok() {
            return Err(ErrorKind::AlreadyExists.into());
        }
        clear(directory_of(target))?;
        let path = Self::directory_of(target);
        loop {
            match begun(&path, || fs::create_dir(&path)) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => return Err(ErrorKind::ResourceBusy.into()),
                made => made?,
            }
            let lock = path.join(LOCK);
            let file = match File::options().write(true).create(true).truncate(false).open(&lock) {
                // Who clears may have come between: then another one is begun.
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                file => file?,
            };
            if is_locked(&file, &lock)? {
                return Ok(Self { file, path, target: target.to_owned(), kind: Kind::Directory });
            }
        }
    }

    /// Where the draft of a directory is, also for other processes that write into it.
    pub fn directory_of(target: &Path) -> PathBuf {
        beside(target, "")
    }

    /// Begins a directory for temporary files, which goes when this is dropped.
    ///
    /// # Errors
    /// What the system refuses.
    pub fn temporary(around: &Path) -> io::Result<Self> {
        Self::directory(&around.join(format!("{}-{}", process::id(), BEGUN.fetch_add(1, Ordering::Relaxed))))
    }

    /// Where it is now.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where it will be.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// The file, at its end.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// What a directory holds.
    ///
    /// # Errors
    /// What the system refuses.
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        let names = fs::read_dir(&self.path)?.map(|entry| Ok(entry?.file_name()));
        names.filter(|name| name.as_ref().map_or(true, |name| name != LOCK)).collect()
    }

    /// Makes it durable, and puts it in its place.
    ///
    /// # Errors
    /// What the system refuses.
    pub fn finish(mut self) -> io::Result<()> {
        if self.kind == Kind::File {
            self.file.sync_all()?;
        }
        if self.put()? {
            // Where directories cannot be synced, a crash of the machine may take the name away.
            let _ = File::open(directory_of(&self.target)).and_then(|directory| directory.sync_all());
        }
        Ok(())
    }

    /// Puts it in its place without waiting for the disk. It outlives this process, however that ends; a crash of the
    /// machine may take it away, or leave only a part of it.
    ///
    /// # Errors
    /// What the system refuses.
    pub fn finish_unsynced(mut self) -> io::Result<()> {
        self.put().map(drop)
    }

    /// Puts it in its place; says whether that is another one.
    fn put(&mut self) -> io::Result<bool> {
        match self.kind {
            Kind::Place => return Ok(false),
            Kind::File => {}
            Kind::Directory => fs::remove_file(self.path.join(LOCK))?,
        }
        fs::rename(&self.path, &self.target)?;
        self.kind = Kind::Place;
        held().remove(&self.path);
        Ok(true)
    }

    /// Removes all drafts of this process, for one that ends now: from here on, whoever begins a draft waits for ever.
    pub fn forsake_all() {
        let held = held();
        for path in held.iter() {
            // Others may still write into a directory; what stays is cleared by the next writer.
            let is_gone = |path: &Path| if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
            (0..FORSAKEN_TRIES).any(|_| is_gone(path).is_ok() || fs::symlink_metadata(path).is_err());
        }
        std::mem::forget(held);
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // What stays is cleared by the next writer.
        let _ = match self.kind {
            Kind::Place => Ok(()),
            Kind::File => fs::remove_file(&self.path),
            Kind::Directory => fs::remove_dir_all(&self.path),
        };
        if self.kind != Kind::Place {
            held().remove(&self.path);
        }
    }
}

/// Whether this is the name of a draft of a file with the name `place` in the same directory.
pub(crate) fn is_of(name: &str, place: &str) -> bool {
    let own = name.strip_prefix('.').and_then(|name| name.strip_prefix(place)?.strip_suffix(ENDING));
    own.is_some_and(|own| own.starts_with('.'))
}

/// Removes the drafts in a directory that nobody writes any more.
///
/// # Errors
/// A directory that cannot be read.
pub fn clear(directory: &Path) -> io::Result<()> {
    // The files of a directory that is a draft itself were begun with it, perhaps by other machines.
    if has_ending(directory) {
        return Ok(());
    }
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if !has_ending(&path) {
            continue;
        }
        let is_directory = fs::symlink_metadata(&path).is_ok_and(|found| found.is_dir());
        let lock = if is_directory { path.join(LOCK) } else { path.clone() };
        // The lock is held until the draft is gone. Whoever else clears may be first, and drafts of others may not be
        // ours.
        if let Ok(held) = regular::open_with(&lock, File::options().write(true).create(is_directory))
            && held.try_lock().is_ok()
        {
            let _ = if is_directory { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        }
    }
    Ok(())
}

/// Locks a file that was just made, and says whether it is still there: who clears may have come between. Where that
/// cannot be known, it is an error: whoever began another file for ever would fill the directory.
fn is_locked(file: &File, path: &Path) -> io::Result<bool> {
    // Without locks nobody clears.
    let _ = file.lock();
    path.try_exists()
}

fn has_ending(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    name.starts_with(b".") && name.ends_with(ENDING.as_bytes())
}

fn beside(target: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(target.file_name().unwrap_or_default());
    name.push(format!("{suffix}{ENDING}"));
    target.with_file_name(name)
}

fn directory_of(target: &Path) -> &Path {
    target.parent().filter(|directory| !directory.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_draft_is_in_its_place_when_it_is_finished_and_gone_when_it_is_dropped() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("file");
        // Two at a time of the same file: the last one stays.
        let (one, other) = (Draft::create(&place).unwrap(), Draft::create(&place).unwrap());
        one.file().write_all(b"one").unwrap();
        other.file().write_all(b"other").unwrap();
        assert!(!place.exists() && names(directory.path()).len() == 2);
        one.finish().unwrap();
        assert_eq!(fs::read(&place).unwrap(), b"one");
        other.finish().unwrap();
        drop(Draft::create(&place).unwrap());
        assert_eq!((names(directory.path()).len(), fs::read(&place).unwrap()), (1, b"other".to_vec()));
        assert_eq!(Draft::create(directory.path()).unwrap_err().kind(), ErrorKind::IsADirectory);

        let place = directory.path().join("parts");
        let parts = Draft::directory(&place).unwrap();
        assert_eq!(Draft::directory(&place).unwrap_err().kind(), ErrorKind::ResourceBusy);
        Draft::create(&Draft::directory_of(&place).join("part-0")).unwrap().finish().unwrap();
        assert_eq!(parts.names().unwrap(), ["part-0"]);
        parts.finish().unwrap();
        assert_eq!(names(&place), ["part-0"]);
        assert_eq!(Draft::directory(&place).unwrap_err().kind(), ErrorKind::AlreadyExists);
        drop(Draft::temporary(directory.path()).unwrap());
        assert_eq!(names(directory.path()), ["file", "parts"]);
    }

    #[test]
    fn a_draft_that_cannot_be_looked_at_is_an_error() {
        let file = tempfile::tempfile().unwrap();
        let [gone, refused] = [1, 5000].map(|length| PathBuf::from("x".repeat(length)));
        assert!(!is_locked(&file, &gone).unwrap());
        assert!(is_locked(&file, &refused).is_err());
    }

    #[test]
    fn drafts_of_killed_writers_are_removed() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let others = [".draft", "file.7.tmp", "x.webstrata-draft"];
        for name in others.iter().chain(&[".file.7-0.webstrata-draft", ".else.csv.8-0.webstrata-draft"]) {
            fs::write(at(name), "half").unwrap();
        }
        fs::create_dir(at(".parts.webstrata-draft")).unwrap();
        fs::write(at(".parts.webstrata-draft/part-0"), "half").unwrap();
        let held = Draft::create(&at("file")).unwrap();
        assert_eq!(names(directory.path()).len(), others.len() + 1);
        let next = (Draft::create(&at("file")).unwrap(), Draft::directory(&at("parts")).unwrap());
        clear(directory.path()).unwrap();
        assert!(held.path().exists() && next.0.path().exists() && next.1.path().exists());
        drop((held, next));
        assert_eq!(names(directory.path()), others);
    }

    #[test]
    fn a_file_that_is_written_whole_takes_the_place_of_what_is_there() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("file");
        Draft::write(&place, b"before").unwrap();
        let draft = Draft::create(&place).unwrap();
        let name = draft.path().file_name().unwrap().to_str().unwrap().to_owned();
        assert!(is_of(&name, "file") && !is_of(&name, "fil") && !is_of("file", "file") && !is_of(&name[1..], "file"));
        draft.file().write_all(b"unsynced").unwrap();
        draft.finish_unsynced().unwrap();
        assert_eq!(fs::read(&place).unwrap(), b"unsynced");
        #[cfg(unix)]
        {
            let link = directory.path().join("link");
            std::os::unix::fs::symlink("file", &link).unwrap();
            Draft::write(&link, b"after").unwrap();
            assert!(!link.is_symlink() && fs::read(&link).unwrap() == b"after");
            fs::remove_file(link).unwrap();
        }
        fs::create_dir(directory.path().join("other")).unwrap();
        assert!(Draft::write(&directory.path().join("other"), b"").is_err());
        assert_eq!(names(directory.path()), ["file", "other"]);
        assert_eq!(fs::read(&place).unwrap(), b"unsynced");
    }

    #[cfg(unix)]
    #[test]
    fn links_lead_to_the_file_that_is_replaced_and_devices_stay_what_they_are() {
        let directory = tempfile::tempdir().unwrap();
        let [file, link, null] = ["file", "link", "null"].map(|name| directory.path().join(name));
        fs::write(&file, "before").unwrap();
        std::os::unix::fs::symlink("file", &link).unwrap();
        std::os::unix::fs::symlink("/dev/null", &null).unwrap();
        for (place, bytes) in [(&link, "after"), (&null, "nothing")] {
            let draft = Draft::create(place).unwrap();
            draft.file().write_all(bytes.as_bytes()).unwrap();
            draft.finish().unwrap();
        }
        assert!(link.is_symlink() && null.is_symlink() && !Path::new("/dev/null").is_file());
        assert_eq!(fs::read(&file).unwrap(), b"after");
    }
}
