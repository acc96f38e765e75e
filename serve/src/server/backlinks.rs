//! The call that lists the pages that link to a target, with the times of the links.

use tonic::Status;
use webstrata_layers::answers::backlinks::Columns;
use webstrata_layers::{Event, Match, Ranking, Referrer, Referrers, ReferringHost, Stay};
use webstrata_url::domain_of;

use super::around::{interval_of, limit_of, none, order_of, period_of, unit_of};
use crate::clerk::{BacklinkAnswer, BacklinkQuestion, Pinned};
use crate::protocol::backlinks::began_to;
use crate::protocol::proto;
use crate::protocol::status::bad;
use crate::protocol::values::match_of;

/// The backlinks that a request asks for.
pub(super) async fn backlinks(
    pinned: &Pinned,
    request: &proto::GetBacklinksRequest,
) -> Result<proto::GetBacklinksResponse, Status> {
    let offset = usize::try_from(request.offset).unwrap_or(usize::MAX);
    let BacklinkAnswer { ranked: mut answer, mut urls } =
        pinned.who_links(backlink_question(pinned, request).await?).await?;
    let skipped = offset.min(answer.rows.len());
    answer.rows.drain(..skipped);
    urls.drain(..skipped);
    let Columns { standing, unknown, found, new, returned, lost } = Columns::of(&answer.periods);
    Ok(proto::GetBacklinksResponse {
        epoch: pinned.epoch(),
        periods: answer.periods.iter().map(|(start, _)| *start).collect(),
        standing,
        unknown,
        found,
        new,
        returned,
        lost,
        pages: answer.pages,
        rows_total: answer.total,
        rows_selected: answer.selected,
        hosts: answer.hosts.into_iter().map(referring_host).collect(),
        rows: answer.rows.into_iter().zip(urls).map(referrer).collect(),
    })
}

/// The question of a request.
async fn backlink_question(pinned: &Pinned, request: &proto::GetBacklinksRequest) -> Result<BacklinkQuestion, Status> {
    use proto::get_backlinks_request as asked;
    let unit = unit_of(request.unit)?;
    let event = match asked::Event::try_from(request.event).map_err(|_| none("event", request.event))? {
        asked::Event::Any => Event::Any,
        asked::Event::Gained => Event::Gained,
        asked::Event::New => Event::New,
        asked::Event::Returned => Event::Returned,
        asked::Event::Lost => Event::Lost,
        asked::Event::Standing => Event::Standing,
    };
    let order = order_of(request.order)?;
    let period = period_of(request.period)?;
    let interval = interval_of(request.from, request.to)?;
    let (matched, source_match) = (match_of(request.r#match)?, match_of(request.source_match)?);
    if request.source.is_empty() && source_match != Match::default() {
        return Err(bad("source_match: needs source"));
    }
    let target = pinned.matching(matched, &request.url, "url").await?;
    if target.is_empty() {
        return Err(pinned.nothing_matches(&request.url));
    }
    let within = match request.source.as_str() {
        "" => None,
        source => Some(pinned.matching(source_match, source, "source").await?),
    };
    let scope = pinned.scope((matched, &request.url, &target), request.internal, within).await?;
    // The answer also ranks the rows that `offset` skips. HTTP continues an answer by keys instead.
    let limit = limit_of(request.limit, Referrers::ROWS_MAX);
    let limit = limit.saturating_add(usize::try_from(request.offset).unwrap_or(usize::MAX));
    let ranking = Ranking { unit, domain_of, period, event, interval, order, after: None, limit };
    Ok(BacklinkQuestion { target, scope, ranking })
}

fn referring_host(host: ReferringHost) -> proto::ReferringHost {
    let ReferringHost { host, pages, standing, first } = host;
    proto::ReferringHost { host, pages, standing, first }
}

fn referrer((row, page): (Referrer, String)) -> proto::Referrer {
    let Referrer { page: uid, name, pages, backlink } = row;
    let stay = |stay: &Stay| proto::Stay {
        first: stay.first,
        last: stay.last,
        until: stay.until,
        began: began_to(stay.began).into(),
    };
    let unknown =
        |&(first, last): &(i64, i64)| proto::UnknownInterval { first, last: (last < i64::MAX).then_some(last) };
    proto::Referrer {
        page,
        page_uid: uid.0,
        name: name.unwrap_or_default(),
        pages,
        targets: backlink.targets,
        stays: backlink.stays.iter().map(stay).collect(),
        unknown: backlink.unknown.iter().map(unknown).collect(),
    }
}
