//! One page under many spellings, by every way to ask. The spellings that a store finds are compared with a look at
//! each URL, and the common answers of the spellings are compared with sets.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use webstrata_codecs::CodecTag;
use webstrata_engine::Progress;
use webstrata_layers::record::key::host_of;
use webstrata_layers::{
    Direction, Links, PageLinks, Precision, RangeLength, Spelled, Uid, answer_of, captures_of_page, format_time,
    parse_time,
};
use webstrata_pipeline::{MergeOptions, build, merge};
use webstrata_tests::clusters::{Cluster, Shape};
use webstrata_tests::crawls::{Random, digits};
use webstrata_tests::oracle::{Ending, Oracle, Time, When};
use webstrata_tests::raw::Raw;
use webstrata_tests::rows::{Rows, Said};
use webstrata_tests::served::{Served, encoded, parameters};
use webstrata_tests::stores::{cells_of, options, reader, run_options, window, windows};
use webstrata_tests::{seeds, shared};
use webstrata_url::{canonical, surt};

/// A page in a random spelling.
fn spelled(random: &mut Random) -> String {
    let scheme = *random.pick(&["http", "https"]);
    let www = *random.pick(&["", "", "www.", "www2.", "wwwx.", "deep.www."]);
    let host = *random.pick(&["site.example", "site.example", "b.site.example", "192.0.2.7", "site.example."]);
    let port = *random.pick(&["", "", "", ":8080", ":80"]);
    let folder = *random.pick(&["/a", "/A", "/a/b", "/A/b", "/a/bc", "/%61/b", "//a", "/b", "/a/B", "/caf%C3%A9", "/"]);
    let end = *random.pick(&["", "/", "//", "/x.html", "/X.HTML", "x"]);
    let session = "sid=0123456789abcdef0123456789abcdef";
    let query = match random.below(10) {
        0 => "?x=1&y=2".to_owned(),
        1 => "?y=2&x=1".to_owned(),
        2 => "?".to_owned(),
        3 => format!("?{session}"),
        4 => format!("?x=1&{session}&y=2"),
        5 => "?x=1".to_owned(),
        6 => format!("?foo{session}"),
        7 => "?X=1".to_owned(),
        _ => String::new(),
    };
    let www = if host.starts_with('1') { "" } else { www };
    canonical(None, &format!("{scheme}://{www}{host}{port}{folder}{end}{query}")).unwrap()
}

/// A crawl in lines, and its oracle.
fn crawl(seed: u64, captures: u64) -> (Vec<String>, Oracle) {
    let (mut random, mut oracle, mut lines) = (Random(seed), Oracle::default(), Vec::new());
    for _ in 0..captures {
        let (url, time) = (spelled(&mut random), 1_200_000_000 + i64::try_from(random.below(40)).unwrap() * 86_400);
        let links: BTreeSet<String> = (0..random.below(4)).map(|_| spelled(&mut random)).collect();
        let mut line = json!({"url": url, "ts": digits(time), "links": links});
        if random.once_in(6) {
            let status = *random.pick(&[404u16, 410, 503]);
            (line["links"], line["status"]) = (json!([]), json!(status));
            oracle.add_failure(status, &url, time);
        } else {
            oracle.add(&url, time, links.iter().map(String::as_str));
        }
        lines.push(line.to_string());
    }
    (lines, oracle)
}

/// The links of a page with these spellings, from the links of each spelling.
fn page_links(oracle: &Oracle, urls: &[String], when: When) -> BTreeSet<String> {
    let owned = |links: BTreeSet<&str>| links.into_iter().map(str::to_owned).collect::<Vec<_>>();
    let (at, age, ending) = match when {
        When::Seen(..) => return urls.iter().flat_map(|url| owned(oracle.out_links(url, when))).collect(),
        When::AsOf(at) => (at, Time::MAX, Ending::Gone),
        When::AsOfBy(at, age, ending) => (at, age, ending),
    };
    let counted = |url: &String| {
        let captures = oracle.captures(url).into_iter().zip(oracle.statuses(url));
        captures.filter(|((time, _), status)| *time <= at && ending.counts(*status)).map(|((time, _), _)| time).max()
    };
    let latest = urls.iter().filter_map(counted).max().filter(|time| at.saturating_sub(*time) <= age);
    let Some(latest) = latest else { return BTreeSet::new() };
    let of_latest = urls.iter().filter(|url| counted(url) == Some(latest));
    of_latest.flat_map(|url| owned(oracle.out_links(url, When::Seen(latest, latest)))).collect()
}

fn in_links(oracle: &Oracle, urls: &[String], when: When) -> BTreeSet<String> {
    urls.iter().flat_map(|url| oracle.in_links(url, when)).map(str::to_owned).collect()
}

/// All spellings of each page in a store, found by a look at each URL.
fn pages(links: &dyn Links) -> BTreeMap<String, Vec<Uid>> {
    let mut pages: BTreeMap<String, Vec<Uid>> = BTreeMap::new();
    for uid in Uid::each(Uid::below(links.urls())) {
        pages.entry(surt(&links.url(uid).unwrap())).or_default().push(uid);
    }
    pages
}

