//! A store in a directory. Files are written in place and synced before they count. A file that replaces another file
//! is written as a [`Draft`].
//!
//! The lock is a lock of the operating system on the file LOCK. It ends with the process, however the process ends. The
//! file holds the text of the writer while the writer works, for the message to a second writer, and is empty
//! afterwards. Leases are shared locks on manifests.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use crate::error::Error;
use crate::location::body::Body;
use crate::location::draft::Draft;
use crate::location::lease::{Lease, Leased, Retiring};
use crate::location::names::{LOCK, manifest_name};
use crate::location::regular;
use crate::location::{Lock, Storage, Version};

/// The most bytes of the text of a lock that a message quotes.
const OWNER_MAX: u64 = 1000;

/// A directory on this machine.
pub(crate) struct Directory(pub(crate) PathBuf);

impl Directory {
    /// Creates the parent directories of a file.
    fn make_room(&self, path: &Path) -> Result<(), Error> {
        make_directory(path.parent().unwrap_or(&self.0))
    }

    /// Syncs the parent directories of a file, the innermost first and the directory of the store last.
    fn sync_up(&self, path: &Path) -> Result<(), Error> {
        let inside = path.ancestors().skip(1).take_while(|dir| *dir != self.0);
        inside.chain([self.0.as_path()]).try_for_each(sync_dir)
    }

    /// Fails if a file is in the place of the directory or of one of its parents.
    fn check_is_no_file(&self) -> Result<(), Error> {
        match self.0.ancestors().find(|path| path.exists()) {
            Some(path) if !path.is_dir() => Err(Error::NotADirectory { path: path.to_owned() }),
            _ => Ok(()),
        }
    }

    /// Locks a manifest against all leases; `None` if there is a lease.
    fn lock_manifest(&self, epoch: u64, options: &OpenOptions) -> Result<Option<File>, Error> {
        let path = self.path(&manifest_name(epoch));
        let file = regular::open_with(&path, options).map_err(Error::io(&path))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(source)) => Err(Error::Io { path, source }),
        }
    }
}

impl Storage for Directory {
    fn directory(&self) -> Option<&Path> {
        Some(&self.0)
    }

    fn path(&self, name: &str) -> PathBuf {
        if name.is_empty() { self.0.clone() } else { self.0.join(name) }
    }

    fn prepare(&self) -> Result<bool, Error> {
        self.check_is_no_file()?;
        let is_missing = !self.0.try_exists().map_err(Error::io(&self.0))?;
        make_directory(&self.0)?;
        Ok(is_missing)
    }

