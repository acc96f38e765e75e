//! XML 1.0 from any texts: characters with a meaning in XML are escaped, and characters that XML cannot have are left
//! out.

use super::graph::{Kind, Value};
use crate::Error;
use crate::outlet::Outlet;
use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesEnd, BytesStart, BytesText, Event};
use std::borrow::Cow;
use std::io;
use webstrata_layers::format_time;

/// Writes elements, indented.
pub(super) struct Xml<'a>(Writer<Outlet<'a>>);

impl<'a> Xml<'a> {
    /// Begins a document.
    pub(super) fn begin(outlet: Outlet<'a>) -> Result<Self, Error> {
        let mut xml = Self(Writer::new_with_indent(outlet, b' ', 1));
        xml.event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
        Ok(xml)
    }

    fn event(&mut self, event: Event<'_>) -> Result<(), Error> {
        self.0.write_event(event).map_err(|source| self.0.get_ref().failed(source))
    }

    /// Writes the start of an element.
    pub(super) fn open(&mut self, name: &str, attributes: &[(&str, &str)]) -> Result<(), Error> {
        self.event(Event::Start(start(name, attributes)))
    }

    /// Writes the end of an element.
    pub(super) fn close(&mut self, name: &str) -> Result<(), Error> {
        self.event(Event::End(BytesEnd::new(name)))
    }

    /// Writes an element without content.
    pub(super) fn empty(&mut self, name: &str, attributes: &[(&str, &str)]) -> Result<(), Error> {
        self.event(Event::Empty(start(name, attributes)))
    }

    /// Writes an element with text.
    pub(super) fn text(&mut self, name: &str, attributes: &[(&str, &str)], text: &str) -> Result<(), Error> {
        self.open(name, attributes)?;
        self.event(Event::Text(BytesText::new(&clean(text))))?;
        self.close(name)
    }

    /// Ends the document.
    pub(super) fn finish(self) -> Result<(), Error> {
        let mut outlet = self.0.into_inner();
        io::Write::write_all(&mut outlet, b"\n").map_err(|source| outlet.failed(source))?;
        outlet.finish()
    }
}

fn start<'a>(name: &'a str, attributes: &'a [(&'a str, &'a str)]) -> BytesStart<'a> {
    let mut start = BytesStart::new(name);
    for (name, value) in attributes {
        start.push_attribute((*name, &*clean(value)));
    }
    start
}

/// Returns the text without characters that XML 1.0 does not have, and without characters that tools take for spaces.
fn clean(text: &str) -> Cow<'_, str> {
    let is_wrong = |c: char| c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}');
    if text.contains(is_wrong) { text.replace(is_wrong, "").into() } else { text.into() }
}

/// Returns a value as text, or `None` for no value.
pub(super) fn in_text<'a>(value: &Value<'a>) -> Option<Cow<'a, str>> {
    match *value {
        Value::Text(text) => Some(text.into()),
        Value::Number(number) => Some(number.to_string().into()),
        Value::Time(time) => Some(format_time(time).into()),
        Value::None => None,
    }
}

/// Returns the name that both formats have for a kind of attribute.
pub(super) fn kind(kind: Kind) -> &'static str {
    // Neither format has a type for times.
    if kind == Kind::Number { "long" } else { "string" }
}

#[cfg(test)]
mod tests {
    use super::super::Target;
    use super::*;
    use quick_xml::XmlVersion;

    #[test]
    fn any_text_is_xml() {
        let mut out = Vec::new();
        let mut xml = Xml::begin(Outlet::open(&Target::Stream, &mut out).unwrap()).unwrap();
        let hostile = "a<b>&\"'\u{0}\u{1b}\u{ffff}\n]]>é";
        xml.open("graph", &[("name", hostile)]).unwrap();
        xml.text("data", &[], hostile).unwrap();
        xml.close("graph").unwrap();
        xml.finish().unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(
            text.starts_with("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<graph name=\"a&lt;b&gt;&amp;&quot;"),
            "{text}"
        );
        assert!(!text.contains(['\u{0}', '\u{1b}', '\u{ffff}']));
        let mut reader = quick_xml::Reader::from_str(&text);
        let mut seen = Vec::new();
        loop {
            match reader.read_event().unwrap() {
                Event::Eof => break,
                Event::Start(start) => {
                    for attribute in start.attributes() {
                        seen.push(attribute.unwrap().normalized_value(XmlVersion::Explicit1_0).unwrap().into_owned());
                    }
                }
                _ => {}
            }
        }
        assert_eq!(seen, ["a<b>&\"']]>é"]);
    }
}
