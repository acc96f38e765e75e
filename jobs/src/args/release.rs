//! The options of inputs that are a web graph, and of the report of a build.

use crate::args::{Format, Usage, time_from, time_to};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use std::path::{Path, PathBuf};
use webstrata_datasets::Www;
use webstrata_pipeline::GraphOptions;

/// How `build` and `update` read web graphs, and how they print their report.
#[derive(Args, Debug)]
pub(crate) struct ReleaseArgs {
    /// How to print the result: text or json; with cc-graph, the inputs are one release of Common Crawl's
    /// host or domain graphs
    #[arg(long, value_name = "FORMAT", value_enum, value_delimiter = ',', default_value = "text")]
    format: Vec<ReleaseFormat>,
    /// With cc-graph: the time of the release, or its first and last month: 2024-05..2024-07; all
    /// captures have its first second
    #[arg(long, value_name = "T", value_parser = first_second)]
    time: Option<i64>,
    /// With cc-graph: what a leading www of a host means [default: fold; of update: that of the store]
    #[arg(long, value_name = "WWW", value_parser = www())]
    www: Option<Www>,
    /// With cc-graph: write the ranks of the release as a table: .parquet, .csv or .arrow
    #[arg(long, value_name = "TABLE")]
    ranks: Option<PathBuf>,
}

/// A format of the report, or of the inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ReleaseFormat {
    /// Text, for people
    Text,
    /// JSON, for programs
    Json,
    /// Inputs: hosts and edges of a web graph
    CcGraph,
}

/// Parses the meaning of a leading `www`.
fn www() -> impl TypedValueParser<Value = Www> {
    let values = Www::ALL.map(|www| {
        PossibleValue::new(www.name()).help(match www {
            Www::Fold => "Nothing: www.example.com is example.com, as in releases before November 2025",
            Www::Keep => "Another host",
        })
    });
    PossibleValuesParser::new(values)
        .map(|name| Www::ALL.into_iter().find(|www| www.name() == name).unwrap_or_default())
}

/// Parses a time, or the first and the last time of a period. Returns the first second.
fn first_second(text: &str) -> Result<i64, String> {
    let (first, last) = text.split_once("..").unwrap_or((text, text));
    let (first, last) = (time_from(first)?, time_to(last)?);
    if first > last { Err("the first time is later than the second".to_owned()) } else { Ok(first) }
}

impl ReleaseArgs {
    /// How the report is printed.
    pub(crate) fn report(&self) -> Format {
        if self.format.contains(&ReleaseFormat::Json) { Format::Json } else { Format::Text }
    }

    /// The table for the ranks of the release.
    pub(crate) fn ranks(&self) -> Option<&Path> {
        self.ranks.as_deref()
    }

    /// The options of a web graph, if the inputs are one.
    pub(crate) fn graph(&self) -> Result<Option<GraphOptions>, Usage> {
        let www = self.www;
        match (self.format.contains(&ReleaseFormat::CcGraph), self.time) {
            (true, Some(time)) => Ok(Some(GraphOptions { time, www })),
            (true, None) => Err(Usage(
                "a web graph has no times: give the time of the release, for example --time 2024-05..2024-07".into(),
            )),
            (false, None) if www.is_none() && self.ranks.is_none() => Ok(None),
            (false, _) => Err(Usage("--time, --www and --ranks are for web graphs: add --format cc-graph".into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_has_the_first_second_of_its_time() {
        for text in ["2024-05", "2024-05..2024-07", "2024-05-01..2024-05-01", "20240501..2026"] {
            assert_eq!(first_second(text), Ok(1_714_521_600), "{text}");
        }
        for wrong in ["2024-05..2024-04", "2024-05..", "..", "May"] {
            assert!(first_second(wrong).is_err(), "{wrong}");
        }
    }
}
