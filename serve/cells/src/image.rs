//! The file of a cell: a head, and five sections that answer in place.
//!
//! ```text
//!   0  "WSCELL\r\n"
//!   8  version, 8 (32 bits); row (32)
//!  16  partition (32); tag of the encoding of links (32): see [`Tag`]
//!  24  first UID, number of URLs (64 each)
//!  40  UIDs whose records are here: the first, and the one after the last (64 each)
//!  56  length of in-link ranges: 0 month, 1 year, 2 + days (64)
//!  64  hash of the layers that the cell was built from (64)
//!  72  counts: pages, captures, links, most links of a page, most sources of a URL (64 each)
//! 112  sections urls, numbers, forward, backward, statuses: first byte, length, xxh3 (64 each)
//! 232  xxh3 of the bytes before (64)
//! 256  sections, each from a multiple of 64 on
//! ```
//!
//! Numbers are little-endian. Sections are specified in [`crate::url_store`], [`crate::numbers`] and `statuses`. The
//! link sections are specified in [`crate::links::strata`] and [`crate::links::backward`] for strata, and by the caller
//! that passes the encoding otherwise. Opening maps or reads the file and compares the checksums, at the speed of
//! memory; nothing is decoded. An incomplete file, or an image of other layers, does not open. Reads check the blocks
//! of a mapped image ([`crate::mapped::guard`]).

pub mod label;

use std::convert::Infallible;
use std::io::{self, ErrorKind, Read, Write};
use std::path::Path;

use bytes::Bytes;
use webstrata_layers::{Draft, InLinks, Page, Uid, regular};
use xxhash_rust::xxh3::xxh3_64;

use crate::error::Error;
use crate::links::encoding::Tag;
use crate::mapped::guard::{Guard, Section};
use crate::mapped::pages::Pages;

use label::{Label, number_range, range_number};

const MAGIC: &[u8; 8] = b"WSCELL\r\n";
/// The version that this crate writes and reads.
pub const VERSION: u32 = 8;
const HEAD: usize = 240;
/// The offset of the table of sections.
const PLACES: usize = 112;
pub(crate) const SECTIONS: usize = 5;

/// The counts of the contents of a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// The number of pages: URLs with captures in the row.
    pub pages: u64,
    /// The number of captures of these pages.
    pub captures: u64,
    /// The number of links in any capture of each page, summed over pages.
    pub links: u64,
    /// The largest number of links of a page.
    pub max_out_degree: u64,
    /// The largest number of sources of a URL.
    pub max_in_degree: u64,
}

impl Counts {
    /// Counts a page.
    pub(crate) fn add_page(&mut self, page: &Page) {
        let links = page.links.len() as u64;
        self.pages += 1;
        self.captures += page.timestamps.len() as u64;
        self.links += links;
        self.max_out_degree = self.max_out_degree.max(links);
    }

    /// Counts the in-links of a URL.
    pub(crate) fn add_in_links(&mut self, record: &InLinks) {
        self.max_in_degree = self.max_in_degree.max(record.sources.len() as u64);
    }
}

/// An image, mapped: its label, counts and sections.
pub(crate) struct Image {
    pub(crate) label: Label,
    pub(crate) counts: Counts,
    pub(crate) urls: Section,
    pub(crate) numbers: Section,
    pub(crate) forward: Section,
    pub(crate) backward: Section,
    pub(crate) statuses: Section,
    /// The guard that checks the sections of a mapped image.
    pub(crate) guard: Guard,
    /// Whether the gaps between and after the sections are zeros, and no longer than necessary.
    is_tight: bool,
}

