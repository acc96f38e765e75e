//! The entry points of the crate: [`inputs`] lists the inputs, and [`open`] returns a reader of captures for each.

mod detect;
mod release;

use std::collections::BTreeSet;
use std::fs::{File, Metadata};
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::files::compressed::{self, Lines, MemberLines, Notes, Text};
use crate::files::hashed::{DigestCell, Hashed};
use crate::files::zip::{self, LOCAL_HEADER, Unpacked};
use crate::formats::arc::ArcReader;
use crate::formats::cc_graph::edges;
use crate::formats::cc_graph::vertices::HostFile;
use crate::formats::document::Documents;
use crate::formats::index::{cdx, cdxj, crawl_log};
use crate::formats::tables;
use crate::formats::wacz::Package;
use crate::formats::warc::WarcReader;
use crate::generate::Generator;
use crate::input::{Input, InputSplit, Member};
use crate::reader::detect::Format;
use crate::release::{GraphPart, Table};
use crate::{Capture, Error, Finding, Tally};

pub use release::graph_inputs;

/// Which links of a page count.
///
/// ```
/// use webstrata_datasets::{Capture, LinkKinds, Tally, inputs, open};
///
/// let html = r#"<a href="/about">About</a> <img src="/logo.png">"#;
/// let http = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n{html}");
/// let warc = format!(
///     "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://example.org/\r\n\
///      WARC-Date: 2008-06-01T12:00:00Z\r\nContent-Type: application/http; msgtype=response\r\n\
///      Content-Length: {}\r\n\r\n{http}\r\n\r\n",
///     http.len(),
/// );
/// let dir = tempfile::tempdir()?;
/// std::fs::write(dir.path().join("crawl.warc"), warc)?;
///
/// let links = |kinds: LinkKinds| -> Result<Vec<String>, webstrata_datasets::Error> {
///     let mut capture = Capture::default();
///     let mut reader = open(&inputs(&[dir.path().join("crawl.warc")])?[0], kinds)?;
///     assert!(reader.read(&mut capture, &mut Tally::default())?);
///     Ok(capture.links.iter().map(str::to_owned).collect())
/// };
/// assert_eq!(links(LinkKinds::default())?, ["/about"]);
/// assert_eq!(links(LinkKinds { embeds: true, ..LinkKinds::default() })?, ["/about", "/logo.png"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkKinds {
    /// `a`, `area`, `frame` and `iframe`.
    pub anchors: bool,
    /// `Location` of 3xx responses (which then are captures) and `<meta http-equiv=refresh>`.
    pub redirects: bool,
    /// All other URLs in a page: images, scripts, style sheets, forms, objects, media.
    pub embeds: bool,
    /// Heritrix `outlink:` lines of `metadata` records.
    pub outlinks: bool,
    /// Pages of a Heritrix crawl log, each to the URLs that were found first there: one link for each URL of the log.
    pub via: bool,
}

impl Default for LinkKinds {
    fn default() -> Self {
        LinkKinds { anchors: true, redirects: false, embeds: false, outlinks: false, via: false }
    }
}

/// A source of captures.
pub trait CaptureReader: Send {
    /// Reads the next capture into `capture` and replaces the previous content; `false` at the end of the input.
    /// Counts in `tally` the damage and the omissions before the capture.
    ///
    /// # Errors
    /// Only I/O errors. Damage inside the input is counted and skipped.
    fn read(&mut self, capture: &mut Capture, tally: &mut Tally) -> Result<bool, Error>;
}