fn compare(name: &str, links: &dyn Links, layers: &dyn Links, oracle: &Oracle, random: &mut Random) {
    for (urlkey, uids) in pages(layers) {
        let urls: Vec<String> = uids.iter().map(|&uid| layers.url(uid).unwrap()).collect();
        let page = Spelled::new(random.pick(&urls[..]).as_str(), surt);
        assert_eq!(links.spellings(&page).unwrap(), uids, "{name}: {urlkey} by {}", page.url());
        let lists: Vec<_> = uids.iter().map(|&uid| links.captures(uid).unwrap()).collect();
        let captures = captures_of_page(lists.iter().map(Vec::as_slice));
        let got: Vec<_> = captures.iter().map(|(capture, url)| (capture.time, urls[*url].as_str())).collect();
        let mut expected: Vec<_> = urls
            .iter()
            .flat_map(|url| oracle.captures(url).into_iter().map(|(time, _)| (time, url.as_str())))
            .collect();
        expected.sort_by_key(|(time, url)| (*time, urls.iter().position(|other| other == url)));
        assert_eq!(got, expected, "{name}: {urlkey}");
        let all = windows(oracle, &urls[0]);
        for when in [*random.pick(&all), *random.pick(&all)] {
            for (direction, expected) in [
                (Direction::Out, page_links(oracle, &urls, when)),
                (Direction::In(Precision::Exact), in_links(oracle, &urls, when)),
            ] {
                let (found, unknown) = answer_of(links, PageLinks::new(&uids, direction, window(when))).unwrap();
                let named = |uids: Vec<Uid>| -> BTreeSet<String> {
                    uids.into_iter().map(|uid| layers.url(uid).unwrap()).collect()
                };
                assert_eq!(named(found), expected, "{name}: {urlkey} {direction:?} {when:?}");
                if direction != Direction::Out {
                    let each = urls.iter().flat_map(|url| oracle.unknown(url, true, when));
                    let expected: BTreeSet<String> = each.map(str::to_owned).collect();
                    assert_eq!(named(unknown), expected, "{name}: {urlkey} unknown {when:?}");
                }
            }
        }
    }
    let stranger = Spelled::new("http://nobody.example/", surt);
    assert_eq!(links.spellings(&stranger).unwrap(), [], "{name}");
}

