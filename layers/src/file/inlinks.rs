//! Writes the in side of one partition, URL by URL: the layers il, tr and ibv.

use crate::error::Error;
use crate::file::records::Record;
use crate::file::schema::Layer;
use crate::file::side::SideWriter;
use crate::record::page::InLinks;
use crate::store::RowDir;
use crate::store::manifest::FileEntry;

/// Writes il, tr and ibv of one partition. Memory: one row group, some 50 MB at most, and what Parquet holds of it.
/// Nothing is written where `finish` is not called.
pub struct InlinksWriter(SideWriter);

impl InlinksWriter {
    /// Creates the files.
    ///
    /// # Errors
    /// When a file or its directory cannot be created.
    pub fn create(row: &RowDir, partition: u32) -> Result<Self, Error> {
        SideWriter::create(row, partition, [Layer::Il, Layer::Tr, Layer::Ibv]).map(Self)
    }

    /// Adds in-links of a URL, whose UID must not be below that of the one before it. Where several records are of one
    /// URL, all its in-links are their union; sources must rise from record to record.
    ///
    /// # Errors
    /// Records out of order, records that break an invariant (see [`InLinks::flaw`]), and what the disk refuses.
    pub fn push(&mut self, record: &InLinks) -> Result<(), Error> {
        let InLinks { uid, ranges: times, sources: links, changes } = record;
        self.0.push(&Record { uid: *uid, links, times, blank: &[], changes, statuses: &[] }, record.flaw()).map(drop)
    }

    /// Writes what is left, and says what was written: il, tr, ibv.
    ///
    /// # Errors
    /// Errors of the disk.
    pub fn finish(self) -> Result<Vec<FileEntry>, Error> {
        self.0.finish()
    }
}
