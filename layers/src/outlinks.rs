//! Writes the out side of one partition, page by page: the layers ol, ts and bv.

use crate::error::Error;
use crate::manifest::FileEntry;
use crate::page::Page;
use crate::records::Record;
use crate::schema::Layer;
use crate::side::SideWriter;
use crate::store::RowDir;

/// Writes ol, ts and bv of one partition. Memory: one row group, some 50 MB at most, and what Parquet holds of it. Nothing is
/// written where `finish` is not called.
pub struct OutlinksWriter(SideWriter);

impl OutlinksWriter {
    /// Creates the files.
    ///
    /// # Errors
    /// When a file or its directory cannot be created.
    pub fn create(row: &RowDir, partition: u32) -> Result<Self, Error> {
        SideWriter::create(row, partition, [Layer::Ol, Layer::Ts, Layer::Bv]).map(Self)
    }

    /// Adds a page, whose UID must be above that of the page before it.
    ///
    /// # Errors
    /// Pages out of order, pages that break an invariant (see [`Page::flaw`]), and what the disk refuses.
    pub fn push(&mut self, page: &Page) -> Result<(), Error> {
        let Page { uid, timestamps: times, unknown, links, changes } = page;
        self.0.push(&Record { uid: *uid, links, times, unknown, changes }, page.flaw())
    }

    /// Writes what is left, and says what was written: ol, ts, bv.
    ///
    /// # Errors
    /// What the disk refuses.
    pub fn finish(self) -> Result<Vec<FileEntry>, Error> {
        self.0.finish()
    }
}
