//! Decides for all answers whether callers may keep them, and for how long.
//!
//! An answer depends on the epoch, the question, the options of the server and the version of the program. Its tag is
//! made from these. A caller that asks again with the tag gets 304 while the epoch is answered.
//!
//! No answer is kept for long without asking again, even if the question names its epoch: anything in a store may be
//! taken out at any moment, and caches must not answer with it then. An answer is kept for a minute. If anything was
//! ever taken out, callers ask again each time. An answer that depends on the clock (`at=now`) has no tag, and callers
//! ask again each time. The same holds for answers that change within an epoch. Random samples and refusals are not
//! kept.

use std::cell::Cell;
use std::future::Future;

use axum::extract::{Request, State};
use axum::http::header::{ACCEPT_ENCODING, AUTHORIZATION, CACHE_CONTROL, ETAG, IF_NONE_MATCH, VARY};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use xxhash_rust::xxh3::xxh3_64;

use super::question::home::{VARIES, home};
use crate::shared::Shared;

/// How long an answer may be kept if nothing was ever taken out, in seconds.
const AGE: u32 = 60;

tokio::task_local! {
    /// Whether the current question read the clock.
    static OF_CLOCK: Cell<bool>;
}

/// Records that the current answer depends on the clock.
pub(super) fn of_clock() {
    // Outside a path with cached answers there is nothing to record.
    let _ = OF_CLOCK.try_with(|is_of_clock| is_of_clock.set(true));
}

/// Runs a question. Also returns whether it read the clock.
async fn watched(question: impl Future<Output = Response>) -> (Response, bool) {
    let question = async {
        let response = question.await;
        (response, OF_CLOCK.with(Cell::get))
    };
    OF_CLOCK.scope(Cell::new(false), question).await
}

/// Answers 304 to a caller that has the answer, and sets how long an answer may be kept.
pub(super) async fn cached(State(shared): State<Shared>, request: Request, next: Next) -> Response {
    let query = request.uri().query().unwrap_or_default();
    let value = |name: &str| query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
    if value("random").is_some_and(|random| random != "false") {
        return finished(&shared, next.run(request).await, "no-store", None);
    }
    let map = shared.clerk.map();
    let epoch = value("epoch").and_then(|epoch| epoch.parse().ok()).unwrap_or(map.current);
    let tag = tag(&shared, epoch, &request);
    let (is_known, has_any) = matches(request.headers(), &tag);
    let is_known = is_known && map.epochs.contains_key(&epoch);
    drop(map);
    let (mut response, is_of_clock) = match is_known {
        true => (StatusCode::NOT_MODIFIED.into_response(), false),
        false => watched(next.run(request)).await,
    };
    let is_answer = is_known || response.status().is_success();
    if !is_answer {
        let is_refusal = response.status().is_client_error() || response.status().is_server_error();
        return finished(&shared, response, if is_refusal { "no-store" } else { "no-cache" }, None);
    }
    if is_of_clock {
        return finished(&shared, response, "no-cache", None);
    }
    if has_any && !is_known {
        // The caller has some answer, and only asks whether one exists.
        response = StatusCode::NOT_MODIFIED.into_response();
    }
    let age = if shared.cluster.has_removals() { "no-cache".to_owned() } else { format!("max-age={AGE}") };
    finished(&shared, response, &age, Some(tag))
}

/// Marks an answer as changing within an epoch.
pub(super) async fn changing(State(shared): State<Shared>, request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    let age = if response.status().is_success() { "no-cache" } else { "no-store" };
    finished(&shared, response, age, None)
}

/// Adds how long an answer may be kept, its tag, and the request fields that it depends on; the same for 304 and the
/// answer.
fn finished(shared: &Shared, mut response: Response, age: &str, tag: Option<String>) -> Response {
    let is_not_modified = response.status() == StatusCode::NOT_MODIFIED;
    let who = if shared.http.is_private { "private, " } else { "" };
    let fields = response.headers_mut();
    let value = |text: String| HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static("no-store"));
    fields.insert(CACHE_CONTROL, value(format!("{who}{age}")));
    if let Some(tag) = tag {
        fields.insert(ETAG, value(tag));
    }
    if is_not_modified {
        // For answers with a body, compression and paths with absolute URLs add these fields.
        fields.append(VARY, ACCEPT_ENCODING.into());
        fields.append(VARY, VARIES);
    }
    if shared.http.is_private {
        fields.append(VARY, AUTHORIZATION.into());
    }
    response
}

/// The tag of the answer to a question. It is weak: compressed answers have the same tag.
fn tag(shared: &Shared, epoch: u64, request: &Request) -> String {
    let home = home(shared, request.uri(), request.headers()).unwrap_or_default();
    let path = request.uri().path_and_query().map(|path| path.as_str()).unwrap_or_default();
    let of_epoch = shared.cluster.epoch_store(epoch).map(|store| store.id().to_string()).unwrap_or_default();
    let (version, replay) = (env!("CARGO_PKG_VERSION"), &shared.http.replay);
    let parts = [of_epoch.as_str(), version, replay.as_str(), home.as_str(), path].map(str::as_bytes);
    format!("W/\"{epoch}-{:016x}\"", xxh3_64(&parts.join(&b'\n')))
}

/// Whether a caller has the answer with a tag, and whether it asks for any answer (`*`). The comparison of tags is
/// weak.
fn matches(headers: &HeaderMap, tag: &str) -> (bool, bool) {
    let bare = |tag: &str| tag.trim().strip_prefix("W/").unwrap_or(tag.trim()).to_owned();
    let known = headers.get_all(IF_NONE_MATCH).into_iter().filter_map(|value| value.to_str().ok());
    let known: Vec<String> = known.flat_map(|value| value.split(',')).map(bare).collect();
    (known.contains(&bare(tag)), known.iter().any(|known| known == "*"))
}
