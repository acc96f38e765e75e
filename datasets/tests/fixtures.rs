//! Small files made with real writers (`fixtures/make.py`). The tests check which captures are kept, which findings are
//! counted, and that random damage never panics.

#[cfg(test)]
mod reading;

use std::path::{Path, PathBuf};

use reading::read_all;
use webstrata_datasets::{Capture, Content, Finding, LinkKinds, Profile, Tally};

const ALL: LinkKinds = LinkKinds { anchors: true, redirects: true, embeds: true, outlinks: true, via: true };
const START: i64 = 1_577_836_800; // 2020-01-01

#[cfg(test)]
fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

#[cfg(test)]
fn read(name: &str) -> (Vec<Capture>, Tally) {
    read_all(&fixture(name), LinkKinds::default())
}

/// For each capture: the URL without its host, the seconds since the first capture, and the links.
#[cfg(test)]
fn pages(captures: &[Capture]) -> Vec<(String, i64, String)> {
    let short = |url: &str| url.replace("http://example.org/", "");
    let links = |capture: &Capture| capture.links.iter().collect::<Vec<_>>().join(" ");
    captures.iter().map(|capture| (short(&capture.url), capture.time - START, links(capture))).collect()
}

#[cfg(test)]
fn statuses(captures: &[Capture]) -> Vec<Option<u16>> {
    captures.iter().map(|capture| capture.status).collect()
}

#[cfg(test)]
fn counts(tally: &Tally) -> Vec<(Finding, u64)> {
    tally.counts().collect()
}

#[cfg(test)]
fn expected() -> Vec<(String, i64, String)> {
    [
        ("plain", 1, "/one two#f mailto:x@example.org"),
        ("chunked", 2, "/packed?a=1&b=2"),
        ("gzip", 3, "/packed?a=1&b=2"),
        ("both", 4, "/packed?a=1&b=2"),
        ("deflate", 5, "/packed?a=1&b=2"),
        ("br", 6, "/packed?a=1&b=2"),
        ("flagged", 7, "/packed?a=1&b=2"),
        ("gone", 8, ""),
        ("moved", 9, ""),
        ("untyped", 11, "sniffed"),
        ("koi8", 12, "/при"),
        ("plain", 31 * 86_400, ""),
        ("resource", 13, "dom"),
    ]
    .map(|(page, time, links)| (page.to_owned(), time, links.to_owned()))
    .to_vec()
}

#[test]
fn the_same_records_in_every_container_and_version() {
    for name in [
        "records.warc",
        "records.warc.gz",
        "records-11.warc.gz",
        "whole.warc.gz",
        "old.warc",
        "records.warc.zst",
        "dictionary.warc.zst",
    ] {
        let (captures, tally) = read(name);
        assert_eq!(pages(&captures), expected(), "{name}");
        let left_out =
            [(Finding::BadContentEncoding, 1), (Finding::NotHtml, 2), (Finding::FileInfo, 1), (Finding::Metadata, 1)];
        assert_eq!(counts(&tally), left_out, "{name}");
    }
}

#[test]
fn revisits_name_what_they_refer_to() {
    let (captures, _) = read("records.warc.gz");
    let Content::Revisit(revisit) = &captures[11].content else { panic!("no revisit") };
    assert_eq!(revisit.profile, Profile::IdenticalDigest);
    assert_eq!(revisit.url.as_deref(), Some("http://example.org/plain"));
    assert_eq!(revisit.time, Some(START + 1));
    assert!(captures[0].digest.is_some());
    assert_eq!(captures[11].digest, captures[0].digest);
    assert_ne!(captures[1].digest, captures[0].digest);
}

#[test]
fn redirects_and_outlinks_when_asked() {
    let (captures, tally) = read_all(&fixture("records.warc.gz"), ALL);
    let pages = pages(&captures);
    assert!(pages.contains(&("moved".to_owned(), 9, "/plain".to_owned())));
    assert!(pages.contains(&("plain".to_owned(), 1, "http://example.org/one http://example.org/Two".to_owned())));
    assert_eq!(pages.len(), expected().len() + 1);
    assert_eq!(tally.of(Finding::OtherStatus), 0);
}

#[test]
fn cut_files_keep_what_stands_before_the_cut() {
    for name in ["truncated.warc", "truncated.warc.gz"] {
        let (captures, tally) = read(name);
        assert!(captures.len() >= 6, "{name}: {}", captures.len());
        assert_eq!(pages(&captures)[..6], expected()[..6], "{name}");
        assert_eq!(tally.of(Finding::Truncated), 1, "{name}");
        let len = std::fs::metadata(fixture(name)).unwrap().len();
        let place = tally.examples().into_iter().find(|example| example.finding == Finding::Truncated).unwrap().clone();
        assert!(place.offset > len / 2 && place.offset < len, "{name}: {place:?}");
    }
}

