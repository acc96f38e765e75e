//! WAT: metadata of WARC or ARC records in JSON. Each `metadata` record of the file describes one record.
//!
//! Reads the JSON of one record. Writes a capture by the same rules as for the described record. URL and date come from
//! the envelope. The date of the WAT record is the time at which the extractor ran.
//!
//! Queries of links use the charset of the HTTP header or of a `<meta>`, as in [`crate::page::charset`]. A WAT does not
//! contain the text that a guess would need.
//!
//! A capture is cut if the described record says so (`WARC-Truncated`), is the first of several segments, has a body in
//! a coding that the extractor could not read, or fewer bytes than it should have: `Actual-Content-Length` is less than
//! `Content-Length` of the record, or `Entity-Length` less than `Content-Length` of the response. A WAT does not say
//! whether chunks or compressed bytes were broken. Requests are told apart as in a WARC file.
//!
//! There are two flavours. The extractor of the IIPC and the Internet Archive keeps entities in URLs; the extractor of
//! Common Crawl decodes entities. The `warcinfo` record distinguishes the flavours: Common Crawl writes
//! `Software-Info`, the other extractor writes `software`.
//!
//! Memory: one JSON text and its links.

use encoding_rs::{Encoding, UTF_8};
use memchr::memmem;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use crate::capture::digest::digest_of;
use crate::capture::meaning::{Meaning, Seen};
use crate::capture::method::Other;
use crate::files::json_text::{LONE_SURROGATES, json_text};
use crate::formats::document::{self, Documents};
use crate::formats::http;
use crate::formats::record::{self, Fields, RecordSite, bare_uri};
use crate::formats::warc::requests::{Marks, Part, Requests};
use crate::page::charset::{for_label, of_content, with_query};
use crate::page::html;
use crate::{Capture, Cut, Finding, LinkKinds};

/// Whether entities in URLs must still be decoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Flavour {
    /// Entities must be decoded.
    #[default]
    Iipc,
    /// Entities are decoded already.
    CommonCrawl,
}

impl Flavour {
    /// The flavour according to the fields of a `warcinfo` record.
    pub(crate) fn of(warcinfo: &Fields) -> Flavour {
        if warcinfo.get("Software-Info").is_some() { Flavour::CommonCrawl } else { Flavour::Iipc }
    }
}

