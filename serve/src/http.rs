//! HTTP for people and scripts: the questions of the service `Links`, with URLs instead of UIDs, and answers in JSON.
//!
//! ```text
//! GET /v1/links?url=... --> [question] UID --> [answer: walk] UIDs that match --> clerk --> [answer] --> JSON
//! ```
//!
//! Map: `question` reads parameters, finds URLs, and says where a page of an answer begins and where callers reach the
//! server. `answer` lists the matching URLs and collects as many values as fit. `links` (with `changed`, `dead` and
//! `first`), `around` (backlinks, deaths, neighbourhood, ways), `barcode`, `suggest`, `names` and `about` are the
//! questions. `query` answers many questions in one stream. `archive` answers the requests of tools for web archives.
//! `caching` says how long answers may be kept, and [`options`] has the choices of an operator. `describe` makes the
//! description of all paths, which the server serves. `/` is the `crate::explorer` for browsers.
//!
//! Callers that accept gzip or zstd get compressed answers. Every answer names its epoch. [`crate::protocol::refusal`]
//! defines errors. The server keeps no state between calls.

use axum::extract::{Path, Request, State};
use axum::http::header::{ACCEPT, CONTENT_TYPE, VARY};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, any, get, post};
use axum::{Json, Router};
use serde::Serialize;
use serde_json::{Map, Value, json};
use tonic::Status;
use tower_http::compression::CompressionLayer;

use self::about::overview;
use self::archive::{cdx, memento};
use self::around::{backlinks, deaths, neighbourhood, ways};
use self::describe::{Call, text_call};
use self::links::{changed, dead, first};
use self::question::parameter::{Parameter, text};
use crate::clerk::Pinned;
use crate::explorer;
use crate::guard::methods::{Method, Methods, Pool};
use crate::guard::panics::guarded;
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
mod describe;
mod links;
mod names;
pub mod options;
mod query;
mod question;
mod suggest;

pub use barcode::svg::picture_of;

/// The list of paths for people.
const PAGE: &str = include_str!("http/page.txt");

/// A path and its handler.
struct Route {
    path: &'static str,
    /// The path as callers write it, without its variable part.
    called: &'static str,
    method: Method,
    /// Whether the answer depends only on the question and the epoch.
    is_of_epoch: bool,
    call: &'static Call,
    handler: fn() -> MethodRouter<Shared>,
}

impl Route {
    const fn of(
        path: &'static str,
        name: &'static str,
        call: &'static Call,
        handler: fn() -> MethodRouter<Shared>,
    ) -> Self {
        Self { path, called: path, method: Method::of(name, Pool::Links), is_of_epoch: true, call, handler }
    }

    /// A path with constant text, which needs no token.
    const fn open(path: &'static str, call: &'static Call, handler: fn() -> MethodRouter<Shared>) -> Self {
        Self { path, called: path, method: Method::open("v1"), is_of_epoch: false, call, handler }
    }

    /// The answers change within an epoch.
    const fn changing(self) -> Self {
        Self { is_of_epoch: false, ..self }
    }

    /// The path ends with the URL of a page or the path of a file, after `called`.
    const fn before(self, called: &'static str) -> Self {
        Self { called, method: Method { is_prefix: true, ..self.method }, ..self }
    }
}