/// The head of an image with these sections.
fn head_of(label: &Label, counts: &Counts, sections: [&[u8]; SECTIONS]) -> Vec<u8> {
    let mut head = Vec::with_capacity(HEAD);
    head.extend_from_slice(MAGIC);
    for value in [VERSION, label.row, label.partition, label.encoding.0] {
        head.extend_from_slice(&value.to_le_bytes());
    }
    let range = range_number(label.in_range);
    let Label { first_uid, urls, first_record, end_record, source, .. } = *label;
    for value in [first_uid.0, urls, first_record.0, end_record.0, range, source] {
        head.extend_from_slice(&value.to_le_bytes());
    }
    let Counts { pages, captures, links, max_out_degree, max_in_degree } = *counts;
    for value in [pages, captures, links, max_out_degree, max_in_degree] {
        head.extend_from_slice(&value.to_le_bytes());
    }
    let mut offset = HEAD.next_multiple_of(64);
    for section in sections {
        for value in [offset as u64, section.len() as u64, xxh3_64(section)] {
            head.extend_from_slice(&value.to_le_bytes());
        }
        offset = (offset + section.len()).next_multiple_of(64);
    }
    let checksum = xxh3_64(&head);
    head.extend_from_slice(&checksum.to_le_bytes());
    head
}

/// Writes an image to a draft beside its place. The caller reads the draft back before it gets its name.
pub(crate) fn write(path: &Path, label: &Label, counts: &Counts, sections: [&[u8]; SECTIONS]) -> Result<Draft, Error> {
    let write = || {
        let draft = begin(path)?;
        write_all(&mut |bytes| draft.file().write_all(bytes), label, counts, sections)?;
        Ok(draft)
    };
    write().map_err(|source| Error::Io { path: path.to_owned(), source })
}

/// Creates a draft file, and its directory if there is none.
pub(crate) fn begin(path: &Path) -> io::Result<Draft> {
    std::fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
    Draft::create(path)
}

/// Calls `write` with the parts of an image, in order.
fn write_all<E>(
    write: &mut impl FnMut(&[u8]) -> Result<(), E>,
    label: &Label,
    counts: &Counts,
    sections: [&[u8]; SECTIONS],
) -> Result<(), E> {
    let head = head_of(label, counts, sections);
    for bytes in std::iter::once(&head[..]).chain(sections) {
        let zeros = bytes.len().next_multiple_of(64) - bytes.len();
        write(bytes)?;
        write(&[0; 64][..zeros])?;
    }
    Ok(())
}

/// The bytes of an image.
pub fn bytes_of(label: &Label, counts: &Counts, sections: [&[u8]; SECTIONS]) -> Vec<u8> {
    let mut image = Vec::new();
    let mut write = |bytes: &[u8]| {
        image.extend_from_slice(bytes);
        Ok::<_, Infallible>(())
    };
    match write_all(&mut write, label, counts, sections) {
        Ok(()) => image,
        Err(never) => match never {},
    }
}

/// Updates the checksums of an image, for the sections that its head leads to.
pub fn seal(bytes: &mut [u8]) {
    for at in (0..SECTIONS).map(|number| PLACES + 24 * number) {
        let word = |at: usize| {
            let word = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>());
            word.and_then(|word| usize::try_from(u64::from_le_bytes(*word)).ok())
        };
        let end = word(at).zip(word(at + 8)).and_then(|(start, length)| Some((start, start.checked_add(length)?)));
        let checksum = end.and_then(|(start, end)| bytes.get(start..end)).map(xxh3_64);
        if let (Some(checksum), Some(checksum_field)) = (checksum, bytes.get_mut(at + 16..at + 24)) {
            checksum_field.copy_from_slice(&checksum.to_le_bytes());
        }
    }
    if let Some(head) = bytes.get_mut(..HEAD) {
        let checksum = xxh3_64(&head[..HEAD - 8]);
        head[HEAD - 8..].copy_from_slice(&checksum.to_le_bytes());
    }
}

/// Where the bytes of images are while cells answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Residence {
    /// In the mapped file, shared with other processes. The operating system may drop unused pages and read them again.
    #[default]
    Mapped,
    /// In the memory of this process.
    Memory,
}

