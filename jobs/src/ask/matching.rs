//! Which URLs a text of a person means: the options `--match` and `--source-match`.
//!
//! Questions about one page take the URL alone or all spellings of the page ([`MatchArgs`]). Questions about many pages
//! also take a path, a host or a domain ([`TargetArg`]).

use std::ops::Range;

use anyhow::{anyhow, bail};
use clap::{Args, ValueEnum};
use webstrata_layers::{Links, Lookup, Match, Uid};
use webstrata_url::{is_name, meant};

/// Which URLs are asked.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct MatchArgs {
    /// exact: this URL. surt: all spellings of the page together: http and https, with and without
    /// www, in any case
    #[arg(long = "match", value_name = "WHAT", value_enum, default_value_t)]
    pub(crate) matching: MatchArg,
}

/// Which URLs are asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum MatchArg {
    /// The URL alone
    #[default]
    Exact,
    /// All URLs with its urlkey (SURT)
    Surt,
}

/// Which URLs are the target, or the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TargetArg {
    /// This URL
    Exact,
    /// All spellings of its page (SURT)
    Surt,
    /// URLs that start with it, with any scheme, port and user info
    Prefix,
    /// URLs of its host
    Host,
    /// URLs of its host and of all subdomains
    Domain,
}

impl From<TargetArg> for Match {
    fn from(matched: TargetArg) -> Self {
        match matched {
            TargetArg::Exact => Self::Exact,
            TargetArg::Surt => Self::Surt,
            TargetArg::Prefix => Self::Prefix,
            TargetArg::Host => Self::Host,
            TargetArg::Domain => Self::Domain,
        }
    }
}

/// The URLs that match a text of a person.
pub(crate) struct Matching {
    pub(crate) matched: Match,
    /// The URL that was meant; with [`Match::Exact`], as the store spells it.
    pub(crate) url: String,
    /// The UIDs of the matching URLs, rising.
    pub(crate) uids: Vec<Range<Uid>>,
}

impl Matching {
    /// Finds the URLs that match a text. `options` names the options for the text and for the way of matching.
    pub(crate) fn of(
        links: &dyn Links,
        (text, matched): (&str, Option<TargetArg>),
        options: [&str; 2],
    ) -> anyhow::Result<Self> {
        let text = text.trim();
        let matched = matched.map_or_else(|| Match::unsaid(is_name(text)), Match::from);
        let url = meant(text).map_err(|error| anyhow!("invalid {} {text:?}: {error}", options[0]))?.swap_remove(0);
        Ok(match matched.lookup(&url) {
            Some(Lookup::Keys(prefix)) => Self { matched, url, uids: links.with_prefix(&prefix)? },
            Some(Lookup::Url) => {
                let found = super::find(links, text)?;
                Self { matched, url: found.url, uids: std::iter::once(found.uid..found.uid + 1).collect() }
            }
            Some(Lookup::Spellings) => {
                let (spellings, _) = super::find_page(links, text)?;
                Self { matched, url, uids: spellings.into_iter().map(|uid| uid..uid + 1).collect() }
            }
            None => bail!("{url} has no host name, so it needs {} exact", options[1]),
        })
    }
}
