//! Held links: links that `--min-sources` leaves out of a store so far, kept so that later captures can bring them
//! back.
//!
//! ```text
//! STORE/held/000003-00000.parquet      page, link (string), form (uint8), times (list of timestamps), digest (uint64)
//! ```
//!
//! A link is held while its target has no capture and fewer pages link to the target than the store asks for. A held
//! link is in no layer, so no question sees it. The manifest of an epoch names the files that have all held links of
//! the epoch. The job that wrote row 3 wrote the file above. Files are cut by the key of the page. Rows are ordered by
//! the key of the page, then the key of the link, then the form, then the digest.
//!
//! `form` is how captures spell the link ([`crate::record::form`]). `times` says which captures of the page have the
//! link, as rising stretches. A stretch is given by its first and its last capture. All known captures inside a stretch
//! have the link, and the known captures next to the stretch do not. The form [`OF_REVISITS`] marks links that stand in
//! revisits themselves; then `times` has the time of each revisit. `digest` is 0, except for the links of payloads
//! ([`crate::Payload`]); then `times` has the time of each capture whose payload with this digest has the link. The
//! files of an epoch have this column only if a digest is not 0.
//!
//! Memory: a row group of 65,536 rows or 16 MiB of text.

use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{TimestampMillisecondType, UInt8Type, UInt64Type};
use arrow_array::{ArrayRef, ListArray, TimestampMillisecondArray, UInt8Array, UInt64Array};
use arrow_schema::{DataType, Field, Schema};
use serde::{Deserialize, Serialize};

use crate::error::{Damage, Error};
use crate::file::parquet::{TableFile, TableWriter};
use crate::file::records::{Lists, ROWS_MAX};
use crate::file::row_dir::RowDir;
use crate::file::schema::{element, time};
use crate::location::Location;
use crate::record::form::FORMS;
use crate::record::key::key;

/// The directory of files of held links.
pub(crate) const HELD: &str = "held";
/// The form of links that stand in revisits themselves.
pub const OF_REVISITS: u8 = FORMS;
/// Bytes of text in a row group, at most.
const TEXT_BYTES_MAX: usize = 1 << 24;
const MILLIS: i64 = 1000;

/// One of the files of the held links of an epoch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldEntry {
    /// Path relative to the store, with `/`.
    pub path: String,
    /// The number of links: rows of the Parquet file.
    pub links: u64,
    /// The size of the file in bytes.
    pub bytes: u64,
    /// XXH3-64 of the file, 16 hexadecimal digits.
    pub checksum: String,
}

/// A held link of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct HeldLink {
    /// URL of the page.
    pub page: String,
    /// URL of the target.
    pub link: String,
    /// How captures spell the link, or [`OF_REVISITS`].
    pub form: u8,
    /// The digest of the payloads that have the link; 0 if it is a link of captures or revisits.
    pub digest: u64,
    /// When captures have the link, in seconds; see the head of this file.
    pub times: Vec<i64>,
}

impl HeldLink {
    /// Whether the capture of the page at this second has the link, provided that the links of the capture are known.
    pub fn is_at(&self, time: i64) -> bool {
        let stretches = self.times.as_chunks::<2>().0;
        self.form != OF_REVISITS
            && self.digest == 0
            && stretches.iter().any(|&[first, last]| first <= time && time <= last)
    }

    /// Whether the payload with a digest has the link at this second.
    pub fn is_of(&self, digest: u64, time: i64) -> bool {
        self.digest == digest && self.times.binary_search(&time).is_ok()
    }
}

fn held_name(row: u32, part: u32) -> String {
    format!("{HELD}/{row:06}-{part:05}.parquet")
}

/// The row in the name of a file of held links, given without its directory; `None` for other names.
pub(crate) fn row_of_held(name: &str) -> Option<u32> {
    let (row, part) = name.strip_suffix(".parquet")?.split_once('-')?;
    let (row, part) = (row.parse().ok()?, part.parse().ok()?);
    (held_name(row, part) == format!("{HELD}/{name}")).then_some(row)
}

