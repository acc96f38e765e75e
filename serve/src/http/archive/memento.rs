//! `/timemap/link/URL`, `/timemap/json/URL`: the captures of a page as a TimeMap. `/timegate/URL`: redirects to the
//! capture nearest to `Accept-Datetime` ([`crate::memento`]; RFC 7089).
//!
//! The URL of the page is the rest of the path and the query, without decoding. The URLs of mementos are URLs of the
//! archive that replays them. Cost: the captures of all spellings of the page.

use std::borrow::Cow;
use std::convert::Infallible;
use std::ops::Range;

use axum::body::Body;
use axum::extract::State;
use axum::http::header::{CONTENT_TYPE, LINK, LOCATION, VARY};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri};
use axum::response::{AppendHeaders, IntoResponse, Response};
use futures_util::stream;
use tonic::Status;
use webstrata_layers::CaptureTime;

use crate::clerk::Pinned;
use crate::http::describe::{Answer, Call, text_call};
use crate::http::question::address::{meant, spellings_of};
use crate::http::question::home::{VARIES, home};
use crate::http::question::parameter::{Parameter, text};
use crate::http::question::params::decoded;
use crate::http::{Refused, pinned};
use crate::memento::{Format, Memento, TimeMap, time_of_http_date};
use crate::protocol::status::{Reason, bad, refuse};
use crate::shared::Shared;

const PAGE: Parameter = text("url", "The URL of the page, with its query, as it is. Any spelling of the page will do.")
    .in_path()
    .example(&["http://a.example/"]);
const DATE: Parameter = text("Accept-Datetime", "The date; without it, the last capture is meant.")
    .in_header()
    .example(&["Thu, 01 Jun 2006 00:00:00 GMT"]);
pub(in crate::http) const LINK_FORMAT: Call = text_call(
    "timemapLink",
    "The captures of a page as a Memento TimeMap (RFC 7089).",
    &[PAGE],
    &["application/link-format"],
);
pub(in crate::http) const JSON: Call = text_call(
    "timemapJson",
    "The captures of a page as a TimeMap in the JSON of MemGator.",
    &[PAGE],
    &["application/json"],
);
pub(in crate::http) const GATE: Call = Call {
    id: "timegate",
    summary: "Redirects to the capture of a page that is nearest to a date (RFC 7089).",
    about: Some("Link names the page, its TimeMap, and its first and last capture."),
    parameters: &[PAGE, DATE],
    answer: Answer::Elsewhere,
};

const ACCEPT_DATETIME: HeaderName = HeaderName::from_static("accept-datetime");

/// The mementos in one part of the text of a TimeMap.
const PART: usize = 512;
/// Bytes of memory for a capture of a page.
const CAPTURE: usize = 64;

/// `/timemap/link/URL`.
pub(in crate::http) async fn link(shared: State<Shared>, uri: Uri, headers: HeaderMap) -> Result<Response, Refused> {
    let page = Page::of(&shared, &uri, &headers, "/timemap/link/").await?;
    let fields = [(CONTENT_TYPE, HeaderValue::from_static("application/link-format")), (VARY, VARIES)];
    Ok((fields, page.body(Format::Link)).into_response())
}

/// `/timemap/json/URL`.
pub(in crate::http) async fn json(shared: State<Shared>, uri: Uri, headers: HeaderMap) -> Result<Response, Refused> {
    let page = Page::of(&shared, &uri, &headers, "/timemap/json/").await?;
    let fields = [(CONTENT_TYPE, HeaderValue::from_static("application/json")), (VARY, VARIES)];
    Ok((fields, page.body(Format::Json)).into_response())
}

/// `/timegate/URL`.
pub(in crate::http) async fn gate(shared: State<Shared>, uri: Uri, headers: HeaderMap) -> Result<Response, Refused> {
    let date = headers.get(ACCEPT_DATETIME).map(|value| value.to_str().ok().and_then(time_of_http_date));
    let Some(time) = date.unwrap_or(Some(i64::MAX)) else {
        let message = "Accept-Datetime: not a date (expected as Tue, 20 Jun 2000 18:02:59 GMT)";
        return Err(bad(message).into());
    };
    let page = Page::of(&shared, &uri, &headers, "/timegate/").await?;
    let chosen = |timemap: TimeMap<'_>| timemap.nearest(time).map(|it| (timemap.memento(it), timemap.links_of(it)));
    let chosen = page.timemap(0..page.captures.len(), chosen);
    let field = |text: String| {
        HeaderValue::try_from(text).map_err(|_| bad("url: it has characters that a redirect cannot have"))
    };
    let (memento, links) = chosen.unwrap_or_default();
    let fields = [
        (LOCATION, field(memento)?),
        (LINK, field(links)?),
        (VARY, HeaderValue::from(ACCEPT_DATETIME)),
        (VARY, VARIES),
    ];
    Ok((StatusCode::FOUND, AppendHeaders(fields)).into_response())
}

