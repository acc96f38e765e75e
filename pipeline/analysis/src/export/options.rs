//! What can be asked of an export, and what of it goes together.

use crate::Fold;
use crate::analyze::NodeRule;
use crate::outlet::{Ending, Target, format_of, is_gzip};
use std::fmt;
use std::path::PathBuf;
use webstrata_layers::Window;
use webstrata_pipeline::RunOptions;

/// How a store is exported.
#[derive(Clone, Debug)]
pub struct ExportOptions {
    /// The store, and with what to work.
    pub run: RunOptions,
    /// What records are.
    pub what: What,
    /// How they are written.
    pub format: Format,
    /// How columns are called.
    pub names: Names,
    /// Where to; the beginning of the names of files for [`Format::Webgraph`].
    pub target: Target,
    /// Which captures count.
    pub window: Window,
    /// Which URLs are nodes, where there is a row or a number for each; without a window all are.
    pub nodes: NodeRule,
    /// What [`What::Hosts`] are; hosts if not given.
    pub fold: Option<Fold>,
    /// Whether the ends of links are URLs, instead of UIDs.
    pub urls: bool,
    /// Whether the file is a directory with a part of the table from each worker.
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
            /// All of them.
            pub const ALL: &[$of] = &[$($of::$value),*];

            /// Its name.
            pub const fn name(self) -> &'static str {
                match self {
                    $($of::$value => $name),*
                }
            }

            /// The one with this name.
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
    /// What the records of an export are.
    What {
        /// A page and a link of it, with the time in which it had it.
        Edges = "edges",
        /// A link that a page has at a capture and had not at the one before, or the other way round.
        Events = "events",
        /// A URL.
        Nodes = "nodes",
        /// Two hosts with links from one to the other.
        Hosts = "hosts",
        /// A page with its captures, and its links with their time.
        Layers = "layers",
    }
}

named! {
    /// How an export is written.
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
    }
}

named! {
    /// How columns are called.
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
    /// What the ends of a link are called.
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
    /// Whether it is a table of columns.
    pub fn is_table(self) -> bool {
        matches!(self, Format::Parquet | Format::Csv | Format::Arrow)
    }

    /// Whether nodes have numbers in it which leave none out.
    pub fn numbers_nodes(self) -> bool {
        matches!(self, Format::Webgraph | Format::Mtx | Format::Networkit)
    }

    /// Whether it is text in one file.
    pub fn is_text(self) -> bool {
        matches!(self, Format::Csv | Format::Graphml | Format::Gexf | Format::Mtx | Format::Networkit)
    }
}

/// Those of formats that a name can tell; the others have files of many names.
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
    /// The formats in which it can be written.
    pub fn formats(self) -> &'static [Format] {
        use Format::{Arrow, Csv, Gexf, Graphml, Parquet};
        match self {
            What::Edges => Format::ALL,
            What::Hosts => &[Parquet, Csv, Arrow, Graphml, Gexf],
            What::Events | What::Nodes => &[Parquet, Csv, Arrow],
            What::Layers => &[Parquet, Arrow],
        }
    }

    /// The names that its columns can have.
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

/// Things that do not go together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// A format that does not hold such records.
    #[error("{what} do not fit {format}; they are written as {}", listed(what.formats()))]
    Format {
        /// The records.
        what: What,
        /// The format.
        format: Format,
    },
    /// Names that such columns do not have.
    #[error("{what} in {format} do not have names as {names}; what fits is {}", listed(what.names(*format)))]
    Names {
        /// The records.
        what: What,
        /// The format.
        format: Format,
        /// The names.
        names: Names,
    },
    /// URLs in place of UIDs where there are no UIDs to replace.
    #[error("URLs in place of UIDs are for tables of edges and of events")]
    Urls,
    /// Parts of the web where they are not asked for.
    #[error("only hosts are folded")]
    Fold,
    /// One moment where changes are asked for.
    #[error("events lie between captures: give a time from and to, not one moment")]
    AsOf,
    /// A stream of what is no text.
    #[error("{0} needs a file; csv, graphml, gexf, mtx and networkit are text that a stream can take")]
    Stream(Format),
    /// Parts of what is no table by UID.
    #[error("parts are of tables of edges, events, nodes and layers in files; fold has hosts by many workers")]
    Parts,
    /// Several processes and one file.
    #[error("one process writes one file; several write a table in parts")]
    Cluster,
    /// A name that says another format than the one that is asked for.
    #[error("{} names a file of {named}, and --format asks for {format}", path.display())]
    Ending {
        /// The file.
        path: PathBuf,
        /// The format of its ending.
        named: Format,
        /// The format that is asked for.
        format: Format,
    },
    /// A name that asks for compression of what is compressed in itself.
    #[error("{0} is compressed in itself; .gz is for csv, graphml, gexf, mtx and networkit")]
    Gzip(Format),
    /// The beginning of names of files that WebGraph would cut.
    #[error("{}: a basename has no dot, because WebGraph puts its own endings there", .0.display())]
    Basename(PathBuf),
    /// A format that is a feature, in a binary without it.
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
    /// Whether what is asked for goes together.
    ///
    /// # Errors
    /// The first thing that does not.
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
