//! Detects the format of a file from the first decompressed bytes. The name of the file plays no role.
//!
//! Each reader says whether it knows the first lines (`is_own` beside the reader). Index files come first, because
//! their lines resemble those of ARC and of links files. A file that no reader claims is not read. It is reported by
//! name, with a description.

use crate::Finding;
use crate::files::head::Head;
use crate::files::zip::{EMPTY, LOCAL_HEADER};
use crate::formats::index::Kind;
use crate::formats::{arc, aut_csv, cc_graph, index, jsonl, lga, links_file, warc};

/// A format of crawl files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// WARC or WAT.
    Warc,
    Arc,
    /// Captures as JSON lines.
    JsonLines,
    /// `id.map` or `id.graph` of the Internet Archive's LGA, JSON lines.
    Lga,
    /// Links as CSV, of the Archives Unleashed Toolkit or ARCH.
    AutCsv,
    /// Links as text.
    LinksFile,
    Cdx,
    Cdxj,
    /// A crawl log of Heritrix.
    CrawlLog,
    /// ZIP or Parquet, which have their directories at the end, with a description.
    Container(&'static str),
    /// A file that is not read: how it counts, and a description.
    NotRead(Finding, &'static str),
}

/// The number of bytes of text that [`format`] needs.
pub(crate) const HEAD_BYTES: usize = 64 << 10;

/// The format of a text, decided by its head. A head shorter than [`HEAD_BYTES`] is the whole text.
pub(crate) fn format(head: &[u8]) -> Format {
    let is_all = head.len() < HEAD_BYTES;
    let head = Head { text: head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head), is_all };
    if head.text.trim_ascii_start().is_empty() {
        return Format::NotRead(Finding::OtherFile, "the file is empty");
    }
    if let Some(container) = container(head.text) {
        return container;
    }
    if let Some(kind) = index::kind(&head) {
        return match kind {
            Kind::Cdx => Format::Cdx,
            Kind::Cdxj => Format::Cdxj,
            Kind::CrawlLog => Format::CrawlLog,
            Kind::NotRead(name) => Format::NotRead(Finding::IndexFile, name),
        };
    }
    let readers: [(IsOwn, Format); 6] = [
        (warc::is_own, Format::Warc),
        (arc::is_own, Format::Arc),
        (lga::is_own, Format::Lga),
        (jsonl::is_own, Format::JsonLines),
        (aut_csv::is_own, Format::AutCsv),
        (links_file::is_own, Format::LinksFile),
    ];
    let own = readers.into_iter().find(|(is_own, _)| is_own(&head));
    match (own, cc_graph::kind(&head)) {
        (Some((_, format)), _) => format,
        (None, Some(cc_graph::Kind::Ranks)) => {
            Format::NotRead(Finding::IndexFile, "ranks of a web graph: only --ranks reads them")
        }
        (None, Some(_)) => Format::NotRead(Finding::UnreadFile, cc_graph::NEEDS_OPTIONS),
        (None, None) if cc_graph::bv::has_properties(head.text) => {
            Format::NotRead(Finding::UnreadFile, cc_graph::NEEDS_OPTIONS)
        }
        (None, None) => Format::NotRead(Finding::OtherFile, other(&head)),
    }
}

