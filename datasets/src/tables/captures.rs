//! The capture table: `url`, `ts`, `links`.
//!
//! The links of a row lie end to end in the batch's text buffer: a row without null links is one copy.

use super::Batches;
use super::cells::{Times, texts};
use crate::{Capture, CaptureReader, Error, Finding, Tally};
use arrow::array::{Array, AsArray, RecordBatch, StringArray};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field};
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
    links: StringArray,
}

impl Batch {
    fn new(row: u64, batch: &RecordBatch) -> Option<Batch> {
        let list = batch.column(2);
        let list = match list.data_type() {
            DataType::List(_) => list.clone(),
            DataType::LargeList(item) | DataType::FixedSizeList(item, _) | DataType::ListView(item) => {
                cast(list, &DataType::List(Arc::new(Field::clone(item)))).ok()?
            }
            _ => return None,
        };
        let list = list.as_list_opt::<i32>()?;
        Some(Batch {
            row,
            urls: texts(batch.column(0))?,
            times: Times::new(batch.column(1))?,
            list_ends: list.offsets().clone(),
            list_nulls: list.nulls().cloned(),
            links: texts(list.values())?,
        })
    }

    /// Fills `capture` with a row; what stands against it otherwise.
    fn read(&self, row: usize, capture: &mut Capture, tally: &mut Tally) -> Result<(), (Finding, String)> {
        if self.urls.is_null(row) {
            return Err((Finding::BadRow, "null url".to_owned()));
        }
        if self.list_nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            return Err((Finding::BadRow, "null links".to_owned()));
        }
        let date = self.times.get(row)?;
        if date.finer {
            tally.count(Finding::FinerDate);
        }
        capture.url.push_str(self.urls.value(row));
        capture.time = date.seconds;
        let index = |end: i32| usize::try_from(end).unwrap_or(0);
        let (start, end) = (index(self.list_ends[row]), index(self.list_ends[row + 1]));
        if self.links.null_count() == 0 {
            let ends = &self.links.value_offsets()[start..=end];
            let text = &self.links.value_data()[index(ends[0])..index(ends[end - start])];
            let text = std::str::from_utf8(text).map_err(|error| (Finding::BadRow, error.to_string()))?;
            capture.links.extend(text, ends.windows(2).map(|pair| index(pair[1] - pair[0])));
        } else {
            for link in start..end {
                if self.links.is_valid(link) {
                    capture.links.push(self.links.value(link));
                }
            }
        }
        Ok(())
    }

    /// How many links of a row are null.
    fn null_links(&self, row: usize) -> usize {
        let index = |end: i32| usize::try_from(end).unwrap_or(0);
        let (start, end) = (index(self.list_ends[row]), index(self.list_ends[row + 1]));
        self.links.nulls().map_or(0, |nulls| nulls.slice(start, end - start).null_count())
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
                self.batch = Batch::new(row, &batch).or_else(|| self.batches.wrong_types(&batch, tally));
                continue;
            };
            let row = self.next;
            self.next += 1;
            for _ in 0..batch.null_links(row) {
                tally.damage(Finding::BadRow, &self.batches.path, batch.row + row as u64, "null link");
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
