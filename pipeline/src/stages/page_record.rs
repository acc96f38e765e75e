//! The encoding of a page over time in a record between stages.
//!
//! Timestamps: their number, the first as the number of [`wire::time_key`], then gaps. Blank captures: their number,
//! then gaps.
//! Changes of status: their captures in the same way, then the codes, 2 bytes each.
//! Links: their number, the first, then gaps. Links without URLs: their number; then 1 and a byte a link if links have
//! forms, otherwise 0. The byte contains the form, and in the high bit whether the link has the URL of the link before.
//! Changes: their number, then for each the number of links since the change before, and the capture. All numbers are
//! LEB128.
//! Evidence: the number of digests, then the digests, 8 bytes each; the number of revisits, then for each its capture,
//! a byte of bits (not modified, refers to a time, without a status, elsewhere), the time, and the links of its record;
//! the number of payloads, then for each its capture, the digest, and the links.

use crate::stages::records::{form_of, without_form};
use webstrata_engine::wire;
use webstrata_layers::{Change, Evidence, Page, Payload, Revisit, Status, StatusChange, Uid};

/// The place of a link among the links of all revisits of a page, or, for a payload, among the links of the page.
/// Records have places until UIDs are assigned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RevisitLink(pub(crate) u64);

impl From<RevisitLink> for u64 {
    fn from(link: RevisitLink) -> Self {
        link.0
    }
}

fn write_rising(out: &mut Vec<u8>, numbers: impl ExactSizeIterator<Item = u64>) {
    wire::put(out, numbers.len() as u64);
    let mut before = 0;
    for number in numbers {
        wire::put(out, number - before);
        before = number;
    }
}

fn read_rising(bytes: &mut &[u8], mut each: impl FnMut(u64)) {
    let mut before = 0;
    for _ in 0..wire::take(bytes) {
        before += wire::take(bytes);
        each(before);
    }
}

/// Appends timestamps, the indexes of blank captures, and changes of status.
pub(crate) fn write_times(out: &mut Vec<u8>, timestamps: &[i64], blank: &[u32], statuses: &[StatusChange]) {
    let lowest = i64::MIN.cast_unsigned();
    write_rising(out, timestamps.iter().map(|time| time.cast_unsigned().wrapping_sub(lowest)));
    write_rising(out, blank.iter().map(|&capture| capture.into()));
    write_rising(out, statuses.iter().map(|change| change.capture.into()));
    statuses.iter().for_each(|change| out.extend_from_slice(&change.status.number().to_be_bytes()));
}

fn read_times(bytes: &mut &[u8], page: &mut Page) {
    let lowest = i64::MIN.cast_unsigned();
    page.timestamps.clear();
    page.blank.clear();
    read_rising(bytes, |time| page.timestamps.push(time.wrapping_add(lowest).cast_signed()));
    let index = |capture: u64| u32::try_from(capture).unwrap_or(u32::MAX);
    read_rising(bytes, |capture| page.blank.push(index(capture)));
    page.statuses.clear();
    read_rising(bytes, |capture| page.statuses.push(StatusChange { capture: index(capture), status: Status::OK }));
    for change in &mut page.statuses {
        change.status = Status::stored(u16::from_be_bytes(wire::take_array(bytes))).unwrap_or(Status::OK);
    }
}

/// The bit in the byte of a form that marks a link with the URL of the link before.
const SAME_URL: u8 = 1 << 7;

/// Appends the number of links, and their forms.
pub(crate) fn write_forms(out: &mut Vec<u8>, links: &[u128]) {
    wire::put(out, links.len() as u64);
    let has_forms = links.iter().any(|&link| form_of(link) > 0);
    out.push(u8::from(has_forms));
    if has_forms {
        let mut before = None;
        for &link in links {
            let is_same = before.replace(without_form(link)) == Some(without_form(link));
            out.push(form_of(link) | if is_same { SAME_URL } else { 0 });
        }
    }
}

/// The links of a spooled page, without URLs.
#[derive(Clone, Debug, Default)]
pub(crate) struct SpooledLinks {
    /// The number of links.
    pub(crate) count: usize,
    /// A byte a link, as written; empty if all forms are 0.
    forms: Vec<u8>,
}

impl SpooledLinks {
    /// Returns for each link the number of its URL, from 0, and its form.
    pub(crate) fn each(&self) -> impl Iterator<Item = (usize, u8)> + '_ {
        let mut urls = 0;
        (0..self.count).map(move |at| {
            let byte = self.forms.get(at).copied().unwrap_or(0);
            urls += usize::from(byte & SAME_URL == 0);
            (urls - 1, byte & !SAME_URL)
        })
    }

    /// Returns the number of distinct URLs of the links.
    pub(crate) fn urls(&self) -> usize {
        self.count - self.forms.iter().filter(|&&byte| byte & SAME_URL != 0).count()
    }
}

fn read_forms(bytes: &mut &[u8]) -> SpooledLinks {
    let count = wire::take_usize(bytes);
    let [has_forms] = wire::take_array(bytes);
    let (forms, rest) = bytes.split_at(if has_forms == 1 { count.min(bytes.len()) } else { 0 });
    *bytes = rest;
    SpooledLinks { count, forms: forms.to_vec() }
}

/// Appends changes.
pub(crate) fn write_changes(out: &mut Vec<u8>, changes: &[Change]) {
    wire::put(out, changes.len() as u64);
    let mut link = 0;
    for change in changes {
        wire::put(out, (change.link - link).into());
        wire::put(out, change.capture.into());
        link = change.link;
    }
}