const ROUTES: &[Route] = &[
    Route::of("/v1/links", "v1/links", &links::LINKS, || get(links::links)),
    Route::of("/v1/captures", "v1/captures", &names::CAPTURES, || get(names::captures)),
    Route::of("/v1/lifespans", "v1/lifespans", &links::LIFESPANS, || get(links::lifespans)),
    Route::of("/v1/changed", "v1/changed", &changed::CHANGED, || get(changed::changed)),
    Route::of("/v1/dead_links", "v1/dead_links", &dead::DEAD_LINKS, || get(dead::dead_links)),
    Route::of("/v1/first", "v1/first", &first::FIRST, || get(first::first)),
    Route::of("/v1/backlinks", "v1/backlinks", &backlinks::BACKLINKS, || get(backlinks::backlinks)),
    Route::of("/v1/barcode", "v1/barcode", &barcode::BARCODE, || get(barcode::barcode)),
    Route::of("/v1/barcode.svg", "v1/barcode.svg", &barcode::svg::PICTURE, || get(barcode::svg::svg)),
    Route::of("/v1/neighbourhood", "v1/neighbourhood", &neighbourhood::NEIGHBOURHOOD, || {
        get(neighbourhood::neighbourhood)
    }),
    Route::of("/v1/ways", "v1/ways", &ways::WAYS, || get(ways::ways)),
    Route::of("/v1/deaths", "v1/deaths", &deaths::DEATHS, || get(deaths::deaths)),
    Route::of("/v1/suggest", "v1/suggest", &suggest::SUGGEST, || get(suggest::suggest)),
    Route::of("/v1/urls", "v1/urls", &names::URLS, || get(names::urls)),
    Route::of("/v1/uids", "v1/uids", &names::UIDS, || get(names::uids)),
    Route { called: "/v1/uids/", ..Route::of("/v1/uids/{uid}", "v1/uids", &names::URL_OF_UID, || get(names::uid)) },
    Route::of("/v1/translate", "v1/translate", &names::TRANSLATE, || get(names::translate)),
    Route::of("/v1/stats", "v1/stats", &about::STATS, || get(about::stats)).changing(),
    Route::of("/v1/overview", "v1/overview", &overview::OVERVIEW, || get(overview::overview)).changing(),
    Route::of("/v1/topology", "v1/topology", &about::TOPOLOGY, || get(about::topology)).changing(),
    Route::of("/v1/epochs", "v1/epochs", &about::EPOCHS, || get(about::epochs)).changing(),
    Route::of("/v1/query", "v1/query", &query::QUERY, || post(query::query)).changing(),
    Route::of("/cdx", "cdx", &cdx::CDX, || get(cdx::cdx)),
    Route::of("/timemap/link/{*url}", "timemap", &memento::LINK_FORMAT, || get(memento::link)).before("/timemap/link/"),
    Route::of("/timemap/json/{*url}", "timemap", &memento::JSON, || get(memento::json)).before("/timemap/json/"),
    Route::of("/timegate/{*url}", "timegate", &memento::GATE, || get(memento::gate)).before("/timegate/"),
    Route::open("/v1/openapi.json", &HERE_FOR_PROGRAMS, || get(openapi)),
    Route::open("/v1", &HERE, || get(page)),
    Route::open("/explorer/{*file}", &FILE, || get(explorer_file)).before("/explorer/"),
    Route::open("/", &ROOT, || get(root)),
];

const HERE_FOR_PROGRAMS: Call = text_call("openapi", "This description.", &[], &["application/json"]);
const HERE: Call = text_call("help", "The list of paths, for people.", &[], &["text/plain"]);
const FILE_PATH: Parameter =
    text("file", "The path of the file, which may have slashes.").in_path().example(&["main.js"]);
const FILE: Call = text_call(
    "explorerFile",
    "A file of the explorer, the page for browsers.",
    &[FILE_PATH],
    &["text/javascript", "text/css"],
);
const ROOT: Call = text_call(
    "helpAtRoot",
    "The explorer for callers that accept text/html, and the list of paths for others.",
    &[],
    &["text/plain", "text/html"],
);

/// All HTTP paths except health and metrics.
pub fn routes(shared: Shared) -> Router {
    let mut router = Router::new();
    for route in ROUTES {
        let mut handler = (route.handler)().fallback(wrong_method);
        if route.is_of_epoch {
            handler = handler.layer(from_fn_with_state(shared.clone(), caching::cached));
        } else if !route.method.open {
            handler = handler.layer(from_fn_with_state(shared.clone(), caching::changing));
        }
        router = router.route(route.path, handler);
    }
    let router = router.route("/v1/{*rest}", any(nothing_there));
    // Encoders poll answers after their end.
    router.layer(from_fn(guarded)).layer(CompressionLayer::new()).with_state(shared)
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
    #[derive(Serialize)]
    struct Described {
        servers: Value,
        #[serde(flatten)]
        document: &'static Map<String, Value>,
    }
    let servers = json!([{"url": question::home::home(&shared, &uri, &headers)?}]);
    let described = Described { servers, document: &describe::DOCUMENT };
    Ok(([(VARY, question::home::VARIES)], Json(described)).into_response())
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

/// The key of the next page of an answer.
fn resume_key(start: &resume::Start, pinned: &Pinned, next_page: Option<resume::PagePosition>) -> Option<String> {
    next_page.map(|position| start.key(pinned.epoch(), position))
}

#[cfg(test)]
mod tests {
    use super::*;
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
        for route in ROUTES {
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
