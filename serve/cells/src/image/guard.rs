//! Checks of a mapped image where it is read: block by block, against the checksums of the bytes that were verified
//! when it was opened.
//!
//! A mapped file may change under its reader: a disk returns other bytes when the system reads a page again, somebody
//! writes to the file or cuts it. So stores of a mapped cell keep their small parts (indexes, tables, numbers) in
//! memory and read the large ones, records and blocks of URLs, through a [`Section`], which compares a block before its
//! bytes are used. What the system cannot read is an error, and the process goes on ([`super::pages`]). A block that
//! was compared is not compared again until [`Guard::recheck`], which a server calls every few seconds, or until the
//! file has another time or size, which [`Guard::refresh`] looks for. Between two comparisons a page that the system
//! drops and reads again is not seen: what is left is a window of seconds, and what nobody reads, which
//! [`Guard::verify`] is for.
//!
//! Memory: 4 bytes and a bit for each block of 4 KiB. Cost: a bit that is looked up for each record or block that is
//! read; the checksum of 4 KiB and a call to the system the first time.

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
use crate::image::pages::Pages;

/// Bytes of a block: a page of most systems, which is what they read again.
pub const BLOCK: usize = 4096;

/// Blocks that the system is asked for at once where all are read.
const ASKED_AT_ONCE: usize = 256;

/// Checks an image, or what begins at a place in it. Without an image, all is sound. Clones share what they know.
#[derive(Clone)]
pub struct Guard {
    image: Option<Arc<Blocks>>,
    /// [`Blocks::seen`], one step nearer: it is looked up for each record.
    seen: Arc<[AtomicU64]>,
    /// Where in the image the guarded bytes begin.
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
    /// To ask for the bytes before they are read.
    pages: Option<Pages>,
    /// The low halves of the blocks' checksums.
    sums: Box<[u32]>,
    /// A bit for each block: whether it was compared.
    seen: Arc<[AtomicU64]>,
    /// The file as it was when the blocks were compared last.
    file: Mutex<FileState>,
    /// Whether the file is shorter than the map: to read it would end the process.
    is_cut: AtomicBool,
}

/// What shows that somebody wrote to a file.
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

/// Whether a block was compared.
#[inline]
fn is_seen(seen: &[AtomicU64], block: usize) -> bool {
    seen.get(block / 64).is_some_and(|word| word.load(Ordering::Relaxed) >> (block % 64) & 1 == 1)
}

fn sum_of(block: &[u8]) -> u32 {
    (xxh3_64(block) & 0xffff_ffff) as u32
}

impl Guard {
    /// Guards an image that is mapped from a file. The bytes must be verified after this call, so that what the sums
    /// are of is what was written.
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

    /// The guard of what begins so many bytes further on.
    fn after(&self, bytes: usize) -> Self {
        Self { image: self.image.clone(), seen: self.seen.clone(), start: self.start + bytes }
    }

    /// Compares the blocks of these bytes, as far as they were not compared yet.
    ///
    /// # Errors
    /// [`Damage::Changed`], [`Damage::Unreadable`] and [`Damage::Cut`].
    #[inline]
    fn check(&self, bytes: Range<usize>) -> Result<(), Damage> {
        let Some(image) = &self.image else { return Ok(()) };
        let (start, end) = (self.start + bytes.start, self.start + bytes.end);
        // Most of what is read lies in one block that was compared before.
        if start / BLOCK + 1 == end.div_ceil(BLOCK) && is_seen(&self.seen, start / BLOCK) {
            return Ok(());
        }
        image.compare_unseen(start / BLOCK..end.div_ceil(BLOCK))
    }

    /// Looks at the file: all blocks are compared again where it was written to, and none is read where it was cut.
    /// Cost: a call to the system.
    ///
    /// # Errors
    /// [`Damage::Cut`].
    pub fn refresh(&self) -> Result<(), Damage> {
        let Some(image) = &self.image else { return Ok(()) };
        // A file that was removed, or replaced by another, stays mapped as it was.
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

    /// Has each block compared again when it is read next.
    pub fn recheck(&self) {
        self.image.iter().for_each(|image| image.forget());
    }

    /// How many blocks there are; none of an image in memory.
    pub fn blocks(&self) -> usize {
        self.image.as_ref().map_or(0, |image| image.sums.len())
    }

    /// Compares blocks, whether they were compared before or not.
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
        // Beyond the end there is no block, and nothing to read.
        if self.sums.get(block).is_some_and(|&sum| sum != sum_of(bytes)) {
            return Err(Damage::Changed { block: block as u64 });
        }
        if let Some(word) = self.seen.get(block / 64) {
            word.fetch_or(1 << (block % 64), Ordering::Relaxed);
        }
        Ok(())
    }
}

/// A section of an image, or a part of one, that checks what is read of it.
#[derive(Clone, Debug, Default)]
pub struct Section {
    bytes: Bytes,
    guard: Guard,
}

impl Section {
    /// A section that begins at a place of a guarded image.
    pub(crate) fn new(bytes: Bytes, guard: &Guard, start: usize) -> Self {
        Self { bytes, guard: guard.after(start) }
    }

    /// The bytes, for whoever checks what it reads of them.
    #[inline]
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The bytes, to be read without checks.
    pub fn into_bytes(self) -> Bytes {
        self.bytes
    }

    /// What begins at a place.
    pub fn starting_at(&self, start: usize) -> Self {
        let start = start.min(self.bytes.len());
        Self { bytes: self.bytes.slice(start..), guard: self.guard.after(start) }
    }

    /// A part that is read without checks: in memory where the section is mapped.
    pub fn resident(&self, part: Bytes) -> Bytes {
        if self.is_guarded() { Bytes::copy_from_slice(&part) } else { part }
    }

    /// Whether anything is checked.
    #[inline]
    pub fn is_guarded(&self) -> bool {
        self.guard.image.is_some()
    }

    /// Compares the blocks of these bytes, as far as that is not known. Bytes beyond the end are not there.
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
        // The sums of the sound bytes over damaged ones: what a map shows of a file that was written to.
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
            // Nobody has looked at the file since.
            file.set_len(BLOCK as u64).unwrap();
            assert_eq!(section.check(0, 9), Ok(()));
            assert_eq!(section.check(0, BLOCK + 1), Err(Damage::Unreadable { block: 1 }));
        }
        let plain = Section::from(Bytes::from_static(b"in memory"));
        assert_eq!(plain.check(0, 100), Ok(()));
    }
}
