//! Checks of a mapped image where it is read: block by block, against the checksums of the bytes that were verified
//! when the image was opened.
//!
//! A mapped file may change under its reader. A disk may return other bytes when the operating system reads a page
//! again, or somebody may write to the file or truncate it. Stores of a mapped cell therefore keep their small parts
//! (indexes, tables, numbers) in memory, and read the large parts, records and blocks of URLs, through a [`Section`]. A
//! section verifies a block before its bytes are used. If the system cannot read a block, the result is an error, and
//! the process continues (`super::pages`). A verified block is not verified again until [`Guard::recheck`], which a
//! server calls every few seconds, or until the file has another time or size, which [`Guard::refresh`] checks. Between
//! two verifications, a page that the system drops and reads again is not noticed. What remains is a window of seconds,
//! and blocks that nobody reads; [`Guard::verify`] checks these.
//!
//! Memory: 4 bytes and a bit for each block of 4 KiB. Cost: a look-up of one bit for each record or block that is read;
//! the first time also the checksum of 4 KiB and a system call.

use std::fmt;
use std::fs::Metadata;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use bytes::Bytes;
use xxhash_rust::xxh3::xxh3_64;

use crate::error::Damage;
use crate::mapped::pages::Pages;

/// The size of a block in bytes: a page on most systems, the unit in which they read again.
pub const BLOCK: usize = 4096;

/// The number of blocks per system call if all blocks are read.
const ASKED_AT_ONCE: usize = 256;

/// Checks an image, or the part of it from an offset on. Without an image, everything counts as sound. Clones share
/// their state.
#[derive(Clone)]
pub struct Guard {
    image: Option<Arc<Blocks>>,
    /// [`Blocks::seen`] with one indirection less: each record looks it up.
    seen: Arc<[AtomicU64]>,
    /// The offset in the image at which the guarded bytes begin.
    start: usize,
}

impl Default for Guard {
    fn default() -> Self {
        Self { image: None, seen: Arc::new([]), start: 0 }
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Guard {{ blocks: {}, start: {} }}", self.blocks(), self.start)
    }
}

/// The blocks of a mapped image.
struct Blocks {
    path: PathBuf,
    bytes: Bytes,
    /// The pages, to check that bytes can be read before they are read.
    pages: Option<Pages>,
    /// The low halves of the blocks' checksums.
    sums: Box<[u32]>,
    /// A bit for each block: whether it was verified.
    seen: Arc<[AtomicU64]>,
    /// The state of the file when the blocks were last verified.
    file: Mutex<FileState>,
    /// Whether the file is shorter than the map. A read beyond its end would end the process.
    is_cut: AtomicBool,
}

/// The metadata that shows that somebody wrote to a file.
#[derive(Clone, Copy, PartialEq, Eq)]
struct FileState {
    inode: u64,
    bytes: u64,
    modified: Option<SystemTime>,
}

impl FileState {
    fn of(metadata: &Metadata) -> Self {
        #[cfg(unix)]
        let inode = std::os::unix::fs::MetadataExt::ino(metadata);
        #[cfg(not(unix))]
        let inode = 0;
        Self { inode, bytes: metadata.len(), modified: metadata.modified().ok() }
    }
}

/// Whether a block was verified.
#[inline]
fn is_seen(seen: &[AtomicU64], block: usize) -> bool {
    seen.get(block / 64).is_some_and(|word| word.load(Ordering::Relaxed) >> (block % 64) & 1 == 1)
}

fn sum_of(block: &[u8]) -> u32 {
    (xxh3_64(block) & 0xffff_ffff) as u32
}

