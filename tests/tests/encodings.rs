//! Answers are the same whatever their encoding and the version of HTTP: every path, every `Accept-Encoding`, HTTP/1.1
//! and HTTP/2, for callers that read to the end and for callers that leave.
//!
//! The paths are those of the description of the service, so a new path must be added here. Between the calls, the
//! server must stay well: no panic, no call left running, and further calls are answered.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderValue, Request, StatusCode};
use std::collections::BTreeSet;
use std::io::Read;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tonic::codegen::Service;
use tonic::transport::Channel;
use webstrata_tests::served::Served;

/// The paths of the description, each with a call. `POST` has a body.
const CALLS: [(&str, &str); 31] = [
    ("/", "/"),
    ("/cdx", "/cdx?url=a.example&matchType=domain"),
    ("/explorer/{file}", "/explorer/main.js"),
    ("/timegate/{url}", "/timegate/http://a.example/"),
    ("/timemap/json/{url}", "/timemap/json/http://a.example/"),
    ("/timemap/link/{url}", "/timemap/link/http://a.example/"),
    ("/v1", "/v1"),
    ("/v1/backlinks", "/v1/backlinks?url=a.example"),
    ("/v1/barcode", "/v1/barcode?url=a.example"),
    ("/v1/barcode.svg", "/v1/barcode.svg?url=a.example"),
    ("/v1/captures", "/v1/captures?url=a.example"),
    ("/v1/changed", "/v1/changed?url=a.example&from=2006-05&to=2006-06"),
    ("/v1/dead_links", "/v1/dead_links?url=a.example"),
    ("/v1/deaths", "/v1/deaths?url=a.example"),
    ("/v1/epochs", "/v1/epochs"),
    ("/v1/first", "/v1/first?url=a.example"),
    ("/v1/lifespans", "/v1/lifespans?url=a.example"),
    ("/v1/links", "/v1/links?url=a.example"),
    ("/v1/links", "/v1/links?url=nowhere.example"),
    ("/v1/neighbourhood", "/v1/neighbourhood?url=a.example"),
    ("/v1/openapi.json", "/v1/openapi.json"),
    ("/v1/overview", "/v1/overview"),
    ("/v1/query", "/v1/query"),
    ("/v1/stats", "/v1/stats"),
    ("/v1/suggest", "/v1/suggest?text=a.ex"),
    ("/v1/topology", "/v1/topology"),
    ("/v1/translate", "/v1/translate?uid=0&from=1&to=1"),
    ("/v1/uids", "/v1/uids?url=a.example"),
    ("/v1/uids/{uid}", "/v1/uids/0"),
    ("/v1/urls", "/v1/urls?url=a.example"),
    ("/v1/ways", "/v1/ways?url=a.example&target=b.example"),
];

/// Values of `Accept-Encoding`, and the encodings that each allows beside none.
const ACCEPTED: [(Option<&str>, &[&str]); 10] = [
    (None, &[]),
    (Some("identity"), &[]),
    (Some("gzip"), &["gzip"]),
    (Some("zstd"), &["zstd"]),
    (Some("gzip, zstd"), &["gzip", "zstd"]),
    (Some("gzip;q=0.5, zstd;q=0.1, br"), &["gzip", "zstd"]),
    (Some("gzip;q=0, zstd"), &["zstd"]),
    (Some("gzip;q=0, zstd;q=0"), &[]),
    (Some("br, deflate, x-nothing"), &[]),
    (Some("GZIP"), &["gzip"]),
];

/// The number of questions of a call of `/v1/query`, whose answers are many frames.
const QUESTIONS: usize = 5000;

/// The body of a call.
fn body_of(path: &str) -> Option<String> {
    let question = "{\"op\": \"links\", \"url\": \"http://a.example/\"}\n";
    (path == "/v1/query").then(|| question.repeat(QUESTIONS))
}

type Answer = (StatusCode, HeaderMap, Bytes);

