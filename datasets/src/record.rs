//! What the record formats share: header fields, dates, digests, and the place of a record for the tally.

use std::borrow::Cow;
use std::ops::Range;
use std::path::Path;

use crate::{Digest, Finding, Tally};

/// Longest header block of a record or of an HTTP message.
pub(crate) const HEADER_BYTES_MAX: usize = 1 << 20;
/// Most of a body that is read or decoded.
pub(crate) const BODY_BYTES_MAX: usize = 64 << 20;

/// The place of a record, and where to count what it holds.
pub(crate) struct Place<'a> {
    pub(crate) tally: &'a mut Tally,
    pub(crate) path: &'a Path,
    /// Offset in the file of the compressed member, and bytes from there in the text.
    pub(crate) at: (u64, u64),
}

impl Place<'_> {
    /// Counts damage of this record.
    pub(crate) fn damage(&mut self, finding: Finding, detail: &str) {
        let (offset, inside) = self.at;
        let detail = if inside == 0 { detail.to_owned() } else { format!("{detail} ({inside} bytes into the member)") };
        self.tally.damage(finding, self.path, offset, detail);
    }

    /// Counts something left out by rule.
    pub(crate) fn count(&mut self, finding: Finding) {
        self.tally.count(finding);
    }

    /// The seconds of a date; counts bad and finer ones.
    pub(crate) fn time(&mut self, date: &str) -> Option<i64> {
        let Some((time, finer)) = parse_date(date) else {
            self.damage(Finding::BadDate, date.get(..40).unwrap_or(date));
            return None;
        };
        if finer {
            self.count(Finding::FinerDate);
        }
        Some(time)
    }
}

/// Header fields: of a WARC record, of an HTTP message, of `application/warc-fields`. Reused from record to record.
#[derive(Debug, Default)]
pub(crate) struct Fields {
    text: Vec<u8>,
    fields: Vec<(Range<usize>, Range<usize>)>,
}

impl Fields {
    pub(crate) fn clear(&mut self) {
        self.text.clear();
        self.fields.clear();
    }

    /// Adds a line (without its line feed); a line that begins with white space continues the one before.
    /// `false` if it is no field.
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