/// Whether a file with this beginning belongs to a reader.
type IsOwn = fn(&Head<'_>) -> bool;

/// A file that holds other files, or all of its content compressed.
fn container(head: &[u8]) -> Option<Format> {
    let formats = [
        (LOCAL_HEADER, Format::Container("ZIP in a WACZ")),
        (EMPTY, Format::NotRead(Finding::OtherFile, "ZIP without members")),
        (b"PAR1", Format::Container("Parquet in a WACZ")),
        (b"\x04\x22\x4d\x18", Format::NotRead(Finding::UnreadFile, "LZ4 (compress with gzip or zstd instead)")),
        (b"BZh", Format::NotRead(Finding::UnreadFile, "bzip2 (compress with gzip or zstd instead)")),
        (b"\xfd7zXZ", Format::NotRead(Finding::UnreadFile, "xz (compress with gzip or zstd instead)")),
    ];
    formats.into_iter().find(|(magic, _)| head.starts_with(magic)).map(|(_, format)| format)
}

/// Describes a file that no reader claims.
fn other(head: &Head<'_>) -> &'static str {
    let lines: Vec<&[u8]> = head.whole_lines().filter(|line| !line.starts_with(b"#")).collect();
    if head.text.trim_ascii_start().starts_with(b"{") {
        "JSON without the fields url and ts"
    } else if !lines.is_empty() && lines.iter().all(|line| links_file::is_url(line)) {
        "a list of URLs, without times and links"
    } else {
        "the content matches no known format"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OTHER: Format = Format::NotRead(Finding::OtherFile, "the content matches no known format");

    #[test]
    fn formats_by_their_heads() {
        for (head, expected) in [
            (&b"WARC/1.0\r\nWARC-Type: x"[..], Format::Warc),
            (b"\r\n\r\nWARC/0.17\r\n", Format::Warc),
            (b"broken\nWARC/1.1\n", Format::Warc),
            (b"WARC/1.0 is a format\nof files\n", OTHER),
            (b"A file begins with\nWARC/1.0 and goes on.\n", OTHER),
            (b"filedesc://a.arc 0.0.0.0", Format::Arc),
            (b"{\"url\":\"http://a/\",\"ts\":\"2014\"}", Format::JsonLines),
            (b"{\"url\": \"http://a/\", \"ts\": \"20", Format::JsonLines),
            (b"no json\n{\"url\":\"http://a/\",\"ts\":\"2014\"}\n", Format::JsonLines),
            (b"{\"surt_url\":\"org,archive)/\",\"url\":\"x\",\"id\":1}", Format::Lga),
            (b"{\"id\":1,\"timestamp\":\"2008\",\"outlink_ids\":[]}", Format::Lga),
            (b"crawl_date, source, target, anchor_text\n", Format::AutCsv),
            (b"\"crawl_date\",\"src\",\"dest\"\n", Format::AutCsv),
            (b"20080430,http://a/,http://b/,anchor\n", Format::AutCsv),
            (b"crawl_date\tsrc\tdest\tanchor\n", Format::AutCsv),
            (b"20080430204826\thttp://a/\thttp://b/\tanchor, with a comma\n", Format::AutCsv),
            (b"20080430204826\thttp://a/\n", OTHER),
            (b"http://a/ 1.2.3.4 20140102030405 12\nHTTP/1.0 200 OK\n", Format::Arc),
            (b"a)/ 20140102030405 http://a/\xe9 text/html 200 X 12\n", Format::Cdx),
            (b"a)/ 20140102030405 http://a/ - 301 X /a b c d e f g - 1 2 x.arc\n", Format::Cdx),
            (b"2007-12-27T12:51:28.532Z 200 59 http://a/\xe9 L http://b/ text/html #017 - - - -\n", Format::CrawlLog),
            (b"http://a/ 1.2.3.4 20140102030405 text/html 12\nHTTP/1.0 200 OK\n", Format::Arc),
            (b"http://a/ 20140102 20140102030405 http://b/ 12\n", Format::LinksFile),
            (b"http://a/\n\thttp://b/\n", Format::LinksFile),
            (b"http://a/ 20140102030405 http://b/\n", Format::LinksFile),
            (b"http://a/ http://b/\n", Format::LinksFile),
            (b"http://a/ /b\n", Format::LinksFile),
            (b"http://a/ 2008-04-30T20:48:26Z http://b/\n", Format::LinksFile),
            (b"# links\nhttp://a/\nhttp://b/ http://c/\n", Format::LinksFile),
            (b"See\nhttp://a/ http://b/\nfor what this is.\n", OTHER),
            (b"PAR1\0\0", Format::Container("Parquet in a WACZ")),
            (b"PK\x03\x04word/", Format::Container("ZIP in a WACZ")),
            (b" CDX N b a", Format::Cdx),
            (b"http://a/ 1.2.3.4 20140102030405 text/html 12 x.arc 7\n", Format::Cdx),
            (b"2007-12-27T12:51:28.532Z 200 59 http://a/ L http://b/ text/html #017 - - - -\n", Format::CrawlLog),
            (b"com,example)/ 20140101000000\tpart\t0\t275\t1\n", Format::NotRead(Finding::IndexFile, "ZipNum index")),
            (b"", Format::NotRead(Finding::OtherFile, "the file is empty")),
            (b"http://a/\nhttp://b/\n", Format::NotRead(Finding::OtherFile, "a list of URLs, without times and links")),
            (b"{\n  \"a\": 1\n}\n", Format::NotRead(Finding::OtherFile, "JSON without the fields url and ts")),
            (b"com,example)/ 20140101000000 {\"url\":\"http://example.com/\"}", Format::Cdxj),
            (
                b"com,example)/ 20140101000000 {}",
                Format::NotRead(Finding::IndexFile, "CDXJ without the URLs of its captures"),
            ),
        ] {
            assert_eq!(format(head), expected, "{}", head.escape_ascii());
        }
    }
}
