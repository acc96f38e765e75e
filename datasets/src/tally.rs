//! Counts everything that a reader meets besides captures. No part of the input disappears without a number.
//!
//! There are four classes of [`Finding`]:
//!
//! - *Damage*: the input is broken. `--strict` turns damage into an error. The tally keeps file and offset of the first
//!   [`EXAMPLES_PER_KIND_MAX`] places of each kind.
//! - *Files that are not read*: an index, a text, or a crawl file in a form that this program does not read. Only the
//!   last is an error with `--strict`. The tally keeps the first files of each kind.
//! - *Left out or changed*: sound input that the options exclude, or that the reader has to alter.
//! - *Skipped*: a record without a page, so that skipping the record loses nothing.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The number of places of each kind of damage, and of files of each kind, that are kept.
pub const EXAMPLES_PER_KIND_MAX: usize = 20;

/// The number of containers of originals that are kept.
const CONTAINERS_MAX: usize = 1000;
/// The most bytes of the name of such a container.
const CONTAINER_BYTES_MAX: usize = 1000;

/// A kind of thing in the input that is not a capture or not a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Finding {
    /// The file or a record ends too early.
    Truncated,
    /// A gzip, zstd or other container is broken; reading continued at the next member, if any.
    BadCompression,
    /// The bytes of a file have not the checksum that the archive around the file gives.
    WrongDigest,
    /// A file that the description of an archive lists, and that the archive does not contain.
    MissingFile,
    /// A record header cannot be understood.
    BadHeader,
    /// A record's length does not lead to the next record.
    BadLength,
    /// A date cannot be understood.
    BadDate,
    /// The chunks of a body are broken.
    BadChunks,
    /// A body cannot be decoded with its content encoding.
    BadContentEncoding,
    /// A JSON text is broken or lacks a field.
    BadJson,
    /// A table's row is broken or lacks a column.
    BadRow,
    /// A name in a web graph that no host can have.
    BadHost,
    /// An edge of a web graph with a number that no host has.
    UnknownHost,
    /// A row of a web graph that is not in the order of numbers. A host is left out, and an edge is read like all
    /// others.
    Unsorted,
    /// A page's URL cannot be parsed.
    BadPageUrl,
    /// A file that may hold captures, in a form that is not read.
    UnreadFile,
    /// A file about captures that gives none: a ZipNum index, a list of pages, a crawl log of Browsertrix.
    IndexFile,
    /// A file that is not a crawl file.
    OtherFile,
    /// A record of a type that is not read (continuation, conversion, ...).
    OtherRecord,
    /// A retrieval without a final status. Final statuses are 200 to 999.
    OtherStatus,
    /// The response to a request that was not a GET, counted by method.
    OtherMethod,
    /// A capture whose body was not read whole, counted by reason ([`crate::Cut`]). The capture was read.
    CutCapture,
    /// A capture with links that do not count: its status is not 200, or it is a revisit. In a crawl log, a link from a
    /// page that is not in the log before the link.
    UnusedLinks,
    /// A document that is not HTML.
    NotHtml,
    /// A page's URL is neither http nor https.
    OtherPageScheme,
    /// A link that cannot be parsed as a URL.
    BadLink,
    /// A link that is neither http nor https.
    OtherLinkScheme,
    /// A date with parts finer than a second, which were dropped.
    FinerDate,
    /// A date that does not name a second. The beginning of the named minute, hour, day, month or year was taken.
    CoarserDate,
    /// A record without a date, if the page has a newer record without a date. The newer record was taken.
    OlderUndated,
    /// A page's URL is longer than the limit.
    LongPageUrl,
    /// A link is longer than the limit for URLs.
    LongLink,
    /// A capture that was removed from the store, and is kept out.
    RemovedPage,
    /// A link to a URL that was removed from the store, and is kept out.
    RemovedLink,
    /// A URL that was never captured, and that fewer pages link to than the option requires.
    FewSources,
    /// A page with a record that would be too large: its links stay unknown.
    LargePage,
    /// A host of a web graph without edges.
    LoneHost,
    /// A host of a web graph that was read as the host without `www`.
    FoldedHost,
    /// An edge between two hosts of a web graph that were read as one.
    FoldedEdge,
    /// The number of links that an edge of a web graph stands for. The edge was read.
    EdgeCount,
    /// A host of a host index that the crawl did not visit.
    NotCrawled,
    /// A request record.
    Request,
    /// A record about the file: `warcinfo`, or `filedesc` in ARC.
    FileInfo,
    /// A metadata record without links of the requested kinds.
    Metadata,
    /// A record of a look-up in the DNS.
    Dns,
}