/// The columns, with or without the column of digests.
fn schema(has_digests: bool) -> Arc<Schema> {
    let text = |name| Field::new(name, DataType::Utf8, false);
    let form = Field::new("form", DataType::UInt8, false);
    let times = Field::new("times", DataType::List(element(time())), false);
    let digest = has_digests.then(|| Field::new("digest", DataType::UInt64, false));
    let columns = [text("page"), text("link"), form, times].into_iter().chain(digest);
    Arc::new(Schema::new(columns.collect::<Vec<_>>()))
}

/// Writes a file of held links. Without a call of `finish`, nothing is written.
pub struct HeldWriter {
    file: TableWriter,
    pages: StringBuilder,
    links: StringBuilder,
    forms: Vec<u8>,
    times: Lists<i64>,
    /// `None` if the file has no column of digests.
    digests: Option<Vec<u64>>,
}

impl HeldWriter {
    /// Creates a file for the job that writes a row, with or without digests.
    ///
    /// # Errors
    /// The file or its directory cannot be created.
    pub fn create(row: &RowDir, part: u32, has_digests: bool) -> Result<Self, Error> {
        let file = TableWriter::with_schema(row, held_name(row.row(), part), schema(has_digests))?;
        let (pages, links) = (StringBuilder::new(), StringBuilder::new());
        let digests = has_digests.then(Vec::new);
        Ok(Self { file, pages, links, forms: Vec::new(), times: Lists::new(), digests })
    }

    /// Adds a link. Links must come in order. In a file without digests, the digest must be 0.
    ///
    /// # Errors
    /// An error of the disk.
    pub fn push(&mut self, held: &HeldLink) -> Result<(), Error> {
        let HeldLink { page, link, form, digest, times } = held;
        let text = self.pages.values_slice().len() + self.links.values_slice().len() + page.len() + link.len();
        let is_full = self.forms.len() == ROWS_MAX || text > TEXT_BYTES_MAX;
        if is_full && !self.forms.is_empty() {
            self.write()?;
        }
        self.pages.append_value(page);
        self.links.append_value(link);
        self.forms.push(*form);
        match &mut self.digests {
            Some(digests) => digests.push(*digest),
            None if *digest != 0 => return Err(self.damaged(Damage::NotAligned)),
            None => {}
        }
        let millis: Vec<i64> = times.iter().map(|time| time * MILLIS).collect();
        self.times.push(&millis).map_err(|flaw| self.damaged(flaw.into()))
    }

    fn damaged(&self, damage: Damage) -> Error {
        Error::Damaged { path: self.file.path().to_owned(), row: 0, damage }
    }

    fn write(&mut self) -> Result<(), Error> {
        let (offsets, values, _) = self.times.take();
        let values = TimestampMillisecondArray::from(values).with_timezone("UTC");
        let times = ListArray::new(element(time()), offsets, Arc::new(values), None);
        let forms = UInt8Array::from(std::mem::take(&mut self.forms));
        let columns: [ArrayRef; 4] =
            [Arc::new(self.pages.finish()), Arc::new(self.links.finish()), Arc::new(forms), Arc::new(times)];
        let digests =
            self.digests.as_mut().map(|digests| Arc::new(UInt64Array::from(std::mem::take(digests))) as ArrayRef);
        self.file.write_group(columns.into_iter().chain(digests).collect())
    }

    /// Writes the remaining links, and returns the entry of the file.
    ///
    /// # Errors
    /// An error of the disk.
    pub fn finish(mut self) -> Result<HeldEntry, Error> {
        if !self.forms.is_empty() {
            self.write()?;
        }
        let table = self.file.finish()?;
        Ok(HeldEntry { path: table.path, links: table.rows, bytes: table.bytes, checksum: table.checksum })
    }
}

/// A file of held links, verified and open for reading.
pub struct HeldFile(TableFile);

