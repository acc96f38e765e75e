//! GraphML (graphml.graphdrawing.org): a directed graph with attributes on nodes and edges, and times as ISO 8601 text.
//!
//! The id of a node is its number. The URL or host of a node is an attribute named `url` or `host`, followed by the
//! attributes of [`super::graph`]. Edges also have a `weight`: the number of captures with the link, or of links
//! between hosts.

use super::graph::{Attributes, Edge, Graph, Kind, Node, Shape, Value};
use super::xml::{Xml, in_text, kind};
use super::{Export, Stream};
use crate::Error;
use crate::outlet::Outlet;

const NAMESPACE: &str = "http://graphml.graphdrawing.org/xmlns";
const SCHEMA: &str = "http://graphml.graphdrawing.org/xmlns http://graphml.graphdrawing.org/xmlns/1.0/graphml.xsd";
const INSTANCE: &str = "http://www.w3.org/2001/XMLSchema-instance";

/// The writer of a GraphML document.
pub(super) struct Graphml<'a> {
    xml: Xml<'a>,
    nodes: Vec<String>,
    edges: Vec<String>,
}

impl<'a> Graphml<'a> {
    pub(super) fn create(export: &Export<'_>, stream: &'a mut Stream) -> Result<Self, Error> {
        let xml = Xml::begin(Outlet::open(&export.options.target, stream)?)?;
        Ok(Self { xml, nodes: Vec::new(), edges: Vec::new() })
    }

    /// Declares the attributes of nodes or of edges. Returns their ids in the document.
    fn keys(&mut self, of: &str, attributes: Attributes) -> Result<Vec<String>, Error> {
        let ids: Vec<String> = (0..attributes.len()).map(|at| format!("{}{at}", &of[..1])).collect();
        for (id, (name, kind)) in ids.iter().zip(attributes) {
            self.key(id, of, name, *kind)?;
        }
        Ok(ids)
    }

    fn key(&mut self, id: &str, of: &str, name: &str, is: Kind) -> Result<(), Error> {
        self.xml.empty("key", &[("id", id), ("for", of), ("attr.name", name), ("attr.type", kind(is))])
    }
}

/// Writes the values of a node or an edge.
fn data(xml: &mut Xml<'_>, ids: &[String], values: &[Value<'_>]) -> Result<(), Error> {
    for (id, value) in ids.iter().zip(values) {
        if let Some(text) = in_text(value) {
            xml.text("data", &[("key", id)], &text)?;
        }
    }
    Ok(())
}

impl Graph for Graphml<'_> {
    fn begin(&mut self, shape: Shape, _: u64) -> Result<(), Error> {
        let attributes = [("xmlns", NAMESPACE), ("xmlns:xsi", INSTANCE), ("xsi:schemaLocation", SCHEMA)];
        self.xml.open("graphml", &attributes)?;
        self.key("label", "node", shape.label, Kind::Text)?;
        self.nodes = self.keys("node", shape.nodes)?;
        self.key("weight", "edge", "weight", Kind::Number)?;
        self.edges = self.keys("edge", shape.edges)?;
        self.xml.open("graph", &[("id", "G"), ("edgedefault", "directed")])
    }

    fn node(&mut self, node: &Node<'_>) -> Result<(), Error> {
        self.xml.open("node", &[("id", &node.id.to_string())])?;
        self.xml.text("data", &[("key", "label")], node.label)?;
        data(&mut self.xml, &self.nodes, node.values)?;
        self.xml.close("node")
    }

    fn edges_begin(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn edge(&mut self, edge: &Edge<'_>) -> Result<(), Error> {
        let (source, target) = (edge.source.to_string(), edge.target.to_string());
        self.xml.open("edge", &[("source", &source), ("target", &target)])?;
        self.xml.text("data", &[("key", "weight")], &edge.weight.to_string())?;
        data(&mut self.xml, &self.edges, edge.values)?;
        self.xml.close("edge")
    }

    fn finish(mut self) -> Result<(), Error> {
        self.xml.close("graph")?;
        self.xml.close("graphml")?;
        self.xml.finish()
    }
}
