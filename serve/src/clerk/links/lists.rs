//! Lists of links in the answers of cells, and the join of the lists of several rows for one URL.

use std::ops::Range;
use webstrata_layers::Uid;

use tonic::Status;
use webstrata_layers::record::precedence;

use crate::clerk::call::other_kind;
use crate::clerk::split::{ItemPosition, bounds};
use crate::protocol::gaps;
use crate::protocol::proto::LinkLists;

/// The lists of one answer, by index.
pub(in crate::clerk) struct Lists {
    pub(in crate::clerk) links: Vec<Uid>,
    ends: Vec<usize>,
    found: Vec<bool>,
    times: Vec<i64>,
    /// The indexes in `links` of unsure sources, whose cells the clerk must ask.
    pub(in crate::clerk) unsure: Vec<u32>,
    /// The lengths of the lists, if the question asked for counts instead of links.
    pub(in crate::clerk) degrees: Vec<u64>,
}

impl Lists {
    pub(in crate::clerk) fn of(lists: LinkLists) -> Result<Self, Status> {
        let links = gaps::take(&lists.links, &lists.counts).ok_or_else(other_kind)?;
        let LinkLists { counts, found, times, unsure, degrees, .. } = lists;
        Ok(Self { links: Uid::of_numbers(links), ends: bounds(&counts), found, times, unsure, degrees })
    }

    /// The bounds of a list in `links`.
    pub(in crate::clerk) fn bounds(&self, index: usize) -> Result<Range<usize>, Status> {
        self.ends.get(index).zip(self.ends.get(index + 1)).map(|(&start, &end)| start..end).ok_or_else(other_kind)
    }

    pub(in crate::clerk) fn list(&self, index: usize) -> Result<&[Uid], Status> {
        Ok(&self.links[self.bounds(index)?])
    }

    /// The index of the list that contains the link at an index of `links`.
    pub(in crate::clerk) fn list_with(&self, index: usize) -> usize {
        self.ends.partition_point(|&end| end <= index).saturating_sub(1)
    }

    /// Whether the row has captures of the page in the window of the question.
    pub(in crate::clerk) fn is_found(&self, index: usize) -> bool {
        self.found.get(index).copied().unwrap_or(false)
    }

    /// Whether all links of a list are sure.
    pub(in crate::clerk) fn is_sure(&self, index: usize) -> Result<bool, Status> {
        let bounds = self.bounds(index)?;
        let next = self.unsure.get(self.unsure.partition_point(|&unsure| (unsure as usize) < bounds.start));
        Ok(next.is_none_or(|&unsure| unsure as usize >= bounds.end))
    }

    /// Removes the links at these indexes, which must increase.
    pub(in crate::clerk) fn without(&mut self, indexes: &[usize]) {
        if indexes.is_empty() {
            return;
        }
        for end in &mut self.ends {
            *end -= indexes.partition_point(|&index| index < *end);
        }
        let (mut position, mut removed) = (0, indexes.iter().copied().peekable());
        self.links.retain(|_| {
            position += 1;
            removed.next_if_eq(&(position - 1)).is_none()
        });
        self.unsure.clear();
    }
}

/// For links as of a time: the list of the row with the latest capture. If several rows have a capture in that second,
/// the newest row wins.
pub(in crate::clerk) fn latest<'a>(lists: &'a [Lists], positions: &[ItemPosition]) -> Result<&'a [Uid], Status> {
    let mut best: Option<(i64, &ItemPosition)> = None;
    // Rows are in order, the oldest first.
    for position in positions.iter().filter(|position| lists[position.question].is_found(position.index)) {
        let time = *lists[position.question].times.get(position.index).ok_or_else(other_kind)?;
        if best.is_none_or(|(latest, _)| time >= latest) {
            best = Some((time, position));
        }
    }
    best.map_or(Ok(&[][..]), |(_, position)| lists[position.question].list(position.index))
}

/// Adds the lists at these positions to the rising UIDs of `links`.
pub(in crate::clerk) fn unite<'a>(
    lists: &[Lists],
    positions: impl IntoIterator<Item = &'a ItemPosition>,
    links: &mut Vec<Uid>,
) -> Result<(), Status> {
    for position in positions {
        precedence::unite(links, lists[position.question].list(position.index)?);
    }
    Ok(())
}
