//! `/cdx`: captures as a CDX server lists them, for clients of CDX servers.
//!
//! ```text
//! parameters --> source: captures of a page, or of URLs that match --> filter, collapse --> order, limit --> shape
//! ```
//!
//! Map: `parameters` reads parameters and has the table of the parameters that clients send. `source` returns the
//! captures, forwards or from the end. `selection` filters and collapses, and `nearest` keeps the lines nearest to a
//! time. `listing` counts lines and makes resume keys. `shape` writes the output formats, and `field` has the fields of
//! a line.
//!
//! Captures of a page are in order of time; captures of several pages are in order of UIDs, then of time. An answer has
//! the lines that `limit` and `listing` allow, and is sent while it is made. A resume key is the position of the last
//! line, and collapsing continues from that line. A page of `page` is a slice of the matching UIDs ([`BLOCK`]); some
//! pages have no captures.

use std::mem::size_of;

use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use futures_util::stream::{once, try_unfold};
use futures_util::{StreamExt, future};
use serde_json::json;
use tonic::Status;

use crate::http::{Refused, pinned};
use crate::protocol::status::{Reason, bad, refuse};
use crate::shared::Shared;
use listing::Listing;
use parameters::{Asked, Dialect};
use source::Reach;

pub(in crate::http) use parameters::CDX;

mod field;
mod listing;
mod nearest;
pub(in crate::http) mod parameters;
mod selection;
mod shape;
mod source;

/// The number of URLs in a block; `pageSize` blocks are a page. A block of a ZipNum index has the same number of lines.
const BLOCK: u64 = 3000;

/// `/cdx`.
pub(in crate::http) async fn cdx(State(shared): State<Shared>, RawQuery(query): RawQuery) -> Result<Response, Refused> {
    let asked = Asked::of(shared.cluster.store(), query.as_deref())?;
    let pinned = pinned(&shared, asked.start.epoch).await?;
    let bytes = shared.bounds.values.saturating_mul(size_of::<u64>());
    let mut uid_intervals = asked.reach.uid_intervals(&pinned, &asked.url).await?;
    let urls = match asked.reach {
        Reach::Page => u64::from(!uid_intervals.is_empty()),
        _ => uid_intervals.iter().map(|uids| uids.end.0 - uids.start.0).sum(),
    };
    let blocks = urls.div_ceil(BLOCK);
    let pages = blocks.div_ceil(asked.page_size);
    if asked.shows_pages {
        let text = match asked.dialect {
            Dialect::Wayback => format!("{pages}\n"),
            Dialect::Pywb => format!("{}\n", json!({"pages": pages, "pageSize": asked.page_size, "blocks": blocks})),
        };
        return Ok(([(CONTENT_TYPE, "application/json")], text).into_response());
    }
    if let Some(page) = asked.page {
        if page >= pages.max(1) {
            return Err(bad(format!("page: {page} is not one of {} pages (the first is 0)", pages.max(1))).into());
        }
        if asked.reach != Reach::Page {
            let size = BLOCK.saturating_mul(asked.page_size);
            uid_intervals = source::slice(uid_intervals, page.saturating_mul(size), size);
        }
    }
    let (content_type, is_never_empty, url) =
        (asked.shape.content_type(), asked.shape.is_never_empty(), asked.url.clone());
    let epoch = pinned.epoch();
    let mut listing = Listing::of(asked, pinned, uid_intervals, &shared.http.replay, bytes).await?;
    // An error before the first line is returned as such; a later failure cuts the answer short.
    let Some(first) = listing.next().await? else {
        if is_never_empty {
            // The same answer as pywb, because its clients take an answer without lines as a failure.
            let message = format!("no captures found for: {url}");
            return Err(refuse(Reason::NotInStore, message, &[("epoch", epoch)]).into());
        }
        return Ok(([(CONTENT_TYPE, content_type)], "").into_response());
    };
    let rest =
        try_unfold(
            listing,
            |mut listing| async move { Ok::<_, Status>(listing.next().await?.map(|text| (text, listing))) },
        );
    let body = Body::from_stream(once(future::ready(Ok(first))).chain(rest));
    Ok(([(CONTENT_TYPE, content_type)], body).into_response())
}