impl HeldFile {
    /// Opens a file that a manifest of the store names.
    ///
    /// # Errors
    /// A file that cannot be read, or does not match the size and the checksum of its entry.
    pub fn open(store: &Location, entry: &HeldEntry) -> Result<Self, Error> {
        let body = store.storage().body(&entry.path)?;
        let path = store.path(&entry.path);
        body.verify(&path, entry.bytes, &entry.checksum)?;
        let with_digests = TableFile::open(path.clone(), body.clone(), &schema(true));
        Ok(Self(with_digests.or_else(|_| TableFile::open(path, body, &schema(false)))?))
    }

    /// The number of row groups.
    pub fn groups(&self) -> usize {
        self.0.groups()
    }

    /// The links of a row group, in order.
    ///
    /// # Errors
    /// A file that cannot be read, or rows that are not valid links.
    pub fn read(&self, group: usize) -> Result<Vec<HeldLink>, Error> {
        let batch = self.0.read(group)?;
        let damaged = |row: usize, damage| Error::Damaged { path: self.0.path().to_owned(), row: row as u64, damage };
        let null = || damaged(0, Damage::Null);
        let text = |at: usize| batch.column(at).as_string_opt::<i32>().ok_or_else(null);
        let (pages, links) = (text(0)?, text(1)?);
        let forms = batch.column(2).as_primitive_opt::<UInt8Type>().ok_or_else(null)?;
        let times = batch.column(3).as_list_opt::<i32>().ok_or_else(null)?;
        let digests = batch.columns().get(4).map(|column| column.as_primitive_opt::<UInt64Type>().ok_or_else(null));
        let digests = digests.transpose()?;
        let seconds = times.values().as_primitive_opt::<TimestampMillisecondType>().ok_or_else(null)?;
        let mut found = Vec::with_capacity(batch.num_rows());
        for row in 0..batch.num_rows() {
            let (page, link, form) = (pages.value(row).to_owned(), links.value(row).to_owned(), forms.value(row));
            let offsets = times.value_offsets();
            let at = |row: usize| usize::try_from(offsets[row]).unwrap_or(0);
            let times: Vec<i64> = seconds.values()[at(row)..at(row + 1)].iter().map(|time| time / MILLIS).collect();
            if page.is_empty() || link.is_empty() {
                return Err(damaged(row, Damage::EmptyUrl));
            }
            let digest = digests.map_or(0, |digests| digests.value(row));
            let is_paired = form == OF_REVISITS || digest != 0 || times.len().is_multiple_of(2);
            let is_both = form == OF_REVISITS && digest != 0;
            if form > OF_REVISITS || is_both || times.is_empty() || !times.is_sorted() || !is_paired {
                return Err(damaged(row, Damage::NotAligned));
            }
            found.push(HeldLink { page, link, form, digest, times });
        }
        Ok(found)
    }

    /// Reads the whole file, and checks that the links are in order and as many as the entry says.
    pub(crate) fn check(store: &Location, entry: &HeldEntry) -> Result<(), Error> {
        let file = Self::open(store, entry)?;
        let damaged = |row: u64, damage| Error::Damaged { path: file.0.path().to_owned(), row, damage };
        let (mut row, mut last, mut order) = (0, Vec::new(), Vec::new());
        let mut last_link = String::new();
        for group in 0..file.groups() {
            for HeldLink { page, link, form, digest, .. } in file.read(group)? {
                order.clear();
                let mut own_key = Vec::new();
                for url in [&page, &link] {
                    key(url, &mut own_key);
                    order.extend_from_slice(&own_key);
                }
                order.push(form);
                order.extend_from_slice(&digest.to_be_bytes());
                if order <= last {
                    return Err(damaged(row, Damage::Keys { previous: last_link, got: link }));
                }
                std::mem::swap(&mut order, &mut last);
                (last_link, row) = (link, row + 1);
            }
        }
        if row == entry.links { Ok(()) } else { Err(damaged(row, Damage::NotAligned)) }
    }
}

/// Held links by page. Memory is bounded: one decoded row group is kept.
pub struct HeldPages {
    files: Vec<HeldFile>,
    /// Each row group in order: the key of its first page, the index of its file, and its index in the file.
    groups: Vec<(Vec<u8>, usize, usize)>,
    /// The row group that was read last.
    current: Option<(usize, Vec<HeldLink>)>,
    key: Vec<u8>,
}

