//! HTTP for people and scripts: the questions of the service `Links`, with URLs instead of UIDs, and answers in JSON.
//!
//! ```text
//! GET /v1/links?url=... --> [question] UID --> [answer: walk] UIDs that match --> clerk --> [answer] --> JSON
//! ```
//!
//! Map: `question` reads parameters, finds URLs, and says where a page of an answer begins and where callers reach the
//! server. `answer` lists the matching URLs and collects as many values as fit. `links`, `changed`, `first`, `around`
//! (backlinks, deaths, neighbourhood, ways), `barcode`, `suggest`, `names` and `about` are the questions. `query`
//! answers many questions in one stream. `archive` answers the requests of tools for web archives. `caching` says how
//! long answers may be kept, and [`options`] has the choices of an operator. `http/openapi.json` describes all paths,
//! and the server serves the description. `/` is the `crate::explorer` for browsers.
//!
//! Callers that accept gzip or zstd get compressed answers. Every answer names its epoch. [`crate::protocol::refusal`]
//! defines errors. The server keeps no state between calls.

use axum::Router;
use axum::extract::{Path, Request, State};
use axum::http::header::{ACCEPT, CONTENT_TYPE, VARY};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, any, get, post};
use serde_json::{Value, json};
use tonic::Status;
use tower_http::compression::CompressionLayer;

use crate::clerk::Pinned;
use crate::explorer;
use crate::guard::methods::{Method, Methods, Pool};
use crate::protocol::refusal;
use crate::protocol::status::{Reason, refuse};
use crate::shared::Shared;
use question::resume;

mod about;
mod answer;
mod archive;
mod around;
mod barcode;
mod caching;
mod changed;
mod first;
mod links;
mod names;
pub mod options;
mod query;
mod question;
mod suggest;

pub use barcode::svg::picture_of;

/// The list of paths for people.
const PAGE: &str = include_str!("http/page.txt");
/// The list of paths for programs.
const OPENAPI: &str = include_str!("http/openapi.json");
/// A path and its handler.
struct Route {
    path: &'static str,
    /// The path as callers write it, without its variable part.
    called: &'static str,
    method: Method,
    /// Whether the answer depends only on the question and the epoch.
    is_of_epoch: bool,
    handler: fn() -> MethodRouter<Shared>,
}

impl Route {
    const fn of(path: &'static str, name: &'static str, handler: fn() -> MethodRouter<Shared>) -> Self {
        Self { path, called: path, method: Method::of(name, Pool::Links), is_of_epoch: true, handler }
    }

    /// A path with answers that change within an epoch.
    const fn changing(path: &'static str, name: &'static str, handler: fn() -> MethodRouter<Shared>) -> Self {
        Self { is_of_epoch: false, ..Self::of(path, name, handler) }
    }

    /// A path that ends with the URL of a page.
    const fn before_url(
        path: &'static str,
        called: &'static str,
        name: &'static str,
        handler: fn() -> MethodRouter<Shared>,
    ) -> Self {
        let mut route = Self::of(path, name, handler);
        route.called = called;
        route.method.is_prefix = true;
        route
    }

    /// A path with constant text, which needs no token.
    const fn open(path: &'static str, handler: fn() -> MethodRouter<Shared>) -> Self {
        Self { path, called: path, method: Method::open("v1"), is_of_epoch: false, handler }
    }

    /// The same, that ends with the path of a file.
    const fn open_below(path: &'static str, called: &'static str, handler: fn() -> MethodRouter<Shared>) -> Self {
        let mut route = Self::open(path, handler);
        route.called = called;
        route.method.is_prefix = true;
        route
    }
}

