//! Finds the tags of an HTML document: exactly the tags that the WHATWG tokenizer finds (HTML 13.2.5).
//!
//! Reads a document in a charset that lets markup be read as ASCII. Writes the name and attributes of each tag as
//! slices of the document, with case, character references and line ends unchanged. Text and comments make up nearly
//! all of a document. The reader skips them by searching for the byte that can end them, which saves the time that a
//! tokenizer spends on returning text.
//!
//! The caller says which elements hold raw text, and which elements are foreign (SVG, MathML): [`Tags::enter`].
//!
//! A tag that is cut off by the end of the document does not count. Memory: none.

use memchr::{memchr, memchr_iter, memchr2, memmem};

/// A start or end tag; its attributes come from [`Tags::part`].
pub(crate) struct Tag<'a> {
    /// The name as spelt.
    pub(crate) name: &'a [u8],
    pub(crate) is_end: bool,
}

/// A part of a tag.
pub(crate) enum TagPart<'a> {
    /// An attribute: the name as spelt, and the value without quotes, which is empty if there is none.
    Attribute(&'a [u8], &'a [u8]),
    /// The tag is whole.
    Close { self_closing: bool },
    /// The document ends inside the tag.
    Cut,
}

/// How to read the text after a start tag.
#[derive(Clone, Copy)]
pub(crate) enum Content {
    Markup,
    /// No markup before the end tag of this name.
    Raw(&'static [u8]),
    /// As raw, with the rules for scripts inside `<!--`.
    Script,
    /// No markup up to the end.
    Plain,
}

/// A reader of tags. After [`Tags::tag`], call [`Tags::part`] until it returns [`TagPart::Close`].
pub(crate) struct Tags<'a> {
    text: &'a [u8],
    at: usize,
    content: Content,
}

impl<'a> Tags<'a> {
    pub(crate) fn new(text: &'a [u8]) -> Self {
        Tags { text, at: 0, content: Content::Markup }
    }

    /// Says how to read the text after the start tag that was closed last.
    pub(crate) fn enter(&mut self, content: Content) {
        self.content = content;
    }

