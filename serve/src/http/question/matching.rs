//! `matchType`, `sourceMatch`: which URLs match the URL that a person writes.

use std::ops::Range;

use tonic::Status;
use webstrata_layers::{Match, Uid};

use super::address::{find, meant};
use super::params::Params;
use crate::clerk::Pinned;

/// The value of a parameter; without it `default`.
pub(in crate::http) fn matched(params: &Params, name: &str, default: Match) -> Result<Match, Status> {
    if params.get(name)?.is_none() {
        return Ok(default);
    }
    params.choice(name, Match::ALL.map(|word| (word.name(), word)))
}

/// URLs that match a URL.
pub(in crate::http) struct Matching {
    /// The URL; with [`Match::Exact`] as the store spells it.
    pub(in crate::http) url: String,
    /// The UIDs of those that match, rising.
    pub(in crate::http) uids: Vec<Range<Uid>>,
}

impl Matching {
    /// Those that match the URL that a text means. `name` is the parameter that has the text.
    ///
    /// # Errors
    /// BAD_REQUEST for text that is not a URL, and for the host of a URL without a host name; with [`Match::Exact`]
    /// those of [`find`].
    pub(in crate::http) async fn of(
        pinned: &Pinned,
        matched: Match,
        (name, text): (&str, &str),
    ) -> Result<Self, Status> {
        if matched == Match::Exact {
            let (url, uid) = find(pinned, text).await?;
            return Ok(Self { url, uids: std::iter::once(uid..uid + 1).collect() });
        }
        // The prefixes of keys are the same for both schemes.
        let url = meant(text)?.swap_remove(0);
        let uids = pinned.matching(matched, &url, name).await?;
        Ok(Self { url, uids })
    }
}
