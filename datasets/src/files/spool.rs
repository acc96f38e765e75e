//! Inputs that can be read only once: standard input, pipes and devices. What a job may need again is copied to an
//! unnamed file while it is read, so that such an input means what a file means.
//!
//! A thread opens the source, reads it and writes the file. Readers follow in the file. They wait for bytes, and stop
//! waiting when the job is over. Opening a named pipe without a writer, or reading a silent pipe, therefore holds up
//! nobody. The system removes the file when the last handle is dropped, even if the process is killed.
//!
//! Memory: 256 KiB. Disk: the bytes of the source, in the directory of the caller. Cost: the bytes are written once,
//! and readers usually find them in the cache of the system.

use std::fmt;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use rawzip::{FileReader, ReaderAt};

use crate::Error;
use crate::files::source::Source;

/// The number of bytes that are copied at once.
const BLOCK_BYTES: usize = 256 << 10;
/// The time after which a waiting reader looks whether the job is over.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Where a job keeps the bytes of inputs that can be read only once, and whether the job is over. Cheap to clone.
#[derive(Clone)]
pub struct Spill {
    directory: PathBuf,
    is_over: Arc<dyn Fn() -> bool + Send + Sync>,
}

impl Spill {
    /// Temporary files go to `directory`. Once `is_over` is true, readers that wait for bytes return an error.
    pub fn new(directory: &Path, is_over: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self { directory: directory.to_owned(), is_over: Arc::new(is_over) }
    }

    fn error(&self, source: io::Error) -> Error {
        Error::Spill { directory: self.directory.clone(), source }
    }
}

impl Default for Spill {
    /// The directory of the system for temporary files. Readers wait without an end.
    fn default() -> Self {
        Self::new(&std::env::temp_dir(), || false)
    }
}

impl fmt::Debug for Spill {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Spill").field(&self.directory).finish()
    }
}

/// The temporary file cannot be written or read. Readers return this inside an [`io::Error`], because they know only
/// the input; [`Error::io`] takes it out again.
#[derive(Debug, thiserror::Error)]
#[error("temporary files in {}: {source}", directory.display())]
pub(crate) struct SpillFailed {
    pub(crate) directory: PathBuf,
    pub(crate) source: io::Error,
}

/// The bytes of a source, copied to an unnamed file. A handle, cheap to clone.
#[derive(Clone)]
pub(crate) struct Spool(Arc<Shared>);

struct Shared {
    file: File,
    reader: FileReader,
    spill: Spill,
    copied: Mutex<Copied>,
    grown: Condvar,
}

/// The number of bytes in the file, and how the copy ended.
#[derive(Default)]
struct Copied {
    bytes: u64,
    end: Option<Result<(), Failed>>,
}

/// What the system refused.
struct Failed {
    error: io::Error,
    is_of_spill: bool,
}

impl Shared {
    fn copied(&self) -> MutexGuard<'_, Copied> {
        self.copied.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn error(&self, Failed { error, is_of_spill }: &Failed) -> io::Error {
        let source = match error.raw_os_error() {
            Some(number) => io::Error::from_raw_os_error(number),
            None => io::Error::new(error.kind(), error.to_string()),
        };
        if *is_of_spill { self.of_spill(source) } else { source }
    }

    fn of_spill(&self, source: io::Error) -> io::Error {
        io::Error::new(source.kind(), SpillFailed { directory: self.spill.directory.clone(), source })
    }

    /// Waits until more than `bytes` bytes are in the file, or all. Returns the number of bytes in the file.
    fn wait_for(&self, bytes: u64) -> io::Result<u64> {
        let mut copied = self.copied();
        loop {
            match &copied.end {
                _ if copied.bytes > bytes => return Ok(copied.bytes),
                Some(Ok(())) => return Ok(copied.bytes),
                Some(Err(failed)) => return Err(self.error(failed)),
                // An interruption would be tried again, so this is none.
                None if (self.spill.is_over)() => return Err(io::Error::other("the job is over")),
                None => {}
            }
            copied = self.grown.wait_timeout(copied, LOOK_EVERY).map_or_else(|error| error.into_inner().0, |it| it.0);
        }
    }
}

impl Spool {
    /// Begins to copy what `open` opens.
    pub(crate) fn begin(
        open: impl FnOnce() -> io::Result<Box<dyn Read + Send>> + Send + 'static,
        spill: &Spill,
    ) -> Result<Self, Error> {
        let file = tempfile::tempfile_in(&spill.directory).map_err(|error| spill.error(error))?;
        let reader = file.try_clone().map_err(|error| spill.error(error))?.into();
        let shared = Shared { file, reader, spill: spill.clone(), copied: Mutex::default(), grown: Condvar::new() };
        let spool = Spool(Arc::new(shared));
        let copying = Copying(Arc::downgrade(&spool.0));
        let named = thread::Builder::new().name("spool".to_owned());
        named.spawn(move || copying.run(open)).map_err(|error| spill.error(error))?;
        Ok(spool)
    }

    /// The bytes in order.
    pub(crate) fn reader(&self) -> Box<dyn Read + Send> {
        Box::new(Following { spool: self.clone(), at: 0 })
    }

