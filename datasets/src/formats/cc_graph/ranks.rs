//! The ranks of a release: a line for each host, with its harmonic centrality and its PageRank.
//!
//! ```text
//! #harmonicc_pos  #harmonicc_val  #pr_pos  #pr_val                 #host_rev    #n_hosts
//! 1               32012432        2        0.0076539817         com.example  120
//! ---             ---             7        2.1e-9               org.example  1
//! ```
//!
//! The first line names the columns, which are separated by tabs. A host without one of the ranks has `---` in it.
//! Positions count from 1. Only domain graphs have the number of hosts.
//!
//! Source: commoncrawl/cc-webgraph.

use super::{lines_of, names, number};
use crate::files::compressed::Notes;
use crate::files::hashed::DigestCell;
use crate::files::lines::Lines;
use crate::files::place::Place;
use crate::{Error, Finding, Tally, Www};

/// The columns, with the sign before their names.
const COLUMNS: [&str; 6] = ["harmonicc_pos", "harmonicc_val", "pr_pos", "pr_val", "host_rev", "n_hosts"];
const HOST: usize = 4;
const HOSTS: usize = 5;

/// The ranks of a host in a release of a web graph.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostRank {
    /// The name of the host or domain as it is published, with its labels reversed.
    pub host: String,
    /// The URL of its page in stores.
    pub url: String,
    /// The position by harmonic centrality, from 1.
    pub harmonic_position: Option<u64>,
    /// The harmonic centrality.
    pub harmonic: Option<f64>,
    /// The position by PageRank, from 1.
    pub pagerank_position: Option<u64>,
    /// The PageRank.
    pub pagerank: Option<f64>,
    /// The number of hosts of a domain.
    pub hosts: Option<u64>,
}

/// A reader of ranks; see [`crate::ranks_in`].
pub struct RankReader {
    /// The files that are not yet open, the last one first.
    places: Vec<Place>,
    www: Www,
    /// The file at hand: its lines, the damage of its compression, and the cell of each column.
    open: Option<(Lines, Notes, [Option<usize>; 6])>,
}

impl RankReader {
    pub(crate) fn new(mut places: Vec<Place>, www: Www) -> Self {
        places.reverse();
        RankReader { places, www, open: None }
    }

    /// Reads the ranks of the next host. Returns `None` at the end. Counts damage in `tally`.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn read(&mut self, tally: &mut Tally) -> Result<Option<HostRank>, Error> {
        loop {
            if let Some((lines, notes, columns)) = &mut self.open {
                while lines.read(tally)? {
                    if lines.line().is_empty() {
                        continue;
                    }
                    match parse(lines.line(), columns, self.www, tally) {
                        Ok(rank) => return Ok(Some(rank)),
                        Err((finding, detail)) => tally.damage(finding, &lines.path, lines.start, detail),
                    }
                }
                if let Ok(mut notes) = notes.lock() {
                    notes.drain(tally, &lines.path);
                }
                self.open = None;
            }
            let Some(place) = self.places.pop() else { return Ok(None) };
            let (mut lines, notes) = lines_of(&place, DigestCell::default())?;
            let is_there = lines.read(tally)?;
            let names: Vec<&[u8]> = if is_there { lines.line().split(|&byte| byte == b'\t').collect() } else { vec![] };
            let columns =
                COLUMNS.map(|column| names.iter().position(|name| name.strip_prefix(b"#") == Some(column.as_bytes())));
            self.open = Some((lines, notes, columns));
        }
    }
}

fn parse(
    line: &[u8],
    columns: &[Option<usize>; 6],
    www: Www,
    tally: &mut Tally,
) -> Result<HostRank, (Finding, String)> {
    let cells: Vec<&[u8]> = line.split(|&byte| byte == b'\t').collect();
    let cell = |column: usize| columns[column].and_then(|at| cells.get(at)).copied().filter(|cell| *cell != b"---");
    let wrong = |column: usize| (Finding::BadRow, format!("{} is not a number", COLUMNS[column]));
    let count = |column| cell(column).map(|text| number(text).ok_or_else(|| wrong(column))).transpose();
    let value = |column| {
        let parse = |text: &[u8]| str::from_utf8(text).ok()?.parse().ok().filter(|value: &f64| value.is_finite());
        cell(column).map(|text| parse(text).ok_or_else(|| wrong(column))).transpose()
    };
    let host = cell(HOST).ok_or_else(|| (Finding::BadRow, "the row has no host".to_owned()))?;
    let hosts = count(HOSTS)?;
    let [harmonic_position, pagerank_position] = [count(0)?, count(2)?];
    let [harmonic, pagerank] = [value(1)?, value(3)?];
    let url = names::url(host, if hosts.is_some() { Www::Keep } else { www }, tally)?;
    let host = String::from_utf8_lossy(host).into_owned();
    Ok(HostRank { host, url, harmonic_position, harmonic, pagerank_position, pagerank, hosts })
}
