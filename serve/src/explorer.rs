//! The explorer: the page for browsers, and its files, which are part of the program.
//!
//! Server and page share only the paths below `/v1`. The page works without any other server, and its content security
//! policy allows only this server. No address in the page begins with a slash, so that the page works below a path of a
//! proxy. Its files are plain HTML, CSS and JavaScript modules, in `explorer/`. `views` says which view an address
//! opens: `search`, `barcode`, `dates`, `backlinks`, `neighbourhood`, `deaths` or `store`. `ahead` runs first and
//! requests the code of the view, and the answers that `asks` lists for it. `main` opens the view, and the other
//! modules serve the views.

use std::sync::LazyLock;

use axum::http::header::{
    ACCEPT, ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG,
    IF_NONE_MATCH, REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use xxhash_rust::xxh3::xxh3_64;

/// The sources from which the page and its files may load. The sources that may show them in a frame are appended.
const POLICY: &str = "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors ";

/// A file of the page.
struct File {
    name: &'static str,
    content_type: &'static str,
    bytes: &'static [u8],
    /// The file compressed once, by zstd: a page loads 30 files at a time.
    packed: LazyLock<Option<Vec<u8>>>,
}

macro_rules! files {
    ($($name:literal: $content_type:literal),* $(,)?) => {
        /// The page, then its files.
        static FILES: [File; [$($name),*].len()] = [$(File {
            name: $name,
            content_type: $content_type,
            bytes: include_bytes!(concat!("explorer/", $name)),
            packed: LazyLock::new(|| zstd::bulk::compress(include_bytes!(concat!("explorer/", $name)), 19).ok()),
        }),*];
    };
}

files! {
    "index.html": "text/html; charset=utf-8",
    "explorer.css": "text/css; charset=utf-8",
    "views.css": "text/css; charset=utf-8",
    "windows.css": "text/css; charset=utf-8",
    "mark.svg": "image/svg+xml",
    "address.js": "text/javascript; charset=utf-8",
    "ahead.js": "text/javascript; charset=utf-8",
    "asks.js": "text/javascript; charset=utf-8",
    "backlinks.js": "text/javascript; charset=utf-8",
    "barcode.js": "text/javascript; charset=utf-8",
    "bench.js": "text/javascript; charset=utf-8",
    "beside.js": "text/javascript; charset=utf-8",
    "between.js": "text/javascript; charset=utf-8",
    "captures.js": "text/javascript; charset=utf-8",
    "data.js": "text/javascript; charset=utf-8",
    "dates.js": "text/javascript; charset=utf-8",
    "deaths.js": "text/javascript; charset=utf-8",
    "dom.js": "text/javascript; charset=utf-8",
    "drawing.js": "text/javascript; charset=utf-8",
    "flags.js": "text/javascript; charset=utf-8",
    "flows.js": "text/javascript; charset=utf-8",
    "hosts.js": "text/javascript; charset=utf-8",
    "key.js": "text/javascript; charset=utf-8",
    "main.js": "text/javascript; charset=utf-8",
    "names.js": "text/javascript; charset=utf-8",
    "neighbourhood.js": "text/javascript; charset=utf-8",
    "order.js": "text/javascript; charset=utf-8",
    "referrers.js": "text/javascript; charset=utf-8",
    "rings.js": "text/javascript; charset=utf-8",
    "save.js": "text/javascript; charset=utf-8",
    "scene.js": "text/javascript; charset=utf-8",
    "search.js": "text/javascript; charset=utf-8",
    "series.js": "text/javascript; charset=utf-8",
    "source.js": "text/javascript; charset=utf-8",
    "store.js": "text/javascript; charset=utf-8",
    "surroundings.js": "text/javascript; charset=utf-8",
    "table.js": "text/javascript; charset=utf-8",
    "targets.js": "text/javascript; charset=utf-8",
    "time.js": "text/javascript; charset=utf-8",
    "told.js": "text/javascript; charset=utf-8",
    "views.js": "text/javascript; charset=utf-8",
    "ways.js": "text/javascript; charset=utf-8",
    "years.js": "text/javascript; charset=utf-8",
}

/// The page, if the caller is a browser, which means that it accepts HTML. `frames` are the sources of the pages that
/// may show the page in a frame, as content security policies name them.
pub(crate) fn page(headers: &HeaderMap, frames: &str) -> Option<Response> {
    text(headers, ACCEPT).contains("text/html").then(|| answer(&FILES[0], headers, frames))
}

/// A file of the page, by its name; `None` if the file does not exist.
pub(crate) fn file(name: &str, headers: &HeaderMap) -> Option<Response> {
    FILES[1..].iter().find(|file| file.name == name).map(|file| answer(file, headers, "'none'"))
}

/// The file, or 304 if the caller has it. Callers ask again each time, because another version of the program has other
/// files under the same names.
fn answer(file: &'static File, headers: &HeaderMap, frames: &str) -> Response {
    let tag = format!("\"{:016x}\"", xxh3_64(file.bytes));
    let fields = [
        (CONTENT_TYPE, file.content_type.to_owned()),
        (CONTENT_SECURITY_POLICY, format!("{POLICY}{frames}")),
        (X_CONTENT_TYPE_OPTIONS, "nosniff".to_owned()),
        (REFERRER_POLICY, "no-referrer".to_owned()),
        (CACHE_CONTROL, "no-cache".to_owned()),
        (ETAG, tag.clone()),
    ];
    if text(headers, IF_NONE_MATCH).contains(&tag) {
        return (StatusCode::NOT_MODIFIED, fields).into_response();
    }
    let takes_zstd = text(headers, ACCEPT_ENCODING).split(',').any(|coding| coding.trim() == "zstd");
    if let (true, Some(packed)) = (takes_zstd, file.packed.as_deref()) {
        return (fields, [(CONTENT_ENCODING, "zstd"), (VARY, "accept-encoding")], packed).into_response();
    }
    (fields, file.bytes).into_response()
}

fn text(headers: &HeaderMap, name: HeaderName) -> &str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_address_is_of_the_whole_host() {
        for file in &FILES {
            let text = std::str::from_utf8(file.bytes).expect("text");
            for absolute in ["\"/v1", "'/v1", "`/v1", "\"/explorer", "href=\"/", "src=\"/", "url(/", "location.origin"]
            {
                let found = text.lines().find(|line| line.contains(absolute) && !line.contains(".replace("));
                assert_eq!(found, None, "{}", file.name);
            }
        }
        assert!(FILES[0].bytes.windows(19).any(|part| part == b"src=\"explorer/main."));
    }
}
