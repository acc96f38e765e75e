//! Finds the links of an HTML document in the tags that the WHATWG tokenizer finds, without building a tree.
//!
//! Reads a document. Writes [`Capture::links`] in document order, with repetitions, and [`Capture::base`]: the `href`
//! of the first `<base>` that has one. Values have their entities decoded once and white space trimmed. The reader
//! neither resolves links nor drops links by scheme. If a tag has two attributes with one name, the first counts.
//!
//! The text of `script`, `style`, `textarea`, `title`, `xmp`, `iframe`, `noembed`, `noframes`, and all text after
//! `plaintext`, is not markup. The text of `noscript` is markup, because the reader of an archive runs no scripts. The
//! content of `template` is not part of the document, unless the template is a declarative shadow root
//! (`shadowrootmode`). In XHTML, and in embedded SVG or MathML, `<script/>` and similar tags end where they begin.
//!
//! Memory: one tag.

use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
use html5gum::{Span, Tokenizer};
use memchr::memchr3;
use std::borrow::Cow;
use std::convert::Infallible;

use crate::page::charset::Document;
use crate::page::tags::{Content, TagPart, Tags};
use crate::{Capture, LinkKinds};

/// Adds the links of `document` to `capture`.
pub(crate) fn links(document: &Document<'_>, xhtml: bool, kinds: LinkKinds, capture: &mut Capture) {
    let mut tags = Tags::new(&document.markup);
    // The wanted attributes of the current tag, the first of each name.
    let mut attributes: Vec<(Attribute, &[u8])> = Vec::new();
    let mut base_seen = false;
    // How many `svg` and `math` elements are open.
    let mut foreign = 0u32;
    // How many `template` elements are open; the outermost of them is not a shadow root.
    let mut templates = 0u32;
    while let Some(tag) = tags.tag(foreign > 0) {
        let name = Name::new(tag.name);
        let name = name.bytes();
        let wanted = if tag.is_end { Wanted::Nothing } else { Wanted::of(name, kinds, base_seen) };
        attributes.clear();
        let self_closing = loop {
            match tags.part() {
                TagPart::Attribute(..) if wanted == Wanted::Nothing && !kinds.embeds => {}
                TagPart::Attribute(attribute, value) => {
                    let attribute = Attribute::of(name, attribute, wanted, kinds);
                    if let Some(attribute) = attribute
                        && !attributes.iter().any(|(seen, _)| *seen == attribute)
                    {
                        attributes.push((attribute, value));
                    }
                }
                TagPart::Close { self_closing } => break self_closing,
                TagPart::Cut => return,
            }
        };
        let foreign_root = matches!(name, b"svg" | b"math");
        if tag.is_end {
            foreign = foreign.saturating_sub(u32::from(foreign_root));
            if name == b"template" && templates > 0 {
                templates -= 1;
                // A template is counted only outside of `svg` and `math`, and its end closes all of these inside it.
                foreign = if templates == 0 { 0 } else { foreign };
            }
            continue;
        }
        if wanted == Wanted::Template {
            let opens = templates > 0 || foreign == 0 && !is_shadow_root(&attributes);
            templates += u32::from(opens && !(self_closing && xhtml));
        } else if !attributes.is_empty() && templates == 0 {
            base_seen |= wanted == Wanted::Base;
            add(document, &attributes, wanted, capture);
        }
        if self_closing && (xhtml || foreign > 0) {
            continue;
        }
        foreign += u32::from(foreign_root && !self_closing);
        tags.enter(content(name));
    }
}

/// How to read the text after a start tag.
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

/// Whether a template with these attributes is shown as part of the document (HTML, declarative shadow roots).
fn is_shadow_root(attributes: &[(Attribute, &[u8])]) -> bool {
    let mode = attributes.iter().find(|(attribute, _)| *attribute == Attribute::ShadowRootMode);
    mode.is_some_and(|(_, mode)| [&b"open"[..], b"closed"].iter().any(|known| mode.eq_ignore_ascii_case(known)))
}

