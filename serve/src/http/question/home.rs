//! The address at which callers reach this server: the prefix of absolute URLs in answers, without a slash at the end.
//!
//! `--public-url` sets the address. Otherwise a proxy may send the address that its caller used in `X-Forwarded-Proto`,
//! `X-Forwarded-Host` and `X-Forwarded-Prefix` (the path below which the server is, and which the proxy removes).
//! Otherwise the address comes from the request. Anybody may send these fields. They therefore change only the links in
//! the answer to the sender, and caches are told that the answer depends on them. An invalid field is ignored.

use axum::http::header::HOST;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Uri};
use tonic::Status;

use crate::protocol::status::bad;
use crate::shared::Shared;

const PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const PREFIX: HeaderName = HeaderName::from_static("x-forwarded-prefix");

/// The fields of a request on which the URLs depend.
pub(in crate::http) const VARIES: HeaderValue =
    HeaderValue::from_static("x-forwarded-host, x-forwarded-prefix, x-forwarded-proto");

/// The address at which callers reach this server; see the head of this file.
///
/// # Errors
/// BAD_REQUEST if neither an option nor the request has a host.
pub(in crate::http) fn home(shared: &Shared, uri: &Uri, headers: &HeaderMap) -> Result<String, Status> {
    match &shared.http.public_url {
        Some(home) => Ok(home.clone()),
        None => told(shared.http.scheme, uri, headers).ok_or_else(|| bad("Host: missing or not a host")),
    }
}

/// The address in a request.
fn told(scheme: &str, uri: &Uri, headers: &HeaderMap) -> Option<String> {
    let scheme = first(headers, &PROTO).filter(|scheme| ["http", "https"].contains(scheme)).unwrap_or(scheme);
    let host = |name| first(headers, name).and_then(|text| Authority::try_from(text).ok()).filter(is_host);
    // HTTP/2 has no field Host.
    let host = host(&FORWARDED_HOST).or_else(|| host(&HOST)).or_else(|| uri.authority().cloned())?;
    let prefix = first(headers, &PREFIX).filter(|prefix| is_path(prefix)).unwrap_or_default();
    Some(format!("{scheme}://{host}{}", prefix.trim_end_matches('/')))
}

/// The first of the values of a field, which comes from the proxy nearest to the caller.
fn first<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()?.split(',').next().map(str::trim)
}

fn is_host(authority: &Authority) -> bool {
    !authority.as_str().contains('@')
}

/// Whether a text is a path that can be in a URL between any delimiters.
fn is_path(text: &str) -> bool {
    let is_of_path = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~%+:@".contains(&byte);
    text.starts_with('/') && !text.starts_with("//") && text.bytes().all(is_of_path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_says_where_callers_are() {
        let uri = Uri::from_static("/timemap/link/http://a/");
        let told = |fields: &[(&'static str, &'static str)]| {
            let fields =
                fields.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
            super::told("http", &uri, &fields.collect())
        };
        let host = ("host", "127.0.0.1:7400");
        let own = Some("http://127.0.0.1:7400".to_owned());
        assert_eq!(told(&[]), None);
        assert_eq!(told(&[host]), own);
        let all = [host, ("x-forwarded-host", "example.org"), ("x-forwarded-proto", "https")];
        assert_eq!(told(&all).unwrap(), "https://example.org");
        for prefix in ["/webstrata", "/webstrata/", "/webstrata, /inner"] {
            let prefix = ("x-forwarded-prefix", prefix);
            assert_eq!(told(&[&all[..], &[prefix]].concat()).unwrap(), "https://example.org/webstrata");
        }
        for field in [
            ("x-forwarded-host", "evil@example.org"),
            ("x-forwarded-host", "a b"),
            ("x-forwarded-host", ""),
            ("x-forwarded-proto", "javascript"),
            ("x-forwarded-prefix", "webstrata"),
            ("x-forwarded-prefix", "//example.org"),
            ("x-forwarded-prefix", "/a\"><script>"),
            ("x-forwarded-prefix", "/a?b"),
        ] {
            assert_eq!(told(&[host, field]), own, "{field:?}");
        }
    }
}