    /// Adds the lines of a header block up to its empty line or the end; the offset of what follows. Where the empty line
    /// is missing, a line that begins with `<` is what follows.
    pub(crate) fn read(&mut self, block: &[u8]) -> usize {
        let mut at = 0;
        while at < block.len() {
            let rest = &block[at..];
            let end = memchr::memchr(b'\n', rest);
            let line = &rest[..end.unwrap_or(rest.len())];
            if line.starts_with(b"<") {
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

    /// All fields, names as spelt.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.fields.iter().map(|(name, value)| (&self.text[name.clone()], &self.text[value.clone()]))
    }

    /// The first value of a name in any case.
    pub(crate) fn bytes(&self, name: &str) -> Option<&[u8]> {
        self.iter().find(|(key, _)| key.eq_ignore_ascii_case(name.as_bytes())).map(|(_, value)| value)
    }

    /// The first value of a name in any case, if it is not empty.
    pub(crate) fn get(&self, name: &str) -> Option<Cow<'_, str>> {
        self.bytes(name).filter(|value| !value.is_empty()).map(String::from_utf8_lossy)
    }
}

/// A target URI without the `<...>` that some writers put around it.
pub(crate) fn bare_uri(uri: &str) -> &str {
    let uri = uri.trim();
    uri.strip_prefix('<').map_or(uri, |uri| uri.strip_suffix('>').unwrap_or(uri)).trim()
}

/// Seconds since 1970 of a date to the second, and whether it had finer parts: W3C dates of WARC (any case, any offset)
/// and the 14 digits of ARC, with more digits after them. A date without its second gives nothing: it names no time.
/// ClueWeb09 writes the day of the year behind the month (`2008-10-294T...`); that is understood where both agree.
pub(crate) fn parse_date(date: &str) -> Option<(i64, bool)> {
    let date = date.trim().as_bytes();
    let digits = date.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let number = |range: Range<usize>| -> Option<i64> {
        let text = date.get(range)?;
        let digits = text.iter().all(u8::is_ascii_digit);
        digits.then(|| text.iter().fold(0, |number, digit| number * 10 + i64::from(digit - b'0')))
    };
    if digits == date.len() && (14..=20).contains(&digits) {
        let [month, day, hour, minute, second] = [4, 6, 8, 10, 12].map(|at| number(at..at + 2));
        return Some((seconds(number(0..4)?, month?, day?, hour?, minute?, second?)?, digits > 14));
    }
    let long_day = usize::from(date.get(10).is_some_and(u8::is_ascii_digit));
    let t = 10 + long_day;
    let marks = [(4, b"-".as_slice()), (7, b"-"), (t, b"Tt "), (t + 3, b":"), (t + 6, b":")];
    if !marks.iter().all(|(at, any)| date.get(*at).is_some_and(|byte| any.contains(byte))) {
        return None;
    }
    let mut rest = date.get(t + 9..)?;
    let mut finer = false;
    if let [b'.' | b',', fraction @ ..] = rest {
        let len = fraction.iter().take_while(|byte| byte.is_ascii_digit()).count();
        finer = len > 0;
        rest = &fraction[len..];
    }
    let (year, month, mut day) = (number(0..4)?, number(5..7)?, number(8..t)?);
    if long_day == 1 {
        day -= days_since_1970(year, month, 1) - days_since_1970(year, 1, 1);
    }
    let [hour, minute, second] = [t + 1, t + 4, t + 7].map(|at| number(at..at + 2));
    Some((seconds(year, month, day, hour?, minute?, second?)? - offset_seconds(rest.trim_ascii())?, finer))
}

fn seconds(year: i64, month: i64, day: i64, hour: i64, minute: i64, second: i64) -> Option<i64> {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        4 | 6 | 9 | 11 => 30,
        2 => 28 + i64::from(leap),
        1..=12 => 31,
        _ => return None,
    };
    if year == 0 || day < 1 || day > days || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    Some(((days_since_1970(year, month, day) * 24 + hour) * 60 + minute) * 60 + second)
}

fn offset_seconds(zone: &[u8]) -> Option<i64> {
    let (sign, rest) = match zone {
        [] | [b'Z' | b'z'] => return Some(0),
        [b'+', rest @ ..] => (1, rest),
        [b'-', rest @ ..] => (-1, rest),
        _ => return None,
    };
    let digits: Vec<i64> = rest.iter().filter(|byte| **byte != b':').map(|byte| i64::from(*byte) - 48).collect();
    match digits[..] {
        [a, b, c, d] if digits.iter().all(|digit| (0..10).contains(digit)) => {
            Some(sign * ((a * 10 + b) * 3600 + (c * 10 + d) * 60))
        }
        _ => None,
    }
}

/// Days of the proleptic Gregorian calendar; the year begins in March so that the leap day comes last.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let month = (month + 9) % 12;
    year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 1 - 719_468
}

/// A digest of `sha1:BASE32` and its like: the algorithm in one spelling, hexadecimal or base 32 made bytes.
pub(crate) fn parse_digest(text: &str) -> Option<Digest> {
    let text = text.trim();
    let (algorithm, value) = text.split_once(':').unwrap_or(("sha1", text));
    if value.is_empty() {
        return None;
    }
    let mut bytes: Vec<u8> =
        algorithm.bytes().filter(|byte| *byte != b'-').map(|byte| byte.to_ascii_lowercase()).collect();
    let hex_len = match &bytes[..] {
        b"md5" => 32,
        b"sha1" => 40,
        b"sha256" => 64,
        b"sha384" => 96,
        b"sha512" => 128,
        _ => 0,
    };
    bytes.push(b':');
    let start = bytes.len();
    if value.len() != hex_len || !hex(value, &mut bytes) {
        bytes.truncate(start);
        if !base32(value, &mut bytes) {
            bytes.truncate(start);
            bytes.extend_from_slice(value.as_bytes());
        }
    }
    Some(Digest(xxhash_rust::xxh3::xxh3_128(&bytes)))
}

