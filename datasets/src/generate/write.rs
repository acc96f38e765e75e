//! Writes a generated crawl to a file: JSON lines, or WARC with pages in HTML.
//!
//! The WARC has one gzip member for each record: `warcinfo`, then a `response` for each capture. If a page did not
//! change since its last capture, the record is a `revisit` with the profile identical-payload-digest; a failure always
//! is a `response`. Links inside the host are written as paths. The payload digest is `xxh128:` and 32 hexadecimal
//! digits.
//!
//! The file keeps the order of the captures. Memory: one capture and the capture before.

use super::Generator;
use crate::{Capture, CaptureReader, Error, Tally};
use chrono::DateTime;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde::{Serialize, Serializer};
use std::fmt::Write as _;
use std::io::{self, Write};
use xxhash_rust::xxh3::xxh3_128;

/// Writes the rest of a crawl as JSON lines that this crate reads, and returns the number of captures.
///
/// # Errors
/// Errors of `out`.
pub fn write_jsonl(out: &mut impl Write, crawl: &mut Generator) -> io::Result<u64> {
    #[derive(Serialize)]
    struct Line<'a> {
        url: &'a str,
        ts: String,
        #[serde(serialize_with = "links")]
        links: &'a Capture,
        #[serde(skip_serializing_if = "Option::is_none")]
        status: Option<u16>,
    }
    fn links<S: Serializer>(capture: &&Capture, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(capture.links.iter())
    }
    let (mut capture, mut captures) = (Capture::default(), 0);
    while next(crawl, &mut capture)? {
        let (ts, status) = (date(capture.time, "%Y%m%d%H%M%S"), capture.status);
        let line = Line { url: &capture.url, ts, links: &capture, status };
        serde_json::to_writer(&mut *out, &line)?;
        out.write_all(b"\n")?;
        captures += 1;
    }
    Ok(captures)
}

/// Writes the rest of a crawl as WARC 1.0 with a gzip member for each record, and returns the number of captures.
///
/// # Errors
/// Errors of `out`.
pub fn write_warc(out: &mut impl Write, crawl: &mut Generator) -> io::Result<u64> {
    const WARC_DATE: &str = "%Y-%m-%dT%H:%M:%SZ";
    const WARCINFO: &str = "software: webstrata\r\nformat: WARC File Format 1.0\r\n";
    let mut writer = Records { out, count: 0 };
    let (mut capture, mut captures) = (Capture::default(), 0);
    let mut before: Option<(String, i64, u128)> = None;
    while next(crawl, &mut capture)? {
        let time = date(capture.time, WARC_DATE);
        if captures == 0 {
            writer.record("warcinfo", &time, "Content-Type: application/warc-fields\r\n", WARCINFO)?;
        }
        captures += 1;
        let html = html(&capture);
        let digest = xxh3_128(html.as_bytes());
        let mut fields = format!(
            "WARC-Target-URI: {}\r\nWARC-Payload-Digest: xxh128:{digest:032x}\r\n\
             Content-Type: application/http; msgtype=response\r\n",
            capture.url
        );
        let http = format!(
            "HTTP/1.1 {}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\r\n",
            capture.status.map_or("200 OK".to_owned(), |status| format!("{status} Failed")),
            html.len()
        );
        match &before {
            _ if capture.status.is_some() => writer.record("response", &time, &fields, &(http + &html))?,
            Some((url, first, same)) if *url == capture.url && *same == digest => {
                let _ = write!(
                    fields,
                    "WARC-Profile: http://netpreserve.org/warc/1.0/revisit/identical-payload-digest\r\n\
                     WARC-Refers-To-Target-URI: {url}\r\nWARC-Refers-To-Date: {}\r\n",
                    date(*first, WARC_DATE)
                );
                writer.record("revisit", &time, &fields, &http)?;
            }
            _ => {
                writer.record("response", &time, &fields, &(http + &html))?;
                before = Some((capture.url.clone(), capture.time, digest));
            }
        }
    }
    Ok(captures)
}

struct Records<'a, W> {
    out: &'a mut W,
    count: u128,
}

