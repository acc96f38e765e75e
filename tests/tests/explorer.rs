//! Compares the answers to the questions of the explorer with the oracle: the bars of pages, in both directions and
//! with rows left out, and the suggestions of hosts and pages for parts of their names. The page of the explorer comes
//! with its files.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::collections::{BTreeMap, BTreeSet};

use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode};
use serde_json::{Value, json};
use tower::ServiceExt;
use webstrata_layers::record::key::{host_of, key_of};
use webstrata_layers::{RangeLength, format_time};
use webstrata_tests::oracle::{Ending, Oracle, Time, When};
use webstrata_tests::rows::{Rows, Shape};
use webstrata_tests::served::{Served, encoded};

const ALL: When = When::Seen(i64::MIN, i64::MAX);

fn numbers(value: &Value) -> Vec<i64> {
    value.as_array().unwrap().iter().map(|number| number.as_i64().unwrap()).collect()
}

fn texts(value: &Value) -> Vec<&str> {
    value.as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect()
}

/// The rows of an answer, each with its runs of `width` numbers.
fn rows(answer: &Value, width: usize) -> Vec<(&str, Vec<Vec<i64>>)> {
    let runs = numbers(&answer["runs"]);
    let mut runs = runs.chunks(width).map(<[i64]>::to_vec);
    let links = texts(&answer["links"]).into_iter().zip(numbers(&answer["counts"]));
    let rows = links.map(|(link, count)| (link, runs.by_ref().take(count.try_into().unwrap()).collect())).collect();
    assert_eq!(runs.next(), None);
    rows
}

/// The times of a page's captures, as the picture draws them.
fn captures(answer: &Value) -> Vec<Time> {
    let mut time = 0;
    let add = |difference: i64| {
        time += difference;
        time
    };
    numbers(&answer["captures"]).into_iter().map(add).collect()
}

/// The first capture after a run that shows the page without the link; 0 if there is none.
fn gone(oracle: &Oracle, page: &str, last: Time) -> Time {
    let captures = oracle.captures(page).into_iter().zip(oracle.statuses(page));
    let mut later = captures.filter(|((time, _), status)| *time > last && Ending::Gone.counts(*status));
    let is_whole = |time| !oracle.is_unknown(page, When::Seen(time, time));
    later.find(|((time, _), _)| is_whole(*time)).map_or(0, |((time, _), _)| time)
}

/// The captures of a page of which a test is true.
fn times_where(oracle: &Oracle, page: &str, is: impl Fn(Time, bool) -> bool) -> Vec<Time> {
    oracle.captures(page).into_iter().filter(|&(time, known)| is(time, known)).map(|(time, _)| time).collect()
}

/// The parts of the lifespans of a page's links between cut captures without the link.
fn runs<'a>(oracle: &'a Oracle, page: &str) -> BTreeSet<(&'a str, Time, Time)> {
    let has = |link: &str, time| oracle.out_links(page, When::Seen(time, time)).contains(link);
    let is_cut = |time, known| known && oracle.is_unknown(page, When::Seen(time, time));
    let mut runs = BTreeSet::new();
    for (link, first, last) in oracle.lifespans(page) {
        let with = times_where(oracle, page, |time, _| (first..=last).contains(&time) && has(link, time));
        let without = times_where(oracle, page, |time, known| is_cut(time, known) && !has(link, time));
        let parts = with.chunk_by(|one, other| !without.iter().any(|time| (one..other).contains(&time)));
        runs.extend(parts.map(|part| (link, part[0], part[part.len() - 1])));
    }
    runs
}

fn assert_outward(oracle: &Oracle, url: &str, answer: &Value) {
    let times = captures(answer);
    let expected = oracle.captures(url);
    assert_eq!(times, expected.iter().map(|(time, _)| *time).collect::<Vec<_>>(), "{url}");
    let is_open = |&(time, known): &(Time, bool)| !known || oracle.is_unknown(url, When::Seen(time, time));
    let unknown: Vec<i64> = (0..).zip(&expected).filter(|(_, own)| is_open(own)).map(|(place, _)| place).collect();
    assert_eq!(numbers(&answer["unknown"]), unknown, "{url}");
    let mut statuses: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (place, status) in oracle.statuses(url).into_iter().enumerate().filter(|(_, status)| *status != 200) {
        statuses.entry(status.to_string()).or_default().push(place);
    }
    assert_eq!(answer["statuses"], json!(statuses), "{url}");
    let mut drawn = BTreeSet::new();
    for (link, runs) in rows(answer, 2) {
        let mut end = 0;
        for run in runs {
            let first = end + run[0];
            end = first + run[1] + 1;
            let place = |at: i64| times[usize::try_from(at).unwrap()];
            assert!(drawn.insert((link, place(first), place(end - 1))), "{url} {link}: a run twice");
        }
    }
    assert_eq!(drawn, runs(oracle, url), "{url}");
    assert_eq!(answer["rest"], Value::Null);
}

