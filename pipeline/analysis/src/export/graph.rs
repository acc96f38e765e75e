//! Graphs with attributes, in formats that other tools draw. This file has the nodes and edges, without their syntax.
//!
//! In a graph of links, a node is a URL that is there in the window ([`crate::nodes`]), and an edge is a page and a
//! link. In a graph of hosts, a node is a host, and an edge is a row of [`super::hosts`]. Nodes come before edges, so
//! pages are read twice. Memory: about 100 bytes per node, or the memory of hosts. Tools that read such files take
//! more.

use super::edges::number;
use super::hosts::folded;
use super::{Export, ExportReport, What};
use crate::Error;
use crate::stretches::{captures_of, captures_selected, captures_telling, for_each_link, telling_of};
use std::collections::{BTreeMap, HashMap};
use webstrata_layers::record::key::host_of;
use webstrata_layers::{Links, Uid, Window};
use webstrata_url::domain_of;

/// The kind of an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Number,
    Time,
}

/// The value of an attribute, or `None`.
#[derive(Clone, Copy, Debug)]
pub(super) enum Value<'a> {
    Text(&'a str),
    Number(u64),
    Time(i64),
    None,
}

/// The name and kind of each attribute, in order.
pub(super) type Attributes = &'static [(&'static str, Kind)];

/// The attributes of the nodes and edges of a graph.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    /// The meaning of the label of a node.
    pub(super) label: &'static str,
    pub(super) nodes: Attributes,
    pub(super) edges: Attributes,
}

/// A node. Its values are in the order of the attributes.
pub(super) struct Node<'a> {
    pub(super) id: u64,
    pub(super) label: &'a str,
    /// The first and the last time at which the node is there, by its captures and by links.
    pub(super) life: (i64, i64),
    pub(super) values: &'a [Value<'a>],
}

/// An edge. Its values are in the order of the attributes.
pub(super) struct Edge<'a> {
    pub(super) source: u64,
    pub(super) target: u64,
    pub(super) weight: u64,
    /// The stretches of time in which the edge is there, rising.
    pub(super) stretches: &'a [(i64, i64)],
    pub(super) values: &'a [Value<'a>],
}

