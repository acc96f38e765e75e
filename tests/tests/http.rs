//! Compares HTTP answers with the oracle, in parts of any size. The server refuses requests that it does not
//! understand, its OpenAPI description is right, and it reads URLs as crawls are read.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use axum::body::{Body, Bytes};
use axum::http::{Request, header};
use futures_util::stream::{StreamExt, unfold};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;
use tokio::sync::mpsc;
use tower::ServiceExt;
use webstrata_layers::record::key::key_of;
use webstrata_layers::{RangeLength, format_time, parse_time};
use webstrata_tests::oracle::{Ending, Oracle, When};
use webstrata_tests::rows::{Rows, Said, Shape};
use webstrata_tests::served::{Served, encoded, parameters};
use webstrata_tests::stores::windows;

fn time(text: &str) -> i64 {
    parse_time(text, false).unwrap()
}

fn random(store: &Path, seed: u64) -> Oracle {
    let rows = Rows::random(seed, Shape { rows: 3, pages: 12, captures: 60, links: 6, in_order: false }).with_cut(seed);
    rows.write(store, 2, RangeLength::Month);
    rows.oracle()
}

/// The texts of an answer as a set. Each text must be there once.
fn texts(values: &[Value]) -> BTreeSet<&str> {
    let texts: BTreeSet<&str> = values.iter().map(|value| value.as_str().unwrap()).collect();
    assert_eq!(texts.len(), values.len(), "each once");
    texts
}

#[tokio::test(flavor = "multi_thread")]
async fn one_url_is_answered_as_the_oracle_does() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    let oracle = random(&store, 5);
    let served = Served::start(&store, 1 << 24).await;
    let mut questions = String::new();
    let mut answers: Vec<(BTreeSet<&str>, Value)> = Vec::new();
    for url in oracle.urls() {
        let path = format!("/v1/links?url={}", encoded(url));
        for when in windows(&oracle, url) {
            let (window, fields) = parameters(when);
            for (direction, expected) in [("out", oracle.out_links(url, when)), ("in", oracle.in_links(url, when))] {
                let path = format!("{path}{window}&direction={direction}");
                let answer = served.get(&path).await;
                assert_eq!(texts(answer["links"].as_array().unwrap()), expected, "{path}");
                let unknown = unknown_in(&oracle, url, direction, when);
                let shown = said(&answer);
                assert_eq!(shown, unknown, "{path}");
                let (mut links, answers_in_parts) = served.all(&format!("{path}&limit=2"), "links").await;
                links.sort_by_key(ToString::to_string);
                links.dedup();
                assert_eq!(links.len(), expected.len(), "{path} in {answers_in_parts}");
                assert_eq!((&answer["url"], &answer["epoch"]), (&json!(url), &json!(1)));
                let counted = served.get(&format!("{path}&count=true")).await;
                assert_eq!(counted["count"], expected.len(), "{path}");
                let number = if let Value::Array(pages) = &unknown { json!(pages.len()) } else { unknown.clone() };
                assert_eq!(counted["unknown"], number, "{path}");
                let mut question = json!({"id": answers.len(), "op": "links", "url": url, "direction": direction});
                question.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
                questions.push_str(&format!("{question}\n"));
                answers.push((expected, unknown));
            }
        }
        let spans = served.all(&format!("/v1/lifespans?url={}&limit=1", encoded(url)), "lifespans").await.0;
        let expected = oracle.lifespans(url).into_iter();
        let expected = expected.map(|(link, first, last)| (link, format_time(first), format_time(last)));
        let text = |span: &Value, name: &str| span[name].as_str().unwrap().to_owned();
        let given: BTreeSet<_> = spans.iter().map(|s| (text(s, "link"), text(s, "first"), text(s, "last"))).collect();
        assert_eq!(given, expected.map(|(link, first, last)| (link.to_owned(), first, last)).collect(), "{url}");
        let into = served.all(&format!("/v1/lifespans?url={}&direction=in&limit=2", encoded(url)), "lifespans").await.0;
        let all = oracle.urls().into_iter().flat_map(|source| {
            let own = oracle.lifespans(source).into_iter().filter(|span| span.0 == url);
            own.map(move |(_, first, last)| (source.to_owned(), format_time(first), format_time(last)))
        });
        let given: BTreeSet<_> = into.iter().map(|s| (text(s, "link"), text(s, "first"), text(s, "last"))).collect();
        assert_eq!((given.len(), given), (into.len(), all.collect()), "to {url}");
    }
    assert!(answers.len() > 1000);
    let answered = served.query(questions).await;
    assert_eq!(answered.len(), answers.len());
    for (at, (answer, (links, unknown))) in answered.iter().zip(answers).enumerate() {
        assert_eq!((&answer["id"], &answer["epoch"]), (&json!(at), &json!(1)));
        assert_eq!(texts(answer["links"].as_array().unwrap()), links);
        assert_eq!(said(answer), unknown);
    }
}

