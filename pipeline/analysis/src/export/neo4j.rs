//! Files for `neo4j-admin database import`: comma-separated values with the headers that name ids, types and labels.
//!
//! ```text
//! OUT/nodes.csv    uid:ID(Url),url,host,domain,captures:long,first_capture:datetime,last_capture:datetime,:LABEL
//! OUT/links.csv    :START_ID(Url),:END_ID(Url),weight:long,first_seen:datetime,last_seen:datetime,...,:TYPE
//! ```
//!
//! The columns are the attributes of [`super::graph`]. An id is a UID. The label of a node is `Url` or `Host`, and the
//! type of a link is `LINKS`. A graph of hosts has hosts as nodes. An empty cell is a property that a node lacks.

use super::Export;
use super::graph::{Attributes, Edge, Graph, Kind, Node, Shape, Value};
use super::parts::Directory;
use crate::Error;
use crate::outlet::{Outlet, Target};
use crate::table::csv_error;
use std::io;
use webstrata_layers::{Draft, format_time};

/// The writer of both files.
pub(super) struct Neo4j {
    directory: Directory,
    nodes: csv::Writer<Outlet<'static>>,
    links: csv::Writer<Outlet<'static>>,
    /// The label of a node.
    label: &'static str,
    row: Vec<String>,
}

impl Neo4j {
    pub(super) fn create(export: &Export<'_>) -> Result<Self, Error> {
        let Target::File(out) = &export.options.target else {
            return Err(Error::Internal("a graph of two files to a stream"));
        };
        let directory = Directory::create(out, 2)?;
        let inside = Draft::directory_of(out);
        let file = |name| Outlet::file(&inside.join(name)).map(csv::Writer::from_writer);
        let (nodes, links) = (file("nodes.csv")?, file("links.csv")?);
        Ok(Self { directory, nodes, links, label: "", row: Vec::new() })
    }
}

/// Appends the names of attributes with their types.
fn names(attributes: Attributes, row: &mut Vec<String>) {
    row.extend(attributes.iter().map(|(name, kind)| match kind {
        Kind::Text => (*name).to_owned(),
        Kind::Number => format!("{name}:long"),
        Kind::Time => format!("{name}:datetime"),
    }));
}

/// Appends values.
fn values(values: &[Value<'_>], row: &mut Vec<String>) {
    row.extend(values.iter().map(|value| match value {
        Value::Text(text) => (*text).to_owned(),
        Value::Number(number) => number.to_string(),
        Value::Time(time) => format_time(*time),
        Value::None => String::new(),
    }));
}

/// Writes a row to a file.
fn put(file: &mut csv::Writer<Outlet<'static>>, row: &[String]) -> Result<(), Error> {
    file.write_record(row).map_err(|error| file.get_ref().failed(csv_error(error)))
}

impl Graph for Neo4j {
    fn begin(&mut self, shape: Shape, _: u64) -> Result<(), Error> {
        self.label = if shape.label == "url" { "Url" } else { "Host" };
        let label = self.label;
        let mut row = vec![format!("uid:ID({label})"), shape.label.to_owned()];
        names(shape.nodes, &mut row);
        row.push(":LABEL".to_owned());
        put(&mut self.nodes, &row)?;
        row = vec![format!(":START_ID({label})"), format!(":END_ID({label})"), "weight:long".to_owned()];
        names(shape.edges, &mut row);
        row.push(":TYPE".to_owned());
        put(&mut self.links, &row)
    }

    fn node(&mut self, node: &Node<'_>) -> Result<(), Error> {
        self.row.clear();
        self.row.extend([node.id.to_string(), node.label.to_owned()]);
        values(node.values, &mut self.row);
        self.row.push(self.label.to_owned());
        put(&mut self.nodes, &self.row)
    }

    fn edges_begin(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn edge(&mut self, edge: &Edge<'_>) -> Result<(), Error> {
        self.row.clear();
        self.row.extend([edge.source, edge.target, edge.weight].map(|number| number.to_string()));
        values(edge.values, &mut self.row);
        self.row.push("LINKS".to_owned());
        put(&mut self.links, &self.row)
    }

    fn finish(self) -> Result<(), Error> {
        for file in [self.nodes, self.links] {
            let file = file.into_inner().map_err(|error| {
                let (file, error) = (error.error().kind(), error.to_string());
                Error::Output { path: "nodes.csv, links.csv".into(), source: io::Error::new(file, error) }
            })?;
            file.finish()?;
        }
        self.directory.keep()
    }
}