/// Expands files, directories (all files below except hidden files), globs and `-` into sorted inputs without
/// duplicates. Each row group of a Parquet file is an input, and each crawl file in a WACZ. A WACZ with damage is an
/// input itself, too, whose reader counts the damage.
///
/// # Errors
/// A path or pattern names no file, or a directory cannot be read.
pub fn inputs(paths: &[PathBuf]) -> Result<Vec<Input>, Error> {
    let matching = glob::MatchOptions { require_literal_leading_dot: true, ..Default::default() };
    let mut files = BTreeSet::new();
    for path in paths {
        let found = look(path)?;
        if path.as_os_str() == STDIN || found.as_ref().is_some_and(|found| !found.is_dir()) {
            files.insert(path.clone()); // a pipe or a device, too
        } else if found.is_some() {
            files_below(path, &mut files)?;
        } else {
            let before = files.len();
            let mut named = false;
            let found = path.to_str().and_then(|pattern| glob::glob_with(pattern, matching).ok());
            for path in found.into_iter().flatten() {
                let path = path.map_err(|error| {
                    let path = error.path().to_owned();
                    Error::io(&path, error.into())
                })?;
                named = true;
                if look(&path)?.is_some_and(|found| found.is_dir()) {
                    files_below(&path, &mut files)?;
                } else {
                    files.insert(path);
                }
            }
            if !named && files.len() == before {
                let is_url = path.to_str().is_some_and(|path| path.contains("://"));
                let path = path.clone();
                return Err(if is_url { Error::NotLocal { path } } else { Error::NoSuchFile { path } });
            }
        }
    }
    let mut inputs = Vec::new();
    for path in files {
        let found = look(&path)?;
        let bytes = found.as_ref().map_or(0, Metadata::len);
        let input = |part, bytes| Input { path: path.clone(), part, bytes };
        if !found.is_some_and(|found| found.is_file()) {
            inputs.push(input(InputSplit::Whole, bytes));
            continue;
        }
        let magic = magic(&path)?;
        if magic == b"PAR1" {
            let groups = tables::row_groups(&path)?.into_iter().enumerate();
            inputs.extend(groups.map(|(group, bytes)| input(InputSplit::RowGroup(group), bytes)));
        } else if let Some(package) = look_into(&path, &magic)? {
            if !package.flaws.is_empty() || !package.requires.is_empty() {
                // The members count the bytes of the file, if there are members.
                inputs.push(input(InputSplit::Archive, if package.members.is_empty() { bytes } else { 0 }));
            }
            let members = package.members.into_iter();
            inputs.extend(members.map(|member| input(InputSplit::Member(member.clone()), member.stored_bytes)));
        } else {
            inputs.push(input(InputSplit::Whole, bytes));
        }
    }
    Ok(inputs)
}

const STDIN: &str = "-";

/// The metadata of the file at a path; `None` if there is no file. A pattern may be a name that no file can have.
fn look(path: &Path) -> Result<Option<Metadata>, Error> {
    /// The error codes of links that lead in circles, on Linux and on macOS.
    const CIRCLE: [i32; 2] = [40, 62];
    match std::fs::metadata(path) {
        Ok(found) => Ok(Some(found)),
        Err(error) => match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::InvalidFilename | ErrorKind::InvalidInput => {
                Ok(None)
            }
            _ if error.raw_os_error().is_some_and(|code| CIRCLE.contains(&code)) => Ok(None),
            _ => Err(Error::io(path, error)),
        },
    }
}

fn files_below(directory: &Path, files: &mut BTreeSet<PathBuf>) -> Result<(), Error> {
    let entries = std::fs::read_dir(directory).map_err(|error| Error::io(directory, error))?;
    for entry in entries {
        let entry = entry.map_err(|error| Error::io(directory, error))?;
        if entry.file_name().as_encoded_bytes().starts_with(b".") {
            continue;
        }
        let kind = entry.file_type().map_err(|error| Error::io(&entry.path(), error))?;
        if kind.is_dir() {
            files_below(&entry.path(), files)?;
        } else if kind.is_file() || look(&entry.path())?.is_some_and(|found| found.is_file()) {
            files.insert(entry.path()); // links to directories are not followed: they may lead in circles
        }
    }
    Ok(())
}

/// The first four bytes of a file; fewer if the file is shorter.
fn magic(path: &Path) -> Result<Vec<u8>, Error> {
    let mut magic = Vec::new();
    let read = File::open(path).and_then(|file| file.take(4).read_to_end(&mut magic));
    read.map(|_| magic).map_err(|error| Error::io(path, error))
}

/// Looks into a file with this beginning; `None` if it is no ZIP. A ZIP begins with a member. Bytes before the first
/// member are allowed, if the file ends like a ZIP, begins like no crawl file, and holds crawl files.
fn look_into(path: &Path, magic: &[u8]) -> Result<Option<Package>, Error> {
    let begins = magic == LOCAL_HEADER;
    if !begins && (compressed::is_compressed(magic) || magic == b"WARC") {
        return Ok(None);
    }
    let io = |error| Error::io(path, error);
    let mut file = File::open(path).map_err(io)?;
    if !begins {
        if !zip::ends_like_one(&mut file).map_err(io)? {
            return Ok(None);
        }
        let mut head = Vec::new();
        file.rewind().map_err(io)?;
        (&mut file).take(detect::HEAD_BYTES as u64).read_to_end(&mut head).map_err(io)?;
        if !matches!(detect::format(&head), Format::NotRead(Finding::OtherFile, _)) {
            return Ok(None);
        }
    }
    let package = Package::open(file).map_err(io)?;
    Ok((begins || package.is_wacz).then_some(package))
}

