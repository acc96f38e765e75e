//! The edges of a release: a capture for each host that has edges to other hosts.
//!
//! Consecutive edges of one host are one capture, up to [`KEYS_MAX`] edges. If the edges of a host are apart, or in
//! several files, the host has several captures of one second, and later stages unite their links. So no file needs to
//! be merged with another. Links are keys of the dictionary of the hosts.
//!
//! Memory: the keys of one capture.

use super::bv::{BvFile, Lists, Properties};
use super::vertices::Vertices;
use super::{cell, number};
use crate::capture::meaning::Seen;
use crate::files::lines::Lines;
use crate::release::GraphPart;
use crate::{Capture, CaptureReader, Error, Finding, Tally};
use std::io::{BufRead, Read};
use std::path::Path;
use std::sync::Arc;

/// The most edges of a capture: a host with more has several captures of the same second.
const KEYS_MAX: usize = 1 << 18;

/// An edge: the ids of its ends, and whether it has a count.
#[derive(Clone, Copy)]
pub(super) struct Edge {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) has_count: bool,
}

/// A line as an edge; `None` if it has another form.
pub(super) fn parse(line: &[u8]) -> Option<Edge> {
    let (from, rest) = cell(line);
    let (to, count) = cell(rest?);
    let has_count = count.map(|count| number(cell(count).0)).is_some_and(|count| count.is_some());
    let edge = Edge { from: number(from)?, to: number(to)?, has_count };
    (has_count || count.is_none()).then_some(edge)
}

/// Reads a file with edges.
pub(crate) fn open(text: Box<dyn BufRead + Send>, path: &Path, part: &GraphPart) -> Box<dyn CaptureReader> {
    Box::new(Edges::new(part, Origin::Lines(Lines::new(text, path))))
}

/// Reads a BVGraph from the bytes of its graph and the text of its properties.
pub(crate) fn open_lists(
    bytes: Box<dyn Read + Send>,
    properties: &str,
    path: &Path,
    part: &GraphPart,
) -> Box<dyn CaptureReader> {
    let lists = Properties::parse(properties).map(|properties| Lists::new(bytes, properties));
    Box::new(Edges::new(part, Origin::Lists(Box::new(BvFile::new(lists, path)))))
}

/// Where edges come from.
enum Origin {
    Lines(Lines),
    Lists(Box<BvFile>),
}

impl Origin {
    /// The next edge that can be read.
    fn edge(&mut self, hosts: u64, tally: &mut Tally) -> Result<Option<Edge>, Error> {
        let lines = match self {
            Origin::Lines(lines) => lines,
            Origin::Lists(file) => return file.edge(hosts, tally),
        };
        while lines.read(tally)? {
            let line = lines.line();
            if line.is_empty() {
                continue;
            }
            match parse(line) {
                Some(edge) => return Ok(Some(edge)),
                None => {
                    let detail = "not two ids with a tab between them".to_owned();
                    tally.damage(Finding::BadRow, &lines.path, lines.start, detail);
                }
            }
        }
        Ok(None)
    }

    /// The file, and the place in it of the edge that was read last.
    fn place(&self) -> (&Path, u64) {
        match self {
            Origin::Lines(lines) => (&lines.path, lines.start),
            Origin::Lists(file) => (&file.path, file.node),
        }
    }
}

struct Edges {
    part: GraphPart,
    from: Origin,
    vertices: Option<Arc<Vertices>>,
    /// The runs of ids in which the last edge begins and ends.
    runs: [usize; 2],
    /// The ids of the last edge.
    last: Option<(u64, u64)>,
    /// The keys of the first edge of the next capture.
    next: Option<(u64, u64)>,
    /// The links of the capture at hand.
    keys: Vec<u64>,
    is_ended: bool,
}

impl Edges {
    fn new(part: &GraphPart, from: Origin) -> Self {
        let (part, runs, keys) = (part.clone(), [0; 2], Vec::new());
        Edges { part, from, vertices: None, runs, last: None, next: None, keys, is_ended: false }
    }

    /// Reads on to the next edge. Returns the keys of its ends.
    fn edge(&mut self, vertices: &Vertices, tally: &mut Tally) -> Result<Option<(u64, u64)>, Error> {
        while let Some(Edge { from, to, has_count }) = self.from.edge(vertices.hosts(), tally)? {
            let (path, at) = self.from.place();
            let mut damage = |finding, detail| tally.damage(finding, path, at, detail);
            if let Some(last) = self.last.replace((from, to)).filter(|&last| (from, to) < last) {
                damage(Finding::Unsorted, format!("the edge {from} to {to} after {} to {}", last.0, last.1));
            }
            let [of_from, of_to] = &mut self.runs;
            let (source, target) = match (vertices.key(from, of_from), vertices.key(to, of_to)) {
                (Some(source), Some(target)) => (source, target),
                (None, _) => {
                    damage(Finding::UnknownHost, format!("no host has the id {from}"));
                    continue;
                }
                (_, None) => {
                    damage(Finding::UnknownHost, format!("no host has the id {to}"));
                    continue;
                }
            };
            if has_count {
                tally.count(Finding::EdgeCount);
            }
            if source == target && from != to {
                tally.count(Finding::FoldedEdge);
                continue;
            }
            vertices.link(source);
            vertices.link(target);
            return Ok(Some((source, target)));
        }
        Ok(None)
    }

    /// Reads the links of the next host. Returns its key.
    fn host(&mut self, vertices: &Vertices, tally: &mut Tally) -> Result<Option<u64>, Error> {
        self.keys.clear();
        let first = match self.next.take() {
            Some(first) => Some(first),
            None => self.edge(vertices, tally)?,
        };
        let Some((host, target)) = first else { return Ok(None) };
        self.keys.push(target);
        while let Some((source, target)) = self.edge(vertices, tally)? {
            if source != host || self.keys.len() == KEYS_MAX {
                self.next = Some((source, target));
                break;
            }
            self.keys.push(target);
        }
        Ok(Some(host))
    }
}

impl CaptureReader for Edges {
    fn read(&mut self, capture: &mut Capture, tally: &mut Tally) -> Result<bool, Error> {
        capture.clear();
        let vertices = match &self.vertices {
            Some(vertices) => Arc::clone(vertices),
            None => Arc::clone(self.vertices.insert(self.part.release.hosts(Vertices::load)?)),
        };
        let Some(host) = self.host(&vertices, tally)? else {
            if !std::mem::replace(&mut self.is_ended, true) {
                vertices.end_edges(tally);
            }
            return Ok(false);
        };
        capture.url.push_str(vertices.urls().get(host));
        capture.time = self.part.release.time;
        capture.links.set_keys(vertices.urls(), &self.keys);
        Ok(Seen::links().settle(false, capture, tally))
    }
}
