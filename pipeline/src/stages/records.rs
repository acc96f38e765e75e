//! Records that travel from stage to stage and that more than one file reads or writes.

use webstrata_engine::wire;
use webstrata_layers::record::form::FORMS;

/// The kinds of capture records.
pub(crate) mod kind {
    /// Links; then 16 bytes of digest, zeros without a digest.
    pub(crate) const LINKS: u8 = 0;
    /// A revisit with an identical digest; then 16 bytes of digest, 8 of the time referred to, zeros for none, and a
    /// byte: 1 if the record gives no status, otherwise 0.
    pub(crate) const IDENTICAL: u8 = 1;
    /// A revisit with `304 Not Modified`; then as for `IDENTICAL`.
    pub(crate) const NOT_MODIFIED: u8 = 2;
    /// The same links as another capture of the page; then 16 bytes of digest and 16 of
    /// [`hash_of`](crate::stages::ingest::known_links::hash_of) the links.
    pub(crate) const SAME: u8 = 3;
    /// Links of a capture with another status than 200; then 2 bytes of status and 16 of digest.
    pub(crate) const STATUS: u8 = 4;
    /// Links of a record without a date; then bytes that sort newer records first, 2 bytes of status and 16 of digest.
    /// Records without a date therefore sort after the dated records with links of the page and second, the newest
    /// first.
    pub(crate) const UNDATED: u8 = 5;
    /// A revisit of another URL with an identical digest; then as for `IDENTICAL`.
    pub(crate) const ELSEWHERE: u8 = 6;
    /// Links of another capture for a revisit of another URL; then 2 bytes of status and 16 of digest. These records
    /// sort after all other records of their second.
    pub(crate) const LENT: u8 = 7;
    /// The key of the page, only with `--min-sources`; not a capture.
    pub(crate) const NAME: u8 = 8;
    /// A link that the store has held ([`crate::stages::held::links`]); not a capture.
    pub(crate) const HELD: u8 = 9;
}

/// Returns the 64 bits of a digest that are kept.
pub(crate) fn short(digest: u128) -> u64 {
    let [high, low] = [digest >> 64, digest & u128::from(u64::MAX)];
    u64::try_from(high ^ low).unwrap_or(0)
}

/// The bits of a fingerprint that are reserved for the form of a link ([`webstrata_layers::record::form`]), so that a
/// link and its form are one number.
const FORM_BITS: u128 = FORMS as u128 - 1;

/// Returns a fingerprint that leaves room for a form.
pub(crate) fn without_form(fingerprint: u128) -> u128 {
    fingerprint & !FORM_BITS
}

/// Returns a link and its form as one number.
pub(crate) fn with_form(fingerprint: u128, form: u8) -> u128 {
    without_form(fingerprint) | u128::from(form) & FORM_BITS
}

/// Returns the form of a link.
pub(crate) fn form_of(link: u128) -> u8 {
    u8::try_from(link & FORM_BITS).unwrap_or(0)
}

/// Returns the worker that owns a fingerprint.
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
    /// 0 for the page itself, n + 1 for its n-th link. Links of revisits and held links have higher numbers.
    pub(crate) slot: u64,
    /// For the page itself, the number of its links; otherwise 1 for a link of a capture, 0 for other links.
    pub(crate) links: u64,
    /// Whether this is the first request of the page for this URL.
    pub(crate) is_first: bool,
}

/// Written instead of the number of links if the page has asked for this URL before.
const ASKED_BEFORE: u64 = 2;

impl Request {
    pub(crate) fn write(self, out: &mut Vec<u8>) {
        out.clear();
        wire::put(out, self.worker as u64);
        wire::put(out, self.number);
        wire::put(out, self.slot);
        // Most requests are for one link, and then the number takes no byte.
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

    /// Returns the work of the URL because of this request: an in-link, or its out-links.
    pub(crate) fn weight(self) -> u64 {
        self.links
    }
}

/// The byte after the fingerprint of a rare URL.
pub(crate) const RARE: u8 = 1;

/// Returns the fingerprint of a URL record, and whether the URL is rare.
pub(crate) fn fingerprint_of(payload: &[u8]) -> (&[u8], bool) {
    let (fingerprint, mark) = payload.split_at(payload.len().min(16));
    (fingerprint, mark == [RARE])
}

/// Days since 1970. Every time range begins at the start of a day, whatever its length.
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

/// Appends ascending days, each once.
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

/// Reads the days that [`append_starts`] wrote, as seconds since 1970.
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
