//! The capture table: `url`, `ts`, `links`, and `status` where there is such a column.
//!
//! The links of a row are adjacent in the text buffer of the batch, so a row without null links is one copy. For a
//! column with dictionary encoding, the reader copies keys.

use super::Batches;
use super::cells::{Times, integers, texts};
use crate::capture::Dictionary;
use crate::{Capture, CaptureReader, Error, Finding, Tally};
use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, DictionaryArray, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use std::sync::Arc;

pub(super) struct Captures {
    batches: Batches,
    batch: Option<Batch>,
    /// Next row inside the batch.
    next: usize,
}

struct Batch {
    /// Row number in the file of the first row.
    row: u64,
    urls: StringArray,
    times: Times,
    /// Row i has the links `list_ends[i]..list_ends[i + 1]`.
    list_ends: OffsetBuffer<i32>,
    list_nulls: Option<NullBuffer>,
    links: Links,
    statuses: Option<Int64Array>,
}

enum Links {
    Texts(StringArray),
    Keys(Arc<Dictionary>, Int32Array),
}

impl Links {
    fn new(values: &ArrayRef, last: Option<Arc<Dictionary>>) -> Option<Links> {
        let Some(coded) = values.as_any().downcast_ref::<DictionaryArray<Int32Type>>() else {
            return texts(values).map(Links::Texts);
        };
        let texts = coded.values().as_string_opt::<i32>()?;
        // A key outside its dictionary, or a null inside it, is met before the links are used.
        let sound = texts.null_count() == 0
            && coded.keys().iter().flatten().all(|key| usize::try_from(key).is_ok_and(|key| key < texts.len()));
        let dictionary = last.filter(|last| last.is(texts)).unwrap_or_else(|| Arc::new(Dictionary::new(texts.clone())));
        sound.then(|| Links::Keys(dictionary, coded.keys().clone()))
    }
}

impl Batch {
    /// `last` is the dictionary of the batch before.
    fn new(row: u64, batch: &RecordBatch, last: Option<Arc<Dictionary>>) -> Option<Batch> {
        let list = batch.column(2).as_list_opt::<i32>()?;
        let statuses = match batch.columns().get(3) {
            Some(column) => Some(integers(column)?),
            None => None,
        };
        Some(Batch {
            row,
            statuses,
            urls: texts(batch.column(0))?,
            times: Times::new(batch.column(1))?,
            list_ends: list.offsets().clone(),
            list_nulls: list.nulls().cloned(),
            links: Links::new(list.values(), last)?,
        })
    }

    /// Fills `capture` with a row; what stands against it otherwise.
    fn read(&self, row: usize, capture: &mut Capture, tally: &mut Tally) -> Result<(), (Finding, String)> {
        if self.urls.is_null(row) {
            return Err((Finding::BadRow, "url is null".to_owned()));
        }
        if self.list_nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            return Err((Finding::BadRow, "links is null".to_owned()));
        }
        capture.time = self.times.get(row)?.counted(tally);
        capture.url.push_str(self.urls.value(row));
        if let Some(statuses) = self.statuses.as_ref().filter(|statuses| statuses.is_valid(row)) {
            let status = statuses.value(row);
            let code = u16::try_from(status).ok().filter(|code| (200..=999).contains(code));
            let wrong = || (Finding::BadRow, format!("{status} is no status (expected 200 to 999)"));
            capture.status = Some(code.ok_or_else(wrong)?);
        }
        let index = |end: i32| usize::try_from(end).unwrap_or(0);
        let (start, end) = (index(self.list_ends[row]), index(self.list_ends[row + 1]));
        match &self.links {
            Links::Keys(dictionary, keys) if keys.null_count() == 0 => {
                capture.links.set_keys(dictionary, &keys.values()[start..end]);
            }
            Links::Keys(dictionary, keys) => {
                let valid = (start..end).filter(|&link| keys.is_valid(link));
                valid.for_each(|link| capture.links.push(dictionary.get(keys.value(link))));
            }
            Links::Texts(links) if links.null_count() == 0 => {
                let ends = &links.value_offsets()[start..=end];
                let text = &links.value_data()[index(ends[0])..index(ends[end - start])];
                let text = std::str::from_utf8(text).map_err(|error| (Finding::BadRow, error.to_string()))?;
                capture.links.extend(text, ends.windows(2).map(|pair| index(pair[1] - pair[0])));
            }
            Links::Texts(links) => {
                (start..end)
                    .filter(|&link| links.is_valid(link))
                    .for_each(|link| capture.links.push(links.value(link)));
            }
        }
        Ok(())
    }

    /// How many links of a row are null.
    fn null_links(&self, row: usize) -> usize {
        let index = |end: i32| usize::try_from(end).unwrap_or(0);
        let (start, end) = (index(self.list_ends[row]), index(self.list_ends[row + 1]));
        let nulls = match &self.links {
            Links::Texts(links) => links.nulls(),
            Links::Keys(_, keys) => keys.nulls(),
        };
        nulls.map_or(0, |nulls| nulls.slice(start, end - start).null_count())
    }
}

impl Captures {
    pub(super) fn new(batches: Batches) -> Self {
        Captures { batches, batch: None, next: 0 }
    }
}

impl CaptureReader for Captures {
    fn read(&mut self, capture: &mut Capture, tally: &mut Tally) -> Result<bool, Error> {
        loop {
            capture.clear();
            let Some(batch) = self.batch.as_ref().filter(|batch| self.next < batch.urls.len()) else {
                let Some((row, batch)) = self.batches.next(tally) else {
                    self.batch = None;
                    return Ok(false);
                };
                self.next = 0;
                let last = self.batch.take().and_then(|batch| match batch.links {
                    Links::Keys(dictionary, _) => Some(dictionary),
                    Links::Texts(_) => None,
                });
                self.batch = Batch::new(row, &batch, last).or_else(|| self.batches.wrong_types(&batch, tally));
                continue;
            };
            let row = self.next;
            self.next += 1;
            for _ in 0..batch.null_links(row) {
                tally.damage(Finding::BadRow, &self.batches.path, batch.row + row as u64, "a link is null");
            }
            match batch.read(row, capture, tally) {
                Ok(()) => return Ok(true),
                Err((finding, detail)) => {
                    tally.damage(finding, &self.batches.path, batch.row + row as u64, detail);
                }
            }
        }
    }
}
