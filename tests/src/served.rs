//! A server of a store, asked over HTTP without a network.
//!
//! Reads a store directory; keeps what the server keeps beside it. Answers are JSON, and those that come in parts are
//! put together.

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::http::{HeaderMap, Request, StatusCode};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;
use tower::ServiceExt;
use webstrata_layers::{RangeLength, format_time, parse_time};
use webstrata_serve::cluster::ClusterOptions;
use webstrata_serve::guard::limits::Limits;
use webstrata_serve::http;
use webstrata_serve::server::{Server, ServerOptions};

use crate::oracle::{Ending, When};
use crate::rows::{Rows, Said};

/// See the head of this file.
pub struct Served {
    /// What answers.
    pub router: Router,
    /// What it belongs to.
    pub server: Server,
}

impl Served {
    /// With answers of so many bytes.
    ///
    /// # Panics
    /// Here and below: where the server does not start, or refuses.
    pub async fn start(store: &Path, answer_bytes: usize) -> Self {
        Self::start_with(store, answer_bytes, |_| {}).await
    }

    /// With other options. The router here has no guards; the port of the server does.
    pub async fn start_with(store: &Path, answer_bytes: usize, change: impl FnOnce(&mut ServerOptions)) -> Self {
        let limits = Limits { answer_bytes, batch: 100, ..Limits::default() };
        let millis = Duration::from_millis;
        let mut options = ServerOptions {
            limits,
            linger: Duration::ZERO,
            patience: Duration::from_secs(1),
            ..ServerOptions::new(ClusterOptions {
                replicas: 1,
                settle: millis(50),
                gossip: millis(50),
                ..ClusterOptions::new(store.with_file_name(format!("data-{answer_bytes}")))
            })
        };
        change(&mut options);
        let address = "127.0.0.1:0".parse().expect("an address");
        let server = Server::start(store.into(), address, options).await.expect("a server");
        server.ready().await;
        Self { router: http::routes(server.shared().clone()), server }
    }

    /// A server of the example of the format's description: two captures of one page, and one of another whose links
    /// are unknown.
    pub async fn example() -> (TempDir, Self) {
        Self::example_with(|_| {}).await
    }

    /// The same with other options.
    pub async fn example_with(change: impl FnOnce(&mut ServerOptions)) -> (TempDir, Self) {
        let dir = tempfile::tempdir().expect("a directory");
        let store = dir.path().join("store");
        let [a, b, x] = ["http://a.example/", "http://b.example/", "http://b.example/x"].map(str::to_owned);
        let time = |text| parse_time(text, false).expect("a time");
        let row = BTreeMap::from([
            ((a.clone(), time("20060501")), Said::Links(BTreeSet::from([a.clone(), b]))),
            ((a.clone(), time("20060601")), Said::Links(BTreeSet::from([a]))),
            ((x, time("20060601")), Said::Unknown),
        ]);
        Rows { rows: vec![row], bare: vec![BTreeSet::new()] }.write(&store, 1, RangeLength::Month);
        let served = Self::start_with(&store, 1 << 24, change).await;
        (dir, served)
    }

    /// The answer of the port to a request, after which the connection is closed.
    pub async fn port(&self, request: String) -> String {
        let address = self.server.address();
        let answered = tokio::task::spawn_blocking(move || {
            let mut stream = TcpStream::connect(address)?;
            stream.write_all(request.as_bytes())?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer).map(|_| answer)
        });
        answered.await.expect("a thread").expect("an answer")
    }

    /// Status and body.
    pub async fn call(&self, method: &str, path: &str, body: Body) -> (StatusCode, Bytes) {
        let (status, _, body) = self.whole(method, path, &[], body).await;
        (status, body)
    }

    /// Status, headers and body, given headers.
    pub async fn whole(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Body,
    ) -> (StatusCode, HeaderMap, Bytes) {
        let mut request = Request::builder().method(method).uri(path).header("host", "localhost:7400");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let Ok(response) = self.router.clone().oneshot(request.body(body).expect("a request")).await;
        let (parts, body) = response.into_parts();
        (parts.status, parts.headers, to_bytes(body, 1 << 24).await.expect("a body"))
    }

    /// An answer.
    pub async fn get(&self, path: &str) -> Value {
        let (status, body) = self.call("GET", path, Body::empty()).await;
        let body: Value = serde_json::from_slice(&body).expect("JSON");
        assert_eq!(status, StatusCode::OK, "{path}: {body}");
        body
    }

    /// Status, reason and message.
    pub async fn refused(&self, path: &str) -> (u16, String, String) {
        let (status, body) = self.call("GET", path, Body::empty()).await;
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        let text = |name: &str| body["error"][name].as_str().unwrap_or_default().to_owned();
        (status.as_u16(), text("reason"), text("message"))
    }

    /// The field of an answer and of all those that follow it, and how many there were.
    pub async fn all(&self, path: &str, field: &str) -> (Vec<Value>, usize) {
        let (mut values, mut answers, mut key) = (Vec::new(), 0, String::new());
        loop {
            let mut answer = self.get(&format!("{path}{key}")).await;
            answers += 1;
            let Value::Array(own) = answer[field].take() else { panic!("{path}: no {field} in {answer}") };
            values.extend(own);
            match answer["resumeKey"].as_str() {
                Some(next) => key = format!("&resumeKey={next}"),
                None => return (values, answers),
            }
        }
    }

    /// The answers to question lines.
    pub async fn query(&self, questions: impl Into<Body>) -> Vec<Value> {
        let (status, body) = self.call("POST", "/v1/query", questions.into()).await;
        assert_eq!(status, StatusCode::OK);
        let body = String::from_utf8(body.to_vec()).expect("UTF-8");
        body.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }
}

/// A text for a parameter.
pub fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// A window as parameters, and as fields of a question.
pub fn parameters(when: When) -> (String, Value) {
    let (mut text, mut fields) = (String::new(), json!({}));
    let mut add = |name: &str, time: i64| {
        text.push_str(&format!("&{name}={}", format_time(time)));
        fields[name] = json!(format_time(time));
    };
    match when {
        When::Seen(from, to) => {
            Some(from).filter(|&from| from > i64::MIN).into_iter().for_each(|from| add("from", from));
            Some(to).filter(|&to| to < i64::MAX).into_iter().for_each(|to| add("to", to));
        }
        When::AsOf(at) => add("at", at),
        When::AsOfBy(at, age, ending) => {
            add("at", at);
            if age < i64::MAX {
                text.push_str(&format!("&maxAge={age}s"));
                fields["max_age"] = json!(format!("{age}s"));
            }
            let rule = match ending {
                Ending::Gone => None,
                Ending::None => Some("ignore"),
                Ending::Each => Some("all"),
            };
            if let Some(rule) = rule {
                text.push_str(&format!("&failures={rule}"));
                fields["failures"] = json!(rule);
            }
        }
    }
    (text, fields)
}

/// Whether the capture that answers has unknown links.
pub fn is_unknown(oracle: &crate::oracle::Oracle, url: &str, when: When) -> bool {
    let (at, age, ending) = match when {
        When::Seen(..) => return false,
        When::AsOf(at) => (at, i64::MAX, Ending::Gone),
        When::AsOfBy(at, age, ending) => (at, age, ending),
    };
    let captures: Vec<_> = oracle.captures(url).into_iter().zip(oracle.statuses(url)).collect();
    let latest = captures.iter().rfind(|((time, _), status)| *time <= at && ending.counts(*status));
    latest.is_some_and(|((time, known), _)| at.saturating_sub(*time) <= age && !known)
}
