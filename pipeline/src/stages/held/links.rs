//! The data that travels with a page if links may be held ([`crate::stages::held`]): the key of the page, and the links
//! of the page that the store has held so far.
//!
//! A spooled page has this data at its end; in stores without `--min-sources`, the data is empty. Encoding: length of
//! the key and the key, the number of URLs, the number of links, then for each link its URL, its form or
//! [`OF_REVISITS`] in a byte, the digest of its payloads or 0, the number of times, and the times: the first as
//! [`wire::put_signed`], then gaps. All numbers are LEB128. A URL is a fingerprint (16 bytes) while captures are
//! accumulated, then an index into the held URLs of the page, then a UID plus 1, or 0 without a UID.
//!
//! Held links have numbers instead of UIDs: [`HELD`], the worker that has the text of the URL, and the place of the
//! text there.

use webstrata_engine::wire;
use webstrata_layers::Uid;
use webstrata_layers::held::OF_REVISITS;
use webstrata_layers::record::form::{formed, link_of};

/// The bit of held numbers. No store has this many URLs, and forms take higher bits.
const HELD: u64 = 1 << 55;
/// The number of bits for the place of a text.
const PLACE_BITS: u32 = 40;

/// Returns the number of a held URL with its text at this place on this worker.
pub(crate) fn held_number(worker: usize, place: u64) -> Uid {
    Uid(HELD | (worker as u64) << PLACE_BITS | place)
}

/// Whether a link is held; the link may have a form or not.
pub(crate) fn is_held(link: Uid) -> bool {
    link_of(link).0 & HELD != 0
}

/// Returns the worker that has the text of a held URL, and the place there.
pub(crate) fn place_of(number: Uid) -> (usize, u64) {
    let number = link_of(number).0 & !HELD;
    (usize::try_from(number >> PLACE_BITS).unwrap_or(0), number & ((1 << PLACE_BITS) - 1))
}

/// A link that the store has held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HeldLink {
    /// The UID, or the number of a held URL, with the form.
    pub(crate) link: Uid,
    /// Whether the link is in records of revisits.
    pub(crate) of_revisits: bool,
    /// The digest of the payloads that have the link; 0 if captures or revisits have it.
    pub(crate) digest: u64,
    /// The times at which the link is there, as in [`webstrata_layers::held`].
    pub(crate) times: Vec<i64>,
}

/// Appends ascending times.
pub(crate) fn write_times(out: &mut Vec<u8>, times: &[i64]) {
    wire::put(out, times.len() as u64);
    let mut last = None;
    for &time in times {
        match last {
            None => wire::put_signed(out, time),
            Some(last) => wire::put(out, time.abs_diff(last)),
        }
        last = Some(time);
    }
}

/// Reads the times that [`write_times`] wrote.
pub(crate) fn read_times(bytes: &mut &[u8]) -> Vec<i64> {
    let (count, mut last) = (wire::take(bytes), None);
    let next = |_| {
        let time = match last {
            None => wire::take_signed(bytes),
            Some(last) => wire::take(bytes).cast_signed().saturating_add(last),
        };
        last = Some(time);
        time
    };
    (0..count).map(next).collect()
}

/// Appends a held link in the form of a capture record.
pub(crate) fn write_record(out: &mut Vec<u8>, fingerprint: u128, (form, digest): (u8, u64), times: &[i64]) {
    out.extend_from_slice(&fingerprint.to_be_bytes());
    out.push(form);
    wire::put(out, digest);
    write_times(out, times);
}

/// The data that was accumulated for a page besides its captures.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Accumulated {
    /// The key of the page; empty without `--min-sources`.
    pub(crate) key: Vec<u8>,
    /// The held links in the form of capture records, one after the other, ascending.
    links: Vec<u8>,
    count: u64,
    /// The fingerprints of the URLs of these links, ascending, each once.
    pub(crate) urls: Vec<u128>,
}

