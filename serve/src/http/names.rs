//! `/v1/urls`: URLs that match a URL. `/v1/captures`: the times of their captures. `/v1/uids`: UIDs of URLs;
//! `/v1/uids/{uid}`: the URL of a UID. `/v1/translate`: UIDs of one epoch in another epoch.

use axum::Json;
use axum::extract::{Path, RawQuery, State};
use axum::response::Response;
use tonic::Status;
use webstrata_layers::answers::captures::{Capture, Captures};
use webstrata_layers::answers::names::{Found, Named, Translated, TranslatedUid, UrlOfUid};
use webstrata_layers::{Batch, CaptureTime, Match, Uid, answers};

use super::answer::text::told;
use super::answer::walk::Walk;
use super::answer::{Answer, Value};
use super::describe::{Call, call};
use super::question::address::{find, look_up, spellings_of};
use super::question::matching::Matching;
use super::question::parameter::{Parameter, number as number_of};
use super::question::parameters::{
    EPOCH, FROM, FROM_EPOCH, LIMIT, MATCH, MATCH_OF_URL, RESUME_KEY, TO, TO_EPOCH, URL, URL_OR_ALL,
};
use super::question::params::{Params, number};
use super::question::resume::{PagePosition, Start};
use super::{Refused, pinned, resume_key};
use crate::clerk::Pinned;
use crate::protocol::status::{bad, fits_in_parts};
use crate::shared::Shared;

pub(super) const CAPTURES: Call = call::<answers::captures::Captures>(
    "captures",
    "When pages were captured, in order of UIDs and times; with match=surt, in order of time.",
    &[URL, FROM, TO, LIMIT, RESUME_KEY, EPOCH, MATCH],
);
pub(super) const URLS: Call = call::<answers::names::Urls>(
    "urls",
    "URLs, in order of UIDs. With from or to: only URLs captured then. Otherwise also URLs that were never captured.",
    &[URL_OR_ALL, FROM, TO, LIMIT, RESUME_KEY, EPOCH, MATCH_OF_URL],
);
pub(super) const UIDS: Call =
    call::<answers::names::Uids>("uids", "UIDs of URLs.", &[super::question::parameters::URLS, EPOCH]);
const UID: Parameter = number_of("uid", "The UID.", 0, u64::MAX).in_path().example(&["2"]);
pub(super) const URL_OF_UID: Call = call::<answers::names::UrlOfUid>("url", "The URL of a UID.", &[UID, EPOCH]);
pub(super) const TRANSLATE: Call = call::<answers::names::Translated>(
    "translate",
    "UIDs of one epoch, translated to another epoch.",
    &[super::question::parameters::UIDS, FROM_EPOCH, TO_EPOCH],
);

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
pub(super) async fn captures(State(shared): State<Shared>, RawQuery(query): RawQuery) -> Result<Response, Refused> {
    let params = Params::of(query.as_deref(), CAPTURES.parameters)?;
    let start = Start::of(shared.cluster.store(), "/v1/captures", &params)?;
    let (from, to) = params.interval()?.unwrap_or((i64::MIN, i64::MAX));
    let matched = params.word::<Match>("match")?;
    let url = params.required("url")?;
    let mut answer = Answer::of(&shared, &params, &start)?;
    let pinned = pinned(&shared, start.epoch).await?;
    let mut shown = Captures { epoch: pinned.epoch(), ..Captures::default() };
    if matched == Match::Surt {
        let (spellings, captures, next) = captures_of_spellings(&pinned, url, (from, to), &start, &answer).await?;
        let resume_key = resume_key(&start, &pinned, next);
        return told(&pinned, Captures { spellings: Some(spellings), captures, resume_key, ..shown }).await;
    }
    let uid_intervals = if matched == Match::Exact {
        let (url, uid) = find(&pinned, url).await?;
        (shown.url, shown.uid) = (Some(url), Some(uid));
        std::iter::once(uid..uid + 1).collect()
    } else {
        Matching::of(&pinned, matched, ("url", url)).await?.uids
    };
    let mut walk = Walk::new(pinned.clone(), uid_intervals, Some((from, to)), start.first_uid());
    captures_of(&pinned, &mut walk, (from, to), &mut answer).await?;
    let lines = answer.items.into_iter().flat_map(|item| {
        let line = move |capture| Capture::of(&item.url, capture);
        item.values.into_iter().map(line)
    });
    shown.captures = lines.collect();
    shown.resume_key = resume_key(&start, &pinned, answer.next_page);
    told(&pinned, shown).await
}

