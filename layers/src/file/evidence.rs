//! The layer rv, aligned with ol, ts and bv: the evidence for the revisits of pages ([`Evidence`]).
//!
//! The other layers hold the links of each capture. Memory of the writer: the records between two row groups of ol. No
//! answer reads this layer.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{TimestampMillisecondType, UInt32Type, UInt64Type};
use arrow_array::{Array, BinaryArray, ListArray, TimestampMillisecondArray, UInt32Array, UInt64Array};
use arrow_buffer::{Buffer, NullBuffer};
use arrow_schema::ArrowError;

use crate::error::{Damage, Error};
use crate::file::entry::FileEntry;
use crate::file::parquet::{LayerFile, LayerWriter};
use crate::file::records::{Lists, column, list};
use crate::file::row_dir::RowDir;
use crate::file::schema::{self, Layer};
use crate::file::uids::{UidColumn, uids_of};
use crate::record::page::Flaw;
use crate::record::page::evidence::{Evidence, Revisit};
use crate::record::uid::Uid;

/// Writes rv of one partition, in step with the writer of ol.
pub(crate) struct EvidenceWriter {
    file: LayerWriter,
    uids: Vec<Uid>,
    digests: Lists<u64>,
    revisits: Lists<u32>,
    not_modified: Lists<u32>,
    without_status: Lists<u32>,
    referring: Lists<u32>,
    referred: Lists<i64>,
    with_links: Lists<u32>,
    links: Lists<Uid>,
    elsewhere: Lists<u32>,
    forms: Lists<u8>,
}

impl EvidenceWriter {
    pub(crate) fn create(row: &RowDir, partition: u32) -> Result<Self, Error> {
        Ok(Self {
            file: LayerWriter::create(row, Layer::Rv, partition)?,
            uids: Vec::new(),
            digests: Lists::new(),
            revisits: Lists::new(),
            not_modified: Lists::new(),
            without_status: Lists::new(),
            referring: Lists::new(),
            referred: Lists::new(),
            with_links: Lists::new(),
            links: Lists::new(),
            elsewhere: Lists::new(),
            forms: Lists::new(),
        })
    }

    /// Adds a record, which must have no flaw.
    pub(crate) fn push(&mut self, uid: Uid, evidence: &Evidence) -> Result<(), Error> {
        self.add(uid, evidence).map_err(|flaw| Error::BadRecord { uid, flaw })
    }

    fn add(&mut self, uid: Uid, evidence: &Evidence) -> Result<(), Flaw> {
        self.uids.push(uid);
        self.digests.push(&evidence.digests)?;
        for revisit in &evidence.revisits {
            let capture = revisit.capture;
            self.revisits.values.push(capture);
            if revisit.not_modified {
                self.not_modified.values.push(capture);
            }
            if revisit.without_status {
                self.without_status.values.push(capture);
            }
            if revisit.elsewhere {
                self.elsewhere.values.push(capture);
            }
            if let Some(time) = revisit.referred {
                self.referring.values.push(capture);
                self.referred.values.push(time.checked_mul(1000).ok_or(Flaw::TimeOutside(time))?);
            }
            self.with_links.values.extend(revisit.links.iter().map(|_| capture));
            self.links.values.extend_from_slice(&revisit.links);
        }
        let Self { revisits, not_modified, without_status, referring, with_links, elsewhere, .. } = self;
        for list in [revisits, not_modified, without_status, referring, with_links, elsewhere] {
            list.end()?;
        }
        self.forms.push(&evidence.forms)?;
        self.referred.end()?;
        self.links.end()
    }

    /// Ends a row group.
    pub(crate) fn end_group(&mut self) -> Result<(), Error> {
        if self.uids.is_empty() {
            return Ok(());
        }
        let columns = self.columns().map_err(Error::arrow(self.file.path()))?;
        self.file.write_group(columns)
    }

    fn columns(&mut self) -> Result<Vec<Arc<dyn Array>>, ArrowError> {
        let nulls = |valid| Some(NullBuffer::from(valid));
        let wide = |(ends, values, valid): (_, Vec<u64>, _)| list(ends, UInt64Array::from(values), nulls(valid));
        let narrow = |lists: &mut Lists<u32>| {
            let (ends, values, valid) = lists.take();
            list(ends, UInt32Array::from(values), nulls(valid))
        };
        let uids = Arc::new(column(std::mem::take(&mut self.uids)));
        let (ends, values, valid) = self.referred.take();
        let times = TimestampMillisecondArray::from(values).with_data_type(schema::time());
        let (ends_of_links, links, with_links) = self.links.take();
        let (ends_of_forms, forms, with_forms) = self.forms.take();
        let forms = BinaryArray::try_new(ends_of_forms, Buffer::from_vec(forms), nulls(with_forms))?;
        Ok(vec![
            uids,
            wide(self.digests.take())?,
            narrow(&mut self.revisits)?,
            narrow(&mut self.not_modified)?,
            narrow(&mut self.without_status)?,
            narrow(&mut self.referring)?,
            list(ends, times, nulls(valid))?,
            narrow(&mut self.with_links)?,
            list(ends_of_links, column(links), nulls(with_links))?,
            narrow(&mut self.elsewhere)?,
            Arc::new(forms),
        ])
    }

    pub(crate) fn finish(mut self) -> Result<FileEntry, Error> {
        self.end_group()?;
        self.file.finish()
    }
}

/// A row group of rv.
pub(crate) struct EvidenceBlock {
    uids: UidColumn,
    lists: [ListArray; 9],
    forms: BinaryArray,
}