#[test]
fn a_broken_member_costs_its_own_record_only() {
    let (captures, tally) = read("broken.warc.gz");
    let pages = pages(&captures);
    let kept: Vec<_> = pages.iter().filter(|(page, time, _)| (&page[..], *time) != ("plain", 1)).cloned().collect();
    assert_eq!(kept, expected()[1..]);
    assert_eq!(tally.of(Finding::BadCompression), 1);
    let whole = std::fs::read(fixture("records.warc.gz")).unwrap();
    let members: Vec<_> =
        whole.windows(3).enumerate().filter(|(_, head)| head == b"\x1f\x8b\x08").map(|(at, _)| at).collect();
    let place = tally.examples().into_iter().find(|example| example.finding == Finding::BadCompression).unwrap();
    assert_eq!(place.offset, members[1] as u64);
}

#[test]
fn wrong_lengths_cost_nothing() {
    let (captures, tally) = read("lengths.warc");
    assert_eq!(pages(&captures), expected());
    assert_eq!(tally.of(Finding::BadLength), 2);
}

#[test]
fn arc_records() {
    for name in ["records.arc", "records.arc.gz"] {
        let (captures, tally) = read(name);
        let time = 852_076_801 - START;
        let expected = [("a b", time, "/one"), ("c", time + 1, ""), ("d", time + 2, "no-http")];
        assert_eq!(
            pages(&captures),
            expected.map(|(page, time, links)| (page.to_owned(), time, links.to_owned())),
            "{name}"
        );
        assert_eq!(counts(&tally), [(Finding::FileInfo, 1), (Finding::Dns, 1)], "{name}");
        assert_eq!(statuses(&captures), [Some(200), Some(404), None], "{name}");
    }
}

#[test]
fn wat_envelopes() {
    for (name, link) in [("iipc.wat", "x?a=1&b=2"), ("cc.wat", "x?a=1&amp;b=2")] {
        let (captures, tally) = read(name);
        let expected = [
            ("a", 1, format!("{link} f")),
            ("r", 2, String::new()),
            ("a", 31 * 86_400, String::new()),
            ("arc", 852_076_801 - START, "m".to_owned()),
        ];
        assert_eq!(pages(&captures), expected.map(|(page, time, links)| (page.to_owned(), time, links)), "{name}");
        assert_eq!(captures[0].base, "/b/");
        assert!(captures[0].digest.is_some());
        assert!(matches!(&captures[2].content, Content::Revisit(revisit) if revisit.profile == Profile::NotModified));
        let left_out = [(Finding::BadJson, 1), (Finding::Request, 1), (Finding::FileInfo, 1)];
        assert_eq!(counts(&tally), left_out, "{name}");

        let (captures, _) = read_all(&fixture(name), ALL);
        let links: Vec<_> = pages(&captures).into_iter().map(|(_, _, links)| links).collect();
        assert_eq!(links, [&format!("next s.css {link} i.png f bg.png"), "/a", "", "m"]);
    }
}

#[test]
fn wget_writes_brackets_around_target_uris() {
    let (captures, tally) = read("wget.warc.gz");
    let links: Vec<Vec<_>> = captures.iter().map(|capture| capture.links.iter().collect()).collect();
    assert_eq!(links, [vec!["/second", "missing"], vec!["/"], vec![]]);
    assert_eq!(statuses(&captures), [Some(200), Some(200), Some(404)]);
    assert!(captures.iter().all(|capture| capture.url.starts_with("http://127.0.0.1:") && capture.digest.is_some()));
    assert_eq!((tally.of(Finding::OtherStatus), tally.damaged()), (0, 0));
}

#[test]
fn random_damage_never_panics() {
    let directory = std::env::temp_dir().join(format!("webstrata-damage-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let mut random = fastrand::Rng::with_seed(1);
    let mut damaged = 0;
    for file in std::fs::read_dir(fixture("")).unwrap() {
        let file = file.unwrap().path();
        let whole = std::fs::read(&file).unwrap();
        let copy = directory.join(file.file_name().unwrap());
        for round in 0..40 {
            let mut bytes = whole.clone();
            for _ in 0..=random.usize(..8) {
                let at = random.usize(..bytes.len());
                match random.usize(..4) {
                    0 => bytes[at] = random.u8(..),
                    1 => bytes[at] ^= 1 << random.usize(..8),
                    2 => drop(bytes.drain(at..whole.len().min(at + random.usize(..200)).min(bytes.len()).max(at))),
                    _ => {
                        let from = random.usize(..bytes.len());
                        let piece = bytes[from..bytes.len().min(from + random.usize(..100))].to_vec();
                        bytes.splice(at..at, piece);
                    }
                }
                if bytes.is_empty() {
                    break;
                }
            }
            std::fs::write(&copy, &bytes).unwrap();
            let (_, tally) = read_all(&copy, if round % 2 == 0 { ALL } else { LinkKinds::default() });
            damaged += u64::from(tally.damaged() > 0);
        }
    }
    std::fs::remove_dir_all(&directory).unwrap();
    assert!(damaged > 100, "the damage was noticed in {damaged} files only");
}
