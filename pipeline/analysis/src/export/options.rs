//! The options of an export, and the rules that say which of them fit together.

use crate::Fold;
use crate::analyze::NodeRule;
use crate::outlet::{Ending, Target, format_of, is_gzip};
use std::fmt;
use std::path::PathBuf;
use webstrata_engine::RunOptions;
use webstrata_layers::Window;

/// The options of an export.
#[derive(Clone, Debug)]
pub struct ExportOptions {
    /// The store and the resources: workers, memory, processes.
    pub run: RunOptions,
    /// The kind of records.
    pub what: What,
    /// The format.
    pub format: Format,
    /// The names of columns.
    pub names: Names,
    /// The target. For [`Format::Webgraph`], the beginning of the names of files; for [`Format::CcGraph`],
    /// [`Format::Neo4j`] and [`Format::Icebug`], the directory of the files.
    pub target: Target,
    /// The captures that count.
    pub window: Window,
    /// The rule that selects nodes, for exports with a row or a number for each node. Without a window, all URLs are
    /// nodes.
    pub nodes: NodeRule,
    /// The groups of [`What::Hosts`]; hosts if `None`.
    pub fold: Option<Fold>,
    /// Whether the ends of links are written as URLs instead of UIDs.
    pub urls: bool,
    /// Whether the output is a directory, with a part of the table from each worker.
    pub parts: bool,
}

/// An enum whose values have names on the command line.
macro_rules! named {
    ($(#[$about:meta])* $of:ident { $($(#[$doc:meta])* $value:ident = $name:literal),* $(,)? }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $of {
            $($(#[$doc])* $value),*
        }

        impl $of {
            /// All values.
            pub const ALL: &[$of] = &[$($of::$value),*];

            /// Returns the name of the value.
            pub const fn name(self) -> &'static str {
                match self {
                    $($of::$value => $name),*
                }
            }

            /// Returns the value with this name.
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.name() == name)
            }
        }

        impl fmt::Display for $of {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

named! {
    /// The kind of records of an export.
    What {
        /// A page and one of its links, with the time of the link.
        Edges = "edges",
        /// A link that a page has at a capture and did not have at the capture before, or the other way round.
        Events = "events",
        /// A URL.
        Nodes = "nodes",
        /// Two hosts with links from the first to the second.
        Hosts = "hosts",
        /// A page with its captures, and its links with their times.
        Layers = "layers",
    }
}

named! {
    /// The format of an export.
    Format {
        /// Apache Parquet.
        Parquet = "parquet",
        /// Comma-separated values with a header; times as RFC 3339.
        Csv = "csv",
        /// An Arrow IPC file (Feather version 2).
        Arrow = "arrow",
        /// GraphML.
        Graphml = "graphml",
        /// GEXF 1.3, dynamic.
        Gexf = "gexf",
        /// BV files of WebGraph, of both directions, with the feature `webgraph`.
        Webgraph = "webgraph",
        /// Matrix Market: coordinate, pattern, general.
        Mtx = "mtx",
        /// NetworKit's `EdgeListTabOne`: two numbers from 1 and a tab between them.
        Networkit = "networkit",
        /// The files of Common Crawl's host and domain graphs: vertices and edges.
        CcGraph = "cc-graph",
        /// Nodes and links for the import of Neo4j.
        Neo4j = "neo4j",
        /// Nodes and links that LadybugDB mounts.
        Icebug = "icebug",
    }
}

named! {
    /// The names of columns.
    Names {
        /// `src`, `dst`, `id`.
        Default = "default",
        /// GraphFrames: `src`, `dst`, `id`.
        Graphframes = "graphframes",
        /// NetworkX: `source`, `target`.
        Networkx = "networkx",
        /// cuGraph: `source`, `destination`.
        Cugraph = "cugraph",
        /// Gephi: `Source`, `Target`, `Type`, `Weight`, `Id`, `Label`, `Time Interval`.
        Gephi = "gephi",
        /// The Archives Unleashed Toolkit: `crawl_date`, `src`, `dest`, one row for each capture that has a link.
        Aut = "aut",
    }
}

impl Names {
    /// Returns the names of the columns for the ends of a link.
    pub(crate) fn ends(self) -> [&'static str; 2] {
        match self {
            Names::Default | Names::Graphframes => ["src", "dst"],
            Names::Networkx => ["source", "target"],
            Names::Cugraph => ["source", "destination"],
            Names::Gephi => ["Source", "Target"],
            Names::Aut => ["src", "dest"],
        }
    }
}

impl Format {
    /// Whether the format is a table of columns.
    pub fn is_table(self) -> bool {
        matches!(self, Format::Parquet | Format::Csv | Format::Arrow)
    }

    /// Whether the format numbers nodes without gaps.
    pub fn numbers_nodes(self) -> bool {
        matches!(self, Format::Webgraph | Format::Mtx | Format::Networkit | Format::CcGraph)
    }

    /// Whether the format is text in one file.
    pub fn is_text(self) -> bool {
        matches!(self, Format::Csv | Format::Graphml | Format::Gexf | Format::Mtx | Format::Networkit)
    }
}

/// The formats that a file name can say. Files of the other formats have various names.
impl Ending for Format {
    const ENDINGS: &'static [(&'static str, Self, bool)] = &[
        ("parquet", Format::Parquet, false),
        ("csv", Format::Csv, true),
        ("arrow", Format::Arrow, false),
        ("feather", Format::Arrow, false),
        ("graphml", Format::Graphml, true),
        ("gexf", Format::Gexf, true),
        ("mtx", Format::Mtx, true),
    ];
}

