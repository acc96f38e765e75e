//! Files with wrong lengths, headers or members throughout. The time to read such a file must be linear in its size.
//!
//! A reader that looks at the same bytes again for each record takes minutes for a few megabytes and hours for 60 MB. A
//! linear reader takes less than a second. `WEBSTRATA_MEGABYTES=60` makes the files larger and prints the seconds.

#[cfg(test)]
mod reading;

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use reading::read_all;
use webstrata_datasets::{Finding, LinkKinds, Tally};

const MEGABYTES: usize = 12;

#[cfg(test)]
fn bytes() -> usize {
    let megabytes = std::env::var("WEBSTRATA_MEGABYTES").ok().and_then(|text| text.parse().ok());
    megabytes.unwrap_or(MEGABYTES) * 1_000_000
}

/// Reads a file in a time that only a linear reader can meet. Returns the number of captures, and the tally.
#[cfg(test)]
#[expect(clippy::print_stdout, reason = "the seconds are what it is for")]
fn read(dir: &Path, name: &str, text: &[u8]) -> (usize, Tally) {
    let path = dir.join(name);
    std::fs::write(&path, text).unwrap();
    let begin = Instant::now();
    let (captures, tally) = read_all(&path, LinkKinds::default());
    let taken = begin.elapsed();
    println!("{name}: {} bytes, {:.2} s, {} captures", text.len(), taken.as_secs_f64(), captures.len());
    let limit = Duration::from_secs(20 + text.len() as u64 / 1_000_000);
    assert!(taken < limit, "{name}: {taken:?} for {} bytes", text.len());
    std::fs::remove_file(&path).unwrap();
    (captures.len(), tally)
}

/// Makes WARC records until there are enough bytes. `length` gives the length field of a record from its number and its
/// real length.
#[cfg(test)]
fn warc(length: impl Fn(usize, usize) -> String) -> (String, usize) {
    let (mut text, mut records) = (String::new(), 0);
    let block = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<a href=x>";
    while text.len() < bytes() {
        write!(
            text,
            "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://a.example/{records}\r\n\
             WARC-Date: 2020-01-01T00:00:00Z\r\n{}\r\n{block}\r\n\r\n",
            length(records, block.len()),
        )
        .unwrap();
        records += 1;
    }
    (text, records)
}

#[test]
fn warc_lengths_that_lead_too_far() {
    let dir = tempfile::tempdir().unwrap();
    let field = |len: usize| format!("Content-Length: {len}\r\n");
    for (name, length) in [
        ("beyond-the-end", &(|_, _| field(bytes())) as &dyn Fn(usize, usize) -> String),
        ("more-than-is-read", &|_, _| field(1 << 40)),
        ("a-little", &|number, len| field(len + 1 + number % 5000)),
        ("a-megabyte", &|number, len| field(len + 1_000_000 + number % 7)),
        ("none", &|_, _| String::new()),
    ] {
        let (text, records) = warc(length);
        let (captures, tally) = read(dir.path(), name, text.as_bytes());
        // By chance, a length can lead to the end of some later record.
        assert!(captures == records || name.starts_with("a-") && captures > records / 3, "{name}: {captures}");
        let kind = if name == "none" { Finding::BadHeader } else { Finding::BadLength };
        assert!(tally.of(kind) + 2 >= captures as u64 * 9 / 10, "{name}: {tally:?}");
    }
    let (text, records) = warc(|_, _| field(bytes()));
    let mut members = Vec::new();
    for record in text.split_inclusive("\r\n\r\n").collect::<Vec<_>>().chunks(3) {
        let mut member = flate2::write::GzEncoder::new(&mut members, flate2::Compression::fast());
        record.iter().for_each(|part| member.write_all(part.as_bytes()).unwrap());
    }
    assert_eq!(read(dir.path(), "members", &members).0, records);
    let frames = zstd::encode_all(text.as_bytes(), 1).unwrap();
    assert_eq!(read(dir.path(), "frame", &frames).0, records);
}

#[test]
fn arc_lengths_that_lead_too_far() {
    let dir = tempfile::tempdir().unwrap();
    let block = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<a href=x>\n\n";
    let lengths: [(&str, &dyn Fn(usize) -> String); 4] = [
        ("beyond-the-end", &|_| bytes().to_string()),
        ("a-little", &|number| (block.len() + 1 + number % 5000).to_string()),
        ("a-megabyte", &|number| (1_000_000 + number % 7).to_string()),
        ("none", &|_| "x".to_owned()),
    ];
    for (name, length) in lengths {
        let (mut text, mut records) = (String::new(), 0);
        while text.len() < bytes() {
            let length = if records == 0 { "99".to_owned() } else { length(records) };
            writeln!(text, "http://a.example/{records} 192.0.2.7 20200101000000 text/html {length}\n{block}").unwrap();
            records += 1;
        }
        let (captures, tally) = read(dir.path(), name, text.as_bytes());
        assert!(captures == records || name.starts_with("a-") && captures > records / 3, "{name}: {captures}");
        assert!(tally.damaged() + 2 >= captures as u64 * 9 / 10, "{name}: {tally:?}");
    }
}

