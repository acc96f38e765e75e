//! When pages were captured.

use schemars::JsonSchema;
use serde::Serialize;

use super::Time;
use crate::record::capture::CaptureTime;
use crate::record::status::Cut;
use crate::record::uid::Uid;

/// Captures, in order of UIDs and times. The captures of all spellings of a page are in order of time.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Captures {
    /// The epoch of the answer. UIDs are valid in this epoch only.
    pub epoch: u64,
    /// The URL, if the question is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The UID of the URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<Uid>,
    /// The spellings of the page, if the question is about all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spellings: Option<Vec<String>>,
    /// The captures.
    pub captures: Vec<Capture>,
    /// There is more. Repeat the question with this key to continue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resume_key: Option<String>,
}

/// A capture.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Capture {
    /// The URL that was captured.
    pub url: String,
    /// When.
    pub time: Time,
    /// The status that the server answered.
    #[schemars(range(min = 100, max = 999))]
    pub status: u16,
    /// Whether the links of the capture are known. A failure has no links, and that is known. If the capture is cut,
    /// the links that were found are known.
    pub known: bool,
    /// Why the body of the page was not read whole, if it was not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut: Option<Cut>,
}

impl Capture {
    /// A capture of a URL.
    pub fn of(url: &str, capture: CaptureTime) -> Self {
        let CaptureTime { time, known, status } = capture;
        Self { url: url.to_owned(), time: Time(time), status: status.code(), known, cut: status.reason() }
    }
}