fn assert_inward(oracle: &Oracle, url: &str, answer: &Value) {
    let mut drawn = BTreeSet::new();
    for ((source, runs), found) in rows(answer, 3).into_iter().zip(numbers(&answer["first_known"])) {
        // If no known capture comes before the first link, the link may be older than its first capture.
        assert_eq!(found, gone(oracle, source, Time::MIN), "{source}");
        drawn.extend(runs.into_iter().map(|run| (source, run)));
    }
    let mut expected = BTreeSet::new();
    for source in oracle.in_links(url, ALL) {
        for (_, first, last) in oracle.lifespans(source).into_iter().filter(|span| span.0 == url) {
            expected.insert((source, vec![first, last, gone(oracle, source, last)]));
        }
    }
    assert_eq!(drawn, expected, "to {url}");
}

/// The number of rows, given with their runs, that had the link in each month.
fn by_month(rows: &[(&str, Vec<(Time, Time)>)]) -> Value {
    let mut months: BTreeMap<String, u64> = BTreeMap::new();
    for (_, runs) in rows {
        let mut own = BTreeSet::new();
        for &(first, last) in runs {
            let days =
                (first.div_euclid(86_400)..=last.div_euclid(86_400)).map(|day| (day * 86_400).clamp(first, last));
            own.extend(days.map(|time| format_time(time)[..7].to_owned()));
        }
        own.into_iter().for_each(|month| *months.entry(month).or_default() += 1);
    }
    json!(months.into_iter().collect::<Vec<_>>())
}

