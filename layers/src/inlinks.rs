//! Writes the in side of one partition: the layers il, tr and ibv, aligned row by row and row group by row group.
//!
//! Reads in-links in UID order of the URL linked to; writes three files. Memory: one row group (see `records`) and what
//! Parquet holds of it.

use crate::error::Error;
use crate::manifest::FileEntry;
use crate::outlinks::rising;
use crate::page::InLinks;
use crate::parquet::LayerWriter;
use crate::records::{Columns, Record, Records};
use crate::schema::Layer;
use crate::store::RowDir;

/// Writes il, tr and ibv of one partition. Nothing is written where `finish` is not called.
pub struct InlinksWriter {
    files: [LayerWriter; 3],
    records: Records,
    last: Option<u64>,
}

impl InlinksWriter {
    /// Creates the files.
    ///
    /// # Errors
    /// When a file or its directory cannot be created.
    pub fn create(row: &RowDir, partition: u32) -> Result<Self, Error> {
        let [il, tr, ibv] = [Layer::Il, Layer::Tr, Layer::Ibv].map(|layer| LayerWriter::create(row, layer, partition));
        Ok(Self { files: [il?, tr?, ibv?], records: Records::new(), last: None })
    }

    /// Adds the in-links of a URL, whose UID must be above that of the one before it.
    ///
    /// # Errors
    /// Records out of order, records that break an invariant (see [`InLinks::flaw`]), and what the disk refuses.
    pub fn push(&mut self, record: &InLinks) -> Result<(), Error> {
        let uid = record.uid;
        rising(&mut self.last, uid)?;
        let bad = |flaw| Error::BadRecord { uid, flaw };
        record.flaw().map_or(Ok(()), |flaw| Err(bad(flaw)))?;
        let InLinks { ranges: times, sources: links, changes, .. } = record;
        let full = self.records.push(&Record { uid, links, times, unknown: &[], changes }).map_err(bad)?;
        full.map_or(Ok(()), |columns| self.write(columns))
    }

    /// Writes what is left, and says what was written: il, tr, ibv.
    ///
    /// # Errors
    /// What the disk refuses.
    pub fn finish(mut self) -> Result<Vec<FileEntry>, Error> {
        if !self.records.is_empty() {
            let columns = self.records.take();
            self.write(columns)?;
        }
        self.files.into_iter().map(LayerWriter::finish).collect()
    }

    fn write(&mut self, columns: Result<Columns, arrow::error::ArrowError>) -> Result<(), Error> {
        let [il, tr, ibv] = &mut self.files;
        let Columns { uids, links, times, changes, .. } = columns.map_err(Error::arrow(il.path()))?;
        il.write_group(vec![uids.clone(), links])?;
        tr.write_group(vec![uids.clone(), times])?;
        ibv.write_group(vec![uids, changes])
    }
}
