//! The call that lists the pages that died, and the pages that still link to them.

use tonic::Status;
use webstrata_layers::answers::deaths::Columns;
use webstrata_layers::{DeadPage, DeathSearch, DeathsAsked, Linkers, Status as Code, StillLinking, Uid};

use super::around::{interval_of, limit_of, order_of, period_of};
use crate::clerk::{Pinned, Texts};
use crate::protocol::proto;
use crate::protocol::status::bad;
use crate::protocol::values::match_of;

/// The deaths that a request asks for.
pub(super) async fn deaths(
    pinned: &Pinned,
    request: &proto::GetDeathsRequest,
) -> Result<proto::GetDeathsResponse, Status> {
    let order = order_of(request.order)?;
    let status = match request.status {
        0 => None,
        code => Some(u16::try_from(code).ok().and_then(Code::new).ok_or_else(|| bad(format!("status: {code}")))?),
    };
    if u64::from(request.linkers) > DeathSearch::LINKERS_MAX {
        return Err(bad(format!("linkers: {} is above {}", request.linkers, DeathSearch::LINKERS_MAX)));
    }
    let interval = interval_of(request.from, request.to)?;
    let matched = match_of(request.r#match)?;
    let pages = match request.url.as_str() {
        "" => std::iter::once(Uid(0)..Uid(pinned.len())).collect(),
        url => pinned.matching(matched, url, "url").await?,
    };
    if pages.is_empty() {
        return Err(pinned.nothing_matches(&request.url));
    }
    let skipped = usize::try_from(request.offset).unwrap_or(usize::MAX);
    let linkers_max = request.linkers as usize;
    let limit =
        DeathSearch::rows_max(limit_of(request.limit, DeathSearch::ROWS_MAX), linkers_max).saturating_add(skipped);
    let period = period_of(request.period)?;
    let asked = DeathsAsked {
        interval,
        missing: request.missing,
        still: request.still,
        status,
        period,
        order,
        after: None,
        limit,
    };
    let deaths = pinned.answer(DeathSearch::new(&pages, asked)).await?;
    let rows = deaths.rows.get(skipped..).unwrap_or_default();
    let dead: Vec<Uid> = rows.iter().map(|dead| dead.page).collect();
    let linkers = pinned.answer(StillLinking::new(&dead, linkers_max)).await?;
    let rows: Vec<(&DeadPage, &Linkers)> = rows.iter().zip(&linkers).collect();
    let uids = rows.iter().flat_map(|(dead, linkers)| std::iter::once(dead.page).chain(linkers.pages.iter().copied()));
    let texts = Texts::of(pinned, uids.collect()).await?;
    let Columns { died, returned, gone } = Columns::of(&deaths.periods);
    let row = |(DeadPage { page, death }, linkers): (&DeadPage, &Linkers)| proto::DeadPage {
        page: texts.get(*page).to_owned(),
        page_uid: page.0,
        died: death.died,
        status: death.status.code().into(),
        seen: death.seen,
        returned: death.returned,
        linking: linkers.linking,
        unknown: linkers.unknown,
        linkers: linkers.pages.iter().map(|&page| texts.get(page).to_owned()).collect(),
    };
    Ok(proto::GetDeathsResponse {
        epoch: pinned.epoch(),
        periods: deaths.periods.iter().map(|(start, _)| *start).collect(),
        died,
        returned,
        gone,
        rows_total: deaths.total,
        rows_selected: deaths.selected,
        statuses: deaths.statuses.iter().map(|(status, _)| status.code().into()).collect(),
        status_died: deaths.statuses.iter().map(|(_, died)| *died).collect(),
        rows: rows.into_iter().map(row).collect(),
    })
}