const ROUTES: [Route; 29] = [
    Route::of("/v1/links", "v1/links", || get(links::links)),
    Route::of("/v1/captures", "v1/captures", || get(names::captures)),
    Route::of("/v1/lifespans", "v1/lifespans", || get(links::lifespans)),
    Route::of("/v1/changed", "v1/changed", || get(changed::changed)),
    Route::of("/v1/first", "v1/first", || get(first::first)),
    Route::of("/v1/backlinks", "v1/backlinks", || get(around::backlinks::backlinks)),
    Route::of("/v1/barcode", "v1/barcode", || get(barcode::barcode)),
    Route::of("/v1/barcode.svg", "v1/barcode.svg", || get(barcode::svg::svg)),
    Route::of("/v1/neighbourhood", "v1/neighbourhood", || get(around::neighbourhood::neighbourhood)),
    Route::of("/v1/ways", "v1/ways", || get(around::ways::ways)),
    Route::of("/v1/deaths", "v1/deaths", || get(around::deaths::deaths)),
    Route::of("/v1/suggest", "v1/suggest", || get(suggest::suggest)),
    Route::of("/v1/urls", "v1/urls", || get(names::urls)),
    Route::of("/v1/uids", "v1/uids", || get(names::uids)),
    Route { called: "/v1/uids/", ..Route::of("/v1/uids/{uid}", "v1/uids", || get(names::uid)) },
    Route::of("/v1/translate", "v1/translate", || get(names::translate)),
    Route::changing("/v1/stats", "v1/stats", || get(about::stats)),
    Route::changing("/v1/overview", "v1/overview", || get(about::overview::overview)),
    Route::changing("/v1/topology", "v1/topology", || get(about::topology)),
    Route::changing("/v1/epochs", "v1/epochs", || get(about::epochs)),
    Route::changing("/v1/query", "v1/query", || post(query::query)),
    Route::of("/cdx", "cdx", || get(archive::cdx::cdx)),
    Route::before_url("/timemap/link/{*url}", "/timemap/link/", "timemap", || get(archive::memento::link)),
    Route::before_url("/timemap/json/{*url}", "/timemap/json/", "timemap", || get(archive::memento::json)),
    Route::before_url("/timegate/{*url}", "/timegate/", "timegate", || get(archive::memento::gate)),
    Route::open("/v1/openapi.json", || get(openapi)),
    Route::open("/v1", || get(page)),
    Route::open_below("/explorer/{*file}", "/explorer/", || get(explorer_file)),
    Route::open("/", || get(root)),
];

/// All HTTP paths except health and metrics.
pub fn routes(shared: Shared) -> Router {
    let mut router = Router::new();
    for route in &ROUTES {
        let mut handler = (route.handler)().fallback(wrong_method);
        if route.is_of_epoch {
            handler = handler.layer(from_fn_with_state(shared.clone(), caching::cached));
        } else if !route.method.open {
            handler = handler.layer(from_fn_with_state(shared.clone(), caching::changing));
        }
        router = router.route(route.path, handler);
    }
    router.route("/v1/{*rest}", any(nothing_there)).layer(CompressionLayer::new()).with_state(shared)
}

/// Adds the methods of [`routes`].
#[must_use]
pub fn methods(methods: Methods) -> Methods {
    ROUTES.iter().fold(methods, |methods, route| methods.with(route.called, route.method))
}

/// A refused call.
struct Refused(Status);

impl From<Status> for Refused {
    fn from(status: Status) -> Self {
        Self(status)
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        refusal::answer(self.0, false)
    }
}

async fn page() -> Response {
    ([(CONTENT_TYPE, "text/plain; charset=utf-8")], PAGE).into_response()
}

/// `/`: the explorer for browsers, the list of paths for all others.
async fn root(State(shared): State<Shared>, headers: HeaderMap) -> Response {
    let mut response = match explorer::page(&headers, &shared.http.frames) {
        Some(found) => found,
        None => page().await,
    };
    response.headers_mut().insert(VARY, ACCEPT.into());
    response
}

/// `/explorer/{*file}`.
async fn explorer_file(Path(name): Path<String>, uri: Uri, headers: HeaderMap) -> Result<Response, Refused> {
    match explorer::file(&name, &headers) {
        Some(found) => Ok(found),
        None => Err(nothing_there(uri).await),
    }
}

/// The description, with the address of this server. Without it, programs take the paths as paths of the whole host.
async fn openapi(State(shared): State<Shared>, uri: Uri, headers: HeaderMap) -> Result<Response, Refused> {
    let servers = json!([{"url": question::home::home(&shared, &uri, &headers)?}]);
    let text = OPENAPI.replacen('{', &format!("{{\n  \"servers\": {servers},"), 1);
    let fields = [(CONTENT_TYPE, HeaderValue::from_static("application/json")), (VARY, question::home::VARIES)];
    Ok((fields, text).into_response())
}

async fn nothing_there(uri: Uri) -> Refused {
    Refused(refuse(Reason::NoSuchPath, format!("no such path: {}; see /v1", uri.path()), &[]))
}

async fn wrong_method(request: Request) -> Response {
    let message = format!("{} is not allowed at {}; see /v1", request.method(), request.uri().path());
    let mut response = Refused(refuse(Reason::WrongMethod, message, &[])).into_response();
    *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
    response
}

/// Pins the epoch to ask (0: the current epoch).
async fn pinned(shared: &Shared, epoch: u64) -> Result<Pinned, Status> {
    shared.pinned(epoch).await
}

