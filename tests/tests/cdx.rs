//! Compares the answers of `/cdx` to clients of CDX servers with the oracle, and with other answers of the same server.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use axum::body::Body;
use axum::http::{StatusCode, header};
use serde_json::{Value, json};
use webstrata_layers::record::key::{key_of, url_prefix};
use webstrata_layers::{RangeLength, format_digits, parse_time};
use webstrata_tests::oracle::Oracle;
use webstrata_tests::rows::{Rows, Shape};
use webstrata_tests::served::{Served, encoded};

/// A server of random rows, and the oracle of the rows.
async fn made_up(dir: &tempfile::TempDir) -> (Served, Oracle) {
    let store = dir.path().join("store");
    let rows = Rows::random(11, Shape { rows: 3, pages: 12, captures: 60, links: 6, in_order: false });
    rows.write(&store, 2, RangeLength::Month);
    (Served::start(&store, 1 << 24).await, rows.oracle())
}

/// The lines of `/cdx` from all pages of the answer, with the fields that the question selects.
async fn cdx_lines(served: &Served, question: &str) -> Vec<String> {
    let (mut lines, mut key) = (Vec::new(), String::new());
    loop {
        let (status, body) = served.call("GET", &format!("/cdx?{question}{key}"), Body::empty()).await;
        let text = String::from_utf8(body.to_vec()).unwrap();
        assert_eq!(status, StatusCode::OK, "{question}: {text}");
        let (own, next) = text.split_once("\n\n").map_or((text.as_str(), None), |(own, next)| (own, Some(next)));
        lines.extend(own.lines().map(str::to_owned));
        match next {
            Some(next) => key = format!("&resumeKey={}", next.trim()),
            None => return lines,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_ends_early_says_where_it_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let (served, oracle) = made_up(&dir).await;
    // 16 lines of 128 bytes.
    let few = Served::start(&dir.path().join("store"), 2048).await;
    let page = oracle.urls().into_iter().max_by_key(|url| oracle.captures(url).len()).unwrap();
    let mut cut = 0;
    for question in [
        "url=example&matchType=domain".to_owned(),
        "url=example&matchType=domain&filter=statuscode:200&fl=original,timestamp".to_owned(),
        "url=example&matchType=domain&collapse=timestamp:6".to_owned(),
        "url=example&matchType=domain&sort=reverse".to_owned(),
        "url=example&matchType=domain&limit=0&output=cdxj".to_owned(),
        format!("url={}", encoded(page)),
    ] {
        let all = cdx_lines(&served, &question).await;
        assert_eq!(cdx_lines(&few, &question).await, all, "{question}");
        let (_, body) = few.call("GET", &format!("/cdx?{question}"), Body::empty()).await;
        let text = String::from_utf8(body.to_vec()).unwrap();
        let (lines, key) = text.split_once("\n\n").map_or((text.as_str(), None), |(lines, key)| (lines, Some(key)));
        assert_eq!((lines.lines().count(), key.is_some()), (all.len().min(16), all.len() > 16), "{question}");
        cut += usize::from(all.len() > 16);
    }
    assert!(cut >= 4);
    let question = "/cdx?url=example&matchType=domain&output=json";
    let Value::Array(lines) = few.get(question).await else { panic!("no list") };
    assert_eq!((lines.len(), &lines[17]), (1 + 16 + 2, &json!([])));
    let resumed = few.get(&format!("{question}&resumeKey={}", lines[18][0].as_str().unwrap())).await;
    assert_eq!(resumed[1], served.get(question).await[17]);
    // Link format has no place for a key, so a part is never taken for the whole.
    let (status, reason, _) = few.refused("/cdx?url=example&matchType=domain&output=link").await;
    assert_eq!((status, reason.as_str()), (413, "ANSWER_TOO_LARGE"));
}

#[tokio::test(flavor = "multi_thread")]
async fn captures_are_listed_as_a_cdx_server_lists_them() {
    let dir = tempfile::tempdir().unwrap();
    let (served, oracle) = made_up(&dir).await;
    let mut pages = 0;
    for url in oracle.urls() {
        let expected: Vec<String> = oracle.captures(url).into_iter().map(|(time, _)| format_digits(time)).collect();
        let listed = format!("url={}&fl=timestamp&filter=original:.*", encoded(url));
        // `/cdx` lists the spellings of one page together. The filter leaves one spelling.
        let only = format!("&filter=original:{}", encoded(&regex_of(url)));
        assert_eq!(cdx_lines(&served, &format!("{listed}{only}")).await, expected, "{url}");
        for limit in 1..4 {
            let parts = format!("{listed}{only}&limit={limit}&showResumeKey=true");
            assert_eq!(cdx_lines(&served, &parts).await, expected, "{url} by {limit}");
            let last = cdx_lines(&served, &format!("{listed}{only}&limit=-{limit}")).await;
            assert_eq!(last, expected[expected.len().saturating_sub(limit)..], "{url}");
        }
        for length in [4, 6, 14] {
            let mut years = expected.clone();
            years.dedup_by(|one, other| one[..length] == other[..length]);
            for limit in ["", "&limit=1&showResumeKey=true", "&limit=2&showResumeKey=true"] {
                let question = format!("{listed}{only}&collapse=timestamp:{length}{limit}");
                assert_eq!(cdx_lines(&served, &question).await, years, "{url} {length} {limit}");
            }
        }
        pages += usize::from(expected.len() > 1);
    }
    assert!(pages > 5);
    let url = oracle.urls().into_iter().find(|url| oracle.captures(url).len() > 1).unwrap();
    let host = format!("url={}&matchType=host", encoded(url));
    let all = cdx_lines(&served, &host).await;
    for limit in [1, 2, 7] {
        assert_eq!(cdx_lines(&served, &format!("{host}&limit={limit}&showResumeKey=true")).await, all);
        let ends = cdx_lines(&served, &format!("{host}&limit=-{limit}")).await;
        assert_eq!(ends, all[all.len() - limit.min(all.len())..]);
    }
    let mut keys: Vec<&str> = all.iter().map(|line| line.split(' ').next().unwrap()).collect();
    keys.dedup();
    assert_eq!(cdx_lines(&served, &format!("{host}&collapse=urlkey&fl=urlkey&limit=1&showResumeKey=true")).await, keys);
    let json = served.get(&format!("/cdx?{host}&output=json")).await;
    let rows: Vec<String> = json.as_array().unwrap()[1..]
        .iter()
        .map(|row| row.as_array().unwrap().iter().map(|field| field.as_str().unwrap()).collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!((rows, json[0][2].as_str()), (all, Some("original")));
    assert_eq!(served.get("/cdx?url=nowhere.example&output=json").await, json!([]));
    assert_eq!(served.get(&format!("/cdx?{host}&output=json&limit=0")).await, json);
    let paged = served.get(&format!("/cdx?{host}&output=json&limit=1&showResumeKey=true")).await;
    assert_eq!((paged.as_array().unwrap().len(), &paged[2]), (4, &json!([])));
    for (question, name) in [
        ("url=a.example&limit=x", "limit: "),
        ("url=a.example&fl=urlkey,nothing", "fl: no such field: \"nothing\""),
        ("url=a.example&form=2006", "form: unknown parameter"),
        ("url=a.example&page=1", "page: "),
        ("url=a.example&collapse=timestamp:0", "collapse: "),
        ("url=a.example&filter=statuscode", "filter: "),
        ("url=a.example&filter=statuscode:(", "filter: "),
        ("url=a.example&output=xml", "output: "),
        ("limit=1", "url: missing"),
    ] {
        let (status, _, message) = served.refused(&format!("/cdx?{question}")).await;
        assert_eq!(status, 400, "{question}");
        assert!(message.starts_with(name), "{question}: {message}");
    }
}

/// A regular expression that matches exactly a text.
fn regex_of(text: &str) -> String {
    text.chars()
        .map(|letter| if letter.is_alphanumeric() { letter.to_string() } else { format!("\\{letter}") })
        .collect()
}

/// The timestamps at the start of lines of `fl=timestamp,..`, in seconds.
fn seconds(lines: &[String]) -> Vec<i64> {
    lines.iter().map(|line| parse_time(&line[..14], false).unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn captures_are_listed_from_the_end_and_from_the_nearest() {
    let dir = tempfile::tempdir().unwrap();
    let (served, oracle) = made_up(&dir).await;
    let url = oracle.urls().into_iter().max_by_key(|url| oracle.captures(url).len()).unwrap();
    for kind in ["exact", "host", "domain"] {
        let asked = format!("url={}&matchType={kind}&fl=timestamp,original", encoded(url));
        let all = cdx_lines(&served, &asked).await;
        assert!(all.len() >= 7, "{kind}: {all:?}");
        let back: Vec<String> = all.iter().rev().cloned().collect();
        for sort in ["sort=reverse", "reverse=true", "sort=reverse&filter=urlkey:.*"] {
            assert_eq!(cdx_lines(&served, &format!("{asked}&{sort}")).await, back, "{kind} {sort}");
            for limit in [1, 2, 7] {
                let parts = format!("{asked}&{sort}&limit={limit}&showResumeKey=true");
                assert_eq!(cdx_lines(&served, &parts).await, back, "{kind} {sort} by {limit}");
                let ends = cdx_lines(&served, &format!("{asked}&{sort}&limit=-{limit}")).await;
                assert_eq!(ends, back[back.len() - limit..], "{kind} {sort} {limit}");
            }
        }
        for limit in [1, 3, 1000] {
            let ends = cdx_lines(&served, &format!("{asked}&limit=-{limit}")).await;
            assert_eq!(ends, all[all.len().saturating_sub(limit)..], "{kind} {limit}");
            let offset = cdx_lines(&served, &format!("{asked}&offset={limit}&limit=2&showResumeKey=true")).await;
            assert_eq!(offset, all[limit.min(all.len())..], "{kind} from {limit}");
        }
        let time = seconds(&all)[all.len() / 2] + 3 * 86_400;
        let mut nearest: Vec<usize> = (0..all.len()).collect();
        nearest.sort_by_key(|&place| seconds(&all)[place].abs_diff(time));
        let nearest: Vec<&String> = nearest.into_iter().map(|place| &all[place]).collect();
        let closest = format!("{asked}&closest={}", format_digits(time));
        for limit in [1, 2, 7] {
            let first = cdx_lines(&served, &format!("{closest}&limit={limit}")).await;
            assert_eq!(first.iter().collect::<Vec<_>>(), nearest[..limit], "{kind} {limit}");
            let parts = cdx_lines(&served, &format!("{closest}&sort=closest&limit={limit}&showResumeKey=true")).await;
            assert_eq!(parts.iter().collect::<Vec<_>>(), nearest, "{kind} by {limit}");
        }
        assert_eq!(cdx_lines(&served, &format!("{asked}&sort=closest&closest=")).await, all, "{kind}");
        assert_eq!(cdx_lines(&served, &format!("{asked}&from=1971&to=1970")).await, [""; 0], "{kind}");
        assert_eq!(cdx_lines(&served, &format!("{asked}&page=0&pageSize=1&limit=5")).await, all[..5], "{kind}");
        let pages = async |more: &str| served.get(&format!("/cdx?{asked}&showNumPages=true{more}")).await;
        assert_eq!(pages("").await, json!(1), "{kind}");
        assert_eq!(pages("&fields=url").await, json!({"pages": 1, "pageSize": 50, "blocks": 1}), "{kind}");
    }
    assert_eq!(served.get("/cdx?url=nowhere.example&showNumPages=true").await, json!(0));
    assert_eq!(served.get("/cdx?url=nowhere.example&page=0&output=json").await, json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_range_begins_at_a_url_and_a_host_is_meant_with_and_without_www() {
    let dir = tempfile::tempdir().unwrap();
    let (served, oracle) = made_up(&dir).await;
    let captured: Vec<&str> = oracle.urls().into_iter().filter(|url| !oracle.captures(url).is_empty()).collect();
    for url in &captured {
        let mut expected: Vec<&str> =
            captured.iter().copied().filter(|other| key_of(other) >= url_prefix(url)).collect();
        let lines =
            cdx_lines(&served, &format!("url={}&matchType=range&fl=original&collapse=original", encoded(url))).await;
        let mut found: Vec<&str> = lines.iter().map(String::as_str).collect();
        expected.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, expected, "{url}");
    }
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    let mut rows = Rows::random(3, Shape { rows: 1, pages: 1, captures: 1, links: 1, in_order: true });
    let (_, said) = rows.rows[0].pop_first().unwrap();
    let urls = ["http://b.example/a", "http://sub.b.example/a", "http://www.b.example/a/b", "https://www.b.example/c"];
    rows.rows[0].extend(urls.map(|url| ((url.to_owned(), 1_000_000), said.clone())));
    rows.write(&store, 1, RangeLength::Month);
    let served = Served::start(&store, 1 << 24).await;
    for (question, expected) in [
        ("url=b.example&matchType=host", &[0, 2, 3][..]),
        ("url=http://www.b.example/&matchType=host", &[0, 2, 3]),
        ("url=b.example/*", &[0, 2, 3]),
        ("url=b.example/a*", &[0, 2]),
        ("url=www.b.example/a&matchType=prefix", &[0, 2]),
        ("url=*.b.example", &[0, 1, 2, 3]),
        ("url=*.www.b.example/*", &[0, 1, 2, 3]),
        ("url=sub.b.example/*&matchType=host", &[1]),
        ("url=b.example/a", &[0]),
    ] {
        let mut found = cdx_lines(&served, &format!("{question}&fl=original")).await;
        found.sort_by_key(|url| urls.iter().position(|own| own == url));
        assert_eq!(found, expected.iter().map(|&place| urls[place]).collect::<Vec<_>>(), "{question}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_client_reads_its_own_shape() {
    let (_dir, served) = Served::example().await;
    let ask = async |question: &str| {
        let (status, headers, body) =
            served.whole("GET", &format!("/cdx?url=a.example&{question}"), &[], Body::empty()).await;
        assert_eq!(status, StatusCode::OK, "{question}");
        let kind = headers[header::CONTENT_TYPE].to_str().unwrap().split(';').next().unwrap().to_owned();
        (kind, String::from_utf8(body.to_vec()).unwrap())
    };
    let (kind, text) = ask("output=cdxj&filter==status:200&limit=1").await;
    let line = "example,a)/ 20060501000000 {\"url\": \"http://a.example/\", \"mime\": \"-\", \"status\": \"200\", \
                \"digest\": \"-\", \"length\": \"-\"}\n";
    assert_eq!((kind.as_str(), text.as_str()), ("text/x-cdxj", line));
    let (kind, text) = ask("output=json&fields=url,timestamp,offset").await;
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(kind, "text/x-ndjson");
    assert_eq!(lines[1], json!({"url": "http://a.example/", "timestamp": "20060601000000"}));
    assert_eq!(lines.len(), 2);
    let (_, text) = ask("output=json&fl=original,offset&resolveRevisits=true&limit=1").await;
    assert_eq!(text, "[[\"original\",\"offset\"],\n[\"http://a.example/\",\"-\"]]\n");
    let (kind, text) = ask("output=link").await;
    let memento = |time: &str, date: &str| {
        format!("<https://web.archive.org/web/{time}/http://a.example/>; rel=\"memento\"; datetime=\"{date} GMT\"")
    };
    let [may, june] = [
        memento("20060501000000", "Mon, 01 May 2006 00:00:00"),
        memento("20060601000000", "Thu, 01 Jun 2006 00:00:00"),
    ];
    assert_eq!(kind, "application/link-format");
    assert_eq!(text, format!("<http://a.example/>; rel=\"original\",\n{may},\n{june}\n"));
    for question in ["output=cdxj", "output=link", "output=json&filter=status:99", "output=json&fields=url"] {
        let (status, _, message) = served.refused(&format!("/cdx?url=nowhere.example&{question}")).await;
        assert_eq!((status, message.as_str()), (404, "no captures found for: nowhere.example"), "{question}");
    }
}
