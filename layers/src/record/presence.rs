//! Presence: which links of a page were in which of its captures, as the changes between captures.
//!
//! A page with L links and T captures has an L x T matrix of bits (the BV layer of Avcular & Suel 2011, section 4). A
//! bit equals the bit of the capture before in 98 % of cases. So only the *changes* are kept: the places where a bit
//! differs from the bit before it in time. Before its first capture a link counts as present. A link that is in every
//! capture has no change at all, which is the common case.
//!
//! Invariants: changes are sorted by (link, capture), each once, inside L x T. No change is at a blank capture; there
//! the bit keeps its value.
//!
//! Coding for the layers BV and IBV: every change has a place. A link has 2 (T - 1) places, in two halves. The first
//! half is for a link that is in the first capture, and has T - 1 places for changes at the later captures. The second
//! half is for a link that is not in the first capture. The change of such a link at the first capture is implied and
//! needs no place. Place = `link * 2 (T - 1) + half * (T - 1) + capture - 1`. Places rise. Each is stored in LEB128 as
//! the gap to the one before (place - previous - 1, with previous = -1 at first). A page without changes takes no bytes
//! (null in the layer). Measured on monthly crawls, this takes 0.154 bits a link occurrence under zstd. One place for
//! each bit of the matrix takes 0.158, and the plain matrix 0.19 to 0.21. Answers come from the changes without
//! unpacking a matrix.

pub(crate) mod change;

use std::ops::Range;

pub(crate) use self::change::{Change, PresenceError};

/// Appends the coded form of sorted changes of a page with `captures` captures to `out`.
///
/// The changes must be in order, and every link must be in some capture (see [`crate::Page::flaw`]). Other changes give
/// bytes that [`decode`] rejects or misreads.
pub(crate) fn encode(changes: &[Change], captures: usize, out: &mut Vec<u8>) {
    let half = (captures as u64).saturating_sub(1);
    let mut next = 0u64;
    for (link, link_changes) in by_link(changes) {
        let (first, link_changes) = match link_changes {
            [Change { capture: 0, .. }, rest @ ..] => (u64::from(link) * 2 * half + half, rest),
            link_changes => (u64::from(link) * 2 * half, link_changes),
        };
        for change in link_changes {
            let place = first + u64::from(change.capture) - 1;
            let mut gap = place.wrapping_sub(next);
            while gap >= 0x80 {
                out.push(low_seven_bits(gap) | 0x80);
                gap >>= 7;
            }
            out.push(low_seven_bits(gap));
            next = place + 1;
        }
    }
}

fn low_seven_bits(number: u64) -> u8 {
    (number & 0x7f) as u8
}

/// The coded changes of a page with `links` links and `captures` captures, one after the other. The iterator ends after
/// the first error. A link's change at the first capture comes before its other changes.
///
/// # Errors
/// Broken numbers, and places outside the matrix or in both halves of a link.
pub(crate) fn decoded(
    bytes: &[u8],
    links: usize,
    captures: usize,
) -> impl Iterator<Item = Result<Change, PresenceError>> {
    Decoding {
        rest: bytes.iter(),
        next: Some(0),
        half: (captures as u64).saturating_sub(1),
        links,
        captures,
        start: 0,
        link: None,
        late: false,
        held: None,
    }
}

struct Decoding<'a> {
    rest: std::slice::Iter<'a, u8>,
    /// The lowest place that the next change may have; `None` after an error.
    next: Option<u64>,
    half: u64,
    links: usize,
    captures: usize,
    /// The first place of the link of the last change.
    start: u64,
    /// The link of the last change, and whether the change is in the second half.
    link: Option<u32>,
    late: bool,
    /// The change after a change at the first capture, which is returned next.
    held: Option<Change>,
}

impl Decoding<'_> {
    fn place(&mut self, place: u64) -> Option<Change> {
        let width = 2 * self.half;
        let mut link = self.link.unwrap_or(0);
        // Places rise, so the link is mostly the link of the change before. Then no division is needed.
        if self.link.is_none() || place - self.start >= width {
            link = u32::try_from(place.checked_div(width)?).ok().filter(|&link| (link as usize) < self.links)?;
            self.start = u64::from(link) * width;
        }
        let within = place - self.start;
        let late = within >= self.half;
        let capture = u32::try_from(within - if late { self.half } else { 0 }).ok()?.checked_add(1)?;
        let same = self.link.replace(link) == Some(link);
        if same && self.late != late {
            return None;
        }
        self.late = late;
        let change = Change { link, capture };
        if late && !same {
            self.held = Some(change);
            return Some(Change { link, capture: 0 });
        }
        Some(change)
    }
}

