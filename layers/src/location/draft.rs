//! Files and directories that appear complete or not at all. A draft is written beside its target, and renamed when it
//! is complete and durable.
//!
//! ```text
//! .edges.csv.4711-0.webstrata-draft      a file: each draft has a unique name
//! .edges.webstrata-draft/LOCK            a directory: one draft for each target; many processes may fill it
//! ```
//!
//! A writer holds a lock on its draft, and the lock ends with the process, however the process ends. A draft without a
//! lock was therefore left by a killed writer. Every writer that begins a draft in a directory removes such drafts
//! there. A draft that is dropped is removed. A named pipe or a device is written directly, without a draft. If the
//! target is a symbolic link to a file, the file is replaced.
//!
//! A process that is ended by a signal drops nothing. Such a process first calls [`Draft::forsake_all`], which removes
//! all drafts of the process. `HELD` lists these drafts.
//!
//! If the file system has no locks, drafts of killed writers stay.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::location::regular;

/// The end of the name of a draft.
const ENDING: &str = ".webstrata-draft";
/// The file that is locked in the draft of a directory.
const LOCK: &str = "LOCK";
/// The number of attempts to remove a draft that other writers fill at the same time.
const FORSAKEN_TRIES: usize = 5;

/// The number of drafts that this process has begun.
static BEGUN: AtomicU64 = AtomicU64::new(0);
/// The drafts of this process that are neither finished nor removed.
static HELD: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

fn held() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes a draft and adds it to the drafts of this process. Waits while another thread holds the lock of [`HELD`].
fn begun<T>(path: &Path, make: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let mut held = held();
    let made = make()?;
    held.insert(path.to_owned());
    Ok(made)
}

/// A file or directory that is being written; see the head of this file.
///
/// ```
/// use std::io::Write;
/// use webstrata_layers::Draft;
///
/// let dir = tempfile::tempdir()?;
/// let target = dir.path().join("edges.csv");
/// let draft = Draft::create(&target)?;
/// draft.file().write_all(b"source,target\n")?;
/// assert!(!target.exists());
/// draft.finish()?;
/// assert_eq!(std::fs::read(&target)?, b"source,target\n");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Draft {
    /// The file. For a directory, its lock.
    file: File,
    path: PathBuf,
    target: PathBuf,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    File,
    Directory,
    /// Not a draft: a pipe or a device that is written directly, or a draft that was finished. Never renamed or
    /// removed.
    Place,
}

impl Draft {
    /// Removes the drafts in a directory that no writer holds any more.
    ///
    /// # Errors
    /// If the directory cannot be read.
    pub fn clear(directory: &Path) -> io::Result<()> {
        // The drafts inside the draft of a directory were begun with the directory, perhaps by other machines.
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
            // The lock is held until the draft is gone. Another process that clears may be first, and drafts of other
            // users may not be writable.
            if let Ok(held) = regular::open_with(&lock, File::options().write(true).create(is_directory))
                && held.try_lock().is_ok()
            {
                let _ = if is_directory { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
            }
        }
        Ok(())
    }

    /// Begins a file, and removes drafts of killed writers in its directory.
    ///
    /// # Errors
    /// Errors of the operating system; [`ErrorKind::IsADirectory`] if the target is a directory.
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

    /// Writes a small file and replaces the target. A symbolic link, a named pipe or a device is replaced, too.
    ///
    /// # Errors
    /// Errors of the operating system.
    pub fn write(target: &Path, bytes: &[u8]) -> io::Result<()> {
        let draft = Self::over(target.to_owned())?;
        draft.file().write_all(bytes)?;
        draft.finish()
    }

