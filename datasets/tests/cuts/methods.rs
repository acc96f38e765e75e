//! Responses to requests that were not a GET are no captures of the page, in every format and every order of records.

use serde_json::json;
use webstrata_datasets::{Capture, Finding, Tally};

use crate::crawls::{CutColumn, Files, all_shown, containers, http, json_line, record, request, write_table};
use crate::reading::read_all;

const METHODS: [(&str, Option<&str>); 9] = [
    ("GET", None),
    ("get", None),
    ("HEAD", Some("HEAD")),
    ("POST", Some("POST")),
    ("post", Some("POST")),
    ("PUT", Some("PUT")),
    ("OPTIONS", Some("OPTIONS")),
    ("DELETE", Some("DELETE")),
    ("BREW", Some("other")),
];
const URL: &str = "http://a.example/";

/// The methods that a tally counted, in the order of their names.
fn counted(tally: &Tally) -> Vec<(String, u64)> {
    tally.parts(Finding::OtherMethod).map(|(name, count)| (name.to_owned(), count)).collect()
}

/// The records of an exchange on a day in some order of a crawler: `r` is the response, `q` the request, `m` metadata.
fn exchange(order: &str, day: i64, method: &str, kind: &str) -> Vec<Vec<u8>> {
    let name = |part: char| format!("WARC-Record-ID: <urn:uuid:{part}{day}>");
    let to = |part: char| format!("WARC-Concurrent-To: <urn:uuid:{part}{day}>");
    let body = if method.eq_ignore_ascii_case("HEAD") { &b""[..] } else { b"<a href=/x>x</a>" };
    let response = http(200, &["Content-Length: 16"], body);
    let profile = "WARC-Profile: http://netpreserve.org/warc/1.0/revisit/identical-payload-digest";
    let of = |part: char, names: &[String]| match part {
        'r' => {
            let fields: Vec<&str> = names.iter().map(String::as_str).chain([profile]).collect();
            record(kind, URL, day, &fields, &response)
        }
        'q' => request(URL, day, &names.iter().map(String::as_str).collect::<Vec<_>>(), method),
        _ => {
            let fields: Vec<&str> = names.iter().map(String::as_str).collect();
            record("metadata", URL, day, &fields, b"outlink: http://a.example/y L a/@href\r\n")
        }
    };
    let (parts, naming) = order.split_once(' ').unwrap();
    let names = |part: char| match naming {
        // The request and the metadata name the response.
        "to response" if part != 'r' => vec![name(part), to('r')],
        // The response names the request.
        "to request" if part == 'r' => vec![name(part), to('q')],
        // All name a further record.
        "to another" => vec![name(part), to('z')],
        // All have one name.
        "as one" => vec![name('r')],
        // Each names nothing.
        "null" => vec![name(part), "WARC-Concurrent-To: <urn:uuid:null>".to_owned()],
        "unnamed" => vec![],
        _ => vec![name(part)],
    };
    parts.chars().map(|part| of(part, &names(part))).collect()
}

#[test]
fn every_method_in_every_order_of_records() {
    let files = Files::new();
    for order in [
        "rq to response",
        "qr to response",
        "rqm to response",
        "qr to request",
        "rq to request",
        "rmq to response",
        "qmr to request",
        "rq to another",
        "qr to another",
        "rq as one",
        "qr null",
        "rq null",
        "qr unnamed",
        "rq unnamed",
    ] {
        for kind in ["response", "revisit"] {
            let days = 0..i64::try_from(METHODS.len()).unwrap();
            let records = days.flat_map(|day| exchange(order, day, METHODS[usize::try_from(day).unwrap()].0, kind));
            let records: Vec<Vec<u8>> = records.collect();
            for (name, bytes) in containers(&records) {
                let (captures, tally) = files.read(name, &bytes);
                let times: Vec<i64> = captures.iter().map(|capture| capture.time).collect();
                assert_eq!(times, [crate::START, crate::START + 86_400], "{order} {kind} {name}");
                let expected = [("DELETE", 1), ("HEAD", 1), ("OPTIONS", 1), ("POST", 2), ("PUT", 1), ("other", 1)];
                assert_eq!(counted(&tally), expected.map(|(name, count)| (name.to_owned(), count)), "{order} {kind}");
                assert_eq!((tally.of(Finding::OtherMethod), tally.of(Finding::Request)), (7, 9), "{order} {kind}");
                assert_eq!(tally.damaged(), 0, "{order} {kind} {name}");
            }
        }
    }
}

#[test]
fn requests_of_one_url_and_second_keep_apart() {
    let files = Files::new();
    let parts = |order: &str, method: &str| exchange(order, 0, method, "response").concat();
    for order in ["qr unnamed", "rq unnamed"] {
        for methods in [["GET", "POST"], ["POST", "GET"]] {
            let records: Vec<u8> = methods.iter().flat_map(|method| parts(order, method)).collect();
            let (captures, tally) = files.read("a.warc", &records);
            assert_eq!((captures.len(), tally.of(Finding::OtherMethod)), (1, 1), "{order} {methods:?}");
        }
    }
    // Two responses, then their requests.
    let [get, post] =
        [(0, "GET"), (1, "POST")].map(|(day, method)| exchange("rq to response", day, method, "response"));
    let records = [&get[0], &post[0], &post[1], &get[1]].map(|record| &record[..]).concat();
    let (captures, _) = files.read("a.warc", &records);
    assert_eq!(captures.iter().map(|capture| capture.time).collect::<Vec<_>>(), [crate::START]);
    // A request of another URL or second says nothing.
    let other = request("http://b.example/", 0, &[], "POST");
    let later = request(URL, 1, &[], "POST");
    let response = exchange("r unnamed", 0, "GET", "response").concat();
    let (captures, tally) = files.read("a.warc", &[other, later, response].concat());
    assert_eq!((captures.len(), tally.of(Finding::OtherMethod)), (1, 0));
}

