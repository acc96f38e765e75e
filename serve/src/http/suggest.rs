//! `/v1/suggest`: the suggestions of a search field for a URL, a host, or a part of one.
//!
//! Pages come from ranges of keys: the URLs that begin with the text, or the URLs of the host or the domain that it
//! names and then of hosts whose names contain it. Captured pages come first. Each page has the number of its captures
//! and the number of pages that link to it. Without a text, the answer has the pages with the most captures, and the
//! hosts with the most URLs.
//!
//! Cost: a search in the names of the hosts of all cells, a few look-ups of keys, and the captures and in-links of the
//! pages in the answer. At most [`LOOK`] URLs are checked for captures.

use std::ops::Range;

use axum::extract::{RawQuery, State};
use axum::response::Response;
use tonic::Status;
use webstrata_layers::answers::Time;
use webstrata_layers::answers::names::{Suggested, SuggestedHost, SuggestedPage};
use webstrata_layers::record::key;
use webstrata_layers::{CaptureTime, Direction, Precision, Uid, Window};

use super::answer::text::told;
use super::describe::{Call, call};
use super::question::parameter::{Parameter, number, text};
use super::question::parameters::EPOCH;
use super::question::params::Params;
use super::{Refused, pinned};
use crate::clerk::Pinned;
use crate::shared::Shared;

const Q: Parameter =
    text("q", "The text; without it, the pages with the most captures and the hosts with the most URLs.")
        .example(&["a.exa"]);
const LIMIT: Parameter =
    number("limit", "The most pages, and the most hosts, in the answer. 0: as many as one answer may have.", 0, 100)
        .default(9)
        .example(&["5"]);
pub(super) const SUGGEST: Call = call::<Suggested>(
    "suggest",
    "URLs and hosts to offer for a URL, a host, or a part of one; captured pages first.",
    &[Q, LIMIT, EPOCH],
);

/// The largest number of URLs that are checked for captures.
const LOOK: u64 = 1 << 14;

/// `/v1/suggest`.
pub(super) async fn suggest(State(shared): State<Shared>, RawQuery(query): RawQuery) -> Result<Response, Refused> {
    let params = Params::of(query.as_deref(), SUGGEST.parameters)?;
    let limit = params.limit()?;
    // An empty text is a valid question here; other parameters refuse it.
    let text = params.all("q").next().unwrap_or_default().trim();
    let pinned = pinned(&shared, params.epoch()?).await?;
    let hosts = pinned.hosts(host_part(text), u32::try_from(limit).unwrap_or(u32::MAX)).await?;
    let pages =
        if text.is_empty() { pinned.busiest(limit).await? } else { pages(&pinned, text, &hosts, limit).await? };
    let uids: Vec<Uid> = pages.iter().map(|(uid, _)| *uid).collect();
    let urls = pinned.urls(&uids).await?;
    let in_links = pinned.degrees(&uids, Direction::In(Precision::Exact), Window::ALWAYS).await?;
    let page = |(((_, captures), url), inlinks): ((&(Uid, Vec<CaptureTime>), String), u64)| SuggestedPage {
        url,
        captures: captures.len(),
        inlinks,
        first: captures.first().map(|capture| Time(capture.time)),
        last: captures.last().map(|capture| Time(capture.time)),
    };
    told(
        &pinned,
        Suggested {
            epoch: pinned.epoch(),
            pages: pages.iter().zip(urls).zip(in_links).map(page).collect(),
            hosts: hosts.into_iter().map(|(host, urls)| SuggestedHost { host, urls }).collect(),
        },
    )
    .await
}

/// The part of a text that may be part of a host name.
fn host_part(text: &str) -> &str {
    let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().unwrap_or_default()
}

/// The pages to offer for a text, with their captures; captured pages first.
async fn pages(
    pinned: &Pinned,
    text: &str,
    hosts: &[(String, u64)],
    limit: usize,
) -> Result<Vec<(Uid, Vec<CaptureTime>)>, Status> {
    let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
    let host = host_part(text).to_lowercase();
    let mut prefixes = Vec::new();
    if rest.len() > host.len() {
        prefixes.push(webstrata_url::meant(text).ok().map(|urls| key::url_prefix(&urls[0])));
    } else {
        prefixes.extend([key::host_prefix(&host), key::domain_prefix(&host)]);
        prefixes.extend(hosts.iter().map(|(host, _)| key::host_prefix(host)));
    }
    let (mut captured, mut others): (Vec<Uid>, Vec<Uid>) = (Vec::new(), Vec::new());
    let mut left = LOOK;
    for prefix in prefixes.into_iter().flatten() {
        for uids in pinned.with_prefix(&prefix).await? {
            let room = limit.saturating_sub(others.len()) as u64;
            for uid in Uid::each(uids.start..uids.end.min(uids.start + room)) {
                if !others.contains(&uid) {
                    others.push(uid);
                }
            }
            look(pinned, uids, limit, &mut left, &mut captured).await?;
        }
        if captured.len() >= limit || left == 0 {
            break;
        }
    }
    others.retain(|uid| !captured.contains(uid));
    captured.extend(others);
    captured.truncate(limit);
    let captures = pinned.captures(&captured).await?;
    Ok(captured.into_iter().zip(captures.iter().map(<[CaptureTime]>::to_vec)).collect())
}

/// Adds the first captured pages of an interval, in growing steps.
async fn look(
    pinned: &Pinned,
    mut uids: Range<Uid>,
    limit: usize,
    left: &mut u64,
    captured: &mut Vec<Uid>,
) -> Result<(), Status> {
    let mut step = 64;
    while uids.start < uids.end && *left > 0 && captured.len() < limit {
        let end = uids.end.min(uids.start + step.min(*left));
        let (found, _) = pinned.captured(uids.start..end, (i64::MIN, i64::MAX)).await?;
        for uid in found {
            if captured.len() < limit && !captured.contains(&uid) {
                captured.push(uid);
            }
        }
        *left -= (end.0 - uids.start.0).min(*left);
        uids.start = end;
        step *= 4;
    }
    Ok(())
}