    /// Begins a file that will replace the target.
    fn over(target: PathBuf) -> io::Result<Self> {
        Self::clear(directory_of(&target))?;
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

    /// Begins a directory, and removes drafts of killed writers beside it.
    ///
    /// # Errors
    /// Errors of the operating system; [`ErrorKind::AlreadyExists`] if the target exists, [`ErrorKind::ResourceBusy`]
    /// if another process has a draft of the same directory.
    pub fn directory(target: &Path) -> io::Result<Self> {
        if target.file_name().is_none() || fs::symlink_metadata(target).is_ok() {
            return Err(ErrorKind::AlreadyExists.into());
        }
        Self::clear(directory_of(target))?;
        let path = Self::directory_of(target);
        loop {
            match begun(&path, || fs::create_dir(&path)) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => return Err(ErrorKind::ResourceBusy.into()),
                made => made?,
            }
            let lock = path.join(LOCK);
            let file = match File::options().write(true).create(true).truncate(false).open(&lock) {
                // Another writer that clears may have removed the directory: then begin again.
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                file => file?,
            };
            if is_locked(&file, &lock)? {
                return Ok(Self { file, path, target: target.to_owned(), kind: Kind::Directory });
            }
        }
    }

    /// The path of the draft of a directory, also for other processes that write into the draft.
    pub fn directory_of(target: &Path) -> PathBuf {
        beside(target, "")
    }

    /// Begins a directory for temporary files. The directory is removed when the draft is dropped.
    ///
    /// # Errors
    /// Errors of the operating system.
    pub fn temporary(around: &Path) -> io::Result<Self> {
        Self::directory(&around.join(format!("{}-{}", process::id(), BEGUN.fetch_add(1, Ordering::Relaxed))))
    }

    /// The path of the draft.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path after [`Draft::finish`].
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// The file, positioned at its end.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// The names of the files in the draft of a directory, without the lock.
    ///
    /// # Errors
    /// Errors of the operating system.
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        let names = fs::read_dir(&self.path)?.map(|entry| Ok(entry?.file_name()));
        names.filter(|name| name.as_ref().map_or(true, |name| name != LOCK)).collect()
    }

    /// Makes the draft durable and renames it to its target.
    ///
    /// # Errors
    /// Errors of the operating system.
    pub fn finish(mut self) -> io::Result<()> {
        if self.kind == Kind::File {
            self.file.sync_all()?;
        }
        if self.put()? {
            // If directories cannot be synced, a crash of the machine may lose the name.
            let _ = File::open(directory_of(&self.target)).and_then(|directory| directory.sync_all());
        }
        Ok(())
    }

    /// Renames the draft to its target without waiting for the disk. The result outlives the process, however the
    /// process ends. A crash of the machine may remove it, or leave only a part of it.
    ///
    /// # Errors
    /// Errors of the operating system.
    pub fn finish_unsynced(mut self) -> io::Result<()> {
        self.put().map(drop)
    }

    /// Renames the draft to its target. Returns whether a rename was necessary.
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

    /// Removes all drafts of this process, which must end now: from this call on, a thread that begins a draft waits
    /// forever.
    pub fn forsake_all() {
        let held = held();
        for path in held.iter() {
            // Other processes may still write into a directory. The next writer clears the rest.
            let is_gone = |path: &Path| if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
            (0..FORSAKEN_TRIES).any(|_| is_gone(path).is_ok() || fs::symlink_metadata(path).is_err());
        }
        std::mem::forget(held);
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // The next writer clears the rest.
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

/// Whether `name` is the name of a draft of the file `place` in the same directory.
pub(crate) fn is_of(name: &str, place: &str) -> bool {
    let own = name.strip_prefix('.').and_then(|name| name.strip_prefix(place)?.strip_suffix(ENDING));
    own.is_some_and(|own| own.starts_with('.'))
}

/// Locks a new file and returns whether the file still exists: another writer that clears may have removed it. If this
/// cannot be known, it is an error, because a caller that tried again forever would fill the directory.
fn is_locked(file: &File, path: &Path) -> io::Result<bool> {
    // Without locks, no writer clears.
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
        // Two drafts of the same file at once: the draft that is finished last stays.
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
        Draft::clear(directory.path()).unwrap();
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
