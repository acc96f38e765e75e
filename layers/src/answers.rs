//! Answers as programs read them, in JSON: with URLs and times as text.
//!
//! HTTP and the command line write the same types, so that a field has one name, one form and one description. The
//! HTTP description of the service is made from them. A field that may be missing says when it is there. Memory: the
//! texts of one answer.
//!
//! | file | answers |
//! |---|---|
//! | [`links`] | links of a page, lifespans, changes between two dates, who linked first |
//! | [`captures`] | when pages were captured |
//! | [`backlinks`] | who links to a target, and how many over time |
//! | [`deaths`] | pages that died, and who still links to them |
//! | [`around`] | the neighbourhood of a page, and the ways to another page |
//! | [`barcode`] | the runs of all links of a page, in columns |
//! | [`names`] | URLs and UIDs |
//! | [`lines`] | answers to lines of questions |
//! | [`contents`] | the contents of a store |

pub mod around;
pub mod backlinks;
pub mod barcode;
pub mod captures;
pub mod contents;
pub mod deaths;
pub mod lines;
pub mod links;
pub mod names;

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};

use crate::record::time::format_time;

/// A time: seconds since 1970, UTC, written as in ISO 8601.
///
/// ```
/// use webstrata_layers::answers::Time;
///
/// assert_eq!(serde_json::to_string(&Time(1_212_278_400)).unwrap(), "\"2008-06-01T00:00:00Z\"");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Time(pub i64);

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format_time(self.0))
    }
}

impl JsonSchema for Time {
    fn schema_name() -> Cow<'static, str> {
        "Time".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "description": "ISO 8601, UTC.",
                      "pattern": "^-?[0-9]{4,}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$"})
    }
}

/// The day of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Day(pub i64);

impl Serialize for Day {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = format_time(self.0);
        serializer.serialize_str(text.split('T').next().unwrap_or_default())
    }
}

impl JsonSchema for Day {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Day".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "format": "date"})
    }
}
