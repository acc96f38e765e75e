//! The capture table: `url`, `ts`, and the optional columns.
//!
//! The links of a row are adjacent in the text buffer of the batch, so a row without null links is one copy. For a
//! column with dictionary encoding, the reader copies keys.

use super::Batches;
use super::cells::{Times, integers, texts};
use crate::capture::Dictionary;
use crate::capture::date::Date;
use crate::capture::digest::digest_of;
use crate::capture::meaning::Seen;
use crate::formats::record;
use crate::{Capture, CaptureReader, Error, Finding, Revisit, Tally};
use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, DictionaryArray, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use std::sync::Arc;

/// The columns that need not be there.
pub(super) const OPTIONAL: [&str; 5] = ["links", "status", "digest", "revisit", "redirect"];

pub(super) struct Captures {
    batches: Batches,
    /// Where the optional columns are in a batch.
    optional: [Option<usize>; OPTIONAL.len()],
    /// Whether redirects are links.
    redirects: bool,
    batch: Option<Batch>,
    /// Next row inside the batch.
    next: usize,
}

struct Batch {
    /// Row number in the file of the first row.
    row: u64,
    urls: StringArray,
    times: Times,
    links: Option<Lists>,
    statuses: Option<Int64Array>,
    digests: Option<StringArray>,
    revisits: Option<Revisits>,
    redirects: Option<StringArray>,
}

/// A column of lists of links.
struct Lists {
    /// Row i has the links `ends[i]..ends[i + 1]`.
    ends: OffsetBuffer<i32>,
    nulls: Option<NullBuffer>,
    links: Links,
}

/// A column of what revisits refer to.
struct Revisits {
    nulls: Option<NullBuffer>,
    profiles: Option<StringArray>,
    urls: Option<StringArray>,
    dates: Option<Times>,
}

impl Revisits {
    fn new(column: &ArrayRef) -> Option<Revisits> {
        let columns = column.as_struct_opt()?;
        let texts_of = |name: &str| columns.column_by_name(name).map_or(Some(None), |column| texts(column).map(Some));
        let dates = columns.column_by_name("refers_to_date").map_or(Some(None), |column| Times::new(column).map(Some));
        let (profiles, urls) = (texts_of("profile")?, texts_of("refers_to_target_uri")?);
        Some(Revisits { nulls: columns.nulls().cloned(), profiles, urls, dates: dates? })
    }

    fn get(&self, row: usize) -> Option<Revisit> {
        if self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            return None;
        }
        let mut revisit = record::revisit(text_in(&self.profiles, row), text_in(&self.urls, row), None);
        revisit.time = self.dates.as_ref().and_then(|dates| dates.get(row).ok()).map(Date::seconds);
        Some(revisit)
    }
}

/// The text in a row of a column, if there are such a column and such a text.
fn text_in(column: &Option<StringArray>, row: usize) -> Option<&str> {
    column.as_ref().filter(|column| column.is_valid(row)).map(|column| column.value(row))
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

impl Lists {
    /// `last` is the dictionary of the batch before.
    fn new(column: &ArrayRef, last: Option<Arc<Dictionary>>) -> Option<Lists> {
        let list = column.as_list_opt::<i32>()?;
        let links = Links::new(list.values(), last)?;
        Some(Lists { ends: list.offsets().clone(), nulls: list.nulls().cloned(), links })
    }

    fn range(&self, row: usize) -> (usize, usize) {
        let index = |end: i32| usize::try_from(end).unwrap_or(0);
        (index(self.ends[row]), index(self.ends[row + 1]))
    }

    /// Fills `capture` with the links of a row; whether there is a list.
    fn read(&self, row: usize, capture: &mut Capture) -> Result<bool, (Finding, String)> {
        if self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            return Ok(false);
        }
        let index = |end: i32| usize::try_from(end).unwrap_or(0);
        let (start, end) = self.range(row);
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
        Ok(true)
    }

    /// How many links of a row are null.
    fn null_links(&self, row: usize) -> usize {
        let (start, end) = self.range(row);
        let nulls = match &self.links {
            Links::Texts(links) => links.nulls(),
            Links::Keys(_, keys) => keys.nulls(),
        };
        nulls.map_or(0, |nulls| nulls.slice(start, end - start).null_count())
    }
}

impl Batch {
    /// `last` is the dictionary of the batch before.
    fn new(
        row: u64,
        batch: &RecordBatch,
        optional: [Option<usize>; OPTIONAL.len()],
        last: Option<Arc<Dictionary>>,
    ) -> Option<Batch> {
        /// What `read` makes of a column, if there is one; `None` where it holds something else.
        fn read<T>(column: Option<&ArrayRef>, read: impl FnOnce(&ArrayRef) -> Option<T>) -> Option<Option<T>> {
            column.map_or(Some(None), |column| read(column).map(Some))
        }
        let [links, statuses, digests, revisits, redirects] =
            optional.map(|index| index.map(|index| batch.column(index)));
        Some(Batch {
            row,
            urls: texts(batch.column(0))?,
            times: Times::new(batch.column(1))?,
            links: read(links, |column| Lists::new(column, last))?,
            statuses: read(statuses, integers)?,
            digests: read(digests, texts)?,
            revisits: read(revisits, Revisits::new)?,
            redirects: read(redirects, texts)?,
        })
    }

    /// Fills `capture` with a row; whether it is a capture, or what stands against it.
    fn read(
        &self,
        row: usize,
        redirects: bool,
        capture: &mut Capture,
        tally: &mut Tally,
    ) -> Result<bool, (Finding, String)> {
        if self.urls.is_null(row) {
            return Err((Finding::BadRow, "url is null".to_owned()));
        }
        let date = self.times.get(row)?;
        capture.url.push_str(self.urls.value(row));
        capture.digest = text_in(&self.digests, row).and_then(digest_of);
        let status = self.statuses.as_ref().filter(|statuses| statuses.is_valid(row)).map(|own| own.value(row));
        let has_links = self.links.as_ref().map_or(Ok(false), |links| links.read(row, capture))?;
        let revisit = self.revisits.as_ref().and_then(|revisits| revisits.get(row));
        let target = text_in(&self.redirects, row).filter(|url| !matches!(*url, "" | "-"));
        if !(Seen { status, has_links, revisit, target }).settle(redirects, capture, tally) {
            return Ok(false);
        }
        capture.time = date.counted(tally);
        Ok(true)
    }
}

impl Captures {
    pub(super) fn new(batches: Batches, optional: [Option<usize>; OPTIONAL.len()], redirects: bool) -> Self {
        Captures { batches, optional, redirects, batch: None, next: 0 }
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
                let last = self.batch.take().and_then(|batch| match batch.links?.links {
                    Links::Keys(dictionary, _) => Some(dictionary),
                    Links::Texts(_) => None,
                });
                self.batch =
                    Batch::new(row, &batch, self.optional, last).or_else(|| self.batches.wrong_types(&batch, tally));
                continue;
            };
            let row = self.next;
            self.next += 1;
            for _ in 0..batch.links.as_ref().map_or(0, |links| links.null_links(row)) {
                tally.damage(Finding::BadRow, &self.batches.path, batch.row + row as u64, "a link is null");
            }
            match batch.read(row, self.redirects, capture, tally) {
                Ok(true) => return Ok(true),
                Ok(false) => {}
                Err((finding, detail)) => {
                    tally.damage(finding, &self.batches.path, batch.row + row as u64, detail);
                }
            }
        }
    }
}