/// The expected field `unknown`: `true` for out-links that are unknown; for in-links the pages with unknown links, in
/// order of text.
fn unknown_in(oracle: &Oracle, url: &str, direction: &str, when: When) -> Value {
    let unknown = oracle.unknown(url, direction == "in", when);
    match unknown.is_empty() {
        true => Value::Null,
        false if direction == "out" => json!(true),
        false => json!(unknown),
    }
}

/// The field `unknown` of an answer, in the same form.
fn said(answer: &Value) -> Value {
    let mut unknown = answer["unknown"].clone();
    if let Some(pages) = unknown.as_array_mut() {
        pages.sort_by_key(|page| page.as_str().unwrap().to_owned());
    }
    unknown
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_between_dates_are_those_of_the_oracle() {
    let (mut asked, mut kinds) = (0, BTreeMap::<String, usize>::new());
    for seed in 0..4 {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("store");
        let oracle = random(&store, seed);
        let served = Served::start(&store, 1 << 24).await;
        let times: Vec<i64> = oracle.times().into_iter().collect();
        for (rule, ending) in [("end", Ending::Gone), ("ignore", Ending::None), ("all", Ending::Each)] {
            let (from, to) = (times[times.len() / 3], times[times.len() * 3 / 4]);
            let dates = [from, to].map(|at| When::AsOfBy(at, i64::MAX, ending));
            let between = format!("from_date={}&to_date={}&failures={rule}", format_time(from), format_time(to));
            for url in oracle.urls() {
                for direction in ["out", "in"] {
                    let [before, after] = dates.map(|date| match direction {
                        "out" => oracle.out_links(url, date),
                        _ => oracle.in_links(url, date),
                    });
                    let mut expected = BTreeMap::new();
                    for &link in before.symmetric_difference(&after) {
                        // The page is known to lack the link only if the capture that decides is whole.
                        let (change, lacks) =
                            if after.contains(link) { ("gained", dates[0]) } else { ("lost", dates[1]) };
                        match direction {
                            "in" if oracle.is_unknown(link, lacks) => expected.insert(link, "unknown"),
                            "out" if oracle.is_unknown(url, lacks) => None,
                            _ => expected.insert(link, change),
                        };
                    }
                    let lacks = direction == "out" && dates.iter().any(|&date| oracle.is_unknown(url, date));
                    let path = format!("/v1/changed?{between}&direction={direction}&url={}", encoded(url));
                    let whole = served.get(&path).await;
                    assert_eq!(whole["unknown"], if lacks { json!(true) } else { Value::Null }, "{path}");
                    let parts = served.all(&format!("{path}&limit=1"), "changes").await.0;
                    assert_eq!(&parts, whole["changes"].as_array().unwrap(), "{path}");
                    let text = |change: &'static str| move |value: &Value| value[change].as_str().unwrap().to_owned();
                    let given: BTreeMap<_, _> = parts.iter().map(|c| (text("link")(c), text("change")(c))).collect();
                    let expected: BTreeMap<_, _> =
                        expected.into_iter().map(|(link, change)| (link.to_owned(), change.to_owned())).collect();
                    assert_eq!((parts.len(), &given), (expected.len(), &expected), "{path}");
                    given.into_values().for_each(|change| *kinds.entry(change).or_default() += 1);
                    asked += 1;
                }
            }
        }
    }
    assert!(asked > 300 && kinds.len() == 3, "{asked} questions, {kinds:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_linked_first_is_as_the_oracle_says() {
    let mut linked = 0;
    for seed in 0..4 {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("store");
        let oracle = random(&store, seed);
        let served = Served::start(&store, 1 << 24).await;
        for url in oracle.urls() {
            let answer = served.get(&format!("/v1/first?url={}&limit=5", encoded(url))).await;
            let expected = oracle.first(url);
            assert_eq!(answer["pages"], json!(expected.len()), "{url}");
            let given: BTreeSet<(i64, &str)> = answer["first"]
                .as_array()
                .unwrap()
                .iter()
                .map(|line| {
                    (parse_time(line["first"].as_str().unwrap(), false).unwrap(), line["page"].as_str().unwrap())
                })
                .collect();
            // Pages of the same second come in the order of the store.
            let times = |firsts: &BTreeSet<(i64, &str)>| firsts.iter().map(|first| first.0).take(5).collect::<Vec<_>>();
            assert!(given.is_subset(&expected) && times(&given) == times(&expected), "{url}: {given:?}, {expected:?}");
            linked += given.len();
            let (lines, answers) = served.all(&format!("/v1/first?url={}&limit=2", encoded(url)), "first").await;
            let line = |line: &Value| [&line["first"], &line["page"]].map(|text| text.as_str().unwrap().to_owned());
            let lines: Vec<_> = lines.iter().map(line).collect();
            assert!(lines.is_sorted_by_key(|[first, _]| first.clone()), "{url}: {lines:?}");
            let expected = expected.into_iter().map(|(first, page)| [format_time(first), page.to_owned()]);
            let expected: BTreeSet<_> = expected.collect();
            assert_eq!((lines.len(), answers), (expected.len(), expected.len().div_ceil(2).max(1)), "{url}");
            assert_eq!(lines.into_iter().collect::<BTreeSet<_>>(), expected, "{url}");
        }
    }
    assert!(linked > 50, "{linked}");
}

#[tokio::test(flavor = "multi_thread")]
async fn dates_that_make_no_sense_are_refused() {
    let (_dir, served) = Served::example().await;
    for (query, status, message) in [
        ("url=http://a.example/&from_date=2006", 400, "to_date: missing"),
        ("url=http://a.example/&from_date=20060231&to_date=2007", 400, "from_date: "),
        ("url=http://a.example/&from_date=2007&to_date=2006", 400, "from_date: "),
        ("url=http://a.example/&from_date=2006&to_date=2007&resume_key=x", 400, "resume_key: "),
        ("url=http://a.example/&from_date=2006&to_date=2007&at=2006", 400, "at: "),
        ("url=http://none.example/&from_date=2006&to_date=2007", 404, ""),
    ] {
        let refused = served.refused(&format!("/v1/changed?{query}")).await;
        assert!(refused.0 == status && refused.2.starts_with(message), "{query}: {refused:?}");
    }
}

/// The expected result of a walk: UIDs and URLs, each with its links, and whether there may be more.
type Walked<'a> = BTreeMap<u64, (&'a str, BTreeSet<&'a str>, bool)>;

async fn compare_walks(served: &Served, oracle: &Oracle, uids: &BTreeMap<&str, u64>, matched: &str, url: &str) {
    let host = |url: &str| url.split('/').nth(2).unwrap().split(':').next().unwrap().to_owned();
    let own = host(url);
    let matches = |other: &&&str| match matched {
        "host" => host(other) == own,
        "domain" => host(other) == own || host(other).ends_with(&format!(".{own}")),
        _ => key_of(other).starts_with(&key_of(url)[..key_of(url).len() - 1]),
    };
    let urls: Vec<&str> = uids.keys().filter(matches).copied().collect();
    assert!(!urls.is_empty(), "{matched} {url}");
    let times: Vec<i64> = oracle.times().into_iter().collect();
    let middle = times[times.len() / 2];
    for when in [When::Seen(i64::MIN, i64::MAX), When::Seen(times[1], middle), When::AsOf(middle)] {
        for (direction, limit) in [("out", 1), ("out", 5), ("in", 3), ("in", 10_000)] {
            let (window, _) = parameters(when);
            let path =
                format!("/v1/links?url={}&match={matched}&direction={direction}{window}&limit={limit}", encoded(url));
            let (items, answers) = served.all(&path, "items").await;
            let mut found = Walked::new();
            let mut unknown = BTreeSet::new();
            let mut last = None;
            for item in &items {
                let uid = item["uid"].as_u64().unwrap();
                assert!(last <= Some(uid), "{path}: UIDs rise");
                last = Some(uid);
                let links = texts(item["links"].as_array().unwrap());
                let entry = found.entry(uid).or_insert((item["url"].as_str().unwrap(), BTreeSet::new(), false));
                if let Some(pages) = item["unknown"].as_array() {
                    pages.iter().for_each(|page| assert!(unknown.insert((uid, page.as_str().unwrap())), "{path}"));
                }
                entry.2 |= item["unknown"] == json!(true);
                links.into_iter().for_each(|link| assert!(entry.1.insert(link), "{path}: {link} twice"));
            }
            let unknown_of = |url: &&str| if direction == "in" { oracle.unknown(url, true, when).len() } else { 0 };
            let expected = urls.iter().filter_map(|url| {
                let is_open = direction == "out" && oracle.is_unknown(url, when);
                let links = if direction == "out" { oracle.out_links(url, when) } else { oracle.in_links(url, when) };
                let has_values = is_open || !links.is_empty() || unknown_of(url) > 0;
                has_values.then_some((uids[url], (*url, links, is_open)))
            });
            let expected: Walked<'_> = expected.collect();
            assert_eq!(found, expected, "{path}");
            // A page with unknown links is a value of its own, unless it links to itself.
            let values = |(url, links, is_open): &(&str, BTreeSet<&str>, bool)| {
                links.len() + usize::from(*is_open && !links.contains(url))
            };
            let values: usize = expected.values().map(values).sum();
            let values = values + unknown.len();
            assert_eq!(unknown.len(), urls.iter().map(unknown_of).sum::<usize>(), "{path}");
            assert_eq!(answers, values.div_ceil(limit).max(1), "{path}");
            let counted = served.all(&format!("{path}&count=true"), "items").await.0;
            let counts: BTreeMap<u64, (Value, Value)> = counted
                .iter()
                .map(|item| (item["uid"].as_u64().unwrap(), (item["count"].clone(), item["unknown"].clone())))
                .collect();
            let expected = expected.into_iter().map(|(uid, (url, links, is_open))| {
                let unknown = match unknown_of(&url) {
                    0 if is_open => json!(true),
                    0 => Value::Null,
                    pages => json!(pages),
                };
                (uid, (json!(links.len()), unknown))
            });
            assert_eq!(counts, expected.collect(), "{path}&count=true");
        }
    }
    let (lines, _) =
        served.all(&format!("/v1/captures?url={}&match={matched}&limit=2", encoded(url)), "captures").await;
    let mut expected: Vec<(u64, Value)> = Vec::new();
    for url in &urls {
        let lines = oracle.captures(url).into_iter().zip(oracle.statuses(url));
        let line = |((time, known), status)| {
            let timestamp = format_time(time);
            let mut line = json!({"url": url, "time": timestamp, "status": status, "known": known});
            if known && oracle.is_unknown(url, When::Seen(time, time)) {
                line["cut"] = json!(true);
            }
            line
        };
        expected.extend(lines.map(|capture| (uids[url], line(capture))));
    }
    expected.sort_by_key(|(uid, _)| *uid);
    // The oracle does not know why a capture is cut.
    let lines: Vec<Value> = lines
        .into_iter()
        .map(|mut line| {
            if line["cut"].is_string() {
                line["cut"] = json!(true);
            }
            line
        })
        .collect();
    assert_eq!(lines, expected.into_iter().map(|(_, line)| line).collect::<Vec<_>>());
    for (window, is_in) in [("", None), ("&from=19700105&to=19700220", Some((time("19700105"), time("19700221") - 1)))]
    {
        let path = format!("/v1/urls?url={}&match={matched}&limit=2{window}", encoded(url));
        let inside = |url: &&&str| {
            let within = |(from, to)| oracle.captures(url).iter().any(|(time, _)| (from..=to).contains(time));
            is_in.is_none_or(within)
        };
        let expected: BTreeMap<u64, &str> = urls.iter().filter(inside).map(|url| (uids[url], *url)).collect();
        let expected: Vec<Value> = expected.into_iter().map(|(uid, url)| json!({"url": url, "uid": uid})).collect();
        assert_eq!(served.all(&path, "urls").await.0, expected, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn walks_give_everything_once_however_small_the_steps() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    let oracle = random(&store, 11);
    let served = Served::start(&store, 1 << 24).await;
    let all = served.all("/v1/urls?limit=3", "urls").await.0;
    let uids: BTreeMap<&str, u64> =
        all.iter().map(|item| (item["url"].as_str().unwrap(), item["uid"].as_u64().unwrap())).collect();
    // The store also has URLs that only replaced captures name.
    assert!(oracle.urls().iter().all(|url| uids.contains_key(url)));
    let url = *oracle.urls().first().unwrap();
    let host = url.split('/').nth(2).unwrap();
    let domain = host.split('.').next_back().unwrap();
    for (matched, url) in [("host", host), ("domain", domain), ("prefix", host)] {
        compare_walks(&served, &oracle, &uids, matched, &format!("http://{url}/")).await;
    }
    // Answers that have room for hardly one line still continue to the end.
    let paths = [
        ("/v1/urls?", 400),
        ("/v1/captures?url=example&match=domain", 512),
        ("/v1/links?url=example&match=domain", 900),
    ];
    for (path, bytes) in paths {
        let small = Served::start(&store, bytes).await;
        let field = &path[4..path.find('?').unwrap()].replace("links", "items");
        let links = |items: Vec<Value>| -> BTreeSet<String> {
            let each = items.iter().flat_map(|item| match item["links"].as_array() {
                Some(links) => links.iter().map(|link| format!("{} {link}", item["url"])).collect(),
                None => vec![item.to_string()],
            });
            each.collect()
        };
        let (large, _) = served.all(path, field).await;
        let (parts, answers) = small.all(path, field).await;
        assert_eq!(links(parts), links(large), "{path}");
        assert!(answers > 1, "{path}: {answers}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_understood_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    let text = str::to_owned;
    let both = BTreeSet::from([text("http://b.example/"), text("https://b.example/"), text("https://www.c.example/x")]);
    let row = BTreeMap::from([((text("http://a.example/"), time("2006")), Said::Links(both))]);
    Rows { rows: vec![row], bare: vec![BTreeSet::new()] }.write(&store, 1, RangeLength::Month);
    let served = Served::start(&store, 1 << 24).await;
    let cases = [
        ("/v1/links?url=a.example&form=2006", 400, "BAD_REQUEST", "form: "),
        ("/v1/links?url=a.example&from=2006&from=2007", 400, "BAD_REQUEST", "from: "),
        ("/v1/links?url=a.example&from=2006&to=2005", 400, "BAD_REQUEST", "from 2006"),
        ("/v1/links?url=a.example&from=2006&at=2005", 400, "BAD_REQUEST", "at: "),
        ("/v1/links?url=a.example&limit=-1", 400, "BAD_REQUEST", "limit: "),
        ("/v1/links?url=a.example&limit=1000001", 400, "BAD_REQUEST", "limit: "),
        ("/v1/links?url=a.example&precision=exact", 400, "BAD_REQUEST", "precision: "),
        ("/v1/links?url=a.example&seed=1", 400, "BAD_REQUEST", "seed: "),
        ("/v1/links?url=a.example&count=true&sample=1", 400, "BAD_REQUEST", "count: "),
        ("/v1/links?url=a.example&match=range", 400, "BAD_REQUEST", "match: "),
        ("/v1/links?url=a.example&resume_key=1.0.0.0", 400, "BAD_REQUEST", "resume_key: "),
        ("/v1/links", 400, "BAD_REQUEST", "url: "),
        ("/v1/links?url=mailto:a@b", 404, "NOT_IN_STORE", "mailto:a@b is not in the store"),
        ("/v1/links?url=ftp://a.example/", 400, "BAD_REQUEST", "url: "),
        (
            "/v1/links?url=b.example",
            400,
            "BAD_REQUEST",
            "url: both http://b.example/ and https://b.example/ are in the store",
        ),
        (
            "/v1/links?url=c.example/x",
            404,
            "NOT_IN_STORE",
            "c.example/x is not in the store, but https://www.c.example/x is",
        ),
        ("/v1/captures?url=http://d.example/", 404, "NOT_IN_STORE", "http://d.example/ is not in the store, neither"),
        ("/v1/links?url=a.example&epoch=2", 400, "EPOCH_UNKNOWN", "epoch 2 is not served yet"),
        ("/v1/uids/99", 400, "UNKNOWN_UID", "UID 99 is not in epoch 1"),
        ("/v1/uids/x", 400, "BAD_REQUEST", "uid: "),
        ("/v1/translate?uid=1&from=x", 400, "BAD_REQUEST", "from: "),
        ("/v1/translate", 400, "BAD_REQUEST", "uid: "),
        ("/v1/urls?match=host", 400, "BAD_REQUEST", "match: "),
        ("/v1/stats?url=a.example", 400, "BAD_REQUEST", "url: "),
        ("/v1/nothing", 404, "NO_SUCH_PATH", "no such path: /v1/nothing"),
        ("/v1/query", 405, "WRONG_METHOD", "GET is not allowed at /v1/query"),
    ];
    for (path, status, reason, message) in cases {
        let refused = served.refused(path).await;
        assert_eq!((refused.0, refused.1.as_str()), (status, reason), "{path}: {}", refused.2);
        assert!(refused.2.starts_with(message), "{path}: {}", refused.2);
    }
    let many = format!("/v1/uids?{}", vec!["url=a.example"; 101].join("&"));
    assert_eq!(served.refused(&many).await.1, "BATCH_TOO_LARGE");
    let found = served.get("/v1/uids?url=a.example&url=d.example").await;
    let [a, d] = [json!({"url": "http://a.example/", "uid": 0}), json!({"url": "http://d.example/", "uid": null})];
    assert_eq!(found, json!({"epoch": 1, "uids": [a, d]}));
    assert_eq!(served.get("/v1/links?url=A.example/%23top&from=2006-01-01T00:00:00%2B00:00").await["uid"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_port_of_a_server_answers() {
    let (_dir, served) = Served::example().await;
    let call = async |request: String| served.port(request).await;
    let end = "host: localhost\r\nconnection: close\r\n";
    let answer = call(format!("GET /v1/epochs HTTP/1.1\r\n{end}\r\n")).await;
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("{\"epoch\":1,\"epochs\":[1]}"), "{answer}");
    let question = "{\"op\": \"captures\", \"url\": \"http://a.example/\"}";
    let head = format!("POST /v1/query HTTP/1.1\r\n{end}content-length: {}\r\n", question.len());
    let answer = call(format!("{head}\r\n{question}")).await;
    assert!(
        answer.starts_with("HTTP/1.1 200 ") && answer.contains("[\"2006-05-01T00:00:00Z\",\"2006-06-01T00:00:00Z\"]"),
        "{answer}"
    );
    let figures = call(format!("GET /metrics HTTP/1.1\r\n{end}\r\n")).await;
    assert!(figures.contains("\"v1/epochs\"") && figures.contains("\"v1/query\""), "{figures}");
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_are_answered_while_others_are_still_to_come() {
    let (_dir, served) = Served::example().await;
    let (sender, receiver) = mpsc::unbounded_channel::<Result<Bytes, std::io::Error>>();
    let send = |text: &str| sender.send(Ok(Bytes::from(text.to_owned()))).unwrap();
    let receiver = unfold(receiver, async |mut receiver| Some((receiver.recv().await?, receiver)));
    let request = Request::post("/v1/query").body(Body::from_stream(receiver)).unwrap();
    let response = served.router.clone().oneshot(request).await.unwrap();
    assert_eq!(response.headers()[header::CONTENT_TYPE], "application/x-ndjson");
    let mut answers = response.into_body().into_data_stream();
    let mut next = async || {
        let text = tokio::time::timeout(Duration::from_secs(20), answers.next()).await.expect("an answer");
        text.map(|text| serde_json::from_slice::<Value>(&text.unwrap()).unwrap())
    };
    send("{\"id\": \"x\", \"op\": \"captures\",");
    send(" \"url\": \"http://b.example/x\"}\n");
    let times = json!(["2006-06-01T00:00:00Z"]);
    assert_eq!(next().await, Some(json!({"id": "x", "epoch": 1, "captures": times, "unknown": times})));
    send("{\"op\": \"links\", \"url\": \"http://c.example/\"}\n");
    assert_eq!(next().await, Some(json!({"id": null, "epoch": 1, "error": "url not in store"})));
    send("\n{}\n");
    let wrong = next().await.unwrap();
    assert_eq!((&wrong["line"], &wrong["epoch"]), (&json!(4), &json!(1)));
    // The last line needs no line break.
    send("{\"id\": 5, \"op\": \"links\", \"url\": \"http://b.example/x\", \"at\": \"2007\"}");
    drop(sender);
    assert_eq!(next().await, Some(json!({"id": 5, "epoch": 1, "links": [], "unknown": true})));
    assert_eq!(next().await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn hubs_are_given_in_parts() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    let shape = Shape { rows: 3, pages: 400, captures: 500, links: 6, in_order: true };
    let mut rows = Rows::random(3, shape);
    let hub = "http://hub.example/";
    rows.rows
        .iter_mut()
        .flat_map(|row| row.values_mut())
        .filter_map(Said::links_mut)
        .for_each(|links| _ = links.insert(hub.to_owned()));
    rows.write(&store, 3, RangeLength::Month);
    let oracle = rows.oracle();
    let right: BTreeSet<String> =
        oracle.in_links(hub, When::Seen(i64::MIN, i64::MAX)).into_iter().map(str::to_owned).collect();
    // The sources do not fit into one answer of a cell.
    let served = Served::start(&store, 1 << 10).await;
    assert!(right.len() > 150, "{} sources", right.len());
    let texts =
        |values: &[Value]| -> Vec<String> { values.iter().map(|text| text.as_str().unwrap().to_owned()).collect() };
    for precision in ["exact", "range"] {
        let asked = format!("/v1/links?url=hub.example&direction=in&precision={precision}&limit=12");
        let (links, answers) = served.all(&asked, "links").await;
        let links = texts(&links);
        assert_eq!((links.iter().cloned().collect::<BTreeSet<_>>(), links.len()), (right.clone(), right.len()));
        assert!(answers >= right.len() / 12);
        let (items, _) = served.all(&format!("{asked}&match=host"), "items").await;
        let links: Vec<String> = items.iter().flat_map(|item| texts(item["links"].as_array().unwrap())).collect();
        assert_eq!((links.iter().cloned().collect::<BTreeSet<_>>(), links.len()), (right.clone(), right.len()));
        let counted = format!("/v1/links?url=hub.example&direction=in&precision={precision}&count=true");
        assert_eq!(served.get(&counted).await["count"], json!(right.len()));
    }
    // Each random sample without a seed is different, and all parts of an answer belong to one sample.
    let mut samples = Vec::new();
    for seed in ["", "", "&seed=5", "&seed=5"] {
        let asked = format!("/v1/links?url=hub.example&direction=in&sample=60&random=true&limit=7{seed}");
        let (drawn, answers) = served.all(&asked, "links").await;
        let sample: BTreeSet<String> = texts(&drawn).into_iter().collect();
        assert!((sample.len(), drawn.len()) == (60, 60) && sample.is_subset(&right) && answers > 60 / 7, "{drawn:?}");
        samples.push(sample);
    }
    assert!(samples[0] != samples[1] && samples[2] == samples[3]);
    // At least one lifespan for each source, from its first capture on.
    let (spans, _) = served.all("/v1/lifespans?url=hub.example&direction=in&limit=12", "lifespans").await;
    let sources: Vec<Value> = spans.iter().map(|span| span["link"].clone()).collect();
    assert_eq!(texts(&sources).into_iter().collect::<BTreeSet<_>>(), right);
}