/// The spellings of one page, and its captures in a closed interval, in order of time, as many as fit into the answer.
/// Also the position where they continue.
async fn captures_of_spellings(
    pinned: &Pinned,
    url: &str,
    (from, to): (i64, i64),
    start: &Start,
    answer: &Answer<CaptureTime>,
) -> Result<(Vec<String>, Vec<Capture>, Option<PagePosition>), Status> {
    let spellings = spellings_of(pinned, url).await?;
    let (captures, urls) = tokio::try_join!(pinned.captures_of_page(&spellings), pinned.urls(&spellings))?;
    let first = captures.partition_point(|(capture, _)| capture.time < from);
    let end = captures.partition_point(|(capture, _)| capture.time <= to).max(first);
    let captures = &captures[first..end];
    let sent = start.position.unwrap_or_default().sent;
    let rest = captures.get(sent..).ok_or_else(|| bad("resume_key: not copied from an earlier answer"))?;
    let fitting = answer.fitting(rest.iter().map(|(_, spelling)| urls[*spelling].len()));
    let lines = rest[..fitting].iter().map(|(capture, spelling)| Capture::of(&urls[*spelling], *capture)).collect();
    let next = PagePosition { sent: sent + fitting, ..PagePosition::default() };
    Ok((urls, lines, (fitting < rest.len()).then_some(next)))
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
pub(super) async fn urls(State(shared): State<Shared>, RawQuery(query): RawQuery) -> Result<Response, Refused> {
    let params = Params::of(query.as_deref(), URLS.parameters)?;
    let start = Start::of(shared.cluster.store(), "/v1/urls", &params)?;
    let interval = params.interval()?;
    let matched = params.word::<Match>("match")?;
    let url = params.get("url")?;
    if url.is_none() && params.get("match")?.is_some() {
        return Err(bad("match: needs url").into());
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
    let urls = answer.items.into_iter().map(|item| Named { url: item.url, uid: item.uid }).collect();
    let resume_key = resume_key(&start, &pinned, answer.next_page);
    told(&pinned, answers::names::Urls { epoch: pinned.epoch(), urls, resume_key }).await
}

/// `/v1/uids`.
pub(super) async fn uids(
    State(shared): State<Shared>,
    RawQuery(query): RawQuery,
) -> Result<Json<answers::names::Uids>, Refused> {
    let params = Params::of(query.as_deref(), UIDS.parameters)?;
    params.required("url")?;
    let texts: Vec<&str> = params.all("url").collect();
    shared.bounds.admit(texts.len())?;
    let pinned = pinned(&shared, params.epoch()?).await?;
    let found = look_up(&pinned, &texts).await?;
    let uids = found.into_iter().map(|(url, uid)| Found { url, uid }).collect();
    Ok(Json(answers::names::Uids { epoch: pinned.epoch(), uids }))
}

/// `/v1/uids/{uid}`.
pub(super) async fn uid(
    State(shared): State<Shared>,
    Path(uid): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Json<UrlOfUid>, Refused> {
    let params = Params::of(query.as_deref(), &[EPOCH])?;
    let uid = Uid(number("uid", &uid, &(0..=u64::MAX))?);
    let pinned = pinned(&shared, params.epoch()?).await?;
    let url = pinned.urls(&[uid]).await?.pop().unwrap_or_default();
    Ok(Json(UrlOfUid { epoch: pinned.epoch(), named: Named { url, uid } }))
}

/// `/v1/translate`.
pub(super) async fn translate(
    State(shared): State<Shared>,
    RawQuery(query): RawQuery,
) -> Result<Json<Translated>, Refused> {
    let params = Params::of(query.as_deref(), TRANSLATE.parameters)?;
    let epoch = |name| Ok::<_, Status>(params.number(name)?.unwrap_or(0));
    let (from, to, uids) = (epoch("from")?, epoch("to")?, Uid::of_numbers(params.numbers("uid")?));
    params.required("uid")?;
    shared.bounds.admit(uids.len())?;
    let (from, to, translated) = shared.cluster.translate(from, to, uids.clone()).await?;
    let uids = uids.into_iter().zip(translated).map(|(uid, translated)| TranslatedUid { uid, translated }).collect();
    Ok(Json(Translated { epoch: to, from, to, uids }))
}
