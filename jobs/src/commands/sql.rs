//! `webstrata sql`: views of a store for DuckDB or Spark, which read the layers in the store.
//!
//! `sql/views.sql` and `sql/views-spark.sql` are the texts and document the views. This command fills in the files of
//! the current epoch. The views decode presence by [`mod@webstrata_layers::format`], and join the records of a page
//! from several rows. In both dialects the views give the same answers as `webstrata links`. A query takes time and
//! memory in proportion to the layers that it reads and the rows that it gives, however many captures a page has.

use crate::args::{Outcome, location, unfit};
use clap::{Args, ValueEnum};
use std::io::Write;
use std::path::PathBuf;
use webstrata_analysis::{Ending, Target, format_of, write_file};
use webstrata_layers::{Layer, Location, RowEntry, Store};

const DUCKDB: &str = include_str!("sql/views.sql");
const SPARK: &str = include_str!("sql/views-spark.sql");

/// The layers that views read, with the columns that are declared to Spark. All numbers are below 2^63. Without a
/// declaration, Spark reads unsigned numbers as decimals.
const SPARK_COLUMNS: [(Layer, &str); 5] = [
    (Layer::Url, "uid BIGINT, url STRING, surt STRING"),
    (Layer::Ol, "uid BIGINT, links ARRAY<BIGINT>"),
    (
        Layer::Ts,
        "uid BIGINT, timestamps ARRAY<TIMESTAMP>, blank ARRAY<BIGINT>, status_captures ARRAY<BIGINT>, \
         statuses ARRAY<INT>",
    ),
    (Layer::Bv, "uid BIGINT, changes BINARY"),
    (Layer::Rv, "uid BIGINT, revisits ARRAY<BIGINT>"),
];

const ABOUT: &str = "\
The views read the Parquet files of the current epoch, in DuckDB or Spark 4:
  urls            uid, url, surt, host
  pages           uid, url, captures, known_captures, first_capture,
                  last_capture
  captures        uid, timestamp, status, cut, known, revisit
  links           src, dst, first_seen, last_seen, captures,
                  captures_with_link
  link_intervals  src, dst, first_seen, last_seen, captures: one row per run of
                  captures that have the link
  link_captures   src, dst, timestamp: one row per capture that has the link

Views contain the names of the files: print them again after an update or a
merge. docs/book has queries for common questions. For other engines, use
`webstrata export` with edges or layers.

Examples:
  webstrata sql STORE > views.sql
  duckdb -init views.sql -c 'SELECT count(*) FROM link_intervals'

  webstrata sql STORE --dialect spark --out views.sql
  spark-sql -i views.sql -e 'SELECT count(*) FROM link_intervals'";

/// Arguments of `sql`.
#[derive(Args, Debug)]
#[command(after_help = ABOUT)]
pub(crate) struct SqlArgs {
    /// Store: a directory, or s3://bucket/prefix
    #[arg(value_parser = location())]
    pub(crate) store: Location,
    /// SQL dialect
    #[arg(long, value_name = "DIALECT", value_enum, default_value_t)]
    pub(crate) dialect: Dialect,
    /// File to write, with the ending .sql; - for standard output
    #[arg(long, value_name = "FILE", default_value = "-")]
    pub(crate) out: PathBuf,
}

/// An engine whose SQL is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Dialect {
    /// DuckDB
    #[default]
    Duckdb,
    /// Apache Spark 4.0 or later; s3:// becomes s3a://
    Spark,
}

/// The format that the name of a file of views selects.
#[derive(Clone, Copy)]
struct Views;

impl Ending for Views {
    const ENDINGS: &'static [(&'static str, Self, bool)] = &[("sql", Views, false)];
}

pub(crate) fn run(args: &SqlArgs, out: &mut dyn Write) -> anyhow::Result<Outcome> {
    let target = Target::of(&args.out);
    if let Target::File(path) = &target {
        format_of::<Views>(path).map_err(unfit)?;
    }
    let store = Store::open(&args.store)?;
    let rows = &store.manifest().rows;
    // A view may be used from any directory.
    let directory = args.store.directory().map(std::fs::canonicalize).transpose()?;
    let root = directory.map_or_else(|| args.store.to_string(), |directory| directory.display().to_string());
    let views = match args.dialect {
        Dialect::Duckdb => duckdb(&root, rows),
        Dialect::Spark => spark(&root, rows),
    };
    // A comment is one line, whatever the name of the store.
    let name = args.store.to_string().replace(char::is_control, " ");
    let text = views.replace("{store}", &name).replace("{epoch}", &store.manifest().epoch.to_string());
    match target {
        Target::Stream => out.write_all(text.as_bytes())?,
        Target::File(path) => write_file(&path, text.as_bytes())?,
    }
    Ok(Outcome::Done)
}

/// The paths of the files of a layer of a row, in the store.
fn files(row: &RowEntry, layer: Layer) -> impl Iterator<Item = &str> {
    let files = row.partitions.iter().flat_map(|partition| &partition.files);
    files.filter(move |file| file.layer == layer).map(|file| file.path.as_str())
}

/// Writes the files of each layer into the views, a part for each row.
fn duckdb(root: &str, rows: &[RowEntry]) -> String {
    SPARK_COLUMNS.iter().fold(DUCKDB.to_owned(), |text, &(layer, _)| {
        let part = |(number, row): (usize, &RowEntry)| {
            let paths = files(row, layer).map(|path| format!("'{}'", format!("{root}/{path}").replace('\'', "''")));
            format!("SELECT {number} AS part, * FROM read_parquet([{}])", paths.collect::<Vec<_>>().join(", "))
        };
        let parts: Vec<String> = rows.iter().enumerate().map(part).collect();
        text.replace(&format!("{{{}}}", layer.name()), &parts.join("\n    UNION ALL "))
    })
}

/// Writes a view for each layer of each row, over a pattern that names its files, and the views over these views.
fn spark(root: &str, rows: &[RowEntry]) -> String {
    let root = match root.strip_prefix("s3://") {
        Some(rest) => format!("s3a://{rest}"),
        // A path without a scheme may belong to another file system.
        None => format!("file://{root}"),
    };
    let root = escaped(&escaped(&root, "\\{}[]*?"), "\\'");
    let mut layers = Vec::new();
    let mut text = SPARK.to_owned();
    for (layer, columns) in SPARK_COLUMNS {
        let mut records = Vec::new();
        for (number, row) in rows.iter().enumerate() {
            let view = format!("{}_{:06}", layer.name(), row.row);
            let paths: Vec<&str> = files(row, layer).collect();
            let paths = if let [path] = paths[..] { path.to_owned() } else { format!("{{{}}}", paths.join(",")) };
            layers.push(format!(
                "CREATE OR REPLACE TEMPORARY VIEW {view} ({columns})\nUSING parquet OPTIONS (path '{root}/{paths}');"
            ));
            records.push(format!("SELECT {number} AS part, * FROM {view}"));
        }
        text = text.replace(&format!("{{{}}}", layer.name()), &records.join("\n    UNION ALL "));
    }
    text.replace("{layers}", &layers.join("\n"))
}

/// A text with a backslash before each of these characters.
fn escaped(text: &str, special: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if special.contains(character) {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}
