//! GraphML (graphml.graphdrawing.org): a directed graph with attributes on nodes and edges, times as ISO 8601 text.
//!
//! Nodes have their number as id, their URL or host under its name, and what [`super::graph`] gives them; edges have a `weight`
//! besides: captures with the link, or links of hosts.

use super::Export;
use super::graph::{Edge, Graph, Kind, Node, Shape, Value};
use super::text::Text;
use super::xml::{Xml, ids, in_text, kind};
use crate::Error;
use std::io::Write;

const NAMESPACE: &str = "http://graphml.graphdrawing.org/xmlns";
const SCHEMA: &str = "http://graphml.graphdrawing.org/xmlns http://graphml.graphdrawing.org/xmlns/1.0/graphml.xsd";
const INSTANCE: &str = "http://www.w3.org/2001/XMLSchema-instance";

/// See the head of this file.
pub(super) struct Graphml<'a> {
    xml: Xml<'a>,
    nodes: Vec<String>,
    edges: Vec<String>,
}

impl<'a> Graphml<'a> {
    pub(super) fn create(export: &Export<'_>, stream: &'a mut dyn Write) -> Result<Self, Error> {
        let xml = Xml::begin(Text::create(&export.options.target, stream)?)?;
        Ok(Self { xml, nodes: Vec::new(), edges: Vec::new() })
    }

    fn key(&mut self, id: &str, of: &str, name: &str, is: Kind) -> Result<(), Error> {
        self.xml.empty("key", &[("id", id), ("for", of), ("attr.name", name), ("attr.type", kind(is))])
    }

    fn data<'v>(&mut self, ids: &[String], values: impl Iterator<Item = &'v Value<'v>>) -> Result<(), Error> {
        for (id, value) in ids.iter().zip(values) {
            if let Some(text) = in_text(value) {
                self.xml.text("data", &[("key", id)], &text)?;
            }
        }
        Ok(())
    }
}

impl Graph for Graphml<'_> {
    fn begin(&mut self, shape: Shape, _: u64) -> Result<(), Error> {
        let attributes = [("xmlns", NAMESPACE), ("xmlns:xsi", INSTANCE), ("xsi:schemaLocation", SCHEMA)];
        self.xml.open("graphml", &attributes)?;
        (self.nodes, self.edges) = (ids('n', shape.nodes), ids('e', shape.edges));
        self.key("label", "node", shape.label, Kind::Text)?;
        for (at, (name, kind)) in shape.nodes.iter().enumerate() {
            self.key(&format!("n{at}"), "node", name, *kind)?;
        }
        self.key("weight", "edge", "weight", Kind::Number)?;
        for (at, (name, kind)) in shape.edges.iter().enumerate() {
            self.key(&format!("e{at}"), "edge", name, *kind)?;
        }
        self.xml.open("graph", &[("id", "G"), ("edgedefault", "directed")])
    }

    fn node(&mut self, node: &Node<'_>) -> Result<(), Error> {
        self.xml.open("node", &[("id", &node.id.to_string())])?;
        self.xml.text("data", &[("key", "label")], node.label)?;
        let ids = std::mem::take(&mut self.nodes);
        let done = self.data(&ids, node.values.iter());
        self.nodes = ids;
        done?;
        self.xml.close("node")
    }

    fn edges_begin(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn edge(&mut self, edge: &Edge<'_>) -> Result<(), Error> {
        let (source, target) = (edge.source.to_string(), edge.target.to_string());
        self.xml.open("edge", &[("source", &source), ("target", &target)])?;
        self.xml.text("data", &[("key", "weight")], &edge.weight.to_string())?;
        let ids = std::mem::take(&mut self.edges);
        let done = self.data(&ids, edge.values.iter());
        self.edges = ids;
        done?;
        self.xml.close("edge")
    }

    fn finish(mut self) -> Result<(), Error> {
        self.xml.close("graph")?;
        self.xml.close("graphml")?;
        self.xml.finish()
    }
}
