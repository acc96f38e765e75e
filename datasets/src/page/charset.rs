//! The charset of an HTML document, by the rules of the WHATWG: the byte order mark, the HTTP header, the first
//! `<meta>` element that names one, wherever it is (HTML, "changing the encoding while parsing"), a `<meta>` or an XML
//! declaration in the first 1024 bytes (HTML, "prescan"), and a guess (chardetng) if none of these names a known
//! charset. A `<meta>` in a comment is never one; in a script, it is one for the prescan only, as in browsers.
//!
//! Reads the bytes of a document. Writes texts of the document in UTF-8; ASCII and UTF-8 bytes stay unchanged. Writes
//! references whose queries are in the charset of the document, as browsers send queries ([`with_query`]). Declared
//! UTF-8 is not checked: a broken sequence in a link becomes U+FFFD.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{EncoderResult, Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};
use memchr::memchr;
use std::borrow::Cow;
use std::cell::OnceCell;

use crate::page::elements::{Elements, Name};
use crate::page::html::decoded;
use crate::page::tags::{TagPart, Tags};

const META_BYTES: usize = 1024;
const GUESS_BYTES: usize = 256 << 10;
/// The byte that switches alphabets in ISO-2022-JP.
const ESCAPE: u8 = 0x1b;

/// A document whose markup can be read as ASCII, and the encoding of the rest.
///
/// In every encoding except UTF-16 and ISO-2022-JP, the bytes of markup always mean markup. So only the parts that are
/// taken from a document are decoded, and its encoding is determined only if such a part is not ASCII.
pub(crate) struct Document<'a> {
    /// The document without its byte order mark.
    pub(crate) markup: Cow<'a, [u8]>,
    url: &'a str,
    encoding: OnceCell<&'static Encoding>,
    /// The encoding of the document, if the whole document was decoded.
    before: Option<&'static Encoding>,
}

impl<'a> Document<'a> {
    /// `label` is the charset of the HTTP header. `url` is the URL of the page; its top-level domain helps a guess.
    pub(crate) fn new(bytes: &'a [u8], label: Option<&str>, url: &'a str) -> Self {
        let (named, bytes) = match Encoding::for_bom(bytes) {
            Some((encoding, mark)) => (Some(encoding), &bytes[mark..]),
            None => (label.map(|label| label.trim_matches(['"', '\'', ' '])).and_then(for_label), bytes),
        };
        let encoding = named.map_or_else(OnceCell::new, OnceCell::from);
        let mut document = Document { markup: Cow::Borrowed(bytes), url, encoding, before: None };
        let all = named.map_or_else(|| memchr(ESCAPE, bytes).is_some(), |encoding| !encoding.is_ascii_compatible());
        if all {
            let before = document.encoding();
            document.markup = decode(before, bytes);
            document.before = Some(before);
            document.encoding = OnceCell::from(UTF_8);
        }
        document
    }

    /// A text of the document in UTF-8.
    pub(crate) fn utf8<'b>(&self, text: &'b [u8]) -> Cow<'b, [u8]> {
        if text.is_ascii() { Cow::Borrowed(text) } else { decode(self.encoding(), text) }
    }

    /// A reference of the document, with its query as a browser sends it.
    pub(crate) fn with_query<'b>(&self, reference: &'b str) -> Cow<'b, str> {
        if reference.is_ascii() {
            return Cow::Borrowed(reference);
        }
        with_query(reference, self.before.unwrap_or_else(|| self.encoding()))
    }

    fn encoding(&self) -> &'static Encoding {
        self.encoding.get_or_init(|| {
            let head = &self.markup[..self.markup.len().min(META_BYTES)];
            let declared = of_elements(&self.markup).or_else(|| prescan(head)).or_else(|| xml(head));
            declared.unwrap_or_else(|| guess(&self.markup, self.url))
        })
    }
}