impl Iterator for Decoding<'_> {
    type Item = Result<Change, PresenceError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if let Some(change) = self.held.take() {
            return Some(Ok(change));
        }
        let from = self.next.take()?;
        let &first = self.rest.next()?;
        let Some(place) = read_gap(first, &mut self.rest).and_then(|gap| from.checked_add(gap)) else {
            return Some(Err(PresenceError::Broken));
        };
        let Some(change) = self.place(place) else {
            return Some(Err(PresenceError::Outside { place, links: self.links, captures: self.captures }));
        };
        self.next = place.checked_add(1);
        Some(Ok(change))
    }
}

/// Reads the rest of a LEB128 number after its first byte. `None` if the bytes end inside the number, or if it needs
/// more than 64 bits.
fn read_gap(first: u8, rest: &mut std::slice::Iter<'_, u8>) -> Option<u64> {
    let (mut gap, mut shift, mut byte) = (u64::from(first & 0x7f), 0u32, first);
    while byte >= 0x80 {
        byte = *rest.next()?;
        shift += 7;
        if shift > 63 || (shift == 63 && byte > 1) {
            return None;
        }
        gap |= u64::from(byte & 0x7f) << shift;
    }
    Some(gap)
}

/// Decodes changes of a page with `links` links and `captures` captures, appending to `out`.
///
/// # Errors
/// As [`decoded`]; `out` then holds the changes before the error.
pub(crate) fn decode(bytes: &[u8], links: usize, captures: usize, out: &mut Vec<Change>) -> Result<(), PresenceError> {
    for change in decoded(bytes, links, captures) {
        out.push(change?);
    }
    Ok(())
}

/// The changes of each link that has changes, in order.
pub fn by_link(changes: &[Change]) -> impl Iterator<Item = (u32, &[Change])> {
    changes
        .chunk_by(|a, b| a.link == b.link)
        .filter_map(|link_changes| link_changes.first().map(|change| (change.link, link_changes)))
}

/// Whether a link with these changes is present in at least one of the captures `first..=last`.
pub fn any_in(changes: &[Change], first: u32, last: u32) -> bool {
    let before = changes.partition_point(|change| change.capture <= first);
    before % 2 == 0 || changes.get(before).is_some_and(|change| change.capture <= last)
}

/// Calls `visit` with the links that are present in any of these stretches of captures, as rising ranges of indexes. A
/// stretch is given by its first and its last capture.
///
/// A blank capture counts as if it had the links of the capture before. Callers that must not count it begin and end
/// stretches at captures that are not blank. Cost: one pass over the changes.
pub(crate) fn visit_in(
    changes: &[Change],
    links: usize,
    stretches: &[(u32, u32)],
    mut visit: impl FnMut(Range<usize>),
) {
    if stretches.is_empty() {
        return;
    }
    let mut next = 0;
    for (link, link_changes) in by_link(changes) {
        if !stretches.iter().any(|&(first, last)| any_in(link_changes, first, last)) {
            visit(next..link as usize);
            next = link as usize + 1;
        }
    }
    visit(next..links);
}

/// The links that are present in at least one of the captures `first..=last`, as indexes; see `visit_in`.
pub fn in_any(changes: &[Change], links: usize, first: u32, last: u32) -> Vec<u32> {
    let mut found = Vec::with_capacity(links);
    let number = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
    visit_in(changes, links, &[(first, last)], |at| found.extend(number(at.start)..number(at.end)));
    found
}

