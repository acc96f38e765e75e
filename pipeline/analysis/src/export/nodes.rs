//! Nodes: a row for each node, in the order of UIDs. Nodes are all URLs of the store, or the nodes of the window.
//!
//! | column | type | meaning |
//! |---|---|---|
//! | `id` | uint64 | the UID, as in `src` and `dst` of edges and events |
//! | `url`, `surt` | string | the URL, and its urlkey for joins with CDX indexes |
//! | `host`, `domain` | string, or null | the host and its registrable domain; null for a URL without a host |
//! | `first_capture`, `last_capture` | timestamp, or null | first and last capture in the window; null if none |
//! | `captures` | uint32 | the number of these captures |
//!
//! For Gephi, the columns are `Id`, `Label` (the URL), `Host`, `Domain`, `Captures` and `Time Interval`, from the first
//! capture to the last.

use super::edges::number;
use super::table::{CHUNK, create, intervals};
use super::{Export, ExportReport, Names, Stream};
use crate::Error;
use crate::stretches::captures_selected;
use crate::table::{TableWriter, column, time, times};
use arrow_array::builder::StringBuilder;
use arrow_array::{ArrayRef, StringArray, UInt32Array, UInt64Array};
use arrow_schema::{DataType, Field};
use std::sync::Arc;
use webstrata_layers::record::key::host_of;
use webstrata_layers::{Links, Page, Uid};
use webstrata_url::domain_of;

#[derive(Default)]
struct NodeColumns {
    ids: Vec<Uid>,
    urls: StringBuilder,
    surts: StringBuilder,
    hosts: StringBuilder,
    domains: StringBuilder,
    captures: Vec<u32>,
    /// The times of the first and the last capture.
    times: Vec<Option<(i64, i64)>>,
}

impl NodeColumns {
    fn write(&mut self, table: &mut TableWriter<'_>, names: Names) -> Result<(), Error> {
        let NodeColumns { ids, mut urls, mut surts, mut hosts, mut domains, captures, times: lifetimes } =
            std::mem::take(self);
        if ids.is_empty() {
            return Ok(());
        }
        let ids: ArrayRef = Arc::new(UInt64Array::from(Uid::into_numbers(ids)));
        let captures: ArrayRef = Arc::new(UInt32Array::from(captures));
        let [urls, surts, hosts, domains] =
            [&mut urls, &mut surts, &mut hosts, &mut domains].map(|texts| -> ArrayRef { Arc::new(texts.finish()) });
        if names == Names::Gephi {
            let lifetimes =
                lifetimes.iter().map(|lifetime| lifetime.map(|lifetime| intervals(std::iter::once(lifetime))));
            return table.write(vec![
                ids,
                urls,
                hosts,
                domains,
                captures,
                Arc::new(lifetimes.collect::<StringArray>()),
            ]);
        }
        let first = times(lifetimes.iter().map(|lifetime| lifetime.map(|(first, _)| first)));
        let last = times(lifetimes.iter().map(|lifetime| lifetime.map(|(_, last)| last)));
        table.write(vec![ids, urls, surts, hosts, domains, first, last, captures])
    }
}

fn fields(names: Names) -> Vec<Field> {
    let text = |name| column(name, DataType::Utf8);
    let perhaps = |name, of| Field::new(name, of, true);
    if names == Names::Gephi {
        let [host, domain, lifetimes] = ["Host", "Domain", "Time Interval"].map(|name| perhaps(name, DataType::Utf8));
        let id = column("Id", DataType::UInt64);
        return vec![id, text("Label"), host, domain, column("Captures", DataType::UInt32), lifetimes];
    }
    let [host, domain] = ["host", "domain"].map(|name| perhaps(name, DataType::Utf8));
    let [first, last] = ["first_capture", "last_capture"].map(|name| perhaps(name, time()));
    let (id, captures) = (column("id", DataType::UInt64), column("captures", DataType::UInt32));
    vec![id, text("url"), text("surt"), host, domain, first, last, captures]
}

/// Writes the table.
pub(super) fn write(export: &Export<'_>, stream: &mut Stream) -> Result<ExportReport, Error> {
    let (names, window) = (export.options.names, export.options.window);
    let mut table = create(export, stream, fields(names))?;
    let mut pages = export.reader.pages(export.uids());
    let mut page = Page::default();
    let mut has_page = pages.read(&mut page)?;
    let mut batch = NodeColumns::default();
    export.urls("nodes", true, |uid, url, surt| {
        let mut captures = 0..0;
        let mut lifetime = None;
        if has_page && page.uid == uid {
            captures = captures_selected(&page, window);
            let times = &page.timestamps[captures.clone()];
            lifetime = times.first().copied().zip(times.last().copied());
            has_page = pages.read(&mut page)?;
        }
        if !export.is_node(uid) {
            return Ok(());
        }
        let host = host_of(url);
        batch.ids.push(uid);
        batch.urls.append_value(url);
        batch.surts.append_value(surt);
        batch.hosts.append_option(host);
        batch.domains.append_option(host.map(domain_of));
        batch.captures.push(number(captures.len() as u64));
        batch.times.push(lifetime);
        if batch.ids.len() >= CHUNK { batch.write(&mut table, names) } else { Ok(()) }
    })?;
    batch.write(&mut table, names)?;
    Ok(ExportReport { epoch: export.reader.epoch(), records: table.finish()?, nodes: 0 })
}
