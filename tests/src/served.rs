//! A server of a store, asked over HTTP without a network.
//!
//! Reads a store directory, and keeps the data of the server beside the store. Answers are JSON. Answers that come in
//! parts are put together.

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

/// A server and its router. See the head of this file.
pub struct Served {
    /// The routes that answer questions.
    pub router: Router,
    /// The server that the router belongs to.
    pub server: Server,
}

impl Served {
    /// Starts a server whose answers have at most `answer_bytes` bytes.
    ///
    /// # Panics
    /// This method and the methods below panic if the server does not start, or refuses a call.
    pub async fn start(store: &Path, answer_bytes: usize) -> Self {
        Self::start_with(store, answer_bytes, |_| {}).await
    }

    /// Like [`Served::start`], with other options. The router has no guards; the port of the server has.
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

    /// Starts a server of the example in the description of the format: two captures of one page, and one capture of
    /// another page whose links are unknown.
    pub async fn example() -> (TempDir, Self) {
        Self::example_with(|_| {}).await
    }

    /// Like [`Served::example`], with other options.
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

    /// Sends a request to the port and returns the answer, after which the connection is closed.
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

    /// The status and the body of an answer.
    pub async fn call(&self, method: &str, path: &str, body: Body) -> (StatusCode, Bytes) {
        let (status, _, body) = self.whole(method, path, &[], body).await;
        (status, body)
    }

    /// The status, the headers and the body of an answer to a request with these headers.
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

    /// The JSON of a successful answer.
    pub async fn get(&self, path: &str) -> Value {
        let (status, body) = self.call("GET", path, Body::empty()).await;
        let body: Value = serde_json::from_slice(&body).expect("JSON");
        assert_eq!(status, StatusCode::OK, "{path}: {body}");
        body
    }

    /// The status, the reason and the message of a refusal.
    pub async fn refused(&self, path: &str) -> (u16, String, String) {
        let (status, body) = self.call("GET", path, Body::empty()).await;
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        let text = |name: &str| body["error"][name].as_str().unwrap_or_default().to_owned();
        (status.as_u16(), text("reason"), text("message"))
    }

    /// The values of a field from an answer and all answers that continue it, and the number of answers.
    pub async fn all(&self, path: &str, field: &str) -> (Vec<Value>, usize) {
        let (mut values, mut answers, mut key) = (Vec::new(), 0, String::new());
        loop {
            let mut answer = self.get(&format!("{path}{key}")).await;
            answers += 1;
            let Value::Array(own) = answer[field].take() else { panic!("{path}: no {field} in {answer}") };
            values.extend(own);
            match answer["resume_key"].as_str() {
                Some(next) => key = format!("&resume_key={next}"),
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

/// Encodes a text as the value of a parameter.
pub fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// A window as parameters of a URL, and as fields of a question line.
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
                text.push_str(&format!("&max_age={age}s"));
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
