//! Writes the in-links of one partition, URL by URL: the layers il, tr and ibv.

use crate::error::Error;
use crate::file::entry::FileEntry;
use crate::file::records::Record;
use crate::file::row_dir::RowDir;
use crate::file::schema::Layer;
use crate::file::side::SideWriter;
use crate::record::page::InLinks;

/// Writes il, tr and ibv of one partition. Memory: one row group, some 50 MB at most, and the buffers of Parquet for
/// it. The files are complete only after `finish`.
pub struct InlinksWriter(SideWriter);

impl InlinksWriter {
    /// Creates the files.
    ///
    /// # Errors
    /// When a file or its directory cannot be created.
    pub fn create(row: &RowDir, partition: u32) -> Result<Self, Error> {
        SideWriter::create(row, partition, [Layer::Il, Layer::Tr, Layer::Ibv]).map(Self)
    }

    /// Adds in-links of a URL. The UID must not be below the UID before. A URL may have several consecutive records,
    /// and its in-links are their union. Sources must rise from record to record.
    ///
    /// # Errors
    /// Records out of order, records that break an invariant (see [`InLinks::flaw`]), and errors of the disk.
    pub fn push(&mut self, record: &InLinks) -> Result<(), Error> {
        let InLinks { uid, ranges: times, sources: links, changes } = record;
        self.0.push(&Record { uid: *uid, links, times, blank: &[], changes, statuses: &[] }, record.flaw()).map(drop)
    }

    /// Writes the rest, and returns the entries of the files: il, tr, ibv.
    ///
    /// # Errors
    /// Errors of the disk.
    pub fn finish(self) -> Result<Vec<FileEntry>, Error> {
        self.0.finish()
    }
}