impl Guard {
    /// Guards an image that is mapped from a file. The caller must verify the bytes after this call, so that the
    /// checksums are of the bytes that were written.
    ///
    /// # Errors
    /// [`Damage::Unreadable`].
    pub(crate) fn of(path: &Path, file: &Metadata, bytes: &Bytes, pages: Option<Pages>) -> Result<Self, Damage> {
        let mut sums = Vec::with_capacity(bytes.len().div_ceil(BLOCK));
        for blocks in bytes.chunks(ASKED_AT_ONCE * BLOCK) {
            let start = sums.len() * BLOCK;
            if pages.as_ref().is_some_and(|pages| !pages.can_be_read(start..start + blocks.len())) {
                return Err(Damage::Unreadable { block: sums.len() as u64 });
            }
            sums.extend(blocks.chunks(BLOCK).map(sum_of));
        }
        let seen: Arc<[AtomicU64]> = (0..sums.len().div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        let (path, file, is_cut) = (path.to_owned(), Mutex::new(FileState::of(file)), AtomicBool::new(false));
        let (bytes, sums) = (bytes.clone(), sums.into_boxed_slice());
        let image = Blocks { path, bytes, pages, sums, seen: seen.clone(), file, is_cut };
        Ok(Self { image: Some(Arc::new(image)), seen, start: 0 })
    }

    /// The guard of the bytes from an offset on.
    fn after(&self, bytes: usize) -> Self {
        Self { image: self.image.clone(), seen: self.seen.clone(), start: self.start + bytes }
    }

    /// Verifies the blocks of these bytes that were not verified yet.
    ///
    /// # Errors
    /// [`Damage::Changed`], [`Damage::Unreadable`] and [`Damage::Cut`].
    #[inline]
    fn check(&self, bytes: Range<usize>) -> Result<(), Damage> {
        let Some(image) = &self.image else { return Ok(()) };
        let (start, end) = (self.start + bytes.start, self.start + bytes.end);
        // Most reads are in one block that was verified before.
        if start / BLOCK + 1 == end.div_ceil(BLOCK) && is_seen(&self.seen, start / BLOCK) {
            return Ok(());
        }
        image.compare_unseen(start / BLOCK..end.div_ceil(BLOCK))
    }

    /// Checks the file. If it was written to, all blocks will be verified again; if it was truncated, no block is read
    /// any more. Cost: a system call.
    ///
    /// # Errors
    /// [`Damage::Cut`].
    pub fn refresh(&self) -> Result<(), Damage> {
        let Some(image) = &self.image else { return Ok(()) };
        // A file that was removed, or replaced by another file, stays mapped unchanged.
        if let Ok(metadata) = std::fs::metadata(&image.path) {
            let now = FileState::of(&metadata);
            let mut file = image.file.lock().unwrap_or_else(PoisonError::into_inner);
            if now != *file && now.inode == file.inode {
                if now.bytes < image.bytes.len() as u64 {
                    image.is_cut.store(true, Ordering::Relaxed);
                }
                *file = now;
                image.forget();
            }
        }
        if image.is_cut.load(Ordering::Relaxed) { Err(Damage::Cut) } else { Ok(()) }
    }

    /// Makes the next read of each block verify it again.
    pub fn recheck(&self) {
        self.image.iter().for_each(|image| image.forget());
    }

    /// The number of blocks; 0 for an image in memory.
    pub fn blocks(&self) -> usize {
        self.image.as_ref().map_or(0, |image| image.sums.len())
    }

    /// Verifies blocks, whether or not they were verified before.
    ///
    /// # Errors
    /// [`Damage::Changed`], [`Damage::Unreadable`] and [`Damage::Cut`].
    pub fn verify(&self, blocks: Range<usize>) -> Result<(), Damage> {
        self.refresh()?;
        let Some(image) = &self.image else { return Ok(()) };
        (blocks.start..blocks.end.min(image.sums.len())).try_for_each(|block| image.compare(block))
    }
}

impl Blocks {
    fn forget(&self) {
        self.seen.iter().for_each(|word| word.store(0, Ordering::Relaxed));
    }

    #[cold]
    fn compare_unseen(&self, mut blocks: Range<usize>) -> Result<(), Damage> {
        blocks.try_for_each(|block| if is_seen(&self.seen, block) { Ok(()) } else { self.compare(block) })
    }

    fn compare(&self, block: usize) -> Result<(), Damage> {
        if self.is_cut.load(Ordering::Relaxed) {
            return Err(Damage::Cut);
        }
        let start = (block * BLOCK).min(self.bytes.len());
        let end = (start + BLOCK).min(self.bytes.len());
        if self.pages.as_ref().is_some_and(|pages| start < end && !pages.can_be_read(start..end)) {
            return Err(Damage::Unreadable { block: block as u64 });
        }
        let bytes = &self.bytes[start..end];
        // Beyond the end there are no blocks, and nothing is read.
        if self.sums.get(block).is_some_and(|&sum| sum != sum_of(bytes)) {
            return Err(Damage::Changed { block: block as u64 });
        }
        if let Some(word) = self.seen.get(block / 64) {
            word.fetch_or(1 << (block % 64), Ordering::Relaxed);
        }
        Ok(())
    }
}

/// A section of an image, or a part of a section, whose reads are checked.
#[derive(Clone, Debug, Default)]
pub struct Section {
    bytes: Bytes,
    guard: Guard,
}

impl Section {
    /// A section that begins at an offset of a guarded image.
    pub(crate) fn new(bytes: Bytes, guard: &Guard, start: usize) -> Self {
        Self { bytes, guard: guard.after(start) }
    }

