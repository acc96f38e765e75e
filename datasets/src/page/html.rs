//! Finds the links of an HTML document in the tags that the WHATWG tokenizer finds, without building a tree.
//!
//! Reads a document. Writes [`Capture::links`] in document order, with repetitions, and [`Capture::base`]: the `href`
//! of the first `<base>` that has one. Values have their entities decoded once and white space trimmed. The reader
//! neither resolves links nor drops links by scheme. If a tag has two attributes with one name, the first counts.
//!
//! The text of `script`, `style`, `textarea`, `title`, `xmp`, `iframe`, `noembed`, `noframes`, and all text after
//! `plaintext`, is not markup. The text of `noscript` is markup, because the reader of an archive runs no scripts. The
//! content of `template` is not part of the document, unless the template is a declarative shadow root
//! (`shadowrootmode`). In XHTML, and in embedded SVG or MathML, `<script/>` and similar tags end where they begin, and
//! embedded scripts and styles are markup ([`crate::page::elements`]).
//!
//! Memory: one tag.

use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
use html5gum::{Span, Tokenizer};
use memchr::memchr3;
use std::borrow::Cow;
use std::convert::Infallible;

use crate::page::charset::Document;
use crate::page::elements::{Elements, Name};
use crate::page::tags::{TagPart, Tags};
use crate::{Capture, LinkKinds};

/// Adds the links of `document` to `capture`.
pub(crate) fn links(document: &Document<'_>, xhtml: bool, kinds: LinkKinds, capture: &mut Capture) {
    let mut tags = Tags::new(&document.markup);
    // The wanted attributes of the current tag, the first of each name.
    let mut attributes: Vec<(Attribute, &[u8])> = Vec::new();
    let mut base_seen = false;
    let mut refreshes = false;
    let mut elements = Elements::new(xhtml);
    // How many `template` elements are open; the outermost of them is not a shadow root.
    let mut templates = 0u32;
    // The elements that were open before the outermost of them.
    let mut depth = 0;
    while let Some(tag) = tags.tag(elements.is_foreign()) {
        let name = Name::new(tag.name);
        let name = name.bytes();
        let wanted = match Wanted::of(name, kinds, base_seen) {
            _ if tag.is_end => Wanted::Nothing,
            Wanted::Anchor(_) if elements.is_svg() && name == b"a" => Wanted::SvgAnchor,
            // In SVG and MathML, these are elements without a meaning.
            Wanted::Anchor(_) if elements.is_foreign() && name != b"a" => Wanted::Nothing,
            Wanted::Base if elements.is_foreign() => Wanted::Nothing,
            wanted => wanted,
        };
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
        if tag.is_end {
            elements.take(name, true, self_closing);
            if name == b"template" && templates > 0 {
                templates -= 1;
                if templates == 0 {
                    // A template is counted only outside of `svg` and `math`, and its end closes all of these inside
                    // it.
                    elements.truncate(depth);
                }
            }
            continue;
        }
        if wanted == Wanted::Template {
            let opens = templates > 0 || !elements.is_foreign() && !is_shadow_root(&attributes);
            depth = if templates == 0 { elements.depth() } else { depth };
            templates += u32::from(opens && !(self_closing && xhtml));
        } else if !attributes.is_empty() && templates == 0 {
            base_seen |= wanted == Wanted::Base;
            if attributes.iter().any(|(attribute, _)| *attribute == Attribute::Href) {
                attributes.retain(|(attribute, _)| *attribute != Attribute::XlinkHref);
            }
            refreshes |= add(document, &attributes, wanted, refreshes, capture);
        }
        tags.enter(elements.take(name, false, self_closing));
    }
}

/// Whether a template with these attributes is shown as part of the document (HTML, declarative shadow roots).
fn is_shadow_root(attributes: &[(Attribute, &[u8])]) -> bool {
    let mode = attributes.iter().find(|(attribute, _)| *attribute == Attribute::ShadowRootMode);
    mode.is_some_and(|(_, mode)| [&b"open"[..], b"closed"].iter().any(|known| mode.eq_ignore_ascii_case(known)))
}

