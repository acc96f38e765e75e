//! The calls about the surroundings of a page: its neighbourhood, and ways to other pages. Also the fields that several
//! requests share.

use tonic::Status;
use webstrata_layers::read::question::limited;
use webstrata_layers::{
    AsOf, Edge, Grain, NeighbourhoodQuestion, NeighbourhoodSearch, Order, RangeLength, Uid, Unit, WaySearch, interval,
};

use crate::clerk::{NeighbourhoodAnswer, Pinned};
use crate::protocol::proto;
use crate::protocol::status::bad;

/// The unit of a request.
pub(super) fn unit_of(number: i32) -> Result<Unit, Status> {
    use proto::get_backlinks_request::Unit as Asked;
    Ok(match Asked::try_from(number).map_err(|_| none("unit", number))? {
        Asked::Page => Unit::Page,
        Asked::Host => Unit::Host,
        Asked::Domain => Unit::Domain,
    })
}

/// The order of the rows of a request.
pub(super) fn order_of(number: i32) -> Result<Order, Status> {
    use proto::get_backlinks_request::Order as Asked;
    Ok(match Asked::try_from(number).map_err(|_| none("order", number))? {
        Asked::First => Order::First,
        Asked::Last => Order::Last,
        Asked::Most => Order::Most,
        Asked::Key => Order::Key,
    })
}

/// The error for a number that an enumeration does not have.
pub(super) fn none(field: &str, number: i32) -> Status {
    bad(format!("{field}: {number} is none"))
}

/// The length of the periods of a request.
pub(super) fn period_of(number: u64) -> Result<RangeLength, Status> {
    Ok(match number {
        0 => RangeLength::Month,
        1 => RangeLength::Year,
        days => RangeLength::Days(u32::try_from(days - 2).map_err(|_| bad(format!("period: {days} is too long")))?),
    })
}

/// The closed interval of a request; a missing end is open.
pub(super) fn interval_of(from: Option<i64>, to: Option<i64>) -> Result<(i64, i64), Status> {
    let (first, last) = interval(from, to).map_err(|error| bad(error.to_string()))?;
    Ok((from.map_or(i64::MIN, |_| first), to.map_or(i64::MAX, |_| last)))
}

/// The `limit` of a request.
pub(super) fn limit_of(number: u32, all: u64) -> usize {
    usize::try_from(limited(number.into(), all)).unwrap_or(usize::MAX)
}

/// The neighbourhood that a request asks for.
pub(super) async fn neighbourhood(
    pinned: &Pinned,
    request: &proto::GetNeighbourhoodRequest,
) -> Result<proto::GetNeighbourhoodResponse, Status> {
    use proto::get_neighbourhood_request::Unit as Asked;
    let grain = match Asked::try_from(request.unit).map_err(|_| none("unit", request.unit))? {
        Asked::Page => Grain::Page,
        Asked::Directory => Grain::Directory,
        Asked::Host => Grain::Host,
        Asked::Domain => Grain::Domain,
    };
    let nodes_max = usize::try_from(request.fold).ok().filter(|&most| most > 0);
    let limit = limit_of(request.limit, NeighbourhoodSearch::NODES_MAX);
    let near = NeighbourhoodQuestion { centre: Uid(request.uid), is_wide: !request.narrow, at: request.at, limit };
    let found = pinned.neighbourhood(near, grain, nodes_max).await?;
    let NeighbourhoodAnswer { grain, nodes, centre, edges, left_out, unread, unknown_pages } = found;
    let unit = match grain {
        Grain::Page => Asked::Page,
        Grain::Directory => Asked::Directory,
        Grain::Host => Asked::Host,
        Grain::Domain => Asked::Domain,
    };
    let stood = |edge: &Edge| edge.until.map_or(0, |until| until.abs_diff(edge.from));
    let unknown = edges.iter().enumerate().filter_map(|(place, edge)| Some((place as u64, edge.unknown?)));
    let (unknown_links, unknown) = unknown.unzip();
    Ok(proto::GetNeighbourhoodResponse {
        unit: unit.into(),
        epoch: pinned.epoch(),
        urls: nodes.iter().map(|node| node.urls as u64).collect(),
        captured: nodes.iter().map(|node| node.is_captured).collect(),
        nodes: nodes.into_iter().map(|node| node.name).collect(),
        centre: centre as u64,
        sources: edges.iter().map(|edge| edge.source as u64).collect(),
        targets: edges.iter().map(|edge| edge.target as u64).collect(),
        from: edges.iter().map(|edge| edge.from).collect(),
        stood: edges.iter().map(stood).collect(),
        left_out: left_out as u64,
        unread: unread as u64,
        unknown_pages: unknown_pages as u64,
        unknown_links,
        unknown,
    })
}

/// The ways that a request asks for.
pub(super) async fn ways(pinned: &Pinned, request: &proto::GetWaysRequest) -> Result<proto::GetWaysResponse, Status> {
    if request.hops > WaySearch::LINKS_MAX.into() {
        return Err(bad(format!("hops: {} is above {}", request.hops, WaySearch::LINKS_MAX)));
    }
    let ends = (Uid(request.uid), Uid(request.target));
    let as_of = AsOf::new(request.at.unwrap_or(i64::MAX));
    if u64::from(request.limit) > WaySearch::WAYS_MAX {
        return Err(bad(format!("limit: {} is above {}", request.limit, WaySearch::WAYS_MAX)));
    }
    let hops = if request.hops == 0 { WaySearch::LINKS.into() } else { request.hops as usize };
    let limit = limit_of(request.limit, WaySearch::WAYS_MAX);
    let found = pinned.answer(WaySearch::new(ends, as_of, hops, limit)).await?;
    Ok(proto::GetWaysResponse {
        epoch: pinned.epoch(),
        links: found.links.and_then(|links| u32::try_from(links).ok()),
        is_cut: found.is_cut,
        pages: Uid::numbers(&found.ways.concat()).to_vec(),
        unknown: Uid::into_numbers(found.unknown),
    })
}
