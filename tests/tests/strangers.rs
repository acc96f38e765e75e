//! Callers who are not ours: caches, pages of other sites, and clients of CDX servers and of Memento.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use axum::body::Body;
use axum::http::{StatusCode, header};
use serde_json::json;
use webstrata_layers::{RangeLength, format_digits};
use webstrata_serve::guard::security::{Security, SecurityOptions};
use webstrata_serve::http::options::Origin;
use webstrata_tests::rows::{Rows, Shape};
use webstrata_tests::served::{Served, encoded};

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_other_sites_read_answers_where_they_may() {
    let tokens = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(tokens.path(), "a-token-of-sixteen-letters\n").unwrap();
    let site = "https://tools.example";
    let (_dir, served) = Served::example_with(|options| {
        let files = SecurityOptions { tokens: Some(tokens.path().to_owned()), ..SecurityOptions::default() };
        options.security = Security::open(&files).unwrap();
        options.http.origins = vec![Origin::parse(site).unwrap()];
    })
    .await;
    let ask = async |method: &str, fields: &str| {
        let path = "/v1/links?url=a.example";
        let request = format!("{method} {path} HTTP/1.1\r\nhost: one\r\nconnection: close\r\n{fields}\r\n");
        served.port(request).await.to_lowercase()
    };
    let wanted = "access-control-request-method: GET\r\naccess-control-request-headers: authorization\r\n";
    let allows = format!("access-control-allow-origin: {site}\r\n");
    let answer = ask("OPTIONS", &format!("origin: {site}\r\n{wanted}")).await;
    assert!(answer.starts_with("http/1.1 200 ") && answer.contains(&allows), "{answer}");
    assert!(answer.contains("access-control-allow-headers: authorization,"), "{answer}");
    let token = "authorization: Bearer a-token-of-sixteen-letters\r\n";
    let answer = ask("GET", &format!("origin: {site}\r\n{token}")).await;
    assert!(answer.starts_with("http/1.1 200 ") && answer.contains(&allows), "{answer}");
    assert!(answer.contains("cache-control: private, max-age=60\r\n") && answer.contains("authorization"), "{answer}");
    let answer = ask("GET", &format!("origin: {site}\r\n")).await;
    assert!(answer.starts_with("http/1.1 401 ") && answer.contains(&allows), "{answer}");
    let answer = ask("GET", &format!("origin: https://other.example\r\n{token}")).await;
    assert!(answer.starts_with("http/1.1 200 ") && !answer.contains("access-control-allow-origin"), "{answer}");
    let (_other_dir, closed) = Served::example().await;
    let request = format!("GET /v1/epochs HTTP/1.1\r\nhost: one\r\nconnection: close\r\norigin: {site}\r\n\r\n");
    let answer = closed.port(request).await;
    assert!(answer.starts_with("HTTP/1.1 200 ") && !answer.contains("access-control"), "{answer}");
}

