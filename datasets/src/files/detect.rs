//! Detects the format of a file from the first decompressed bytes. The name of the file plays no role.

use memchr::memmem;

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
    /// Links as text: a source line and indented destinations, or `source time destination...`.
    LinksFile,
    Parquet,
    /// With what is known of it.
    Unknown(&'static str),
}

/// How much of the text [`format`] wants to see.
pub(crate) const HEAD_BYTES: usize = 8 << 10;

/// The format of a text by its head.
pub(crate) fn format(head: &[u8]) -> Format {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    if head.starts_with(b"PAR1") {
        return Format::Parquet;
    }
    for (magic, name) in [
        (&b"PK\x03\x04"[..], "ZIP (unpack a WACZ file and read its WARC files)"),
        (b"\x04\x22\x4d\x18", "LZ4 (compress with gzip or zstd instead)"),
        (b"BZh", "bzip2 (compress with gzip or zstd instead)"),
        (b"\xfd7zXZ", "xz (compress with gzip or zstd instead)"),
        (b" CDX ", "CDX index (without links)"),
        (b"!OpenWayback-CDXJ", "CDXJ index (without links)"),
    ] {
        if head.starts_with(magic) {
            return Format::Unknown(name);
        }
    }
    let start = head.trim_ascii_start();
    if start.is_empty() {
        return Format::Unknown("the file is empty");
    }
    if start.starts_with(b"filedesc://") {
        return Format::Arc;
    }
    if crate::formats::warc::version(start)
        || memmem::find_iter(head, b"\nWARC/").any(|at| crate::formats::warc::version(&head[at + 1..]))
    {
        return Format::Warc;
    }
    if memmem::find(head, b"\nfiledesc://").is_some() {
        return Format::Arc;
    }
    let line = start.split(|byte| *byte == b'\n').next().unwrap_or_default();
    if crate::formats::arc::is_header(line) {
        return Format::Arc;
    }
    if line.starts_with(b"{") {
        let has = |name: &[u8]| memmem::find(line, name).is_some();
        let lga = has(b"\"surt_url\"") || has(b"\"outlink_ids\"");
        return if lga { Format::Lga } else { Format::JsonLines };
    }
    if aut_header(line) {
        return Format::AutCsv;
    }
    if links_file(start) { Format::LinksFile } else { Format::Unknown("the content matches no known format") }
}

/// `crawl_date, src, dest, ...` with any quotes and spaces.
fn aut_header(line: &[u8]) -> bool {
    let line = line.to_ascii_lowercase();
    let mut names = line.split(|byte| matches!(byte, b',' | b'\t')).map(|name| {
        let name = name.trim_ascii();
        name.strip_prefix(b"\"").and_then(|name| name.strip_suffix(b"\"")).unwrap_or(name)
    });
    names.clone().any(|name| name == b"crawl_date") && names.any(|name| matches!(name, b"src" | b"source" | b"url"))
}

fn links_file(text: &[u8]) -> bool {
    let mut lines = text.split(|byte| *byte == b'\n').map(|line| line.trim_ascii_end());
    let mut lines = lines.by_ref().filter(|line| !line.is_empty() && !line.starts_with(b"#"));
    let Some(first) = lines.next() else { return false };
    let mut words = first.split(|byte| byte.is_ascii_whitespace()).filter(|word| !word.is_empty());
    if !words.next().is_some_and(is_url) {
        return false;
    }
    match words.next() {
        Some(time) => (4..=14).contains(&time.len()) && time.iter().all(u8::is_ascii_digit),
        None => {
            lines.next().is_some_and(|line| matches!(line.first(), Some(b' ' | b'\t')) && is_url(line.trim_ascii()))
        }
    }
}

fn is_url(word: &[u8]) -> bool {
    memmem::find(word, b"://").is_some_and(|at| at > 0 && word[..at].iter().all(u8::is_ascii_alphanumeric))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_by_their_heads() {
        for (head, expected) in [
            (&b"WARC/1.0\r\nWARC-Type: x"[..], Format::Warc),
            (b"\r\n\r\nWARC/0.17\r\n", Format::Warc),
            (b"broken\nWARC/1.1\n", Format::Warc),
            (b"filedesc://a.arc 0.0.0.0", Format::Arc),
            (b"{\"url\":\"http://a/\",\"ts\":\"2014\"}", Format::JsonLines),
            (b"{\"surt_url\":\"org,archive)/\",\"url\":\"x\",\"id\":1}", Format::Lga),
            (b"{\"id\":1,\"timestamp\":\"2008\",\"outlink_ids\":[]}", Format::Lga),
            (b"crawl_date, source, target, anchor_text\n", Format::AutCsv),
            (b"\"crawl_date\",\"src\",\"dest\"\n", Format::AutCsv),
            (b"http://a/ 1.2.3.4 20140102030405 text/html 12\nHTTP/1.0 200 OK\n", Format::Arc),
            (b"http://a/ 20140102 20140102030405 http://b/ 12\n", Format::LinksFile),
            (b"http://a/\n\thttp://b/\n", Format::LinksFile),
            (b"http://a/ 20140102030405 http://b/\n", Format::LinksFile),
            (b"PAR1\0\0", Format::Parquet),
            (b"PK\x03\x04", Format::Unknown("ZIP (unpack a WACZ file and read its WARC files)")),
            (b" CDX N b a", Format::Unknown("CDX index (without links)")),
            (b"", Format::Unknown("the file is empty")),
            (b"http://a/\nhttp://b/\n", Format::Unknown("the content matches no known format")),
            (b"com,example)/ 20140101000000 {}", Format::Unknown("the content matches no known format")),
        ] {
            assert_eq!(format(head), expected, "{}", head.escape_ascii());
        }
    }
}
