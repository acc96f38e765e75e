//! The address of a file on another machine, and its name without secrets.

use std::fmt;

use url::Url;

/// The address of an object in a bucket, or of a file of an HTTP server.
///
/// `Display` and `Debug` write the address without its query and its user, which may be secrets. Two addresses are
/// equal only if their secrets are.
///
/// ```
/// use webstrata_remote::Address;
///
/// let signed = Address::of("https://me:word@archive.example/a.wacz?X-Amz-Signature=1234").unwrap();
/// assert_eq!(signed.to_string(), "https://archive.example/a.wacz");
/// assert_eq!(Address::of("s3://bucket/crawls/").unwrap().bucket_and_key(), Some(("bucket", "crawls/")));
/// assert_eq!(Address::of("crawls/a.warc.gz"), None);
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    shown: String,
    full: String,
}

const S3: &str = "s3://";

impl Address {
    /// The address that a text is; `None` for a path, and for a URL with another scheme than `s3`, `http` and `https`.
    pub fn of(text: &str) -> Option<Self> {
        let (scheme, rest) = text.split_once("://")?;
        let scheme = scheme.to_ascii_lowercase();
        match scheme.as_str() {
            "s3" => {
                let full = format!("{S3}{rest}");
                Some(Self { shown: full.clone(), full })
            }
            "http" | "https" => Some(Self::of_http(text)),
            _ => None,
        }
    }

    fn of_http(text: &str) -> Self {
        let Ok(mut url) = Url::parse(text) else {
            // Refused when it is opened.
            let (scheme, rest) = text.split_once("://").unwrap_or(("", text));
            let path = rest.split(['?', '#']).next().unwrap_or_default();
            let host = path.rsplit('@').next().unwrap_or_default();
            return Self { shown: format!("{scheme}://{host}"), full: text.to_owned() };
        };
        url.set_fragment(None);
        let full = url.to_string();
        url.set_query(None);
        // Fails only for URLs without a host, which have no user.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        Self { shown: url.to_string(), full }
    }

    /// The bucket, and the key or the prefix in it; `None` for an address of an HTTP server.
    pub fn bucket_and_key(&self) -> Option<(&str, &str)> {
        let rest = self.full.strip_prefix(S3)?;
        Some(rest.split_once('/').unwrap_or((rest, "")))
    }

    /// The whole address, with its secrets.
    #[cfg(feature = "client")]
    pub(crate) fn full(&self) -> &str {
        &self.full
    }

    /// A text without the secrets of the address.
    #[cfg(feature = "client")]
    pub(crate) fn without_secrets(&self, text: &str) -> String {
        let text = text.replace(&self.full, &self.shown);
        match self.full.split_once('?') {
            Some((_, query)) if !query.is_empty() => text.replace(query, "..."),
            _ => text,
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({})", self.shown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_shown_without_secrets() {
        for (text, shown) in [
            ("s3://bucket/a b/c?d.warc.gz", "s3://bucket/a b/c?d.warc.gz"),
            ("S3://bucket", "s3://bucket"),
            ("HTTPS://Host/A%2fB.warc#x", "https://host/A%2fB.warc"),
            ("http://host:8080/a?token=x", "http://host:8080/a"),
            ("https://u:p@host/a?x@y", "https://host/a"),
            ("https://u:p@", "https://"),
        ] {
            let address = Address::of(text).unwrap();
            assert_eq!(address.to_string(), shown);
            assert_eq!(format!("{address:?}"), format!("Address({shown})"));
        }
        for path in ["a.warc.gz", "/s3/x", "file:///x", "gs://bucket/x", "c:/x", ""] {
            assert_eq!(Address::of(path), None, "{path}");
        }
        let two = ["http://h/a?1", "http://h/a?2"].map(|text| Address::of(text).unwrap());
        assert_ne!(two[0], two[1]);
    }

    #[cfg(feature = "client")]
    #[test]
    fn messages_have_no_secrets() {
        let address = Address::of("https://u:p@host/a?sig=1234").unwrap();
        for text in ["GET https://u:p@host/a?sig=1234 failed", "GET /a?sig=1234 failed"] {
            let text = address.without_secrets(text);
            assert!(!text.contains("1234") && !text.contains("u:p"), "{text}");
        }
    }
}
