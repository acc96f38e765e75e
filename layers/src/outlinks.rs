//! Writes the out side of one partition: the layers ol, ts and bv, aligned row by row and row group by row group.
//!
//! Reads pages in UID order; writes three files. Memory: one row group (see `records`) and what Parquet holds of it.

use crate::error::Error;
use crate::manifest::FileEntry;
use crate::page::Page;
use crate::parquet::LayerWriter;
use crate::records::{Columns, Record, Records};
use crate::schema::Layer;
use crate::store::RowDir;

/// Writes ol, ts and bv of one partition. Nothing is written where `finish` is not called.
pub struct OutlinksWriter {
    files: [LayerWriter; 3],
    records: Records,
    last: Option<u64>,
}

impl OutlinksWriter {
    /// Creates the files.
    ///
    /// # Errors
    /// When a file or its directory cannot be created.
    pub fn create(row: &RowDir, partition: u32) -> Result<Self, Error> {
        let [ol, ts, bv] = [Layer::Ol, Layer::Ts, Layer::Bv].map(|layer| LayerWriter::create(row, layer, partition));
        Ok(Self { files: [ol?, ts?, bv?], records: Records::new(), last: None })
    }

    /// Adds a page, whose UID must be above that of the page before it.
    ///
    /// # Errors
    /// Pages out of order, pages that break an invariant (see [`Page::flaw`]), and what the disk refuses.
    pub fn push(&mut self, page: &Page) -> Result<(), Error> {
        let uid = page.uid;
        rising(&mut self.last, uid)?;
        let bad = |flaw| Error::BadRecord { uid, flaw };
        page.flaw().map_or(Ok(()), |flaw| Err(bad(flaw)))?;
        let Page { timestamps: times, unknown, links, changes, .. } = page;
        let full = self.records.push(&Record { uid, links, times, unknown, changes }).map_err(bad)?;
        full.map_or(Ok(()), |columns| self.write(columns))
    }

    /// Writes what is left, and says what was written: ol, ts, bv.
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
        let [ol, ts, bv] = &mut self.files;
        let Columns { uids, links, times, unknown, changes } = columns.map_err(Error::arrow(ol.path()))?;
        ol.write_group(vec![uids.clone(), links])?;
        ts.write_group(vec![uids.clone(), times, unknown])?;
        bv.write_group(vec![uids, changes])
    }
}

/// Refuses a UID that is not above the last one.
pub(crate) fn rising(last: &mut Option<u64>, uid: u64) -> Result<(), Error> {
    match last.replace(uid) {
        Some(previous) if previous >= uid => {
            *last = Some(previous);
            Err(Error::OutOfOrder { what: "UID", previous: previous.to_string(), got: uid.to_string() })
        }
        _ => Ok(()),
    }
}
