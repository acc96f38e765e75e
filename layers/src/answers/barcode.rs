//! The runs of all links of a page, in columns.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::questions::Way;
use crate::record::uid::Uid;

/// When each link of a page was there, or when each page linked to a URL. A picture is drawn from the answer, so the
/// answer is small: times are seconds, and a number stands for a capture: its place in `captures`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Barcode {
    /// The epoch of the answer. UIDs are valid in this epoch only.
    pub epoch: u64,
    /// The URL.
    pub url: String,
    /// Its UID.
    pub uid: Uid,
    /// Whether these are links of the page or pages that link to it.
    pub direction: Way,
    /// Captures of the URL in seconds since 1970, each as the difference to the one before.
    pub captures: Vec<i64>,
    /// Places of the captures that leave links unknown: their links are unknown, or their bodies were cut.
    pub unknown: Vec<usize>,
    /// Places of the cut captures by reason. For out-links, those that are in a run have the link.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub cut: BTreeMap<String, Vec<usize>>,
    /// Places of captures by HTTP status, except status 200.
    pub statuses: BTreeMap<String, Vec<usize>>,
    /// The prefix of the URLs of mementos. After it come the 14 digits of a capture, a slash, and the URL.
    pub replay: String,
    /// The link of each row. For in-links, the page that links.
    pub links: Vec<String>,
    /// For in-links, the first capture of each page with known links, in seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_known: Option<Vec<i64>>,
    /// The number of runs of each row.
    pub counts: Vec<usize>,
    /// The runs of all rows. For out-links, pairs: the number of captures since the run before, and the number of
    /// captures in the run minus one. A run ends before a cut capture without the link. For in-links, triples of
    /// seconds: the first and the last capture of the page with the link, and the first capture after them without it
    /// (0: none).
    pub runs: Vec<i64>,
    /// Rows beyond the limit; null if there are none.
    pub rest: Option<Rest>,
}

/// Rows that are not in an answer.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "BarcodeRest")]
pub struct Rest {
    /// The number of rows.
    pub links: usize,
    /// The number of these rows that had the link in each month. For in-links, in a capture of that month.
    pub months: Vec<(String, u64)>,
}