/// A reference with its query percent-encoded in an encoding (WHATWG URL, query state, for http and https; references
/// of other schemes are not links). Path and fragment stay unchanged. A character that the encoding lacks becomes
/// `&#1234;`, percent-encoded.
pub(crate) fn with_query<'a>(reference: &'a str, encoding: &'static Encoding) -> Cow<'a, str> {
    let encoding = encoding.output_encoding();
    let fragment = memchr(b'#', reference.as_bytes()).unwrap_or(reference.len());
    let (head, fragment) = reference.split_at(fragment);
    let Some(query) = memchr(b'?', head.as_bytes()).map(|mark| mark + 1) else { return Cow::Borrowed(reference) };
    let (path, query) = head.split_at(query);
    if encoding == UTF_8 || query.is_ascii() {
        return Cow::Borrowed(reference);
    }
    // The parser of URLs drops these characters first. Here they would be encoded.
    let query: String = query.chars().filter(|letter| !matches!(letter, '\t' | '\n' | '\r')).collect();
    let mut text = path.to_owned();
    let mut encoder = encoding.new_encoder();
    let (mut rest, mut bytes) = (&query[..], [0; 256]);
    loop {
        let (result, read, written) = encoder.encode_from_utf8_without_replacement(rest, &mut bytes, true);
        percent_encode(&bytes[..written], &mut text);
        rest = &rest[read..];
        match result {
            EncoderResult::InputEmpty => break,
            EncoderResult::OutputFull => {}
            EncoderResult::Unmappable(letter) => text.push_str(&format!("%26%23{}%3B", u32::from(letter))),
        }
    }
    text.push_str(fragment);
    Cow::Owned(text)
}

/// Writes bytes, and escapes the bytes of the special-query percent-encode set.
fn percent_encode(bytes: &[u8], text: &mut String) {
    for &byte in bytes {
        if matches!(byte, b'!' | b'$'..=b'&' | b'('..=b';' | b'=' | b'?'..=b'~') {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
}

pub(crate) fn for_label(label: &str) -> Option<&'static Encoding> {
    Encoding::for_label(label.as_bytes())
}

fn decode<'a>(encoding: &'static Encoding, text: &'a [u8]) -> Cow<'a, [u8]> {
    if encoding == UTF_8 {
        return Cow::Borrowed(text);
    }
    match encoding.decode_without_bom_handling(text).0 {
        Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
    }
}

fn guess(document: &[u8], url: &str) -> &'static Encoding {
    if std::str::from_utf8(document).is_ok() {
        return UTF_8;
    }
    let authority = url.split_once("://").map_or("", |(_, rest)| rest).split(['/', '?', '#']).next().unwrap_or("");
    let host = authority.rsplit('@').next().unwrap_or("").split(':').next().unwrap_or("");
    let domain = host.rsplit('.').next().unwrap_or("").to_ascii_lowercase();
    let domain = Some(domain.as_bytes()).filter(|domain| !domain.is_empty() && domain.is_ascii());
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Allow);
    detector.feed(&document[..document.len().min(GUESS_BYTES)], true);
    detector.guess(domain, Utf8Detection::Allow)
}

/// The encoding with a label in a document.
fn declared(label: &[u8]) -> Option<&'static Encoding> {
    let encoding = Encoding::for_label(label)?;
    // The document was read as ASCII so far, so it cannot be UTF-16.
    if encoding == UTF_16LE || encoding == UTF_16BE {
        return Some(UTF_8);
    }
    if encoding.name() == "x-user-defined" { Some(WINDOWS_1252) } else { Some(encoding) }
}

/// The encoding of the first `<meta>` element that names one.
fn of_elements(markup: &[u8]) -> Option<&'static Encoding> {
    let (mut tags, mut elements) = (Tags::new(markup), Elements::new(false));
    while let Some(tag) = tags.tag(elements.is_foreign()) {
        let name = Name::new(tag.name);
        let is_meta = !tag.is_end && name.bytes() == b"meta";
        let (encoding, self_closing) = meta(&mut tags, is_meta)?;
        if encoding.is_some() {
            return encoding;
        }
        tags.enter(elements.take(name.bytes(), tag.is_end, self_closing));
    }
    None
}

/// The encoding of the attributes of a `<meta>` tag, and whether the tag closes itself. Passes over the attributes of
/// another tag. `None` if the tag is cut off.
fn meta(tags: &mut Tags<'_>, is_meta: bool) -> Option<(Option<&'static Encoding>, bool)> {
    let (mut charset, mut http_equiv, mut content) = (None, None, None);
    let self_closing = loop {
        match tags.part() {
            TagPart::Attribute(name, value) if is_meta => {
                let value_of = match Name::new(name).bytes() {
                    b"charset" => &mut charset,
                    b"http-equiv" => &mut http_equiv,
                    b"content" => &mut content,
                    _ => continue,
                };
                value_of.get_or_insert_with(|| decoded(value));
            }
            TagPart::Attribute(..) => {}
            TagPart::Close { self_closing } => break self_closing,
            TagPart::Cut => return None,
        }
    };
    let is_type = http_equiv.is_some_and(|name| name.eq_ignore_ascii_case(b"content-type"));
    let named = charset.and_then(|label| declared(&label));
    Some((named.or_else(|| content.filter(|_| is_type).and_then(|content| of_content(&content))), self_closing))
}

