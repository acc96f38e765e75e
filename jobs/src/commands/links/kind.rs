//! The kinds of answers of `webstrata links`, and which options go with which: one table, so that no option is ignored.

use super::LinksArgs;
use crate::args::Usage;
use crate::ask::matching::MatchArg;

/// A kind of answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The links in a window.
    Links,
    /// The number of these links.
    Count,
    /// A sample of these links.
    Sample,
    /// When each link existed.
    Lifespans,
    /// The same as a picture.
    Bars,
    /// The links to pages that are gone.
    Dead,
    /// The links that differ between two times.
    Changed,
    /// Who linked first.
    First,
}

use Kind::{Bars, Changed, Count, Dead, First, Lifespans, Links, Sample};

/// The options that select a kind.
const SELECTING: [(&str, Kind); 7] = [
    ("--count", Count),
    ("--sample", Sample),
    ("--lifespans", Lifespans),
    ("--bars", Bars),
    ("--dead", Dead),
    ("--changed", Changed),
    ("--first", First),
];

/// The other options, each with the kinds that it goes with.
const OPTIONS: [(&str, &[Kind]); 13] = [
    ("--in", &[Links, Count, Sample, Lifespans, Bars, Changed, First]),
    ("--from", &[Links, Count, Sample, Lifespans]),
    ("--to", &[Links, Count, Sample, Lifespans]),
    ("--at", &[Links, Count, Sample, Dead]),
    ("--max-age", &[Links, Count, Sample, Dead, Changed]),
    ("--failures", &[Links, Count, Sample, Dead, Changed]),
    ("--range-precision", &[Links, Count, Sample]),
    ("--match surt", &[Links, Count]),
    ("--seed", &[Sample]),
    ("--random", &[Sample]),
    ("--unit", &[First]),
    ("--limit", &[First, Bars]),
    ("--format json", &[Links, Count, Sample, Lifespans, Dead, Changed, First]),
];

impl Kind {
    /// The kind that the arguments ask for. Refuses options that do not go with it.
    pub(super) fn of(args: &LinksArgs) -> Result<Self, Usage> {
        let is_given = |option: &str| match option {
            "--count" => args.count,
            "--sample" => args.sample.is_some(),
            "--lifespans" => args.lifespans,
            "--bars" => args.bars,
            "--dead" => args.dead,
            "--changed" => args.changed.is_some(),
            "--first" => args.first,
            "--in" => args.inward,
            "--from" => args.from.is_some(),
            "--to" => args.to.is_some(),
            "--at" => args.at.is_some(),
            "--max-age" => args.as_of.max_age.is_some(),
            "--failures" => args.as_of.failures.is_some(),
            "--range-precision" => args.range_precision,
            "--match surt" => args.spelled.matching == MatchArg::Surt,
            "--seed" => args.seed.is_some(),
            "--random" => args.random,
            "--unit" => args.unit.is_some(),
            "--limit" => args.limit.is_some(),
            "--format json" => args.format.format == crate::args::Format::Json,
            _ => false,
        };
        let mut selected = SELECTING.into_iter().filter(|(option, _)| is_given(option));
        let (selecting, kind) = selected.next().unwrap_or(("", Links));
        if let Some((other, _)) = selected.next() {
            return Err(refused(format!("{selecting} does not go with {other}")));
        }
        let mut given = OPTIONS.into_iter().filter(|(option, _)| is_given(option));
        if let Some((option, kinds)) = given.find(|(_, kinds)| !kinds.contains(&kind)) {
            let with = || SELECTING.iter().filter(|(_, kind)| kinds.contains(kind)).map(|(option, _)| *option);
            return Err(refused(match selecting {
                "" => format!("{option} goes with {}", with().collect::<Vec<_>>().join(" or ")),
                _ => format!("{option} does not go with {selecting}"),
            }));
        }
        let needs = |option: &str, needed: &str| {
            let is_missing = is_given(option) && !is_given(needed);
            if is_missing { Err(refused(format!("{option} needs {needed}"))) } else { Ok(()) }
        };
        needs("--first", "--in")?;
        needs("--range-precision", "--in")?;
        for end in ["--from", "--to"] {
            if is_given("--at") && is_given(end) {
                return Err(refused(format!("--at does not go with {end}")));
            }
        }
        Ok(kind)
    }
}

fn refused(text: String) -> Usage {
    Usage(text.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        links: LinksArgs,
    }

    fn kind_of(line: &str) -> Result<Kind, String> {
        let words = ["links", "STORE", "http://a.example/"].into_iter().chain(line.split_whitespace());
        let line = Line::try_parse_from(words).map_err(|error| error.to_string())?;
        Kind::of(&line.links).map_err(|error| error.to_string())
    }

    /// A value for each option that takes one.
    fn written(option: &str) -> String {
        let value = match option {
            "--sample" | "--limit" | "--seed" => " 3",
            "--changed" => " 2008 2010",
            "--from" | "--to" | "--at" => " 2009",
            "--max-age" => " 1y",
            "--failures" => " all",
            "--unit" => " domain",
            _ => "",
        };
        format!("{option}{value}")
    }

    #[test]
    fn each_option_goes_with_its_kinds_and_is_refused_with_all_others() {
        let selecting = SELECTING.map(|(option, kind)| (written(option), kind));
        for (select, kind) in selecting.iter().cloned().chain([(String::new(), Links)]) {
            for (option, kinds) in OPTIONS {
                let needed = if kind == First || option == "--range-precision" { " --in" } else { "" };
                let line = format!("{select} {}{}", written(option), if option == "--in" { "" } else { needed });
                let found = kind_of(&line);
                match kinds.contains(&kind) {
                    true => assert_eq!(found, Ok(kind), "{line}"),
                    false => {
                        let refused = found.unwrap_err();
                        assert!(refused.starts_with(option) || refused.starts_with("--in "), "{line}: {refused}");
                    }
                }
            }
            for (other, _) in selecting.iter().filter(|(other, _)| !select.is_empty() && *other != select) {
                assert!(kind_of(&format!("{select} {other}")).unwrap_err().contains(" does not go with "));
            }
        }
        for line in ["--first", "--range-precision", "--at 2008 --from 2007", "--at 2008 --to 2009"] {
            assert!(kind_of(line).is_err(), "{line}");
        }
    }
}
