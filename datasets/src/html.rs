//! Links of an HTML document, at the level of the WHATWG tokenizer (html5gum): no tree is built.
//!
//! Reads: a document in UTF-8. Writes: [`Capture::links`] in the order of the document, with repetitions, and
//! [`Capture::base`], the `href` of the first `<base>` that has one. Values have their entities decoded once and white
//! space trimmed; they are not resolved, and none is left out by scheme. The first of two attributes of one name counts.
//!
//! Text of `script`, `style`, `textarea`, `title`, `xmp`, `iframe`, `noembed`, `noframes` and after `plaintext` is no
//! markup; that of `noscript` is, because an archive's reader runs no scripts. In XHTML and in embedded SVG or MathML
//! `<script/>` and its like end where they begin.
//!
//! Memory: one tag.

use html5gum::{Emitter, Error, State, Tokenizer};
use std::convert::Infallible;

use crate::{Capture, LinkKinds};

/// Buffers that live from document to document.
#[derive(Default)]
pub(crate) struct HtmlScratch {
    tag: Vec<u8>,
    last_start_tag: Vec<u8>,
    name: Vec<u8>,
    /// The wanted attributes of the current tag, each a name and the end of its value in `values`.
    attributes: Vec<(Attribute, usize)>,
    values: Vec<u8>,
}

/// Adds the links of `document` to `capture`.
pub(crate) fn links(document: &[u8], xhtml: bool, kinds: LinkKinds, scratch: &mut HtmlScratch, capture: &mut Capture) {
    scratch.last_start_tag.clear();
    let emitter = Links {
        scratch,
        capture,
        kinds,
        xhtml,
        end_tag: false,
        self_closing: false,
        wanted: None,
        value_wanted: false,
        base_seen: false,
        foreign: 0,
    };
    let Ok(()) = Tokenizer::new_with_emitter(document, emitter).finish();
}

/// The entities of an attribute's value decoded, as the tokenizer does it.
pub(crate) fn unescape(value: &str, scratch: &mut HtmlScratch) -> String {
    let document = format!("<a href=\"{}\">", value.replace('"', "&quot;"));
    let mut capture = Capture::default();
    links(document.as_bytes(), false, LinkKinds::default(), scratch, &mut capture);

    capture.links.iter().next().unwrap_or_default().to_owned()
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

/// What an attribute with a URL is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Attribute {
    Href,
    Src,
    Srcset,
    HttpEquiv,
    Content,
    /// Any other attribute that holds one URL, told apart by its place in the list of its tag.
    Other(u8),
}

/// What to look for in a tag, by its name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// `href`, or `src`: the link of an anchor or a frame.
    Anchor(Attribute),
    Base,
    Meta,
    /// Only embedded things.
    Embeds,
    Nothing,
}

const OTHER: [&[u8]; 16] = [
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
    b"usemap",
    b"profile",
    b"code",
];

struct Links<'a> {
    scratch: &'a mut HtmlScratch,
    capture: &'a mut Capture,
    kinds: LinkKinds,
    xhtml: bool,
    end_tag: bool,
    self_closing: bool,
    /// Of the current tag, once its name is known.
    wanted: Option<Wanted>,
    /// Whether the current attribute's value is wanted.
    value_wanted: bool,
    base_seen: bool,
    /// How many `svg` and `math` elements are open.
    foreign: u32,
}