impl Image {
    /// Maps or reads an image and compares its checksums.
    pub(crate) fn open(path: &Path, residence: Residence) -> Result<Self, Error> {
        let failed = |source| Error::Io { path: path.to_owned(), source };
        if residence == Residence::Memory {
            let bytes = Bytes::from(regular::read(path).map_err(failed)?);
            return Self::guarded(path, bytes, Guard::default()).and_then(|image| image.tight(path));
        }
        let file = regular::open(path).map_err(failed)?;
        let pages = Pages::map(&file).map_err(failed)?;
        let bytes = Bytes::from_owner(pages.clone());
        let guard = Guard::of(path, &file.metadata().map_err(failed)?, &bytes, Some(pages));
        let guard = guard.map_err(|damage| Error::Damaged { path: path.to_owned(), damage })?;
        Self::guarded(path, bytes, guard)?.tight(path)
    }

    /// Rejects the image of a file with bytes between its sections, which no writer wrote and no reader reads.
    fn tight(self, path: &Path) -> Result<Self, Error> {
        if self.is_tight {
            Ok(self)
        } else {
            Err(Error::Image { path: path.to_owned(), what: "it has bytes between its parts" })
        }
    }

    /// Reads an image from bytes.
    pub(crate) fn read(path: &Path, bytes: Bytes) -> Result<Self, Error> {
        Self::guarded(path, bytes, Guard::default())
    }

    fn guarded(path: &Path, bytes: Bytes, guard: Guard) -> Result<Self, Error> {
        let Head { label, counts, positions } = Head::read(path, &bytes)?;
        let wrong = |what| Error::Image { path: path.to_owned(), what };
        let section = |number: usize| {
            let [start, length, checksum] = positions[number];
            let range = usize::try_from(start).ok().zip(usize::try_from(length).ok());
            let range = range.and_then(|(start, length)| Some(start..start.checked_add(length)?));
            let range = range.filter(|range| range.end <= bytes.len()).ok_or_else(|| wrong("it is cut off"))?;
            let (start, section) = (range.start, bytes.slice(range));
            if xxh3_64(&section) != checksum {
                return Err(wrong("a section does not have its checksum"));
            }
            Ok(Section::new(section, &guard, start))
        };
        let (urls, numbers) = (section(0)?, section(1)?);
        let (forward, backward, statuses) = (section(2)?, section(3)?, section(4)?);
        let is_tight = is_tight(&bytes, &positions);
        Ok(Self { label, counts, urls, numbers, forward, backward, statuses, guard, is_tight })
    }
}

/// See [`Image`]. The sections lie inside the bytes.
fn is_tight(bytes: &[u8], positions: &[[u64; 3]; SECTIONS]) -> bool {
    let mut end = HEAD;
    let is_zero = |from: usize, to: usize| bytes.get(from..to).is_some_and(|gap| gap.iter().all(|&byte| byte == 0));
    for [start, length, _] in positions {
        let [start, length] = [start, length].map(|&value| usize::try_from(value).unwrap_or(usize::MAX));
        if start != end.next_multiple_of(64) || !is_zero(end, start) {
            return false;
        }
        end = start.saturating_add(length);
    }
    bytes.len() == end.next_multiple_of(64) && is_zero(end, bytes.len())
}

/// The data before the sections.
struct Head {
    label: Label,
    counts: Counts,
    /// The first byte, length and checksum of each section.
    positions: [[u64; 3]; SECTIONS],
}

impl Head {
    fn read(path: &Path, bytes: &[u8]) -> Result<Self, Error> {
        let wrong = |what| Error::Image { path: path.to_owned(), what };
        if bytes.get(..8) != Some(MAGIC) {
            return Err(wrong("it is not an image of a cell"));
        }
        let cut = || wrong("it ends in its head");
        let version = bytes.get(8..).and_then(|rest| rest.first_chunk::<4>()).ok_or_else(cut)?;
        let version = u32::from_le_bytes(*version);
        if version != VERSION {
            return Err(Error::Version { path: path.to_owned(), got: version, expected: VERSION });
        }
        let head = bytes.first_chunk::<HEAD>().ok_or_else(cut)?;
        let word = |at: usize| head[at..].first_chunk::<8>().map_or(0, |word| u64::from_le_bytes(*word));
        let (low, high) = (|value: u64| (value & 0xffff_ffff) as u32, |value: u64| (value >> 32) as u32);
        if word(HEAD - 8) != xxh3_64(&head[..HEAD - 8]) {
            return Err(wrong("its head does not have its checksum"));
        }
        if word(24).checked_add(word(32)).is_none() || word(40) > word(48) {
            return Err(wrong("its UIDs do not end"));
        }
        let label = Label {
            row: high(word(8)),
            partition: low(word(16)),
            encoding: Tag(high(word(16))),
            first_uid: Uid(word(24)),
            urls: word(32),
            first_record: Uid(word(40)),
            end_record: Uid(word(48)),
            in_range: number_range(word(56)).ok_or_else(|| wrong("its length of ranges is unknown"))?,
            source: word(64),
        };
        let counts = Counts {
            pages: word(72),
            captures: word(80),
            links: word(88),
            max_out_degree: word(96),
            max_in_degree: word(104),
        };
        let positions = std::array::from_fn(|number| [0, 8, 16].map(|at| word(PLACES + 24 * number + at)));
        Ok(Self { label, counts, positions })
    }
}