/// Turns the envelope in `json` into a capture, or counts why the record is not a capture.
pub(super) fn capture(
    json: &[u8],
    flavour: Flavour,
    documents: &mut Documents,
    exchange: Exchange<'_>,
    capture: &mut Capture,
    site: &mut RecordSite<'_>,
) -> bool {
    let (json, is_changed) = json_text(json);
    if is_changed {
        site.damage(Finding::BadJson, LONE_SURROGATES);
    }
    let record: Record<'_> = match serde_json::from_str(&json) {
        Ok(record) => record,
        Err(error) => {
            site.damage(Finding::BadJson, &format!("WAT: {error}"));
            return false;
        }
    };
    let Some(envelope) = record.envelope else {
        site.count(Finding::Metadata);
        return false;
    };
    let header = envelope.header();
    let payload = &envelope.payload;
    let kind = header.get("WARC-Type").unwrap_or("response").to_ascii_lowercase();
    let url = header.get("WARC-Target-URI").or_else(|| header.get("Target-URI")).map(bare_uri).unwrap_or_default();
    let kinds = documents.kinds;
    let outlinks = payload.warc_metadata.as_ref().filter(|_| kind == "metadata" && kinds.outlinks);
    let page = matches!(&kind[..], "response" | "resource" | "revisit") || outlinks.is_some();
    let finding = record::without_page(&kind, url);
    if let Some((marks, part)) = envelope.exchange() {
        let Exchange { requests, at } = exchange;
        requests.see(at, marks, part);
        if let Some(method) = requests.method(at).filter(|_| part == Part::Response) {
            method.count(site.tally);
            return false;
        }
    }
    if !page || url.is_empty() || !matches!(finding, Finding::OtherRecord | Finding::Metadata) {
        site.count(finding);
        return false;
    }
    capture.clear();
    capture.url.push_str(url);
    let response = payload.response.as_ref();
    let status = response.map(|response| response.message.status.as_deref().and_then(|s| s.parse().ok()).unwrap_or(0));
    let http_type = response.and_then(|response| response.headers.joined("Content-Type"));
    let record_type = header
        .get("WARC-Identified-Payload-Type")
        .or_else(|| header.get("Content-Type").filter(|_| kind == "resource" || envelope.warc.0.is_empty()));
    let location = response.and_then(|response| response.headers.get("Location"));
    let target = location.and_then(document::redirect_target);
    envelope.judge(site);
    let seen = Seen { status, target, cut: site.why_cut(), ..Seen::links() };
    let is_capture = if let Some(metadata) = outlinks {
        for record in metadata.records.iter().filter(|record| record.name.as_deref() == Some("outlink")) {
            document::outlink(record.value.as_deref().unwrap_or_default(), capture);
        }
        if capture.links.is_empty() {
            site.count(finding);
        }
        !capture.links.is_empty()
            && Seen { cut: site.why_cut(), ..Seen::links() }.settle(kinds.redirects, capture, site.tally)
    } else if kind == "revisit" {
        let field = |name| header.get(name);
        let revisit =
            record::revisit(field("WARC-Profile"), field("WARC-Refers-To-Target-URI"), field("WARC-Refers-To-Date"));
        let status = status.filter(|&status| status != 0);
        let seen = Seen { status, revisit: Some(revisit), target, ..Seen::default() };
        document::revisit(seen, kinds, http_type.as_deref().or(record_type), capture, site)
    } else if seen.meaning() != Meaning::Page {
        seen.settle(kinds.redirects, capture, site.tally)
    } else {
        let html = response.and_then(|response| response.html.as_ref()).or(payload.html.as_ref());
        let named = http_type.as_deref().map(http::media_type).and_then(|text| http::is_html(&text));
        let named = named.or_else(|| record_type.map(http::media_type).and_then(|text| http::is_html(&text)));
        if !named.unwrap_or(html.is_some()) {
            site.count(Finding::NotHtml);
            return false;
        }
        let refresh = response.and_then(|response| response.headers.get("Refresh"));
        let kinds = document::refresh(refresh, kinds, capture);
        if let Some(html) = html {
            let encoding = http_type.as_deref().and_then(http::charset).as_deref().and_then(for_label);
            let encoding = encoding.or_else(|| html.head.encoding()).unwrap_or(UTF_8);
            page_links(html, flavour, encoding, kinds, capture);
        }
        // Extractors do not parse resource records. Without metadata of the HTML, the links are unknown.
        let has_links = response.is_some() || html.is_some();
        Seen { has_links, ..seen }.settle(kinds.redirects, capture, site.tally)
    };
    if !is_capture {
        return false;
    }
    let date = header.get("WARC-Date").or_else(|| header.get("Date")).unwrap_or_default();
    let Some(time) = site.time(date) else { return false };
    capture.time = time;
    if kind != "metadata" {
        capture.digest = header.get("WARC-Payload-Digest").and_then(digest_of);
    }
    true
}

/// The requests of the file, and the position of the record.
pub(super) struct Exchange<'a> {
    pub(super) requests: &'a mut Requests,
    pub(super) at: u64,
}

/// Whether the JSON of a record may describe a request.
pub(super) fn may_be_request(json: &[u8]) -> bool {
    memmem::find(json, b"HTTP-Request-Metadata").is_some()
}

/// The part of the described record in an exchange, and the fields that tie it to others.
pub(super) fn exchange(json: &[u8]) -> Option<(Marks, Part)> {
    serde_json::from_slice::<Record<'_>>(json).ok()?.envelope?.exchange()
}

