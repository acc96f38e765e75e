//! Records that travel from stage to stage, where more than one file reads or writes them.

use crate::engine::wire;
use webstrata_layers::record::form::FORMS;

/// The kinds of capture records.
pub(crate) mod kind {
    /// Links; then 16 bytes of digest, zeros where there is none.
    pub(crate) const LINKS: u8 = 0;
    /// A revisit with an identical digest; then 16 bytes of digest, 8 of the time referred to, zeros for none, and a
    /// byte: 1 where the record gives no status, else 0.
    pub(crate) const IDENTICAL: u8 = 1;
    /// A revisit with `304 Not Modified`; then as for `IDENTICAL`.
    pub(crate) const NOT_MODIFIED: u8 = 2;
    /// The links of another capture of the page; then 16 bytes of digest and 16 of
    /// [`hash_of`](crate::stages::ingest::known_links::hash_of) those links.
    pub(crate) const SAME: u8 = 3;
    /// Links of a capture with another status than 200; then 2 bytes of status and 16 of digest.
    pub(crate) const STATUS: u8 = 4;
    /// Links of a record without a date; how new it is stands before the 2 bytes of status and the 16 of digest, so
    /// that after all others of a page and second come those without a date, the newest first.
    pub(crate) const UNDATED: u8 = 5;
    /// A revisit of another URL with an identical digest; then as for `IDENTICAL`.
    pub(crate) const ELSEWHERE: u8 = 6;
    /// Links of another capture for a revisit of another URL, after all other records of its second; then 16 bytes of
    /// digest.
    pub(crate) const LENT: u8 = 7;
    /// The key of the page, only with `--min-sources`; no capture.
    pub(crate) const NAME: u8 = 8;
    /// A link that the store has held ([`crate::stages::held::links`]); no capture.
    pub(crate) const HELD: u8 = 9;
}

/// What is kept of a digest.
pub(crate) fn short(digest: u128) -> u64 {
    let [high, low] = [digest >> 64, digest & u128::from(u64::MAX)];
    u64::try_from(high ^ low).unwrap_or(0)
}

/// The bits of a fingerprint that are left to the form of a link ([`webstrata_layers::record::form`]), so that a link
/// and its form are one number.
const FORM_BITS: u128 = FORMS as u128 - 1;

/// A fingerprint that leaves room for a form.
pub(crate) fn without_form(fingerprint: u128) -> u128 {
    fingerprint & !FORM_BITS
}

/// A link and its form.
pub(crate) fn with_form(fingerprint: u128, form: u8) -> u128 {
    without_form(fingerprint) | u128::from(form) & FORM_BITS
}

/// The form of a link.
pub(crate) fn form_of(link: u128) -> u8 {
    u8::try_from(link & FORM_BITS).unwrap_or(0)
}

/// The worker that owns a fingerprint.
#[expect(clippy::cast_possible_truncation, reason = "below the number of workers")]
pub(crate) fn owner(fingerprint: u128, workers: usize) -> usize {
    ((fingerprint >> 64) % workers as u128) as usize
}

/// A request for the UID of a URL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Request {
    /// The worker that has the page.
    pub(crate) worker: usize,
    /// The number of the page on that worker.
    pub(crate) number: u64,
    /// 0 is the page itself, n + 1 its n-th link; after these come the links of revisits, and those that were held.
    pub(crate) slot: u64,
    /// For the page itself: how many links it has; else 1 for a link of a capture, 0 for others.
    pub(crate) links: u64,
    /// Whether it is the first of the page for this URL.
    pub(crate) is_first: bool,
}

/// In the place of the number of links: the page has asked for this URL before.
const ASKED_BEFORE: u64 = 2;

impl Request {
    pub(crate) fn write(self, out: &mut Vec<u8>) {
        out.clear();
        wire::put(out, self.worker as u64);
        wire::put(out, self.number);
        wire::put(out, self.slot);
        // One link is the rule, and takes no byte.
        if self.slot == 0 || self.links == 0 {
            wire::put(out, if self.is_first { self.links } else { ASKED_BEFORE });
        }
    }

    pub(crate) fn read(mut bytes: &[u8]) -> Self {
        let (worker, number) = (wire::take_usize(&mut bytes), wire::take(&mut bytes));
        let slot = wire::take(&mut bytes);
        let links = if slot > 0 && bytes.is_empty() { 1 } else { wire::take(&mut bytes) };
        let is_first = slot == 0 || links != ASKED_BEFORE;
        Request { worker, number, slot, links: if is_first { links } else { 0 }, is_first }
    }

    /// What the URL has to do for this request: an in-link, or its out-links.
    pub(crate) fn weight(self) -> u64 {
        self.links
    }
}

/// What follows the fingerprint of a rare URL.
pub(crate) const RARE: u8 = 1;

/// The fingerprint of a URL record, and whether the URL is rare.
pub(crate) fn fingerprint_of(payload: &[u8]) -> (&[u8], bool) {
    let (fingerprint, mark) = payload.split_at(payload.len().min(16));
    (fingerprint, mark == [RARE])
}

/// Days since 1970. Time ranges begin with whole ones, whatever their length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Day(i32);

impl Day {
    const SECONDS: i64 = 24 * 60 * 60;

    /// The day of a second since 1970.
    pub(crate) fn of(seconds: i64) -> Self {
        let day = seconds.div_euclid(Self::SECONDS);
        Self(i32::try_from(day).unwrap_or(if day < 0 { i32::MIN } else { i32::MAX }))
    }
}

/// Appends rising days, each once.
pub(crate) fn append_starts(out: &mut Vec<u8>, days: impl Iterator<Item = Option<Day>>) {
    let mut last = None;
    for Day(day) in days.flatten() {
        match last {
            None => wire::put_signed(out, day.into()),
            Some(last) if last == day => continue,
            Some(last) => wire::put(out, day.abs_diff(last).into()),
        }
        last = Some(day);
    }
}

/// Reads what [`append_starts`] wrote: seconds since 1970.
pub(crate) fn read_starts(mut bytes: &[u8], starts: &mut Vec<i64>) {
    let mut day = None;
    while !bytes.is_empty() {
        let next = match day {
            None => wire::take_signed(&mut bytes),
            Some(day) => wire::take(&mut bytes).cast_signed().saturating_add(day),
        };
        starts.push(next.saturating_mul(Day::SECONDS));
        day = Some(next);
    }
}
