//! The URLs of many UIDs, for tables that write links as URLs.
//!
//! UIDs are looked up in batches, each UID once and in order, so that a batch reads each block of URLs once. Memory:
//! the URLs of a batch, and the blocks that the reader keeps.

use super::Export;
use super::table::CHUNK;
use crate::Error;
use arrow_array::{ArrayRef, StringArray, UInt64Array};
use arrow_schema::DataType;
use std::str::from_utf8;
use std::sync::Arc;
use webstrata_layers::{Links, Reader, Uid};

/// The URLs of the UIDs that were loaded last.
pub(super) struct Texts<'a> {
    reader: &'a Reader,
    uids: Vec<Uid>,
    /// The index in `bytes` at which the URL of each UID ends.
    ends: Vec<usize>,
    bytes: Vec<u8>,
}

impl<'a> Texts<'a> {
    pub(super) fn new(reader: &'a Reader) -> Self {
        Self { reader, uids: Vec::new(), ends: Vec::new(), bytes: Vec::new() }
    }

    /// Reads the URLs of these UIDs, and drops the URLs that were loaded before.
    pub(super) fn load<'b>(&mut self, uids: impl Iterator<Item = &'b Uid>) -> Result<(), Error> {
        self.uids.clear();
        self.uids.extend(uids);
        self.uids.sort_unstable();
        self.uids.dedup();
        self.ends.clear();
        self.bytes.clear();
        let mut url = Vec::new();
        for &uid in &self.uids {
            self.reader.url_into(uid, &mut url)?;
            self.bytes.extend_from_slice(&url);
            self.ends.push(self.bytes.len());
        }
        Ok(())
    }

    /// Returns the URL of a loaded UID.
    pub(super) fn url(&self, uid: Uid) -> &str {
        let Ok(at) = self.uids.binary_search(&uid) else { return "" };
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        // The layers are checked to be UTF-8.
        from_utf8(&self.bytes[start..self.ends[at]]).unwrap_or_default()
    }

    /// Returns a column of URLs.
    pub(super) fn column(&self, uids: &[Uid]) -> StringArray {
        StringArray::from_iter_values(uids.iter().map(|&uid| self.url(uid)))
    }
}

/// How the ends of links are written: as UIDs, or as URLs.
pub(super) enum Ends<'a> {
    Uids,
    Urls(Texts<'a>),
}

impl<'a> Ends<'a> {
    pub(super) fn new(export: &Export<'a>) -> Self {
        if export.options.urls { Ends::Urls(Texts::new(export.reader)) } else { Ends::Uids }
    }

    pub(super) fn data_type(&self) -> DataType {
        if matches!(self, Ends::Uids) { DataType::UInt64 } else { DataType::Utf8 }
    }

    /// Returns the number of links in a batch. For URLs, larger batches are better, because each batch may need any
    /// block of URLs.
    pub(super) fn batch(&self, export: &Export<'_>) -> usize {
        match self {
            Ends::Uids => CHUNK,
            // A link with its URLs takes some hundred bytes.
            Ends::Urls(_) => (export.options.run.memory_max >> 10).clamp(CHUNK, 1 << 20),
        }
    }

    /// Loads the data for the columns of a batch.
    pub(super) fn load<'b>(&mut self, uids: impl Iterator<Item = &'b Uid>) -> Result<(), Error> {
        match self {
            Ends::Uids => Ok(()),
            Ends::Urls(texts) => texts.load(uids),
        }
    }

    /// Returns a column of ends.
    pub(super) fn column(&self, uids: &[Uid]) -> ArrayRef {
        match self {
            Ends::Uids => Arc::new(UInt64Array::from(Uid::numbers(uids).to_vec())),
            Ends::Urls(texts) => Arc::new(texts.column(uids)),
        }
    }
}