/// Adds the links of the wanted attributes of a tag to a capture.
fn add(document: &Document<'_>, attributes: &[(Attribute, &[u8])], wanted: Wanted, capture: &mut Capture) {
    let (mut refreshes, mut content) = (false, None);
    for &(attribute, value) in attributes {
        let value = document.utf8(value);
        let value = decoded(&value);
        let value = String::from_utf8_lossy(&value);
        let value = trim(&value);
        let url = |url| document.with_query(url);
        match (wanted, attribute) {
            (Wanted::Base, Attribute::Href) => capture.base.push_str(&url(value)),
            (Wanted::Meta, Attribute::HttpEquiv) => refreshes = value.eq_ignore_ascii_case("refresh"),
            (Wanted::Meta, Attribute::Content) => content = Some(value.to_owned()),
            (_, Attribute::Srcset) => srcset(value).for_each(|value| capture.links.push(&url(value))),
            _ => capture.links.push(&url(value)),
        }
    }
    if let Some(url) = content.as_deref().filter(|_| refreshes).and_then(refresh) {
        capture.links.push(&document.with_query(url));
    }
}

/// The value of an attribute, with character references decoded and line ends turned into line feeds.
pub(crate) fn decoded(raw: &[u8]) -> Cow<'_, [u8]> {
    let (mut ampersands, mut rest) = (Vec::new(), raw);
    // Most values have no character references, or only `&amp;`.
    while let Some(offset) = memchr3(b'&', b'\r', b'\0', rest) {
        let Some(after) = rest[offset..].strip_prefix(b"&amp;") else { return Cow::Owned(tokenized(raw)) };
        ampersands.extend_from_slice(&rest[..=offset]);
        rest = after;
    }
    if rest.len() == raw.len() {
        return Cow::Borrowed(raw);
    }
    ampersands.extend_from_slice(rest);
    Cow::Owned(ampersands)
}

/// As [`decoded`], with a tokenizer that knows the names of all characters.
fn tokenized(raw: &[u8]) -> Vec<u8> {
    let mut document = b"<a b=\"".to_vec();
    for &byte in raw {
        match byte {
            b'"' => document.extend_from_slice(b"&quot;"),
            _ => document.push(byte),
        }
    }
    document.extend_from_slice(b"\">");
    let mut value = Vec::new();
    let emitter = CallbackEmitter::new(|event: CallbackEvent<'_>, _: Span<()>| -> Option<Infallible> {
        if let CallbackEvent::AttributeValue { value: text } = event {
            value.extend_from_slice(text);
        }
        None
    });
    let Ok(()) = Tokenizer::new_with_emitter(&document, emitter).finish();
    value
}

/// The URL of a refresh: `5; url='next.html'` (WHATWG, shared declarative refresh steps).
pub(crate) fn refresh(content: &str) -> Option<&str> {
    let rest = content.trim_start().trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let had_time = rest.len() < content.trim_start().len();
    let rest = rest.trim_start();
    let rest = match rest.strip_prefix([';', ',']) {
        Some(rest) => rest.trim_start(),
        None if had_time && rest.is_empty() => return None,
        None => rest,
    };
    let url = match rest.get(..3) {
        Some(word) if word.eq_ignore_ascii_case("url") => match rest[3..].trim_start().strip_prefix('=') {
            Some(url) => url.trim_start(),
            None => rest,
        },
        _ => rest,
    };
    let url = match url.chars().next() {
        Some(quote @ ('"' | '\'')) => url[1..].split(quote).next().unwrap_or_default(),
        _ => url,
    };
    Some(url.trim()).filter(|url| !url.is_empty())
}

/// The URLs of a `srcset`.
pub(crate) fn srcset(value: &str) -> impl Iterator<Item = &str> {
    let mut rest = value;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == ',');
        if rest.is_empty() {
            return None;
        }
        let end = rest.find(|c: char| c.is_ascii_whitespace()).unwrap_or(rest.len());
        let (url, after) = rest.split_at(end);
        let bare = url.trim_end_matches(',');
        rest = if bare.len() < url.len() { after } else { after.find(',').map_or("", |comma| &after[comma..]) };
        Some(bare)
    })
}

/// A name in lower case; empty if it is longer than any name of interest.
#[derive(Clone, Copy)]
struct Name {
    /// The bytes of the name, at the end.
    bytes: [u8; NAME_BYTES_MAX],
    len: usize,
}

const NAME_BYTES_MAX: usize = 16;

impl Name {
    /// The name goes through a register, because bytes that were written one by one cannot be read as words at once.
    #[inline]
    fn new(raw: &[u8]) -> Name {
        let len = if raw.len() <= NAME_BYTES_MAX { raw.len() } else { 0 };
        let lower = raw[..len].iter().fold(0u128, |name, byte| name << 8 | u128::from(byte.to_ascii_lowercase()));
        Name { bytes: lower.to_be_bytes(), len }
    }

    #[inline]
    fn bytes(&self) -> &[u8] {
        &self.bytes[NAME_BYTES_MAX - self.len..]
    }
}

