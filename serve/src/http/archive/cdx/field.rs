//! The fields of a line, by their names in CDX servers.
//!
//! A store has links and not records, so `mimetype`, `digest` and `length` are `-`, the CDX sign for unknown values.

use std::sync::Arc;

use tonic::Status;
use webstrata_layers::{CaptureTime, format_digits};

use crate::http::question::resume::PagePosition;
use crate::protocol::status::bad;

/// A capture of a URL.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) url: Arc<str>,
    pub(super) capture: CaptureTime,
    pub(super) position: PagePosition,
}

/// A field of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Urlkey,
    Timestamp,
    Original,
    Mimetype,
    Statuscode,
    Digest,
    Length,
    /// A field that only other indexes have.
    Elsewhere,
}

/// The fields of every line, each with the name that the Internet Archive uses, then the name that pywb uses.
pub(super) const FIELDS: [(Field, [&str; 2]); 7] = [
    (Field::Urlkey, ["urlkey", "urlkey"]),
    (Field::Timestamp, ["timestamp", "timestamp"]),
    (Field::Original, ["original", "url"]),
    (Field::Mimetype, ["mimetype", "mime"]),
    (Field::Statuscode, ["statuscode", "status"]),
    (Field::Digest, ["digest", "digest"]),
    (Field::Length, ["length", "length"]),
];

/// Fields of other indexes. Clients may ask for them and get `-`.
const ELSEWHERE: [&str; 11] = [
    "redirect",
    "robotflags",
    "offset",
    "filename",
    "orig.length",
    "orig.offset",
    "orig.filename",
    "mime-detected",
    "charset",
    "languages",
    "truncated",
];

impl Field {
    /// Parses a field name in the parameter `parameter`.
    pub(super) fn parse(parameter: &str, name: &str) -> Result<Self, Status> {
        let known = FIELDS.iter().find(|(_, names)| names.contains(&name)).map(|(field, _)| *field);
        known.or_else(|| ELSEWHERE.contains(&name).then_some(Self::Elsewhere)).ok_or_else(|| {
            let all = FIELDS.map(|(_, [name, _])| name).join(", ");
            bad(format!("{parameter}: no such field: {name:?} (expected {all})"))
        })
    }

    /// Whether only pywb has a field of this name.
    pub(super) fn is_of_pywb(name: &str) -> bool {
        FIELDS.iter().any(|(_, [wayback, pywb])| name == *pywb && name != *wayback)
    }

    pub(super) fn of(self, line: &Line) -> String {
        match self {
            Self::Urlkey => webstrata_url::surt(&line.url),
            Self::Timestamp => format_digits(line.capture.time),
            Self::Original => line.url.to_string(),
            Self::Statuscode => line.capture.status.code().to_string(),
            Self::Mimetype | Self::Digest | Self::Length | Self::Elsewhere => "-".to_owned(),
        }
    }
}