impl Links<'_> {
    fn wanted_here(&mut self) -> Wanted {
        if let Some(wanted) = self.wanted {
            return wanted;
        }
        let wanted = if self.end_tag {
            Wanted::Nothing
        } else {
            match &self.scratch.tag[..] {
                b"a" | b"area" if self.kinds.anchors => Wanted::Anchor(Attribute::Href),
                b"frame" | b"iframe" if self.kinds.anchors => Wanted::Anchor(Attribute::Src),
                b"base" if !self.base_seen => Wanted::Base,
                b"meta" if self.kinds.redirects => Wanted::Meta,
                b"a" | b"area" | b"frame" | b"iframe" | b"base" | b"meta" => Wanted::Nothing,
                _ if self.kinds.embeds => Wanted::Embeds,
                _ => Wanted::Nothing,
            }
        };
        self.wanted = Some(wanted);
        wanted
    }

    /// Decides on the current attribute, whose name is complete.
    fn begin_value(&mut self) {
        if self.scratch.name.is_empty() {
            return;
        }
        let wanted = self.wanted_here();
        let attribute = match (&self.scratch.name[..], wanted) {
            (b"href", Wanted::Anchor(Attribute::Href) | Wanted::Base) => Some(Attribute::Href),
            (b"src", Wanted::Anchor(Attribute::Src)) => Some(Attribute::Src),
            (b"http-equiv", Wanted::Meta) => Some(Attribute::HttpEquiv),
            (b"content", Wanted::Meta) => Some(Attribute::Content),
            (_, Wanted::Base | Wanted::Meta) => None,
            (b"href" | b"xlink:href", Wanted::Embeds) => Some(Attribute::Href),
            (b"src", Wanted::Embeds) => Some(Attribute::Src),
            (b"srcset" | b"imagesrcset", _) if self.kinds.embeds => Some(Attribute::Srcset),
            (name, _) if self.kinds.embeds => other(&self.scratch.tag, name),
            _ => None,
        };
        self.scratch.name.clear();
        self.value_wanted = false;
        if let Some(attribute) = attribute
            && !self.scratch.attributes.iter().any(|(seen, _)| *seen == attribute)
        {
            self.value_wanted = true;
            self.scratch.attributes.push((attribute, self.scratch.values.len()));
        }
    }

    fn end_attribute(&mut self) {
        self.begin_value();
        self.value_wanted = false;
    }

    fn end_start_tag(&mut self) {
        let wanted = self.wanted.unwrap_or(Wanted::Nothing);
        let HtmlScratch { attributes, values, .. } = &*self.scratch;
        let links = &mut self.capture.links;
        let mut start = 0;
        let (mut refreshes, mut content) = (false, None);
        for &(attribute, end) in attributes {
            let value = String::from_utf8_lossy(&values[start..end]);
            let value = trim(&value);
            start = end;
            match (wanted, attribute) {
                (Wanted::Base, Attribute::Href) => {
                    self.base_seen = true;
                    self.capture.base.push_str(value);
                }
                (Wanted::Meta, Attribute::HttpEquiv) => refreshes = value.eq_ignore_ascii_case("refresh"),
                (Wanted::Meta, _) => content = Some(value.to_owned()),
                (_, Attribute::Srcset) => srcset(value).for_each(|url| links.push(url)),
                _ => links.push(value),
            }
        }
        if let Some(url) = content.as_deref().filter(|_| refreshes).and_then(refresh) {
            links.push(url);
        }
    }
}

/// An attribute with one URL beside `href` and `src`, where its tag has it.
fn other(tag: &[u8], name: &[u8]) -> Option<Attribute> {
    let place = OTHER.iter().position(|known| *known == name)?;
    let fits = match name {
        b"action" => tag == b"form",
        b"data" => tag == b"object",
        b"codebase" => matches!(tag, b"object" | b"applet"),
        b"code" => tag == b"applet",
        b"cite" => matches!(tag, b"q" | b"blockquote" | b"del" | b"ins"),
        b"poster" => tag == b"video",
        b"longdesc" => matches!(tag, b"img" | b"frame" | b"iframe"),
        b"lowsrc" | b"usemap" => matches!(tag, b"img") && name == b"lowsrc",
        b"formaction" => matches!(tag, b"button" | b"input"),
        b"icon" => tag == b"menuitem",
        b"manifest" => tag == b"html",
        b"profile" => tag == b"head",
        _ => true, // background, data-href, data-uri: wherever they stand
    };
    u8::try_from(place).ok().filter(|_| fits).map(Attribute::Other)
}

/// Without the C0 controls and spaces at both ends (WHATWG URL, basic parser, step 1).
pub(crate) fn trim(value: &str) -> &str {
    value.trim_matches(|c: char| c <= ' ')
}

