//! A page over time, and a URL's in-links over time: one record of the three out-side or in-side layers.

use crate::presence::Change;

/// One page over all its captures: a record of OL, TS and BV together (Avcular & Suel 2011, section 4).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The page.
    pub uid: u64,
    /// Times of its captures, seconds since 1970, rising, each once; never empty.
    pub timestamps: Vec<i64>,
    /// Indexes of the captures whose links are unknown, rising.
    pub unknown: Vec<u32>,
    /// The union of the links of all captures: UIDs, rising, each once.
    pub links: Vec<u64>,
    /// Which link was in which capture, see [`crate::presence`]; sorted by (link, capture), never at an unknown capture.
    pub changes: Vec<Change>,
}

/// What linked to one URL, by time range: a record of IL, TR and IBV together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InLinks {
    /// The URL that is linked to.
    pub uid: u64,
    /// Starts of the time ranges in which at least one of its sources had a capture with the link, seconds since
    /// 1970, rising; never empty.
    pub ranges: Vec<i64>,
    /// The pages that ever linked to it: UIDs, rising, each once.
    pub sources: Vec<u64>,
    /// Which source linked to it in which range, coded as [`Page::changes`] with sources for links and ranges for
    /// captures.
    pub changes: Vec<Change>,
}
