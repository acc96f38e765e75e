//! `/v1/urls`: URLs that match a URL. `/v1/captures`: the times of their captures. `/v1/uids`: UIDs of URLs;
//! `/v1/uids/{uid}`: the URL of a UID. `/v1/translate`: UIDs of one epoch in another epoch.

use axum::Json;
use axum::extract::{Path, RawQuery, State};
use serde_json::{Value as Shown, json};
use tonic::Status;
use webstrata_layers::{Batch, CaptureTime, Match, Uid, format_time};

use super::answer::walk::Walk;
use super::answer::{Answer, Value};
use super::question::address::{find, look_up, spellings_of};
use super::question::matching::{Matching, matched};
use super::question::params::{Params, number};
use super::question::resume::{PagePosition, Start};
use super::{Refused, pinned, resume_key};
use crate::clerk::Pinned;
use crate::protocol::status::{bad, fits_in_parts};
use crate::shared::Shared;

pub(super) const CAPTURES: &[&str] = &["url", "from", "to", "limit", "resumeKey", "epoch", "matchType"];
pub(super) const URLS: &[&str] = &["url", "from", "to", "limit", "resumeKey", "epoch", "matchType"];
pub(super) const UIDS: &[&str] = &["url", "epoch"];
pub(super) const UID: &[&str] = &["epoch"];
pub(super) const TRANSLATE: &[&str] = &["uid", "from", "to"];

impl Value for CaptureTime {
    type Shown = Self;

    fn uid(self) -> Option<Uid> {
        None
    }

    fn show(self, _: &str) -> Self {
        self
    }
}

impl Value for () {
    type Shown = ();

    fn uid(self) -> Option<Uid> {
        None
    }

    fn show(self, _: &str) {}
}

/// `/v1/captures`.
pub(super) async fn captures(State(shared): State<Shared>, RawQuery(query): RawQuery) -> Result<Json<Shown>, Refused> {
    let params = Params::of(query.as_deref(), CAPTURES, &[])?;
    let start = Start::of(shared.cluster.store(), "/v1/captures", &params)?;
    let (from, to) = params.interval()?.unwrap_or((i64::MIN, i64::MAX));
    let matched = matched(&params, "matchType", Match::Exact)?;
    let url = params.required("url")?;
    let mut answer = Answer::of(&shared, &params, &start)?;
    let pinned = pinned(&shared, start.epoch).await?;
    let mut shown = json!({"epoch": pinned.epoch()});
    if matched == Match::Surt {
        let (captures, next) = captures_of_spellings(&pinned, url, (from, to), &start, &answer).await?;
        shown["captures"] = captures;
        resume_key(&mut shown, &start, &pinned, next);
        return Ok(Json(shown));
    }
    let uid_intervals = if matched == Match::Exact {
        let (url, uid) = find(&pinned, url).await?;
        (shown["url"], shown["uid"]) = (json!(url), json!(uid));
        std::iter::once(uid..uid + 1).collect()
    } else {
        Matching::of(&pinned, matched, ("url", url)).await?.uids
    };
    let mut walk = Walk::new(pinned.clone(), uid_intervals, Some((from, to)), start.first_uid());
    captures_of(&pinned, &mut walk, (from, to), &mut answer).await?;
    let lines = answer.items.into_iter().flat_map(|item| {
        let line = move |capture| line_of(&item.url, capture);
        item.values.into_iter().map(line)
    });
    shown["captures"] = lines.collect();
    resume_key(&mut shown, &start, &pinned, answer.next_page);
    Ok(Json(shown))
}

fn line_of(url: &str, CaptureTime { time, known, status }: CaptureTime) -> Shown {
    json!({"url": url, "timestamp": format_time(time), "status": status.code(), "known": known})
}

/// The captures of one page in a closed interval, in order of time, as many as fit into the answer, and the position
/// where they continue.
async fn captures_of_spellings(
    pinned: &Pinned,
    url: &str,
    (from, to): (i64, i64),
    start: &Start,
    answer: &Answer<CaptureTime>,
) -> Result<(Shown, Option<PagePosition>), Status> {
    let spellings = spellings_of(pinned, url).await?;
    let (captures, urls) = tokio::try_join!(pinned.captures_of_page(&spellings), pinned.urls(&spellings))?;
    let first = captures.partition_point(|(capture, _)| capture.time < from);
    let end = captures.partition_point(|(capture, _)| capture.time <= to).max(first);
    let captures = &captures[first..end];
    let sent = start.position.unwrap_or_default().sent;
    let rest = captures.get(sent..).ok_or_else(|| bad("resumeKey: not copied from an earlier answer"))?;
    let fitting = answer.fitting(rest.iter().map(|(_, spelling)| urls[*spelling].len()));
    let lines = rest[..fitting].iter().map(|(capture, spelling)| line_of(&urls[*spelling], *capture)).collect();
    let next = PagePosition { sent: sent + fitting, ..PagePosition::default() };
    Ok((lines, (fitting < rest.len()).then_some(next)))
}

