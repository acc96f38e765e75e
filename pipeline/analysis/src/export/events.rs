//! Events: a row for each time that a link of a page appears or goes.
//!
//! | column | type | meaning |
//! |---|---|---|
//! | `src`, `dst` | uint64, or string with URLs | the page, and the link |
//! | `timestamp` | timestamp | the capture that differs from the known capture before it |
//! | `present` | bool | whether this capture has the link |
//!
//! A link of the first known capture appears at that capture. A capture with unknown links neither has nor lacks a
//! link, and neither does a failure of the server. At a failure that ends the page, all its links go. A window selects
//! among the events of all time, so the events of two consecutive windows are together those of the joined window. Rows
//! are in the order of (page, link, time), and `present` alternates between true and false.

use super::table::{CHUNK, create};
use super::texts::Ends;
use super::{Export, ExportReport, Stream};
use crate::Error;
use crate::stretches::{for_each_link, next_telling};
use crate::table::{TableWriter, column, time, times};
use arrow_array::BooleanArray;
use arrow_schema::DataType;
use std::sync::Arc;
use webstrata_layers::{AsOf, Links, Uid, Window};

#[derive(Default)]
struct EventColumns {
    src: Vec<Uid>,
    dst: Vec<Uid>,
    time: Vec<i64>,
    present: Vec<bool>,
}

impl EventColumns {
    fn write(&mut self, table: &mut TableWriter<'_>, ends: &mut Ends<'_>) -> Result<(), Error> {
        ends.load(self.src.iter().chain(&self.dst))?;
        for start in (0..self.src.len()).step_by(CHUNK) {
            let rows = start..(start + CHUNK).min(self.src.len());
            let [src, dst] = [&self.src, &self.dst].map(|uids| ends.column(&uids[rows.clone()]));
            let time = times(self.time[rows.clone()].iter().copied().map(Some));
            table.write(vec![src, dst, time, Arc::new(BooleanArray::from(self.present[rows].to_vec()))])?;
        }
        *self = EventColumns::default();
        Ok(())
    }
}

/// Writes the table.
pub(super) fn write(export: &Export<'_>, stream: &mut Stream) -> Result<ExportReport, Error> {
    let mut ends = Ends::new(export);
    let rows_max = ends.batch(export);
    let [src, dst] = export.options.names.ends().map(|name| column(name, ends.data_type()));
    let fields = vec![src, dst, column("timestamp", time()), column("present", DataType::Boolean)];
    let mut table = create(export, stream, fields)?;
    let (from, to) = match export.options.window {
        Window::Seen { from, to } => (from, to),
        Window::AsOf(AsOf { time, .. }) => (time, time),
    };
    let mut batch = EventColumns::default();
    export.pages("events", |page| {
        for_each_link(page, Window::ALWAYS, |link, stretches| {
            for stretch in stretches {
                for (at, present) in [(Some(stretch.first), true), (next_telling(page, stretch.last), false)] {
                    let time = at.map(|at| page.timestamps[at as usize]);
                    let Some(time) = time.filter(|time| (from..=to).contains(time)) else { continue };
                    batch.src.push(page.uid);
                    batch.dst.push(link);
                    batch.time.push(time);
                    batch.present.push(present);
                }
            }
            if batch.src.len() >= rows_max { batch.write(&mut table, &mut ends) } else { Ok(()) }
        })
    })?;
    batch.write(&mut table, &mut ends)?;
    Ok(ExportReport { epoch: export.reader.epoch(), records: table.finish()?, nodes: 0 })
}