impl Finding {
    /// All kinds: damage, then whole files, then input that is left out or changed, then input that is skipped.
    pub const ALL: [Finding; 45] = [
        Finding::Truncated,
        Finding::BadCompression,
        Finding::WrongDigest,
        Finding::MissingFile,
        Finding::BadHeader,
        Finding::BadLength,
        Finding::BadDate,
        Finding::BadChunks,
        Finding::BadContentEncoding,
        Finding::BadJson,
        Finding::BadRow,
        Finding::BadHost,
        Finding::UnknownHost,
        Finding::Unsorted,
        Finding::BadPageUrl,
        Finding::UnreadFile,
        Finding::IndexFile,
        Finding::OtherFile,
        Finding::OtherRecord,
        Finding::OtherStatus,
        Finding::OtherMethod,
        Finding::CutCapture,
        Finding::UnusedLinks,
        Finding::NotHtml,
        Finding::OtherPageScheme,
        Finding::BadLink,
        Finding::OtherLinkScheme,
        Finding::FinerDate,
        Finding::CoarserDate,
        Finding::OlderUndated,
        Finding::LongPageUrl,
        Finding::LongLink,
        Finding::RemovedPage,
        Finding::RemovedLink,
        Finding::FewSources,
        Finding::LargePage,
        Finding::LoneHost,
        Finding::FoldedHost,
        Finding::FoldedEdge,
        Finding::EdgeCount,
        Finding::NotCrawled,
        Finding::Request,
        Finding::FileInfo,
        Finding::Metadata,
        Finding::Dns,
    ];

    /// The kind in words, as reports print it.
    pub fn name(self) -> &'static str {
        match self {
            Finding::Truncated => "truncated",
            Finding::BadCompression => "bad compression",
            Finding::WrongDigest => "wrong digest",
            Finding::MissingFile => "missing file",
            Finding::BadHeader => "bad record header",
            Finding::BadLength => "wrong record length",
            Finding::BadDate => "bad date",
            Finding::BadChunks => "bad chunked body",
            Finding::BadContentEncoding => "bad content encoding",
            Finding::BadJson => "bad JSON",
            Finding::BadRow => "bad row",
            Finding::BadHost => "bad host name",
            Finding::UnknownHost => "unknown host number",
            Finding::Unsorted => "out of order",
            Finding::BadPageUrl => "bad page URL",
            Finding::UnreadFile => "unread crawl file",
            Finding::IndexFile => "index file",
            Finding::OtherFile => "other file",
            Finding::OtherRecord => "other record type",
            Finding::OtherStatus => "no final status",
            Finding::OtherMethod => "not a GET request",
            Finding::CutCapture => "cut capture",
            Finding::UnusedLinks => "unused links",
            Finding::NotHtml => "not HTML",
            Finding::OtherPageScheme => "page not http(s)",
            Finding::BadLink => "link not a URL",
            Finding::OtherLinkScheme => "link not http(s)",
            Finding::FinerDate => "date finer than a second",
            Finding::CoarserDate => "date coarser than a second",
            Finding::OlderUndated => "older undated record",
            Finding::LongPageUrl => "page URL too long",
            Finding::LongLink => "link too long",
            Finding::RemovedPage => "removed capture",
            Finding::RemovedLink => "removed link",
            Finding::FewSources => "URL with few sources",
            Finding::LargePage => "page too large",
            Finding::LoneHost => "host without links",
            Finding::FoldedHost => "www host folded",
            Finding::FoldedEdge => "link inside a folded host",
            Finding::EdgeCount => "link count not kept",
            Finding::NotCrawled => "host not crawled",
            Finding::Request => "request record",
            Finding::FileInfo => "warcinfo record",
            Finding::Metadata => "metadata record",
            Finding::Dns => "dns record",
        }
    }

    /// Whether the input is broken here; the other kinds are sound input.
    pub fn is_damage(self) -> bool {
        self <= Finding::BadPageUrl
    }

    /// Whether this is a whole file that is not read.
    pub fn is_file(self) -> bool {
        (Finding::UnreadFile..=Finding::OtherFile).contains(&self)
    }

    /// Whether this says something of a capture, and does not show that there was one: its URL may be bad.
    pub fn is_remark(self) -> bool {
        matches!(self, Finding::CutCapture | Finding::UnusedLinks | Finding::FinerDate | Finding::CoarserDate)
    }

    /// Whether nothing is lost: the record holds no page.
    pub fn is_skipped(self) -> bool {
        self >= Finding::Request
    }
}