#[tokio::test(flavor = "multi_thread")]
async fn bars_are_those_of_the_oracle() {
    let (mut asked, mut cut, mut inward_cut) = (0, 0, 0);
    for (seed, in_order) in [(1, false), (2, true), (3, false)] {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("store");
        let shape = Shape { rows: 3, pages: 12, captures: 90, links: 6, in_order };
        let rows_of_store = Rows::random(seed, shape).with_cut(seed);
        rows_of_store.write(&store, 2, RangeLength::Month);
        let oracle = rows_of_store.oracle();
        let served = Served::start(&store, 1 << 24).await;
        for url in oracle.urls() {
            let path = format!("/v1/barcode?url={}", encoded(url));
            let outward = served.get(&path).await;
            assert_outward(&oracle, url, &outward);
            let inward = served.get(&format!("{path}&direction=in")).await;
            assert_inward(&oracle, url, &inward);
            assert_eq!(inward["captures"], outward["captures"]);
            asked += 1;
            // With one row, the answer has the link with the longest life, and counts the other links by month.
            let one = served.get(&format!("{path}&limit=1")).await;
            let mut lives: BTreeMap<&str, Vec<(Time, Time)>> = BTreeMap::new();
            for (link, first, last) in runs(&oracle, url) {
                lives.entry(link).or_default().push((first, last));
            }
            if lives.len() > 1 {
                let kept = texts(&one["links"]);
                let life = |runs: &[(Time, Time)]| runs.iter().map(|(first, last)| last - first + 1).sum::<Time>();
                let most = lives.values().map(|runs| life(runs)).max();
                assert_eq!((kept.len(), lives.get(kept[0]).map(|runs| life(runs))), (1, most), "{url}");
                lives.remove(kept[0]);
                let others: Vec<_> = lives.into_iter().collect();
                assert_eq!(one["rest"], json!({"links": others.len(), "months": by_month(&others)}), "{url}");
                cut += 1;
            }
            let one = served.get(&format!("{path}&limit=1&direction=in")).await;
            let sources = oracle.in_links(url, ALL).len();
            assert_eq!(texts(&one["links"]).len(), sources.min(1));
            assert_eq!(one["rest"]["links"].as_u64().unwrap_or(0), sources.saturating_sub(1) as u64, "{url}");
            // If rows overlap, their time ranges may be too wide.
            if in_order && sources > 1 {
                let kept = texts(&one["links"])[0];
                let seen = |source: &str| -> Vec<(Time, Time)> {
                    let times = oracle.captures(source).into_iter().map(|(time, _)| time);
                    let has = |time: &Time| oracle.out_links(source, When::Seen(*time, *time)).contains(url);
                    times.filter(has).map(|time| (time, time)).collect()
                };
                let others = oracle.in_links(url, ALL).into_iter().filter(|source| *source != kept);
                let others: Vec<_> = others.map(|source| (source, seen(source))).collect();
                assert_eq!(one["rest"]["months"], by_month(&others), "{url}");
                inward_cut += 1;
            }
        }
    }
    assert!(asked > 60 && cut > 10 && inward_cut > 10, "{asked} URLs, {cut} and {inward_cut} cut");
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_and_pages_are_suggested_for_parts_of_their_names() {
    for rows in [1, 3] {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("store");
        let rows = Rows::random(7, Shape { rows, pages: 40, captures: 80, links: 6, in_order: false });
        rows.write(&store, 3, RangeLength::Month);
        let oracle = rows.oracle();
        let served = Served::start(&store, 1 << 24).await;
        // The store also has URLs of captures that newer rows replaced.
        let mut hosts: BTreeMap<String, u64> = BTreeMap::new();
        for known in served.all("/v1/urls?limit=1000", "urls").await.0 {
            if let Some(host) = host_of(known["url"].as_str().unwrap()) {
                *hosts.entry(host.to_owned()).or_default() += 1;
            }
        }
        let of_hosts = |part: &str| -> BTreeSet<(String, u64)> {
            hosts.iter().filter(|(host, _)| host.contains(part)).map(|(host, &urls)| (host.clone(), urls)).collect()
        };
        for part in ["", "example", "a", "no such host"] {
            let answer = served.get(&format!("/v1/suggest?limit=100&q={}", encoded(part))).await;
            let shown = answer["hosts"].as_array().unwrap().iter();
            let shown: Vec<(String, u64)> =
                shown.map(|host| (host["host"].as_str().unwrap().to_owned(), host["urls"].as_u64().unwrap())).collect();
            assert!(shown.windows(2).all(|pair| pair[0].1 >= pair[1].1), "{shown:?}");
            assert_eq!(shown.into_iter().collect::<BTreeSet<_>>(), of_hosts(part), "{part:?}");
        }
        let captures = |url: &str| oracle.captures(url).len() as u64;
        let busiest = served.get("/v1/suggest?limit=5").await;
        let counts: Vec<u64> =
            busiest["pages"].as_array().unwrap().iter().map(|page| page["captures"].as_u64().unwrap()).collect();
        let mut all: Vec<u64> = oracle.urls().into_iter().map(captures).collect();
        all.sort_unstable_by(|one, other| other.cmp(one));
        assert_eq!(counts, all[..5], "the pages captured most");
        for url in oracle.urls() {
            for part in [url, &url[..url.len() - 1], url.split_once("://").unwrap().1] {
                let answer = served.get(&format!("/v1/suggest?limit=100&q={}", encoded(part))).await;
                let pages = answer["pages"].as_array().unwrap();
                let page = pages.iter().find(|page| page["url"] == url).unwrap_or_else(|| panic!("{part}: {answer}"));
                assert_eq!(page["captures"], captures(url), "{url}");
                assert_eq!(page["inlinks"], oracle.in_links(url, ALL).len(), "{url}");
                let first = oracle.captures(url).first().map(|(time, _)| format_time(*time));
                assert_eq!(page["first"].as_str().map(str::to_owned), first, "{url}");
                let places = pages.iter().map(|page| page["captures"] == 0);
                assert!(places.is_sorted(), "captured pages come first: {answer}");
                let keys: Vec<_> = pages.iter().map(|page| key_of(page["url"].as_str().unwrap())).collect();
                assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), keys.len(), "each once: {answer}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn browsers_get_the_page_and_others_the_list() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    Rows::random(1, Shape { rows: 1, pages: 3, captures: 5, links: 2, in_order: true }).write(
        &store,
        1,
        RangeLength::Month,
    );
    let served = Served::start(&store, 1 << 24).await;
    let ask = async |path: &str, fields: &[(&str, &str)]| {
        let mut request = Request::builder().uri(path);
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        let Ok(response) = served.router.clone().oneshot(request.body(Body::empty()).unwrap()).await;
        let (head, body) = response.into_parts();
        let text = String::from_utf8(to_bytes(body, 1 << 20).await.unwrap().to_vec()).unwrap();
        (head.status, head.headers, text)
    };
    let (_, headers, list) = ask("/", &[]).await;
    assert!(list.contains("/v1/barcode") && headers["vary"].to_str().unwrap().contains("accept"), "{list}");
    let html = ("accept", "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8");
    let (status, headers, page) = ask("/", &[html]).await;
    assert_eq!((status, &headers["content-type"]), (StatusCode::OK, &"text/html; charset=utf-8".parse().unwrap()));
    assert!(headers["content-security-policy"].to_str().unwrap().starts_with("default-src 'self';"));
    // The page names its files, each file exists, and the page names no other server.
    let files: BTreeSet<&str> = page.split("\"explorer/").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    assert!(files.len() >= 2 && !page.contains("https://"), "{page}");
    for file in files {
        let path = format!("/explorer/{file}");
        let (status, headers, text) = ask(&path, &[]).await;
        assert!(status == StatusCode::OK && !text.is_empty(), "{file}");
        let tag = headers["etag"].to_str().unwrap();
        let (status, _, text) = ask(&path, &[("if-none-match", tag)]).await;
        assert_eq!((status, text.as_str()), (StatusCode::NOT_MODIFIED, ""), "{file}");
    }
    assert_eq!(ask("/explorer/none.js", &[]).await.0, StatusCode::NOT_FOUND);
    assert_eq!(ask("/explorer/index.html", &[]).await.0, StatusCode::NOT_FOUND);
}