impl EvidenceBlock {
    pub(crate) fn read(file: &LayerFile, group: usize) -> Result<Self, Error> {
        let batch = file.read(group, usize::MAX)?;
        let first_row = file.groups[group].first_row;
        let null = || file.damaged(first_row, Damage::Null);
        let uids = uids_of(&batch, false).map_err(|(row, damage)| file.damaged(first_row + row, damage))?;
        let [_, lists @ .., forms] = batch.columns() else { return Err(null()) };
        let lists: Option<Vec<ListArray>> = lists.iter().map(|column| column.as_list_opt::<i32>().cloned()).collect();
        let lists = lists.and_then(|lists| lists.try_into().ok()).ok_or_else(null)?;
        let forms = forms.as_binary_opt::<i32>().cloned().ok_or_else(null)?;
        Ok(Self { uids, lists, forms })
    }

    /// Approximate bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        let lists = self.lists.iter().map(Array::get_array_memory_size).sum::<usize>();
        8 * self.uids.len() + lists + self.forms.get_array_memory_size()
    }

    /// Whether a page has a revisit.
    pub(crate) fn has_revisit(&self, uid: Uid) -> bool {
        let [_, revisits, ..] = &self.lists;
        self.uids.binary_search(&uid).is_ok_and(|row| revisits.is_valid(row))
    }

    /// The own links of the revisits.
    pub(crate) fn links_of_revisits(&self) -> Vec<Uid> {
        let [.., links, _] = &self.lists;
        links.values().as_primitive_opt::<UInt64Type>().map_or(Vec::new(), |links| Uid::slice(links.values()).to_vec())
    }

    /// The pages with a wanted digest. The capture with the digest may be a revisit.
    pub(crate) fn with_digest(&self, is_wanted: impl Fn(u64) -> bool) -> Vec<Uid> {
        let [digests, ..] = &self.lists;
        let Some(values) = digests.values().as_primitive_opt::<UInt64Type>() else { return Vec::new() };
        let of_row = |row: usize| {
            &values.values()[digests.value_offsets()[row] as usize..][..digests.value_length(row) as usize]
        };
        let rows = (0..self.uids.len()).filter(|&row| of_row(row).iter().any(|&digest| is_wanted(digest)));
        rows.map(|row| self.uids[row]).collect()
    }

    /// The pages with revisits of other URLs, each with the digest of such a revisit.
    pub(crate) fn elsewhere(&self) -> Result<Vec<(Uid, u64)>, Damage> {
        let [.., elsewhere] = &self.lists;
        let mut found = Vec::new();
        for row in (0..self.uids.len()).filter(|&row| elsewhere.is_valid(row)) {
            let evidence = self.get(row)?;
            let revisits = evidence.revisits.iter().filter(|revisit| revisit.elsewhere);
            found.extend(revisits.map(|revisit| (self.uids[row], evidence.digest(revisit.capture as usize))));
        }
        Ok(found)
    }

    /// The record of a row. Fails if the row has another UID, or if the record has a flaw for this number of captures.
    pub(crate) fn of(&self, row: usize, uid: Uid, captures: usize) -> Result<Evidence, Damage> {
        if self.uids.get(row) != Some(&uid) {
            return Err(Damage::NotAligned);
        }
        let evidence = self.get(row)?;
        evidence.flaw(captures).map_or(Ok(evidence), |flaw| Err(flaw.into()))
    }

    fn get(&self, row: usize) -> Result<Evidence, Damage> {
        let [digests, revisits, not_modified, without_status, referring, referred, with_links, links, elsewhere] =
            &self.lists;
        let wide = |lists: &ListArray| -> Result<Vec<u64>, Damage> {
            let values = lists.value(row);
            Ok(values.as_primitive_opt::<UInt64Type>().ok_or(Damage::Null)?.values().to_vec())
        };
        let narrow = |lists: &ListArray| -> Result<Vec<u32>, Damage> {
            let values = lists.value(row);
            Ok(values.as_primitive_opt::<UInt32Type>().ok_or(Damage::Null)?.values().to_vec())
        };
        let forms = if self.forms.is_null(row) { &[] } else { self.forms.value(row) };
        let mut evidence = Evidence { digests: wide(digests)?, revisits: Vec::new(), forms: forms.to_vec() };
        if revisits.is_null(row) {
            return Ok(evidence);
        }
        let (not_modified, without_status) = (narrow(not_modified)?, narrow(without_status)?);
        let (referring, with_links, elsewhere) = (narrow(referring)?, narrow(with_links)?, narrow(elsewhere)?);
        let links = wide(links)?;
        let times = referred.value(row);
        let times = times.as_primitive_opt::<TimestampMillisecondType>().ok_or(Damage::Null)?.values();
        if times.len() != referring.len() || links.len() != with_links.len() {
            return Err(Damage::NotAligned);
        }
        for capture in narrow(revisits)? {
            let first = with_links.partition_point(|&other| other < capture);
            let count = with_links[first..].partition_point(|&other| other == capture);
            evidence.revisits.push(Revisit {
                capture,
                not_modified: not_modified.binary_search(&capture).is_ok(),
                without_status: without_status.binary_search(&capture).is_ok(),
                elsewhere: elsewhere.binary_search(&capture).is_ok(),
                referred: referring.binary_search(&capture).ok().map(|at| times[at].div_euclid(1000)),
                links: Uid::slice(&links[first..first + count]).to_vec(),
            });
        }
        Ok(evidence)
    }
}
