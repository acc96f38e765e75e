//! Turns the block of a record into a capture. WARC, ARC and WAT share the rules on types.
//!
//! A response with status 200 and an HTML type is a capture. Without a type, the reader looks at the body. The meaning
//! of a response with another status does not depend on its type ([`crate::capture::meaning`]).

use std::borrow::Cow;

use crate::capture::meaning::{Meaning, ReferredTo, Seen};
use crate::formats::http;
use crate::formats::record::{Fields, RecordSite};
use crate::page::charset::Document;
use crate::page::html;
use crate::{Capture, Cut, Finding, LinkKinds};

/// Reads documents into captures; holds the buffers.
pub(crate) struct Documents {
    pub(crate) kinds: LinkKinds,
    fields: Fields,
}

impl Documents {
    pub(crate) fn new(kinds: LinkKinds) -> Self {
        Documents { kinds, fields: Fields::default() }
    }

    /// Reads an HTTP response. `media_type` is the media type in the record, for responses without a media type.
    /// Returns whether the response is a capture, and counts why not.
    pub(crate) fn response(
        &mut self,
        block: &[u8],
        media_type: Option<&str>,
        capture: &mut Capture,
        site: &mut RecordSite<'_>,
    ) -> bool {
        let Some((status, raw)) = http::response(block, &mut self.fields) else {
            // Some writers left the HTTP header out.
            return self.resource(block, media_type.unwrap_or_default(), capture, site);
        };
        let fields = &self.fields;
        let location = fields.get("location");
        let target = location.as_deref().and_then(redirect_target);
        let seen = Seen { status: Some(status.into()), target, ..Seen::links() };
        if seen.meaning() != Meaning::Page {
            return seen.settle(self.kinds.redirects, capture, site.tally);
        }
        let content_type = fields.joined("content-type").unwrap_or_default();
        let mut kind = http::is_html(&http::media_type(&content_type));
        if kind.is_none() {
            kind = media_type.and_then(|text| http::is_html(&http::media_type(text)));
        }
        if kind == Some(false) {
            site.count(Finding::NotHtml);
            return false;
        }
        if raw.is_empty() && !http::ends_header(block) {
            site.cut(Cut::Short);
        }
        let body = http::coding::body(raw, fields, site);
        if kind.is_none() && !http::looks_like_html(&body) {
            site.count(Finding::NotHtml);
            return false;
        }
        let kinds = self::refresh(fields.get("refresh").as_deref(), self.kinds, capture);
        let xhtml = http::media_type(&content_type) == "application/xhtml+xml";
        add_links(&body, http::charset(&content_type).as_deref(), xhtml, kinds, capture);
        Seen { cut: site.why_cut(), ..seen }.settle(self.kinds.redirects, capture, site.tally)
    }

    /// Reads a document without HTTP header. Returns whether the document is a capture.
    pub(crate) fn resource(
        &mut self,
        block: &[u8],
        content_type: &str,
        capture: &mut Capture,
        site: &mut RecordSite<'_>,
    ) -> bool {
        let media_type = http::media_type(content_type);
        if !http::is_html(&media_type).unwrap_or_else(|| http::looks_like_html(block)) {
            site.count(Finding::NotHtml);
            return false;
        }
        let xhtml = media_type == "application/xhtml+xml";
        add_links(block, http::charset(content_type).as_deref(), xhtml, self.kinds, capture);
        Seen { cut: site.why_cut(), ..Seen::links() }.settle(self.kinds.redirects, capture, site.tally)
    }

    /// Reads a revisit, with or without an HTTP header. A header with another status or type excludes the revisit.
    pub(crate) fn revisit(
        &mut self,
        block: &[u8],
        revisit: ReferredTo,
        media_type: Option<&str>,
        capture: &mut Capture,
        site: &mut RecordSite<'_>,
    ) -> bool {
        let fields = &mut self.fields;
        let status = http::response(block, fields).map_or(0, |(status, _)| status);
        if status == 0 {
            fields.clear();
        }
        let content_type = fields.joined("content-type").or(media_type.map(Cow::Borrowed));
        let location = fields.get("location");
        let target = location.as_deref().and_then(redirect_target);
        let status = (status != 0).then_some(status.into());
        let seen = Seen { status, revisit: Some(revisit), target, ..Seen::default() };
        self::revisit(seen, self.kinds, content_type.as_deref(), capture, site)
    }
}

fn add_links(body: &[u8], charset: Option<&str>, xhtml: bool, kinds: LinkKinds, capture: &mut Capture) {
    let url = std::mem::take(&mut capture.url);
    html::links(&Document::new(body, charset, &url), xhtml, kinds, capture);
    capture.url = url;
}

/// Settles a revisit record with this content type. Returns whether the record is a capture.
pub(crate) fn revisit(
    seen: Seen<'_>,
    kinds: LinkKinds,
    content_type: Option<&str>,
    capture: &mut Capture,
    site: &mut RecordSite<'_>,
) -> bool {
    let is_other = content_type.is_some_and(|text| http::is_html(&http::media_type(text)) == Some(false));
    if is_other && seen.meaning() == Meaning::Revisit {
        site.count(Finding::NotHtml);
        return false;
    }
    seen.settle(kinds.redirects, capture, site.tally)
}

/// Adds the URL of a `Refresh` header. Returns the links of the page that still count: only the first refresh does.
pub(crate) fn refresh(value: Option<&str>, kinds: LinkKinds, capture: &mut Capture) -> LinkKinds {
    match value.filter(|_| kinds.redirects).and_then(html::refresh) {
        None => kinds,
        Some(url) => {
            if !url.is_empty() {
                capture.links.push(url);
            }
            LinkKinds { redirects: false, ..kinds }
        }
    }
}

/// The URL of a `Location` header.
pub(crate) fn redirect_target(location: &str) -> Option<&str> {
    Some(html::trim(location)).filter(|url| !url.is_empty())
}

/// Adds the URL of a Heritrix line `URL HOP CONTEXT`, if it is a link that a reader can follow. Returns whether it is.
pub(crate) fn outlink(line: &str, capture: &mut Capture) -> bool {
    let mut parts = line.trim().rsplitn(3, ' ');
    let (Some(context), Some(hop), Some(url)) = (parts.next(), parts.next(), parts.next()) else { return false };
    let link = hop == "L" && (context.eq_ignore_ascii_case("a/@href") || context.eq_ignore_ascii_case("area/@href"));
    if link {
        capture.links.push(html::trim(url));
    }
    link
}
