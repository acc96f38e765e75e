//! Values of the command line that several subcommands share, and the outcome of a subcommand.

pub(crate) mod release;
pub(crate) mod units;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, ValueEnum};
use std::borrow::Cow;
use std::thread::available_parallelism;
use webstrata_layers::read::question::limited;
use webstrata_layers::{AsOf, Effort, Failures, Location, Window, parse_age, parse_time};

/// The outcome of a subcommand that printed its whole result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Exit code 0.
    Done,
    /// Exit code 1.
    Failed,
}

/// The error of a command line that parses but makes no sense: exit code 2.
#[derive(Debug)]
pub(crate) struct Usage(pub(crate) Cow<'static, str>);

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// Turns the error of a library about options into an error of the command line.
pub(crate) fn unfit(error: impl std::error::Error) -> anyhow::Error {
    Usage(error.to_string().into()).into()
}

/// How results are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Text, for people
    #[default]
    Text,
    /// JSON, for programs
    Json,
}

/// The option that all subcommands with results have.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct FormatArgs {
    /// How to print the result
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub(crate) format: Format,
}

/// How strongly a job compresses layers.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct EffortArgs {
    /// Compress the layers as much as possible, for a store that stays as it is; later jobs do not
    /// keep this
    #[arg(long)]
    compact: bool,
}

impl EffortArgs {
    pub(crate) fn effort(self) -> Effort {
        if self.compact { Effort::Compact } else { Effort::Quick }
    }
}

/// The location of a store: a path, `file:///path` or `s3://bucket/prefix`.
pub(crate) fn location() -> impl TypedValueParser<Value = Location> {
    OsStringValueParser::new().try_map(Location::parse)
}

/// Parses a `--limit`, the most items to return. 0 means all.
pub(crate) fn limit(text: &str) -> Result<usize, String> {
    let number: u64 = text.parse().map_err(|_| format!("not a number: {text:?}; write 0 for all, or 1, 2, 3 ..."))?;
    Ok(usize::try_from(limited(number, u64::MAX)).unwrap_or(usize::MAX))
}

/// Parses a time, and returns its first second.
pub(crate) fn time_from(text: &str) -> Result<i64, String> {
    parse_time(text, false).map_err(|error| error.to_string())
}

/// Parses a time, and returns its last second.
pub(crate) fn time_to(text: &str) -> Result<i64, String> {
    parse_time(text, true).map_err(|error| error.to_string())
}

/// Which captures count as of a time.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct AsOfArgs {
    /// As of a time: a page counts only if its latest capture is not older than this: 12h, 30d, 4w, 2y
    #[arg(long, value_name = "AGE", value_parser = age)]
    pub(crate) max_age: Option<i64>,
    /// As of a time: which failures end a page: those with 4xx but 429, none, or all [default: end]
    #[arg(long, value_name = "WHICH", value_enum)]
    pub(crate) failures: Option<FailuresArg>,
}

/// Which failures count as the latest capture of a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailuresArg {
    /// Those with 4xx, except 429
    #[default]
    End,
    /// None: the latest good capture counts
    Ignore,
    /// All, also those of the server
    All,
}

impl AsOfArgs {
    /// The window as of a time.
    pub(crate) fn window(self, at: i64) -> Window {
        Window::AsOf(self.date(at))
    }

    /// The date of a time, with these options.
    pub(crate) fn date(self, at: i64) -> AsOf {
        AsOf { failures: self.rule(), ..AsOf::new(at).within(self.max_age) }
    }

    /// Two dates. The first must not be later than the second.
    pub(crate) fn dates(self, from: i64, to: i64) -> Result<[AsOf; 2], Usage> {
        if from > to {
            return Err(Usage("the first date is later than the second".into()));
        }
        Ok([from, to].map(|at| self.date(at)))
    }

    /// The failures that end a page.
    pub(crate) fn rule(self) -> Failures {
        match self.failures.unwrap_or_default() {
            FailuresArg::End => Failures::End,
            FailuresArg::Ignore => Failures::Ignore,
            FailuresArg::All => Failures::All,
        }
    }

    /// Rejects the options if no part of the question is as of a time; `dated` says whether some part is.
    pub(crate) fn need(self, dated: bool) -> Result<(), Usage> {
        if dated || (self.max_age.is_none() && self.failures.is_none()) {
            return Ok(());
        }
        Err(Usage("--max-age and --failures need a date, for example --at".into()))
    }
}

pub(crate) fn age(text: &str) -> Result<i64, String> {
    parse_age(text).ok_or_else(|| format!("not an age: {text:?}; write hours, days, weeks or years: 12h, 30d, 4w, 2y"))
}

/// The interval between two times. Either time may be missing.
pub(crate) fn interval(from: Option<i64>, to: Option<i64>) -> Result<(i64, i64), Usage> {
    webstrata_layers::interval(from, to).map_err(|_| Usage("--from is later than --to".into()))
}

/// The number of processors, which is the default number of threads.
pub(crate) fn processors() -> usize {
    available_parallelism().map_or(1, usize::from)
}

/// A number of bytes: `512M`, `2G`, `64 KiB`; the units are powers of 1024.
pub(crate) fn size(text: &str) -> Result<usize, String> {
    let wrong = || format!("not a size: {text:?}; write a number of bytes, or for example 512M or 2G");
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let shift = match unit.trim().to_ascii_lowercase().trim_end_matches('b').trim_end_matches('i') {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        "t" => 40,
        _ => return Err(wrong()),
    };
    let number: f64 = number.parse().map_err(|_| wrong())?;
    let bytes = number * f64::from(2u32).powi(shift);
    if bytes < 1.0 || bytes > isize::MAX as f64 {
        return Err(wrong());
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 1 and isize::MAX, see above")]
    Ok(bytes as usize)
}

/// A number of seconds.
pub(crate) fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds: &f64| (0.001..=1e6).contains(seconds));
    seconds.ok_or_else(|| format!("not a number of seconds from 0.001 to 1000000: {text:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units_of_1024() {
        assert_eq!(size("512M"), Ok(512 << 20));
        assert_eq!(size("1.5g"), Ok(3 << 29));
        assert_eq!(size("64 KiB"), Ok(64 << 10));
        assert_eq!(size("100"), Ok(100));
        for wrong in ["", "G", "0", "-1", "12Q", "1e3", "99999999T"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_limit_of_0_is_all() {
        assert_eq!((limit("0"), limit("7")), (Ok(usize::MAX), Ok(7)));
        for wrong in ["", "-1", "all", "1.5"] {
            assert!(limit(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_short_time_is_a_whole_period() {
        assert_eq!(time_from("1970"), Ok(0));
        assert_eq!(time_to("1970"), Ok(365 * 86_400 - 1));
        assert_eq!(time_to("197001"), Ok(31 * 86_400 - 1));
        assert_eq!(time_from("1970-01-02T00:00:00Z"), Ok(86_400));
        for wrong in ["tomorrow", "0000", "1209588506000", "0001-01-01T00:00:00+12:00"] {
            assert!(
                [time_from(wrong), time_to(wrong)].into_iter().all(|time| time.is_err_and(|text| text.contains(wrong)))
            );
        }
    }
}
