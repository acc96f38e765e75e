//! The bodies of fuzz targets, which tests call too: bytes of strangers, as a crawl file and as a page.
//!
//! Damage is counted and never more. Only a panic, a hang or memory out of proportion is a failure. Each link that is
//! found is also held to the rules that are true for every link: its text is canonical, its fingerprint is of this
//! text, and its form leads back to it.

use std::io::{Cursor, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use memchr::memmem;
use url::Url;
use webstrata_url::canonical;

use crate::files::compressed::Notes;
use crate::{Base, Capture, CaptureReader, Error, Fingerprint, Form, Interner, LinkKinds, Tally, URL_BYTES, reader};

const ALL_KINDS: LinkKinds = LinkKinds { anchors: true, redirects: true, embeds: true, outlinks: true, via: true };

/// Reads bytes as a crawl file, in the format and with the compression that they show. Returns the number of links.
///
/// Panics if a link breaks a rule.
pub fn crawl(bytes: &[u8]) -> usize {
    let (mut capture, mut tally, mut links) = (Capture::default(), Tally::default(), 0);
    let Ok(mut reader) = open(bytes) else { return 0 };
    while reader.read(&mut capture, &mut tally).is_ok_and(|is_capture| is_capture) {
        links += check(&capture);
    }
    links
}

/// A reader of bytes. Archives and tables are not spooled to a disk.
fn open(bytes: &[u8]) -> Result<Box<dyn CaptureReader>, Error> {
    let source = Box::new(Cursor::new(bytes.to_vec()));
    reader::read(source, Notes::default(), Path::new("probe"), ALL_KINDS.into(), None)
}

/// Compresses a crawl file, one gzip member a record, damages the result, and reads it as [`crawl`] does. Returns the
/// number of links. A fuzzer that damaged compressed bytes itself would hardly come past the checksum of a member.
///
/// The first byte of the input is the number of damages, modulo 4. Each damage has three bytes: a place in 65,536ths of
/// the file (16 bits), and the bits of the byte there that change. The file follows; members begin at `WARC/`.
///
/// Panics if a link breaks a rule.
pub fn gzip(input: &[u8]) -> usize {
    let Some((&count, rest)) = input.split_first() else { return 0 };
    let Some((damages, text)) = rest.split_at_checked(3 * usize::from(count % 4)) else { return 0 };
    let mut file = Vec::new();
    let starts = memmem::find_iter(text, b"WARC/").chain([text.len()]);
    let mut start = 0;
    for end in starts {
        let mut member = GzEncoder::new(&mut file, Compression::fast());
        if member.write_all(&text[start..end]).and_then(|()| member.finish()).is_err() {
            return 0;
        }
        start = end;
    }
    for &[low, high, bits] in damages.as_chunks::<3>().0 {
        let place = (file.len() * usize::from(u16::from_le_bytes([low, high]))) >> 16;
        file[place] ^= bits;
    }
    crawl(&file)
}

/// Reads bytes as the HTML of a page. Returns the number of links.
///
/// Panics if a link breaks a rule.
pub fn page(html: &[u8]) -> usize {
    let http = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n";
    let head = format!(
        "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://example.org/news/page?q\r\n\
         WARC-Date: 2008-06-01T12:00:00Z\r\nContent-Type: application/http; msgtype=response\r\n\
         Content-Length: {}\r\n\r\n",
        http.len() + html.len(),
    );
    crawl(&[head.as_bytes(), http, html, b"\r\n\r\n"].concat())
}

/// Holds the links of a capture to the rules. Returns the number of links.
fn check(capture: &Capture) -> usize {
    let base = Base::within(&capture.url, &capture.base, URL_BYTES);
    let page = canonical(None, &capture.url).ok().and_then(|page| Url::parse(&page).ok());
    let (Ok(base), Some(page)) = (base, page) else { return 0 };
    let mut interner = Interner::new(1 << 6, URL_BYTES);
    for reference in capture.links.iter() {
        let mut fresh = None;
        let link = interner.intern(Some(&base), reference, &mut |_, text| fresh = Some(text.to_owned()));
        let (Ok(link), Some(text)) = (link, fresh) else { continue };
        assert_eq!(link, Fingerprint::of(&text), "the fingerprint of {text:?}");
        assert_eq!(canonical(None, &text).as_deref(), Ok(text.as_str()), "the canonical text of {reference:?}");
        let form = Form::of(&capture.base, reference);
        if let Some(again) = form.reference(page.as_str(), &text) {
            let resolved = canonical(Some(&page), &again);
            assert_eq!(resolved.as_deref(), Ok(text.as_str()), "{form:?} of {reference:?} at {page} as {again:?}");
        }
    }
    capture.links.len()
}
