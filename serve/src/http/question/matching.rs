//! `match`, `source_match`: the URLs that match a URL as a person writes it.

use std::ops::Range;

use tonic::Status;
use webstrata_layers::{Match, Uid};

use super::address::{find, meant};
use super::params::Params;
use crate::clerk::Pinned;

/// The value of a parameter; without the parameter, `default`.
pub(in crate::http) fn matched(params: &Params, name: &str, default: Match) -> Result<Match, Status> {
    if params.get(name)?.is_none() {
        return Ok(default);
    }
    params.word(name)
}

/// The URLs that match a URL.
pub(in crate::http) struct Matching {
    /// The URL; with [`Match::Exact`] in the spelling of the store.
    pub(in crate::http) url: String,
    /// The UIDs of the matching URLs, rising.
    pub(in crate::http) uids: Vec<Range<Uid>>,
}

impl Matching {
    /// Finds the URLs that match the URL in `text`. `name` is the parameter with the text.
    ///
    /// # Errors
    /// BAD_REQUEST for text that is not a URL, and for the host of a URL without a host name; with [`Match::Exact`] the
    /// errors of [`find`].
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
