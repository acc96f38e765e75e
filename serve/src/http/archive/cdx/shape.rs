//! The output formats of an answer, each as the clients of one server read it.
//!
//! | `output` | shape | read by clients of |
//! |---|---|---|
//! | none, `text` | fields between spaces | all |
//! | `json` | arrays, the first with the names of the fields | the Internet Archive |
//! | `json` | an object a line | pywb |
//! | `cdxj` | urlkey, time, and an object | pywb |
//! | `link` | the captures as mementos in link format | pywb, Memento |
//!
//! In the shapes of pywb, an answer without lines is 404 and not an empty text.

use serde_json::json;

use super::field::{Field, Line};
use crate::memento;

/// A field of a line, with the name by which the client asked for it.
#[derive(Clone, Debug)]
pub(super) struct Column {
    pub(super) field: Field,
    pub(super) name: String,
}

/// The output format; see the head of this file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Text,
    Arrays,
    Objects,
    Cdxj,
    Link,
}

impl Shape {
    pub(super) fn content_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; charset=utf-8",
            Self::Arrays => "application/json",
            Self::Objects => "text/x-ndjson",
            Self::Cdxj => "text/x-cdxj",
            Self::Link => "application/link-format",
        }
    }

    /// Whether an answer without lines is an error.
    pub(super) fn is_never_empty(self) -> bool {
        matches!(self, Self::Objects | Self::Cdxj | Self::Link)
    }

    /// Writes a line.
    pub(super) fn write(self, columns: &[Column], line: &Line, is_first: bool, links: &Links, out: &mut String) {
        let values = || columns.iter().map(|column| column.field.of(line));
        match self {
            Self::Text => out.push_str(&format!("{}\n", values().collect::<Vec<_>>().join(" "))),
            Self::Arrays => {
                if is_first {
                    let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
                    out.push_str(&format!("[{}", json!(names)));
                }
                out.push_str(&format!(",\n{}", json!(values().collect::<Vec<_>>())));
            }
            Self::Objects => out.push_str(&format!("{}\n", object(columns, line, &[]))),
            Self::Cdxj => {
                let before = [Field::Urlkey, Field::Timestamp];
                let [key, time] = before.map(|field| field.of(line));
                out.push_str(&format!("{key} {time} {}\n", object(columns, line, &before)));
            }
            Self::Link => {
                let memento = memento::link(&links.replay, (line.capture.time, &line.url), "memento");
                let original = links.original.as_deref().filter(|_| is_first);
                let before = original.map_or("", |_| ",\n");
                let original = original.map(|url| format!("{}; rel=\"original\"", memento::target(url)));
                out.push_str(if is_first { "" } else { ",\n" });
                out.push_str(&format!("{}{before}{memento}", original.unwrap_or_default()));
            }
        }
    }

    /// Writes the end of an answer: the key of the following lines, if there are any and the format has a place for the
    /// key.
    pub(super) fn end(self, is_empty: bool, key: Option<String>, out: &mut String) {
        let text = match (self, key) {
            (Self::Text | Self::Objects | Self::Cdxj, None) => String::new(),
            (Self::Text | Self::Objects | Self::Cdxj, Some(key)) => format!("\n{key}\n"),
            (Self::Arrays, None) if is_empty => "[]\n".to_owned(),
            (Self::Arrays, None) => "]\n".to_owned(),
            (Self::Arrays, Some(key)) => format!(",\n[],\n{}]\n", json!([key])),
            (Self::Link, _) if is_empty => String::new(),
            (Self::Link, _) => "\n".to_owned(),
        };
        out.push_str(&text);
    }
}

/// The data for lines in link format.
#[derive(Clone, Debug)]
pub(super) struct Links {
    /// The prefix of the URLs of mementos.
    pub(super) replay: String,
    /// The URL that the question names, if it is about one page.
    pub(super) original: Option<String>,
}

/// The fields of a line as an object, in their order. `without` and fields that only other indexes have are left out.
fn object(columns: &[Column], line: &Line, without: &[Field]) -> String {
    let shown = columns.iter().filter(|column| column.field != Field::Elsewhere && !without.contains(&column.field));
    let pair = |column: &Column| format!("{}: {}", json!(column.name), json!(column.field.of(line)));
    format!("{{{}}}", shown.map(pair).collect::<Vec<_>>().join(", "))
}