    /// The next tag. `foreign` says whether the reader is inside SVG or MathML, where CDATA sections are.
    #[inline]
    pub(crate) fn tag(&mut self, foreign: bool) -> Option<Tag<'a>> {
        match std::mem::replace(&mut self.content, Content::Markup) {
            Content::Markup => {}
            Content::Raw(name) => return self.end_of_raw_text(name),
            Content::Script => return self.end_of_script(),
            Content::Plain => return None,
        }
        loop {
            self.at += memchr(b'<', self.rest())? + 1;
            match self.text.get(self.at)? {
                b'a'..=b'z' | b'A'..=b'Z' => return self.name(false),
                b'/' => {
                    self.at += 1;
                    match self.text.get(self.at)? {
                        b'a'..=b'z' | b'A'..=b'Z' => return self.name(true),
                        b'>' => self.at += 1,
                        _ => self.behind(b">")?,
                    }
                }
                b'!' if self.rest().starts_with(b"!--") => self.comment()?,
                b'!' if foreign && self.rest().starts_with(b"![CDATA[") => self.behind(b"]]>")?,
                b'!' | b'?' => self.behind(b">")?,
                _ => {}
            }
        }
    }

    /// The number of bytes that were read.
    pub(crate) fn read_bytes(&self) -> usize {
        self.at
    }

    /// The next part of the current tag.
    #[inline]
    pub(crate) fn part(&mut self) -> TagPart<'a> {
        loop {
            match self.text.get(self.at) {
                Some(b'>') => {
                    self.at += 1;
                    return TagPart::Close { self_closing: false };
                }
                Some(b'/') => {
                    self.at += 1;
                    if self.text.get(self.at) == Some(&b'>') {
                        self.at += 1;
                        return TagPart::Close { self_closing: true };
                    }
                }
                Some(byte) if is_space(*byte) => self.at += 1,
                Some(_) => {
                    return self.attribute().map_or(TagPart::Cut, |(name, value)| TagPart::Attribute(name, value));
                }
                None => return TagPart::Cut,
            }
        }
    }

    fn attribute(&mut self) -> Option<(&'a [u8], &'a [u8])> {
        let start = self.at;
        self.at += 1; // whatever it is, even `=`
        let name_end = self.find(|byte| ends_name(byte) || byte == b'=')?;
        let name = &self.text[start..name_end];
        self.find(|byte| !is_space(byte))?;
        if self.text[self.at] != b'=' {
            return Some((name, b""));
        }
        self.at += 1;
        self.find(|byte| !is_space(byte))?;
        let start = self.at;
        Some(match self.text[start] {
            quote @ (b'"' | b'\'') => {
                let len = memchr(quote, &self.text[start + 1..])?;
                self.at = start + len + 2;
                (name, &self.text[start + 1..start + 1 + len])
            }
            _ => (name, &self.text[start..self.find(|byte| byte == b'>' || is_space(byte))?]),
        })
    }

    fn rest(&self) -> &'a [u8] {
        &self.text[self.at..]
    }

    /// Moves to the next byte of a kind.
    #[inline]
    fn find(&mut self, kind: impl Fn(u8) -> bool) -> Option<usize> {
        self.at += self.rest().iter().position(|&byte| kind(byte))?;
        Some(self.at)
    }

    fn behind(&mut self, end: &[u8]) -> Option<()> {
        self.at += memmem::find(self.rest(), end)? + end.len();
        Some(())
    }

    #[inline]
    fn name(&mut self, is_end: bool) -> Option<Tag<'a>> {
        let start = self.at;
        let end = self.find(ends_name)?;
        Some(Tag { name: &self.text[start..end], is_end })
    }

    /// Moves behind the comment that begins with the `<` before the current position. The dashes of its end `-->` may
    /// be the dashes of its beginning; the dashes of the end `--!>` may not.
    fn comment(&mut self) -> Option<()> {
        let dashes = self.at + 1;
        let end = memchr_iter(b'>', &self.text[dashes + 2..])
            .map(|len| dashes + 2 + len)
            .find(|&end| self.text[dashes..end].ends_with(b"--") || self.text[dashes + 2..end].ends_with(b"--!"))?;
        self.at = end + 1;
        Some(())
    }

    /// Whether a word is at an offset and ends there like the name of a tag.
    fn is_word(&self, word: &[u8], at: usize) -> bool {
        self.text.get(at + word.len()).is_some_and(|&byte| ends_name(byte))
            && self.text[at..at + word.len()].eq_ignore_ascii_case(word)
    }

    fn end_of_raw_text(&mut self, name: &[u8]) -> Option<Tag<'a>> {
        loop {
            self.at += memchr(b'<', self.rest())? + 1;
            if self.rest().starts_with(b"/") && self.is_word(name, self.at + 1) {
                self.at += 1;
                return self.name(true);
            }
        }
    }

    /// Between `<!--` and `-->`, a `<script>` hides the next `</script>`.
    fn end_of_script(&mut self) -> Option<Tag<'a>> {
        let (mut escaped, mut hidden) = (false, false);
        loop {
            self.at += memchr2(b'<', b'>', self.rest())? + 1;
            if self.text[self.at - 1] == b'>' {
                if self.text[..self.at - 1].ends_with(b"--") {
                    (escaped, hidden) = (false, false);
                }
            } else if self.rest().starts_with(b"/") && self.is_word(b"script", self.at + 1) {
                if !hidden {
                    self.at += 1;
                    return self.name(true);
                }
                hidden = false;
            } else if escaped && self.is_word(b"script", self.at) {
                hidden = true;
            } else if self.rest().starts_with(b"!--") {
                escaped = true;
            }
        }
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\t' | b'\r' | b'\x0c')
}