impl<W: Write> Records<'_, W> {
    fn record(&mut self, kind: &str, time: &str, fields: &str, block: &str) -> io::Result<()> {
        self.count += 1;
        let id = xxh3_128(&self.count.to_le_bytes());
        let mut gzip = GzEncoder::new(&mut *self.out, Compression::fast());
        write!(
            gzip,
            "WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <urn:uuid:{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}>\r\n\
             WARC-Date: {time}\r\n{fields}Content-Length: {}\r\n\r\n{block}\r\n\r\n",
            id >> 96,
            (id >> 80) & 0xffff,
            (id >> 68) & 0xfff,
            (id >> 56) & 0xfff,
            id & 0xffff_ffff_ffff,
            block.len()
        )?;
        gzip.finish().map(|_| ())
    }
}

/// The page of a capture as HTML. Links inside the host are written as paths.
fn html(capture: &Capture) -> String {
    let host_end = capture.url.match_indices('/').nth(2).map_or(capture.url.len(), |(offset, _)| offset);
    let host = &capture.url[..host_end];
    let mut html = format!("<!DOCTYPE html>\n<html><head><title>{}</title></head><body>\n", escaped(&capture.url));
    for link in capture.links.iter() {
        let href = link.strip_prefix(host).filter(|rest| rest.starts_with('/')).unwrap_or(link);
        let name = href.trim_end_matches('/').rsplit('/').next().unwrap_or(href);
        let _ = writeln!(html, "<p><a href=\"{}\">{}</a></p>", escaped(href), escaped(name));
    }
    html.push_str("</body></html>\n");
    html
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;")
}

fn date(seconds: i64, format: &str) -> String {
    DateTime::from_timestamp(seconds, 0).unwrap_or_default().format(format).to_string()
}

/// Reads the next capture of a crawl; `false` at the end.
pub(super) fn next(crawl: &mut Generator, capture: &mut Capture) -> io::Result<bool> {
    crawl.read(capture, &mut Tally::default()).map_err(|error| match error {
        Error::Io { source, .. } => source,
        other => io::Error::other(other),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::GenerateOptions;
    use flate2::read::MultiGzDecoder;
    use std::io::{Cursor, Read};
    use std::path::Path;

    fn crawl() -> Generator {
        Generator::new(GenerateOptions { occurrences: 8_000, seed: 3, deaths: 300, ..Default::default() })
    }

    #[test]
    fn json_lines_read_back_the_same() {
        let mut text = Vec::new();
        let captures = write_jsonl(&mut text, &mut crawl()).unwrap();
        assert!(captures > 100);
        let mut reader = crate::formats::jsonl::open(Box::new(Cursor::new(text)), Path::new("x"), false);
        let (mut crawl, mut tally) = (crawl(), Tally::default());
        let (mut capture, mut expected) = (Capture::default(), Capture::default());
        for _ in 0..captures {
            assert!(crawl.read(&mut expected, &mut tally).unwrap() && reader.read(&mut capture, &mut tally).unwrap());
            assert_eq!(capture, expected);
        }
        assert!(!reader.read(&mut capture, &mut tally).unwrap() && !crawl.read(&mut capture, &mut tally).unwrap());
        assert_eq!(tally, Tally::default());
    }

    #[test]
    fn warc_records_have_the_lengths_they_say() {
        let mut bytes = Vec::new();
        let captures = write_warc(&mut bytes, &mut crawl()).unwrap();
        let mut text = String::new();
        MultiGzDecoder::new(bytes.as_slice()).read_to_string(&mut text).unwrap();
        let (mut rest, mut responses, mut revisits) = (text.as_str(), 0, 0);
        while !rest.is_empty() {
            let (header, block) = rest.split_once("\r\n\r\n").unwrap();
            assert!(header.starts_with("WARC/1.0\r\nWARC-Type: "));
            let length: usize = header.rsplit_once("Content-Length: ").unwrap().1.parse().unwrap();
            rest = block[length..].strip_prefix("\r\n\r\n").unwrap();
            let is_whole = block[..length].contains("<a href=\"") || block.contains(" Failed\r\n");
            responses += u64::from(header.contains("WARC-Type: response") && is_whole);
            revisits += u64::from(header.contains("WARC-Type: revisit") && block[..length].ends_with("\r\n\r\n"));
        }
        assert_eq!(responses + revisits, captures);
        assert!(revisits > captures / 4 && responses > captures / 10, "{responses} {revisits}");
    }
}
