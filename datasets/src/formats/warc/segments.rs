//! Records in segments: the first segment has the type of the record, the others are `continuation` records.
//!
//! The segments of a record are joined if all of them stand in one file, in their order. Other records may stand
//! between them. `WARC-Segment-Total-Length` of the last segment says that the record is whole. In all other cases, the
//! capture is that of the segments so far, and is cut ([`Cut::Segments`](crate::Cut)): at the end of the file, if a
//! segment is missing, and beyond the memory.
//!
//! Memory: [`BYTES_MAX`] of segments that wait, and [`RECORDS_MAX`] records.

use std::collections::VecDeque;

use xxhash_rust::xxh3::xxh3_64;

use crate::formats::record::{Fields, bare_uri};

/// The most bytes of all segments that wait for others.
const BYTES_MAX: usize = 16 << 20;
/// The most records that wait for segments.
const RECORDS_MAX: usize = 64;

/// A record that is joined from segments.
pub(super) struct Segmented {
    pub(super) header: Fields,
    pub(super) kind: String,
    pub(super) block: Vec<u8>,
    /// The place of the first segment, as in [`crate::formats::record::RecordSite`].
    pub(super) at: (u64, u64),
    /// Whether a segment has fewer bytes than its header says.
    pub(super) is_short: bool,
    /// Whether all segments are there.
    pub(super) is_whole: bool,
    id: u64,
    /// The number of the next segment.
    next: u64,
}

/// The records of a file that wait for segments.
#[derive(Default)]
pub(super) struct Segments {
    waiting: VecDeque<Segmented>,
    ready: VecDeque<Segmented>,
}

fn number(header: &Fields, name: &str) -> Option<u64> {
    header.get(name)?.parse().ok()
}

fn id(header: &Fields, name: &str) -> Option<u64> {
    header.get(name).map(|id| xxh3_64(bare_uri(&id).as_bytes()))
}

/// Whether a record is the first segment of several by its header.
pub(super) fn is_first(header: &Fields) -> bool {
    header.get("warc-segment-number").is_some() && header.get("warc-segment-total-length").is_none()
}

impl Segments {
    /// Whether a first segment of this length can wait for others.
    pub(super) fn has_room(bytes: usize) -> bool {
        bytes <= BYTES_MAX
    }

    /// Keeps a first segment until the others have come.
    pub(super) fn begin(&mut self, header: &Fields, kind: &str, block: &[u8], at: (u64, u64), is_short: bool) {
        let (header, kind, block) = (header.clone(), kind.to_owned(), block.to_vec());
        let id = id(&header, "warc-record-id").unwrap_or(0);
        self.waiting.push_back(Segmented { header, kind, block, at, is_short, is_whole: false, id, next: 2 });
        self.make_room();
    }

    /// Whether a continuation belongs to a record that waits for it.
    pub(super) fn is_awaited(&self, header: &Fields) -> bool {
        self.place(header).is_some()
    }

    fn place(&self, header: &Fields) -> Option<usize> {
        let origin = id(header, "warc-segment-origin-id")?;
        self.waiting.iter().position(|record| record.id == origin)
    }

    /// Adds a continuation to its record. A segment out of turn ends the record.
    pub(super) fn add(&mut self, header: &Fields, block: &[u8], is_short: bool) {
        let Some(place) = self.place(header) else { return };
        let record = &mut self.waiting[place];
        let is_next = number(header, "warc-segment-number") == Some(record.next);
        let total = number(header, "warc-segment-total-length");
        if is_next {
            record.block.extend_from_slice(block);
            record.is_short |= is_short;
            record.next += 1;
        }
        if !is_next || total.is_some() {
            record.is_whole = is_next && total == Some(record.block.len() as u64);
            self.ready.extend(self.waiting.remove(place));
        }
        self.make_room();
    }

    /// Stops waiting for the oldest records until the others fit.
    fn make_room(&mut self) {
        let bytes = |waiting: &VecDeque<Segmented>| waiting.iter().map(|record| record.block.len()).sum::<usize>();
        while self.waiting.len() > RECORDS_MAX || bytes(&self.waiting) > BYTES_MAX {
            self.ready.extend(self.waiting.pop_front());
        }
    }

    /// The next record that waits no longer. At the end of the file, no record waits any longer.
    pub(super) fn take(&mut self, is_end: bool) -> Option<Segmented> {
        self.ready.pop_front().or_else(|| if is_end { self.waiting.pop_front() } else { None })
    }
}
