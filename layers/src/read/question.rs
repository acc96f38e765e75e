//! Questions and answers as lines of JSON, for `webstrata query` and `/v1/query`.
//!
//! A line that is not a question, or a question that cannot be answered, gets an answer with the error.

pub mod lines;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::answers::lines::Answered;
use crate::questions::Way;
use crate::read::question::lines::{Line, QUESTION_BYTES_MAX};
use crate::record::status::Failures;
use crate::record::time::text::{parse_age, parse_time};
use crate::record::time::{AsOf, Window, interval};
use crate::word::words;

/// The `limit` of a question, for all interfaces: the most items of an answer. 0 selects `all`, the most that one
/// answer can hold.
pub const fn limited(limit: u64, all: u64) -> u64 {
    if limit == 0 { all } else { limit }
}

/// One question, as written in a line. A line has at most 65,536 bytes. Unknown fields are refused.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// Returned with the answer; null if it is missing.
    #[serde(default)]
    pub id: Value,
    /// The operation.
    pub op: Op,
    /// The URL that the question is about. The URL need not be canonical. Without a scheme, the one that the store has
    /// is meant.
    pub url: String,
    /// The direction of the links.
    #[serde(default)]
    pub direction: Way,
    /// Beginning of the window.
    pub from: Option<String>,
    /// End of the window.
    pub to: Option<String>,
    /// The time of a question as of a time; excludes `from` and `to`.
    pub at: Option<String>,
    /// With `at`: the greatest age of the latest capture, as `30d`.
    pub max_age: Option<String>,
    /// With `at`: which failures count: `end` (the default), `ignore` or `all`.
    pub failures: Option<String>,
    /// Whether the question is about the URL alone, or about all spellings of its page (surt).
    #[serde(default, rename = "match")]
    pub matching: Matching,
}

/// Which URLs a question is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Matching {
    /// Only the URL.
    #[default]
    Exact,
    /// The URLs with the same urlkey, as one page ([`Spelled`](crate::Spelled)).
    Surt,
}

/// The operation of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// The links of a page, or the pages that link to a URL.
    Links,
    /// The captures of a page.
    Captures,
}

words!(Matching { Exact = "exact", Surt = "surt" });
words!(Op { Links = "links", Captures = "captures" });

impl Question {
    /// The window of time of the question.
    ///
    /// # Errors
    /// A message for the caller about the times.
    pub fn window(&self) -> Result<Window, String> {
        let time = |text: &str, end| parse_time(text, end).map_err(|error| error.to_string());
        let age = |text: &String| parse_age(text).ok_or_else(|| format!("not an age: {text} (expected as 30d)"));
        let age = self.max_age.as_ref().map(age).transpose()?;
        let failures = self.failures.as_ref().map(|text| text.parse::<Failures>().map_err(|error| error.to_string()));
        let failures = failures.transpose()?;
        if self.at.is_none() && (age.is_some() || failures.is_some()) {
            return Err("\"max_age\" and \"failures\" need \"at\"".to_owned());
        }
        match (&self.at, &self.from, &self.to) {
            (Some(at), None, None) => {
                let as_of = AsOf::new(time(at, true)?).within(age);
                Ok(Window::AsOf(AsOf { failures: failures.unwrap_or_default(), ..as_of }))
            }
            (Some(_), ..) => Err("\"at\" goes with neither \"from\" nor \"to\"".to_owned()),
            (None, from, to) => {
                let from = from.as_deref().map(|from| time(from, false)).transpose()?;
                let to = to.as_deref().map(|to| time(to, true)).transpose()?;
                let (from, to) = interval(from, to).map_err(|error| error.to_string())?;
                Ok(Window::Seen { from, to })
            }
        }
    }
}

/// The kind of a question about a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The links of the URL, or the pages that link to it, in a window.
    Links(Way, Window),
    /// The captures of the URL.
    Captures,
}

/// The URL that a text without a scheme means in a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meant {
    /// This URL.
    Url(String),
    /// No URL of the store.
    Nothing,
    /// Two URLs that both were captured, or that both were not.
    Both,
}

/// What identifies the answer to a line.
#[derive(Clone, Debug, PartialEq)]
enum Name {
    /// The id of the question.
    Id(Value),
    /// The number of the line.
    Line(u64),
}

/// A line as a question, or as an error.
#[derive(Clone, Debug)]
pub struct Asked {
    name: Name,
    question: Result<(Kind, String), String>,
    matching: Matching,
}

impl Asked {
    /// Parses a line. `canonical` returns the canonical text of a URL, which stores use.
    pub fn of(line: &Line, canonical: impl Fn(&str) -> Option<String>) -> Self {
        let number = line.number;
        let Some(text) = &line.text else {
            let question = Err(format!("the line is longer than {QUESTION_BYTES_MAX} bytes"));
            return Self { name: Name::Line(number), question, matching: Matching::Exact };
        };
        match serde_json::from_slice::<Question>(text) {
            Ok(mut question) => {
                let name = Name::Id(question.id.take());
                Self { name, matching: question.matching, question: kind(&question, canonical) }
            }
            Err(error) => {
                let id = serde_json::from_slice::<Value>(text).ok().and_then(|value| value.get("id").cloned());
                let name = id.map_or(Name::Line(number), Name::Id);
                let question = Err(format!("not a question: {error}"));
                Self { name, question, matching: Matching::Exact }
            }
        }
    }