impl Envelope<'_> {
    fn header(&self) -> &Headers<'_> {
        if self.warc.0.is_empty() { &self.arc } else { &self.warc }
    }

    /// The part of a WARC record in an exchange.
    fn exchange(&self) -> Option<(Marks, Part)> {
        let field = |name| self.warc.get(name);
        let part = match &*field("WARC-Type")?.to_ascii_lowercase() {
            "request" => {
                let request = self.payload.request.as_ref();
                Part::Request(request.and_then(|request| Other::of(request.message.method.as_deref()?)))
            }
            "response" | "revisit" => Part::Response,
            _ => return None,
        };
        let url = field("WARC-Target-URI").unwrap_or_default();
        let names = field("WARC-Concurrent-To").into_iter();
        Some((Marks::new(field("WARC-Record-ID"), names, url, field("WARC-Date")), part))
    }

    /// Tells `site` why the body of the described record is not whole. An extractor does not join segments.
    fn judge(&self, site: &mut RecordSite<'_>) {
        let header = self.header();
        let number = |text: Option<&str>| text.and_then(|text| text.trim().parse::<u64>().ok());
        let is_less = |number: Option<u64>, expected: Option<u64>| number.zip(expected).is_some_and(|(a, b)| a < b);
        if header.get("WARC-Truncated").is_some() {
            site.cut(Cut::Truncated);
        }
        if is_less(number(self.payload.bytes.as_deref()), number(header.get("Content-Length"))) {
            site.ends_early();
        }
        if header.get("WARC-Segment-Number").is_some() && header.get("WARC-Segment-Total-Length").is_none() {
            site.cut(Cut::Segments);
        }
        let Some(response) = &self.payload.response else { return };
        let field = |name| response.headers.get(name);
        let (bytes, expected) = (number(response.bytes.as_deref()), number(field("Content-Length")));
        if field("Transfer-Encoding").is_none() && is_less(bytes, expected) {
            site.cut(Cut::Short);
        } else if field("Transfer-Encoding").is_none() && bytes.is_some() && expected.is_some() {
            site.shows_its_end();
        }
        let has_links = response.html.as_ref().is_some_and(|html| !html.links.is_empty());
        let codings = ["Transfer-Encoding", "Content-Encoding"].into_iter().filter_map(field);
        if !has_links && codings.flat_map(|names| names.split(',')).any(|coding| !http::coding::is_read(coding)) {
            site.cut(Cut::Encoding);
        }
    }
}

fn page_links(html: &Html<'_>, flavour: Flavour, encoding: &'static Encoding, kinds: LinkKinds, capture: &mut Capture) {
    if let Some(base) = html.head.base.as_deref() {
        capture.base.push_str(&with_query(html::trim(&decoded(base, flavour)), encoding));
    }
    if kinds.redirects {
        let refreshes =
            |meta: &&Meta<'_>| meta.http_equiv.as_deref().is_some_and(|name| name.eq_ignore_ascii_case("refresh"));
        let contents = html.head.metas.iter().filter(refreshes).filter_map(|meta| meta.content.as_deref());
        for content in contents.map(|content| decoded(content, flavour)) {
            let Some(url) = html::refresh(&content) else { continue };
            if !url.is_empty() {
                capture.links.push(&with_query(url, encoding));
            }
            // Only the first refresh counts.
            break;
        }
    }
    let head = html.head.links.iter().chain(&html.head.scripts).filter(|_| kinds.embeds);
    for link in head.chain(&html.links) {
        let path = link.path.as_deref().unwrap_or_default();
        let anchor =
            ["A@/href", "AREA@/href", "FRAME@/src", "IFRAME@/src"].iter().any(|a| a.eq_ignore_ascii_case(path));
        let wanted = if anchor { kinds.anchors } else { kinds.embeds };
        if let Some(url) = link.url.as_deref().or(link.href.as_deref()).filter(|_| wanted) {
            capture.links.push(&with_query(html::trim(&decoded(url, flavour)), encoding));
        }
    }
}

fn decoded<'a>(text: &'a str, flavour: Flavour) -> Cow<'a, str> {
    if flavour == Flavour::CommonCrawl || !text.contains('&') {
        return Cow::Borrowed(text);
    }
    Cow::Owned(String::from_utf8_lossy(&html::decoded(text.as_bytes())).into_owned())
}

#[derive(Deserialize)]
struct Record<'a> {
    #[serde(rename = "Envelope", borrow)]
    envelope: Option<Envelope<'a>>,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(rename = "WARC-Header-Metadata", borrow, default)]
    warc: Headers<'a>,
    #[serde(rename = "ARC-Header-Metadata", borrow, default)]
    arc: Headers<'a>,
    #[serde(rename = "Payload-Metadata", borrow, default)]
    payload: Payload<'a>,
}