/// Compressed members that begin inside of one another: each contains the beginnings of many more members, and then
/// breaks.
#[test]
fn members_inside_of_members() {
    let dir = tempfile::tempdir().unwrap();
    for (name, unit) in [
        // A gzip header and a stored block of 65,535 bytes, with no block after it.
        ("stored.gz", &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0, 0xff, 0xff, 0, 0][..]),
        // A header with a file name that never ends.
        ("named.gz", &[0x1f, 0x8b, 8, 8, 1, 1, 1, 1, 2, 3]),
        // A frame with a window of 64 KiB and a raw block of 65,529 bytes.
        ("raw.zst", &[0x28, 0xb5, 0x2f, 0xfd, 0, 0x30, 0xc8, 0xff, 0x07]),
    ] {
        let record = warc(|_, len| format!("Content-Length: {len}\r\n")).0;
        let record = &record.as_bytes()[..record.find("\r\n\r\nWARC").unwrap() + 4];
        let mut text = if name.ends_with("zst") {
            zstd::encode_all(record, 1).unwrap()
        } else {
            let mut member = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            member.write_all(record).unwrap();
            member.finish().unwrap()
        };
        text.extend(unit.repeat(bytes() / unit.len()));
        let (captures, tally) = read(dir.path(), name, &text);
        assert_eq!(captures, 1);
        assert!(tally.of(Finding::BadCompression) + tally.of(Finding::Truncated) > 0, "{name}: {tally:?}");
    }
    // Frames that look like dictionaries for later frames but are not. Each unpacks to 16 MiB.
    let packed = zstd::encode_all(&vec![0; 16 << 20][..], 1).unwrap();
    let length = u32::try_from(packed.len()).unwrap().to_le_bytes();
    let frame = [&[0x5d, 0x2a, 0x4d, 0x18][..], &length, &packed].concat();
    let (captures, tally) = read(dir.path(), "dictionaries.zst", &frame.repeat(bytes() / frame.len()));
    // Nothing in the file is readable, so the file as a whole is reported.
    assert_eq!((captures, tally.of(Finding::OtherFile), tally.files().len()), (0, 1, 1), "{tally:?}");
}

/// A record of the greatest length that is read, and a longer record: the records before and after them are read.
#[test]
fn records_of_sixty_megabytes_and_more() {
    let dir = tempfile::tempdir().unwrap();
    let mut text = String::new();
    for (number, megabytes) in [0, 60, 0, 70, 0].into_iter().enumerate() {
        let html = format!("<a href=x>{}", "text ".repeat(megabytes * 200_000));
        let block = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n{html}");
        let uri = format!("WARC-Target-URI: http://a.example/{number}\r\nWARC-Date: 2020-01-01T00:00:00Z");
        let len = block.len();
        write!(text, "WARC/1.0\r\nWARC-Type: response\r\n{uri}\r\nContent-Length: {len}\r\n\r\n{block}\r\n\r\n")
            .unwrap();
    }
    let (captures, tally) = read(dir.path(), "long.warc", text.as_bytes());
    assert_eq!((captures, tally.of(Finding::Truncated), tally.damaged()), (5, 1, 1));
}

/// A broken member among sound members costs no other member, as long as most members are sound.
#[test]
fn damage_here_and_there_costs_what_is_damaged() {
    let dir = tempfile::tempdir().unwrap();
    let (text, records) = warc(|_, len| format!("Content-Length: {len}\r\n"));
    let (mut members, mut broken) = (Vec::new(), 0);
    for (number, record) in text.split_inclusive("\r\n\r\n").collect::<Vec<_>>().chunks(3).enumerate() {
        let begin = members.len();
        let mut member = flate2::write::GzEncoder::new(&mut members, flate2::Compression::fast());
        record.iter().for_each(|part| member.write_all(part.as_bytes()).unwrap());
        member.finish().unwrap();
        if number % 10 == 3 {
            members[begin + 30..begin + 40].fill(0xff);
            broken += 1;
        }
    }
    let (captures, tally) = read(dir.path(), "broken.warc.gz", &members);
    assert_eq!((captures, tally.of(Finding::BadCompression)), (records - broken, broken as u64));
}