/// The meaning of an attribute with a URL.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Attribute {
    Href,
    Src,
    Srcset,
    HttpEquiv,
    Content,
    ShadowRootMode,
    /// Any other attribute that holds one URL, by its index in [`OTHER`].
    Other(u8),
}

impl Attribute {
    /// The meaning of an attribute of a wanted tag; `None` if the attribute is not wanted.
    fn of(tag: &[u8], name: &[u8], wanted: Wanted, kinds: LinkKinds) -> Option<Attribute> {
        let name = Name::new(name);
        match (name.bytes(), wanted) {
            (b"href", Wanted::Anchor(Attribute::Href) | Wanted::Base) => Some(Attribute::Href),
            (b"src", Wanted::Anchor(Attribute::Src)) => Some(Attribute::Src),
            (b"http-equiv", Wanted::Meta) => Some(Attribute::HttpEquiv),
            (b"content", Wanted::Meta) => Some(Attribute::Content),
            (b"shadowrootmode", Wanted::Template) => Some(Attribute::ShadowRootMode),
            (_, Wanted::Base | Wanted::Meta | Wanted::Template) => None,
            (b"href" | b"xlink:href", Wanted::Embeds) => Some(Attribute::Href),
            (b"src", Wanted::Embeds) => Some(Attribute::Src),
            (b"srcset" | b"imagesrcset", _) if kinds.embeds => Some(Attribute::Srcset),
            (name, _) if kinds.embeds => other(tag, name),
            _ => None,
        }
    }
}

/// The attributes to look for in a tag, by the name of the tag.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// `href`, or `src`: the link of an anchor or a frame.
    Anchor(Attribute),
    Base,
    Meta,
    Template,
    /// Only embedded resources.
    Embeds,
    Nothing,
}

impl Wanted {
    fn of(name: &[u8], kinds: LinkKinds, base_seen: bool) -> Wanted {
        match name {
            b"a" | b"area" if kinds.anchors => Wanted::Anchor(Attribute::Href),
            b"frame" | b"iframe" if kinds.anchors => Wanted::Anchor(Attribute::Src),
            b"base" if !base_seen => Wanted::Base,
            b"meta" if kinds.redirects => Wanted::Meta,
            b"template" => Wanted::Template,
            b"a" | b"area" | b"frame" | b"iframe" | b"base" | b"meta" => Wanted::Nothing,
            _ if kinds.embeds => Wanted::Embeds,
            _ => Wanted::Nothing,
        }
    }
}

const OTHER: [&[u8]; 15] = [
    b"action",
    b"data",
    b"codebase",
    b"cite",
    b"poster",
    b"background",
    b"longdesc",
    b"formaction",
    b"lowsrc",
    b"icon",
    b"data-href",
    b"data-uri",
    b"manifest",
    b"profile",
    b"code",
];

/// An attribute with one URL beside `href` and `src`; `None` if the tag does not have this attribute.
fn other(tag: &[u8], name: &[u8]) -> Option<Attribute> {
    let index = OTHER.iter().position(|known| *known == name)?;
    let fits = match name {
        b"action" => tag == b"form",
        b"data" => tag == b"object",
        b"codebase" => matches!(tag, b"object" | b"applet"),
        b"code" => tag == b"applet",
        b"cite" => matches!(tag, b"q" | b"blockquote" | b"del" | b"ins"),
        b"poster" => tag == b"video",
        b"longdesc" => matches!(tag, b"img" | b"frame" | b"iframe"),
        b"lowsrc" => tag == b"img",
        b"formaction" => matches!(tag, b"button" | b"input"),
        b"icon" => tag == b"menuitem",
        b"manifest" => tag == b"html",
        b"profile" => tag == b"head",
        _ => true, // background, data-href, data-uri: wherever they stand
    };
    u8::try_from(index).ok().filter(|_| fits).map(Attribute::Other)
}

