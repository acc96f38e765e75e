//! A question as a line of JSON: the form that `webstrata query` and `/v1/query` have in common.

use serde::Deserialize;
use serde_json::Value;
use webstrata_layers::{Window, interval, parse_time};

/// One question, as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// Comes back with the answer; null where it is missing.
    #[serde(default)]
    pub id: Value,
    /// What is asked.
    pub op: Op,
    /// Of which URL, which need not be canonical.
    pub url: String,
    /// Which way links are followed.
    #[serde(default)]
    pub direction: Way,
    /// Beginning of the window.
    pub from: Option<String>,
    /// End of the window.
    pub to: Option<String>,
    /// As of when; it goes with neither of the others.
    pub at: Option<String>,
}

/// What is asked.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Hash)]
#[serde(rename_all = "lowercase")]
pub enum Op {
    /// Links of a page, or what links to a URL.
    Links,
    /// When a page was captured.
    Captures,
}

/// Which way links are followed.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Hash)]
#[serde(rename_all = "lowercase")]
pub enum Way {
    /// From the page.
    #[default]
    Out,
    /// To the URL, exactly.
    In,
}

impl Question {
    /// The part of time that it is about.
    ///
    /// # Errors
    /// What is wrong with its times, for whoever asked.
    pub fn window(&self) -> Result<Window, String> {
        let time = |text: &str, end| parse_time(text, end).ok_or_else(|| format!("not a time: {text}"));
        match (&self.at, &self.from, &self.to) {
            (Some(at), None, None) => Ok(Window::AsOf(time(at, true)?)),
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
