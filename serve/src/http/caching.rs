//! Answers that callers may keep: an answer depends on the epoch, the question and the version of the program alone.
//!
//! An answer of an epoch that the question names never changes; it is kept for a day and not for ever, because what is
//! taken out of a store must not be answered from caches for ever. An answer of the current epoch is kept for a minute;
//! after that the caller asks with its tag, and the server looks only at the epoch. Random samples have no tag.

use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, CACHE_CONTROL, ETAG, IF_NONE_MATCH, VARY};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use xxhash_rust::xxh3::xxh3_64;

use super::question::home::home;
use crate::server::Shared;

/// How long an answer is kept, in seconds: of the current epoch, and of an epoch that the question names.
const AGES: [u32; 2] = [60, 86_400];

/// Answers 304 to a caller who has the answer; else adds a tag and an age to it.
pub(super) async fn cached(State(shared): State<Shared>, request: Request, next: Next) -> Response {
    let query = request.uri().query().unwrap_or_default();
    let value = |name: &str| query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
    if value("random").is_some_and(|random| random != "false") {
        return next.run(request).await;
    }
    let map = shared.clerk.map();
    let named = value("epoch").and_then(|epoch| epoch.parse().ok());
    let epoch = named.unwrap_or(map.current);
    let tag = tag(&shared, epoch, &request);
    let is_fixed = named.is_some() || value("resumeKey").is_some();
    let is_known = matches(request.headers(), &tag) && map.epochs.contains_key(&epoch);
    drop(map);
    let mut response = match is_known {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => next.run(request).await,
    };
    if !response.status().is_success() && !is_known {
        return response;
    }
    let who = if shared.http.is_private { "private, " } else { "" };
    let [current, fixed] = AGES;
    let age = if is_fixed { format!("{who}max-age={fixed}, immutable") } else { format!("{who}max-age={current}") };
    let fields = response.headers_mut();
    fields.extend([(CACHE_CONTROL, HeaderValue::try_from(age)), (ETAG, HeaderValue::try_from(tag))].map(
        // Digits and words are always valid in a header.
        |(name, value)| (name, value.unwrap_or(HeaderValue::from_static(""))),
    ));
    if shared.http.is_private {
        fields.append(VARY, AUTHORIZATION.into());
    }
    response
}

/// The tag of the answer to a question. It is weak: compressed answers have the same tag.
fn tag(shared: &Shared, epoch: u64, request: &Request) -> String {
    let home = home(shared, request.uri(), request.headers()).unwrap_or_default();
    let path = request.uri().path_and_query().map(|path| path.as_str()).unwrap_or_default();
    let parts =
        [shared.cluster.store().as_bytes(), env!("CARGO_PKG_VERSION").as_bytes(), home.as_bytes(), path.as_bytes()];
    format!("W/\"{epoch}-{:016x}\"", xxh3_64(&parts.join(&b'\n')))
}

/// Whether a caller has the answer with a tag.
fn matches(headers: &HeaderMap, tag: &str) -> bool {
    let known = headers.get_all(IF_NONE_MATCH).into_iter().filter_map(|value| value.to_str().ok());
    known.flat_map(|value| value.split(',')).any(|known| known.trim() == tag)
}