/// A text without the C0 controls and spaces at both ends (WHATWG URL, basic parser, step 1).
pub(crate) fn trim(value: &str) -> &str {
    value.trim_matches(|c: char| c <= ' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: LinkKinds = LinkKinds { anchors: true, redirects: true, embeds: true, outlinks: false, via: false };

    fn found(document: &str, kinds: LinkKinds, xhtml: bool) -> (Vec<String>, String) {
        let mut capture = Capture::default();
        links(&Document::new(document.as_bytes(), None, ""), xhtml, kinds, &mut capture);
        (capture.links.iter().map(str::to_owned).collect(), capture.base)
    }

    fn anchors(document: &str) -> Vec<String> {
        found(document, LinkKinds::default(), false).0
    }

    #[test]
    fn anchors_areas_and_frames() {
        let page = "<A HREF=one>x</A><area href='two'><frame src=three><iframe src=\"four\"><a href=no></iframe>\
                    <img src=no><a name=no><a href=#f><a href=''><a href>";
        assert_eq!(anchors(page), ["one", "two", "three", "four", "#f", "", ""]);
    }

    #[test]
    fn values_are_decoded_and_trimmed_and_the_first_counts() {
        assert_eq!(anchors("<a href=' /a?b=1&amp;c=2&copy=3&#x41; \n' href=no>"), ["/a?b=1&c=2&copy=3A"]);
        assert_eq!(anchors("<a title='href=no' href = \"a\tb\">"), ["a\tb"]);
    }

    #[test]
    fn text_that_is_no_markup() {
        let page = "<script>'<a href=no>'</script><style><a href=no></style><textarea><a href=no></textarea>\
                    <title><a href=no></title><!-- <a href=no> --><noscript><a href=yes></noscript>\
                    <xmp><a href=no></xmp><noframes><a href=no></noframes><a href=last><plaintext><a href=no>";
        assert_eq!(anchors(page), ["yes", "last"]);
    }

    #[test]
    fn elements_that_close_themselves() {
        let page = "<script src=x /><a href=y>";
        assert_eq!(found(page, LinkKinds::default(), true).0, ["y"]);
        assert_eq!(anchors(page), Vec::<String>::new());
        assert_eq!(anchors("<svg><script/><![CDATA[<a href=no>]]></svg><a href=y>"), ["y"]);
    }

    #[test]
    fn templates_are_no_part_of_the_document() {
        for (page, links) in [
            ("<a href=1><template><a href=no><base href=/no/></template><a href=2>", "1 2"),
            ("<template><template><a href=no></template><a href=no></template><a href=1>", "1"),
            ("<template/><a href=no></template><a href=1>", "1"),
            ("<template><script>'</template>'</script><a href=no></template><a href=1>", "1"),
            ("<template><svg></template><a href=1><![CDATA[ > ]]><a href=2>", "1 2"),
            ("</template><a href=1><template><a href=no>", "1"),
            ("<svg><template><a href=1></template></svg><a href=2>", "1 2"),
            ("<template shadowrootmode=Open><a href=1></template><a href=2>", "1 2"),
            ("<template shadowrootmode=x><a href=no></template><a href=2>", "2"),
            ("<template shadowrootmode=closed><template><a href=no></template><a href=1></template><a href=2>", "1 2"),
            ("<template><template shadowrootmode=open><a href=no></template><a href=no></template><a href=1>", "1"),
        ] {
            assert_eq!(anchors(page).join(" "), links, "{page}");
            assert_eq!(found(page, ALL, false).1, "", "{page}");
        }
        assert_eq!(found("<template/><a href=1>", LinkKinds::default(), true).0, ["1"]);
    }

    #[test]
    fn only_the_first_base() {
        assert_eq!(found("<base target=x><base href=' /b/ '><base href=/c/>", ALL, false).1, "/b/");
    }

    #[test]
    fn redirects_and_embeds_when_asked() {
        let page = "<meta http-equiv=Refresh content='5; URL=r'><link href=l><img src=i srcset='j 1x, k 2x'>\
                    <form action=f><video poster=p><source src=s></video><body background=b><object data=o>\
                    <input src=n formaction=m><div data-href=d action=no><q cite=c>";
        let all = ["r", "l", "i", "j", "k", "f", "p", "s", "b", "o", "n", "m", "d", "c"];
        assert_eq!(found(page, ALL, false).0, all);
        assert_eq!(anchors(page), Vec::<String>::new());
    }

    #[test]
    fn refreshes() {
        for (content, url) in [
            ("5; URL=http://a/", Some("http://a/")),
            ("0;url='b c' d", Some("b c")),
            ("0, c", Some("c")),
            ("5", None),
            ("0; ", None),
            ("0;URL =x", Some("x")),
            ("0; urls", Some("urls")),
        ] {
            assert_eq!(refresh(content), url, "{content}");
        }
    }

    #[test]
    fn character_references_are_decoded_once() {
        assert_eq!(&decoded(b"/v?a=1&amp;b=&amp;lt;\"")[..], b"/v?a=1&b=&lt;\"");
    }
}
