//! GEXF 1.3 (gexf.net), dynamic: nodes and edges with the times at which they are there, for Gephi 0.9.3 and later and
//! for NetworkX.
//!
//! `timerepresentation` is `interval`. Times are dates with a time of day in UTC, but `timeformat` is `date`. NetworkX
//! does not know `dateTime`, and takes dates as plain text. Gephi reads both formats alike, to the second, and only
//! labels its timeline by days. An edge has a spell for each run of captures with the link, both ends included. A node
//! has one `start` and one `end` around its captures and links. The weight of an edge is the number of captures with
//! the link, or of links between hosts. Attributes are static.

use super::graph::{Attributes, Edge, Graph, Node, Shape, Value};
use super::table::in_words;
use super::xml::{Xml, in_text, kind};
use super::{Export, Stream};
use crate::Error;
use crate::outlet::Outlet;
use webstrata_layers::{Links, Window, format_time};

/// The writer of a GEXF document.
pub(super) struct Gexf<'a> {
    xml: Xml<'a>,
    window: Window,
    epoch: u64,
    shape: Option<Shape>,
    edges: u64,
}

impl<'a> Gexf<'a> {
    pub(super) fn create(export: &Export<'_>, stream: &'a mut Stream) -> Result<Self, Error> {
        let xml = Xml::begin(Outlet::open(&export.options.target, stream)?)?;
        Ok(Self { xml, window: export.options.window, epoch: export.reader.epoch(), shape: None, edges: 0 })
    }

    fn attributes(&mut self, class: &str, attributes: Attributes) -> Result<(), Error> {
        self.xml.open("attributes", &[("class", class), ("mode", "static")])?;
        for (name, is) in attributes {
            self.xml.empty("attribute", &[("id", name), ("title", name), ("type", kind(*is))])?;
        }
        self.xml.close("attributes")
    }

    fn values(&mut self, attributes: Attributes, values: &[Value<'_>]) -> Result<(), Error> {
        self.xml.open("attvalues", &[])?;
        for ((name, _), value) in attributes.iter().zip(values) {
            if let Some(text) = in_text(value) {
                self.xml.empty("attvalue", &[("for", name), ("value", &text)])?;
            }
        }
        self.xml.close("attvalues")
    }
}

impl Graph for Gexf<'_> {
    fn begin(&mut self, shape: Shape, nodes: u64) -> Result<(), Error> {
        self.xml.open("gexf", &[("xmlns", "http://gexf.net/1.3"), ("version", "1.3")])?;
        self.xml.open("meta", &[])?;
        self.xml.text("creator", &[], concat!("Webstrata ", env!("CARGO_PKG_VERSION")))?;
        let description = format!("Links of a web archive, {}; epoch {}", in_words(self.window), self.epoch);
        self.xml.text("description", &[], &description)?;
        self.xml.close("meta")?;
        let mode = [
            ("mode", "dynamic"),
            ("defaultedgetype", "directed"),
            ("timeformat", "date"),
            ("timerepresentation", "interval"),
        ];
        self.xml.open("graph", &mode)?;
        self.attributes("node", shape.nodes)?;
        self.attributes("edge", shape.edges)?;
        self.shape = Some(shape);
        self.xml.open("nodes", &[("count", &nodes.to_string())])
    }

    fn node(&mut self, node: &Node<'_>) -> Result<(), Error> {
        let (id, start, end) = (node.id.to_string(), format_time(node.life.0), format_time(node.life.1));
        self.xml.open("node", &[("id", &id), ("label", node.label), ("start", &start), ("end", &end)])?;
        self.values(self.shape.map_or(&[], |shape| shape.nodes), node.values)?;
        self.xml.close("node")
    }

    fn edges_begin(&mut self) -> Result<(), Error> {
        self.xml.close("nodes")?;
        self.xml.open("edges", &[])
    }

    fn edge(&mut self, edge: &Edge<'_>) -> Result<(), Error> {
        let [id, source, target, weight] =
            [self.edges, edge.source, edge.target, edge.weight].map(|number| number.to_string());
        self.edges += 1;
        let attributes = [("id", &*id), ("source", &*source), ("target", &*target), ("weight", &*weight)];
        self.xml.open("edge", &attributes)?;
        self.values(self.shape.map_or(&[], |shape| shape.edges), edge.values)?;
        self.xml.open("spells", &[])?;
        for &(first, last) in edge.stretches {
            self.xml.empty("spell", &[("start", &format_time(first)), ("end", &format_time(last))])?;
        }
        self.xml.close("spells")?;
        self.xml.close("edge")
    }

    fn finish(mut self) -> Result<(), Error> {
        self.xml.close("edges")?;
        self.xml.close("graph")?;
        self.xml.close("gexf")?;
        self.xml.finish()
    }
}