impl What {
    /// Returns the formats that can hold these records.
    pub fn formats(self) -> &'static [Format] {
        use Format::{Arrow, CcGraph, Csv, Gexf, Graphml, Icebug, Mtx, Neo4j, Networkit, Parquet, Webgraph};
        match self {
            What::Edges => &[Parquet, Csv, Arrow, Graphml, Gexf, Webgraph, Mtx, Networkit, Neo4j, Icebug],
            What::Hosts => &[Parquet, Csv, Arrow, Graphml, Gexf, CcGraph, Neo4j, Icebug],
            What::Events | What::Nodes => &[Parquet, Csv, Arrow],
            What::Layers => &[Parquet, Arrow],
        }
    }

    /// Returns the names that the columns of these records can have in a format.
    pub fn names(self, format: Format) -> &'static [Names] {
        use Names::{Cugraph, Default, Gephi, Graphframes, Networkx};
        match self {
            _ if !format.is_table() => &[Default],
            What::Edges => Names::ALL,
            What::Nodes | What::Hosts => &[Default, Graphframes, Networkx, Cugraph, Gephi],
            What::Events => &[Default, Graphframes, Networkx, Cugraph],
            What::Layers => &[Default],
        }
    }
}

/// Options that do not fit together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// A format that cannot hold the records.
    #[error("{what} do not fit {format}; they are written as {}", listed(what.formats()))]
    Format {
        /// The records.
        what: What,
        /// The format.
        format: Format,
    },
    /// Names that the columns of the records cannot have.
    #[error("{what} in {format} do not have names as {names}; what fits is {}", listed(what.names(*format)))]
    Names {
        /// The records.
        what: What,
        /// The format.
        format: Format,
        /// The names.
        names: Names,
    },
    /// URLs instead of UIDs for records without UIDs to replace.
    #[error("URLs in place of UIDs are for tables of edges and of events")]
    Urls,
    /// A unit for records that are not hosts.
    #[error("only hosts have a unit")]
    Fold,
    /// Paths in a format that has hosts or domains.
    #[error("cc-graph has hosts or domains: give host or domain as the unit")]
    Prefix,
    /// A single moment for events.
    #[error("events lie between captures: give a time from and to, not one moment")]
    AsOf,
    /// A stream for a format that is not text.
    #[error("{0} needs a file; csv, graphml, gexf, mtx and networkit are text that a stream can take")]
    Stream(Format),
    /// Parts of an export that is not a table by UID in files.
    #[error("parts are of tables of edges, events, nodes and layers in files; fold has hosts by many workers")]
    Parts,
    /// Several processes for one file.
    #[error("one process writes one file; several write a table in parts")]
    Cluster,
    /// A file name that says a different format than the requested one.
    #[error("{} names a file of {named}, and --format asks for {format}", path.display())]
    Ending {
        /// The file.
        path: PathBuf,
        /// The format of the ending.
        named: Format,
        /// The requested format.
        format: Format,
    },
    /// A file name that asks for compression of a format that is already compressed.
    #[error("{0} is compressed in itself; .gz is for csv, graphml, gexf, mtx and networkit")]
    Gzip(Format),
    /// The beginning of file names for WebGraph that has a dot, which WebGraph would cut off.
    #[error("{}: a basename has no dot, because WebGraph puts its own endings there", .0.display())]
    Basename(PathBuf),
    /// A format that needs a feature which the binary lacks.
    #[error(
        "this binary was built without the format {0}; to add it: \
         cargo install --locked --path jobs --features {0}"
    )]
    Absent(Format),
}

fn listed<T: fmt::Display>(values: &[T]) -> String {
    values.iter().map(T::to_string).collect::<Vec<_>>().join(", ")
}