fn hex(text: &str, bytes: &mut Vec<u8>) -> bool {
    for pair in text.as_bytes().chunks(2) {
        let digit = |at: usize| pair.get(at).and_then(|byte| char::from(*byte).to_digit(16));
        let (Some(high), Some(low)) = (digit(0), digit(1)) else { return false };
        bytes.extend(u8::try_from(high * 16 + low));
    }
    true
}

fn base32(text: &str, bytes: &mut Vec<u8>) -> bool {
    let (mut bits, mut count) = (0u32, 0);
    for byte in text.trim_end_matches('=').bytes() {
        let digit = match byte.to_ascii_uppercase() {
            letter @ b'A'..=b'Z' => letter - b'A',
            digit @ b'2'..=b'7' => digit - b'2' + 26,
            _ => return false,
        };
        bits = bits << 5 | u32::from(digit);
        count += 5;
        if count >= 8 {
            count -= 8;
            bytes.extend(u8::try_from(bits >> count & 0xff));
            bits &= (1 << count) - 1;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_all_spellings() {
        let time = 1_398_859_445; // 2014-04-30T12:04:05Z
        for (text, expected) in [
            ("2014-04-30T12:04:05Z", Some((time, false))),
            ("2014-04-30t12:04:05z", Some((time, false))),
            ("2014-04-30T12:04:05.123456789Z", Some((time, true))),
            ("2014-04-30T14:04:05+02:00", Some((time, false))),
            ("20140430120405", Some((time, false))),
            ("201404301204050000", Some((time, true))),
            ("2000-02-29T00:00:00Z", Some((951_782_400, false))),
            ("1970-01-01T00:00:00Z", Some((0, false))),
            ("1969-12-31T23:59:59Z", Some((-1, false))),
            ("2008-10-294T05:21:46-0700", Some((1_224_505_306, false))),
            ("2008-11-294T05:21:46-0700", None),
            ("2014-02-29T00:00:00Z", None),
            ("2014-01", None),
            ("2014-13-01T00:00:00Z", None),
            ("20140430", None),
            ("", None),
            ("2014-04-30T12:04:05Q", None),
        ] {
            assert_eq!(parse_date(text), expected, "{text}");
        }
    }

    #[test]
    fn digests_in_hexadecimal_and_base_32_agree() {
        let base32 = parse_digest("sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ");
        assert_eq!(base32, parse_digest("SHA-1:da39a3ee5e6b4b0d3255bfef95601890afd80709"));
        assert_eq!(base32, parse_digest("3i42h3s6nnfq2msvx7xzkyayscx5qbyj"));
        assert_ne!(base32, parse_digest("md5:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"));
        assert_eq!(parse_digest("sha1:"), None);
    }

    #[test]
    fn folded_lines_continue_the_field_before() {
        let mut fields = Fields::default();
        let rest = fields.read(b"One: a\r\n  b\r\nTWO:c\nno field\n\nrest");
        assert_eq!(fields.get("one").as_deref(), Some("a b"));
        assert_eq!(fields.get("two").as_deref(), Some("c"));
        assert_eq!(rest, 29);
        fields.clear();
        assert_eq!(fields.read(b"A: b\r\n<html>"), 6);
    }

    #[test]
    fn brackets_around_target_uris_go() {
        assert_eq!(bare_uri(" <http://a/ b> "), "http://a/ b");
        assert_eq!(bare_uri("http://a/"), "http://a/");
    }
}
