//! Answers to lines of questions, for `webstrata query` and `/v1/query` ([`crate::read::question`]).

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::Time;
use super::links::UnknownLinks;
use crate::questions::Way;
use crate::record::capture::CaptureTime;
use crate::record::status::{Cut, Status};

/// One line: the answer to a question, or an error.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Answered {
    /// The id of the question; null if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<Value>,
    /// The number of the line, instead of an id, if the line is not a question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// The epoch of the answer.
    pub epoch: u64,
    /// The links, or the pages that link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub links: Option<Vec<String>>,
    /// The captures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub captures: Option<Vec<Time>>,
    /// The unknown part. For links: true, or the pages that may or may not link. For captures: those with unknown
    /// links.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown: Option<UnknownPart>,
    /// For links of a page as of a time, if some are unknown: the links that it had when they were last known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown_links: Option<Vec<String>>,
    /// For each capture why its body was not read whole; null if it was. Missing if all were read whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut: Option<Vec<Option<Cut>>>,
    /// The status of each capture. Missing if all are 200.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub statuses: Option<Vec<u16>>,
    /// The URL of each capture, if the question is about all spellings of a page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub urls: Option<Vec<String>>,
    /// The error in the question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Why the call failed, for programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The unknown part of an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum UnknownPart {
    /// The links of the page, or whether pages link.
    Links(UnknownLinks),
    /// The links of these captures.
    Captures(Vec<Time>),
}

impl Answered {
    /// An error.
    pub fn error(error: impl Into<String>) -> Self {
        Self { error: Some(error.into()), ..Self::default() }
    }

    /// The URL is not in the store.
    pub fn not_there() -> Self {
        Self::error("url not in store")
    }

    /// Links. `unknown` has the pages that may or may not link ([`crate::Unknown`]), and `last_known` the links that
    /// the page may have ([`crate::LastKnown`]).
    pub fn links(urls: Vec<String>, way: Way, unknown: Vec<String>, last_known: Vec<String>) -> Self {
        let unknown = UnknownLinks::of(way, unknown).map(UnknownPart::Links);
        let unknown_links = Some(last_known).filter(|links| !links.is_empty());
        Self { links: Some(urls), unknown, unknown_links, ..Self::default() }
    }

    /// Captures of a page.
    pub fn captures(captures: &[CaptureTime]) -> Self {
        let is_plain = captures.iter().all(|capture| capture.status.code() == Status::OK.code());
        let has_cut = captures.iter().any(|capture| capture.status.is_cut());
        let unknown: Vec<Time> =
            captures.iter().filter(|capture| !capture.known).map(|capture| Time(capture.time)).collect();
        Self {
            captures: Some(captures.iter().map(|capture| Time(capture.time)).collect()),
            unknown: (!unknown.is_empty()).then_some(UnknownPart::Captures(unknown)),
            statuses: (!is_plain).then(|| captures.iter().map(|capture| capture.status.code()).collect()),
            cut: has_cut.then(|| captures.iter().map(|capture| capture.status.reason()).collect()),
            ..Self::default()
        }
    }

    /// The captures of all spellings of a page. Each capture has its URL, given as an index in `urls`.
    pub fn captures_of_page(captures: &[(CaptureTime, usize)], urls: &[String]) -> Self {
        let times: Vec<CaptureTime> = captures.iter().map(|(capture, _)| *capture).collect();
        let urls = captures.iter().map(|(_, url)| urls[*url].clone()).collect();
        Self { urls: Some(urls), ..Self::captures(&times) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn unknown_links_and_captures_are_named() {
        let shown = |answer: Answered| serde_json::to_value(answer).unwrap();
        let unknown = |way| shown(Answered::links(vec![], way, vec!["http://b.example/".to_owned()], vec![]));
        assert_eq!(unknown(Way::Out), json!({"epoch": 0, "links": [], "unknown": true}));
        assert_eq!(unknown(Way::In), json!({"epoch": 0, "links": [], "unknown": ["http://b.example/"]}));
        let capture = |time, known| CaptureTime { time, known, status: Status::OK };
        let captures = [capture(0, true), capture(10, false)];
        let times = ["1970-01-01T00:00:00Z", "1970-01-01T00:00:10Z"];
        let all = shown(Answered::captures(&captures));
        assert_eq!(all, json!({"epoch": 0, "captures": times, "unknown": [times[1]]}));
        assert_eq!(shown(Answered::captures(&captures[..1])), json!({"epoch": 0, "captures": [times[0]]}));
    }
}
