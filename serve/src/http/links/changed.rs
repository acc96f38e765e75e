//! `/v1/changed`: links of a page that were gained and lost between two dates, or pages that began or ceased to link to
//! a URL. `questions::changed` of `webstrata_layers` has the rule.
//!
//! Changes are in order of the UID of the link, each once. Cost: for each part of the answer, the links at both dates;
//! with in-links, the captures of the sources in the answer. Memory: the UIDs of both dates, and one batch.

use axum::extract::{RawQuery, State};
use axum::response::Response;
use webstrata_layers::answers::Time;
use webstrata_layers::answers::links::{self as answers, ChangedLink};
use webstrata_layers::{Batch, Changed, Failures, LinkChange, Uid, Way};

use crate::http::answer::text::told;
use crate::http::answer::{Answer, Value};
use crate::http::describe::{Call, call};
use crate::http::question::address::find;
use crate::http::question::parameter::{Parameter, text, words, words_of};
use crate::http::question::parameters::{DIRECTION, EPOCH, LIMIT, RESUME_KEY, URL};
use crate::http::question::params::Params;
use crate::http::question::resume::Start;
use crate::http::{Refused, pinned, resume_key};
use crate::shared::Shared;

const FROM_DATE: Parameter =
    text("from_date", "The first date. Written as other times; a short time means the last second of its period.")
        .required()
        .example(&["200605"]);
const TO_DATE: Parameter = text("to_date", "The second date, not before the first.").required().example(&["200606"]);
const MAX_AGE: Parameter =
    text("max_age", "At each date, a page whose latest capture is older has no links.").example(&["30d"]);
const FAILURES: Parameter = words(
    "failures",
    "Which captures with a status of 400 or above count as the latest capture, which then has no links. end: 4xx \
        except 429. ignore: none. all: all.",
    words_of::<Failures>,
)
.example(&["all"]);

pub(in crate::http) const CHANGED: Call = call::<answers::Changed>(
    "changed",
    "Links of a page gained and lost from one date to another; with direction=in, pages that began and ceased to link \
        to the URL.",
    &[URL, DIRECTION, FROM_DATE, TO_DATE, MAX_AGE, FAILURES, LIMIT, RESUME_KEY, EPOCH],
);

/// A link that differs between the two dates, and how it differs.
#[derive(Clone, Copy)]
struct Change {
    link: Uid,
    change: LinkChange,
}

impl Value for Change {
    type Shown = ChangedLink;

    fn uid(self) -> Option<Uid> {
        Some(self.link)
    }

    fn show(self, url: &str) -> ChangedLink {
        ChangedLink { link: url.to_owned(), change: self.change }
    }
}

/// `/v1/changed`.
pub(in crate::http) async fn changed(
    State(shared): State<Shared>,
    RawQuery(query): RawQuery,
) -> Result<Response, Refused> {
    let params = Params::of(query.as_deref(), CHANGED.parameters)?;
    let start = Start::of(shared.cluster.store(), "/v1/changed", &params)?;
    let direction = params.word::<Way>("direction")?;
    let inward = direction == Way::In;
    let dates = params.dates()?;
    let url = params.required("url")?;
    let mut answer = Answer::of(&shared, &params, &start)?;
    let pinned = pinned(&shared, start.epoch).await?;
    let (url, uid) = find(&pinned, url).await?;
    let [from, to] = dates;
    let first = start.position.unwrap_or_default().uid;
    let part = (first, answer.values_max());
    let question = Changed::part(&[uid], inward, dates, part);
    let changed = pinned.answer(question).await?.pop().unwrap_or_default();
    let changes: Vec<Change> =
        changed.changes(inward).into_iter().map(|(link, change)| Change { link, change }).collect();
    let (links, mut each) = (changes.iter().map(|change| change.link).collect::<Vec<_>>(), Batch::default());
    changes.iter().for_each(|&change| each.push(&[change]));
    answer.add(&pinned, &links, &each).await?;
    told(
        &pinned,
        answers::Changed {
            epoch: pinned.epoch(),
            url,
            uid,
            direction,
            from_date: Time(from.time),
            to_date: Time(to.time),
            unknown: (!inward && !changed.unknown.is_empty()).then_some(true),
            changes: answer.items.into_iter().flat_map(|item| item.values).collect(),
            resume_key: resume_key(&start, &pinned, answer.next_page),
        },
    )
    .await
}