    fn forsake(&self, made: bool) -> Result<(), Error> {
        self.remove(LOCK)?;
        if made {
            // If the directory stays, it is empty and not a store.
            let _ = fs::remove_dir(&self.0);
        }
        Ok(())
    }

    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        let path = self.path(name);
        match regular::read(&path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(source) => {
                self.check_is_no_file()?;
                Err(Error::Io { path, source })
            }
        }
    }

    fn body(&self, name: &str) -> Result<Body, Error> {
        Ok(Body::of_file(self.path(name)))
    }

    /// Only a crash may leave a part of the file.
    fn create(&self, name: &str, bytes: &[u8]) -> Result<bool, Error> {
        let path = self.path(name);
        self.make_room(&path)?;
        let mut file = match File::create_new(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(false),
            Err(source) => return Err(Error::Io { path, source }),
        };
        if let Err(source) = file.write_all(bytes).and_then(|()| file.sync_all()) {
            // The first error is the one to report.
            let _ = fs::remove_file(&path);
            return Err(Error::Io { path, source });
        }
        self.sync_up(&path)?;
        Ok(true)
    }

    fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        let path = self.path(name);
        self.make_room(&path)?;
        Draft::write(&path, bytes).map_err(Error::io(&path))?;
        // A draft may be in a directory that cannot be synced. A store may not.
        self.sync_up(&path)
    }

    fn read_version(&self, name: &str) -> Result<(Option<Vec<u8>>, Version), Error> {
        Ok((self.read(name)?, Version::default()))
    }

    fn replace_version(&self, name: &str, bytes: &[u8], version: &Version) -> Result<Option<Version>, Error> {
        self.replace(name, bytes).map(|()| Some(version.clone()))
    }

    fn names(&self, dir: &str) -> Result<Vec<String>, Error> {
        let path = self.path(dir);
        let entries = match fs::read_dir(&path).and_then(|entries| entries.collect::<Result<Vec<_>, _>>()) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(Error::Io { path, source }),
        };
        Ok(entries.into_iter().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect())
    }

    fn remove(&self, name: &str) -> Result<(), Error> {
        let path = self.path(name);
        match fs::remove_file(&path) {
            Ok(()) => sync_dir(path.parent().unwrap_or(&self.0)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(source) => Err(Error::Io { path, source }),
        }
    }

    fn remove_all(&self, dir: &str) -> Result<(), Error> {
        let path = self.path(dir);
        match fs::remove_dir_all(&path) {
            Err(source) if source.kind() != ErrorKind::NotFound => Err(Error::Io { path, source }),
            _ => Ok(()),
        }
    }

    fn begin(&self, name: &str, _: &Path) -> Result<(File, PathBuf), Error> {
        let path = self.path(name);
        self.make_room(&path)?;
        Ok((create(&path).map_err(Error::io(&path))?, path))
    }

    fn finish(&self, _: &str, _: File) -> Result<(), Error> {
        Ok(())
    }

    fn settle(&self, files: &[(&str, u64)]) -> Result<(), Error> {
        let mut directories = std::collections::BTreeSet::new();
        for &(name, expected) in files {
            let path = self.path(name);
            let file = regular::open(&path).map_err(Error::io(&path))?;
            let got = file.metadata().map_err(Error::io(&path))?.len();
            if got != expected {
                return Err(Error::Size { path, expected, got });
            }
            file.sync_all().map_err(Error::io(&path))?;
            directories.extend(path.ancestors().skip(1).take_while(|dir| *dir != self.0).map(Path::to_owned));
        }
        directories.iter().try_for_each(|dir| sync_dir(dir))?;
        sync_dir(&self.0)
    }

    fn modified(&self, name: &str) -> Result<Option<i64>, Error> {
        let path = self.path(name);
        let time = match fs::metadata(&path).and_then(|metadata| metadata.modified()) {
            Ok(time) => time,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(Error::Io { path, source }),
        };
        let since_1970 = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(Some(i64::try_from(since_1970.as_secs()).unwrap_or(i64::MAX)))
    }

    fn lease(&self, epoch: u64) -> Result<Leased, Error> {
        let path = self.path(&manifest_name(epoch));
        let file = match regular::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Leased::Gone),
            Err(source) => return Err(Error::Io { path, source }),
        };
        loop {
            match file.lock_shared() {
                Ok(()) => return Ok(Leased::Held(Lease::new(file))),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Ok(Leased::Unable),
            }
        }
    }

    fn is_leased(&self, epoch: u64) -> Result<bool, Error> {
        Ok(self.lock_manifest(epoch, File::options().read(true))?.is_none())
    }

    /// Reads the list of locks of the system, if there is one. The list identifies files by their inode numbers.
    fn holders(&self, epoch: u64) -> Result<Vec<String>, Error> {
        let path = self.path(&manifest_name(epoch));
        let Ok(locks) = fs::read_to_string("/proc/locks") else { return Ok(Vec::new()) };
        let number = match fs::metadata(&path) {
            Ok(metadata) => file_number(&metadata),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(Error::Io { path, source }),
        };
        let processes = locks.lines().filter_map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let file = words.get(5)?.rsplit(':').next()?.parse::<u64>().ok()?;
            (words[1] == "FLOCK" && words[3] == "READ" && Some(file) == number).then(|| words[4].to_owned())
        });
        let processes: std::collections::BTreeSet<String> = processes.collect();
        Ok(processes.into_iter().map(|process| described(&process)).collect())
    }

    /// Some network file systems require that a file with an exclusive lock is open for writing.
    fn retire(&self, epoch: u64) -> Result<Option<Retiring>, Error> {
        Ok(self.lock_manifest(epoch, File::options().read(true).write(true))?.map(Retiring::new))
    }

    fn lock(&self, owner: &str) -> Result<Box<dyn Lock>, Error> {
        self.lock_file(LOCK, owner)
    }

    fn hold(&self, name: &str) -> Result<Box<dyn Lock>, Error> {
        self.lock_file(name, &format!("process {}", std::process::id()))
    }
}

