//! The values of `--unit` and `--period`, for all commands.
//!
//! A command may take some units only. Its help and its errors then name these.

use clap::ValueEnum;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use webstrata_analysis::Fold;
use webstrata_layers::{Grain, RangeLength, Unit, format_time};

/// What is counted, and what a row is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum UnitArg {
    /// A page
    #[default]
    Page,
    /// A host with the first directory of the path
    Directory,
    /// A host
    Host,
    /// A registrable domain
    Domain,
}

impl UnitArg {
    /// The name on the command line, and in answers.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Page => "page",
            Self::Directory => "directory",
            Self::Host => "host",
            Self::Domain => "domain",
        }
    }

    /// The unit of backlinks, which have no directories.
    pub(crate) fn of_backlinks(self) -> Unit {
        match self {
            Self::Page | Self::Directory => Unit::Page,
            Self::Host => Unit::Host,
            Self::Domain => Unit::Domain,
        }
    }

    /// The unit of nodes.
    pub(crate) fn grain(self) -> Grain {
        match self {
            Self::Page => Grain::Page,
            Self::Directory => Grain::Directory,
            Self::Host => Grain::Host,
            Self::Domain => Grain::Domain,
        }
    }

    /// The rule that maps URLs to this unit; `None` for pages.
    pub(crate) fn fold(self) -> Option<Fold> {
        match self {
            Self::Page => None,
            Self::Directory => Some(Fold::Prefix(1)),
            Self::Host => Some(Fold::Host),
            Self::Domain => Some(Fold::Domain),
        }
    }
}

/// The units without directories.
pub(crate) fn page_host_or_domain() -> impl TypedValueParser<Value = UnitArg> {
    let values = [UnitArg::Page, UnitArg::Host, UnitArg::Domain].iter().filter_map(UnitArg::to_possible_value);
    PossibleValuesParser::new(values).try_map(|name| UnitArg::from_str(&name, false))
}

/// The length of periods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PeriodArg {
    /// A day
    Day,
    /// A calendar month
    Month,
    /// A calendar year
    Year,
}

impl PeriodArg {
    pub(crate) fn length(self) -> RangeLength {
        match self {
            Self::Day => RangeLength::Days(1),
            Self::Month => RangeLength::Month,
            Self::Year => RangeLength::Year,
        }
    }

    /// The name of the period that starts with a second.
    pub(crate) fn name(self, start: i64) -> String {
        let digits = match self {
            Self::Day => 10,
            Self::Month => 7,
            Self::Year => 4,
        };
        format_time(start)[..digits].to_owned()
    }
}

/// Parses the length of periods, which may also be a number of days.
pub(crate) fn period(text: &str) -> Result<RangeLength, String> {
    text.parse().map_err(|_| format!("not a period: {text:?}; write day, month, year or a number of days"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Arg, Command};

    #[test]
    fn units_are_parsed_and_an_error_names_those_that_are_possible() {
        let command = || Command::new("rows").arg(Arg::new("unit").long("unit").value_parser(page_host_or_domain()));
        for unit in [UnitArg::Page, UnitArg::Host, UnitArg::Domain] {
            let matches = command().try_get_matches_from(["rows", "--unit", unit.name()]).unwrap();
            assert_eq!(matches.get_one("unit"), Some(&unit));
        }
        let error = command().try_get_matches_from(["rows", "--unit", "directory"]).unwrap_err().to_string();
        assert!(error.contains("[possible values: page, host, domain]"), "{error}");
    }

    #[test]
    fn periods_have_lengths_and_names() {
        for (arg, name) in [(PeriodArg::Day, "1970-01-01"), (PeriodArg::Month, "1970-01"), (PeriodArg::Year, "1970")] {
            let word = arg.to_possible_value().unwrap();
            assert_eq!(period(word.get_name()), Ok(arg.length()));
            assert_eq!(arg.name(0), name);
        }
        assert_eq!(period("7"), Ok(RangeLength::Days(7)));
        assert!(period("week").unwrap_err().contains("day, month, year or a number of days"));
    }
}