fn read_changes(bytes: &mut &[u8], changes: &mut Vec<Change>) {
    changes.clear();
    let mut link = 0;
    for _ in 0..wire::take(bytes) {
        link += wire::take_u32(bytes);
        changes.push(Change { link, capture: wire::take_u32(bytes) });
    }
}

/// Appends evidence.
pub(crate) fn write_evidence<L: Copy + Into<u64>>(out: &mut Vec<u8>, evidence: &Evidence<L>) {
    wire::put(out, evidence.digests.len() as u64);
    evidence.digests.iter().for_each(|digest| out.extend_from_slice(&digest.to_be_bytes()));
    wire::put(out, evidence.revisits.len() as u64);
    for Revisit { capture, not_modified, without_status, elsewhere, referred, links } in &evidence.revisits {
        wire::put(out, (*capture).into());
        let bits = [*not_modified, referred.is_some(), *without_status, *elsewhere];
        out.push((0..).zip(bits).map(|(at, bit)| u8::from(bit) << at).sum());
        referred.iter().for_each(|&time| wire::put_signed(out, time));
        write_rising(out, links.iter().map(|&link| link.into()));
    }
    wire::put(out, evidence.payloads.len() as u64);
    for Payload { capture, digest, links } in &evidence.payloads {
        wire::put(out, (*capture).into());
        out.extend_from_slice(&digest.to_be_bytes());
        write_rising(out, links.iter().map(|&link| link.into()));
    }
}

fn read_evidence<L>(bytes: &mut &[u8], evidence: &mut Evidence<L>, link_of: fn(u64) -> L) {
    evidence.digests.clear();
    evidence.revisits.clear();
    evidence.payloads.clear();
    for _ in 0..wire::take(bytes) {
        evidence.digests.push(u64::from_be_bytes(wire::take_array(bytes)));
    }
    for _ in 0..wire::take(bytes) {
        let capture = wire::take_u32(bytes);
        let [bits] = wire::take_array(bytes);
        let referred = (bits & 2 != 0).then(|| wire::take_signed(bytes));
        let mut links = Vec::new();
        read_rising(bytes, |link| links.push(link_of(link)));
        let (not_modified, without_status, elsewhere) = (bits & 1 != 0, bits & 4 != 0, bits & 8 != 0);
        evidence.revisits.push(Revisit { capture, not_modified, without_status, elsewhere, referred, links });
    }
    for _ in 0..wire::take(bytes) {
        let (capture, digest) = (wire::take_u32(bytes), u64::from_be_bytes(wire::take_array(bytes)));
        let mut links = Vec::new();
        read_rising(bytes, |link| links.push(link_of(link)));
        evidence.payloads.push(Payload { capture, digest, links });
    }
}

/// Reads a spooled page, except for UID and links. Returns the links without URLs, the number of links of revisits
/// (links of revisits in `evidence` are indexes into these, links of payloads into the links), and the data about held
/// links.
pub(crate) fn read_spooled<'a>(
    mut bytes: &'a [u8],
    page: &mut Page,
    evidence: &mut Evidence<RevisitLink>,
) -> (SpooledLinks, usize, &'a [u8]) {
    read_times(&mut bytes, page);
    let links = read_forms(&mut bytes);
    read_changes(&mut bytes, &mut page.changes);
    read_evidence(&mut bytes, evidence, RevisitLink);
    let of_revisits = wire::take_usize(&mut bytes);
    (links, of_revisits, bytes)
}

/// Appends a page, which may be formed, without its UID.
pub(crate) fn write(out: &mut Vec<u8>, page: &Page, evidence: &Evidence) {
    write_times(out, &page.timestamps, &page.blank, &page.statuses);
    write_rising(out, page.links.iter().map(|link| link.0));
    write_changes(out, &page.changes);
    write_evidence(out, evidence);
}

/// Reads the page that [`write`] wrote, and returns the bytes after the page.
pub(crate) fn read<'a>(mut bytes: &'a [u8], page: &mut Page, evidence: &mut Evidence) -> &'a [u8] {
    read_times(&mut bytes, page);
    page.links.clear();
    read_rising(&mut bytes, |link| page.links.push(Uid(link)));
    read_changes(&mut bytes, &mut page.changes);
    read_evidence(&mut bytes, evidence, Uid);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_come_back() {
        let page = Page {
            uid: Uid(0),
            timestamps: vec![i64::MIN, -5, 0, 1_146_441_600],
            blank: vec![0, 2],
            links: [0, 7, u64::MAX].map(Uid).to_vec(),
            changes: vec![
                Change { link: 1, capture: 1 },
                Change { link: 1, capture: 3 },
                Change { link: 2, capture: 1 },
            ],
            statuses: [(1, 301), (2, 404), (3, 200)]
                .map(|(capture, code)| StatusChange { capture, status: Status::new(code).unwrap() })
                .to_vec(),
        };
        let revisit = |capture, referred| Revisit {
            capture,
            not_modified: capture > 0,
            without_status: capture == 0,
            elsewhere: capture == 2,
            referred,
            links: [1, 9].map(Uid).to_vec(),
        };
        let evidence = Evidence {
            digests: vec![1, 0, u64::MAX, 3],
            payloads: [(1, vec![Uid(u64::MAX)]), (2, vec![])]
                .map(|(digest, links)| Payload { capture: 3, digest, links })
                .to_vec(),
            revisits: vec![revisit(0, Some(-9)), revisit(2, None)],
            forms: vec![],
        };
        let (mut bytes, mut back) =
            (Vec::new(), (Page { links: [3].map(Uid).to_vec(), ..Page::default() }, evidence.clone()));
        write(&mut bytes, &page, &evidence);
        read(&bytes, &mut back.0, &mut back.1);
        assert_eq!(back, (page, evidence));
    }
}