impl ExportOptions {
    /// Checks that the options fit together.
    ///
    /// # Errors
    /// The first options that do not fit together.
    pub fn fits(&self) -> Result<(), Unfit> {
        let Self { what, format, names, .. } = *self;
        if !what.formats().contains(&format) {
            return Err(Unfit::Format { what, format });
        }
        if !what.names(format).contains(&names) {
            return Err(Unfit::Names { what, format, names });
        }
        if self.urls && !(format.is_table() && matches!(what, What::Edges | What::Events)) {
            return Err(Unfit::Urls);
        }
        if self.fold.is_some() && what != What::Hosts {
            return Err(Unfit::Fold);
        }
        if format == Format::CcGraph && matches!(self.fold, Some(Fold::Prefix(_))) {
            return Err(Unfit::Prefix);
        }
        if what == What::Events && matches!(self.window, Window::AsOf(_)) {
            return Err(Unfit::AsOf);
        }
        if self.parts && (!format.is_table() || what == What::Hosts || self.target == Target::Stream) {
            return Err(Unfit::Parts);
        }
        if self.run.cluster.is_some() && !self.parts {
            return Err(Unfit::Cluster);
        }
        match &self.target {
            Target::Stream if !format.is_text() => Err(Unfit::Stream(format)),
            Target::File(path) if format == Format::Webgraph && path.extension().is_some() => {
                Err(Unfit::Basename(path.clone()))
            }
            _ if format == Format::Webgraph && !cfg!(feature = "webgraph") => Err(Unfit::Absent(format)),
            Target::File(path) if is_gzip(path) && !format.is_text() => Err(Unfit::Gzip(format)),
            Target::File(path) => match format_of(path) {
                Ok(named) if named != format => Err(Unfit::Ending { path: path.clone(), named, format }),
                _ => Ok(()),
            },
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> ExportOptions {
        ExportOptions {
            run: RunOptions::new(std::path::Path::new("store")),
            what: What::Edges,
            format: Format::Parquet,
            names: Names::Default,
            target: Target::File("out".into()),
            nodes: NodeRule::OfDate,
            window: Window::ALWAYS,
            fold: None,
            urls: false,
            parts: false,
        }
    }

    #[test]
    fn what_does_not_go_together_is_refused_with_what_does() {
        assert_eq!(options().fits(), Ok(()));
        let at = Window::as_of(0);
        for (wrong, says) in [
            (ExportOptions { what: What::Nodes, format: Format::Gexf, ..options() }, "parquet, csv, arrow"),
            (ExportOptions { what: What::Layers, format: Format::Csv, ..options() }, "parquet, arrow"),
            (ExportOptions { what: What::Events, names: Names::Aut, ..options() }, "default, graphframes, networkx"),
            (ExportOptions { format: Format::Mtx, names: Names::Gephi, ..options() }, "default"),
            (ExportOptions { format: Format::Mtx, urls: true, ..options() }, "tables"),
            (ExportOptions { fold: Some(Fold::Host), ..options() }, "hosts"),
            (ExportOptions { format: Format::CcGraph, ..options() }, "neo4j"),
            (
                ExportOptions { what: What::Hosts, format: Format::CcGraph, fold: Some(Fold::Prefix(1)), ..options() },
                "host or domain",
            ),
            (ExportOptions { what: What::Events, window: at, ..options() }, "from and to"),
            (ExportOptions { target: Target::Stream, ..options() }, "file"),
            (ExportOptions { what: What::Hosts, parts: true, ..options() }, "fold"),
            (ExportOptions { format: Format::Mtx, parts: true, ..options() }, "tables"),
            (ExportOptions { target: Target::Stream, format: Format::Csv, parts: true, ..options() }, "files"),
            (ExportOptions { format: Format::Webgraph, target: Target::File("a.b".into()), ..options() }, "dot"),
        ] {
            let error = wrong.fits().expect_err(says).to_string();
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn a_format_that_is_not_there_says_what_to_install() {
        let fits = ExportOptions { format: Format::Webgraph, target: Target::File("graph".into()), ..options() }.fits();
        assert_eq!(fits.is_ok(), cfg!(feature = "webgraph"));
        let says = Unfit::Absent(Format::Webgraph).to_string();
        assert!(says.ends_with("cargo install --locked --path jobs --features webgraph"), "{says}");
    }

    #[test]
    fn names_lead_back() {
        assert!(What::ALL.iter().all(|&what| What::from_name(what.name()) == Some(what)));
        assert!(Format::ALL.iter().all(|&format| Format::from_name(format.name()) == Some(format)));
        assert!(Names::ALL.iter().all(|&names| Names::from_name(names.name()) == Some(names)));
        assert_eq!(What::from_name(""), None);
    }
}
