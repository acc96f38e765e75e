//! Shared code of the record formats: the search for the next record, header fields, and the location of a record for
//! the tally.

use std::borrow::Cow;
use std::io::{self, BufRead};
use std::ops::Range;
use std::path::Path;

use crate::capture::date;
use crate::capture::meaning::ReferredTo;
use crate::files::compressed::Text;
use crate::{Cut, Finding, Profile, Tally};
use webstrata_url::spelt;

/// The most bytes of the header block of a record or of an HTTP message.
pub(crate) const HEADER_BYTES_MAX: usize = 1 << 20;
/// The most bytes of a body that are read or decoded.
pub(crate) const BODY_BYTES_MAX: usize = 64 << 20;

/// The location of a record, the tally for its findings, and what is known of the wholeness of its body.
pub(crate) struct RecordSite<'a> {
    pub(crate) tally: &'a mut Tally,
    pub(crate) path: &'a Path,
    /// The offset of the compressed member in the file, and the number of bytes from there in the text.
    pub(crate) at: (u64, u64),
    /// The least reason so far why the body was not read whole.
    cut: Option<Cut>,
    /// Whether the record has fewer bytes than its header says.
    is_short: bool,
}

impl<'a> RecordSite<'a> {
    pub(crate) fn new(tally: &'a mut Tally, path: &'a Path, at: (u64, u64)) -> Self {
        RecordSite { tally, path, at, cut: None, is_short: false }
    }

    /// Notes that the body is not whole. Whatever part of a reader sees it says so here, and the least reason counts.
    pub(crate) fn cut(&mut self, reason: Cut) {
        self.cut = Some(self.cut.map_or(reason, |cut| cut.min(reason)));
    }

    /// Notes that the record has fewer bytes than its header says. The body may still be whole.
    pub(crate) fn ends_early(&mut self) {
        self.is_short = true;
    }

    /// Notes that the message shows its own end: a record that ends early has lost nothing of the body.
    pub(crate) fn shows_its_end(&mut self) {
        self.is_short = false;
    }

    /// Why the body was not read whole, after the body was read.
    pub(crate) fn why_cut(&self) -> Option<Cut> {
        self.cut.into_iter().chain(self.is_short.then_some(Cut::Short)).min()
    }

    /// Counts damage of this record.
    pub(crate) fn damage(&mut self, finding: Finding, detail: &str) {
        let (offset, inside) = self.at;
        let detail = if inside == 0 { detail.to_owned() } else { format!("{detail} ({inside} bytes into the member)") };
        self.tally.damage(finding, self.path, offset, detail);
    }

    /// Counts a finding that is not damage.
    pub(crate) fn count(&mut self, finding: Finding) {
        self.tally.count(finding);
    }

    /// The date as seconds since 1970. Counts dates that are invalid, finer than a second, or coarser.
    pub(crate) fn time(&mut self, text: &str) -> Option<i64> {
        let Some(date) = date::parse(text) else {
            self.damage(Finding::BadDate, text.get(..40).unwrap_or(text));
            return None;
        };
        Some(date.counted(self.tally))
    }
}

/// Moves to the offset at which the next record `begins`; `false` at the end. Text before the record is damage and
/// counts once.
pub(crate) fn seek(
    text: &mut Text,
    path: &Path,
    tally: &mut Tally,
    begins: impl Fn(&mut Text) -> io::Result<bool>,
) -> io::Result<bool> {
    let (mut lost, mut line) = (false, Vec::new());
    loop {
        match text.peek(1)?.first().copied() {
            None => {
                if !text.resume() {
                    return Ok(false);
                }
                lost = false;
            }
            Some(b'\r' | b'\n') => text.consume(1),
            _ if begins(text)? => return Ok(true),
            _ => {
                if !lost {
                    lost = true;
                    RecordSite::new(tally, path, text.offsets()).damage(Finding::BadHeader, "expected a record header");
                }
                line.clear();
                text.line(&mut line, HEADER_BYTES_MAX)?;
            }
        }
    }
}

/// Cuts the body of a record that begins with its member, if the member is broken in spite of the bytes that it gave:
/// its checksum is wrong. `bytes` are those of the block and of the line feeds behind it.
pub(crate) fn check_member(text: &Text, bytes: usize, site: &mut RecordSite<'_>) {
    if site.at.1 == 0 && text.breaks_within(bytes) {
        site.cut(Cut::Damaged);
    }
}

/// Header fields of a WARC record, of an HTTP message, or of `application/warc-fields`. Records reuse the buffers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fields {
    text: Vec<u8>,
    fields: Vec<(Range<usize>, Range<usize>)>,
}

impl Fields {
    pub(crate) fn clear(&mut self) {
        self.text.clear();
        self.fields.clear();
    }

    /// Adds a line (without its line feed). A line that begins with white space continues the field before. Returns
    /// `false` if the line is not a field.
    pub(crate) fn push(&mut self, line: &[u8]) -> bool {
        let folded = matches!(line.first(), Some(b' ' | b'\t'));
        if folded && let Some((_, value)) = self.fields.last_mut() {
            self.text.push(b' ');
            self.text.extend_from_slice(line.trim_ascii());
            value.end = self.text.len();
            return true;
        }
        let Some(colon) = memchr::memchr(b':', line) else { return false };
        let name = line[..colon].trim_ascii();
        if name.is_empty() {
            return false;
        }
        let start = self.text.len();
        self.text.extend_from_slice(name);
        let middle = self.text.len();
        self.text.extend_from_slice(line[colon + 1..].trim_ascii());
        self.fields.push((start..middle, middle..self.text.len()));
        true
    }

