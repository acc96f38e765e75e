//! The layers as one plain table: a row for each page, which other tools read without decoding presence.
//!
//! | column | type | meaning |
//! |---|---|---|
//! | `uid`, `url` | uint64, string | the page |
//! | `timestamps` | list of timestamp | the captures of the page in the window, rising |
//! | `known` | list of bool | for each capture, whether its links are known; of a cut capture, those that were found |
//! | `statuses` | list of uint16 | for each capture, the HTTP status |
//! | `cut` | list of string | for each capture, why its body was cut; empty if it was read whole |
//! | `lifespans` | list of struct | stretches of captures with a link, by (link, first) |
//! | `lifespans.link` | uint64 | the link |
//! | `lifespans.first`, `.last` | timestamp | the first and the last capture of the stretch |
//! | `lifespans.captures` | uint32 | captures of the stretch that have the link |
//!
//! If several rows of the store have records of a page, the records are joined. Pages without a capture in the window
//! are left out. Rows are in the order of UIDs. In DuckDB, `SELECT uid, unnest(lifespans, recursive := true)` gives all
//! links with their times.

use super::edges::number;
use super::table::{CHUNK, create};
use super::{Export, ExportReport, Stream};
use crate::Error;
use crate::stretches::{captures_selected, for_each_link};
use crate::table::{TableWriter, column, time, times};
use arrow_array::builder::StringBuilder;
use arrow_array::{
    Array, ArrayRef, BooleanArray, ListArray, StringArray, StructArray, UInt16Array, UInt32Array, UInt64Array,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field, Fields};
use std::sync::Arc;
use webstrata_layers::{Cut, Links, Page, Uid};

/// The number of list elements at which a batch is written, whether it has many small pages or one large page.
const ELEMENTS: usize = 1 << 18;

#[derive(Default)]
struct PageColumns {
    uids: Vec<Uid>,
    urls: StringBuilder,
    /// The number of captures of each page, and the data of all captures.
    captures: Vec<usize>,
    times: Vec<i64>,
    known: Vec<bool>,
    statuses: Vec<u16>,
    /// The reason why each capture is cut; empty if it is whole.
    cut: Vec<&'static str>,
    /// The number of lifespans of each page, and the data of all lifespans.
    stretches: Vec<usize>,
    links: Vec<Uid>,
    first: Vec<i64>,
    last: Vec<i64>,
    captures_with: Vec<u32>,
}

impl PageColumns {
    fn write(&mut self, table: &mut TableWriter<'_>) -> Result<(), Error> {
        let mut batch = std::mem::take(self);
        if batch.uids.is_empty() {
            return Ok(());
        }
        let time_column = |seconds: Vec<i64>| times(seconds.into_iter().map(Some));
        let stretches = StructArray::new(
            stretch_fields(),
            vec![
                Arc::new(UInt64Array::from(Uid::into_numbers(batch.links))) as ArrayRef,
                time_column(batch.first),
                time_column(batch.last),
                Arc::new(UInt32Array::from(batch.captures_with)),
            ],
            None,
        );
        let known: ArrayRef = Arc::new(BooleanArray::from(batch.known));
        let columns: Vec<ArrayRef> = vec![
            Arc::new(UInt64Array::from(Uid::into_numbers(batch.uids))),
            Arc::new(batch.urls.finish()),
            list(&batch.captures, time_column(batch.times)),
            list(&batch.captures, known),
            list(&batch.captures, Arc::new(UInt16Array::from(batch.statuses))),
            list(&batch.captures, Arc::new(StringArray::from(batch.cut))),
            list(&batch.stretches, Arc::new(stretches)),
        ];
        table.write(columns)
    }
}

fn element(of: DataType) -> Arc<Field> {
    Arc::new(column("element", of))
}

fn list(lengths: &[usize], elements: ArrayRef) -> ArrayRef {
    let offsets = OffsetBuffer::from_lengths(lengths.iter().copied());
    Arc::new(ListArray::new(element(elements.data_type().clone()), offsets, elements, None))
}

fn stretch_fields() -> Fields {
    let link = column("link", DataType::UInt64);
    vec![link, column("first", time()), column("last", time()), column("captures", DataType::UInt32)].into()
}

/// Writes the table.
pub(super) fn write(export: &Export<'_>, stream: &mut Stream) -> Result<ExportReport, Error> {
    let window = export.options.window;
    let list_of = |name, of| column(name, DataType::List(element(of)));
    let fields = vec![
        column("uid", DataType::UInt64),
        column("url", DataType::Utf8),
        list_of("timestamps", time()),
        list_of("known", DataType::Boolean),
        list_of("statuses", DataType::UInt16),
        list_of("cut", DataType::Utf8),
        list_of("lifespans", DataType::Struct(stretch_fields())),
    ];
    let mut table = create(export, stream, fields)?;
    let mut pages = export.reader.pages(export.uids());
    let (mut page, mut next) = (Page::default(), Page::default());
    let mut has_next = pages.read(&mut next)?;
    let mut batch = PageColumns::default();
    export.urls("layers", false, |uid, url, _| {
        if !has_next || next.uid != uid {
            return Ok(());
        }
        std::mem::swap(&mut page, &mut next);
        has_next = pages.read(&mut next)?;
        let captures = captures_selected(&page, window);
        if captures.is_empty() {
            return Ok(());
        }
        batch.uids.push(uid);
        batch.urls.append_value(url);
        batch.captures.push(captures.len());
        batch.times.extend_from_slice(&page.timestamps[captures.clone()]);
        let captures = captures.map(|at| number(at as u64));
        batch.known.extend(captures.clone().map(|at| page.is_known(at)));
        batch.statuses.extend(captures.clone().map(|at| page.status(at).code()));
        batch.cut.extend(captures.map(|at| page.status(at).reason().map_or("", Cut::name)));
        let before = batch.links.len();
        for_each_link(&page, window, |link, stretches| {
            for stretch in stretches {
                batch.links.push(link);
                batch.first.push(page.timestamps[stretch.first as usize]);
                batch.last.push(page.timestamps[stretch.last as usize]);
                batch.captures_with.push(number(stretch.captures));
            }
            Ok(())
        })?;
        batch.stretches.push(batch.links.len() - before);
        let is_full = batch.uids.len() >= CHUNK || batch.links.len().max(batch.times.len()) >= ELEMENTS;
        if is_full { batch.write(&mut table) } else { Ok(()) }
    })?;
    batch.write(&mut table)?;
    Ok(ExportReport { epoch: export.reader.epoch(), records: table.finish()?, nodes: 0 })
}