/// A place in the input with damage, or a file that is not read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Example {
    /// The kind.
    pub finding: Finding,
    /// The file.
    pub path: PathBuf,
    /// The place of the beginning of the record: a byte offset in the file on disk if the format allows it, else in the
    /// uncompressed text; a row number in tables.
    pub offset: u64,
    /// A short description of the damage, or of the file.
    pub detail: String,
}

impl Example {
    /// A finding about a URL, without a place.
    pub fn of_url(finding: Finding, url: &str) -> Self {
        Example { finding, path: PathBuf::new(), offset: 0, detail: url.to_owned() }
    }
}

/// Counts by kind, and the first places of damage.
///
/// ```
/// use std::path::Path;
/// use webstrata_datasets::{Finding, Tally};
///
/// let mut tally = Tally::default();
/// tally.damage(Finding::BadDate, Path::new("crawl.warc"), 2816, "WARC-Date: yesterday");
/// tally.count_many(Finding::OtherLinkScheme, 3);
/// assert_eq!((tally.damaged(), tally.of(Finding::OtherLinkScheme)), (1, 3));
/// assert_eq!(tally.examples()[0].offset, 2816);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    counts: BTreeMap<Finding, u64>,
    /// The parts of a count, by name.
    #[serde(default)]
    parts: BTreeMap<Finding, BTreeMap<String, u64>>,
    examples: Vec<Example>,
    /// The URLs of input that was left out, the smallest of each kind.
    named: BTreeMap<Finding, BTreeSet<String>>,
    /// The containers that revisits name, the smallest names.
    #[serde(default)]
    containers: BTreeSet<String>,
}

impl Tally {
    /// Counts a finding without a location.
    pub fn count(&mut self, finding: Finding) {
        *self.counts.entry(finding).or_default() += 1;
    }

    /// Counts a finding `times` times.
    pub fn count_many(&mut self, finding: Finding, times: u64) {
        if times > 0 {
            *self.counts.entry(finding).or_default() += times;
        }
    }

    /// Counts a finding as one of a few named parts of its kind.
    pub(crate) fn count_as(&mut self, finding: Finding, part: &'static str) {
        self.count(finding);
        *self.parts.entry(finding).or_default().entry(part.to_owned()).or_default() += 1;
    }

    /// The parts of the count of a kind by name: the reasons of cut captures, and the methods other than GET.
    pub fn parts(&self, finding: Finding) -> impl Iterator<Item = (&str, u64)> {
        self.parts.get(&finding).into_iter().flatten().map(|(name, &count)| (&**name, count))
    }

    /// Counts a file that is not read, and keeps its name and a description.
    pub fn unread(&mut self, finding: Finding, path: &Path, detail: impl Into<String>) {
        self.damage(finding, path, 0, detail);
    }