fn ends_name(byte: u8) -> bool {
    is_space(byte) || matches!(byte, b'>' | b'/')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::elements::content;
    use crate::page::html::decoded;
    use html5gum::{DefaultEmitter, Token, Tokenizer};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// A tag, and whether it closes itself: a start tag with its attributes, the first of each name, or an end tag.
    type Found = (Vec<u8>, Option<BTreeMap<Vec<u8>, Vec<u8>>>, bool);

    fn found(text: &[u8]) -> Vec<Found> {
        let (mut tags, mut all) = (Tags::new(text), Vec::new());
        while let Some(tag) = tags.tag(false) {
            let mut attributes = BTreeMap::new();
            let self_closing = loop {
                match tags.part() {
                    TagPart::Attribute(name, value) => {
                        let name = String::from_utf8_lossy(name).to_ascii_lowercase().replace('\0', "\u{fffd}");
                        attributes.entry(name.into_bytes()).or_insert_with(|| decoded(value).into_owned());
                    }
                    TagPart::Close { self_closing } => break self_closing,
                    TagPart::Cut => return all,
                }
            };
            let name = tag.name.to_ascii_lowercase();
            if !tag.is_end {
                tags.enter(content(&name));
            }
            let attributes = Some(attributes).filter(|_| !tag.is_end);
            all.push((known(name), attributes, self_closing && !tag.is_end));
        }
        all
    }

    /// A name; empty if it has a NUL, which a tokenizer replaces.
    fn known(name: Vec<u8>) -> Vec<u8> {
        if String::from_utf8_lossy(&name).contains(['\0', '\u{fffd}']) { Vec::new() } else { name }
    }

    /// The tags that a tokenizer finds that implements every state of the standard.
    fn expected(text: &[u8]) -> Vec<Found> {
        let mut emitter = DefaultEmitter::default();
        emitter.naively_switch_states(true);
        let tag = |token| match token {
            Token::StartTag(tag) => {
                let attributes = tag.attributes.into_iter().map(|(name, value)| (name.0, value.value.0)).collect();
                Some((known(tag.name.0), Some(attributes), tag.self_closing))
            }
            Token::EndTag(tag) => Some((known(tag.name.0), None, false)),
            _ => None,
        };
        Tokenizer::new_with_emitter(text, emitter).filter_map(|token| tag(token.unwrap())).collect()
    }

    /// Pieces of text that change the state of the tokenizer.
    const PIECES: [&str; 72] = [
        "<",
        "<",
        "</",
        ">",
        ">",
        "/>",
        "=",
        "\"",
        "'",
        " ",
        "\n",
        "\r",
        "\r\n",
        "\0",
        "\t",
        "\x0c",
        "/",
        "\\",
        "x",
        "é",
        "-",
        "--",
        "-->",
        "!",
        "!--",
        "<!--",
        "<!--",
        "<!-->",
        "--!>",
        "<!",
        "<?",
        "<![CDATA[",
        "]]>",
        "a",
        "<a ",
        "<A HREF=\"",
        "href",
        " href=",
        " href=x",
        " HREF='y'>",
        "<iframe",
        "</iframe>",
        "<script",
        "<script>",
        "</script>",
        "</script",
        "<SCRIPT>",
        "</SCRIPT/",
        "script",
        "<style>",
        "</style ",
        "<title>",
        "</title",
        "<textarea>",
        "</TEXTAREA>",
        "<xmp>",
        "</xmp>",
        "<noembed>",
        "<plaintext>",
        "<svg/>",
        "<!doctype html>",
        "<!DOCTYPE x PUBLIC '",
        "&",
        "&amp;",
        "&amp;",
        "&copy",
        "&copy=",
        "&#65;",
        "&#x41",
        "&notin;",
        "<a-name-that-is-long",
        "<\u{130}",
    ];

    proptest! {
        #![proptest_config(ProptestConfig { cases: 4096, ..ProptestConfig::default() })]
        #[test]
        fn tags_are_those_of_the_tokenizer(pieces in prop::collection::vec(0..PIECES.len(), 0..24)) {
            let text: String = pieces.into_iter().map(|piece| PIECES[piece]).collect();
            prop_assert_eq!(found(text.as_bytes()), expected(text.as_bytes()), "{:?}", text);
        }
    }

    #[test]
    fn comments_scripts_and_sections_end_where_they_should() {
        let names = |text: &str| -> Vec<Vec<u8>> { found(text.as_bytes()).into_iter().map(|tag| tag.0).collect() };
        for comment in ["<!-->", "<!--->", "<!---->", "<!-- <a> --!>", "<!-- -- > <a> -->", "<!--!><a>-->", "<!><!a<a>"]
        {
            assert_eq!(names(&format!("{comment}<p><a>")), [b"p", b"a"], "{comment}");
        }
        assert_eq!(names("<script><!--<script></script><a></script><p>"), [&b"script"[..], b"script", b"p"]);
        assert_eq!(names("<script><!--</script><p>"), [&b"script"[..], b"script", b"p"]);
        let mut tags = Tags::new(b"<![CDATA[<a>]]><p>");
        assert_eq!(tags.tag(true).unwrap().name, b"p");
    }
}
