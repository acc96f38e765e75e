//! Crawl files to layers: the jobs that build link graphs of web archives, on timely dataflow.
//!
//! ```text
//!            by hash of the page          by hash of the URL         by range of the key
//! inputs -> ingest ------------> pages ---------------> replace ----------------> outlinks -> inlinks -> epoch
//!              \ URL texts                                 ^  (fingerprint, UID)
//!               +------> sample -----> uids ---------------+
//!                                      by range of the key
//! ```
//!
//! The jobs are those of Avcular & Suel (2011, section 3: partitioning, UID assignment, replacement; section 4:
//! layers), in an order of our own: captures are folded into pages first, because consecutive captures share 98 % of
//! their links, and then each distinct link of a page is replaced once. Link texts do not travel with every link: a
//! URL becomes a 128-bit fingerprint where it is read, and its text goes on once.
//!
//! | file | what |
//! |---|---|
//! | `engine` | how a job runs: stages in order, going on after a death, and the commit |
//! | `build` | the jobs build and update |
//! | `ingest`, `fold`, `pages`, `sources`, `partition`, `uids`, `replace`, `outlinks`, `inlinks` | one stage each |
//! | `known_links` | captures that have the links of the one before |
//! | `large_fold`, `large_pages` | pages whose captures do not fit into memory, and those whose records are too large |
//! | `revisits` | which links revisits have, and what of a page is new to the store |
//! | `merge`, and the files in `merge/` | the job merge: rows to one row, its stages, how it replaces UIDs |
//! | `state`, `scratch` | what a worker has after a stage, and where it stands on disk |
//! | `shuffle`, `cluster` | the dataflow that carries records between workers, and the processes that they are in |
//! | `external_sort`, `runs` | sorting more than fits into memory, and records in files |
//! | `analyze`, and the files in `analyze/` | algorithms on the graph at a date, statistics of how it changes |
//! | `spans` | the links of a page in a window, with the captures that have them |
//! | `hosts` | URLs folded into hosts, domains or paths |
//! | `outlet`, `table` | where results go, and tables there as Parquet, CSV or Arrow |
//! | `export`, and the files in `export/` | stores in the forms of other tools |
//! | `standing`, and the files in `standing/` | results kept right as epochs come, on differential dataflow |
//! | `page_record`, `wire` | how records are written |
//! | `job`, `progress`, `meter`, `error` | what workers share, how far they are, what they take, why they stop |

mod analyze;
mod build;
mod cluster;
mod engine;
mod error;
mod export;
mod external_sort;
mod fold;
mod hosts;
mod ingest;
mod inlinks;
mod job;
mod known_links;
mod large_fold;
mod large_pages;
mod meaning;
mod merge;
mod meter;
mod outlet;
mod outlinks;
mod page_record;
mod pages;
mod partition;
mod progress;
mod replace;
mod revisits;
mod runs;
mod scratch;
mod shuffle;
mod sources;
mod spans;
pub mod standing;
mod state;
mod table;
mod uids;
mod wire;

pub use analyze::{
    Analysis, AnalyzeOptions, AnalyzeReport, DateReport, Dates, Fact, Iterations, Sheet, SheetColumn, Top, analyze,
    strongly_connected,
};
pub use build::{BuildOptions, BuildReport, build};
pub use cluster::{CLUSTER_WAIT, Cluster};
pub use engine::{RunOptions, memory_needed, workers_within};
pub use error::Error;
pub use export::{DRAWN_MAX, ExportOptions, ExportReport, Format, Names, Unfit, What, export};
pub use hosts::{Fold, FoldError, Parts, SUFFIX_LIST, domain_of};
pub use merge::{MergeOptions, MergeReport, merge, scheduled};
pub use outlet::{Ending, Outlet, Target, UnknownEnding, format_of, outside_stores, write_file};
pub use partition::{PARTITION_URLS, PARTITIONS};
pub use progress::{Missing, Moment, Progress, StageReport, Waiting};
pub use table::{TableFormat, TableWriter};
