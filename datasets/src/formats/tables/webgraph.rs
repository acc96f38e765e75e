//! The web graph table of the Archives Unleashed Toolkit and of ARCH. Each row is a link: `crawl_date`, source,
//! destination.
//!
//! These tools write the rows of one capture next to each other. If the rows are apart, the page has several captures
//! of one second, and later stages merge the captures.

use super::Batches;
use super::cells::{Times, texts};
use crate::capture::meaning::Seen;
use crate::{Capture, CaptureReader, Error, Finding, Tally};
use arrow_array::{Array, RecordBatch, StringArray};

pub(super) struct Webgraph {
    batches: Batches,
    batch: Option<Batch>,
    /// Next row inside the batch.
    next: usize,
}

struct Batch {
    /// Row number in the file of the first row.
    row: u64,
    sources: StringArray,
    times: Times,
    links: StringArray,
}

impl Batch {
    fn new(row: u64, batch: &RecordBatch) -> Option<Batch> {
        let [source, time, link] = [0, 1, 2].map(|column| batch.column(column));
        Some(Batch { row, sources: texts(source)?, times: Times::new(time)?.of_digits(), links: texts(link)? })
    }
}

impl Webgraph {
    pub(super) fn new(batches: Batches) -> Self {
        Webgraph { batches, batch: None, next: 0 }
    }
}

impl CaptureReader for Webgraph {
    fn read(&mut self, capture: &mut Capture, tally: &mut Tally) -> Result<bool, Error> {
        capture.clear();
        let mut begun = false;
        loop {
            let Some(batch) = self.batch.as_ref().filter(|batch| self.next < batch.sources.len()) else {
                let Some((row, batch)) = self.batches.next(tally) else {
                    self.batch = None;
                    return Ok(begun && Seen::links().settle(false, capture, tally));
                };
                self.next = 0;
                self.batch = Batch::new(row, &batch).or_else(|| self.batches.wrong_types(&batch, tally));
                continue;
            };
            let row = self.next;
            let read = || {
                if batch.sources.is_null(row) || batch.links.is_null(row) {
                    return Err((Finding::BadRow, "the source or the destination is null".to_owned()));
                }
                Ok((batch.sources.value(row), batch.times.get(row)?, batch.links.value(row)))
            };
            match read() {
                Ok((source, date, link)) => {
                    if !begun {
                        begun = true;
                        capture.url.push_str(source);
                        capture.time = date.counted(tally);
                    } else if capture.url != source || capture.time != date.seconds() {
                        return Ok(Seen::links().settle(false, capture, tally));
                    }
                    capture.links.push(link);
                }
                Err((finding, detail)) => tally.damage(finding, &self.batches.path, batch.row + row as u64, detail),
            }
            self.next += 1;
        }
    }
}