/// Compares over HTTP: links with `match=surt`, and question lines.
async fn over_http(store: &Path, layers: &dyn Links, oracle: &Oracle, random: &mut Random) {
    let served = Served::start(store, 1 << 24).await;
    for (urlkey, uids) in pages(layers) {
        let urls: Vec<String> = uids.iter().map(|&uid| layers.url(uid).unwrap()).collect();
        let url = random.pick(&urls).clone();
        let when = *random.pick(&windows(oracle, &url));
        let (text, fields) = parameters(when);
        for (direction, expected) in [("out", page_links(oracle, &urls, when)), ("in", in_links(oracle, &urls, when))] {
            let encoded = encoded(&url);
            let path = format!("/v1/links?url={encoded}&match=surt&direction={direction}&limit=3{text}");
            let (links, _) = served.all(&path, "links").await;
            let links: BTreeSet<String> = links.iter().map(|link| link.as_str().unwrap().to_owned()).collect();
            assert_eq!(links, expected, "{urlkey}: {path}");
            let mut line = json!({"id": 1, "op": "links", "url": url, "match": "surt", "direction": direction});
            line.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
            let answers = served.query(format!("{line}\n")).await;
            let links = answers[0]["links"].as_array().unwrap().iter();
            assert_eq!(links.map(|link| link.as_str().unwrap().to_owned()).collect::<BTreeSet<_>>(), expected);
        }
        let all = served.get(&format!("/v1/links?url={}&match=surt", encoded(&url))).await;
        let shown: Vec<&str> = all["spellings"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        assert_eq!(shown, urls, "{urlkey}");
        let each = urls.iter().enumerate();
        let each = each.flat_map(|(at, url)| oracle.captures(url).into_iter().map(move |(time, _)| (time, at)));
        let expected: BTreeSet<(i64, usize)> = each.collect();
        let expected: Vec<_> = expected.into_iter().map(|(time, at)| (format_time(time), urls[at].clone())).collect();
        let times = expected.len();
        let (captures, answers) =
            served.all(&format!("/v1/captures?url={}&match=surt&limit=5", encoded(&url)), "captures").await;
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let captures: Vec<_> = captures.iter().map(|capture| (text(&capture["time"]), text(&capture["url"]))).collect();
        assert_eq!(captures, expected, "{urlkey}: in order of time");
        assert_eq!(answers, times.div_ceil(5).max(1), "{urlkey}");
        let line = json!({"id": 1, "op": "captures", "url": url, "match": "surt"});
        let answers = served.query(format!("{line}\n")).await;
        assert_eq!(answers[0]["captures"].as_array().unwrap().len(), times, "{urlkey}");
        assert_eq!(answers[0]["urls"].as_array().unwrap().len(), times, "{urlkey}");
    }
    let (code, reason, _) = served.refused("/v1/links?url=http%3A%2F%2Fnobody.example%2F&match=surt").await;
    assert_eq!((code, reason.as_str()), (404, "NOT_IN_STORE"));
}

#[test]
fn every_way_to_ask_finds_all_spellings() {
    for seed in seeds(10..16) {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("store");
        let (lines, oracle) = crawl(seed, 400);
        for (number, half) in lines.chunks(150).enumerate() {
            let path = dir.path().join("lines.jsonl");
            fs::write(&path, half.join("\n") + "\n").unwrap();
            let mut options = options(&store, vec![path]);
            (options.update, options.partition_urls) = (number > 0, Some(50));
            build(&options, &Progress::default()).unwrap();
        }
        let mut random = Random(seed);
        for merged in [false, true] {
            if merged {
                let options = MergeOptions { partition_urls: Some(50), ..MergeOptions::new(run_options(&store)) };
                merge(&options, &Progress::default()).unwrap();
            }
            let layers = reader(&store);
            compare("layers", &layers, &layers, &oracle, &mut random);
            let cells = cells_of(&store, CodecTag::Strata);
            compare("cells", &cells, &layers, &oracle, &mut random);
            let cluster = Cluster::start(&store, Shape { servers: 3, ..Shape::default() });
            compare("a cluster", &cluster.clerk(), &layers, &oracle, &mut random);
            compare("gRPC", &Raw::connect(&cluster.addresses()[0]), &layers, &oracle, &mut random);
            drop(cluster);
            let runtime = tokio::runtime::Runtime::new().unwrap();
            runtime.block_on(over_http(&store, &layers, &oracle, &mut random));
        }
    }
}

/// Compares every URL of real sites with a look at each URL.
#[test]
#[ignore = "needs the shared test data: WEBSTRATA_SHARED=DIR cargo test --test spellings -- --ignored"]
fn spellings_of_real_sites() {
    let (mut urls, mut together) = (0, 0);
    for site in ["couchdb", "gcc", "hive", "httpd", "jena", "lucene", "openbsd-ru", "wicket"] {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("store");
        let path = shared("data/real").join(format!("{site}.captures.jsonl.gz"));
        build(&options(&store, vec![path]), &Progress::default()).unwrap();
        let layers = reader(&store);
        let cells = cells_of(&store, CodecTag::Strata);
        for (urlkey, uids) in pages(&layers) {
            let (odd, plain): (Vec<Uid>, Vec<Uid>) =
                uids.iter().partition(|&&uid| host_of(&layers.url(uid).unwrap()).unwrap().contains(['[', ',']));
            for links in [&layers as &dyn Links, &cells] {
                for &uid in &plain {
                    let page = Spelled::new(&layers.url(uid).unwrap(), surt);
                    assert_eq!(links.spellings(&page).unwrap(), plain, "{urlkey} by {}", page.url());
                }
                for &uid in &odd {
                    let page = Spelled::new(&layers.url(uid).unwrap(), surt);
                    assert!(links.spellings(&page).unwrap().contains(&uid), "{urlkey} by {}", page.url());
                }
            }
            (urls, together) = (urls + uids.len(), together + if uids.len() > 1 { uids.len() } else { 0 });
        }
    }
    assert!(urls > 10_000 && together > 1000, "{together} of {urls} URLs share their urlkey with another one");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_url_without_a_scheme_is_the_one_that_was_captured() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    let (text, time) = (str::to_owned, parse_time("20060601120000", false).unwrap());
    let links = ["http://b.example/", "https://b.example/", "http://c.example/", "http://www.e.example/"].map(text);
    let none = || Said::Links(BTreeSet::new());
    let row = BTreeMap::from([
        ((text("http://a.example/"), time), Said::Links(BTreeSet::from(links))),
        ((text("https://b.example/"), time), none()),
        ((text("https://www.d.example/x"), time), none()),
    ]);
    Rows { rows: vec![row], bare: vec![BTreeSet::new()] }.write(&store, 1, RangeLength::Month);
    let served = Served::start(&store, 1 << 24).await;
    let meant = [("b.example", "https://b.example/"), ("c.example", "http://c.example/")];
    for (bare, url) in [&meant[..], &[("d.example/x", "https://www.d.example/x")]].concat() {
        assert_eq!(served.get(&format!("/v1/captures?url={bare}")).await["url"], json!(url), "{bare}");
    }
    for (bare, url) in meant {
        assert_eq!(served.get(&format!("/v1/uids?url={bare}")).await["uids"][0]["url"], json!(url), "{bare}");
    }
    let refused = served.refused("/v1/captures?url=e.example").await;
    assert_eq!((refused.0, refused.1.as_str()), (404, "NOT_IN_STORE"), "never captured: {}", refused.2);
}