impl Emitter for Links<'_> {
    type Token = Infallible;

    fn set_last_start_tag(&mut self, name: Option<&[u8]>) {
        self.scratch.last_start_tag.clear();
        self.scratch.last_start_tag.extend_from_slice(name.unwrap_or_default());
    }

    fn emit_eof(&mut self) {}

    fn emit_error(&mut self, _: Error) {}

    #[inline]
    fn should_emit_errors(&mut self) -> bool {
        false
    }

    #[inline]
    fn pop_token(&mut self) -> Option<Infallible> {
        None
    }

    #[inline]
    fn emit_string(&mut self, _: &[u8]) {}

    fn init_start_tag(&mut self) {
        self.scratch.tag.clear();
        self.scratch.name.clear();
        self.scratch.attributes.clear();
        self.scratch.values.clear();
        self.end_tag = false;
        self.self_closing = false;
        self.wanted = None;
        self.value_wanted = false;
    }

    fn init_end_tag(&mut self) {
        self.init_start_tag();
        self.end_tag = true;
    }

    fn init_comment(&mut self) {}

    fn emit_current_tag(&mut self) -> Option<State> {
        self.end_attribute();
        let foreign = matches!(&self.scratch.tag[..], b"svg" | b"math");
        if self.end_tag {
            self.scratch.last_start_tag.clear();
            self.foreign = self.foreign.saturating_sub(u32::from(foreign));
            return None;
        }
        if !self.scratch.attributes.is_empty() {
            self.end_start_tag();
        }
        std::mem::swap(&mut self.scratch.tag, &mut self.scratch.last_start_tag);
        if self.self_closing && (self.xhtml || self.foreign > 0) {
            return None;
        }
        self.foreign += u32::from(foreign && !self.self_closing);
        match &self.scratch.last_start_tag[..] {
            b"script" => Some(State::ScriptData),
            b"textarea" | b"title" => Some(State::RcData),
            b"style" | b"xmp" | b"iframe" | b"noembed" | b"noframes" => Some(State::RawText),
            b"plaintext" => Some(State::PlainText),
            _ => None,
        }
    }

    fn emit_current_comment(&mut self) {}

    fn emit_current_doctype(&mut self) {}

    fn set_self_closing(&mut self) {
        self.self_closing = true;
    }

    fn set_force_quirks(&mut self) {}

    #[inline]
    fn push_tag_name(&mut self, name: &[u8]) {
        self.scratch.tag.extend_from_slice(name);
    }

    #[inline]
    fn push_comment(&mut self, _: &[u8]) {}

    fn push_doctype_name(&mut self, _: &[u8]) {}

    fn init_doctype(&mut self) {}

    #[inline]
    fn init_attribute(&mut self) {
        self.end_attribute();
    }

    #[inline]
    fn push_attribute_name(&mut self, name: &[u8]) {
        if self.wanted_here() != Wanted::Nothing || self.kinds.embeds {
            self.scratch.name.extend_from_slice(name);
        }
    }

    #[inline]
    fn push_attribute_value(&mut self, value: &[u8]) {
        self.begin_value();
        if self.value_wanted {
            self.scratch.values.extend_from_slice(value);
            if let Some((_, end)) = self.scratch.attributes.last_mut() {
                *end = self.scratch.values.len();
            }
        }
    }

    fn set_doctype_public_identifier(&mut self, _: &[u8]) {}

    fn set_doctype_system_identifier(&mut self, _: &[u8]) {}

    fn push_doctype_public_identifier(&mut self, _: &[u8]) {}

    fn push_doctype_system_identifier(&mut self, _: &[u8]) {}

    fn current_is_appropriate_end_tag_token(&mut self) -> bool {
        self.end_tag && !self.scratch.last_start_tag.is_empty() && self.scratch.last_start_tag == self.scratch.tag
    }

    fn adjusted_current_node_present_but_not_in_html_namespace(&mut self) -> bool {
        self.foreign > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: LinkKinds = LinkKinds { anchors: true, redirects: true, embeds: true, outlinks: false };

    fn found(document: &str, kinds: LinkKinds, xhtml: bool) -> (Vec<String>, String) {
        let mut capture = Capture::default();
        links(document.as_bytes(), xhtml, kinds, &mut HtmlScratch::default(), &mut capture);
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
    fn unescape_is_done_once() {
        let mut scratch = HtmlScratch::default();
        assert_eq!(unescape("/v?a=1&amp;b=&amp;lt;\"", &mut scratch), "/v?a=1&b=&lt;\"");
    }
}