#[test]
fn outlinks_of_another_method_are_no_capture() {
    let files = Files::new();
    let kinds = webstrata_datasets::LinkKinds { outlinks: true, ..Default::default() };
    for (method, captures) in [("GET", 2), ("POST", 0)] {
        let path = files.write("a.warc", &exchange("rqm to response", 0, method, "response").concat());
        let (found, tally) = read_all(&path, kinds);
        assert_eq!((found.len(), tally.of(Finding::OtherMethod)), (captures, 2 - captures as u64), "{method}");
    }
}

#[test]
fn methods_in_a_wat() {
    let files = Files::new();
    let envelope = |kind: &str, day: usize, names: &str, payload: serde_json::Value| {
        let header = json!({
            "WARC-Type": kind, "WARC-Target-URI": URL, "WARC-Date": format!("2020-01-0{}T00:00:00Z", day + 1),
            "WARC-Record-ID": format!("<urn:uuid:{kind}{day}>"), "WARC-Concurrent-To": names,
        });
        let json = json!({"Envelope": {"Payload-Metadata": payload, "WARC-Header-Metadata": header}}).to_string();
        let head = format!(
            "WARC/1.0\r\nWARC-Type: metadata\r\nWARC-Target-URI: {URL}\r\nWARC-Date: 2021-01-01T00:00:00Z\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            json.len()
        );
        format!("{head}{json}\r\n\r\n")
    };
    for is_first in [true, false] {
        let mut wat = String::new();
        for (day, (method, _)) in METHODS.into_iter().enumerate() {
            let message = json!({"HTTP-Request-Metadata": {"Request-Message": {"Method": method, "Path": "/"}}});
            let html = json!({"Links": [{"path": "A@/href", "url": "/x"}]});
            let response = json!({"HTTP-Response-Metadata": {
                "Response-Message": {"Status": "200"}, "Headers": {"Content-Type": "text/html"}, "HTML-Metadata": html,
            }});
            let names = format!("<urn:uuid:response{day}>");
            let pair = [envelope("request", day, &names, message), envelope("response", day, "", response)];
            wat.extend(if is_first {
                pair
            } else {
                let [request, response] = pair;
                [response, request]
            });
        }
        let (captures, tally) = files.read("a.wat", wat.as_bytes());
        let times: Vec<i64> = captures.iter().map(|capture| capture.time).collect();
        assert_eq!(times, [crate::START, crate::START + 86_400], "{is_first}");
        assert_eq!((tally.of(Finding::OtherMethod), tally.of(Finding::Request)), (7, 9), "{is_first}");
    }
}

#[test]
fn methods_in_lines_tables_and_indexes() {
    let files = Files::new();
    let warc: Vec<u8> = METHODS
        .iter()
        .enumerate()
        .flat_map(|(day, _)| exchange("rq to response", i64::try_from(day).unwrap(), "GET", "response").concat())
        .collect();
    let (all, _) = files.read("all.warc", &warc);
    let gets = all_shown(&all[..2]);
    let check = |name: &str, captures: &[Capture], tally: &Tally| {
        assert_eq!(all_shown(captures), gets, "{name}");
        assert_eq!((tally.of(Finding::OtherMethod), tally.damaged()), (7, 0), "{name}");
        assert_eq!(counted(tally)[3], ("POST".to_owned(), 2), "{name}");
    };
    let lines: String = all.iter().zip(METHODS).map(|(one, (method, _))| json_line(one, Some(method))).collect();
    let (captures, tally) = files.read("a.jsonl", lines.as_bytes());
    check("lines", &captures, &tally);
    let methods = METHODS.map(|(method, _)| Some(method));
    for is_plain in [true, false] {
        let path = files.path("a.parquet");
        write_table(&path, &all, &methods, CutColumn::None, is_plain);
        let (captures, tally) = read_all(&path, Default::default());
        check("table", &captures, &tally);
    }
    // An index does not know the links.
    let days =
        || METHODS.into_iter().enumerate().map(|(day, (method, _))| (format!("2020010{}000000", day + 1), method));
    let as_field: String = days()
        .map(|(time, method)| {
            format!("example,a)/ {time} {{\"url\": \"{URL}\", \"mime\": \"text/html\", \"method\": \"{method}\"}}\n")
        })
        .collect();
    let key = |method: &str| match method {
        "GET" | "get" => "example,a)/".to_owned(),
        method => format!("example,a)/?__wb_method={}&q=1", method.to_ascii_lowercase()),
    };
    let as_key: String = days()
        .map(|(time, method)| format!("{} {time} {{\"url\": \"{URL}\", \"mime\": \"text/html\"}}\n", key(method)))
        .collect();
    let cdx: String = days()
        .map(|(time, method)| format!("{} {time} {URL} text/html 200 - - - 5 12 a.warc\n", key(method)))
        .collect();
    for (name, text) in
        [("field.cdxj", as_field), ("key.cdxj", as_key), ("a.cdx", format!(" CDX N b a m s k r M S V g\n{cdx}"))]
    {
        let (captures, tally) = files.read(name, text.as_bytes());
        assert_eq!(
            captures.iter().map(|capture| capture.time).collect::<Vec<_>>(),
            [crate::START, crate::START + 86_400],
            "{name}"
        );
        assert_eq!((tally.of(Finding::OtherMethod), tally.damaged()), (7, 0), "{name}: {tally:?}");
    }
}
