//! The payloads of a page ([`webstrata_layers::Payload`]) while it is accumulated: the links of each second by digest.
//!
//! Nearly every second has the links of one record. Nothing is kept of such a second after its end. Other seconds keep
//! the links of each digest until the end of the page, because the links of some records are known only there.
//!
//! Memory: the links of the current second, and of the seconds that may have payloads.

use super::AccumulatedPage;
use crate::stages::large_pages::REVISIT_VALUES;
use crate::stages::page_record::RevisitLink;
use webstrata_layers::Payload;

/// The least number of links at which a part looks for links that it has several times.
const LINKS_MIN: usize = 1 << 10;

/// The links of the records with one digest. The digest 0 stands for everything else that gives the capture links.
#[derive(Clone, Debug, Default)]
pub(super) struct Part {
    pub(super) payload: Payload<u128>,
    /// The hashes of sets of links that are in other records.
    pub(super) same: Vec<u128>,
    /// The number of links at which the part is next made shorter.
    full: usize,
}

impl Part {
    /// Adds links. The part takes memory for each link once, however many records have it.
    pub(super) fn extend(&mut self, links: impl IntoIterator<Item = u128>) {
        let Payload { links: all, .. } = &mut self.payload;
        all.extend(links);
        if all.len() > self.full.max(LINKS_MIN) {
            all.sort_unstable();
            all.dedup();
            self.full = 2 * all.len();
        }
    }

    /// Whether the part has all links of another part, as far as is known.
    fn has_all_of(&self, other: &Part) -> bool {
        other.same.iter().all(|hash| self.same.contains(hash))
            && other.payload.links.iter().all(|link| self.payload.links.binary_search(link).is_ok())
    }
}

/// The parts of the current second, and of the seconds before that may have payloads.
#[derive(Debug, Default)]
pub(super) struct Parts {
    current: Vec<Part>,
    /// Sorted by capture and digest, without the digest 0.
    pub(super) kept: Vec<Part>,
    /// The number of values of the payloads that are sure to be kept.
    pub(super) values: usize,
}

impl Parts {
    /// Returns the part of a digest in the current second. Records come in order of their digests, so the last part is
    /// the one or a new one is; parts of one digest are joined at the end of the second.
    pub(super) fn of(&mut self, digest: u64) -> &mut Part {
        if self.current.last().is_none_or(|last| last.payload.digest != digest) {
            self.current.push(Part { payload: Payload { digest, ..Payload::default() }, ..Part::default() });
        }
        let last = self.current.len() - 1;
        &mut self.current[last]
    }

    /// No record of the second has a digest any more.
    pub(super) fn forget_digests(&mut self) {
        self.current.iter_mut().for_each(|part| part.payload.digest = 0);
    }

    /// Ends the second. `capture` is the number of the capture if it is not a revisit.
    pub(super) fn end(&mut self, capture: Option<u32>) {
        if self.current.len() < 2 || capture.is_none() {
            return self.current.clear();
        }
        let mut parts = std::mem::take(&mut self.current);
        parts.sort_by_key(|part| part.payload.digest);
        parts.dedup_by(|next, first| {
            let is_same = next.payload.digest == first.payload.digest;
            if is_same {
                first.payload.links.append(&mut next.payload.links);
                first.same.append(&mut next.same);
            }
            is_same
        });
        for part in &mut parts {
            part.payload.capture = capture.unwrap_or(0);
            part.payload.links.sort_unstable();
            part.payload.links.dedup();
        }
        let is_sure = match &parts[..] {
            [other, only] if other.payload.digest == 0 && only.has_all_of(other) => return,
            [other, only] if other.payload.digest == 0 => other.same.is_empty() && only.same.is_empty(),
            [_] => return,
            _ => true,
        };
        for part in parts.into_iter().filter(|part| part.payload.digest != 0) {
            self.values += usize::from(is_sure) * (REVISIT_VALUES + part.payload.links.len());
            self.kept.push(part);
        }
    }

    /// Makes the payloads of the page, whose links and changes are there. Returns whether all fit into this number of
    /// values.
    pub(super) fn gather(&mut self, page: &mut AccumulatedPage, values_left: usize) -> bool {
        let mut payloads: Vec<_> = std::mem::take(&mut self.kept).into_iter().map(|part| part.payload).collect();
        Payload::unite(&mut payloads);
        let counts = if payloads.is_empty() { Vec::new() } else { links_of_captures(page) };
        let mut values = page.links.len() + page.changes.len();
        for payloads in payloads.chunk_by(|one, other| one.capture == other.capture) {
            if !Payload::say_more(payloads, counts[payloads[0].capture as usize]) {
                continue;
            }
            for Payload { capture, digest, links } in payloads {
                values += REVISIT_VALUES + links.len();
                let index = |link| page.links.binary_search(link).map_or(u64::MAX, |at| at as u64);
                let links = links.iter().map(index).map(RevisitLink).collect();
                page.evidence.payloads.push(Payload { capture: *capture, digest: *digest, links });
            }
        }
        values <= values_left
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

/// Returns the number of links of each capture; 0 for a blank capture.
fn links_of_captures(page: &AccumulatedPage) -> Vec<usize> {
    let mut deltas = vec![0i64; page.timestamps.len()];
    for of_link in page.changes.chunk_by(|one, other| one.link == other.link) {
        // Before its first change, a link is present.
        for (at, change) in of_link.iter().enumerate() {
            deltas[change.capture as usize] += if at % 2 == 0 { -1 } else { 1 };
        }
    }
    let mut count = i64::try_from(page.links.len()).unwrap_or(i64::MAX);
    let mut counts: Vec<usize> = deltas
        .into_iter()
        .map(|delta| {
            count += delta;
            usize::try_from(count).unwrap_or(0)
        })
        .collect();
    page.blank.iter().for_each(|&capture| counts[capture as usize] = 0);
    counts
}