impl Directory {
    /// Locks a file for this process alone, and writes the text of the owner into the file.
    fn lock_file(&self, name: &str, owner: &str) -> Result<Box<dyn Lock>, Error> {
        let path = self.path(name);
        self.make_room(&path)?;
        let mut options = File::options();
        let options = options.create(true).truncate(false).read(true).write(true);
        let file = regular::open_with(&path, options).map_err(Error::io(&path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut text = Vec::new();
                // Without the text, the message is shorter. On some systems, other processes cannot read a locked file.
                let _ = file.take(OWNER_MAX).read_to_end(&mut text);
                let owner = String::from_utf8_lossy(&text).trim().to_owned();
                return Err(Error::Locked { path, owner, lease: None });
            }
            Err(TryLockError::Error(source)) => return Err(Error::Io { path, source }),
        }
        let lock = DirectoryLock(file);
        // The text is only for messages. A full disk must not prevent a garbage collection, which makes room.
        let _ = lock.write(owner);
        Ok(Box::new(lock))
    }
}

/// The number of a file in the list of locks.
fn file_number(metadata: &fs::Metadata) -> Option<u64> {
    #[cfg(unix)]
    return Some(std::os::unix::fs::MetadataExt::ino(metadata));
    #[cfg(not(unix))]
    {
        let _ = metadata;
        None
    }
}

/// A process with its command: the program and its first arguments.
fn described(process: &str) -> String {
    let command = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    let words: Vec<String> =
        command.split(|&byte| byte == 0).take(3).map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    let words = words.join(" ");
    if words.trim().is_empty() { format!("process {process}") } else { format!("process {process} ({})", words.trim()) }
}

/// A lock of the operating system, which ends when the file is closed.
struct DirectoryLock(File);

impl DirectoryLock {
    fn write(&self, text: &str) -> io::Result<()> {
        let mut file = &self.0;
        file.set_len(0)?;
        file.rewind()?;
        file.write_all(text.as_bytes())
    }
}

impl Lock for DirectoryLock {
    fn check(&self) -> Result<(), Error> {
        Ok(())
    }
}

impl Drop for DirectoryLock {
    fn drop(&mut self) {
        // The next writer writes its own text.
        let _ = self.write("");
    }
}

/// Creates a directory and its parents if they do not exist.
fn make_directory(dir: &Path) -> Result<(), Error> {
    match fs::create_dir_all(dir) {
        // Something exists at the path: a directory that the system does not let us inspect, or another kind of file.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => match fs::metadata(dir) {
            Ok(found) if found.is_dir() => Ok(()),
            Err(refused) if refused.kind() != ErrorKind::NotFound => Err(Error::io(dir)(refused)),
            _ => Err(Error::io(dir)(error)),
        },
        made => made.map_err(Error::io(dir)),
    }
}

/// Opens a file for writing, and empties it.
fn create(path: &Path) -> io::Result<File> {
    regular::open_with(path, File::options().write(true).create(true).truncate(true))
}

fn sync_dir(dir: &Path) -> Result<(), Error> {
    File::open(dir).and_then(|dir| dir.sync_all()).map_err(Error::io(dir))
}
