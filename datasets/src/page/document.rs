//! Turns the block of a record into a capture. WARC, ARC and WAT share the rules on status and type.
//!
//! A response with status 200 and an HTML type is a capture. Without a type, the reader looks at the body. A response
//! with another status is a capture without links, whatever its type. If the options ask for redirects, the `Location`
//! of a 3xx response is its only link. A 304 is a revisit: the page is as it was.

use std::borrow::Cow;

use crate::formats::http;
use crate::formats::record::{self, Fields, RecordSite};
use crate::page::charset::Document;
use crate::page::html;
use crate::{Capture, Finding, LinkKinds};

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
        if status != 200 {
            let location = self.fields.get("location");
            return other_status(self.kinds, status, location.as_deref(), capture, site);
        }
        capture.status = Some(status);
        let fields = &self.fields;
        let content_type = fields.get("content-type").unwrap_or_default();
        let mut kind = http::is_html(&http::media_type(&content_type));
        if kind.is_none() {
            kind = media_type.and_then(|text| http::is_html(&http::media_type(text)));
        }
        if kind == Some(false) {
            site.count(Finding::NotHtml);
            return false;
        }
        let body = http::body(raw, fields, site);
        if kind.is_none() && !http::looks_like_html(&body) {
            site.count(Finding::NotHtml);
            return false;
        }
        if self.kinds.redirects {
            let refresh = fields.get("refresh");
            if let Some(url) = refresh.as_deref().and_then(html::refresh) {
                capture.links.push(url);
            }
        }
        let xhtml = http::media_type(&content_type) == "application/xhtml+xml";
        add_links(&body, http::charset(&content_type), xhtml, self.kinds, capture);
        true
    }

    /// A document without HTTP header.
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
        add_links(block, http::charset(content_type), xhtml, self.kinds, capture);
        true
    }

    /// A revisit, with or without an HTTP header. A header with another status or type excludes the revisit.
    pub(crate) fn revisit(
        &mut self,
        block: &[u8],
        media_type: Option<&str>,
        capture: &mut Capture,
        site: &mut RecordSite<'_>,
    ) -> bool {
        let fields = &mut self.fields;
        let status = http::response(block, fields).map_or(0, |(status, _)| status);
        if status == 0 {
            fields.clear();
        }
        let content_type = fields.get("content-type").or(media_type.map(Cow::Borrowed));
        revisit(self.kinds, status, content_type.as_deref(), fields.get("location").as_deref(), capture, site)
    }
}

fn add_links(body: &[u8], charset: Option<&str>, xhtml: bool, kinds: LinkKinds, capture: &mut Capture) {
    let url = std::mem::take(&mut capture.url);
    html::links(&Document::new(body, charset, &url), xhtml, kinds, capture);
    capture.url = url;
}

/// Whether a response with a status other than 200 is a capture. Adds the `Location` of a redirect to its links.
pub(crate) fn other_status(
    kinds: LinkKinds,
    status: u16,
    location: Option<&str>,
    capture: &mut Capture,
    site: &mut RecordSite<'_>,
) -> bool {
    match status {
        304 => capture.content = record::revisit(Some("server-not-modified"), None, None),
        200..=999 => {
            capture.status = Some(status);
            redirect_target(kinds, status, location).into_iter().for_each(|location| capture.links.push(location));
        }
        _ => {
            site.count(Finding::OtherStatus);
            return false;
        }
    }
    true
}

/// Whether a revisit with this status (0: unknown) and content type is a capture. A status other than 200 and 304 says
/// all of the capture: it then has the status, and is no revisit.
pub(crate) fn revisit(
    kinds: LinkKinds,
    status: u16,
    content_type: Option<&str>,
    location: Option<&str>,
    capture: &mut Capture,
    site: &mut RecordSite<'_>,
) -> bool {
    if !matches!(status, 0 | 200 | 304) {
        return other_status(kinds, status, location, capture, site);
    }
    if content_type.is_some_and(|text| http::is_html(&http::media_type(text)) == Some(false)) {
        site.count(Finding::NotHtml);
        return false;
    }
    capture.status = (status == 200).then_some(status);
    true
}

/// The `Location` of a redirect, if the options ask for redirects.
pub(crate) fn redirect_target(kinds: LinkKinds, status: u16, location: Option<&str>) -> Option<&str> {
    location
        .map(html::trim)
        .filter(|url| kinds.redirects && (300..400).contains(&status) && status != 304 && !url.is_empty())
}

/// Adds a line `URL HOP CONTEXT` of Heritrix, if it is a link that a reader can follow.
pub(crate) fn outlink(line: &str, capture: &mut Capture) -> bool {
    let mut parts = line.trim().rsplitn(3, ' ');
    let (Some(context), Some(hop), Some(url)) = (parts.next(), parts.next(), parts.next()) else { return false };
    let link = hop == "L" && (context.eq_ignore_ascii_case("a/@href") || context.eq_ignore_ascii_case("area/@href"));
    if link {
        capture.links.push(html::trim(url));
    }
    link
}
