//! The layer rv, aligned with ol, ts and bv: the evidence for the revisits of pages ([`Evidence`]).
//!
//! The other layers hold the links of each capture. Memory of the writer: the records between two row groups of ol. No
//! answer reads this layer.
//!
//! Few pages have payloads, so payloads have no columns: they are numbered after the captures of the page, in order,
//! and use the columns of digests, times and links with these numbers. The time is that of the capture.

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
use crate::record::form::link_of;
use crate::record::page::Flaw;
use crate::record::page::evidence::{Evidence, Payload, Revisit};
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
    pub(crate) fn push(&mut self, uid: Uid, times: &[i64], evidence: &Evidence) -> Result<(), Error> {
        self.add(uid, times, evidence).map_err(|flaw| Error::BadRecord { uid, flaw })
    }

    fn add(&mut self, uid: Uid, times: &[i64], evidence: &Evidence) -> Result<(), Flaw> {
        self.uids.push(uid);
        self.digests.values.extend_from_slice(&evidence.digests);
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
                self.refer(capture, time)?;
            }
            self.with_links.values.extend(revisit.links.iter().map(|_| capture));
            self.links.values.extend_from_slice(&revisit.links);
        }
        for (at, Payload { capture, digest, links }) in evidence.payloads.iter().enumerate() {
            let number = u32::try_from(times.len() + at).map_err(|_| Flaw::TooLarge)?;
            self.digests.values.push(*digest);
            self.refer(number, *times.get(*capture as usize).ok_or(Flaw::Payload(*capture))?)?;
            self.with_links.values.extend(links.iter().map(|_| number));
            self.links.values.extend_from_slice(links);
        }
        self.digests.end()?;
        let Self { revisits, not_modified, without_status, referring, with_links, elsewhere, .. } = self;
        for list in [revisits, not_modified, without_status, referring, with_links, elsewhere] {
            list.end()?;
        }
        self.forms.push(&evidence.forms)?;
        self.referred.end()?;
        self.links.end()
    }

    fn refer(&mut self, number: u32, time: i64) -> Result<(), Flaw> {
        self.referring.values.push(number);
        self.referred.values.push(time.checked_mul(1000).ok_or(Flaw::TimeOutside(time))?);
        Ok(())
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

    /// The own links of the revisits, and the links of payloads.
    pub(crate) fn links_of_revisits(&self) -> Vec<Uid> {
        let [.., links, _] = &self.lists;
        let Some(links) = links.values().as_primitive_opt::<UInt64Type>() else { return Vec::new() };
        Uid::slice(links.values()).iter().map(|&link| link_of(link)).collect()
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

    /// The record of a row. Fails if the row has another UID, or if the record has a flaw for these captures.
    pub(crate) fn of(&self, row: usize, uid: Uid, captures: &[i64]) -> Result<Evidence, Damage> {
        if self.uids.get(row) != Some(&uid) {
            return Err(Damage::NotAligned);
        }
        let mut evidence = self.get(row)?;
        if evidence.digests.len() > captures.len() {
            evidence.payloads = self.payloads(row, captures, evidence.digests.split_off(captures.len()))?;
        }
        evidence.flaw(captures.len()).map_or(Ok(evidence), |flaw| Err(flaw.into()))
    }

    /// The payloads of a row, given the times of its captures and the digests of the payloads.
    fn payloads(&self, row: usize, captures: &[i64], digests: Vec<u64>) -> Result<Vec<Payload>, Damage> {
        let said = self.said(row)?;
        let first = u32::try_from(captures.len()).map_err(|_| Damage::from(Flaw::TooLarge))?;
        let referring = &said.referring[said.referring.partition_point(|&number| number < first)..];
        let is_outside = |last: Option<&u32>| last.is_some_and(|&last| (last - first) as usize >= digests.len());
        let with_links = &said.with_links[said.with_links.partition_point(|&number| number < first)..];
        if referring.len() != digests.len() || is_outside(referring.last()) || is_outside(with_links.last()) {
            return Err(Flaw::Payload(first).into());
        }
        let payload = |(number, digest)| {
            let capture = said.time_of(number).and_then(|time| captures.binary_search(&time).ok());
            let capture = capture.and_then(|capture| u32::try_from(capture).ok());
            let capture = capture.ok_or_else(|| Damage::from(Flaw::Payload(number)))?;
            Ok(Payload { capture, digest, links: said.links_of(number).to_vec() })
        };
        (first..).zip(digests).map(payload).collect()
    }

    /// The record of a row without payloads; the digests of payloads follow those of the captures.
    fn get(&self, row: usize) -> Result<Evidence, Damage> {
        let [digests, revisits, not_modified, without_status, .., elsewhere] = &self.lists;
        let forms = if self.forms.is_null(row) { &[] } else { self.forms.value(row) };
        let mut evidence = Evidence { digests: wide(digests, row)?, forms: forms.to_vec(), ..Evidence::default() };
        if revisits.is_null(row) {
            return Ok(evidence);
        }
        let (not_modified, without_status) = (narrow(not_modified, row)?, narrow(without_status, row)?);
        let (elsewhere, said) = (narrow(elsewhere, row)?, self.said(row)?);
        for capture in narrow(revisits, row)? {
            evidence.revisits.push(Revisit {
                capture,
                not_modified: not_modified.binary_search(&capture).is_ok(),
                without_status: without_status.binary_search(&capture).is_ok(),
                elsewhere: elsewhere.binary_search(&capture).is_ok(),
                referred: said.time_of(capture),
                links: said.links_of(capture).to_vec(),
            });
        }
        Ok(evidence)
    }

    fn said(&self, row: usize) -> Result<Said, Damage> {
        let [.., referring, referred, with_links, links, _] = &self.lists;
        let times = referred.value(row);
        let times = times.as_primitive_opt::<TimestampMillisecondType>().ok_or(Damage::Null)?.values();
        let (referring, with_links) = (narrow(referring, row)?, narrow(with_links, row)?);
        let said = Said { referring, referred: times.to_vec(), with_links, links: wide(links, row)? };
        let is_aligned = said.referred.len() == said.referring.len() && said.links.len() == said.with_links.len();
        if is_aligned { Ok(said) } else { Err(Damage::NotAligned) }
    }
}

/// The times and links of the revisits and payloads of a row, by number.
struct Said {
    referring: Vec<u32>,
    /// In milliseconds.
    referred: Vec<i64>,
    with_links: Vec<u32>,
    links: Vec<u64>,
}

impl Said {
    fn time_of(&self, number: u32) -> Option<i64> {
        self.referring.binary_search(&number).ok().map(|at| self.referred[at].div_euclid(1000))
    }

    fn links_of(&self, number: u32) -> &[Uid] {
        let first = self.with_links.partition_point(|&other| other < number);
        let count = self.with_links[first..].partition_point(|&other| other == number);
        Uid::slice(&self.links[first..first + count])
    }
}

fn wide(lists: &ListArray, row: usize) -> Result<Vec<u64>, Damage> {
    let values = lists.value(row);
    Ok(values.as_primitive_opt::<UInt64Type>().ok_or(Damage::Null)?.values().to_vec())
}

fn narrow(lists: &ListArray, row: usize) -> Result<Vec<u32>, Damage> {
    let values = lists.value(row);
    Ok(values.as_primitive_opt::<UInt32Type>().ok_or(Damage::Null)?.values().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StoreWriter;
    use crate::location::Location;
    use crate::record::form::formed;

    fn payload(capture: u32, digest: u64, links: &[Uid]) -> Payload {
        Payload { capture, digest, links: links.to_vec() }
    }

    /// A capture with two payloads, and a revisit with a time and a link of its own.
    fn evidence() -> Evidence {
        let revisit = Revisit { capture: 1, referred: Some(10), links: vec![Uid(9)], ..Revisit::default() };
        let payloads = vec![payload(0, 31, &[formed(Uid(7), 2)]), payload(0, 64, &[Uid(8), formed(Uid(7), 1)])];
        Evidence { digests: vec![31, 64], payloads, revisits: vec![revisit], ..Evidence::default() }
    }

    #[test]
    fn payloads_come_back_and_are_checked() {
        let dir = tempfile::tempdir().unwrap();
        let row = StoreWriter::open(dir.path(), "test", None).unwrap().begin_row().unwrap();
        let mut writer = EvidenceWriter::create(&row, 0).unwrap();
        let plain = Evidence { digests: vec![5], ..Evidence::default() };
        writer.push(Uid(3), &[10, 20], &evidence()).unwrap();
        writer.push(Uid(4), &[10], &plain).unwrap();
        let entry = writer.finish().unwrap();
        let block = EvidenceBlock::read(&LayerFile::open(&Location::from(dir.path()), &entry).unwrap(), 0).unwrap();
        assert_eq!(block.of(0, Uid(3), &[10, 20]).unwrap(), evidence());
        assert_eq!(block.of(1, Uid(4), &[10]).unwrap(), plain);
        assert_eq!(wide(&block.lists[0], 0).unwrap(), [31, 64, 31, 64]);
        assert_eq!(narrow(&block.lists[6], 0).unwrap(), [1, 2, 3, 3]);
        assert_eq!(block.with_digest(|digest| digest == 64), [Uid(3)]);
        assert_eq!(block.links_of_revisits(), [9, 7, 8, 7].map(Uid));
        assert!(block.has_revisit(Uid(3)) && !block.has_revisit(Uid(4)));
        // Beside other captures, the times and numbers of payloads mean nothing.
        for captures in [&[11, 20][..], &[10], &[10, 20, 30]] {
            assert!(block.of(0, Uid(3), captures).is_err(), "{captures:?}");
        }
    }

    #[test]
    fn payloads_with_flaws_are_refused() {
        assert_eq!((evidence().flaw(2), evidence().flaw(1)), (None, Some(Flaw::Digests(2))));
        let with = |payloads: &[Payload]| Evidence { payloads: payloads.to_vec(), ..evidence() }.flaw(2);
        let [first, second] = [payload(0, 31, &[Uid(7)]), payload(0, 64, &[Uid(7), Uid(8)])];
        assert_eq!(with(&[first.clone(), second.clone()]), None);
        assert_eq!(
            with(std::slice::from_ref(&second)),
            Some(Flaw::Payload(0)),
            "the least digest is the digest of the capture"
        );
        assert_eq!(with(&[first.clone(), first.clone()]), Some(Flaw::Payload(0)), "each once");
        assert_eq!(with(&[first.clone(), payload(0, 30, &[])]), Some(Flaw::Payload(0)), "in order");
        assert_eq!(with(&[payload(0, 31, &[Uid(8), Uid(7)])]), Some(Flaw::Payload(0)), "links in order");
        assert_eq!(with(&[first.clone(), payload(1, 64, &[])]), Some(Flaw::Payload(1)), "at a revisit");
        assert_eq!(with(&[first, payload(2, 64, &[])]), Some(Flaw::Payload(2)), "outside");
        let none = Evidence { payloads: vec![payload(0, 0, &[])], ..Evidence::default() };
        assert_eq!(none.flaw(1), Some(Flaw::Payload(0)), "no digest");
        assert_eq!(evidence().foreign_payload(&[7, 8].map(Uid)), None);
        assert_eq!(evidence().foreign_payload(&[Uid(7)]), Some(Flaw::Payload(0)));
    }
}
