//! Writes the out-links of one partition, page by page: the layers ol, ts, bv and rv.

use crate::error::Error;
use crate::file::entry::FileEntry;
use crate::file::evidence::EvidenceWriter;
use crate::file::records::Record;
use crate::file::row_dir::RowDir;
use crate::file::schema::Layer;
use crate::file::side::SideWriter;
use crate::record::page::Page;
use crate::record::page::evidence::Evidence;

/// Writes ol, ts, bv and rv of one partition. Memory: one row group, some 50 MB at most, and the buffers of Parquet for
/// it. The files are complete only after `finish`.
pub struct OutlinksWriter {
    side: SideWriter,
    evidence: EvidenceWriter,
}

impl OutlinksWriter {
    /// Creates the files.
    ///
    /// # Errors
    /// When a file or its directory cannot be created.
    pub fn create(row: &RowDir, partition: u32) -> Result<Self, Error> {
        let side = SideWriter::create(row, partition, [Layer::Ol, Layer::Ts, Layer::Bv])?;
        Ok(Self { side, evidence: EvidenceWriter::create(row, partition)? })
    }

    /// Adds a page with its evidence. The UID of the page must be above the UID of the page before.
    ///
    /// # Errors
    /// Pages out of order, pages that break an invariant (see [`Page::flaw`], [`Evidence::flaw`]), and errors of the
    /// disk.
    pub fn push(&mut self, page: &Page, evidence: &Evidence) -> Result<(), Error> {
        let Page { uid, timestamps: times, blank, links, changes, statuses } = page;
        let flaw = page.flaw().or_else(|| evidence.flaw(times.len())).or_else(|| evidence.foreign_payload(links));
        if self.side.push(&Record { uid: *uid, links, times, blank, changes, statuses }, flaw)? {
            self.evidence.end_group()?;
        }
        self.evidence.push(*uid, times, evidence)
    }

    /// Writes the rest, and returns the entries of the files: ol, ts, bv, rv.
    ///
    /// # Errors
    /// Errors of the disk.
    pub fn finish(self) -> Result<Vec<FileEntry>, Error> {
        let mut files = self.side.finish()?;
        files.push(self.evidence.finish()?);
        Ok(files)
    }
}
