//! The table of links between hosts that cc-pyspark writes. Each row is a link: `s` and `t`, reversed names of hosts.
//!
//! The table has no times: all captures have the time of the release. Consecutive rows of one host are one capture, and
//! later stages unite the captures of a host. `www` means the same as in a web graph ([`crate::formats::cc_graph`]).

use super::Columns;
use super::cells::Texts;
use crate::capture::meaning::Seen;
use crate::formats::cc_graph::names;
use crate::{Capture, CaptureReader, Error, Finding, Tally, Www};
use std::io;

pub(super) struct HostLinks {
    columns: Columns,
    sources: Texts,
    targets: Texts,
    /// The time of the captures.
    time: i64,
    www: Www,
    /// The URLs of the source and the target of the next capture, if its first row was read.
    held: Option<[String; 2]>,
    row: [String; 2],
}

impl HostLinks {
    /// Opens the root columns of source and target. Returns the columns if one of them has another type.
    pub(super) fn new(columns: Columns, [source, target]: [usize; 2], time: i64, www: Www) -> Result<Self, Columns> {
        let texts = |root: usize| Texts::new(columns.leaf(root, None)?, columns.field(root).data_type());
        let (Some(sources), Some(targets)) = (texts(source), texts(target)) else { return Err(columns) };
        Ok(HostLinks { columns, sources, targets, time, www, held: None, row: Default::default() })
    }

    /// Reads the next row. Returns the URLs of its ends, or why the row cannot be used.
    fn read_row(&mut self, tally: &mut Tally) -> io::Result<Result<[String; 2], (Finding, String)>> {
        let [source, target] = &mut self.row;
        source.clear();
        target.clear();
        if [self.sources.read(source)?, self.targets.read(target)?] != [true; 2] {
            return Ok(Err((Finding::BadRow, "the source or the target is null".to_owned())));
        }
        let mut url = |name: &str| names::url(name.as_bytes(), self.www, tally);
        Ok(url(source).and_then(|source| Ok([source, url(target)?])))
    }

    /// Reads on to the next link between two hosts. Returns their URLs.
    fn link(&mut self, tally: &mut Tally) -> Result<Option<[String; 2]>, Error> {
        while self.columns.begin_row() {
            match self.read_row(tally) {
                Ok(Ok([source, target])) if source == target && self.row[0] != self.row[1] => {
                    tally.count(Finding::FoldedEdge);
                }
                Ok(Ok(link)) => return Ok(Some(link)),
                Ok(Err((finding, detail))) => self.columns.damage(finding, detail, tally),
                Err(error) => {
                    self.columns.give_up(&error, tally)?;
                    break;
                }
            }
        }
        Ok(None)
    }
}

impl CaptureReader for HostLinks {
    fn read(&mut self, capture: &mut Capture, tally: &mut Tally) -> Result<bool, Error> {
        capture.clear();
        let first = match self.held.take() {
            Some(first) => Some(first),
            None => self.link(tally)?,
        };
        let Some([host, target]) = first else { return Ok(false) };
        capture.links.push(&target);
        capture.time = self.time;
        while let Some([source, target]) = self.link(tally)? {
            if source != host {
                self.held = Some([source, target]);
                break;
            }
            capture.links.push(&target);
        }
        capture.url = host;
        Ok(Seen::links().settle(false, capture, tally))
    }
}
