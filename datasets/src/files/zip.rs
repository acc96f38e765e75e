//! ZIP archives (APPNOTE 6.3): the members by name, and the bytes of a member where they lie in the file.
//!
//! Reads the end record and the directory at the end of the archive, and the local header of each member that is
//! wanted. Sizes and checksums come from the directory: a local header may have none. Zip64, data before the first
//! member, comments and data descriptors are allowed. If several members have one name, the last in the directory
//! counts.
//!
//! An archive is [`Unread::NotWhole`] unless its directory ends at the end record, the end record ends the file, and no
//! member begins before the first member of the directory. Otherwise, a file that holds whole archives and is cut off
//! would be read as the last of these archives.
//!
//! Damage of a member: see [`Unpacked`]. Memory: the directory. Time: the directory, and one read for each member that
//! is wanted.

use std::collections::BTreeMap;
use std::io::{self, Read};

use flate2::Crc;
use flate2::read::DeflateDecoder;
use memchr::memmem;
use rawzip::{
    CompressionMethod, Error as ZipError, ErrorKind, RECOMMENDED_BUFFER_SIZE, RangeReader, ReaderAt, ZipArchive,
    ZipArchiveEntryWayfinder, ZipLocator,
};
use sha2::{Digest, Sha256};
use webstrata_remote::is_failure;

use crate::Finding;
use crate::files::compressed::{Note, Notes};
use crate::files::source::Source;

/// The first bytes of a member, and of most archives.
pub(crate) const LOCAL_HEADER: &[u8] = b"PK\x03\x04";
/// The first bytes of a ZIP archive without members: those of the end of its directory.
pub(crate) const EMPTY: &[u8] = b"PK\x05\x06";
/// The most bytes of an end record with its comment.
const END_BYTES_MAX: u64 = 22 + u16::MAX as u64;
/// The number of end records that are tried: a comment may contain some.
const END_TRIES_MAX: usize = 8;
/// The number of bytes before the archive that must not hold a member.
const PREFIX_BYTES: usize = 64 << 10;

/// A member of a ZIP archive: where its bytes lie in the file, and what they must be.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Member {
    /// The name in the archive, `archive/data.warc.gz`; in a WACZ in a WACZ, `inner.wacz!archive/data.warc.gz`.
    pub name: String,
    /// The offset of the stored bytes in the file.
    pub offset: u64,
    /// The number of stored bytes.
    pub stored_bytes: u64,
    /// Whether the stored bytes are deflated.
    pub is_deflated: bool,
    /// The number of bytes, inflated.
    pub bytes: u64,
    /// The CRC-32 of the bytes, inflated.
    pub crc32: u32,
    /// The SHA-256 of the bytes, inflated, if the description of the archive gives it.
    pub sha256: Option<[u8; 32]>,
}

/// Whether the end record of an archive may be at the end of a file.
pub(crate) fn ends_like_one(source: &Source) -> io::Result<bool> {
    let end = source.read(source.bytes().saturating_sub(END_BYTES_MAX)..source.bytes())?;
    Ok(memmem::find(&end, b"PK\x05\x06").is_some())
}

/// An input, or a range of an input that is an archive itself.
#[derive(Clone, Debug)]
pub(crate) struct Section {
    source: Source,
    /// The offset in the input.
    start: u64,
    bytes: u64,
}

impl Section {
    pub(crate) fn new(source: Source) -> Self {
        Section { start: 0, bytes: source.bytes(), source }
    }

    /// The stored bytes of a member.
    pub(crate) fn of(&self, member: &Member) -> Self {
        Section { source: self.source.clone(), start: member.offset, bytes: member.stored_bytes }
    }

    /// The first bytes of the section.
    pub(crate) fn head(&self, bytes: usize) -> io::Result<Vec<u8>> {
        let mut head = Vec::new();
        self.clone().reader().take(bytes as u64).read_to_end(&mut head)?;
        Ok(head)
    }

    fn reader(self) -> RangeReader<Section> {
        let bytes = self.bytes;
        RangeReader::new(self, 0..bytes)
    }
}

impl ReaderAt for Section {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let left = usize::try_from(self.bytes.saturating_sub(offset)).unwrap_or(usize::MAX);
        let count = buffer.len().min(left);
        if count == 0 { Ok(0) } else { self.source.read_at(&mut buffer[..count], self.start + offset) }
    }
}