    /// The bytes, for callers that check the bytes they read.
    #[inline]
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The bytes, for reading without checks.
    pub fn into_bytes(self) -> Bytes {
        self.bytes
    }

    /// The part of the section from `start` on.
    pub fn starting_at(&self, start: usize) -> Self {
        let start = start.min(self.bytes.len());
        Self { bytes: self.bytes.slice(start..), guard: self.guard.after(start) }
    }

    /// A part for reading without checks: copied into memory if the section is mapped.
    pub fn resident(&self, part: Bytes) -> Bytes {
        if self.is_guarded() { Bytes::copy_from_slice(&part) } else { part }
    }

    /// Whether reads are checked.
    #[inline]
    pub fn is_guarded(&self) -> bool {
        self.guard.image.is_some()
    }

    /// Verifies the blocks of these bytes that were not verified yet. Bytes beyond the end are ignored.
    ///
    /// # Errors
    /// [`Damage::Changed`], [`Damage::Unreadable`] and [`Damage::Cut`].
    #[inline]
    pub fn check(&self, start: usize, end: usize) -> Result<(), Damage> {
        self.guard.check(start..end.min(self.bytes.len()))
    }
}

impl From<Bytes> for Section {
    fn from(bytes: Bytes) -> Self {
        Self { bytes, guard: Guard::default() }
    }
}

impl From<Vec<u8>> for Section {
    fn from(bytes: Vec<u8>) -> Self {
        Bytes::from(bytes).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_compared_when_it_is_read_first_and_when_the_file_has_changed() {
        let mut bytes: Vec<u8> = (0..3 * BLOCK + 100).map(|at| u8::try_from(at % 251).unwrap()).collect();
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), &bytes).unwrap();
        let metadata = file.as_file().metadata().unwrap();
        let guard = |bytes: &[u8]| Guard::of(file.path(), &metadata, &Bytes::copy_from_slice(bytes), None).unwrap();
        let sound = guard(&bytes);
        assert_eq!((sound.blocks(), sound.verify(0..9), sound.refresh()), (4, Ok(()), Ok(())));
        // The checksums of sound bytes over damaged bytes, as a map shows a file that was written to.
        bytes[BLOCK + 7] ^= 1;
        let map = Bytes::from(bytes);
        let Some(image) = sound.image else { panic!() };
        let seen: Arc<[AtomicU64]> = Arc::new([AtomicU64::new(0)]);
        let file_state = Mutex::new(FileState::of(&metadata));
        let (path, sums, is_cut) = (file.path().to_owned(), image.sums.clone(), AtomicBool::new(false));
        let blocks =
            Blocks { path, bytes: map.clone(), pages: None, sums, seen: seen.clone(), file: file_state, is_cut };
        let guard = Guard { image: Some(Arc::new(blocks)), seen, start: 0 };
        let section = Section::new(map.slice(100..), &guard, 100);
        assert_eq!(section.check(0, BLOCK - 100), Ok(()));
        assert_eq!(section.check(0, BLOCK - 99), Err(Damage::Changed { block: 1 }));
        assert_eq!(section.starting_at(2 * BLOCK).check(0, usize::MAX), Ok(()));
        assert_eq!(guard.verify(0..4), Err(Damage::Changed { block: 1 }));
        // A file that is too short is not read.
        std::fs::File::options().write(true).open(file.path()).unwrap().set_len(BLOCK as u64).unwrap();
        assert_eq!(section.check(0, 9), Ok(()));
        assert_eq!(guard.refresh(), Err(Damage::Cut));
        assert_eq!(section.check(0, 9), Err(Damage::Cut));
        #[cfg(target_os = "linux")]
        {
            let file = tempfile::tempfile().unwrap();
            file.set_len(4 * BLOCK as u64).unwrap();
            let pages = Pages::map(&file).unwrap();
            let bytes = Bytes::from_owner(pages.clone());
            let guard = Guard::of(Path::new("unnamed"), &metadata, &bytes, Some(pages)).unwrap();
            let section = Section::new(bytes.clone(), &guard, 0);
            // No call has checked the file since.
            file.set_len(BLOCK as u64).unwrap();
            assert_eq!(section.check(0, 9), Ok(()));
            assert_eq!(section.check(0, BLOCK + 1), Err(Damage::Unreadable { block: 1 }));
        }
        let plain = Section::from(Bytes::from_static(b"in memory"));
        assert_eq!(plain.check(0, 100), Ok(()));
    }
}
