//! Histories of real sites: WARC, WAT and JSON lines of the same captures.

mod shared;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};

use shared::{read_all, shared};
use url::Url;
use webstrata_datasets::{Capture, LinkKinds};

fn resolved(c: &Capture) -> BTreeSet<String> {
    let page = Url::parse(&c.url).unwrap();
    let base = if c.base.is_empty() { page.clone() } else { page.join(&c.base).unwrap_or(page) };
    c.links
        .iter()
        .filter_map(|l| base.join(l).ok())
        .filter(|l| matches!(l.scheme(), "http" | "https"))
        .map(|mut l| {
            l.set_fragment(None);
            String::from(l)
        })
        .collect()
}

fn time(ts: &str) -> i64 {
    let n = |r: std::ops::Range<usize>| ts[r].parse::<i64>().unwrap();
    let (y, m, d) = (n(0..4), n(4..6), n(6..8));
    let (y2, m2) = if m <= 2 { (y - 1, m + 9) } else { (y, m - 3) };
    let days = y2 * 365 + y2 / 4 - y2 / 100 + y2 / 400 + (m2 * 153 + 2) / 5 + d - 1 - 719468;
    ((days * 24 + n(8..10)) * 60 + n(10..12)) * 60 + n(12..14)
}

#[test]
fn dump() {
    let Some(dir) = shared("data/real") else { return };
    for (site, file) in [
        ("gcc", "gcc-captures-19980213160752-00000"),
        ("httpd", "httpd-captures-20210625161834-00000"),
        ("openbsd-ru", "openbsd-ru-captures-20190316222551-00000"),
    ] {
        let mut expected: BTreeMap<(String, i64), BTreeSet<String>> = BTreeMap::new();
        let lines = BufReader::new(flate2::bufread::MultiGzDecoder::new(BufReader::new(
            std::fs::File::open(dir.join(format!("{site}.captures.jsonl.gz"))).unwrap(),
        )));
        for line in lines.lines() {
            let v: serde_json::Value = serde_json::from_str(&line.unwrap()).unwrap();
            let e = expected.entry((v["url"].as_str().unwrap().into(), time(v["ts"].as_str().unwrap()))).or_default();
            for l in v["links"].as_array().unwrap() {
                let mut u = Url::parse(l.as_str().unwrap()).unwrap();
                u.set_fragment(None);
                e.insert(u.into());
            }
        }
        let mut sets = Vec::new();
        for kind in ["warc", "wat"] {
            let (captures, tally) = read_all(&dir.join(format!("warc/{file}.{kind}.gz")), LinkKinds::default());
            let mut mine: BTreeMap<(String, i64), BTreeSet<String>> = BTreeMap::new();
            for c in &captures {
                mine.entry((c.url.clone(), c.time)).or_default().extend(resolved(c));
            }
            println!(
                "{site} {kind}: {} captures, {} keys, expected {} {:?}",
                captures.len(),
                mine.len(),
                expected.len(),
                tally.counts().collect::<Vec<_>>()
            );
            let (mut same, mut differ, mut missing) = (0, 0, 0);
            for (k, m) in &mine {
                match expected.get(k) {
                    None => {
                        missing += 1;
                        if missing < 50 {
                            println!("  not in json {k:?}");
                        }
                    }
                    Some(t) if t == m => same += 1,
                    Some(t) => {
                        differ += 1;
                        if differ < 120 {
                            println!("  {k:?}");
                            for x in m.difference(t).take(3) {
                                println!("     + {x}");
                            }
                            for x in t.difference(m).take(3) {
                                println!("     - {x}");
                            }
                        }
                    }
                }
            }
            println!("  same {same} differ {differ} missing {missing}");
            sets.push(mine);
        }
        println!(" warc == wat {}", sets[0] == sets[1]);
    }
}
