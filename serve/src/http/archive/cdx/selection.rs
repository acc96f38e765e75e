//! Selects the lines to list: filters, and collapsing of adjacent lines.
//!
//! A filter has the meaning of the server that the client was written for ([`Dialect`]):
//!
//! | filter | Internet Archive | pywb |
//! |---|---|---|
//! | `field:text` | the whole value matches the pattern | the value contains the text |
//! | `~field:text` | the value contains the text | the beginning of the value matches the pattern |
//! | `=field:text` | | the value is the text |
//! | `!` before these, or after `~` | the opposite | the opposite |

use regex_lite::Regex;
use tonic::Status;

use super::field::{Field, Line};
use super::parameters::Dialect;
use crate::protocol::status::bad;

/// The largest size of a filter in bytes.
const FILTER_BYTES: usize = 256;

/// Keeps the lines with a wanted field, or without it.
pub(super) struct Filter {
    field: Field,
    is_negative: bool,
    wanted: Wanted,
}

enum Wanted {
    Matches(Regex),
    Contains(String),
    Is(String),
}

impl Filter {
    pub(super) fn parse(text: &str, dialect: Dialect) -> Result<Self, Status> {
        let signs = text.len() - text.trim_start_matches(['!', '~', '=']).len();
        let (signs, rest) = text.split_at(signs);
        let is_negative = signs.contains('!');
        let expected = || bad(format!("filter: {text:?} (expected as statuscode:200 or !statuscode:200)"));
        let (name, value) = rest.split_once(':').ok_or_else(expected)?;
        let field = Field::parse("filter", name)?;
        let matches = |pattern: String| {
            let pattern = (value.len() <= FILTER_BYTES).then(|| Regex::new(&pattern).ok()).flatten();
            let refused = || bad(format!("filter: not a regular expression: {text:?}"));
            pattern.map(Wanted::Matches).ok_or_else(refused)
        };
        let wanted = match (dialect, signs.replace('!', "").as_str()) {
            (Dialect::Wayback, "") => matches(format!("^(?:{value})$"))?,
            (Dialect::Pywb, "~") => matches(format!("^(?:{value})"))?,
            (Dialect::Wayback, "~") | (Dialect::Pywb, "") => Wanted::Contains(value.to_owned()),
            (_, "=") => Wanted::Is(value.to_owned()),
            _ => return Err(expected()),
        };
        Ok(Self { field, is_negative, wanted })
    }

    pub(super) fn keeps(&self, line: &Line) -> bool {
        let value = self.field.of(line);
        let is_wanted = match &self.wanted {
            Wanted::Matches(pattern) => pattern.is_match(&value),
            Wanted::Contains(text) => value.contains(text.as_str()),
            Wanted::Is(text) => value == *text,
        };
        is_wanted != self.is_negative
    }
}

/// Keeps the first of adjacent lines that have the same fields, or fields with the same beginning.
pub(super) struct Collapse {
    /// The fields, and the number of letters of each that are compared.
    fields: Vec<(Field, usize)>,
    before: Option<Vec<String>>,
}

impl Collapse {
    /// Parses `field` or `field:length`.
    pub(super) fn parse(text: &str) -> Result<Self, Status> {
        let (field, length) = text.split_once(':').unwrap_or((text, ""));
        let length = match length {
            "" if field == text => Some(usize::MAX),
            _ => length.parse().ok().filter(|length| *length > 0),
        };
        let length = length.ok_or_else(|| bad(format!("collapse: {text:?} (expected as timestamp:4 or urlkey)")))?;
        Ok(Self { fields: vec![(Field::parse("collapse", field)?, length)], before: None })
    }

    /// Collapses lines with the same status and the same beginning of the time, like pywb's `collapseTime`.
    pub(super) fn of_time(length: usize) -> Self {
        Self { fields: vec![(Field::Timestamp, length), (Field::Statuscode, usize::MAX)], before: None }
    }

    pub(super) fn keeps(&mut self, line: &Line) -> bool {
        let values: Vec<String> =
            self.fields.iter().map(|(field, length)| field.of(line).chars().take(*length).collect()).collect();
        let keeps = self.before.as_ref() != Some(&values);
        self.before = Some(values);
        keeps
    }
}

/// Whether all filters and collapses keep a line. A line that one of them drops is not passed to the next.
pub(super) fn keep(filters: &[Filter], collapses: &mut [Collapse], line: &Line) -> bool {
    filters.iter().all(|filter| filter.keeps(line)) && collapses.iter_mut().all(|collapse| collapse.keeps(line))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::question::resume::PagePosition;
    use webstrata_layers::{CaptureTime, Status as Code, parse_time};

    #[test]
    fn filters_mean_what_the_server_of_the_client_takes_them_for() {
        let line = Line {
            url: "http://www.a.example/feature/302".into(),
            capture: CaptureTime { time: parse_time("20060501120000", false).unwrap(), known: true, status: Code::OK },
            position: PagePosition::default(),
        };
        let keeps = |text: &str, dialect| Filter::parse(text, dialect).unwrap().keeps(&line);
        for (text, wayback, pywb) in [
            ("statuscode:200", true, true),
            ("statuscode:20", false, true),
            ("statuscode:2..", true, false),
            ("!statuscode:2..", false, true),
            ("~urlkey:feature", true, false),
            ("~!urlkey:feature", false, true),
            ("~urlkey:example,a.*feature", false, true),
            ("!~urlkey:example", false, false),
            ("=statuscode:200", true, true),
            ("=statuscode:20", false, false),
            ("!=statuscode:20", true, true),
            ("timestamp:2006", false, true),
            ("original:http://www\\.a\\.example/feature/302", true, false),
            ("offset:-", true, true),
        ] {
            assert_eq!((keeps(text, Dialect::Wayback), keeps(text, Dialect::Pywb)), (wayback, pywb), "{text}");
        }
        for text in ["statuscode", "", "~=statuscode:2", "nothing:2", "statuscode:("] {
            assert!(Filter::parse(text, Dialect::Wayback).is_err(), "{text}");
        }
    }
}