#[derive(Deserialize, Default)]
struct Payload<'a> {
    #[serde(rename = "Actual-Content-Length", borrow, default)]
    bytes: Word<'a>,
    #[serde(rename = "HTTP-Request-Metadata", borrow)]
    request: Option<Request<'a>>,
    #[serde(rename = "HTTP-Response-Metadata", borrow)]
    response: Option<Response<'a>>,
    #[serde(rename = "HTML-Metadata", borrow)]
    html: Option<Html<'a>>,
    #[serde(rename = "WARC-Metadata-Metadata", borrow)]
    warc_metadata: Option<WarcMetadata<'a>>,
}

#[derive(Deserialize)]
struct Request<'a> {
    #[serde(rename = "Request-Message", borrow, default)]
    message: RequestMessage<'a>,
}

#[derive(Deserialize, Default)]
struct RequestMessage<'a> {
    #[serde(rename = "Method", borrow, default)]
    method: Word<'a>,
}

#[derive(Deserialize)]
struct Response<'a> {
    #[serde(rename = "Entity-Length", borrow, default)]
    bytes: Word<'a>,
    #[serde(rename = "Headers", borrow, default)]
    headers: Headers<'a>,
    #[serde(rename = "Response-Message", borrow, default)]
    message: Message<'a>,
    #[serde(rename = "HTML-Metadata", borrow)]
    html: Option<Html<'a>>,
}

#[derive(Deserialize, Default)]
struct Message<'a> {
    #[serde(rename = "Status", borrow, default)]
    status: Word<'a>,
}

#[derive(Deserialize)]
struct Html<'a> {
    #[serde(rename = "Head", borrow, default)]
    head: Head<'a>,
    #[serde(rename = "Links", borrow, default)]
    links: Items<Link<'a>>,
}

#[derive(Deserialize, Default)]
struct Head<'a> {
    #[serde(rename = "Base", borrow, default)]
    base: Word<'a>,
    #[serde(rename = "Metas", borrow, default)]
    metas: Items<Meta<'a>>,
    #[serde(rename = "Link", borrow, default)]
    links: Items<Link<'a>>,
    #[serde(rename = "Scripts", borrow, default)]
    scripts: Items<Link<'a>>,
}

impl Head<'_> {
    /// The encoding that the document names.
    fn encoding(&self) -> Option<&'static Encoding> {
        self.metas.iter().find_map(|meta| {
            let is_type = meta.http_equiv.as_deref().is_some_and(|name| name.eq_ignore_ascii_case("content-type"));
            let content = meta.content.as_deref().filter(|_| is_type).map(str::as_bytes);
            meta.charset.as_deref().and_then(for_label).or_else(|| content.and_then(of_content))
        })
    }
}

#[derive(Deserialize)]
struct Link<'a> {
    #[serde(borrow, default)]
    path: Word<'a>,
    #[serde(borrow, default)]
    url: Word<'a>,
    #[serde(borrow, default)]
    href: Word<'a>,
}

#[derive(Deserialize)]
struct Meta<'a> {
    #[serde(rename = "http-equiv", borrow, default)]
    http_equiv: Word<'a>,
    #[serde(borrow, default)]
    content: Word<'a>,
    #[serde(borrow, default)]
    charset: Word<'a>,
}

#[derive(Deserialize)]
struct WarcMetadata<'a> {
    #[serde(rename = "Metadata-Records", borrow, default)]
    records: Items<MetadataRecord<'a>>,
}

#[derive(Deserialize)]
struct MetadataRecord<'a> {
    #[serde(rename = "Name", borrow, default)]
    name: Word<'a>,
    #[serde(rename = "Value", borrow, default)]
    value: Word<'a>,
}

/// A text: the first item of an array, the digits of a number, nothing of any other value.
#[derive(Default)]
struct Word<'a>(Option<Cow<'a, str>>);