/// Adds the key of the next page to an answer.
fn resume_key(shown: &mut Value, start: &resume::Start, pinned: &Pinned, next_page: Option<resume::PagePosition>) {
    if let Some(position) = next_page {
        shown["resumeKey"] = json!(start.key(pinned.epoch(), position));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    fn document() -> Value {
        serde_json::from_str(OPENAPI).expect("JSON")
    }

    /// The parameters that each path reads.
    fn parameters() -> BTreeMap<&'static str, &'static [&'static str]> {
        let uid: &[&str] = &["uid", "epoch"];
        BTreeMap::from([
            ("/v1/links", links::LINKS),
            ("/v1/captures", names::CAPTURES),
            ("/v1/lifespans", links::LIFESPANS),
            ("/v1/changed", changed::CHANGED),
            ("/v1/first", first::FIRST),
            ("/v1/backlinks", around::backlinks::BACKLINKS),
            ("/v1/deaths", around::deaths::DEATHS),
            ("/v1/barcode", barcode::BARCODE),
            ("/v1/barcode.svg", barcode::svg::BARCODE_SVG),
            ("/v1/neighbourhood", around::neighbourhood::NEIGHBOURHOOD),
            ("/v1/ways", around::ways::WAYS),
            ("/v1/suggest", suggest::SUGGEST),
            ("/v1/urls", names::URLS),
            ("/v1/uids", names::UIDS),
            ("/v1/uids/{uid}", uid),
            ("/v1/translate", names::TRANSLATE),
            ("/v1/stats", about::STATS),
            ("/v1/overview", about::overview::OVERVIEW),
            ("/v1/topology", about::TOPOLOGY),
            ("/v1/epochs", about::EPOCHS),
            ("/v1/query", query::QUERY),
            ("/cdx", archive::cdx::parameters::CDX),
            ("/timemap/link/{url}", &["url"]),
            ("/timemap/json/{url}", &["url"]),
            ("/timegate/{url}", &["url", "Accept-Datetime"]),
            ("/v1/openapi.json", &[]),
            ("/v1", &[]),
            ("/explorer/{file}", &["file"]),
            ("/", &[]),
        ])
    }

    #[test]
    fn the_description_has_every_route_and_parameter() {
        let document = document();
        let of_document: BTreeSet<&str> = document["paths"].as_object().unwrap().keys().map(String::as_str).collect();
        let of_routes: BTreeSet<String> = ROUTES.iter().map(|route| route.path.replace("{*", "{")).collect();
        assert_eq!(of_document, of_routes.iter().map(String::as_str).collect());
        assert_eq!(of_document, parameters().into_keys().collect());
        for (path, own) in parameters() {
            let operations = document["paths"][path].as_object().unwrap();
            let [operation] = operations.values().collect::<Vec<_>>()[..] else { panic!("{path}: one method") };
            let given = operation["parameters"].as_array().map_or(&[][..], Vec::as_slice);
            let name = |given: &Value| match given["$ref"].as_str() {
                Some(place) => document.pointer(&place[1..]).unwrap()["name"].as_str().unwrap().to_owned(),
                None => given["name"].as_str().unwrap().to_owned(),
            };
            let of_document: BTreeSet<String> = given.iter().map(name).collect();
            assert_eq!(of_document, own.iter().map(|own| (*own).to_owned()).collect(), "{path}");
            assert_eq!(of_document.len(), given.len(), "{path}");
        }
    }

    #[test]
    fn the_description_refers_to_what_it_has_and_knows_every_reason() {
        fn references<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
            match value {
                Value::Object(fields) => {
                    found.extend(fields.get("$ref").and_then(Value::as_str));
                    fields.values().for_each(|value| references(value, found));
                }
                Value::Array(items) => items.iter().for_each(|value| references(value, found)),
                _ => {}
            }
        }
        let document = document();
        let mut found = Vec::new();
        references(&document, &mut found);
        assert!(found.len() > 100);
        for place in found {
            assert!(document.pointer(&place[1..]).is_some(), "{place}");
        }
        let reasons: Vec<&str> = Reason::ALL.iter().map(|reason| reason.name()).collect();
        assert_eq!(document["components"]["schemas"]["Reason"]["enum"], json!(reasons));
    }

    #[test]
    fn the_page_names_what_is_here() {
        for route in
            ROUTES.iter().filter(|route| !["/", "/v1", "/v1/uids/{uid}", "/explorer/{*file}"].contains(&route.path))
        {
            assert!(PAGE.contains(route.path.trim_end_matches("{*url}")), "{}", route.path);
        }
    }

    #[test]
    fn every_route_is_a_method() {
        let methods = methods(Methods::default());
        for route in &ROUTES {
            let path = route.path.replace("{uid}", "17").replace("{*file}", "a/b.js").replace("{*url}", "http://a/b");
            let method = methods.of(&path);
            assert_eq!(method, route.method, "{path}");
            assert_eq!(
                method.open,
                ["/", "/v1", "/v1/openapi.json", "/explorer/{*file}"].contains(&route.path),
                "{path}"
            );
        }
        assert_eq!(methods.of("/v2").name, "other");
        assert_eq!(methods.of("/webstrata.v1.Links/GetLinks").name, "Links/GetLinks");
    }
}
