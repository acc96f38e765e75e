//! A graph that LadybugDB mounts without an import: icebug-disk, version 1.
//!
//! ```text
//! OUT/nodes_url.parquet       uid, url, and the attributes of a node; a row for each node
//! OUT/indices_links.parquet   target, weight, and the attributes of an edge; a row for each edge, by source
//! OUT/indptr_links.parquet    ptr: the row of the first edge of each node, and the number of edges
//! OUT/schema.cypher           the statements that mount the tables
//! ```
//!
//! The attributes are those of [`super::graph`]. `target` is the row of a node, from 0, and not its UID. A graph of
//! hosts has `nodes_host.parquet`. The schema names the directory by its absolute path: a copy elsewhere needs another
//! `storage` in it, which may be an address. Memory: 8 bytes for each node, and some rows.
//!
//! Source: the specification in Ladybug-Memory/icebug-format, and what LadybugDB 0.22 mounts.

use super::Export;
use super::graph::{Attributes, Edge, Graph, Kind, Node, Shape, Value};
use super::parts::Directory;
use super::table::CHUNK;
use crate::Error;
use crate::outlet::{Outlet, Target};
use crate::table::{TableFormat, TableWriter, time, times};
use arrow_array::ArrayRef;
use arrow_array::builder::{ArrayBuilder, StringBuilder, UInt64Builder};
use arrow_schema::{DataType, Field};
use std::io::Write;
use std::path::{Path, PathBuf};
use webstrata_layers::Draft;

/// The name of the table of edges.
const LINKS: &str = "links";

/// The writer of the files.
pub(super) struct Icebug {
    out: PathBuf,
    directory: Directory,
    shape: Option<Shape>,
    nodes: Option<Rows>,
    edges: Option<Rows>,
    starts: Option<Rows>,
    /// The ids of the nodes, rising.
    ids: Vec<u64>,
    /// The number of nodes whose first edge is known, and the number of edges.
    begun: usize,
    edges_written: u64,
}

impl Icebug {
    pub(super) fn create(export: &Export<'_>) -> Result<Self, Error> {
        let Target::File(out) = &export.options.target else {
            return Err(Error::Internal("a graph of several files to a stream"));
        };
        let directory = Directory::create(out, 4)?;
        let (nodes, edges, starts, ids) = (None, None, None, Vec::new());
        Ok(Self { out: out.clone(), directory, shape: None, nodes, edges, starts, ids, begun: 0, edges_written: 0 })
    }

