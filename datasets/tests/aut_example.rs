//! Compares the example crawl of the Archives Unleashed Toolkit with links found by a tree-building HTML parser
//! (html5lib), and with the links that Heritrix wrote for the same pages.

#[cfg(test)]
mod reading;
#[cfg(test)]
#[path = "../../tests/src/shared.rs"]
mod shared;

use std::collections::{BTreeMap, BTreeSet};

use reading::{read_all, read_pages};
use shared::shared;
use url::Url;
use webstrata_datasets::{Capture, LinkKinds};

const OUTLINKS: LinkKinds = LinkKinds { anchors: false, redirects: false, embeds: false, outlinks: true, via: false };

/// The http(s) link without its fragment.
#[cfg(test)]
fn target(base: &Url, link: &str) -> Option<String> {
    let mut url = base.join(link).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
    url.set_fragment(None);
    Some(url.into())
}

#[test]
#[ignore = "needs the shared test data: WEBSTRATA_SHARED=DIR cargo test --test aut_example -- --ignored"]
fn ninety_four_pages_and_their_links() {
    let (file, links) =
        (shared("data/vectors/warc/aut-example.warc.gz"), shared("data/vectors/aut_example_warc_links.tsv"));
    let mut expected = BTreeSet::new();
    for line in std::fs::read_to_string(links).unwrap().lines().skip(1) {
        let [_, page, link] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
        expected.extend(target(&Url::parse(page).unwrap(), link).map(|link| (page.to_owned(), link)));
    }
    let (captures, tally) = read_pages(&file);
    assert_eq!((captures.len(), tally.damaged()), (94, 0));
    let mut found = BTreeSet::new();
    for capture in &captures {
        assert!(capture.base.is_empty());
        let page = Url::parse(&capture.url).unwrap();
        found.extend(
            capture.links.iter().filter_map(|link| target(&page, link)).map(|link| (capture.url.clone(), link)),
        );
    }
    assert_eq!(expected.difference(&found).collect::<Vec<_>>(), Vec::<&(String, String)>::new());
    // The list has only a[href]. These are iframes.
    let frames = [
        ("about/faqs.php", "http://www.archive.org/help/derivatives.php?mediatype=audio"),
        ("about/faqs.php", "http://www.archive.org/help/derivatives.php?mediatype=movies"),
        (
            "account/login.createaccount.php",
            "http://api.recaptcha.net/noscript?k=6LdERwEAAAAAAHP2UVRMhWJCnuBnelIOfG_dZz7A",
        ),
    ]
    .map(|(page, link)| (format!("http://www.archive.org/{page}"), link.to_owned()));
    assert_eq!(found.difference(&expected).cloned().collect::<Vec<_>>(), frames);
}

#[test]
#[ignore = "needs the shared test data: WEBSTRATA_SHARED=DIR cargo test --test aut_example -- --ignored"]
fn links_a_page() {
    let (file, pages) =
        (shared("data/vectors/warc/aut-example.warc.gz"), shared("data/vectors/aut_example_warc_per_page.tsv"));
    // Column 6 has a[href] at the level of the tokenizer, without javascript: links and without iframes.
    let frames = BTreeMap::from([
        ("http://www.archive.org/about/faqs.php", 2),
        ("http://www.archive.org/account/login.createaccount.php", 1),
    ]);
    let mut expected = BTreeMap::new();
    for line in std::fs::read_to_string(pages).unwrap().lines().skip(1) {
        let fields: Vec<_> = line.split('\t').collect();
        let links = fields[5].parse::<usize>().unwrap() + frames.get(fields[1]).copied().unwrap_or(0);
        expected.insert(fields[1].to_owned(), links);
    }
    let (captures, _) = read_pages(&file);
    let count =
        |links: &webstrata_datasets::Texts| links.iter().filter(|link| !link.starts_with("javascript:")).count();
    let found: BTreeMap<_, _> = captures.iter().map(|capture| (capture.url.clone(), count(&capture.links))).collect();
    assert_eq!(found, expected);
}

#[test]
#[ignore = "needs the shared test data: WEBSTRATA_SHARED=DIR cargo test --test aut_example -- --ignored"]
fn arc_warc_and_wat_agree() {
    let directory = shared("data");
    let read = |name: &str| {
        let (captures, _) = read_pages(&directory.join(name));
        let page = |capture: &Capture| {
            let links: BTreeSet<_> = capture.links.iter().map(str::to_owned).collect();
            (capture.url.clone(), capture.time, links)
        };
        captures.iter().map(page).collect::<BTreeSet<_>>()
    };
    let warc = read("vectors/warc/aut-example.warc.gz");
    assert_eq!(warc.len(), 94);
    assert_eq!(warc, read("vectors/warc/aut-example.arc.gz"));
    let wat = read("samples/wat-by-iipc/example.warc.wat.gz");
    assert_eq!(wat, read("samples/wat-by-iipc/example.arc.wat.gz"));
    let mut lost = BTreeMap::new();
    for (warc, wat) in warc.iter().zip(&wat) {
        assert_eq!((&warc.0, warc.1), (&wat.0, wat.1));
        assert!(wat.2.is_subset(&warc.2), "{}", warc.0);
        if wat != warc {
            lost.insert(warc.0.replace("http://www.archive.org/", ""), warc.2.len() - wat.2.len());
        }
    }
    // The extractor of WATs loses an anchor that is not closed before the next one begins.
    let unclosed = [("about/about.php", 1), ("about/jobs.php", 2), ("web/web.php", 7)];
    assert_eq!(lost, unclosed.map(|(page, links)| (page.to_owned(), links)).into());
}

#[test]
#[ignore = "needs the shared test data: WEBSTRATA_SHARED=DIR cargo test --test aut_example -- --ignored"]
fn heritrix_outlinks() {
    let (file, counts) =
        (shared("data/vectors/warc/aut-example.warc.gz"), shared("data/vectors/heritrix_outlinks_aut_example.json"));
    let counts: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(counts).unwrap()).unwrap();
    let contexts = counts["contexts"].as_object().unwrap().iter();
    let anchors = contexts.filter(|(context, _)| context.eq_ignore_ascii_case("a/@href"));
    let expected: u64 = anchors.map(|(_, count)| count.as_u64().unwrap()).sum();
    let (captures, _) = read_all(&file, OUTLINKS);
    assert_eq!(captures.iter().map(|capture| capture.links.len() as u64).sum::<u64>(), expected);
    assert!(captures.len() > 94);
}