/// The label of an image, read from its head only; `None` if there is no image.
pub(crate) fn label_at(path: &Path) -> Result<Option<Label>, Error> {
    let failed = |source| Error::Io { path: path.to_owned(), source };
    let file = match regular::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        file => file.map_err(failed)?,
    };
    let mut head = Vec::with_capacity(HEAD);
    file.take(HEAD as u64).read_to_end(&mut head).map_err(failed)?;
    Head::read(path, &head).map(|head| Some(head.label))
}

#[cfg(test)]
mod tests {
    use super::label::path_of;
    use super::*;
    use webstrata_layers::RangeLength;

    fn label(row: u32, partition: u32) -> Label {
        let (first_uid, urls, first_record, end_record) = (7, 9, 3, 16);
        let in_range = RangeLength::Days(10);
        Label {
            row,
            partition,
            encoding: Tag(7),
            first_uid: Uid(first_uid),
            urls,
            first_record: Uid(first_record),
            end_record: Uid(end_record),
            in_range,
            source: 5,
        }
    }

    #[test]
    fn an_image_opens_whole_or_not_at_all() {
        let directory = tempfile::tempdir().unwrap();
        let path = path_of(directory.path(), 3, 12);
        let label = label(3, 12);
        let counts = Counts { pages: 6, captures: 7, links: 8, max_out_degree: 4, max_in_degree: 3 };
        write(&path, &label, &counts, [b"urls", b"", b"out", &[1; 100], b"statuses"]).unwrap().finish().unwrap();
        let image = Image::open(&path, Residence::Mapped).unwrap();
        assert_eq!(Image::open(&path, Residence::Memory).unwrap().label, label);
        assert_eq!((image.label, image.counts), (label, counts));
        assert_eq!(label_at(&path).unwrap(), Some(label));
        assert_eq!(label_at(&path.with_extension("none")).unwrap(), None);
        let bytes = |section: &Section| section.bytes().to_vec();
        assert_eq!([&image.urls, &image.numbers, &image.forward].map(bytes), [&b"urls"[..], b"", b"out"]);
        assert_eq!(bytes(&image.backward), [1; 100]);
        let whole = std::fs::read(&path).unwrap();
        for at in [HEAD, 260, 383, 484, 530, whole.len() - 1] {
            let mut damaged = whole.clone();
            damaged[at] ^= 4;
            std::fs::write(&path, damaged).unwrap();
            assert!(Image::open(&path, Residence::Mapped).is_err(), "byte {at}");
        }
        std::fs::write(&path, &whole).unwrap();
        let open = |bytes: Vec<u8>| Image::read(&path, Bytes::from(bytes));
        // Zeros follow the last section, up to a multiple of 64.
        for cut in 0..whole.len() - 56 {
            assert!(open(whole[..cut].to_vec()).is_err(), "{cut} bytes");
        }
        for at in (0..HEAD).chain([256, 260, 320, 384, 483, 512]) {
            let mut damaged = whole.clone();
            damaged[at] ^= 4;
            // The zeros between sections are not read.
            assert_eq!(open(damaged).is_err(), at != 260, "byte {at}");
        }
    }
}
