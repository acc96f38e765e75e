//! Edges as intervals: a row for each pair of a page and a link that is in a known capture of the window.
//!
//! | column | type | meaning |
//! |---|---|---|
//! | `src`, `dst` | uint64, or string with URLs | the page, and the link |
//! | `first_seen`, `last_seen` | timestamp | the first and the last capture of the window that has the link |
//! | `captures` | uint32 | captures of the page in the window that tell which links it has: no failure of the server |
//! | `captures_with_link` | uint32 | captures with the link; equal to `captures` if the link was always there |
//!
//! Rows are in the order of (page, link). For Gephi, the columns are `Source`, `Target`, `Type` (`Directed`), `Weight`
//! (captures with the link) and `Time Interval`, which has each run of captures with the link.

use super::table::{CHUNK, create, intervals};
use super::texts::Ends;
use super::{Export, ExportReport, Names, Stream};
use crate::Error;
use crate::stretches::{captures_of, captures_telling, for_each_link, telling_of};
use crate::table::{TableWriter, column, time, times};
use arrow_array::{ArrayRef, StringArray, UInt32Array};
use arrow_schema::{DataType, Field};
use std::ops::Range;
use std::sync::Arc;
use webstrata_layers::Links;
use webstrata_layers::Uid;

/// Rows that are not written yet, by column.
#[derive(Default)]
struct EdgeColumns {
    src: Vec<Uid>,
    dst: Vec<Uid>,
    first: Vec<i64>,
    last: Vec<i64>,
    captures: Vec<u32>,
    with_link: Vec<u32>,
    intervals: Vec<String>,
}

impl EdgeColumns {
    fn columns(&self, ends: &Ends<'_>, names: Names, rows: Range<usize>) -> Vec<ArrayRef> {
        let [src, dst] = [&self.src, &self.dst].map(|uids| ends.column(&uids[rows.clone()]));
        let numbers = |column: &[u32]| Arc::new(UInt32Array::from(column[rows.clone()].to_vec())) as ArrayRef;
        if names == Names::Gephi {
            let kinds = StringArray::from_iter_values(rows.clone().map(|_| "Directed"));
            let stretches = StringArray::from_iter_values(&self.intervals[rows.clone()]);
            return vec![src, dst, Arc::new(kinds), numbers(&self.with_link), Arc::new(stretches)];
        }
        let [first, last] =
            [&self.first, &self.last].map(|column| times(column[rows.clone()].iter().copied().map(Some)));
        vec![src, dst, first, last, numbers(&self.captures), numbers(&self.with_link)]
    }

    fn clear(&mut self) {
        self.src.clear();
        self.dst.clear();
        self.first.clear();
        self.last.clear();
        self.captures.clear();
        self.with_link.clear();
        self.intervals.clear();
    }

    fn write(&mut self, table: &mut TableWriter<'_>, ends: &mut Ends<'_>, names: Names) -> Result<(), Error> {
        ends.load(self.src.iter().chain(&self.dst))?;
        for start in (0..self.src.len()).step_by(CHUNK) {
            table.write(self.columns(ends, names, start..(start + CHUNK).min(self.src.len())))?;
        }
        self.clear();
        Ok(())
    }
}

fn fields(names: Names, ends: &DataType) -> Vec<Field> {
    let [src, dst] = names.ends().map(|name| column(name, ends.clone()));
    if names == Names::Gephi {
        let text = |name| column(name, DataType::Utf8);
        return vec![src, dst, text("Type"), column("Weight", DataType::UInt32), text("Time Interval")];
    }
    let [first, last] = ["first_seen", "last_seen"].map(|name| column(name, time()));
    let [captures, with_link] = ["captures", "captures_with_link"].map(|name| column(name, DataType::UInt32));
    vec![src, dst, first, last, captures, with_link]
}

/// Writes the table.
pub(super) fn write(export: &Export<'_>, stream: &mut Stream) -> Result<ExportReport, Error> {
    let (names, window) = (export.options.names, export.options.window);
    let mut ends = Ends::new(export);
    let rows_max = ends.batch(export);
    let mut table = create(export, stream, fields(names, &ends.data_type()))?;
    let mut batch = EdgeColumns::default();
    export.pages("edges", |page| {
        let telling = captures_telling(page, window);
        for_each_link(page, window, |link, stretches| {
            let time = |at: u32| page.timestamps[at as usize];
            batch.src.push(page.uid);
            batch.dst.push(link);
            batch.first.push(time(stretches[0].first));
            batch.last.push(time(stretches[stretches.len() - 1].last));
            batch.captures.push(number(telling_of(telling, stretches)));
            batch.with_link.push(number(captures_of(stretches)));
            if names == Names::Gephi {
                batch
                    .intervals
                    .push(intervals(stretches.iter().map(|stretch| (time(stretch.first), time(stretch.last)))));
            }
            if batch.src.len() >= rows_max { batch.write(&mut table, &mut ends, names) } else { Ok(()) }
        })
    })?;
    batch.write(&mut table, &mut ends, names)?;
    Ok(ExportReport { epoch: export.reader.epoch(), records: table.finish()?, nodes: 0 })
}

/// Converts a number of captures. A page has fewer than 2^32 captures.
pub(super) fn number(captures: u64) -> u32 {
    u32::try_from(captures).unwrap_or(u32::MAX)
}