/// Why an archive is not read.
#[derive(Debug)]
pub(crate) enum Unread {
    /// The archive is cut off or broken, with a description.
    NotWhole(&'static str),
    /// The operating system or a server returned an error.
    Io(io::Error),
}

const NO_END: Unread = Unread::NotWhole("the file is cut off: the ZIP has no end record");
const FOLLOWED: Unread =
    Unread::NotWhole("the file is cut off, or bytes were appended: its last ZIP end record is not at the end");

/// Why a member is not read.
pub(crate) type Refusal = (Finding, String);

/// A member in the directory.
#[derive(Clone, Copy, Debug)]
struct Entry {
    place: ZipArchiveEntryWayfinder,
    method: CompressionMethod,
    is_encrypted: bool,
    crc32: u32,
}

/// The directory of an archive.
#[derive(Debug)]
pub(crate) struct Archive {
    zip: ZipArchive<Section>,
    entries: BTreeMap<String, Entry>,
    /// The names of members that a later member replaces.
    pub(crate) replaced: Vec<String>,
}

impl Archive {
    /// Reads the directory of the archive that ends where the section ends.
    pub(crate) fn open(section: &Section) -> Result<Self, Unread> {
        let locator = ZipLocator::new().max_search_space(END_BYTES_MAX);
        let mut buffer = vec![0; RECOMMENDED_BUFFER_SIZE];
        let (mut end, mut flaw) = (section.bytes, None);
        for _ in 0..END_TRIES_MAX {
            match locator.locate_in_reader(section.clone(), &mut buffer, end) {
                Ok(zip) => {
                    end = zip.eocd_offset();
                    let is_last = zip.end_offset() == section.bytes;
                    let read = if is_last { Archive::read_directory(zip, &mut buffer) } else { Err(FOLLOWED) };
                    match read {
                        Err(Unread::NotWhole(detail)) => _ = flaw.get_or_insert(detail),
                        read => return read,
                    }
                }
                Err((_, error)) => match (error.eocd_offset(), unread(error, "")) {
                    (_, Unread::Io(error)) => return Err(Unread::Io(error)),
                    (Some(offset), _) if offset < end => end = offset,
                    _ => break,
                },
            }
            if section.bytes - end > END_BYTES_MAX {
                break;
            }
        }
        Err(flaw.map_or(NO_END, Unread::NotWhole))
    }

    /// Reads the directory that an end record points to.
    fn read_directory(zip: ZipArchive<Section>, buffer: &mut [u8]) -> Result<Self, Unread> {
        let (mut entries, mut replaced, mut count) = (BTreeMap::new(), Vec::new(), 0_u64);
        let mut first = zip.directory_offset();
        let mut directory = zip.entries(buffer);
        while let Some(header) = directory.next_entry().map_err(|error| unread(error, "the ZIP directory is broken"))? {
            count += 1;
            first = first.min(header.local_header_offset());
            let name = String::from_utf8_lossy(header.file_path().as_bytes()).into_owned();
            let entry = Entry {
                place: header.wayfinder(),
                method: header.compression_method(),
                is_encrypted: header.flags().is_encrypted(),
                crc32: header.crc32(),
            };
            if entries.insert(name.clone(), entry).is_some() {
                replaced.push(name);
            }
        }
        // The count of an end record without zip64 has 16 bits.
        if count & 0xffff != zip.entries_hint() & 0xffff {
            return Err(Unread::NotWhole("the ZIP directory has not as many members as the end record says"));
        }
        let prefix_bytes = usize::try_from(first).unwrap_or(PREFIX_BYTES).min(PREFIX_BYTES);
        let prefix = zip.get_ref().head(prefix_bytes).map_err(Unread::Io)?;
        if memmem::find(&prefix, LOCAL_HEADER).is_some() {
            return Err(Unread::NotWhole("the file is cut off: its last end record belongs to a ZIP inside of it"));
        }
        Ok(Archive { zip, entries, replaced })
    }

    pub(crate) fn section(&self) -> &Section {
        self.zip.get_ref()
    }

    /// The names of all members, sorted.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.entries.contains_key(name)
    }

    /// Finds the bytes of a member.
    pub(crate) fn member(&self, name: &str) -> io::Result<Result<Member, Refusal>> {
        let Some(entry) = self.entries.get(name) else {
            return Ok(Err((Finding::MissingFile, "the member is not in the ZIP".to_owned())));
        };
        let is_deflated = entry.method == CompressionMethod::DEFLATE;
        if entry.is_encrypted {
            return Ok(Err((Finding::UnreadFile, "the member is encrypted".to_owned())));
        }
        if !is_deflated && entry.method != CompressionMethod::STORE {
            let method = entry.method;
            let detail = format!("the member is packed with method {method}; only stored and deflated ones are read");
            return Ok(Err((Finding::UnreadFile, detail)));
        }
        let found = match self.zip.get_entry(entry.place) {
            Ok(found) => found,
            Err(error) => {
                return match unread(error, "") {
                    Unread::Io(error) => Err(error),
                    Unread::NotWhole(_) => {
                        Ok(Err((Finding::BadHeader, "the ZIP directory points to no member".to_owned())))
                    }
                };
            }
        };
        let (start, end) = found.compressed_data_range();
        let bytes = entry.place.uncompressed_size_hint();
        if end > self.zip.directory_offset() || (!is_deflated && end - start != bytes) {
            return Ok(Err((Finding::BadLength, "the lengths in the ZIP directory are wrong".to_owned())));
        }
        Ok(Ok(Member {
            name: name.to_owned(),
            offset: self.zip.get_ref().start + start,
            stored_bytes: end - start,
            is_deflated,
            bytes,
            crc32: entry.crc32,
            sha256: None,
        }))
    }