/// Opens an input. [`open`] detects the format from the first bytes, not from the name.
///
/// # Errors
/// The file cannot be opened or read. A file of another kind is not an error: the reader returns no captures and counts
/// the file ([`Finding::is_file`]).
pub fn open(input: &Input, kinds: LinkKinds) -> Result<Box<dyn CaptureReader>, Error> {
    open_metered(input, kinds, Arc::default(), Arc::default())
}

/// As [`open`], and adds bytes of the input to `bytes_read` while they are read. When the reader ends, `bytes_read` has
/// grown by [`Input::bytes`], even if only a part of the file was read. When the input was read to its end, `digest`
/// has its digest. Generated inputs have no digest.
///
/// # Errors
/// As [`open`].
pub fn open_metered(
    input: &Input,
    kinds: LinkKinds,
    bytes_read: Arc<AtomicU64>,
    digest: DigestCell,
) -> Result<Box<dyn CaptureReader>, Error> {
    let path = &input.path;
    let count = Count { bytes_read, left: input.bytes };
    let io = |error| Error::io(path, error);
    let reader: Box<dyn CaptureReader> = match &input.part {
        InputSplit::Whole if path.as_os_str() == STDIN => {
            return read(Box::new(Hashed::new(std::io::stdin(), digest)), path, kinds);
        }
        InputSplit::Whole => {
            let file = File::open(path).map_err(io)?;
            return read(Box::new(Hashed::new(CountedSource { source: file, count }, digest)), path, kinds);
        }
        InputSplit::Archive => Package::open(File::open(path).map_err(io)?).map_err(io)?.into_reader(path),
        InputSplit::Member(member) => return open_member(input, member, kinds, count, digest),
        InputSplit::Graph(part) => return open_graph(path, part, count, digest),
        InputSplit::RowGroup(group) => tables::open(path, *group, kinds.redirects, None, &digest)?,
        InputSplit::Generated(share) => Box::new(Generator::of(*share)),
    };
    Ok(Box::new(Counted { reader, _count: count }))
}

/// Opens a crawl file in a ZIP. The digest is of the stored bytes.
fn open_member(
    input: &Input,
    member: &Member,
    kinds: LinkKinds,
    count: Count,
    digest: DigestCell,
) -> Result<Box<dyn CaptureReader>, Error> {
    let io = |error| Error::io(&input.path, error);
    let mut file = File::open(&input.path).map_err(io)?;
    file.seek(SeekFrom::Start(member.offset)).map_err(io)?;
    let stored = Hashed::new(CountedSource { source: file.take(member.stored_bytes), count }, digest);
    let notes = Notes::default();
    let bytes = Unpacked::new(stored, member, Notes::clone(&notes));
    read_noted(Box::new(bytes), notes, &input.name(), kinds)
}

/// Opens a file of a web graph.
fn open_graph(
    path: &Path,
    part: &GraphPart,
    count: Count,
    digest: DigestCell,
) -> Result<Box<dyn CaptureReader>, Error> {
    let reader: Option<Box<dyn CaptureReader>> = match part.table {
        Table::Vertices(_) => Some(Box::new(HostFile::new(part.clone(), Arc::clone(&digest)))),
        Table::Names(group) => {
            let dated = (part.release.time, part.release.www);
            Some(tables::open(path, group, false, Some(dated), &digest)?)
        }
        Table::Edges => None,
    };
    if let Some(reader) = reader {
        return Ok(Box::new(Counted { reader, _count: count }));
    }
    let io = |error| Error::io(path, error);
    let source: Box<dyn Read + Send> = if path.as_os_str() == STDIN {
        Box::new(Hashed::new(std::io::stdin(), digest))
    } else {
        Box::new(Hashed::new(CountedSource { source: File::open(path).map_err(io)?, count }, digest))
    };
    let notes = Notes::default();
    let text = Text::new(source, Notes::clone(&notes)).map_err(io)?;
    let reader = edges::open(Box::new(Lines(text)), path, part);
    Ok(Box::new(Watched { reader, notes, path: path.to_owned() }))
}