    /// All bytes by range, once they are there.
    pub(crate) fn source(&self) -> io::Result<Source> {
        let mut bytes = 0;
        loop {
            match self.0.wait_for(bytes)? {
                more if more > bytes => bytes = more,
                _ => break,
            }
        }
        self.0.file.try_clone().and_then(Source::of_file).map_err(|error| self.0.of_spill(error))
    }
}

impl fmt::Debug for Spool {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Spool").field(&self.0.spill).finish()
    }
}

/// A reader that follows the copy.
struct Following {
    spool: Spool,
    at: u64,
}

impl Read for Following {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let shared = &self.spool.0;
        let left = shared.wait_for(self.at)?.saturating_sub(self.at);
        let length = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let count = shared.reader.read_at(&mut buffer[..length], self.at).map_err(|error| shared.of_spill(error))?;
        self.at += count as u64;
        Ok(count)
    }
}

/// The thread that copies. It ends when nobody holds the spool any more.
struct Copying(Weak<Shared>);

impl Copying {
    fn run(self, open: impl FnOnce() -> io::Result<Box<dyn Read + Send>>) {
        let of_source = |error| Failed { error, is_of_spill: false };
        let end = open().map_err(of_source).and_then(|mut source| {
            let mut block = vec![0; BLOCK_BYTES];
            loop {
                let count = match source.read(&mut block) {
                    Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                    read => read.map_err(of_source)?,
                };
                let Some(shared) = self.0.upgrade().filter(|_| count > 0) else { return Ok(()) };
                let written = (&shared.file).write_all(&block[..count]);
                written.map_err(|error| Failed { error, is_of_spill: true })?;
                shared.copied().bytes += count as u64;
                shared.grown.notify_all();
            }
        });
        self.end(end);
    }

    fn end(&self, end: Result<(), Failed>) {
        if let Some(shared) = self.0.upgrade() {
            shared.copied().end.get_or_insert(end);
            shared.grown.notify_all();
        }
    }
}

impl Drop for Copying {
    /// Readers do not wait for a thread that has panicked.
    fn drop(&mut self) {
        self.end(Err(Failed { error: io::Error::other("the copy has ended early"), is_of_spill: false }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

    /// Bytes that come when they are sent.
    struct Sent(std::sync::mpsc::Receiver<Vec<u8>>);

    impl Read for Sent {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let bytes = self.0.recv().unwrap_or_default();
            buffer[..bytes.len()].copy_from_slice(&bytes);
            Ok(bytes.len())
        }
    }

    #[test]
    fn what_comes_once_is_read_again_and_by_range() {
        let (send, sent) = std::sync::mpsc::channel();
        let spool = Spool::begin(move || Ok(Box::new(Sent(sent))), &Spill::default()).unwrap();
        let mut first = spool.reader();
        let mut read = [0; 8];
        for word in ["one", "three", "five"] {
            send.send(word.as_bytes().to_vec()).unwrap();
            assert_eq!(first.read(&mut read).unwrap(), word.len(), "a reader does not wait for the end");
            assert_eq!(&read[..word.len()], word.as_bytes());
        }
        drop(send);
        assert_eq!(first.read(&mut read).unwrap(), 0);
        let mut text = String::new();
        spool.reader().read_to_string(&mut text).unwrap();
        assert_eq!(text, "onethreefive");
        assert_eq!(spool.source().unwrap().read(3..8).unwrap(), b"three");
    }

    #[test]
    fn nobody_waits_longer_than_the_job_lasts() {
        let (send, sent) = std::sync::mpsc::channel();
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let spill = Spill::new(&std::env::temp_dir(), move || over.load(SeqCst));
        let spool = Spool::begin(move || Ok(Box::new(Sent(sent))), &spill).unwrap();
        let waiting = spool.clone();
        let reading = thread::spawn(move || waiting.reader().read(&mut [0]).unwrap_err().to_string());
        is_over.store(true, SeqCst);
        assert_eq!(reading.join().unwrap(), "the job is over");
        assert!(spool.source().is_err());
        drop(send);
    }

    #[test]
    fn errors_name_the_place_that_refused() {
        let here = Path::new("crawl.jsonl");
        let refused = || Err(io::Error::from(ErrorKind::PermissionDenied));
        let of_source = Spool::begin(refused, &Spill::default()).unwrap().reader().read(&mut [0]).unwrap_err();
        assert!(matches!(Error::io(here, of_source), Error::Io { path, .. } if path == here));
        let nowhere = Spill::new(Path::new("/nowhere"), || false);
        let error = Spool::begin(|| Ok(Box::new(io::empty())), &nowhere).unwrap_err();
        assert!(error.to_string().starts_with("temporary files in /nowhere: "), "{error}");
        let full = SpillFailed { directory: "/full".into(), source: io::Error::from_raw_os_error(28) };
        let error = Error::io(here, io::Error::new(ErrorKind::StorageFull, full));
        assert!(matches!(&error, Error::Spill { directory, .. } if directory == Path::new("/full")), "{error}");
    }
}