    /// For a line whose URL has no scheme: the text of the URL, and the question about the first URL that the text may
    /// mean, which is `None` for a text that means none. Only if that question is sound and exact, a store must say
    /// which URL is meant ([`Self::meaning`]); otherwise the question is the one returned.
    pub fn bare(line: &Line, first: impl Fn(&str) -> Option<String>) -> Option<(String, Self)> {
        let fields: Value = serde_json::from_slice(line.text.as_ref()?).ok()?;
        let text = fields["url"].as_str()?;
        let url = first(text)?;
        Some((text.to_owned(), Self::of(line, |_| Some(url.clone()))))
    }

    /// Whether a store must say which URL a text without a scheme means.
    pub fn is_open(&self) -> bool {
        self.question.is_ok() && self.matching == Matching::Exact
    }

    /// The question about the URL that a text without a scheme means in a store.
    #[must_use]
    pub fn meaning(self, text: &str, meant: Meant) -> Self {
        let question = match (meant, self.question) {
            (Meant::Url(url), Ok((kind, _))) => Ok((kind, url)),
            (Meant::Both, _) => Err(format!(
                "{text} is in the store under http and under https; write the scheme, or \"match\": \"surt\""
            )),
            (_, question) => question,
        };
        Self { question, ..self }
    }

    /// The kind of the question, and its URL.
    ///
    /// # Errors
    /// A message for the caller about the line.
    pub fn question(&self) -> Result<(Kind, &str), &str> {
        self.question.as_ref().map(|(kind, url)| (*kind, url.as_str())).map_err(String::as_str)
    }

    /// Whether the question is about the URL alone or about all spellings.
    pub fn matching(&self) -> Matching {
        self.matching
    }

    /// The line of the answer: `answer` with the identification and the epoch.
    pub fn line(&self, epoch: u64, answer: Answered) -> Answered {
        match &self.name {
            Name::Id(id) => Answered { id: Some(id.clone()), epoch, ..answer },
            Name::Line(line) => Answered { line: Some(*line), epoch, ..answer },
        }
    }
}

fn kind(question: &Question, canonical: impl Fn(&str) -> Option<String>) -> Result<(Kind, String), String> {
    let window = question.window()?;
    let url = canonical(&question.url).ok_or_else(|| format!("not an http or https URL: {}", question.url))?;
    let kind = match question.op {
        Op::Links => Kind::Links(question.direction, window),
        Op::Captures => Kind::Captures,
    };
    Ok((kind, url))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn asked(text: &str) -> Asked {
        let line = Line { number: 7, text: Some(text.as_bytes().to_vec()) };
        Asked::of(&line, |url| url.starts_with("http://").then(|| url.to_lowercase()))
    }

    #[test]
    fn a_line_is_a_question_or_says_what_is_wrong() {
        let own = asked(r#"{"id": [1], "op": "links", "url": "http://A.example/", "direction": "in", "at": "2006"}"#);
        let at = parse_time("20061231235959", true).unwrap();
        assert_eq!(own.name, Name::Id(json!([1])));
        assert_eq!(own.question(), Ok((Kind::Links(Way::In, Window::as_of(at)), "http://a.example/")));
        let line = own.line(3, Answered::links(vec![], Way::In, vec![], vec![]));
        assert_eq!(serde_json::to_value(line).unwrap(), json!({"id": [1], "epoch": 3, "links": []}));
        let own = asked(r#"{"op": "captures", "url": "http://a.example/"}"#);
        assert_eq!((own.name.clone(), own.question().unwrap().0), (Name::Id(Value::Null), Kind::Captures));
        for (text, name, error) in [
            ("{", Name::Line(7), "not a question"),
            (r#"{"id": 3, "op": "link"}"#, Name::Id(json!(3)), "not a question"),
            (
                r#"{"id": 3, "op": "links", "url": "http://a/", "form": "2006"}"#,
                Name::Id(json!(3)),
                "not a question: unknown field `form`",
            ),
            (
                r#"{"id": 3, "op": "links", "url": "http://a/", "from": "206"}"#,
                Name::Id(json!(3)),
                "not a time: \"206\"",
            ),
            (
                r#"{"id": 3, "op": "links", "url": "http://a/", "from": "2006", "at": "2006"}"#,
                Name::Id(json!(3)),
                "\"at\" goes",
            ),
            (r#"{"id": 3, "op": "links", "url": "ftp://a/"}"#, Name::Id(json!(3)), "not an http or https URL"),
        ] {
            let own = asked(text);
            assert_eq!(own.name, name, "{text}");
            assert!(own.question().is_err_and(|own| own.starts_with(error)), "{text}: {:?}", own.question());
        }
        let long = Asked::of(&Line { number: 3, text: None }, |_| None);
        assert_eq!(long.question(), Err("the line is longer than 65536 bytes"));
        assert_eq!(long.line(1, Answered::error("too long")).line, Some(3));
    }
}
