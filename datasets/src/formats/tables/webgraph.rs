//! The web graph table of the Archives Unleashed Toolkit and of ARCH. Each row is a link: `crawl_date`, source,
//! destination.
//!
//! These tools write the rows of one capture next to each other. If the rows are apart, the page has several captures
//! of one second, and later stages merge the captures.

use super::Columns;
use super::cells::{Texts, Times};
use crate::capture::date::Date;
use crate::capture::meaning::Seen;
use crate::{Capture, CaptureReader, Error, Finding, Tally};
use std::io;

pub(super) struct Webgraph {
    columns: Columns,
    sources: Texts,
    times: Times,
    links: Texts,
    row: Row,
    /// Whether `row` belongs to the next capture.
    is_held: bool,
}

/// A row as it was read.
#[derive(Default)]
struct Row {
    source: String,
    link: String,
    date: Option<Date>,
}

impl Webgraph {
    /// Opens the root columns of source, date and destination. Returns the columns if one of them has another type.
    pub(super) fn new(columns: Columns, [source, date, link]: [usize; 3]) -> Result<Self, Columns> {
        let texts = |root: usize| Texts::new(columns.leaf(root, None)?, columns.field(root).data_type());
        let times = columns.leaf(date, None).and_then(|column| Times::new(column, columns.field(date).data_type()));
        let (Some(sources), Some(times), Some(links)) = (texts(source), times, texts(link)) else {
            return Err(columns);
        };
        let times = times.of_digits();
        Ok(Webgraph { columns, sources, times, links, row: Row::default(), is_held: false })
    }

    /// Reads a row. Returns its date, or why the row cannot be used.
    fn read_row(&mut self) -> io::Result<Result<Date, (Finding, String)>> {
        let Row { source, link, .. } = &mut self.row;
        source.clear();
        link.clear();
        let are_there = [self.sources.read(source)?, self.links.read(link)?];
        let date = self.times.next()?;
        let null = || (Finding::BadRow, "the source or the destination is null".to_owned());
        Ok(if are_there == [true; 2] { date } else { Err(null()) })
    }
}

impl CaptureReader for Webgraph {
    fn read(&mut self, capture: &mut Capture, tally: &mut Tally) -> Result<bool, Error> {
        capture.clear();
        let mut is_begun = false;
        loop {
            if !std::mem::take(&mut self.is_held) {
                if !self.columns.begin_row() {
                    break;
                }
                match self.read_row() {
                    Ok(Ok(date)) => self.row.date = Some(date),
                    Ok(Err((finding, detail))) => {
                        self.columns.damage(finding, detail, tally);
                        continue;
                    }
                    Err(error) => {
                        self.columns.give_up(&error, tally)?;
                        break;
                    }
                }
            }
            let Some(date) = self.row.date else { continue };
            if !is_begun {
                is_begun = true;
                capture.url.push_str(&self.row.source);
                capture.time = date.counted(tally);
            } else if capture.url != self.row.source || capture.time != date.seconds() {
                self.is_held = true;
                break;
            }
            capture.links.push(&self.row.link);
        }
        Ok(is_begun && Seen::links().settle(false, capture, tally))
    }
}
