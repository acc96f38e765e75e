//! The parameters of HTTP questions. The parser and the description of the service read the same table, so a rule about
//! a parameter stands once.

use serde_json::{Value, json};
use webstrata_layers::Word;

/// A parameter.
#[derive(Clone, Copy, Debug)]
pub(in crate::http) struct Parameter {
    pub(in crate::http) name: &'static str,
    /// The meaning, for people.
    about: &'static str,
    pub(in crate::http) shape: Shape,
    place: Place,
    required: bool,
    /// Whether it may be given several times, even if only one value counts.
    pub(in crate::http) repeats: bool,
    /// Values that are valid together with the examples of the required parameters and with `with`.
    examples: &'static [&'static str],
    with: &'static [(&'static str, &'static str)],
}

/// The values of a parameter.
#[derive(Clone, Copy, Debug)]
pub(in crate::http) enum Shape {
    Text,
    /// One text or more.
    Texts,
    /// `true` or `false`, which is the default.
    Flag,
    /// A word of this list; the first is the default.
    Words(fn() -> Vec<&'static str>),
    /// A word of this list. The default depends on the question.
    WordsUnsaid(fn() -> Vec<&'static str>),
    /// A whole number.
    Number {
        least: u64,
        most: u64,
        default: Option<u64>,
    },
    /// A whole number that may be negative.
    Signed {
        least: i64,
        most: u64,
    },
    /// One whole number or more.
    Numbers,
}

/// The part of a request that has a parameter.
#[derive(Clone, Copy, Debug)]
enum Place {
    Query,
    Path,
    Header,
}

/// The names of all values of a type, the default first.
pub(in crate::http) fn words_of<T: Word>() -> Vec<&'static str> {
    T::VALUES.iter().map(|value| value.word()).collect()
}

pub(in crate::http) const fn text(name: &'static str, about: &'static str) -> Parameter {
    let (place, shape) = (Place::Query, Shape::Text);
    Parameter { name, about, shape, place, required: false, repeats: false, examples: &[], with: &[] }
}

pub(in crate::http) const fn texts(name: &'static str, about: &'static str) -> Parameter {
    Parameter { shape: Shape::Texts, repeats: true, ..text(name, about) }
}

pub(in crate::http) const fn flag(name: &'static str, about: &'static str) -> Parameter {
    Parameter { shape: Shape::Flag, examples: &["true"], ..text(name, about) }
}

pub(in crate::http) const fn words(
    name: &'static str,
    about: &'static str,
    words: fn() -> Vec<&'static str>,
) -> Parameter {
    Parameter { shape: Shape::Words(words), ..text(name, about) }
}

pub(in crate::http) const fn number(name: &'static str, about: &'static str, least: u64, most: u64) -> Parameter {
    Parameter { shape: Shape::Number { least, most, default: None }, ..text(name, about) }
}

pub(in crate::http) const fn signed(name: &'static str, about: &'static str, least: i64, most: u64) -> Parameter {
    Parameter { shape: Shape::Signed { least, most }, ..text(name, about) }
}

pub(in crate::http) const fn numbers(name: &'static str, about: &'static str) -> Parameter {
    Parameter { shape: Shape::Numbers, repeats: true, ..text(name, about) }
}

impl Parameter {
    pub(in crate::http) const fn required(self) -> Self {
        Self { required: true, ..self }
    }

    pub(in crate::http) const fn example(self, examples: &'static [&'static str]) -> Self {
        Self { examples, ..self }
    }

    /// The example is valid together with these values.
    pub(in crate::http) const fn with(self, with: &'static [(&'static str, &'static str)]) -> Self {
        Self { with, ..self }
    }

    /// The same words; the default depends on the question.
    pub(in crate::http) const fn unsaid(self) -> Self {
        let shape = match self.shape {
            Shape::Words(words) => Shape::WordsUnsaid(words),
            shape => shape,
        };
        Self { shape, ..self }
    }

    /// The number that is meant without the parameter.
    pub(in crate::http) const fn default(self, default: u64) -> Self {
        let shape = match self.shape {
            Shape::Number { least, most, .. } => Shape::Number { least, most, default: Some(default) },
            shape => shape,
        };
        Self { shape, ..self }
    }

    pub(in crate::http) const fn repeated(self) -> Self {
        Self { repeats: true, ..self }
    }

    /// A part of the path.
    pub(in crate::http) const fn in_path(self) -> Self {
        Self { place: Place::Path, required: true, ..self }
    }

    pub(in crate::http) const fn in_header(self) -> Self {
        Self { place: Place::Header, ..self }
    }

    /// The parameter in the terms of OpenAPI. `x-with` has the values that make its example valid.
    pub(in crate::http) fn description(&self) -> Value {
        let place = match self.place {
            Place::Query => "query",
            Place::Path => "path",
            Place::Header => "header",
        };
        let mut shown = json!({"name": self.name, "in": place, "required": self.required, "description": self.about,
                               "schema": self.shape.schema()});
        match (self.shape, self.examples) {
            (_, []) => {}
            (Shape::Texts | Shape::Numbers, examples) => {
                shown["example"] = examples.iter().map(|example| self.shape.value(example)).collect();
            }
            (_, [example, ..]) => shown["example"] = self.shape.value(example),
        }
        if !self.with.is_empty() {
            shown["x-with"] = self.with.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
        }
        shown
    }
}

impl Shape {
    fn schema(self) -> Value {
        match self {
            Self::Text => json!({"type": "string"}),
            Self::Texts => json!({"type": "array", "items": {"type": "string"}, "minItems": 1}),
            Self::Flag => json!({"type": "boolean", "default": false}),
            Self::Words(words) => json!({"type": "string", "enum": words(), "default": words().first()}),
            Self::WordsUnsaid(words) => json!({"type": "string", "enum": words()}),
            Self::Number { least, most, default } => {
                let mut schema = json!({"type": "integer", "minimum": least});
                match most {
                    u64::MAX => schema["format"] = json!("uint64"),
                    most => schema["maximum"] = json!(most),
                }
                if let Some(default) = default {
                    schema["default"] = json!(default);
                }
                schema
            }
            Self::Signed { least, most } => json!({"type": "integer", "minimum": least, "maximum": most}),
            Self::Numbers => json!({"type": "array", "items": {"type": "integer", "format": "uint64"}, "minItems": 1}),
        }
    }

    /// A value in the type of the schema.
    fn value(self, text: &str) -> Value {
        match self {
            Self::Flag | Self::Number { .. } | Self::Signed { .. } | Self::Numbers => {
                serde_json::from_str(text).unwrap_or_default()
            }
            _ => json!(text),
        }
    }
}
