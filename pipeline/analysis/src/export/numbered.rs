//! Links as lines of two numbers: a Matrix Market file, or an edge list of NetworKit.
//!
//! Nodes are numbered from 1 in the order of UIDs. Without a window, the URL with the UID n has the number n + 1. In a
//! window, node n is row n of an export of the nodes. Lines are in the order of (page, link).
//!
//! - Matrix Market (`coordinate pattern general`): a square matrix with an entry where the page of the row links to the
//!   URL of the column. The head of the file has the number of entries, so pages are read twice.
//! - NetworKit `EdgeListTabOne`: page, tab, link. Read it by `EdgeListReader('\t', 1, directed=True)`, because
//!   `readGraph` with this format forgets the direction. URLs after the last URL that has a link do not appear.

use super::table::in_words;
use super::{Export, ExportReport, Format, Stream};
use crate::Error;
use crate::outlet::Outlet;
use crate::stretches::for_each_link;
use std::io::Write;
use webstrata_layers::Links;

/// Writes the file.
pub(super) fn write(export: &Export<'_>, stream: &mut Stream) -> Result<ExportReport, Error> {
    let (window, nodes, epoch) = (export.options.window, export.count(), export.reader.epoch());
    let mut text = Outlet::open(&export.options.target, stream)?;
    let is_matrix = export.options.format == Format::Mtx;
    if is_matrix {
        let mut links = 0u64;
        export.pages("links", |page| {
            for_each_link(page, window, |_, _| {
                links += 1;
                Ok(())
            })
        })?;
        let window = in_words(window);
        let head = write!(
            text,
            "%%MatrixMarket matrix coordinate pattern general\n% links of a web archive, {window}; epoch {epoch}\n\
            {nodes} {nodes} {links}\n"
        );
        head.map_err(|source| text.failed(source))?;
    }
    let separator = if is_matrix { ' ' } else { '\t' };
    let mut records = 0;
    export.pages("edges", |page| {
        for_each_link(page, window, |link, _| {
            records += 1;
            let (page, link) = (export.number(page.uid) + 1, export.number(link) + 1);
            writeln!(text, "{page}{separator}{link}").map_err(|source| text.failed(source))
        })
    })?;
    text.finish()?;
    Ok(ExportReport { epoch, records, nodes })
}