/// Adds the links of the wanted attributes of a tag to a capture. Returns whether the tag refreshes the page, which
/// only the first of all refreshes does: `is_refreshed`.
fn add(
    document: &Document<'_>,
    attributes: &[(Attribute, &[u8])],
    wanted: Wanted,
    is_refreshed: bool,
    capture: &mut Capture,
) -> bool {
    let (mut refreshes, mut content) = (false, None);
    for &(attribute, value) in attributes {
        let value = document.utf8(value);
        let value = decoded(&value);
        let whole = String::from_utf8_lossy(&value);
        let value = trim(&whole);
        let url = |url| document.with_query(url);
        match (wanted, attribute) {
            (Wanted::Base, Attribute::Href) => capture.base.push_str(&url(value)),
            (Wanted::Meta, Attribute::HttpEquiv) => refreshes = whole.eq_ignore_ascii_case("refresh"),
            (Wanted::Meta, Attribute::Content) => content = Some(whole.into_owned()),
            (_, Attribute::Srcset) => srcset(value).for_each(|value| capture.links.push(&url(value))),
            _ => capture.links.push(&url(value)),
        }
    }
    let url = content.as_deref().filter(|_| refreshes && !is_refreshed).and_then(refresh);
    if let Some(url) = url.filter(|url| !url.is_empty()) {
        capture.links.push(&document.with_query(url));
    }
    url.is_some()
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

/// The URL of a refresh: `5; url='next.html'` (HTML, shared declarative refresh steps). It is empty if the page loads
/// itself again. `None` if the text is no refresh: then a later one may be.
pub(crate) fn refresh(content: &str) -> Option<&str> {
    let is_space = |letter: char| letter.is_ascii_whitespace();
    let is_digit = |letter: char| letter.is_ascii_digit();
    let text = content.trim_start_matches(is_space);
    let rest = text.trim_start_matches(is_digit);
    if rest.len() == text.len() && !text.starts_with('.') {
        return None;
    }
    let rest = rest.trim_start_matches(|letter| is_digit(letter) || letter == '.');
    if !rest.is_empty() && !rest.starts_with(|letter| is_space(letter) || matches!(letter, ';' | ',')) {
        return None;
    }
    let rest = rest.trim_start_matches(is_space);
    let rest = rest.strip_prefix([';', ',']).unwrap_or(rest).trim_start_matches(is_space);
    let word = rest.get(..3).filter(|word| word.eq_ignore_ascii_case("url"));
    let url = word.and_then(|_| rest[3..].trim_start_matches(is_space).strip_prefix('='));
    let url = url.map_or(rest, |url| url.trim_start_matches(is_space));
    let url = match url.chars().next() {
        Some(quote @ ('"' | '\'')) => url[1..].split(quote).next().unwrap_or_default(),
        _ => url,
    };
    let url = trim(url);
    const SCRIPT: &str = "javascript:";
    Some(url).filter(|url| !url.get(..SCRIPT.len()).is_some_and(|start| start.eq_ignore_ascii_case(SCRIPT)))
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

/// The meaning of an attribute with a URL.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Attribute {
    Href,
    /// The link of an anchor in SVG 1.1. In SVG 2, it counts if there is no `href`.
    XlinkHref,
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
            (b"href", Wanted::Anchor(Attribute::Href) | Wanted::Base | Wanted::SvgAnchor) => Some(Attribute::Href),
            (b"xlink:href", Wanted::SvgAnchor) => Some(Attribute::XlinkHref),
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
    /// The link of an anchor in SVG.
    SvgAnchor,
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
            ("0; ", Some("")),
            ("0;URL =x", Some("x")),
            ("0; urls", Some("urls")),
            ("5; url", Some("url")),
            (" \t.5 url = \"a'b\"c", Some("a'b")),
            ("1.5.6;;x", Some(";x")),
            ("0;url=' x ", Some("x")),
            ("0 x", Some("x")),
            ("0;", Some("")),
            ("0;url=", Some("")),
            ("5", Some("")),
            (".", Some("")),
            ("0;URL=JavaScript:x", None),
            ("-1;url=x", None),
            ("+1;url=x", None),
            ("5x;url=x", None),
            ("5s;url=x", None),
            ("url=x", None),
            ("http://a/", None),
            (";url=x", None),
            ("\u{a0}1;url=x", None),
            ("\u{b2};url=x", None),
            ("", None),
        ] {
            assert_eq!(refresh(content), url, "{content}");
        }
    }

    #[test]
    fn only_the_first_refresh_is_followed() {
        let refreshes = |page: &str| found(page, ALL, false).0.join(" ");
        let meta = |name: &str, content: &str| format!("<meta content='{content}' http-equiv='{name}'>");
        assert_eq!(refreshes(&[meta("refresh", "0;a"), meta("REFRESH", "0;b")].concat()), "a");
        assert_eq!(refreshes(&[meta("refresh", "9"), meta("refresh", "0;b")].concat()), "");
        assert_eq!(refreshes(&[meta("refresh", "-1;a"), meta("refresh", "0;b")].concat()), "b");
        assert_eq!(refreshes(&[meta(" refresh", "0;a"), meta("x", "0;b")].concat()), "");
        assert_eq!(refreshes("<template><meta http-equiv=refresh content='0;a'></template>"), "");
    }

    /// Anchors of SVG, and the elements that only HTML has (HTML, 13.2.6.5; SVG 2, 16.2).
    #[test]
    fn anchors_in_svg() {
        for (page, links) in [
            ("<svg><a xlink:href='/1'><text>x</text></a></svg><a href=2>", "/1 2"),
            ("<SVG><g><A XLINK:HREF=1></A></g></SVG><a xlink:href=no>", "1"),
            ("<svg><a href=1 xlink:href=no><a xlink:href=no href=2></svg>", "1 2"),
            ("<svg><a href=1 /><a xlink:href=2/></svg>", "1 2/"),
            ("<svg><area xlink:href=no><area href=no><iframe src=no></iframe><frame src=no></svg><area href=1>", "1"),
            ("<math><a xlink:href=no></math>", ""),
            ("<a xlink:href=no>", ""),
            ("<svg/><a xlink:href=no>", ""),
            // HTML inside SVG.
            ("<svg><foreignObject><a href=1><a xlink:href=no></foreignObject><a xlink:href=2></svg>", "1 2"),
            ("<svg><desc><a xlink:href=no></desc><title><a href=1></title><a xlink:href=2></svg>", "1 2"),
            ("<svg><foreignObject><svg><a xlink:href=1></svg><a xlink:href=no></foreignObject></svg>", "1"),
            ("<svg><foreignObject/><a xlink:href=1></svg>", "1"),
            ("<svg><foreignObject><title><a href=no></title></foreignObject></svg><a href=1>", "1"),
            ("<math><mi><svg><a xlink:href=1></svg></mi></math>", "1"),
            // Tags that end SVG.
            ("<svg><p><a xlink:href=no><a href=1>", "1"),
            ("<svg></p><a xlink:href=no><a href=1>", "1"),
            ("<svg><g><div><area href=1><iframe src=2>", "1 2"),
            ("<svg><foreignObject><p><a href=1></p></foreignObject><a xlink:href=2></svg>", "1 2"),
            // Scripts and styles of SVG are markup.
            ("<svg><style>a{}<a href=1></style><script><a xlink:href=2></script></svg><a href=3>", "1 2 3"),
            ("<svg><title/><a href=1></svg><style><a href=no></style>", "1"),
            ("<svg><![CDATA[<a href=no>]]><foreignObject><p><![CDATA[ ><a href=1>]]>", "1"),
            ("<svg><base href=no><a href=1></svg>", "1"),
            ("<template><svg><a xlink:href=no></template><a xlink:href=no><a href=1>", "1"),
        ] {
            assert_eq!(anchors(page).join(" "), links, "{page}");
            assert_eq!(found(page, LinkKinds::default(), false).1, "", "{page}");
        }
        let deep = format!(
            "{}<a xlink:href=1>{}<a href=2>",
            "<svg><desc>".repeat(5000) + "<svg>",
            "</svg></desc>".repeat(5000)
        );
        assert_eq!(anchors(&deep).last().map(String::as_str), Some("2"));
        let page =
            "<svg xmlns='http://www.w3.org/2000/svg'><a xlink:href='1'/><style/><a href='2'/></svg><a href='3'/>";
        assert_eq!(found(page, LinkKinds::default(), true).0, ["1", "2", "3"]);
    }

    #[test]
    fn character_references_are_decoded_once() {
        assert_eq!(&decoded(b"/v?a=1&amp;b=&amp;lt;\"")[..], b"/v?a=1&b=&lt;\"");
    }
}