/// The encoding in a text like `text/html; charset=utf-8` (HTML, "extracting a character encoding from a meta
/// element").
pub(crate) fn of_content(content: &[u8]) -> Option<&'static Encoding> {
    const NAME: &[u8] = b"charset";
    let mut rest = content;
    loop {
        let at = rest.windows(NAME.len()).position(|window| window.eq_ignore_ascii_case(NAME))?;
        rest = rest[at + NAME.len()..].trim_ascii_start();
        if let Some(value) = rest.strip_prefix(b"=") {
            let value = value.trim_ascii_start();
            let end = match value.first()? {
                quote @ (b'"' | b'\'') => return declared(&value[1..][..memchr(*quote, &value[1..])?]),
                _ => value.iter().position(|byte| *byte == b';' || byte.is_ascii_whitespace()),
            };
            return declared(&value[..end.unwrap_or(value.len())]);
        }
    }
}

/// The encoding of the first `<meta` in the first bytes of a document, which are not yet read as tags.
fn prescan(head: &[u8]) -> Option<&'static Encoding> {
    let mut at = 0;
    while let Some(open) = memchr(b'<', &head[at..]) {
        at += open;
        let rest = &head[at..];
        let name = rest[1..].strip_prefix(b"/").unwrap_or(&rest[1..]);
        if rest.starts_with(b"<!--") {
            at += 2 + memchr::memmem::find(&rest[2..], b"-->")? + 3;
        } else if name.first().is_some_and(u8::is_ascii_alphabetic) {
            let is_end = |byte: &u8| byte.is_ascii_whitespace() || *byte == b'>' || *byte == b'/';
            let name_bytes = name.iter().position(is_end)?;
            let is_meta = rest[1..].get(..name_bytes).is_some_and(|name| name.eq_ignore_ascii_case(b"meta"));
            let attributes = rest.len() - name.len() + name_bytes;
            let mut tags = Tags::new(&rest[attributes..]);
            let (encoding, _) = meta(&mut tags, is_meta)?;
            if encoding.is_some() {
                return encoding;
            }
            at += attributes + tags.read_bytes();
        } else if matches!(rest.get(1), Some(b'!' | b'/' | b'?')) {
            at += memchr(b'>', rest)? + 1;
        } else {
            at += 1;
        }
    }
    None
}