/// A syntax for graphs. Calls come in this order: `begin`, all nodes, `edges_begin`, all edges, `finish`. Nodes rise by
/// id, and edges by source.
pub(super) trait Graph {
    fn begin(&mut self, shape: Shape, nodes: u64) -> Result<(), Error>;
    fn node(&mut self, node: &Node<'_>) -> Result<(), Error>;
    fn edges_begin(&mut self) -> Result<(), Error>;
    fn edge(&mut self, edge: &Edge<'_>) -> Result<(), Error>;
    fn finish(self) -> Result<(), Error>;
}

const PAGES: Shape = Shape {
    label: "url",
    nodes: &[
        ("host", Kind::Text),
        ("domain", Kind::Text),
        ("captures", Kind::Number),
        ("first_capture", Kind::Time),
        ("last_capture", Kind::Time),
    ],
    edges: &[
        ("first_seen", Kind::Time),
        ("last_seen", Kind::Time),
        ("captures", Kind::Number),
        ("captures_with_link", Kind::Number),
    ],
};

const HOSTS: Shape = Shape {
    label: "host",
    nodes: &[("urls", Kind::Number)],
    edges: &[
        ("first_seen", Kind::Time),
        ("last_seen", Kind::Time),
        ("pages", Kind::Number),
        ("links", Kind::Number),
        ("occurrences", Kind::Number),
    ],
};

/// Writes the graph that the options ask for.
pub(super) fn write(export: &Export<'_>, graph: impl Graph) -> Result<ExportReport, Error> {
    if export.options.what == What::Hosts { write_hosts(export, graph) } else { write_pages(export, graph) }
}

/// The data about a node before the node is written.
#[derive(Clone, Copy)]
struct Known {
    life: (i64, i64),
    captures: u32,
    /// The times of the first and the last capture.
    times: Option<(i64, i64)>,
}

/// Adds a node that is there from `first` to `last`, or extends the life of the node. Returns the data of the node.
fn extend(nodes: &mut HashMap<Uid, Known>, uid: Uid, (first, last): (i64, i64)) -> &mut Known {
    let known = nodes.entry(uid).or_insert(Known { life: (first, last), captures: 0, times: None });
    known.life = (known.life.0.min(first), known.life.1.max(last));
    known
}

fn write_pages(export: &Export<'_>, mut graph: impl Graph) -> Result<ExportReport, Error> {
    let window = export.options.window;
    let mut nodes = HashMap::new();
    export.pages("nodes", |page| {
        let captures = captures_selected(page, window);
        let times = &page.timestamps[captures.clone()];
        // A page that only failed is no page of a window. Without a window, every URL is a node.
        let is_node = window == Window::ALWAYS || page.captures().is_alive(window);
        if let (true, Some(&first), Some(&last)) = (is_node, times.first(), times.last()) {
            let known = extend(&mut nodes, page.uid, (first, last));
            (known.captures, known.times) = (number(captures.len() as u64), Some((first, last)));
        }
        for_each_link(page, window, |link, stretches| {
            let [first, last] =
                [stretches[0].first, stretches[stretches.len() - 1].last].map(|at| page.timestamps[at as usize]);
            extend(&mut nodes, link, (first, last));
            Ok(())
        })
    })?;
    graph.begin(PAGES, nodes.len() as u64)?;
    export.urls("urls", false, |uid, url, _| {
        let Some(known) = nodes.get(&uid) else { return Ok(()) };
        let host = host_of(url);
        let values = [
            host.map_or(Value::None, Value::Text),
            host.map_or(Value::None, |host| Value::Text(domain_of(host))),
            Value::Number(u64::from(known.captures)),
            known.times.map_or(Value::None, |times| Value::Time(times.0)),
            known.times.map_or(Value::None, |times| Value::Time(times.1)),
        ];
        graph.node(&Node { id: uid.0, label: url, life: known.life, values: &values })
    })?;
    graph.edges_begin()?;
    let nodes = nodes.len() as u64;
    let (mut edges, mut times) = (0, Vec::new());
    export.pages("edges", |page| {
        let telling = captures_telling(page, window);
        for_each_link(page, window, |link, stretches| {
            times.clear();
            let time = |at: u32| page.timestamps[at as usize];
            times.extend(stretches.iter().map(|stretch| (time(stretch.first), time(stretch.last))));
            let weight = captures_of(stretches);
            let captures = telling_of(telling, stretches);
            let (first, last) = (times[0].0, times[times.len() - 1].1);
            let values = [Value::Time(first), Value::Time(last), Value::Number(captures), Value::Number(weight)];
            edges += 1;
            graph.edge(&Edge { source: page.uid.0, target: link.0, weight, stretches: &times, values: &values })
        })
    })?;
    graph.finish()?;
    Ok(ExportReport { epoch: export.reader.epoch(), records: edges, nodes })
}

fn write_hosts(export: &Export<'_>, mut graph: impl Graph) -> Result<ExportReport, Error> {
    let (groups, mut pairs) = folded(export)?;
    // Edges rise by the number of their source, as those of pages do.
    pairs.sort_unstable_by_key(|(ends, _)| *ends);
    let mut lives = BTreeMap::<u32, (i64, i64)>::new();
    for ((src, dst), weights) in &pairs {
        for group in [*src, *dst] {
            let life = lives.entry(group).or_insert((weights.first, weights.last));
            *life = (life.0.min(weights.first), life.1.max(weights.last));
        }
    }
    graph.begin(HOSTS, lives.len() as u64)?;
    for (&group, &life) in &lives {
        let values = [Value::Number(groups.urls(group))];
        graph.node(&Node { id: u64::from(group), label: groups.name(group), life, values: &values })?;
    }
    graph.edges_begin()?;
    for ((src, dst), weights) in &pairs {
        export.job.go_on()?;
        let values = [
            Value::Time(weights.first),
            Value::Time(weights.last),
            Value::Number(weights.pages),
            Value::Number(weights.links),
            Value::Number(weights.occurrences),
        ];
        let (source, target) = (u64::from(*src), u64::from(*dst));
        graph.edge(&Edge {
            source,
            target,
            weight: weights.links,
            stretches: &[(weights.first, weights.last)],
            values: &values,
        })?;
    }
    graph.finish()?;
    Ok(ExportReport { epoch: export.reader.epoch(), records: pairs.len() as u64, nodes: lives.len() as u64 })
}
