//! Links capture by capture, in the columns of the web graph of the Archives Unleashed Toolkit.
//!
//! | column | type | meaning |
//! |---|---|---|
//! | `crawl_date` | string | the capture, as 14 digits |
//! | `src`, `dest` | string | the URL of the page, and the URL of the link |
//!
//! There is a row for each known capture of the window and each of its links, and the rows of a capture are adjacent. A
//! store has no anchor texts, so there is no column for them. Captures without links have no rows. This table is many
//! times larger than edges as intervals. Memory: the stretches of one page and a batch.

use super::table::{CHUNK, create};
use super::texts::{Ends, Texts};
use super::{Export, ExportReport, Names, Stream};
use crate::Error;
use crate::stretches::{Run, for_each_run};
use crate::table::{TableWriter, column};
use arrow_array::StringArray;
use arrow_schema::DataType;
use std::sync::Arc;
use webstrata_layers::{Links, Uid, format_digits};

#[derive(Default)]
struct OccurrenceColumns {
    src: Vec<Uid>,
    dest: Vec<Uid>,
    time: Vec<i64>,
}

impl OccurrenceColumns {
    fn write(&mut self, table: &mut TableWriter<'_>, ends: &mut Ends<'_>) -> Result<(), Error> {
        ends.load(self.src.iter().chain(&self.dest))?;
        for start in (0..self.src.len()).step_by(CHUNK) {
            let rows = start..(start + CHUNK).min(self.src.len());
            let dates = self.time[rows.clone()].iter().map(|&time| format_digits(time));
            let [src, dest] = [&self.src, &self.dest].map(|uids| ends.column(&uids[rows.clone()]));
            table.write(vec![Arc::new(StringArray::from_iter_values(dates)), src, dest])?;
        }
        *self = OccurrenceColumns::default();
        Ok(())
    }
}

/// Writes the table.
pub(super) fn write(export: &Export<'_>, stream: &mut Stream) -> Result<ExportReport, Error> {
    let window = export.options.window;
    let [src, dest] = Names::Aut.ends();
    let fields = ["crawl_date", src, dest].map(|name| column(name, DataType::Utf8)).to_vec();
    let mut table = create(export, stream, fields)?;
    let mut ends = Ends::Urls(Texts::new(export.reader));
    let rows_max = ends.batch(export);
    let (mut batch, mut links) = (OccurrenceColumns::default(), Vec::<(Uid, Vec<Run>)>::new());
    export.pages("edges", |page| {
        links.clear();
        for_each_run(page, window, |link, runs| {
            links.push((link, runs.to_vec()));
            Ok(())
        })?;
        let Some((first, last)) = page.captures().selected(window) else { return Ok(()) };
        for at in (first..=last).filter(|&at| !page.is_blank(at)) {
            let has = |runs: &[Run]| runs.iter().any(|&(first, last)| (first..=last).contains(&at));
            for (link, _) in links.iter().filter(|(_, runs)| has(runs)) {
                batch.src.push(page.uid);
                batch.dest.push(*link);
                batch.time.push(page.timestamps[at as usize]);
            }
            if batch.src.len() >= rows_max {
                batch.write(&mut table, &mut ends)?;
            }
        }
        Ok(())
    })?;
    batch.write(&mut table, &mut ends)?;
    Ok(ExportReport { epoch: export.reader.epoch(), records: table.finish()?, nodes: 0 })
}