/// The request as HTTP/1.1 sends it.
fn text_of(served: &Served, path: &str, accepted: Option<&str>) -> String {
    let body = body_of(path);
    let method = if body.is_some() { "POST" } else { "GET" };
    let accepted = accepted.map_or_else(String::new, |accepted| format!("accept-encoding: {accepted}\r\n"));
    let length = body.as_ref().map_or_else(String::new, |body| format!("content-length: {}\r\n", body.len()));
    let fields = format!("host: {}\r\nconnection: close\r\n{accepted}{length}", served.server.address());
    format!("{method} {path} HTTP/1.1\r\n{fields}\r\n{}", body.unwrap_or_default())
}

/// The answer over a connection of its own.
async fn over_http1(served: &Served, path: &str, accepted: Option<&str>) -> Answer {
    let stream = TcpStream::connect(served.server.address()).await.unwrap();
    let (mut reader, mut writer) = stream.into_split();
    let request = text_of(served, path, accepted);
    // The server answers questions while it reads further ones.
    let sending = tokio::spawn(async move { writer.write_all(request.as_bytes()).await.map(|()| writer) });
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes).await.unwrap();
    sending.await.unwrap().unwrap();
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or_else(|| panic!("{path}: no answer"));
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let mut lines = head.lines();
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let mut headers = HeaderMap::new();
    for (name, value) in lines.map(|line| line.split_once(": ").unwrap()) {
        headers.append(axum::http::HeaderName::try_from(name).unwrap(), HeaderValue::from_str(value).unwrap());
    }
    let mut body = &bytes[end + 4..];
    let mut whole = Vec::new();
    if headers.contains_key("transfer-encoding") {
        loop {
            let line = body.windows(2).position(|two| two == b"\r\n").unwrap_or_else(|| panic!("{path}: a cut answer"));
            let size = usize::from_str_radix(std::str::from_utf8(&body[..line]).unwrap(), 16).unwrap();
            whole.extend_from_slice(&body[line + 2..][..size]);
            body = &body[line + 4 + size..];
            if size == 0 {
                assert!(body.is_empty(), "{path}");
                break;
            }
        }
    } else {
        let length: usize = headers["content-length"].to_str().unwrap().parse().unwrap();
        assert_eq!(body.len(), length, "{path}");
        whole.extend_from_slice(body);
    }
    (status, headers, whole.into())
}

/// A request over the connection of a channel, which all calls share.
async fn sent(channel: &Channel, path: &str, accepted: Option<&str>) -> axum::http::Response<tonic::body::Body> {
    let body = body_of(path);
    let request = if body.is_some() { Request::post(path) } else { Request::get(path) };
    let request = accepted.into_iter().fold(request, |request, accepted| request.header("accept-encoding", accepted));
    let body = tonic::body::Body::new(axum::body::Body::from(body.unwrap_or_default()));
    let mut channel = channel.clone();
    std::future::poll_fn(|context| channel.poll_ready(context)).await.unwrap();
    channel.call(request.body(body).unwrap()).await.unwrap()
}

async fn over_http2(channel: &Channel, path: &str, accepted: Option<&str>) -> Answer {
    let (parts, body) = sent(channel, path, accepted).await.into_parts();
    let body = axum::body::to_bytes(axum::body::Body::new(body), 1 << 24).await;
    (parts.status, parts.headers, body.unwrap_or_else(|error| panic!("{path}: {error}")))
}

/// The text of an answer, and its encoding.
fn decoded((_, headers, body): &Answer) -> (Vec<u8>, Option<String>) {
    let encoding = headers.get("content-encoding").map(|value| value.to_str().unwrap().to_owned());
    let mut text = Vec::new();
    match encoding.as_deref() {
        None => text.extend_from_slice(body),
        Some("gzip") => {
            let mut decoder = flate2::bufread::GzDecoder::new(&body[..]);
            decoder.read_to_end(&mut text).unwrap();
            assert!(decoder.into_inner().is_empty(), "bytes behind the end");
        }
        Some("zstd") => text = zstd::decode_all(&body[..]).unwrap(),
        Some(other) => panic!("nobody asked for {other}"),
    }
    (text, encoding)
}

