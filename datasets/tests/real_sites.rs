//! Histories of real sites: the same captures as WARC, as WAT and as JSON lines with links resolved by another program.

#[cfg(test)]
mod reading;
#[cfg(test)]
#[path = "../../tests/src/shared.rs"]
mod shared;
#[cfg(test)]
mod unclosed;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::path::Path;

use reading::{read_all, read_pages};
use shared::shared;
use unclosed::unclosed;
use url::Url;
use webstrata_datasets::{Capture, Content, LinkKinds, Profile};

type Pages = BTreeMap<(String, i64), BTreeSet<String>>;

#[cfg(test)]
fn web(mut url: Url) -> Option<String> {
    url.set_fragment(None);
    matches!(url.scheme(), "http" | "https").then(|| url.into())
}

/// The pages of a file: captures of one page and second are merged, and their links are resolved.
#[cfg(test)]
fn pages(file: &Path, captures: usize) -> Pages {
    let (found, tally) = read_all(file, LinkKinds::default());
    assert_eq!((found.len(), tally.damaged()), (captures, 0), "{}", file.display());
    let mut pages = Pages::new();
    for capture in &found {
        pages.entry((capture.url.clone(), capture.time)).or_default().extend(resolved(capture));
    }
    pages
}

#[cfg(test)]
fn resolved(capture: &Capture) -> Vec<String> {
    let page = Url::parse(&capture.url).unwrap();
    let base = page.join(&capture.base).unwrap_or(page);
    capture.links.iter().filter_map(|link| base.join(link).ok().and_then(web)).collect()
}

/// As [`pages`], for JSON lines.
#[cfg(test)]
fn listed(file: &Path) -> Pages {
    let file = BufReader::new(std::fs::File::open(file).unwrap());
    let mut pages = Pages::new();
    for line in BufReader::new(flate2::bufread::MultiGzDecoder::new(file)).lines() {
        let line: serde_json::Value = serde_json::from_str(&line.unwrap()).unwrap();
        let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
        let links = line["links"].as_array().unwrap().iter().filter_map(|link| web(Url::parse(&text(link)).unwrap()));
        pages.entry((text(&line["url"]), seconds(&text(&line["ts"])))).or_default().extend(links);
    }
    pages
}

/// Seconds since 1970 of a date of 14 digits, by counting days.
#[cfg(test)]
fn seconds(digits: &str) -> i64 {
    let number = |from: usize, to: usize| digits[from..to].parse::<i64>().unwrap();
    let leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let (year, month) = (number(0, 4), number(4, 6));
    let years: i64 = (1970..year).map(|year| 365 + i64::from(leap(year))).sum();
    let lengths = [31, 28 + i64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let months: i64 = lengths[..usize::try_from(month - 1).unwrap()].iter().sum();
    let days = years + months + number(6, 8) - 1;
    ((days * 24 + number(8, 10)) * 60 + number(10, 12)) * 60 + number(12, 14)
}

#[test]
#[ignore = "needs the shared test data: WEBSTRATA_SHARED=DIR cargo test --test real_sites -- --ignored"]
fn warc_wat_and_json_lines_agree() {
    let directory = shared("data/real");
    let mut lost = BTreeMap::new();
    for (site, start, captures) in
        [("gcc", "19980213160752", 2698), ("httpd", "20210625161834", 824), ("openbsd-ru", "20190316222551", 1395)]
    {
        let file = |kind: &str| directory.join(format!("warc/{site}-captures-{start}-00000.{kind}.gz"));
        let listed = listed(&directory.join(format!("{site}.captures.jsonl.gz")));
        let warc = pages(&file("warc"), captures);
        // The WARC of gcc contains only the first captures.
        for (page, links) in &warc {
            assert_eq!(Some(links), listed.get(page), "{page:?}");
        }
        assert!(site == "gcc" || warc.len() == listed.len(), "{site}");
        let wat = pages(&file("wat"), captures);
        assert!(warc.keys().eq(wat.keys()), "{site}");
        for ((page, links), of_wat) in warc.iter().zip(wat.values()) {
            assert!(of_wat.is_subset(links), "{page:?}");
            for link in links.difference(of_wat) {
                *lost.entry((page.0.clone(), link.clone())).or_insert(0) += 1;
            }
        }
    }
    assert_eq!(lost, unclosed());
}

#[test]
#[ignore = "needs the shared test data: WEBSTRATA_SHARED=DIR cargo test --test real_sites -- --ignored"]
fn a_monthly_crawl_with_compressed_bodies_and_revisits() {
    let file = shared("data/real/warc/httpd-monthly-20210831000001-00000.warc.gz");
    let list = shared("data/real/httpd.monthly.jsonl.gz");
    // The list has every month, at other seconds of the day. The crawl has every third month.
    let day = |(url, time): (String, i64)| (url, time / 86_400);
    let listed: BTreeMap<_, _> = listed(&list).into_iter().map(|(page, links)| (day(page), links)).collect();
    let (captures, tally) = read_pages(&file);
    assert_eq!((captures.len(), tally.damaged()), (2791, 0));
    let mut first = BTreeMap::new();
    let mut revisits = 0;
    for capture in &captures {
        let digest = capture.digest.unwrap();
        let of = match &capture.content {
            Content::Links => {
                first.insert((capture.url.clone(), digest), capture);
                capture
            }
            Content::Revisit(revisit) => {
                revisits += 1;
                assert!(capture.links.is_empty() && revisit.profile == Profile::IdenticalDigest);
                first[&(revisit.url.clone().unwrap(), digest)]
            }
            Content::Unknown => panic!("{}: a crawl file has the links of its captures", capture.url),
        };
        let links: BTreeSet<_> = resolved(of).into_iter().collect();
        assert_eq!(listed.get(&day((capture.url.clone(), capture.time))), Some(&links), "{}", capture.url);
    }
    assert_eq!(revisits, 2211);
}
