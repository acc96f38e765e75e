//! The options of answers over HTTP, which an operator chooses.

use std::time::Duration;

use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, ETAG, IF_NONE_MATCH, LINK, LOCATION};
use axum::http::{HeaderName, HeaderValue, Method, Uri};
use tower_http::cors::{AllowOrigin, Any, CorsLayer};

/// How long a browser may keep the answer to a preflight request.
const PREFLIGHT_AGE: Duration = Duration::from_secs(86_400);

/// Options of the answers over HTTP.
#[derive(Clone, Debug)]
pub struct HttpOptions {
    /// The prefix of the URLs of mementos: the replay service of an archive.
    pub replay: String,
    /// The address at which callers reach the server, without a slash at the end; `None`: the host that the caller
    /// names.
    pub public_url: Option<String>,
    /// More names by which callers reach a server that listens on a loopback address, besides `localhost`, its
    /// addresses and its public URL; `*`: every name.
    pub hosts: Vec<String>,
    /// The origins of pages that may read answers in a browser. If empty, only pages of this server may.
    pub origins: Vec<Origin>,
    /// The origins of pages that may show the explorer in a frame. If empty, no page may.
    pub frames: Vec<Origin>,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            replay: "https://web.archive.org/web/".to_owned(),
            public_url: None,
            hosts: Vec::new(),
            origins: Vec::new(),
            frames: Vec::new(),
        }
    }
}

/// Pages that may read answers (CORS), or show the explorer in a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The pages of every site.
    Any,
    /// The pages of one site, such as `https://example.org`.
    Site(HeaderValue),
}

impl Origin {
    /// Parses `*`, or a scheme and a host, with a port if the port is not the default of the scheme.
    ///
    /// # Errors
    /// Any other text.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text == "*" {
            return Ok(Self::Any);
        }
        let origin = |uri: Uri| Some(format!("{}://{}", uri.scheme_str()?, uri.authority()?));
        let is_origin = text.parse().ok().and_then(origin).is_some_and(|origin| origin == text);
        let value = HeaderValue::from_str(text).ok().filter(|_| is_origin);
        value.map(Self::Site).ok_or_else(|| format!("not an origin: {text:?} (expected as https://example.org, or *)"))
    }
}

/// The sources of pages that may show the explorer in a frame, as content security policies name them.
pub(crate) fn frames(origins: &[Origin]) -> String {
    let source = |origin: &Origin| match origin {
        Origin::Any => "*".to_owned(),
        Origin::Site(site) => site.to_str().unwrap_or_default().to_owned(),
    };
    let sources: Vec<String> = origins.iter().map(source).collect();
    if sources.is_empty() { "'none'".to_owned() } else { sources.join(" ") }
}

/// The rules of CORS for origins; `None` without origins. The layer must be outside the guards, because a browser sends
/// preflight requests without a token.
pub(crate) fn cors(origins: &[Origin]) -> Option<CorsLayer> {
    let sites = origins.iter().filter_map(|origin| match origin {
        Origin::Any => None,
        Origin::Site(site) => Some(site.clone()),
    });
    let allowed = match origins {
        [] => return None,
        _ if origins.contains(&Origin::Any) => AllowOrigin::from(Any),
        _ => AllowOrigin::list(sites),
    };
    let asked = [AUTHORIZATION, CONTENT_TYPE, IF_NONE_MATCH, HeaderName::from_static("accept-datetime")];
    let layer = CorsLayer::new().allow_origin(allowed).allow_methods([Method::GET, Method::HEAD, Method::POST]);
    Some(layer.allow_headers(asked).expose_headers([ETAG, LINK, LOCATION]).max_age(PREFLIGHT_AGE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_as_browsers_send_them() {
        for text in ["https://example.org", "http://localhost:8000", "http://[::1]:8000"] {
            assert_eq!(Origin::parse(text), Ok(Origin::Site(HeaderValue::from_str(text).unwrap())));
        }
        assert_eq!(Origin::parse("*"), Ok(Origin::Any));
        for text in ["", "example.org", "https://example.org/", "https://example.org/a", "null", "https://a b", "**"] {
            assert!(Origin::parse(text).unwrap_err().starts_with("not an origin: "), "{text}");
        }
    }
}
