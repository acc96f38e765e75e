//! How a page over time stands in a record between stages.
//!
//! Timestamps: their number, the first in [`wire::time_key`], then gaps. Unknown captures: their number, then gaps.
//! Links: their number, the first, then gaps. Changes: their number, then for each the links since the one before and
//! the capture. All LEB128.

use crate::wire;
use webstrata_layers::Page;
use webstrata_layers::presence::Change;

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

/// Appends timestamps and the indexes of unknown captures.
pub(crate) fn write_times(out: &mut Vec<u8>, timestamps: &[i64], unknown: &[u32]) {
    let lowest = i64::MIN.cast_unsigned();
    write_rising(out, timestamps.iter().map(|time| time.cast_unsigned().wrapping_sub(lowest)));
    write_rising(out, unknown.iter().map(|&capture| capture.into()));
}

fn read_times(bytes: &mut &[u8], page: &mut Page) {
    let lowest = i64::MIN.cast_unsigned();
    page.timestamps.clear();
    page.unknown.clear();
    read_rising(bytes, |time| page.timestamps.push(time.wrapping_add(lowest).cast_signed()));
    read_rising(bytes, |capture| page.unknown.push(u32::try_from(capture).unwrap_or(u32::MAX)));
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

/// Reads a spooled page: all but UID and links, and returns the number of links.
pub(crate) fn read_spooled(mut bytes: &[u8], page: &mut Page) -> usize {
    read_times(&mut bytes, page);
    let links = wire::take_usize(&mut bytes);
    read_changes(&mut bytes, &mut page.changes);
    links
}

/// Appends all of a page but its UID.
pub(crate) fn write(out: &mut Vec<u8>, page: &Page) {
    write_times(out, &page.timestamps, &page.unknown);
    write_rising(out, page.links.iter().copied());
    write_changes(out, &page.changes);
}

/// Reads what [`write`] wrote.
pub(crate) fn read(mut bytes: &[u8], page: &mut Page) {
    read_times(&mut bytes, page);
    page.links.clear();
    read_rising(&mut bytes, |link| page.links.push(link));
    read_changes(&mut bytes, &mut page.changes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_come_back() {
        let page = Page {
            uid: 0,
            timestamps: vec![i64::MIN, -5, 0, 1_146_441_600],
            unknown: vec![0, 2],
            links: vec![0, 7, u64::MAX],
            changes: vec![
                Change { link: 1, capture: 1 },
                Change { link: 1, capture: 3 },
                Change { link: 2, capture: 1 },
            ],
        };
        let (mut bytes, mut back) = (Vec::new(), Page { links: vec![3], ..Page::default() });
        write(&mut bytes, &page);
        read(&bytes, &mut back);
        assert_eq!(back, page);
    }
}
