//! Writes one side of one partition: three layers, aligned row by row and row group by row group.
//!
//! [`crate::OutlinksWriter`] (ol, ts, bv) and [`crate::InlinksWriter`] (il, tr, ibv) share this writer. It takes
//! records in UID order and writes three files: links, times, changes. Memory: one row group (see `records`), and the
//! buffers of Parquet for it.

use crate::error::Error;
use crate::file::entry::FileEntry;
use crate::file::parquet::LayerWriter;
use crate::file::records::{Columns, Record, Records};
use crate::file::row_dir::RowDir;
use crate::file::schema::Layer;
use crate::record::page::Flaw;
use crate::record::uid::Uid;

/// The three files of a side, open for writing. The files are complete only after `finish`.
pub(crate) struct SideWriter {
    files: [LayerWriter; 3],
    /// Whether the times belong to captures. If so, their layer also has blank captures and statuses.
    of_captures: bool,
    records: Records,
    last: Option<Uid>,
}

impl SideWriter {
    /// Creates the files of the layers of links, times and changes.
    pub(crate) fn create(row: &RowDir, partition: u32, layers: [Layer; 3]) -> Result<Self, Error> {
        let of_captures = layers[1] == Layer::Ts;
        let [links, times, changes] = layers.map(|layer| LayerWriter::create(row, layer, partition));
        Ok(Self { files: [links?, times?, changes?], of_captures, records: Records::new(), last: None })
    }

    /// Adds a record. Its UID must be above the UID before; in-links may repeat the UID. Fails if the caller found a
    /// `flaw` in the record. Returns whether the record begins another row group.
    pub(crate) fn push(&mut self, record: &Record<'_>, flaw: Option<Flaw>) -> Result<bool, Error> {
        let uid = record.uid;
        if let Some(previous) = self.last.filter(|&previous| previous > uid || (previous == uid && self.of_captures)) {
            return Err(Error::OutOfOrder { what: "UID", previous: previous.to_string(), got: uid.to_string() });
        }
        let bad = |flaw| Error::BadRecord { uid, flaw };
        flaw.map_or(Ok(()), |flaw| Err(bad(flaw)))?;
        self.last = Some(uid);
        let full = self.records.push(record).map_err(bad)?;
        let begins = full.is_some();
        full.map_or(Ok(()), |columns| self.write(columns)).map(|()| begins)
    }

    /// Writes the rest, and returns the entries of the files in the order of the layers.
    pub(crate) fn finish(mut self) -> Result<Vec<FileEntry>, Error> {
        if !self.records.is_empty() {
            let columns = self.records.take();
            self.write(columns)?;
        }
        self.files.into_iter().map(LayerWriter::finish).collect()
    }

    fn write(&mut self, columns: Result<Columns, arrow_schema::ArrowError>) -> Result<(), Error> {
        let [links_file, times_file, changes_file] = &mut self.files;
        let Columns { uids, links, times, blank, status_captures, statuses, changes } =
            columns.map_err(Error::arrow(links_file.path()))?;
        links_file.write_group(vec![uids.clone(), links])?;
        let of_captures = [blank, status_captures, statuses].into_iter().filter(|_| self.of_captures);
        times_file.write_group([uids.clone(), times].into_iter().chain(of_captures).collect())?;
        changes_file.write_group(vec![uids, changes])
    }
}
