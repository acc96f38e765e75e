//! Writes the url layer of one partition: URLs in key order with dense UIDs.
//!
//! Takes (UID, URL, urlkey) and writes one file. Row groups end after 65,536 rows, or before the row that would bring
//! the text above 16 MiB. Memory: one row group, and the buffers of Parquet for it. Invariant: keys rise strictly, UIDs
//! by one.

use std::sync::Arc;

use arrow_array::Array;
use arrow_array::builder::StringBuilder;
use arrow_array::cast::AsArray;

use crate::error::{Damage, Error};
use crate::file::entry::FileEntry;
use crate::file::parquet::{Footer, LayerFile, LayerWriter};
use crate::file::records::{ROWS_MAX, column};
use crate::file::row_dir::RowDir;
use crate::file::schema::Layer;
use crate::record::key::key;
use crate::record::key::to_hex;
use crate::record::uid::Uid;

/// The most bytes of text in a row group.
const TEXT_BYTES_MAX: usize = 1 << 24;

/// Writes the url layer of one partition. The file is complete only after `finish`.
pub struct UrlWriter {
    file: LayerWriter,
    uids: Vec<Uid>,
    urls: StringBuilder,
    surts: StringBuilder,
    last: Option<Uid>,
    last_url: String,
    last_key: Vec<u8>,
    key: Vec<u8>,
    first_key: Vec<u8>,
}

impl UrlWriter {
    /// Creates the file.
    ///
    /// # Errors
    /// When the file or its directory cannot be created.
    pub fn create(row: &RowDir, partition: u32) -> Result<Self, Error> {
        Ok(Self {
            file: LayerWriter::create(row, Layer::Url, partition)?,
            uids: Vec::new(),
            urls: StringBuilder::new(),
            surts: StringBuilder::new(),
            last: None,
            last_url: String::new(),
            last_key: Vec::new(),
            key: Vec::new(),
            first_key: Vec::new(),
        })
    }

    /// Adds a URL. Its UID must be one above the UID of the URL before, and its key above the key of the URL before.
    ///
    /// # Errors
    /// URLs out of order, empty URLs and urlkeys, and errors of the disk.
    pub fn push(&mut self, uid: Uid, url: &str, surt: &str) -> Result<(), Error> {
        if let Some(previous) = self.last.filter(|&previous| previous.0.checked_add(1) != Some(uid.0)) {
            return Err(Error::OutOfOrder { what: "UID", previous: previous.to_string(), got: uid.to_string() });
        }
        if url.is_empty() || surt.is_empty() {
            return Err(Error::EmptyUrl { uid });
        }
        key(url, &mut self.key);
        if self.key <= self.last_key {
            let (previous, got) = (self.last_url.clone(), url.to_owned());
            return Err(Error::OutOfOrder { what: "key of URL", previous, got });
        }
        if self.last.is_none() {
            self.first_key.clone_from(&self.key);
        }
        let text = self.urls.values_slice().len() + self.surts.values_slice().len() + url.len() + surt.len();
        if self.uids.len() == ROWS_MAX || (text > TEXT_BYTES_MAX && !self.uids.is_empty()) {
            self.write()?;
        }
        std::mem::swap(&mut self.key, &mut self.last_key);
        self.last_url.clear();
        self.last_url.push_str(url);
        self.last = Some(uid);
        self.uids.push(uid);
        self.urls.append_value(url);
        self.surts.append_value(surt);
        Ok(())
    }

    /// The key of the first URL in hexadecimal digits, in the form of [`crate::PartitionEntry::first_key`]; empty
    /// before any URL.
    pub fn first_key(&self) -> String {
        to_hex(&self.first_key)
    }

    /// Writes the rest, and returns the entry of the file.
    ///
    /// # Errors
    /// Errors of the disk.
    pub fn finish(mut self) -> Result<Vec<FileEntry>, Error> {
        if !self.uids.is_empty() {
            self.write()?;
        }
        Ok(vec![self.file.finish()?])
    }

    fn write(&mut self) -> Result<(), Error> {
        let uids = column(std::mem::take(&mut self.uids));
        self.file.write_group(vec![Arc::new(uids), Arc::new(self.urls.finish()), Arc::new(self.surts.finish())])
    }
}

/// The URL of a UID in a row that is still being written, for messages. The partition must be finished and have `urls`
/// URLs. Cost: one row group, or in S3 the file.
///
/// # Errors
/// A partition that is not finished or does not have the UID.
pub fn url_in_row(row: &RowDir, partition: u32, urls: u64, uid: Uid) -> Result<String, Error> {
    let name = row.file(Layer::Url, partition);
    let path = row.location().path(&name);
    let body = row.location().storage().body(&name)?;
    let (bytes, checksum) = (body.len(&path)?, String::new());
    let entry = FileEntry { layer: Layer::Url, partition, path: name, rows: urls, bytes, checksum };
    let footer = Arc::new(Footer::read(path.clone(), &body, &entry)?);
    let file = LayerFile { footer, body };
    let missing = || Error::Damaged { path: path.clone(), row: 0, damage: Damage::NotAligned };
    let group = file.group_of(uid).ok_or_else(missing)?;
    let at = usize::try_from(uid - file.groups[group].first_uid).unwrap_or(usize::MAX);
    let batch = file.read(group, 2)?;
    let urls_of_group = batch.column(1).as_string_opt::<i32>().filter(|texts| at < texts.len());
    urls_of_group.map(|texts| texts.value(at).to_owned()).ok_or_else(missing)
}
