//! The entry points of the crate: [`inputs`] lists the inputs ([`listing`]), and [`open`] returns a reader of captures
//! for each.

mod detect;
mod listing;
mod names;
mod release;
mod spooled;

use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::files::compressed::{Lines, MemberLines, Notes, Text};
use crate::files::hashed::{DigestCell, Hashed, digest_of};
use crate::files::place::Place;
use crate::files::source::Source;
use crate::files::spool::Spill;
use crate::files::zip::{Member, Unpacked};
use crate::formats::arc::ArcReader;
use crate::formats::cc_graph::edges;
use crate::formats::cc_graph::vertices::HostFile;
use crate::formats::document::Documents;
use crate::formats::index::{cdx, cdxj, crawl_log};
use crate::formats::tables;
use crate::formats::wacz::Package;
use crate::formats::warc::WarcReader;
use crate::generate::Generator;
use crate::input::{Input, InputSplit};
use crate::reader::detect::Format;
pub use crate::reader::listing::{inputs, without_secrets};
pub use crate::reader::names::{NameList, names_in};
pub use crate::reader::release::{graph_inputs, ranks_in};
use crate::release::{GraphPart, Table, Www};
use crate::{Capture, Error, Finding, Tally};

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

/// How inputs are read: what a store holds for all that is read into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadOptions {
    /// The links that count.
    pub kinds: LinkKinds,
    /// The meaning of a leading `www` in names of hosts in tables.
    pub www: Www,
}