/// The bytes of an input that are not yet counted. Dropping the value counts the rest.
struct Count {
    bytes_read: Arc<AtomicU64>,
    left: u64,
}

impl Count {
    fn add(&mut self, bytes: u64) {
        // A file may grow while it is read.
        let bytes = bytes.min(self.left);
        self.left -= bytes;
        self.bytes_read.fetch_add(bytes, Relaxed);
    }
}

impl Drop for Count {
    fn drop(&mut self) {
        self.add(u64::MAX);
    }
}

/// A reader that counts its input as read when it is dropped.
struct Counted {
    reader: Box<dyn CaptureReader>,
    _count: Count,
}

impl CaptureReader for Counted {
    fn read(&mut self, capture: &mut Capture, tally: &mut Tally) -> Result<bool, Error> {
        self.reader.read(capture, tally)
    }
}

/// A source that counts its bytes when they are read.
struct CountedSource<R> {
    source: R,
    count: Count,
}

impl<R: Read> Read for CountedSource<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let bytes = self.source.read(buffer)?;
        self.count.add(bytes as u64);
        Ok(bytes)
    }
}

/// A reader of captures from a source of bytes. `path` is the name of the source in the tally.
pub(crate) fn read(
    source: Box<dyn Read + Send>,
    path: &Path,
    kinds: LinkKinds,
) -> Result<Box<dyn CaptureReader>, Error> {
    read_noted(source, Notes::default(), path, kinds)
}

/// As [`read`], with notes of the source.
fn read_noted(
    source: Box<dyn Read + Send>,
    notes: Notes,
    path: &Path,
    kinds: LinkKinds,
) -> Result<Box<dyn CaptureReader>, Error> {
    let io = |error| Error::io(path, error);
    let mut text = Text::new(source, Notes::clone(&notes)).map_err(io)?;
    while text.peek(1).map_err(io)?.is_empty() && text.resume() {}
    let head = text.peek(detect::HEAD_BYTES).map_err(io)?;
    let is_broken = head.is_empty() && notes.lock().is_ok_and(|notes| !notes.is_empty());
    let format = if is_broken {
        Format::NotRead(Finding::OtherFile, "nothing in the file can be decompressed")
    } else {
        detect::format(head)
    };
    let documents = Documents::new(kinds);
    let reader: Box<dyn CaptureReader> = match format {
        Format::Warc => Box::new(WarcReader::new(text, path.to_owned(), documents)),
        Format::Arc => Box::new(ArcReader::new(text, path.to_owned(), documents)),
        Format::JsonLines => crate::formats::jsonl::open(Box::new(Lines(text)), path, kinds.redirects),
        Format::Lga => crate::formats::lga::open(Box::new(Lines(text)), path),
        Format::AutCsv => crate::formats::aut_csv::open(Box::new(Lines(text)), path),
        Format::LinksFile => crate::formats::links_file::open(Box::new(Lines(text)), path),
        Format::Cdx => cdx::open(Box::new(MemberLines::new(text)), path, kinds.redirects),
        Format::Cdxj => cdxj::open(Box::new(MemberLines::new(text)), path, kinds.redirects),
        Format::CrawlLog => crawl_log::open(Box::new(MemberLines::new(text)), path, kinds),
        Format::NotRead(finding, detail) => {
            Box::new(NotRead { path: path.to_owned(), report: Some((finding, detail)) })
        }
    };
    Ok(Box::new(Watched { reader, notes, path: path.to_owned() }))
}

/// Moves the notes on damage of the compression, or of the archive around the file, into the tally.
struct Watched {
    reader: Box<dyn CaptureReader>,
    notes: Notes,
    path: PathBuf,
}

impl CaptureReader for Watched {
    fn read(&mut self, capture: &mut Capture, tally: &mut Tally) -> Result<bool, Error> {
        let read = self.reader.read(capture, tally);
        if let Ok(mut notes) = self.notes.lock() {
            notes.drain(tally, &self.path);
        }
        read
    }
}

/// A file that is not read: one finding, no captures.
struct NotRead {
    path: PathBuf,
    report: Option<(Finding, &'static str)>,
}

impl CaptureReader for NotRead {
    fn read(&mut self, _: &mut Capture, tally: &mut Tally) -> Result<bool, Error> {
        if let Some((finding, detail)) = self.report.take() {
            tally.unread(finding, &self.path, detail);
        }
        Ok(false)
    }
}