/// The intervals of consecutive captures that have a link, as (first, last) indexes. `changes` are the changes of this
/// link.
pub fn intervals(changes: &[Change], captures: u32) -> Vec<(u32, u32)> {
    let mut intervals = Vec::new();
    let mut since = Some(0);
    for change in changes {
        since = match since {
            None => Some(change.capture),
            Some(first) => {
                if change.capture > first {
                    intervals.push((first, change.capture - 1));
                }
                None
            }
        };
    }
    if let Some(first) = since.filter(|&first| first < captures) {
        intervals.push((first, captures - 1));
    }
    intervals
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The changes of a plain matrix, link by link.
    fn changes_of(matrix: &[Vec<bool>]) -> Vec<Change> {
        let mut changes = Vec::new();
        for (link, row) in (0..).zip(matrix) {
            let mut before = true;
            for (capture, &bit) in (0..).zip(row) {
                if bit != before {
                    changes.push(Change { link, capture });
                }
                before = bit;
            }
        }
        changes
    }

    #[test]
    fn coded_bytes_are_as_documented() {
        // 2 links, 3 captures, so 4 places a link. Link 0 leaves at capture 1 (place 0) and is back at 2 (place 1);
        // link 1 comes at capture 2 (place 4 + 2 + 1 = 7). Gaps 0, 0, 5.
        let at = |link, capture| Change { link, capture };
        let changes = [at(0, 1), at(0, 2), at(1, 0), at(1, 2)];
        let mut bytes = Vec::new();
        encode(&changes, 3, &mut bytes);
        assert_eq!(bytes, [0, 0, 5]);
        // A gap of 149 takes two bytes.
        bytes.clear();
        encode(&[at(0, 150)], 1_000, &mut bytes);
        assert_eq!(bytes, [0x95, 0x01]);
    }

    #[test]
    fn broken_bytes_are_refused() {
        let try_decode = |bytes: &[u8], links, captures| decode(bytes, links, captures, &mut Vec::new());
        let outside = |place, links, captures| Err(PresenceError::Outside { place, links, captures });
        assert_eq!(try_decode(&[0x80], 9, 9), Err(PresenceError::Broken));
        let max = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert_eq!(try_decode(&max, 1, 1), outside(u64::MAX, 1, 1));
        assert_eq!(try_decode(&[0xff; 11], 9, 9), Err(PresenceError::Broken));
        assert_eq!(try_decode(&[&[0][..], &max].concat(), 9, 9), Err(PresenceError::Broken));
        assert_eq!(try_decode(&[4], 2, 2), outside(4, 2, 2));
        assert_eq!(try_decode(&[0], 2, 0), outside(0, 2, 0));
        assert_eq!(try_decode(&[0], 2, 1), outside(0, 2, 1));
        assert_eq!(try_decode(&[0, 0], 1, 2), outside(1, 1, 2), "in both halves");
    }

    fn matrix() -> impl Strategy<Value = Vec<Vec<bool>>> {
        (1usize..40).prop_flat_map(|captures| {
            let present_somewhere = |row: &Vec<bool>| row.contains(&true);
            let row = proptest::collection::vec(any::<bool>(), captures).prop_filter("empty", present_somewhere);
            proptest::collection::vec(row, 0..8)
        })
    }

    proptest! {
        #[test]
        fn changes_say_what_the_matrix_says(matrix in matrix(), first in 0u32..40, length in 0u32..40) {
            let captures = matrix.first().map_or(1, Vec::len);
            let changes = changes_of(&matrix);
            let mut bytes = Vec::new();
            encode(&changes, captures, &mut bytes);
            let mut decoded = Vec::new();
            decode(&bytes, matrix.len(), captures, &mut decoded).unwrap();
            prop_assert_eq!(&decoded, &changes);

            let count = u32::try_from(captures).unwrap();
            let first = first % count;
            let last = (first + length).min(count - 1);
            let expected: Vec<u32> = (0..).zip(&matrix)
                .filter(|(_, row)| row[first as usize..=last as usize].contains(&true)).map(|(link, _)| link).collect();
            prop_assert_eq!(in_any(&changes, matrix.len(), first, last), expected);

            for (link, row) in (0..).zip(&matrix) {
                let own: Vec<Change> = changes.iter().filter(|change| change.link == link).copied().collect();
                let mut again = vec![false; captures];
                for (first, last) in intervals(&own, count) {
                    prop_assert!(first == 0 || !again[first as usize - 1], "intervals touch");
                    again[first as usize..=last as usize].fill(true);
                }
                prop_assert_eq!(&again, row);
            }
        }

        #[test]
        fn any_bytes_decode_or_are_refused(
            bytes in proptest::collection::vec(any::<u8>(), 0..30),
            links in 0usize..5,
            captures in 0usize..5,
        ) {
            let mut changes = Vec::new();
            if decode(&bytes, links, captures, &mut changes).is_ok() {
                prop_assert!(changes.is_sorted());
                prop_assert!(changes.iter().all(|c| (c.link as usize) < links && (c.capture as usize) < captures));
            }
        }
    }
}