impl From<LinkKinds> for ReadOptions {
    /// Names of hosts are kept as they are.
    fn from(kinds: LinkKinds) -> Self {
        ReadOptions { kinds, www: Www::Keep }
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

/// Opens an input. [`open`] detects the format from the first bytes, not from the name.
///
/// # Errors
/// The file cannot be opened or read. A file of another kind is not an error: the reader returns no captures and counts
/// the file ([`Finding::is_file`]).
pub fn open(input: &Input, options: impl Into<ReadOptions>) -> Result<Box<dyn CaptureReader>, Error> {
    open_metered(input, options.into(), Arc::default(), Arc::default(), &Spill::default())
}

/// As [`open`], and adds bytes of the input to `bytes_read` while they are read. When the reader ends, `bytes_read` has
/// grown by [`Input::bytes`], even if only a part of the file was read. When the input was read to its end, `digest`
/// has its digest. Generated inputs and row groups on other machines have no digest. What can be read only once, and an
/// archive or a table that is compressed, is copied to unnamed files in `spill`.
///
/// # Errors
/// As [`open`].
pub fn open_metered(
    input: &Input,
    options: ReadOptions,
    bytes_read: Arc<AtomicU64>,
    digest: DigestCell,
    spill: &Spill,
) -> Result<Box<dyn CaptureReader>, Error> {
    let input = &input.kept(spill)?;
    let path = input.path();
    let count = Count { bytes_read, left: input.bytes };
    let io = |error| Error::io(path, error);
    match &input.part {
        InputSplit::Whole if input.place.is_copied() && is_container(&input.place).map_err(io)? => {
            let source = input.place.source().map_err(io)?;
            let whole = digest_of(&source, 0..source.bytes()).map_err(io)?;
            let reader = spooled::parts(path, source, options)?;
            digest.get_or_init(|| whole);
            Ok(Box::new(Counted { reader, _count: count }))
        }
        InputSplit::Whole => {
            let source = CountedSource { source: input.place.reader().map_err(io)?, count };
            read(Box::new(Hashed::new(source, digest)), Notes::default(), path, options, Some(spill))
        }
        InputSplit::Graph(part) => open_graph(input, part, count, digest),
        InputSplit::Generated(share) => {
            Ok(Box::new(Counted { reader: Box::new(Generator::of(*share)), _count: count }))
        }
        _ => open_part(input, &input.place.source().map_err(io)?, options, count, digest),
    }
}

/// Whether the bytes begin like an archive or a table.
fn is_container(place: &Place) -> std::io::Result<bool> {
    let mut head = Vec::new();
    place.reader()?.take(CONTAINER_BYTES).read_to_end(&mut head)?;
    Ok(matches!(detect::format(&head), Format::Container(_)))
}

/// The number of bytes that show an archive or a table.
const CONTAINER_BYTES: u64 = 4;

/// Opens a part of a file with these bytes.
fn open_part(
    input: &Input,
    source: &Source,
    options: ReadOptions,
    count: Count,
    digest: DigestCell,
) -> Result<Box<dyn CaptureReader>, Error> {
    let path = input.path();
    let reader: Box<dyn CaptureReader> = match &input.part {
        InputSplit::Member(member) => return open_member(input, member, source, options, count, digest),
        InputSplit::RowGroup(group) => tables::open(path, source, *group, options, None, &digest)?,
        InputSplit::Archive => Package::open(source.clone()).map_err(|error| Error::io(path, error))?.into_reader(path),
        InputSplit::Whole => {
            let bytes = source.reader(0..source.bytes()).map_err(|error| Error::io(path, error))?;
            read(bytes, Notes::default(), path, options, None)?
        }
        // These are no parts of a file with ranges.
        InputSplit::Graph(_) | InputSplit::Generated(_) => Box::new(NotRead { path: path.to_owned(), report: None }),
    };
    Ok(Box::new(Counted { reader, _count: count }))
}

/// Opens a crawl file in a ZIP. The digest is of the stored bytes.
fn open_member(
    input: &Input,
    member: &Member,
    source: &Source,
    options: ReadOptions,
    count: Count,
    digest: DigestCell,
) -> Result<Box<dyn CaptureReader>, Error> {
    let io = |error| Error::io(input.path(), error);
    let place = member.offset..member.offset.saturating_add(member.stored_bytes);
    let stored = source.reader(place).map_err(io)?;
    let stored = Hashed::new(CountedSource { source: stored, count }, digest);
    let notes = Notes::default();
    let bytes = Unpacked::new(stored, member, Notes::clone(&notes));
    read(Box::new(bytes), notes, &input.name(), options, None)
}

/// Opens a file of a web graph.
fn open_graph(
    input: &Input,
    part: &GraphPart,
    count: Count,
    digest: DigestCell,
) -> Result<Box<dyn CaptureReader>, Error> {
    let path = input.path();
    let io = |error| Error::io(path, error);
    let reader: Option<Box<dyn CaptureReader>> = match part.table {
        Table::Vertices(_) => Some(Box::new(HostFile::new(part.clone(), Arc::clone(&digest)))),
        Table::Names(group) => {
            let options = ReadOptions { kinds: LinkKinds::default(), www: part.release.www };
            let source = input.place.source().map_err(io)?;
            Some(tables::open(path, &source, group, options, Some(part.release.time), &digest)?)
        }
        Table::Beside => Some(Box::new(NotRead { path: path.to_owned(), report: None })),
        Table::Edges | Table::Lists(_) => None,
    };
    if let Some(reader) = reader {
        return Ok(Box::new(Counted { reader, _count: count }));
    }
    let source = CountedSource { source: input.place.reader().map_err(io)?, count };
    if let Table::Lists(number) = part.table
        && let Some(properties) = part.release.properties.get(number)
    {
        let mut text = String::new();
        let read = properties.reader().and_then(|bytes| bytes.take(PROPERTIES_MAX).read_to_string(&mut text));
        read.map_err(|error| Error::io(&properties.path, error))?;
        return Ok(edges::open_lists(Box::new(BufReader::new(Hashed::new(source, digest))), &text, path, part));
    }
    let notes = Notes::default();
    let text = Text::new(Box::new(Hashed::new(source, digest)), Notes::clone(&notes)).map_err(io)?;
    let reader = edges::open(Box::new(Lines(text)), path, part);
    Ok(Box::new(Watched { reader, notes, path: path.to_owned() }))
}

/// The most bytes of the properties of a graph that are read.
const PROPERTIES_MAX: u64 = 1 << 20;

/// The bytes of an input that are not yet counted. Dropping the value counts the rest.
#[derive(Default)]
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

/// A reader of captures from a source of bytes. `notes` get damage that the source finds, and `path` is the name of the
/// source in the tally. Without `spill`, archives and tables are not read.
pub(crate) fn read(
    source: Box<dyn Read + Send>,
    notes: Notes,
    path: &Path,
    options: ReadOptions,
    spill: Option<&Spill>,
) -> Result<Box<dyn CaptureReader>, Error> {
    let kinds = options.kinds;
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
        Format::Container(detail) => match spill {
            Some(spill) => spooled::open(text, path, options, spill)?,
            None => Box::new(NotRead { path: path.to_owned(), report: Some((Finding::UnreadFile, detail)) }),
        },
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