/// Adds the captures of the URLs of a walk in a closed interval.
pub(super) async fn captures_of(
    pinned: &Pinned,
    walk: &mut Walk,
    (from, to): (i64, i64),
    answer: &mut Answer<CaptureTime>,
) -> Result<(), Status> {
    while let Some(uids) = walk.next(answer).await? {
        let all = match pinned.captures(&uids).await {
            Err(status) if fits_in_parts(&status) && walk.take_back(&uids) => continue,
            all => all?,
        };
        let mut in_interval = Batch::default();
        for captures in all.iter() {
            let first = captures.partition_point(|capture| capture.time < from);
            let end = captures.partition_point(|capture| capture.time <= to);
            in_interval.push(&captures[first..end.max(first)]);
        }
        answer.add(pinned, &uids, &in_interval).await?;
    }
    Ok(())
}

/// `/v1/urls`.
pub(super) async fn urls(State(shared): State<Shared>, RawQuery(query): RawQuery) -> Result<Json<Shown>, Refused> {
    let params = Params::of(query.as_deref(), URLS, &[])?;
    let start = Start::of(shared.cluster.store(), "/v1/urls", &params)?;
    let interval = params.interval()?;
    let matched = matched(&params, "matchType", Match::Exact)?;
    let url = params.get("url")?;
    if url.is_none() && params.get("matchType")?.is_some() {
        return Err(bad("matchType: needs url").into());
    }
    let mut answer = Answer::of(&shared, &params, &start)?;
    let pinned = pinned(&shared, start.epoch).await?;
    let uid_intervals = match url {
        Some(url) => Matching::of(&pinned, matched, ("url", url)).await?.uids,
        None => std::iter::once(Uid::below(pinned.len())).collect(),
    };
    let mut walk = Walk::new(pinned.clone(), uid_intervals, interval, start.first_uid());
    while let Some(uids) = walk.next(&mut answer).await? {
        let mut one = Batch::default();
        uids.iter().for_each(|_| one.push(&[()]));
        answer.add(&pinned, &uids, &one).await?;
    }
    let mut shown = json!({"epoch": pinned.epoch()});
    shown["urls"] = answer.items.into_iter().map(|item| json!({"url": item.url, "uid": item.uid})).collect();
    resume_key(&mut shown, &start, &pinned, answer.next_page);
    Ok(Json(shown))
}

/// `/v1/uids`.
pub(super) async fn uids(State(shared): State<Shared>, RawQuery(query): RawQuery) -> Result<Json<Shown>, Refused> {
    let params = Params::of(query.as_deref(), UIDS, &["url"])?;
    params.required("url")?;
    let texts: Vec<&str> = params.all("url").collect();
    shared.bounds.admit(texts.len())?;
    let pinned = pinned(&shared, params.number("epoch", 1..=u64::MAX)?.unwrap_or(0)).await?;
    let found = look_up(&pinned, &texts).await?;
    let uids: Vec<Shown> = found.into_iter().map(|(url, uid)| json!({"url": url, "uid": uid})).collect();
    Ok(Json(json!({"epoch": pinned.epoch(), "uids": uids})))
}

/// `/v1/uids/{uid}`.
pub(super) async fn uid(
    State(shared): State<Shared>,
    Path(uid): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Json<Shown>, Refused> {
    let params = Params::of(query.as_deref(), UID, &[])?;
    let uid = Uid(number("uid", &uid, &(0..=u64::MAX))?);
    let pinned = pinned(&shared, params.number("epoch", 1..=u64::MAX)?.unwrap_or(0)).await?;
    let urls = pinned.urls(&[uid]).await?;
    Ok(Json(json!({"epoch": pinned.epoch(), "uid": uid, "url": urls.first()})))
}

/// `/v1/translate`.
pub(super) async fn translate(State(shared): State<Shared>, RawQuery(query): RawQuery) -> Result<Json<Shown>, Refused> {
    let params = Params::of(query.as_deref(), TRANSLATE, &["uid"])?;
    let epoch = |name| Ok::<_, Status>(params.number(name, 1..=u64::MAX)?.unwrap_or(0));
    let (from, to, uids) = (epoch("from")?, epoch("to")?, Uid::of_numbers(params.numbers("uid")?));
    params.required("uid")?;
    shared.bounds.admit(uids.len())?;
    let (from, to, translated) = shared.cluster.translate(from, to, uids.clone()).await?;
    let pairs: Vec<Shown> =
        uids.into_iter().zip(translated).map(|(uid, other)| json!({"uid": uid, "translated": other})).collect();
    Ok(Json(json!({"epoch": to, "from": from, "to": to, "uids": pairs})))
}
