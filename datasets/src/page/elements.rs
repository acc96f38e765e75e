//! The open elements that decide how the text after a tag is read: raw text, and embedded SVG and MathML.
//!
//! Takes the tags of a document one by one. Says whether the next tag is foreign, that is inside SVG or MathML, and how
//! to read the text after a tag. This is the part of the tree construction of HTML (13.2.6.5) that links depend on:
//! tags that end embedded SVG, and elements in it whose content is HTML (`foreignObject`, `desc`, `title`). No tree is
//! built.
//!
//! Memory: a byte for each open element of these kinds, at most [`OPEN_MAX`].

use crate::page::tags::Content;

/// The most elements that are held. Browsers hold fewer.
const OPEN_MAX: usize = 4096;

/// An element that changes how the tags inside it are read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Open {
    Svg,
    Math,
    /// An element of SVG or MathML with HTML inside, by its index in [`WITH_HTML`].
    Html(u8),
}

/// The elements with HTML inside: of SVG, then of MathML.
const WITH_HTML: [&[u8]; 8] = [b"foreignobject", b"desc", b"title", b"mi", b"mo", b"mn", b"ms", b"mtext"];
/// The number of elements of SVG among them.
const OF_SVG: usize = 3;

/// The start tags that end SVG and MathML. A `font` does so only with some attributes, and is not among them.
const ENDS_FOREIGN: [&[u8]; 44] = [
    b"b",
    b"big",
    b"blockquote",
    b"body",
    b"br",
    b"center",
    b"code",
    b"dd",
    b"div",
    b"dl",
    b"dt",
    b"em",
    b"embed",
    b"h1",
    b"h2",
    b"h3",
    b"h4",
    b"h5",
    b"h6",
    b"head",
    b"hr",
    b"i",
    b"img",
    b"li",
    b"listing",
    b"menu",
    b"meta",
    b"nobr",
    b"ol",
    b"p",
    b"pre",
    b"ruby",
    b"s",
    b"small",
    b"span",
    b"strong",
    b"strike",
    b"sub",
    b"sup",
    b"table",
    b"tt",
    b"u",
    b"ul",
    b"var",
];

/// The open elements; see the head of this file.
pub(crate) struct Elements {
    open: Vec<Open>,
    xhtml: bool,
}

impl Elements {
    pub(crate) fn new(xhtml: bool) -> Self {
        Elements { open: Vec::new(), xhtml }
    }

    /// Whether the next tag is inside SVG or MathML.
    #[inline]
    pub(crate) fn is_foreign(&self) -> bool {
        matches!(self.open.last(), Some(Open::Svg | Open::Math))
    }

    /// Whether the next tag is inside SVG.
    #[inline]
    pub(crate) fn is_svg(&self) -> bool {
        self.open.last() == Some(&Open::Svg)
    }

    /// The number of open elements that are held.
    pub(crate) fn depth(&self) -> usize {
        self.open.len()
    }

    /// Ends the elements that were opened later.
    pub(crate) fn truncate(&mut self, depth: usize) {
        self.open.truncate(depth);
    }

    /// Takes a tag that is read to its end, and says how to read the text after it. The name is in lower case.
    #[inline]
    pub(crate) fn take(&mut self, name: &[u8], is_end: bool, self_closing: bool) -> Content {
        if is_end {
            if !self.open.is_empty() {
                self.end(name);
            }
            return Content::Markup;
        }
        if self.is_foreign() && !self.xhtml && ENDS_FOREIGN.contains(&name) {
            self.end_foreign();
        }
        let is_foreign = self.is_foreign();
        let opened = match name {
            b"svg" => Some(Open::Svg),
            b"math" => Some(Open::Math),
            _ if is_foreign => {
                let range = if self.is_svg() { 0..OF_SVG } else { OF_SVG..WITH_HTML.len() };
                let index = range.into_iter().find(|&index| WITH_HTML[index] == name);
                index.and_then(|index| u8::try_from(index).ok()).map(Open::Html)
            }
            _ => None,
        };
        if self_closing && (self.xhtml || is_foreign || opened.is_some()) {
            return Content::Markup;
        }
        if let Some(opened) = opened.filter(|_| self.open.len() < OPEN_MAX) {
            self.open.push(opened);
        }
        // Foreign elements have no raw text, except in XHTML, where scripts are read as in HTML.
        if is_foreign && !self.xhtml { Content::Markup } else { content(name) }
    }

    fn end(&mut self, name: &[u8]) {
        if self.is_foreign() && !self.xhtml && matches!(name, b"p" | b"br") {
            self.end_foreign();
        }
        let is_own = |open: &Open| match open {
            Open::Svg => name == b"svg",
            Open::Math => name == b"math",
            Open::Html(index) => WITH_HTML[usize::from(*index)] == name,
        };
        let last = self.open.len().saturating_sub(1);
        // Inside HTML, only the end of the element around it counts.
        let from = self.open.iter().rposition(|open| matches!(open, Open::Html(_))).unwrap_or(0);
        if let Some(at) = (from..=last).rev().find(|&at| self.open.get(at).is_some_and(is_own)) {
            self.open.truncate(at);
        }
    }

    /// Ends SVG and MathML up to the HTML around them.
    fn end_foreign(&mut self) {
        while self.is_foreign() {
            self.open.pop();
        }
    }
}

/// How to read the text after a start tag of HTML.
pub(crate) fn content(name: &[u8]) -> Content {
    match name {
        b"script" => Content::Script,
        b"textarea" => Content::Raw(b"textarea"),
        b"title" => Content::Raw(b"title"),
        b"style" => Content::Raw(b"style"),
        b"xmp" => Content::Raw(b"xmp"),
        b"iframe" => Content::Raw(b"iframe"),
        b"noembed" => Content::Raw(b"noembed"),
        b"noframes" => Content::Raw(b"noframes"),
        b"plaintext" => Content::Plain,
        _ => Content::Markup,
    }
}

/// A name in lower case; empty if it is longer than any name of interest.
#[derive(Clone, Copy)]
pub(crate) struct Name {
    /// The bytes of the name, at the end.
    bytes: [u8; NAME_BYTES_MAX],
    len: usize,
}

const NAME_BYTES_MAX: usize = 16;

impl Name {
    /// The name goes through a register, because bytes that were written one by one cannot be read as words at once.
    #[inline]
    pub(crate) fn new(raw: &[u8]) -> Name {
        let len = if raw.len() <= NAME_BYTES_MAX { raw.len() } else { 0 };
        let lower = raw[..len].iter().fold(0u128, |name, byte| name << 8 | u128::from(byte.to_ascii_lowercase()));
        Name { bytes: lower.to_be_bytes(), len }
    }

    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[NAME_BYTES_MAX - self.len..]
    }
}