impl HeldPages {
    /// Opens the files of an epoch. Cost: reads the files once.
    ///
    /// # Errors
    /// As [`HeldFile::open`] and [`HeldFile::read`].
    pub fn open(store: &Location, entries: &[HeldEntry]) -> Result<Self, Error> {
        let files = entries.iter().map(|entry| HeldFile::open(store, entry)).collect::<Result<Vec<_>, _>>()?;
        let mut groups = Vec::new();
        for (number, file) in files.iter().enumerate() {
            for group in 0..file.groups() {
                let Some(first) = file.read(group)?.into_iter().next() else { continue };
                let mut first_key = Vec::new();
                key(&first.page, &mut first_key);
                groups.push((first_key, number, group));
            }
        }
        Ok(Self { files, groups, current: None, key: Vec::new() })
    }

    /// The held links of a page. Cost: reads a row group, unless the previous call read it.
    ///
    /// # Errors
    /// As [`HeldFile::read`].
    pub fn of_page(&mut self, url: &str) -> Result<Vec<HeldLink>, Error> {
        key(url, &mut self.key);
        let first = self.groups.partition_point(|group| group.0 < self.key).saturating_sub(1);
        let end = self.groups.partition_point(|group| group.0 <= self.key);
        let mut found = Vec::new();
        for at in first..end {
            if self.current.as_ref().is_none_or(|current| current.0 != at) {
                let (_, file, group) = &self.groups[at];
                self.current = Some((at, self.files[*file].read(*group)?));
            }
            let links = self.current.iter().flat_map(|current| &current.1);
            found.extend(links.filter(|held| held.page == url).cloned());
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StoreWriter;

    fn held(page: usize, link: usize, form: u8) -> HeldLink {
        let url = |number: usize| format!("http://h.example/{number:06}");
        let times = if form == OF_REVISITS { vec![7] } else { vec![5, 9, 12, 12] };
        HeldLink { page: url(page), link: url(link), form, digest: 0, times }
    }

    #[test]
    fn links_come_back_by_page() {
        let dir = tempfile::tempdir().unwrap();
        let writer = StoreWriter::open(dir.path(), "test", None).unwrap();
        let row = writer.begin_row().unwrap();
        // Page 500 is in three row groups of two files.
        let mut all: Vec<HeldLink> = (0..500).flat_map(|page| [held(page, 3, 0), held(page, 4, OF_REVISITS)]).collect();
        all.extend((0..100_000).map(|link| held(500, link, 5)));
        all.push(held(501, 1, 6));
        all.push(HeldLink { digest: 3, times: vec![4, 5, 6], ..held(501, 1, 6) });
        let mut entries = Vec::new();
        for (part, links) in (0u32..).zip([&all[..90_000], &all[90_000..]]) {
            let mut writer = HeldWriter::create(&row, part, part == 1).unwrap();
            links.iter().for_each(|held| writer.push(held).unwrap());
            entries.push(writer.finish().unwrap());
        }
        let place = Location::from(dir.path());
        let mut pages = HeldPages::open(&place, &entries).unwrap();
        for page in [0, 499, 500, 501, 7, 501] {
            let url = format!("http://h.example/{page:06}");
            let expected: Vec<_> = all.iter().filter(|held| held.page == url).cloned().collect();
            assert!(pages.of_page(&url).unwrap() == expected, "{page}");
        }
        assert!(pages.of_page("http://a.example/").unwrap().is_empty());
        assert!(pages.of_page("http://z.example/").unwrap().is_empty());
        for entry in &entries {
            HeldFile::check(&place, entry).unwrap();
            assert_eq!(row_of_held(entry.path.strip_prefix("held/").unwrap()), Some(row.row()));
        }
        let path = dir.path().join(&entries[0].path);
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[100] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        assert!(HeldFile::check(&place, &entries[0]).is_err());
    }
}
