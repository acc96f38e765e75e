//! The months of a generated crawl as releases of a host graph, as Common Crawl publishes them.
//!
//! Each page becomes a host: the root of a host keeps the name of the host, and every other page becomes a name of one
//! label more. So a crawl of many links gives a graph of many edges. A month is the graph of the captures of the month,
//! with ids of its own. Failures have no edges. Links of a page to itself are no edges.
//!
//! Memory: one month, with 8 bytes for each link and about 100 for each URL.

use super::write::next;
use super::{GenerateOptions, Generator};
use crate::Capture;
use chrono::DateTime;
use std::collections::HashMap;
use std::io::{self, Write};
use webstrata_url::reversed;
use xxhash_rust::xxh3::xxh3_64;

/// The longest text of a path that becomes a label. A label has at most 63 bytes.
const LABEL_BYTES_MAX: usize = 40;

/// The graph of a month of a generated crawl.
///
/// ```
/// use webstrata_datasets::generate::MonthGraph;
///
/// let crawl = "uk:occurrences=2000,months=3".parse()?;
/// let graph = MonthGraph::of(crawl, 2)?.expect("captures in the second month");
/// let (mut vertices, mut edges) = (Vec::new(), Vec::new());
/// graph.write_vertices(&mut vertices)?;
/// graph.write_edges(&mut edges)?;
/// assert_eq!(graph.month(), "2006-06");
/// assert!(vertices.starts_with(b"0\tuk.") && edges.iter().filter(|byte| **byte == b'\n').count() > 300);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct MonthGraph {
    /// The reversed names of the hosts, in order. The id of a host is its place.
    names: Vec<String>,
    /// The edges in order.
    edges: Vec<(u32, u32)>,
    /// The time of a capture of the month.
    time: i64,
}

impl MonthGraph {
    /// The graph of a month of a crawl, counted from 1; `None` if the month has no captures.
    ///
    /// # Errors
    /// The month has more than 2^32 hosts.
    pub fn of(options: GenerateOptions, month: u32) -> io::Result<Option<Self>> {
        let mut crawl = Generator::new(GenerateOptions { only: Some((month, month)), ..options });
        let mut capture = Capture::default();
        let (mut numbers, mut edges, mut time) = (HashMap::<String, u32>::new(), Vec::new(), None);
        while next(&mut crawl, &mut capture)? {
            time = time.or(Some(capture.time));
            if capture.status.is_some() {
                continue;
            }
            let mut number = |url| {
                let name = name_of(url);
                let next = u32::try_from(numbers.len()).map_err(|_| io::Error::other("more than 2^32 hosts"))?;
                Ok::<_, io::Error>(*numbers.entry(name).or_insert(next))
            };
            let from = number(&capture.url)?;
            for link in capture.links.iter() {
                edges.push((from, number(link)?));
            }
        }
        let Some(time) = time else { return Ok(None) };
        let mut names: Vec<(String, u32)> = numbers.into_iter().collect();
        names.sort_unstable();
        let mut ids = vec![0; names.len()];
        for (id, (_, number)) in (0u32..).zip(&names) {
            ids[*number as usize] = id;
        }
        for (from, to) in &mut edges {
            (*from, *to) = (ids[*from as usize], ids[*to as usize]);
        }
        edges.retain(|(from, to)| from != to);
        edges.sort_unstable();
        edges.dedup();
        Ok(Some(MonthGraph { names: names.into_iter().map(|(name, _)| name).collect(), edges, time }))
    }

    /// The month, as `2006-05`.
    pub fn month(&self) -> String {
        DateTime::from_timestamp(self.time, 0).unwrap_or_default().format("%Y-%m").to_string()
    }

    /// Writes the hosts: a line with the id, a tab, and the name with its labels reversed.
    ///
    /// # Errors
    /// Errors of `out`.
    pub fn write_vertices(&self, out: &mut impl Write) -> io::Result<()> {
        (0u64..).zip(&self.names).try_for_each(|(id, name)| writeln!(out, "{id}\t{name}"))
    }

    /// Writes the edges: a line with two ids and a tab between them.
    ///
    /// # Errors
    /// Errors of `out`.
    pub fn write_edges(&self, out: &mut impl Write) -> io::Result<()> {
        self.edges.iter().try_for_each(|(from, to)| writeln!(out, "{from}\t{to}"))
    }
}

/// The reversed name of the host that a URL becomes.
fn name_of(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let mut name = reversed(host);
    let label: String = path.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' }).collect();
    let label = label.trim_matches('-');
    if !label.is_empty() {
        name.push('.');
        let cut = label.len().saturating_sub(LABEL_BYTES_MAX);
        name.push_str(label[cut..].trim_start_matches('-'));
        if cut > 0 {
            // Long paths that end alike stay apart.
            name.push_str(&format!("-{:08x}", xxh3_64(path.as_bytes()) >> 32));
        }
    }
    name
}