    /// Adds the lines of a header block up to the empty line or the end, and returns the offset of the body. If the
    /// empty line is missing, the body begins with the first line that starts with `<` and is not before a field.
    pub(crate) fn read(&mut self, block: &[u8]) -> usize {
        let mut at = 0;
        while at < block.len() {
            let rest = &block[at..];
            let end = memchr::memchr(b'\n', rest);
            let line = &rest[..end.unwrap_or(rest.len())];
            if line.starts_with(b"<") && !end.is_some_and(|end| is_field(&rest[end + 1..])) {
                break;
            }
            at += end.map_or(rest.len(), |end| end + 1);
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.is_empty() {
                break;
            }
            self.push(line);
        }
        at
    }

    /// All fields, with the names as they are spelt.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.fields.iter().map(|(name, value)| (&self.text[name.clone()], &self.text[value.clone()]))
    }

    /// The first value of a field; the case of the name does not matter.
    pub(crate) fn bytes(&self, name: &str) -> Option<&[u8]> {
        self.iter().find(|(key, _)| key.eq_ignore_ascii_case(name.as_bytes())).map(|(_, value)| value)
    }

    /// All values of a field that are not empty, as one value; `None` if there are none.
    pub(crate) fn joined(&self, name: &str) -> Option<Cow<'_, str>> {
        let values = self.iter().filter(|(key, value)| key.eq_ignore_ascii_case(name.as_bytes()) && !value.is_empty());
        values.map(|(_, value)| spelt(value)).reduce(|values, value| Cow::Owned(format!("{values}, {value}")))
    }

    /// The values of all fields with a name; the case of the name does not matter.
    pub(crate) fn all<'s>(&'s self, name: &'s str) -> impl Iterator<Item = Cow<'s, str>> {
        let named = self.iter().filter(|(key, _)| key.eq_ignore_ascii_case(name.as_bytes()));
        named.map(|(_, value)| spelt(value))
    }

    /// The first value of a field as [`spelt`] reads it, if it is not empty; the case of the name does not matter.
    pub(crate) fn get(&self, name: &str) -> Option<Cow<'_, str>> {
        self.bytes(name).filter(|value| !value.is_empty()).map(spelt)
    }
}

/// Whether a text begins with a field that is spelt as HTTP asks.
fn is_field(text: &[u8]) -> bool {
    let is_token = |byte: &&u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    let name = text.iter().take_while(is_token).count();
    name > 0 && text.get(name) == Some(&b':')
}

/// The finding for a record that cannot be a page by its type or its URL; [`Finding::OtherRecord`] for other records.
pub(crate) fn without_page(kind: &str, url: &str) -> Finding {
    match kind {
        "request" => Finding::Request,
        "warcinfo" => Finding::FileInfo,
        "metadata" => Finding::Metadata,
        _ if url.starts_with("dns:") => Finding::Dns,
        _ if ["filedesc:", "warcinfo:"].iter().any(|scheme| url.starts_with(scheme)) => Finding::FileInfo,
        _ => Finding::OtherRecord,
    }
}

/// A target URI without the `<...>` that some writers put around it.
pub(crate) fn bare_uri(uri: &str) -> &str {
    let uri = uri.trim();
    uri.strip_prefix('<').map_or(uri, |uri| uri.strip_suffix('>').unwrap_or(uri)).trim()
}

/// Takes the fields of a record of a revisit. An unknown profile counts as identical-payload-digest.
pub(crate) fn revisit(profile: Option<&str>, url: Option<&str>, date: Option<&str>) -> ReferredTo {
    let is_not_modified = |profile: &str| profile.trim_end_matches(['/', '>']).ends_with("server-not-modified");
    let profile = profile.filter(|profile| !profile.is_empty());
    ReferredTo {
        profile: profile.map(|profile| match is_not_modified(profile) {
            true => Profile::NotModified,
            false => Profile::IdenticalDigest,
        }),
        url: url.map(|url| bare_uri(url).to_owned()),
        time: date.and_then(date::parse).map(date::Date::seconds),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folded_lines_continue_the_field_before() {
        let mut fields = Fields::default();
        let rest = fields.read(b"One: a\r\n  b\r\nTWO:c\nno field\n\nrest");
        assert_eq!(fields.get("one").as_deref(), Some("a b"));
        assert_eq!(fields.get("two").as_deref(), Some("c"));
        assert_eq!(rest, 29);
        fields.clear();
        assert_eq!(fields.read(b"A: b\r\n<html>"), 6);
        fields.clear();
        assert_eq!(fields.read(b"A: b\n<html>\n<a title='x:y'>\nC: d\n"), 5);
        fields.clear();
        assert_eq!(fields.read(b"Power by: x\n: z\n<b>name</b>: y\nC: d\n\n<html>"), 37);
        assert_eq!(fields.get("c").as_deref(), Some("d"));
    }

    #[test]
    fn brackets_around_target_uris_go() {
        assert_eq!(bare_uri(" <http://a/ b> "), "http://a/ b");
        assert_eq!(bare_uri("http://a/"), "http://a/");
    }
}