/// A page that was captured, and what its TimeMap names.
struct Page {
    original: String,
    /// The captures, in order of time, each with the place of its URL.
    captures: Vec<(CaptureTime, usize)>,
    urls: Vec<String>,
    replay: String,
    timegate: String,
    timemap: String,
    /// Keeps the memory of the call charged.
    _pinned: Pinned,
}

impl Page {
    /// The page that a path names after `prefix`.
    ///
    /// # Errors
    /// BAD_REQUEST for text that is not a URL; NOT_IN_STORE, also for pages without captures.
    async fn of(shared: &Shared, uri: &Uri, headers: &HeaderMap, prefix: &str) -> Result<Self, Status> {
        let text = uri.path_and_query().and_then(|path| path.as_str().strip_prefix(prefix)).unwrap_or_default();
        let original = meant(&of_path(text))?.swap_remove(0);
        let home = home(shared, uri, headers)?;
        let pinned = pinned(shared, 0).await?;
        let spellings = spellings_of(&pinned, &original).await?;
        let (captures, urls) = tokio::try_join!(pinned.captures_of_page(&spellings), pinned.urls(&spellings))?;
        if captures.is_empty() {
            let message = format!("{original} was never captured; other pages link to it");
            return Err(refuse(Reason::NotInStore, message, &[("epoch", pinned.epoch())]));
        }
        pinned.charge().settle(captures.len() * CAPTURE).await?;
        let replay = shared.http.replay.clone();
        let (timegate, timemap) = (format!("{home}/timegate/"), format!("{home}/timemap/"));
        Ok(Self { original, captures, urls, replay, timegate, timemap, _pinned: pinned })
    }

    fn memento(&self, (capture, spelling): &(CaptureTime, usize)) -> Memento<'_> {
        (capture.time, self.urls[*spelling].as_str())
    }

    /// Calls `show` with the TimeMap of some of the captures.
    fn timemap<T>(&self, range: Range<usize>, show: impl FnOnce(TimeMap<'_>) -> T) -> T {
        let mementos: Vec<Memento<'_>> = self.captures[range].iter().map(|capture| self.memento(capture)).collect();
        show(TimeMap {
            original: &self.original,
            mementos: &mementos,
            replay: &self.replay,
            timegate: &self.timegate,
            timemap: &self.timemap,
        })
    }

    /// The text of the TimeMap from a capture on.
    fn part(&self, format: Format, first: usize) -> String {
        let (len, end) = (self.captures.len(), self.captures.len().min(first + PART));
        let ends = self.captures.first().zip(self.captures.last());
        let ends = ends.map(|(first, last)| [first, last].map(|capture| self.memento(capture)));
        self.timemap(first..end, |timemap| timemap.part(format, ends, [first == 0, end == len]))
    }

    /// The text of the TimeMap, made while it is sent.
    fn body(self, format: Format) -> Body {
        if self.captures.len() <= PART {
            return self.part(format, 0).into();
        }
        let parts =
            (0..self.captures.len()).step_by(PART).map(move |first| Ok::<_, Infallible>(self.part(format, first)));
        Body::from_stream(stream::iter(parts))
    }
}

/// The URL at the end of a path: verbatim, or completely percent-encoded, or with one slash if a proxy merged two.
fn of_path(text: &str) -> Cow<'_, str> {
    let begins = |start: &str| text.get(..start.len()).is_some_and(|own| own.eq_ignore_ascii_case(start));
    if begins("http%3A") || begins("https%3A") {
        return decoded(&text.replace('+', "%2B")).map_or(Cow::Borrowed(text), Cow::Owned);
    }
    match text.split_once(":/") {
        Some((scheme, rest)) if (begins("http:") || begins("https:")) && !rest.starts_with('/') => {
            Cow::Owned(format!("{scheme}://{rest}"))
        }
        _ => Cow::Borrowed(text),
    }
}
