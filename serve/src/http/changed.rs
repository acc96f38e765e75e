//! `/v1/changed`: links of a page that were gained and lost between two dates, or pages that began or ceased to link to
//! a URL. [`webstrata_layers::questions::changed`] has the rule.
//!
//! Changes are in order of the UID of the link, each once. Cost: for each part of the answer, the links at both dates;
//! with in-links, the captures of the sources in the answer. Memory: the UIDs of both dates, and one batch.

use axum::Json;
use axum::extract::{RawQuery, State};
use serde_json::{Value as Shown, json};
use webstrata_layers::{Batch, Changed, ChangedLinks, Uid, format_time};

use super::answer::{Answer, Value};
use super::links::is_inward;
use super::question::address::find;
use super::question::params::Params;
use super::question::resume::Start;
use super::{Refused, pinned, resume_key};
use crate::shared::Shared;

pub(super) const CHANGED: &[&str] =
    &["url", "direction", "fromDate", "toDate", "maxAge", "failures", "limit", "resumeKey", "epoch"];

/// A link that differs between the two dates, and how it differs.
#[derive(Clone, Copy)]
struct Change {
    link: Uid,
    change: &'static str,
}

impl Value for Change {
    type Shown = Shown;

    fn uid(self) -> Option<Uid> {
        Some(self.link)
    }

    fn show(self, url: &str) -> Shown {
        json!({"link": url, "change": self.change})
    }
}

/// The changes in order of UIDs; none for a page with unknown links.
fn changes_of(changed: &ChangedLinks, is_inward: bool) -> Vec<Change> {
    let unknown = if is_inward { &changed.unknown[..] } else { &[] };
    let lists = [(&changed.gained[..], "gained"), (&changed.lost, "lost"), (unknown, "unknown")];
    let mut changes: Vec<Change> =
        lists.iter().flat_map(|(links, change)| links.iter().map(|&link| Change { link, change })).collect();
    changes.sort_unstable_by_key(|change| change.link);
    changes
}

/// `/v1/changed`.
pub(super) async fn changed(State(shared): State<Shared>, RawQuery(query): RawQuery) -> Result<Json<Shown>, Refused> {
    let params = Params::of(query.as_deref(), CHANGED, &[])?;
    let start = Start::of(shared.cluster.store(), "/v1/changed", &params)?;
    let inward = is_inward(&params)?;
    let dates = params.dates()?;
    let url = params.required("url")?;
    let mut answer = Answer::of(&shared, &params, &start)?;
    let pinned = pinned(&shared, start.epoch).await?;
    let (url, uid) = find(&pinned, url).await?;
    let [from, to] = dates;
    let mut shown = json!({"epoch": pinned.epoch(), "url": url, "uid": uid,
                           "direction": if inward { "in" } else { "out" },
                           "fromDate": format_time(from.time), "toDate": format_time(to.time)});
    let first = start.position.unwrap_or_default().uid;
    let part = (first, answer.values_max());
    let question = Changed::part(&[uid], inward, dates, part);
    let changed = pinned.answer(question).await?.pop().unwrap_or_default();
    if !inward && !changed.unknown.is_empty() {
        shown["unknown"] = json!(true);
    }
    let changes = changes_of(&changed, inward);
    let (links, mut each) = (changes.iter().map(|change| change.link).collect::<Vec<_>>(), Batch::default());
    changes.iter().for_each(|&change| each.push(&[change]));
    answer.add(&pinned, &links, &each).await?;
    shown["changes"] = answer.items.into_iter().flat_map(|item| item.values).collect();
    resume_key(&mut shown, &start, &pinned, answer.next_page);
    Ok(Json(shown))
}