    fn rows(&self, name: &str, columns: &[(&'static str, Kind)], first: &[&str]) -> Result<Option<Rows>, Error> {
        let path = Draft::directory_of(&self.out).join(format!("{name}.parquet"));
        Rows::create(&path, columns, first).map(Some)
    }

    /// Notes the first edge of all nodes before this one.
    fn turn_to(&mut self, node: usize) -> Result<(), Error> {
        let Some(starts) = &mut self.starts else { return Ok(()) };
        while self.begun < node {
            starts.push([Value::Number(self.edges_written)])?;
            self.begun += 1;
        }
        Ok(())
    }

    /// The row of a node.
    fn row_of(&self, id: u64) -> Result<usize, Error> {
        self.ids.binary_search(&id).map_err(|_| Error::Internal("an edge of a node that was not written"))
    }
}

/// The columns before the attributes, and the attributes.
fn columns(first: &[(&'static str, Kind)], attributes: Attributes) -> Vec<(&'static str, Kind)> {
    first.iter().chain(attributes).copied().collect()
}

fn node_columns(shape: Shape) -> Vec<(&'static str, Kind)> {
    columns(&[("uid", Kind::Number), (shape.label, Kind::Text)], shape.nodes)
}

fn edge_columns(shape: Shape) -> Vec<(&'static str, Kind)> {
    columns(&[("target", Kind::Number), ("weight", Kind::Number)], shape.edges)
}

impl Graph for Icebug {
    fn begin(&mut self, shape: Shape, _: u64) -> Result<(), Error> {
        self.nodes = self.rows(&format!("nodes_{}", shape.label), &node_columns(shape), &["uid", shape.label])?;
        self.shape = Some(shape);
        Ok(())
    }

    fn node(&mut self, node: &Node<'_>) -> Result<(), Error> {
        self.ids.push(node.id);
        let Some(rows) = &mut self.nodes else { return Ok(()) };
        rows.push([Value::Number(node.id), Value::Text(node.label)].into_iter().chain(node.values.iter().copied()))
    }

    fn edges_begin(&mut self) -> Result<(), Error> {
        self.nodes.take().map_or(Ok(()), Rows::finish)?;
        let Some(shape) = self.shape else { return Ok(()) };
        self.edges = self.rows(&format!("indices_{LINKS}"), &edge_columns(shape), &["target", "weight"])?;
        self.starts = self.rows(&format!("indptr_{LINKS}"), &[("ptr", Kind::Number)], &["ptr"])?;
        Ok(())
    }

    fn edge(&mut self, edge: &Edge<'_>) -> Result<(), Error> {
        let (source, target) = (self.row_of(edge.source)?, self.row_of(edge.target)?);
        if source + 1 < self.begun {
            return Err(Error::Internal("edges that do not rise by source"));
        }
        self.turn_to(source + 1)?;
        self.edges_written += 1;
        let Some(rows) = &mut self.edges else { return Ok(()) };
        let first = [Value::Number(target as u64), Value::Number(edge.weight)];
        rows.push(first.into_iter().chain(edge.values.iter().copied()))
    }

    fn finish(mut self) -> Result<(), Error> {
        self.turn_to(self.ids.len() + 1)?;
        let rows = [self.edges.take(), self.starts.take()];
        rows.into_iter().flatten().try_for_each(Rows::finish)?;
        if let Some(shape) = self.shape {
            let mut file = Outlet::file(&Draft::directory_of(&self.out).join("schema.cypher"))?;
            file.write_all(schema(shape, &self.out).as_bytes()).map_err(|source| file.failed(source))?;
            file.finish()?;
        }
        self.directory.keep()
    }
}

/// The statements that mount the tables in a directory.
fn schema(shape: Shape, out: &Path) -> String {
    let storage = std::path::absolute(out).unwrap_or_else(|_| out.to_owned());
    let storage = storage.to_string_lossy().replace('\\', "\\\\").replace('\'', "\\'");
    let with = format!("WITH (storage = '{storage}', format = 'icebug-disk')");
    let columns = |columns: &[(&str, Kind)]| {
        let columns = columns.iter().map(|(name, kind)| match kind {
            Kind::Text => format!("{name} STRING"),
            Kind::Number => format!("{name} UINT64"),
            Kind::Time => format!("{name} TIMESTAMP"),
        });
        columns.collect::<Vec<_>>().join(", ")
    };
    let (label, nodes, edges) = (shape.label, columns(&node_columns(shape)), columns(&edge_columns(shape)[1..]));
    format!(
        "CREATE NODE TABLE {label}({nodes}, PRIMARY KEY(uid)) {with};\n\
         CREATE REL TABLE {LINKS}(FROM {label} TO {label}, {edges}) {with};\n"
    )
}

/// A table that is written row by row.
struct Rows {
    table: TableWriter<'static>,
    columns: Vec<Column>,
}

enum Column {
    Text(StringBuilder),
    Number(UInt64Builder),
    Time(Vec<Option<i64>>),
}

impl Rows {
    /// Begins a table. The columns named by `first` have no nulls.
    fn create(path: &Path, columns: &[(&'static str, Kind)], first: &[&str]) -> Result<Self, Error> {
        let field = |(name, kind): &(&'static str, Kind)| {
            let of = match kind {
                Kind::Text => DataType::Utf8,
                Kind::Number => DataType::UInt64,
                Kind::Time => time(),
            };
            Field::new(*name, of, !first.contains(name))
        };
        let fields = columns.iter().map(field).collect();
        let about = [("icebug_disk_version", "v1".to_owned())];
        let table = TableWriter::create(Outlet::plain(path)?, TableFormat::Parquet, fields, &about)?;
        let columns = columns.iter().map(|(_, kind)| match kind {
            Kind::Text => Column::Text(StringBuilder::new()),
            Kind::Number => Column::Number(UInt64Builder::new()),
            Kind::Time => Column::Time(Vec::new()),
        });
        Ok(Self { table, columns: columns.collect() })
    }

    fn push<'a>(&mut self, values: impl IntoIterator<Item = Value<'a>>) -> Result<(), Error> {
        let mut rows = 0;
        for (column, value) in self.columns.iter_mut().zip(values) {
            match (column, value) {
                (Column::Text(texts), Value::Text(text)) => texts.append_value(text),
                (Column::Text(texts), _) => texts.append_null(),
                (Column::Number(numbers), Value::Number(number)) => numbers.append_value(number),
                (Column::Number(numbers), _) => numbers.append_null(),
                (Column::Time(times), Value::Time(time)) => times.push(Some(time)),
                (Column::Time(times), _) => times.push(None),
            }
            rows += 1;
        }
        debug_assert_eq!(rows, self.columns.len());
        let is_full = match self.columns.first() {
            Some(Column::Text(texts)) => texts.len() >= CHUNK,
            Some(Column::Number(numbers)) => numbers.len() >= CHUNK,
            Some(Column::Time(times)) => times.len() >= CHUNK,
            None => false,
        };
        if is_full { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), Error> {
        let columns = self.columns.iter_mut().map(|column| -> ArrayRef {
            match column {
                Column::Text(texts) => ArrayBuilder::finish(texts),
                Column::Number(numbers) => ArrayBuilder::finish(numbers),
                Column::Time(seconds) => times(std::mem::take(seconds)),
            }
        });
        self.table.write(columns.collect())
    }

    fn finish(mut self) -> Result<(), Error> {
        self.flush()?;
        self.table.finish().map(drop)
    }
}