/// The lines of `/cdx`, page after page, with the fields of the question.
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
async fn captures_are_listed_as_a_cdx_server_lists_them() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    let rows = Rows::random(11, Shape { rows: 3, pages: 12, captures: 60, links: 6, in_order: false });
    rows.write(&store, 2, RangeLength::Month);
    let oracle = rows.oracle();
    let served = Served::start(&store, 1 << 24).await;
    let mut pages = 0;
    for url in oracle.urls() {
        let expected: Vec<String> = oracle.captures(url).into_iter().map(|(time, _)| format_digits(time)).collect();
        let listed = format!("url={}&fl=timestamp&filter=original:.*", encoded(url));
        // Spellings of one page are listed together, so each is asked for by its own text.
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
    let paged = served.get(&format!("/cdx?{host}&output=json&limit=1&showResumeKey=true")).await;
    assert_eq!((paged.as_array().unwrap().len(), &paged[2]), (4, &json!([])));
    for (question, name) in [
        ("url=a.example&limit=0", "limit: "),
        ("url=a.example&fl=urlkey,offset", "fl: no such field: \"offset\""),
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

/// A pattern that matches a text.
fn regex_of(text: &str) -> String {
    text.chars()
        .map(|letter| if letter.is_alphanumeric() { letter.to_string() } else { format!("\\{letter}") })
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_of_an_epoch_are_kept_by_callers() {
    let (_dir, served) = Served::example().await;
    let ask = async |path: &str, tag: &str| served.whole("GET", path, &[("if-none-match", tag)], Body::empty()).await;
    let (now, pinned) = ("max-age=60", "max-age=86400, immutable");
    for (path, age) in [
        ("/v1/links?url=a.example", Some(now)),
        ("/v1/links?url=a.example&epoch=1", Some(pinned)),
        ("/v1/captures?url=a.example", Some(now)),
        ("/v1/links?url=a.example&sample=1", Some(now)),
        ("/v1/links?url=a.example&sample=1&random=true", None),
        ("/timemap/link/a.example", Some(now)),
        ("/cdx?url=a.example", Some(now)),
        ("/timegate/a.example", None),
        ("/v1/stats", None),
        ("/v1/topology", None),
        ("/v1/links?url=nowhere.example", None),
        ("/v1/links?url=a.example&epoch=2", None),
    ] {
        let (status, headers, body) = ask(path, "\"other\"").await;
        let given = headers.get(header::CACHE_CONTROL).map(|value| value.to_str().unwrap());
        assert_eq!((given, headers.contains_key(header::ETAG)), (age, age.is_some()), "{path} {status}");
        let Some(tag) = headers.get(header::ETAG).map(|tag| tag.to_str().unwrap()) else { continue };
        assert!(!body.is_empty());
        for known in [tag.to_owned(), format!("\"x\", {tag}")] {
            let (status, again, body) = ask(path, &known).await;
            assert_eq!((status, body.len()), (StatusCode::NOT_MODIFIED, 0), "{path}");
            assert_eq!(
                (&again[header::ETAG], &again[header::CACHE_CONTROL]),
                (&headers[header::ETAG], &headers[header::CACHE_CONTROL])
            );
        }
        let (status, other, _) =
            ask(&format!("{path}{}from=2005", if path.contains('?') { "&" } else { "?" }), tag).await;
        assert_eq!(status != StatusCode::NOT_MODIFIED, other.get(header::ETAG) != Some(&headers[header::ETAG]));
        assert_ne!(status, StatusCode::NOT_MODIFIED, "{path}");
    }
    let next = served.get("/v1/captures?url=a.example&limit=1").await["resumeKey"].as_str().unwrap().to_owned();
    let (_, headers, _) = ask(&format!("/v1/captures?url=a.example&limit=1&resumeKey={next}"), "").await;
    assert_eq!(headers[header::CACHE_CONTROL], pinned);
    for (accepted, encoding) in [("gzip", Some("gzip")), ("zstd", Some("zstd")), ("identity", None)] {
        let (_, headers, _) =
            served.whole("GET", "/v1/openapi.json", &[("accept-encoding", accepted)], Body::empty()).await;
        let given = headers.get(header::CONTENT_ENCODING).map(|value| value.to_str().unwrap());
        assert_eq!(given, encoding);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timegate_leads_to_the_nearest_capture() {
    let (_dir, served) = Served::example().await;
    let at = async |date: &str| {
        let headers = [("accept-datetime", date)];
        let (status, headers, _) = served.whole("GET", "/timegate/a.example", &headers, Body::empty()).await;
        let location = headers.get(header::LOCATION).map(|value| value.to_str().unwrap().to_owned());
        (status.as_u16(), location.unwrap_or_default())
    };
    let [may, june] = ["20060501000000", "20060601000000"]
        .map(|time| format!("https://web.archive.org/web/{time}/http://a.example/"));
    for (date, expected) in [
        ("Sat, 01 Jan 2000 00:00:00 GMT", &may),
        ("Tue, 16 May 2006 12:00:00 GMT", &may),
        ("Tue, 16 May 2006 12:00:01 GMT", &june),
        ("Wed, 01 Jan 2020 00:00:00 GMT", &june),
    ] {
        assert_eq!(at(date).await, (302, expected.clone()), "{date}");
    }
    for date in ["2006", "Mon, 16 May 2006 12:00:00 GMT", ""] {
        assert_eq!(at(date).await.0, 400, "{date}");
    }
    let (status, headers, _) = served.whole("HEAD", "/timegate/http://a.example/", &[], Body::empty()).await;
    assert_eq!((status.as_u16(), headers[header::LOCATION].to_str().unwrap()), (302, june.as_str()));
    assert_eq!(headers[header::VARY].to_str().unwrap().to_lowercase(), "accept-datetime");
    let links = headers[header::LINK].to_str().unwrap();
    assert!(links.starts_with("<http://a.example/>; rel=\"original\", "), "{links}");
    for path in
        ["/timegate/http://b.example/", "/timemap/link/http://b.example/", "/timemap/json/http://nowhere.example/"]
    {
        assert_eq!(served.refused(path).await.0, 404, "{path}");
    }
    assert_eq!(served.refused("/timegate/").await.0, 404);
    // What proxies make of two slashes, and what careful clients write.
    for url in ["http:/a.example/", "http://a.example", "HTTP://A.EXAMPLE/", "http%3A%2F%2Fa.example%2F"] {
        let (status, ..) = served.whole("GET", &format!("/timegate/{url}"), &[], Body::empty()).await;
        assert_eq!(status.as_u16(), 302, "{url}");
    }
}