/// Checks that the server is as it was before all calls.
async fn is_well(served: &Served) {
    for _ in 0..500 {
        if !served
            .server
            .metrics()
            .text()
            .lines()
            .any(|line| line.starts_with("webstrata_calls_running") && !line.ends_with(" 0"))
        {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let metrics = served.server.metrics().text();
    for expected in ["webstrata_panics_total 0", "webstrata_calls_running{pool=\"links\"} 0", "webstrata_ready 1"] {
        assert!(metrics.lines().any(|line| line == expected), "{expected}: {metrics}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_path_answers_the_same_in_every_encoding() {
    let (_dir, served) = Served::example().await;
    let channel = Channel::from_shared(format!("http://{}", served.server.address())).unwrap().connect().await.unwrap();
    let described = served.get("/v1/openapi.json").await;
    let described: BTreeSet<&str> = described["paths"].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(CALLS.iter().map(|(described, _)| *described).collect::<BTreeSet<_>>(), described);
    for (_, path) in CALLS.into_iter().chain([("", "/v1/nothing"), ("", "/nothing"), ("", "/readyz")]) {
        let plain = over_http1(&served, path, None).await;
        let (text, encoding) = decoded(&plain);
        assert_eq!(encoding, None);
        if path == "/v1/query" {
            assert_eq!(text.iter().filter(|&&byte| byte == b'\n').count(), QUESTIONS);
        }
        for (accepted, allowed) in ACCEPTED {
            let answers = [over_http1(&served, path, accepted).await, over_http2(&channel, path, accepted).await];
            for (version, answer) in [1, 2].into_iter().zip(&answers) {
                let (own, encoding) = decoded(answer);
                let what = format!("HTTP/{version} {path} as {accepted:?}");
                assert_eq!(answer.0, plain.0, "{what}");
                assert!(own == text, "{what}: {} bytes, not {}", own.len(), text.len());
                assert!(encoding.as_deref().is_none_or(|own| allowed.contains(&own)), "{what}: {encoding:?}");
                if path == "/v1/query" && !allowed.is_empty() {
                    assert!(encoding.is_some(), "{what}: as large as it is");
                }
            }
        }
    }
    is_well(&served).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_that_are_compressed_are_refused() {
    let (_dir, served) = Served::example().await;
    let questions = body_of("/v1/query").unwrap();
    let asked = async |encoding: &str, body: Vec<u8>| {
        served.whole("POST", "/v1/query", &[("content-encoding", encoding)], body.into()).await
    };
    let (status, _, body) = asked("identity", questions.clone().into_bytes()).await;
    assert_eq!((status.as_u16(), body.iter().filter(|&&byte| byte == b'\n').count()), (200, QUESTIONS));
    let packed = zstd::encode_all(questions.as_bytes(), 1).unwrap();
    for encoding in ["zstd", "gzip", "br", "x-nothing"] {
        let (status, headers, body) = asked(encoding, packed.clone()).await;
        assert_eq!((status.as_u16(), &headers["accept-encoding"]), (415, &HeaderValue::from_static("identity")));
        let error: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert!(error["error"]["message"].as_str().unwrap().contains(encoding), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_that_leave_harm_nobody() {
    let (_dir, served) = Served::example().await;
    let channel = Channel::from_shared(format!("http://{}", served.server.address())).unwrap().connect().await.unwrap();
    for (_, path) in CALLS {
        for (accepted, _) in ACCEPTED {
            // Before the answer, and in its middle.
            for read in [0, 300] {
                let mut stream = TcpStream::connect(served.server.address()).await.unwrap();
                let request = text_of(&served, path, accepted);
                // A part of the questions is enough for some answers.
                stream.write_all(&request.as_bytes()[..request.len().min(100_000)]).await.unwrap();
                let mut room = vec![0; read];
                let _ = stream.read_exact(&mut room).await;
            }
            drop(sent(&channel, path, accepted).await);
            let other = tokio::time::timeout(Duration::from_millis(2), sent(&channel, path, accepted)).await;
            drop(other);
        }
    }
    is_well(&served).await;
    let whole = over_http2(&channel, "/v1/query", Some("gzip")).await;
    assert_eq!(decoded(&whole).0, decoded(&over_http1(&served, "/v1/query", Some("zstd")).await).0);
}
