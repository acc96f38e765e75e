//! What a store is good for, besides single questions: analyses, standing results and exports, on the engine of the
//! jobs.
//!
//! ```text
//! layers -> [analyze] -> values by UID, statistics -> [table] -> [outlet]
//!        -> [stretches] -> [export] -> files of other tools
//! epochs -> [standing] -> results that stay right, on differential dataflow
//! ```
//!
//! | module | what |
//! |---|---|
//! | `analyze` | algorithms on the graph at a date, and statistics of how it changes |
//! | `export` | stores in the forms of other tools |
//! | [`standing`] | results kept right as epochs come |
//! | `stretches` | the links of a page in a window, with the captures that have them |
//! | `hosts` | URLs folded into hosts, domains or paths |
//! | `outlet`, `table` | where results go, and tables there as Parquet, CSV or Arrow |

mod analyze;
mod error;
mod export;
mod hosts;
mod nodes;
mod outlet;
pub mod standing;
mod stretches;
mod table;

pub use analyze::{
    Analysis, AnalyzeOptions, AnalyzeReport, DateReport, Dates, Fact, Iterations, NodeRule, Sheet, SheetColumn, Top,
    analyze, overview, strongly_connected,
};
pub use error::Error;
pub use export::{DRAWN_MAX, ExportOptions, ExportReport, Format, Names, Unfit, What, export};
pub use hosts::{Fold, FoldError, UrlGroups};
pub use outlet::{Ending, Outlet, Target, UnknownEnding, format_of, outside_stores, write_file};
pub use table::{TableFormat, TableWriter};