    /// Reads a member of at most `bytes_max` bytes into memory.
    pub(crate) fn read(&self, name: &str, bytes_max: u64) -> io::Result<Result<Vec<u8>, Refusal>> {
        let member = match self.member(name)? {
            Ok(member) => member,
            Err(flaw) => return Ok(Err(flaw)),
        };
        if member.bytes > bytes_max {
            return Ok(Err((Finding::UnreadFile, format!("the member has more than {bytes_max} bytes"))));
        }
        let notes = Notes::default();
        let stored = self.zip.get_ref().of(&member).reader();
        let mut content = Vec::new();
        Unpacked::new(stored, &member, Notes::clone(&notes)).read_to_end(&mut content)?;
        let flaw = notes.lock().ok().and_then(|notes| notes.first());
        Ok(flaw.map_or(Ok(content), |note| Err((note.finding, note.detail.to_owned()))))
    }
}

/// An error of the library: a failure to read, or a flaw of the archive.
fn unread(error: ZipError, detail: &'static str) -> Unread {
    match error.into_kind() {
        ErrorKind::IO(error) if is_failure(&error) => Unread::Io(error),
        _ => Unread::NotWhole(detail),
    }
}

/// The bytes of a member, unpacked and compared with the checksums when they end.
///
/// Damage is never an error: the bytes end there, with one note.
pub(crate) struct Unpacked<R: Read> {
    packed: Packed<R>,
    /// The number of bytes so far.
    read: u64,
    bytes: u64,
    crc: Crc,
    crc32: u32,
    sha256: Option<(Sha256, [u8; 32])>,
    notes: Notes,
    ended: bool,
}

enum Packed<R: Read> {
    Stored(R),
    Deflated(Box<DeflateDecoder<R>>),
}

impl<R: Read> Unpacked<R> {
    /// Unpacks the stored bytes of a member.
    pub(crate) fn new(stored: R, member: &Member, notes: Notes) -> Self {
        Unpacked {
            packed: if member.is_deflated {
                Packed::Deflated(Box::new(DeflateDecoder::new(stored)))
            } else {
                Packed::Stored(stored)
            },
            read: 0,
            bytes: member.bytes,
            crc: Crc::new(),
            crc32: member.crc32,
            sha256: member.sha256.map(|expected| (Sha256::new(), expected)),
            notes,
            ended: false,
        }
    }

    /// Ends the bytes, with a note if they are damaged.
    fn end(&mut self, flaw: Option<(Finding, &'static str)>) -> io::Result<()> {
        self.ended = true;
        if let (Some((finding, detail)), Ok(mut notes)) = (flaw, self.notes.lock()) {
            notes.add(Note { finding, offset: 0, detail });
        }
        // The digest of an input is of all stored bytes, and the decoder stops where the deflate data ends.
        if let Packed::Deflated(decoder) = &mut self.packed {
            io::copy(decoder.get_mut(), &mut io::sink())?;
        }
        Ok(())
    }

    /// Compares the bytes, which have ended, with the checksums.
    fn flaw(&mut self) -> Option<(Finding, &'static str)> {
        let sha256 = self.sha256.take().map(|(sum, expected)| <[u8; 32]>::from(sum.finalize()) == expected);
        if self.read < self.bytes {
            Some((Finding::Truncated, "the member ends before the length in the ZIP directory"))
        } else if self.crc.sum() != self.crc32 {
            Some((Finding::WrongDigest, "the CRC-32 is not the one in the ZIP directory"))
        } else if sha256 == Some(false) {
            Some((Finding::WrongDigest, "the SHA-256 is not the one in datapackage.json"))
        } else {
            None
        }
    }
}

impl<R: Read> Read for Unpacked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.ended || buffer.is_empty() {
            return Ok(0);
        }
        let read = match &mut self.packed {
            Packed::Stored(stored) => stored.read(buffer),
            Packed::Deflated(decoder) => decoder.read(buffer),
        };
        let count = match read {
            Ok(count) => count,
            Err(error) if is_failure(&error) || error.kind() == io::ErrorKind::Interrupted => {
                return Err(error);
            }
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                self.end(Some((Finding::Truncated, "the deflate data of the member ends too early")))?;
                return Ok(0);
            }
            Err(_) => {
                self.end(Some((Finding::BadCompression, "invalid deflate data in the member")))?;
                return Ok(0);
            }
        };
        self.read += count as u64;
        if self.read > self.bytes {
            self.end(Some((Finding::BadLength, "the member continues after the length in the ZIP directory")))?;
            return Ok(0);
        }
        self.crc.update(&buffer[..count]);
        if let Some((sum, _)) = &mut self.sha256 {
            sum.update(&buffer[..count]);
        }
        if count == 0 {
            let flaw = self.flaw();
            self.end(flaw)?;
        }
        Ok(count)
    }
}