    /// Counts damage and keeps its place.
    pub fn damage(&mut self, finding: Finding, path: &Path, offset: u64, detail: impl Into<String>) {
        self.count(finding);
        if self.of(finding) <= EXAMPLES_PER_KIND_MAX as u64 {
            let detail = detail.into();
            self.examples.push(Example { finding, path: path.to_owned(), offset, detail });
        }
    }

    /// Counts a finding about a URL, and keeps the URL.
    pub fn name(&mut self, finding: Finding, url: String) {
        self.count(finding);
        let named = self.named.entry(finding).or_default();
        named.insert(url);
        shorten(named, EXAMPLES_PER_KIND_MAX);
    }

    /// Keeps the name of the file that holds the original of a revisit (`WARC-Refers-To-Container`).
    pub fn refer_to(&mut self, container: &str) {
        if container.len() <= CONTAINER_BYTES_MAX && !self.containers.contains(container) {
            self.containers.insert(container.to_owned());
            shorten(&mut self.containers, CONTAINERS_MAX);
        }
    }

    /// The files that hold originals of revisits, as the records spell them: the first 1,000 names, sorted.
    pub fn containers(&self) -> impl Iterator<Item = &str> {
        self.containers.iter().map(String::as_str)
    }

    /// The URLs that are kept by name, in order of kind and URL.
    pub fn named(&self) -> impl Iterator<Item = (Finding, &str)> {
        self.named.iter().flat_map(|(&finding, urls)| urls.iter().map(move |url| (finding, &**url)))
    }

    /// The number of findings of a kind.
    pub fn of(&self, finding: Finding) -> u64 {
        self.counts.get(&finding).copied().unwrap_or(0)
    }

    /// The number of damaged places.
    pub fn damaged(&self) -> u64 {
        self.counts.iter().filter(|(finding, _)| finding.is_damage()).map(|(_, count)| count).sum()
    }

    /// The counts, damage first.
    pub fn counts(&self) -> impl Iterator<Item = (Finding, u64)> {
        self.counts.iter().map(|(&finding, &count)| (finding, count))
    }

    /// The kept places of damage, in order of kind, file and offset.
    pub fn examples(&self) -> Vec<&Example> {
        self.kept(Finding::is_damage)
    }

    /// The kept files that were not read, in order of kind and name.
    pub fn files(&self) -> Vec<&Example> {
        self.kept(Finding::is_file)
    }

    fn kept(&self, belongs: fn(Finding) -> bool) -> Vec<&Example> {
        let mut examples: Vec<_> = self.examples.iter().filter(|example| belongs(example.finding)).collect();
        examples.sort();
        examples
    }

    /// Adds the counts and examples of another tally; the result does not depend on the order of such additions.
    pub fn add(&mut self, other: Tally) {
        for (finding, count) in other.counts {
            *self.counts.entry(finding).or_default() += count;
        }
        for (finding, parts) in other.parts {
            let own = self.parts.entry(finding).or_default();
            for (name, count) in parts {
                *own.entry(name).or_default() += count;
            }
        }
        for (finding, urls) in other.named {
            let named = self.named.entry(finding).or_default();
            named.extend(urls);
            shorten(named, EXAMPLES_PER_KIND_MAX);
        }
        self.containers.extend(other.containers);
        shorten(&mut self.containers, CONTAINERS_MAX);
        self.examples.extend(other.examples);
        self.examples.sort();
        let mut kept = BTreeMap::<Finding, usize>::new();
        self.examples.retain(|example| {
            let kept = kept.entry(example.finding).or_default();
            *kept += 1;
            *kept <= EXAMPLES_PER_KIND_MAX
        });
    }
}

/// Keeps the smallest `count_max` names.
fn shorten(named: &mut BTreeSet<String>, count_max: usize) {
    while named.len() > count_max {
        named.pop_last();
    }
}
