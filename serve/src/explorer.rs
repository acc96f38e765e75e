//! The explorer: the page for browsers, and its files, which are part of the program.
//!
//! Server and page share only the paths below `/v1`. The page works without any other server, and its content security
//! policy allows only this server. No address in the page begins with a slash, so that the page works below a path of a
//! proxy. Its files are plain HTML, CSS and JavaScript modules, in `explorer/`, and are served as they are. Types are
//! comments, which `tsc` checks together with `.d.ts` files; `serve/package.json` has the commands.
//!
//! | folder or file | what it has | may import |
//! |---|---|---|
//! | `text` | how times, dates, names, numbers and lines of files are written and read | |
//! | `data` | calls to the server, and what its answers say; no elements | `text` |
//! | `drawing` | canvases, SVG, axes and bars | `text` |
//! | `parts` | elements that several views have: the toolbar, tables, fields, keys; saved files | those above |
//! | `page` | the address, the header, and which view an address opens | those above |
//! | `views` | one view a file, with its state, drawing and panels in a folder of its name | those above |
//! | `ahead.js` | runs first: requests the code of the view, and the answers that `page/asks.js` lists for it | all |
//! | `main.js` | opens the view | all |
//!
//! A state is a value with named fields, and functions take it. `index.html` preloads all modules of the page and of
//! its first view, the barcode.

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
    /// The path below `explorer/`.
    name: &'static str,
    bytes: &'static [u8],
    /// The file compressed once, by zstd: a page loads 50 files at a time.
    packed: LazyLock<Option<Vec<u8>>>,
}

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        /// The page, then its files.
        static FILES: [File; [$($name),*].len()] = [$(File {
            name: $name,
            bytes: include_bytes!(concat!("explorer/", $name)),
            packed: LazyLock::new(|| zstd::bulk::compress(include_bytes!(concat!("explorer/", $name)), 19).ok()),
        }),*];
    };
}

files! {
    "index.html",
    "ahead.js",
    "explorer.css",
    "main.js",
    "mark.svg",
    "views.css",
    "windows.css",
    "data/barcode.js",
    "data/beside.js",
    "data/call.js",
    "data/captures.js",
    "data/flags.js",
    "data/months.js",
    "data/order.js",
    "data/places.js",
    "data/referrers.js",
    "data/series.js",
    "data/surroundings.js",
    "data/targets.js",
    "drawing/axis.js",
    "drawing/bars.js",
    "drawing/canvas.js",
    "drawing/framed.js",
    "drawing/raster.js",
    "drawing/svg.js",
    "drawing/years.js",
    "page/address.js",
    "page/asks.js",
    "page/failed.js",
    "page/field.js",
    "page/strip.js",
    "page/theme.js",
    "page/views.js",
    "parts/area.js",
    "parts/between.js",
    "parts/dom.js",
    "parts/head.js",
    "parts/key.js",
    "parts/rows.js",
    "parts/save.js",
    "parts/source.js",
    "parts/table.js",
    "parts/tools.js",
    "text/cut.js",
    "text/dates.js",
    "text/lines.js",
    "text/names.js",
    "text/numbers.js",
    "text/time.js",
    "views/backlinks.js",
    "views/backlinks/bench.js",
    "views/backlinks/chart.js",
    "views/backlinks/hands.js",
    "views/backlinks/hosts.js",
    "views/backlinks/moves.js",
    "views/backlinks/panel.js",
    "views/backlinks/places.js",
    "views/backlinks/rows.js",
    "views/backlinks/scales.js",
    "views/backlinks/state.js",
    "views/backlinks/told.js",
    "views/barcode.js",
    "views/barcode/draw.js",
    "views/barcode/hands.js",
    "views/barcode/legend.js",
    "views/barcode/moves.js",
    "views/barcode/over.js",
    "views/barcode/panel.js",
    "views/barcode/readout.js",
    "views/barcode/scene.js",
    "views/barcode/state.js",
    "views/dates.js",
    "views/dates/calendar.js",
    "views/dates/lists.js",
    "views/dates/moves.js",
    "views/dates/panel.js",
    "views/dates/state.js",
    "views/deaths.js",
    "views/deaths/pages.js",
    "views/deaths/panel.js",
    "views/deaths/picture.js",
    "views/deaths/state.js",
    "views/neighbourhood.js",
    "views/neighbourhood/hands.js",
    "views/neighbourhood/moves.js",
    "views/neighbourhood/names.js",
    "views/neighbourhood/panel.js",
    "views/neighbourhood/rings.js",
    "views/neighbourhood/sectors.js",
    "views/neighbourhood/state.js",
    "views/neighbourhood/timeline.js",
    "views/neighbourhood/ways.js",
    "views/search.js",
    "views/store.js",
    "views/store/epochs.js",
    "views/store/hosts.js",
    "views/store/lives.js",
    "views/store/panel.js",
    "views/store/plates.js",
    "views/store/totals.js",
}

impl File {
    fn content_type(&self) -> &'static str {
        match self.name.rsplit('.').next() {
            Some("html") => "text/html; charset=utf-8",
            Some("css") => "text/css; charset=utf-8",
            Some("svg") => "image/svg+xml",
            _ => "text/javascript; charset=utf-8",
        }
    }
}

/// The page, if the caller is a browser, which means that it accepts HTML. `frames` are the sources of the pages that
/// may show the page in a frame, as content security policies name them.
pub(crate) fn page(headers: &HeaderMap, frames: &str) -> Option<Response> {
    text(headers, ACCEPT).contains("text/html").then(|| answer(&FILES[0], headers, frames))
}

/// A file of the page, by its path below `explorer/`; `None` if the file does not exist.
pub(crate) fn file(name: &str, headers: &HeaderMap) -> Option<Response> {
    FILES[1..].iter().find(|file| file.name == name).map(|file| answer(file, headers, "'none'"))
}

/// The file, or 304 if the caller has it. Callers ask again each time, because another version of the program has other
/// files under the same names.
fn answer(file: &'static File, headers: &HeaderMap, frames: &str) -> Response {
    let tag = format!("\"{:016x}\"", xxh3_64(file.bytes));
    let fields = [
        (CONTENT_TYPE, file.content_type().to_owned()),
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
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

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

    #[test]
    fn every_file_is_served() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/explorer");
        let (mut found, mut open) = (BTreeSet::new(), vec![root.clone()]);
        while let Some(dir) = open.pop() {
            for entry in fs::read_dir(dir).expect("a folder") {
                let path = entry.expect("a file").path();
                if path.is_dir() {
                    open.push(path);
                } else if !path.to_string_lossy().ends_with(".d.ts") {
                    found.insert(path.strip_prefix(&root).expect("inside").to_string_lossy().into_owned());
                }
            }
        }
        let served: BTreeSet<String> = FILES.iter().map(|file| file.name.to_owned()).collect();
        assert_eq!(served, found);
    }
}