impl Word<'_> {
    fn as_deref(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

/// The value of a field, or the values of a field that a response has several times.
#[derive(Deserialize)]
#[serde(untagged)]
enum Words<'a> {
    Many(#[serde(borrow)] Vec<Word<'a>>),
    One(#[serde(borrow)] Word<'a>),
}

/// The items of an array, or a single item.
struct Items<T>(Vec<T>);

impl<T> Default for Items<T> {
    fn default() -> Self {
        Items(Vec::new())
    }
}

impl<T> std::ops::Deref for Items<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<'i, T> IntoIterator for &'i Items<T> {
    type Item = &'i T;
    type IntoIter = std::slice::Iter<'i, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

/// Header fields as an object. The case of names does not matter.
#[derive(Default)]
struct Headers<'a>(Vec<(Cow<'a, str>, Word<'a>)>);

impl Headers<'_> {
    fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).and_then(|(_, value)| value.as_deref())
    }

    /// All values of a field that are not empty, as one value; `None` if there are none.
    fn joined(&self, name: &str) -> Option<String> {
        let values = self.0.iter().filter(|(key, _)| key.eq_ignore_ascii_case(name));
        let values = values.filter_map(|(_, value)| value.as_deref()).filter(|value| !value.is_empty());
        values.map(str::to_owned).reduce(|values, value| values + ", " + &value)
    }
}

struct WordVisitor;

impl<'de> Visitor<'de> for WordVisitor {
    type Value = Word<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Word<'de>, E> {
        Ok(Word(Some(Cow::Borrowed(text))))
    }

    fn visit_str<E>(self, text: &str) -> Result<Word<'de>, E> {
        Ok(Word(Some(Cow::Owned(text.to_owned()))))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Word<'de>, E> {
        Ok(Word(Some(Cow::Owned(number.to_string()))))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Word<'de>, E> {
        Ok(Word(None))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Word<'de>, E> {
        Ok(Word(None))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Word<'de>, E> {
        Ok(Word(None))
    }

    fn visit_unit<E>(self) -> Result<Word<'de>, E> {
        Ok(Word(None))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Word<'de>, A::Error> {
        let first = items.next_element()?.unwrap_or_default();
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(first)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut items: A) -> Result<Word<'de>, A::Error> {
        while items.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Word(None))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Word<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(WordVisitor)
    }
}

struct HeadersVisitor;

impl<'de> Visitor<'de> for HeadersVisitor {
    type Value = Headers<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of header fields")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut items: A) -> Result<Headers<'de>, A::Error> {
        let mut fields = Vec::new();
        while let Some((name, values)) = items.next_entry::<Word<'de>, Words<'de>>()? {
            let name = name.0.unwrap_or_default();
            match values {
                Words::One(value) => fields.push((name, value)),
                Words::Many(values) => fields.extend(values.into_iter().map(|value| (name.clone(), value))),
            }
        }
        Ok(Headers(fields))
    }

    fn visit_unit<E>(self) -> Result<Headers<'de>, E> {
        Ok(Headers::default())
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Headers<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(HeadersVisitor)
    }
}

struct ItemsVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ItemsVisitor<T> {
    type Value = Items<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of objects")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Items<T>, A::Error> {
        let mut all = Vec::new();
        while let Some(item) = items.next_element()? {
            all.push(item);
        }
        Ok(Items(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, items: A) -> Result<Items<T>, A::Error> {
        let item = T::deserialize(serde::de::value::MapAccessDeserializer::new(items))?;
        Ok(Items(vec![item]))
    }

    fn visit_unit<E>(self) -> Result<Items<T>, E> {
        Ok(Items::default())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Items<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(ItemsVisitor(PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_may_have_several_values() {
        let json =
            r#"{"Content-Type":["text/plain","",7,"text/html"],"content-type":"x","Location":["/a","/b"],"A":null}"#;
        let headers: Headers<'_> = serde_json::from_str(json).unwrap();
        assert_eq!(headers.joined("CONTENT-TYPE").as_deref(), Some("text/plain, 7, text/html, x"));
        assert_eq!(headers.get("location"), Some("/a"));
        assert_eq!((headers.joined("a"), headers.get("b")), (None, None));
    }
}