/// The encoding of an XML declaration (HTML, "get an XML encoding").
fn xml(head: &[u8]) -> Option<&'static Encoding> {
    const NAME: &[u8] = b"encoding";
    let text = head.strip_prefix(b"<?xml")?;
    let text = &text[..memchr(b'>', text)?];
    let skip = |text: &'_ [u8]| text.iter().take_while(|byte| **byte <= b' ').count();
    let text = &text[memchr::memmem::find(text, NAME)? + NAME.len()..];
    let text = text[skip(text)..].strip_prefix(b"=")?;
    let text = &text[skip(text)..];
    let (quote, text) = text.split_first().filter(|(quote, _)| matches!(quote, b'"' | b'\''))?;
    declared(&text[..memchr(*quote, text)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(document: &[u8], label: Option<&str>) -> String {
        let document = Document::new(document, label, "http://example.ru/");
        String::from_utf8(document.utf8(&document.markup).into_owned()).unwrap()
    }

    #[test]
    fn order_of_the_sources() {
        let koi8 = b"<meta charset=koi8-r>\xd0\xd2\xc9";
        assert_eq!(text(koi8, None), "<meta charset=koi8-r>при");
        assert_eq!(text(koi8, Some("windows-1252")), "<meta charset=koi8-r>ÐÒÉ");
        assert_eq!(text(koi8, Some("uft-8")), "<meta charset=koi8-r>при");
        assert_eq!(text(b"\xff\xfea\0", Some("utf-8")), "a");
        assert_eq!(
            text(b"<meta http-equiv=content-type content='text/html; charset=\"iso-8859-1\"'>\xe9", None)
                .chars()
                .last(),
            Some('é')
        );
        assert_eq!(text(b"<?xml version='1.0' encoding='iso-8859-2'?>\xb1", None).chars().last(), Some('ą'));
        assert_eq!(text("<p>né".as_bytes(), None), "<p>né");
    }

    #[test]
    fn the_encoding_is_looked_for_when_it_is_needed() {
        for (bytes, label) in [(&b"<a href=x>"[..], None), ("é".as_bytes(), Some("utf-8"))] {
            let document = Document::new(bytes, label, "");
            assert!(matches!(document.markup, Cow::Borrowed(_)));
            assert!(matches!(document.utf8(bytes), Cow::Borrowed(_)));
            assert_eq!(document.encoding.get().is_some(), label.is_some());
        }
    }

    #[test]
    fn encodings_whose_markup_is_no_ascii_are_decoded_whole() {
        let japanese = b"<meta charset=iso-2022-jp>\x1b$B$\"\x1b(B";
        assert_eq!(text(japanese, None), "<meta charset=iso-2022-jp>あ");
        let document = Document::new(japanese, None, "");
        assert!(matches!(document.markup, Cow::Owned(_)));
    }

    /// Queries as browsers send them, from the tests of the web platform (`url/percent-encoding`,
    /// `encoding/legacy-mb-*`).
    #[test]
    fn queries_are_encoded_as_browsers_send_them() {
        for (label, reference, expected) in [
            ("utf-8", "/\u{e9}?\u{e9}#\u{e9}", "/\u{e9}?\u{e9}#\u{e9}"),
            ("utf-16le", "?\u{e9}", "?\u{e9}"),
            ("replacement", "?\u{e9}", "?\u{e9}"),
            ("windows-1252", "/\u{e9}?\u{e9}=a b&\u{2020}#\u{e9}", "/\u{e9}?%E9=a%20b&%86#\u{e9}"),
            ("windows-1252", "/\u{e9}#?\u{e9}", "/\u{e9}#?\u{e9}"),
            ("windows-1252", "?a=%2f'?\u{e9}", "?a=%2f%27?%E9"),
            ("windows-1252", "?\u{20ac}\u{416}x", "?%80%26%231046%3Bx"),
            ("windows-1251", "http://a/?q=\u{416}", "http://a/?q=%C6"),
            ("koi8-r", "?\u{43f}\n\u{440}\u{438}", "?%D0%D2%C9"),
            ("shift_jis", "?q=\u{8868}\u{2193}", "?q=%95\\%81%AB"),
            ("iso-2022-jp", "?\u{2193}a", "?%1B$B%22-%1B(Ba"),
            ("euc-jp", "?\u{2193}", "?%A2%AD"),
            ("gb18030", "?\u{2193}\u{1f600}", "?%A1%FD%949%FC6"),
            ("big5", "?\u{2193}", "?%A1%F5"),
            ("euc-kr", "?\u{2193}", "?%A1%E9"),
            ("gbk", "?\u{1f4a9}", "?%26%23128169%3B"),
        ] {
            let encoding = Encoding::for_label_no_replacement(label.as_bytes()).unwrap_or(encoding_rs::REPLACEMENT);
            assert_eq!(with_query(reference, encoding), expected, "{label}");
        }
        let long = format!("?{}", "\u{e9}".repeat(1000));
        assert_eq!(with_query(&long, WINDOWS_1252), format!("?{}", "%E9".repeat(1000)));
        let page = |bytes: &'static [u8]| Document::new(bytes, None, "").with_query("?\u{2193}").into_owned();
        assert_eq!(page(b"<meta charset=iso-2022-jp>\x1b$B$\"\x1b(B"), "?%1B$B%22-%1B(B");
        assert_eq!(page(b"<meta charset=shift_jis>"), "?%81%AB");
        assert_eq!(page(b"\xff\xfea\0"), "?\u{2193}");
    }

    /// What a browser takes the letter `\xd6` for: `Ж` in KOI8-R, `ж` in windows-1251, `Ö` in windows-1252.
    #[test]
    fn a_meta_counts_wherever_it_is() {
        const FAR: usize = 3000;
        let far = |filler: &str| filler.repeat(FAR / filler.len());
        let koi8 = "<meta charset=koi8-r>";
        for (head, letter) in [
            // In the first bytes and after them, after links and texts, in every form.
            (koi8.to_owned(), 'ж'),
            (far("<p>x</p>") + koi8, 'ж'),
            ("<script>".to_owned() + &far("x") + "</script>" + koi8, 'ж'),
            (far("<!-- > -->") + "<META CHARSET='KOI8-R' />", 'ж'),
            (far("<br>") + "<meta http-equiv=\"Content-Type\" content=\"text/html; charset=koi8-r\">", 'ж'),
            (far("<br>") + "<meta content='text/html;CHARSET = \"koi8-r\"' name=x http-equiv=content-TYPE>", 'ж'),
            (far("<br>") + "<meta content=charset=koi8-r;x http-equiv=content-type>", 'ж'),
            (far("<br>") + "<meta\ncharset=' koi8&#45;r'>", 'ж'),
            (far("<br>") + "<body><table><tr><td>" + koi8, 'ж'),
            (far("<br>") + "<noscript>" + koi8 + "</noscript>", 'ж'),
            (far("<br>") + "<svg>" + koi8 + "</svg>", 'ж'),
            // The first that names a known encoding counts.
            (
                far("<br>") + "<meta charset=nonsense><meta charset><meta charset=koi8-r><meta charset=windows-1251>",
                'ж',
            ),
            (far("<br>") + "<meta charset=no http-equiv=content-type content='; charset=koi8-r'>", 'ж'),
            (far("<br>") + "<meta charset=windows-1252 charset=koi8-r>" + koi8, 'Ö'),
            ("<meta charset=windows-1252>".to_owned() + &far("<br>") + koi8, 'Ö'),
            ("<?xml version='1.0' encoding='windows-1252'?>".to_owned() + &far("<br>") + koi8, 'ж'),
            ("<?xml version='1.0' encoding='windows-1252'?>".to_owned() + koi8, 'ж'),
            ("<?xml version='1.0' encoding='koi8-r'?>".to_owned() + &far("<br>"), 'ж'),
            ("<script>'<meta charset=windows-1252>'</script>".to_owned() + &far("<br>") + koi8, 'ж'),
            // No declarations.
            (far("<br>") + "<!--" + koi8 + "--><meta charset=windows-1252>", 'Ö'),
            (far("<br>") + "<script>'" + koi8 + "'</script><meta charset=windows-1252>", 'Ö'),
            (far("<br>") + "<title>" + koi8 + "</title><meta charset=windows-1252>", 'Ö'),
            (
                far("<br>")
                    + "<a title='"
                    + koi8
                    + "'></meta charset=koi8-r><metadata charset=koi8-r><link charset=koi8-r>\
             <meta http-equiv=content-type content=koi8-r><meta content='charset=koi8-r'>\
             <meta http-equiv=x content='charset=koi8-r'><meta charset=windows-1252>",
                'Ö',
            ),
            ("<!--".to_owned() + koi8 + "--><meta charset=windows-1252>", 'Ö'),
            ("<meta http-equiv=content-type content='text/html; charset'><meta charset=windows-1252>".to_owned(), 'Ö'),
            ("<meta http-equiv=content-type content='charset=\"koi8-r'><meta charset=windows-1252>".to_owned(), 'Ö'),
            ("<meta http-equiv=content-type content='charsetcharset=koi8-r'>".to_owned(), 'ж'),
            ("<<meta charset=koi8-r>".to_owned(), 'ж'),
        ] {
            let page = [head.as_bytes(), b"<a href='/\xd6'>"].concat();
            let expected = format!("{letter}");
            let document = Document::new(&page, None, "");
            assert_eq!(document.utf8(b"\xd6"), expected.as_bytes(), "{}", &head[head.len().saturating_sub(200)..]);
            // The HTTP header and the byte order mark have the last word.
            assert_eq!(Document::new(&page, Some("windows-1251"), "").utf8(b"\xd6"), "Ц".as_bytes());
        }
        // Links before the declaration have its encoding, too, and queries are sent in it.
        let page = [b"<a href='?\xd6'>", far("<br>").as_bytes(), koi8.as_bytes()].concat();
        let document = Document::new(&page, None, "");
        assert_eq!((document.utf8(b"?\xd6"), document.with_query("?\u{436}")), ("?ж".as_bytes().into(), "?%D6".into()));
        let utf16 = [far("<br>").as_bytes(), "<meta charset=utf-16le>é".as_bytes(), b"\xff"].concat();
        assert_eq!(Document::new(&utf16, None, "").encoding(), UTF_8);
    }

    #[test]
    fn cut_documents_do_no_harm() {
        for document in [&b"<"[..], b"<meta", b"<!--", b"<meta charset", b"<meta charset=", b"<?xml", b"\x80"] {
            text(document, None);
        }
    }
}