impl Accumulated {
    /// Adds a held link; links must come in ascending order.
    pub(crate) fn add(&mut self, record: &[u8]) {
        let mut link = record;
        let fingerprint = u128::from_be_bytes(wire::take_array(&mut link));
        if self.urls.last() != Some(&fingerprint) {
            self.urls.push(fingerprint);
        }
        self.links.extend_from_slice(record);
        self.count += 1;
    }

    pub(crate) fn clear(&mut self) {
        self.key.clear();
        self.forget_links();
    }

    /// Leaves out the links.
    pub(crate) fn forget_links(&mut self) {
        self.links.clear();
        self.urls.clear();
        self.count = 0;
    }

    /// Appends the data to a spooled page.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        if self.key.is_empty() {
            return;
        }
        write_head(out, &self.key, self.urls.len());
        wire::put(out, self.count);
        let (mut links, mut url) = (&self.links[..], 0);
        for _ in 0..self.count {
            let fingerprint = u128::from_be_bytes(wire::take_array(&mut links));
            while self.urls[url] != fingerprint {
                url += 1;
            }
            wire::put(out, url as u64);
            let [form] = wire::take_array(&mut links);
            out.push(form);
            copy_times(&mut links, out);
        }
    }
}

fn write_head(out: &mut Vec<u8>, key: &[u8], urls: usize) {
    wire::put(out, key.len() as u64);
    out.extend_from_slice(key);
    wire::put(out, urls as u64);
}

/// Copies the digest and the times of a link.
fn copy_times(from: &mut &[u8], out: &mut Vec<u8>) {
    wire::put(out, wire::take(from));
    let count = wire::take(from);
    wire::put(out, count);
    for _ in 0..count {
        wire::put(out, wire::take(from));
    }
}

/// Returns the number of held URLs of a spooled page.
pub(crate) fn urls_of(mut spooled: &[u8]) -> usize {
    if spooled.is_empty() {
        return 0;
    }
    take_key(&mut spooled);
    wire::take_usize(&mut spooled)
}

fn take_key<'a>(bytes: &mut &'a [u8]) -> &'a [u8] {
    let length = wire::take_usize(bytes);
    let (key, rest) = bytes.split_at(length.min(bytes.len()));
    *bytes = rest;
    key
}

/// Appends spooled data with UIDs, given the UIDs of its URLs.
pub(crate) fn write_with_uids(out: &mut Vec<u8>, mut spooled: &[u8], uids: &[Option<Uid>]) {
    if spooled.is_empty() {
        return;
    }
    write_head(out, take_key(&mut spooled), uids.len());
    let _ = wire::take(&mut spooled);
    let count = wire::take(&mut spooled);
    wire::put(out, count);
    for _ in 0..count {
        let uid = uids.get(wire::take_usize(&mut spooled)).copied().flatten();
        let [form] = wire::take_array(&mut spooled);
        wire::put(out, uid.map_or(0, |uid| uid.0 + 1));
        out.push(form);
        copy_times(&mut spooled, out);
    }
}

/// Reads the data that [`write_with_uids`] wrote: the key of the page, and the links to URLs that have a UID.
pub(crate) fn read(mut bytes: &[u8], key: &mut Vec<u8>, links: &mut Vec<HeldLink>) {
    key.clear();
    links.clear();
    if bytes.is_empty() {
        return;
    }
    key.extend_from_slice(take_key(&mut bytes));
    let _ = wire::take(&mut bytes);
    for _ in 0..wire::take(&mut bytes) {
        let uid = wire::take(&mut bytes).checked_sub(1).map(Uid);
        let [form] = wire::take_array(&mut bytes);
        let digest = wire::take(&mut bytes);
        let times = read_times(&mut bytes);
        let of_revisits = form == OF_REVISITS;
        let link = uid.map(|uid| formed(uid, if of_revisits { 0 } else { form }));
        links.extend(link.map(|link| HeldLink { link, of_revisits, digest, times }));
    }
}
