//! Rows of URLs without captures and links, for tests of epochs that need no contents.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]
#![allow(dead_code, reason = "each test uses a part of it")]

use webstrata_layers::*;

/// Writes a row of `urls` URLs.
pub(crate) fn plain_row(row: &RowDir, first_uid: u64, urls: u64) -> RowEntry {
    let mut file = UrlWriter::create(row, 0).unwrap();
    for uid in first_uid..first_uid + urls {
        file.push(Uid(uid), &format!("http://z.example/{uid:06}"), "example,z)/").unwrap();
    }
    let first_key = file.first_key();
    let sides = [
        OutlinksWriter::create(row, 0).unwrap().finish().unwrap(),
        InlinksWriter::create(row, 0).unwrap().finish().unwrap(),
    ];
    let files = [file.finish().unwrap(), sides.concat()].concat();
    let partitions =
        vec![PartitionEntry { partition: 0, first_uid: Uid(first_uid), urls, first_record: Uid(0), first_key, files }];
    let counts = Counts { urls, ..Counts::default() };
    RowEntry {
        row: row.row(),
        first_uid: Uid(first_uid),
        urls,
        updates: 1,
        removes: false,
        displaces: false,
        elsewhere: 0,
        partitions,
        counts,
    }
}

/// An epoch of these rows.
pub(crate) fn epoch_of(rows: Vec<RowEntry>, translation: Option<TranslationEntry>) -> NewEpoch {
    NewEpoch { rows, in_range: RangeLength::Month, provenance: Provenance::default(), translation }
}

pub(crate) fn writer(location: &Location) -> StoreWriter {
    StoreWriter::open(location, "test", None).unwrap()
}

/// The rows of the current epoch.
pub(crate) fn rows_of(location: &Location) -> Vec<RowEntry> {
    Store::open(location).unwrap().manifest().rows.clone()
}

/// Commits an epoch with one more row than the current epoch.
pub(crate) fn update(location: &Location, urls: u64) -> u64 {
    let writer = writer(location);
    let mut rows = if writer.current().is_some() { rows_of(location) } else { Vec::new() };
    let first_uid = rows.iter().map(|row| row.urls).sum();
    rows.push(plain_row(&writer.begin_row().unwrap(), first_uid, urls));
    writer.commit(epoch_of(rows, None)).unwrap()
}

/// Commits an epoch in which one row replaces the rows from `first` on. `runs` are the shifts `(old, new, count)` of
/// UIDs.
pub(crate) fn merge(location: &Location, first: usize, urls: u64, runs: &[(u64, u64, u64)]) -> u64 {
    let writer = writer(location);
    let mut rows = rows_of(location);
    rows.truncate(first);
    let below = rows.iter().map(|row| row.urls).sum();
    let row = writer.begin_row().unwrap();
    let mut translation = TranslationWriter::create(&row, Uid(below)).unwrap();
    runs.iter().for_each(|&(old, new, count)| translation.push(Uid(old), Uid(new), count).unwrap());
    rows.push(plain_row(&row, below, urls));
    writer.commit(epoch_of(rows, Some(translation.finish().unwrap()))).unwrap()
}

/// Commits an epoch that keeps no row of the current one.
pub(crate) fn rebuild(location: &Location, urls: u64) -> u64 {
    let writer = writer(location);
    let row = plain_row(&writer.begin_row().unwrap(), 0, urls);
    writer.commit(epoch_of(vec![row], None)).unwrap()
}
