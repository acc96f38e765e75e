//! Lists of links in the answers of cells, and the join of the lists that several rows have for one URL.

use std::ops::Range;
use webstrata_layers::Uid;

use tonic::Status;
use webstrata_layers::Batch;
use webstrata_layers::record::precedence;

use super::call::other_kind;
use super::split::{Spot, bounds};
use crate::protocol::gaps;
use crate::protocol::proto::LinkLists;

/// The lists of one answer, by index.
pub(super) struct Lists {
    pub(super) links: Vec<Uid>,
    ends: Vec<usize>,
    found: Vec<bool>,
    times: Vec<i64>,
    /// The indexes in `links` of sources whose cells must be asked.
    pub(super) unsure: Vec<u32>,
    /// The lengths of the lists, if the question asked for counts instead of links.
    pub(super) degrees: Vec<u64>,
}

impl Lists {
    pub(super) fn of(lists: LinkLists) -> Result<Self, Status> {
        let links = gaps::take(&lists.links, &lists.counts).ok_or_else(other_kind)?;
        let LinkLists { counts, found, times, unsure, degrees, .. } = lists;
        Ok(Self { links: Uid::of_numbers(links), ends: bounds(&counts), found, times, unsure, degrees })
    }

    /// The range of a list in `links`.
    pub(super) fn range(&self, at: usize) -> Result<Range<usize>, Status> {
        self.ends.get(at).zip(self.ends.get(at + 1)).map(|(&start, &end)| start..end).ok_or_else(other_kind)
    }

    pub(super) fn list(&self, at: usize) -> Result<&[Uid], Status> {
        Ok(&self.links[self.range(at)?])
    }

    /// The list that has the link at an index of `links`.
    pub(super) fn list_at(&self, place: usize) -> usize {
        self.ends.partition_point(|&end| end <= place).saturating_sub(1)
    }

    /// Whether the row has captures of the page in the window of the question.
    pub(super) fn is_found(&self, at: usize) -> bool {
        self.found.get(at).copied().unwrap_or(false)
    }

    /// Whether all links of a list are sure.
    pub(super) fn is_sure(&self, at: usize) -> Result<bool, Status> {
        let range = self.range(at)?;
        let next = self.unsure.get(self.unsure.partition_point(|&place| (place as usize) < range.start));
        Ok(next.is_none_or(|&place| place as usize >= range.end))
    }

    /// Removes the links at these indexes, which must increase.
    pub(super) fn without(&mut self, places: &[usize]) {
        if places.is_empty() {
            return;
        }
        for end in &mut self.ends {
            *end -= places.partition_point(|&place| place < *end);
        }
        let (mut at, mut gone) = (0, places.iter().copied().peekable());
        self.links.retain(|_| {
            at += 1;
            gone.next_if_eq(&(at - 1)).is_none()
        });
        self.unsure.clear();
    }
}

/// For links as of a time: the list of the row with the latest capture. If several rows have a capture in that second,
/// the newest row wins.
pub(super) fn latest<'a>(lists: &'a [Lists], spots: &[Spot]) -> Result<&'a [Uid], Status> {
    let mut best: Option<(i64, &Spot)> = None;
    // Rows are in order, the oldest first.
    for spot in spots.iter().filter(|spot| lists[spot.part].is_found(spot.at)) {
        let time = *lists[spot.part].times.get(spot.at).ok_or_else(other_kind)?;
        if best.is_none_or(|(latest, _)| time >= latest) {
            best = Some((time, spot));
        }
    }
    best.map_or(Ok(&[][..]), |(_, spot)| lists[spot.part].list(spot.at))
}

/// Adds the union of the rows' lists to `links`.
pub(super) fn unite(
    lists: &[Lists],
    spots: &[Spot],
    room: &mut Vec<Uid>,
    links: &mut Batch<Uid>,
) -> Result<(), Status> {
    if let [spot] = spots {
        links.push(lists[spot.part].list(spot.at)?);
        return Ok(());
    }
    room.clear();
    for spot in spots {
        precedence::unite(room, lists[spot.part].list(spot.at)?);
    }
    links.push(room);
    Ok(())
}
