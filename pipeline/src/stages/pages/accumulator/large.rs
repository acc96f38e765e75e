//! The links of a page if the links of its captures do not fit in memory: sorted on disk, with the same result as
//! [`crate::stages::pages::accumulator`].
//!
//! Reads links of captures in any order: the links themselves, or the hash of the links of another record of the page.
//! Returns the union of the links and their changes. The sort contains a link with the first and the last of
//! consecutive captures that have the link.
//!
//! Memory: the budget, and a few bytes a capture. Cost: a sort of the links of all captures, where consecutive captures
//! that have the links of one record by its hash count as one capture.

use crate::Error;
use crate::stages::ingest::known_links::hash_of;
use crate::stages::pages::accumulator::AccumulatedPage;
use crate::stages::pages::accumulator::parts::Part;
use webstrata_engine::{Scratch, Sorter, wire};
use webstrata_layers::Change;

/// The links of a page on disk, with captures by number; see the head of this file.
pub(crate) struct LargeAccumulator {
    /// Key: link (16 bytes), first and last capture (4 bytes each).
    links: Sorter,
    /// Key: hash of links; payload: the links.
    sets: Sorter,
    /// Key: hash of links, capture with these links (4 bytes).
    same: Sorter,
}

impl LargeAccumulator {
    pub(crate) fn new(scratch: &Scratch, bytes_max: usize) -> Self {
        LargeAccumulator {
            links: Sorter::new(scratch, "page-links", bytes_max / 2),
            sets: Sorter::new(scratch, "page-sets", bytes_max / 4),
            same: Sorter::new(scratch, "page-same", bytes_max / 4),
        }
    }

    /// Adds links of a capture.
    pub(crate) fn add(&mut self, capture: u32, mut links: impl Iterator<Item = u128>) -> Result<(), Error> {
        links.try_for_each(|link| push(&mut self.links, link.to_be_bytes(), capture, capture))
    }

    /// Adds the links of a record, for captures that refer to them by hash.
    pub(crate) fn add_set(&mut self, links: &[u8]) -> Result<(), Error> {
        Ok(self.sets.push(&hash_of(links).to_be_bytes(), links)?)
    }

    /// Adds a capture that has the links of a record, given by their hash.
    pub(crate) fn add_same(&mut self, capture: u32, links: u128) -> Result<(), Error> {
        let mut key = [0; 20];
        key[..16].copy_from_slice(&links.to_be_bytes());
        key[16..].copy_from_slice(&capture.to_be_bytes());
        Ok(self.same.push(&key, &[])?)
    }

    /// Fills in links and changes of a page, and the links of `parts` that are known by hash. Returns whether links and
    /// changes are at most `values_max` values. `known` says which captures have links.
    pub(super) fn finish(
        self,
        known: &[bool],
        values_max: usize,
        page: &mut AccumulatedPage,
        parts: &mut [Part],
    ) -> Result<bool, Error> {
        let mut by_hash: Vec<(u128, usize)> = Vec::new();
        for (number, part) in parts.iter_mut().enumerate() {
            by_hash.extend(std::mem::take(&mut part.same).into_iter().map(|hash| (hash, number)));
        }
        by_hash.sort_unstable();
        let LargeAccumulator { mut links, sets, same } = self;
        let (mut sets, mut same) = (sets.finish()?, same.finish()?);
        let (mut hash, mut stretches) = ([0; 16], Vec::<(u32, u32)>::new());
        while let Some((key, _)) = same.peek()? {
            hash.copy_from_slice(&key[..16]);
            stretches.clear();
            while let Some((mut key, _)) = same.peek()? {
                if wire::take_array(&mut key) != hash {
                    break;
                }
                let capture = u32::from_be_bytes(wire::take_array(&mut key));
                match stretches.last_mut() {
                    Some((_, last)) if capture <= last.saturating_add(1) => *last = capture,
                    _ => stretches.push((capture, capture)),
                }
                same.next()?;
            }
            while sets.peek()?.is_some_and(|(key, _)| *key < hash[..]) {
                sets.next()?;
            }
            let Some((_, set)) = sets.peek()?.filter(|(key, _)| **key == hash) else { continue };
            let first = by_hash.partition_point(|&(other, _)| other < u128::from_be_bytes(hash));
            for (_, number) in by_hash[first..].iter().take_while(|(other, _)| *other == u128::from_be_bytes(hash)) {
                parts[*number].extend(set.as_chunks::<16>().0.iter().map(|link| u128::from_be_bytes(*link)));
            }
            for link in set.as_chunks::<16>().0 {
                stretches.iter().try_for_each(|&(first, last)| push(&mut links, *link, first, last))?;
            }
        }
        drop((sets, same));
        gather(links, known, values_max, page)
    }
}

fn push(links: &mut Sorter, link: [u8; 16], first: u32, last: u32) -> Result<(), Error> {
    let mut key = [0; 24];
    key[..16].copy_from_slice(&link);
    key[16..20].copy_from_slice(&first.to_be_bytes());
    key[20..].copy_from_slice(&last.to_be_bytes());
    Ok(links.push(&key, &[])?)
}

/// Makes links and changes from sorted stretches.
fn gather(links: Sorter, known: &[bool], values_max: usize, page: &mut AccumulatedPage) -> Result<bool, Error> {
    let mut links = links.finish()?;
    let next_known = next_known(known);
    let change = |page: &mut AccumulatedPage, capture: u32| {
        let link = u32::try_from(page.links.len()).map_or(u32::MAX, |count| count - 1);
        // A change cannot be at the end of the captures.
        if (capture as usize) < known.len() {
            page.changes.push(Change { link, capture });
        }
    };
    // The current link, and the last capture of its current stretch.
    let mut open_stretch: Option<(u128, u32)> = None;
    while let Some((mut key, _)) = links.next()? {
        let link = u128::from_be_bytes(wire::take_array(&mut key));
        let [first, last] = [(); 2].map(|()| u32::from_be_bytes(wire::take_array(&mut key)));
        let before = open_stretch.take();
        open_stretch = Some(match before {
            // No known capture between the two stretches is without the link.
            Some((open_link, end)) if open_link == link && first <= next_known[end as usize + 1] => {
                (link, last.max(end))
            }
            before => {
                if let Some((_, end)) = before {
                    change(page, next_known[end as usize + 1]);
                }
                if before.is_some_and(|(open_link, _)| open_link == link) {
                    change(page, first);
                } else {
                    page.links.push(link);
                    // Before the first known capture a link counts as present.
                    if first > next_known[0] {
                        change(page, next_known[0]);
                        change(page, first);
                    }
                }
                (link, last)
            }
        });
        if page.links.len() + page.changes.len() > values_max {
            return Ok(false);
        }
    }
    if let Some((_, end)) = open_stretch {
        change(page, next_known[end as usize + 1]);
    }
    Ok(page.links.len() + page.changes.len() <= values_max)
}

/// Returns, for each capture and for the end, the first known capture from there on; the number of captures if there is
/// none.
fn next_known(known: &[bool]) -> Vec<u32> {
    let number = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
    let mut next = vec![number(known.len()); known.len() + 1];
    for at in (0..known.len()).rev() {
        next[at] = if known[at] { number(at) } else { next[at + 1] };
    }
    next
}
