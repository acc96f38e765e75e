//! URLs as people write them: their canonical text, and which of them the store has.
//!
//! Canonical is the WHATWG serialisation without fragment, of http and https URLs alone, as stores have it. Where the scheme
//! is missing, http and https are tried. Cost: one batch to the clerk; one more for a hint where there is no such URL.

use tonic::Status;
use url::Url;

use crate::clerk::Pinned;
use crate::protocol::status::{Reason, bad, refuse};

/// The canonical text of an absolute URL; `None` for what is none or is neither http nor https.
#[must_use]
pub fn canonical(text: &str) -> Option<String> {
    let mut url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
    url.set_fragment(None);
    // The standard escapes it, the parser does not yet.
    if url.path().contains('^') {
        let path = url.path().replace('^', "%5E");
        url.set_path(&path);
    }
    Some(url.into())
}

/// The URLs that may be meant: one, or that of http and that of https.
///
/// # Errors
/// BAD_REQUEST for what is no URL.
pub(super) fn meant(text: &str) -> Result<Vec<String>, Status> {
    let bare = text.trim();
    let written = if bare.contains("://") {
        vec![canonical(bare)]
    } else {
        ["http", "https"].map(|scheme| canonical(&format!("{scheme}://{bare}"))).to_vec()
    };
    let urls: Option<Vec<String>> = written.into_iter().collect();
    urls.filter(|_| !bare.is_empty()).ok_or_else(|| bad(format!("url: {text:?} is no http or https URL")))
}

/// The UID of each text's URL, and the URL as the store spells it; of one that is not in the store no UID, and the first URL
/// that may be meant.
///
/// # Errors
/// BAD_REQUEST for what is no URL, or lacks a scheme and is there with both; what the clerk fails with.
pub(super) async fn look_up(pinned: &Pinned, texts: &[&str]) -> Result<Vec<(String, Option<u64>)>, Status> {
    let meant = texts.iter().map(|text| meant(text)).collect::<Result<Vec<_>, _>>()?;
    let mut uids = pinned.uids(&meant.concat()).await?.into_iter();
    let mut found = Vec::with_capacity(meant.len());
    for urls in meant {
        let first = urls[0].clone();
        let mut there = urls.into_iter().zip(uids.by_ref()).filter(|(_, uid)| uid.is_some());
        let own = there.next();
        if let (Some((one, _)), Some((other, _))) = (&own, there.next()) {
            return Err(bad(format!("url: {one} and {other} are in the store; write which one")));
        }
        // The rest of its answers are of this text, too.
        there.for_each(drop);
        found.push(own.unwrap_or((first, None)));
    }
    Ok(found)
}

/// A URL that is in the store.
///
/// # Errors
/// NOT_IN_STORE, which names the same address in another spelling where that is in the store; and as [`look_up`].
pub(super) async fn find(pinned: &Pinned, text: &str) -> Result<(String, u64), Status> {
    let (url, uid) = look_up(pinned, &[text]).await?.remove(0);
    if let Some(uid) = uid {
        return Ok((url, uid));
    }
    let near = neighbours(&meant(text)?);
    let there = pinned.uids(&near).await?.into_iter().zip(&near).find(|(uid, _)| uid.is_some());
    let shown = if text.contains("://") { url.as_str() } else { text.trim() };
    let message = match there {
        Some((_, near)) => format!("{shown} is not in the store; {near} is"),
        None => format!("{shown} is not in the store, neither as a page nor as the target of a link"),
    };
    Err(refuse(Reason::NotInStore, message, &[("epoch", pinned.epoch())]))
}

/// The same URLs under the other scheme, with and without `www.`, with and without a slash at the end.
#[must_use]
pub fn neighbours(urls: &[String]) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for (_, rest) in urls.iter().filter_map(|url| url.split_once("://")) {
        let www = rest.strip_prefix("www.").map_or_else(|| format!("www.{rest}"), str::to_owned);
        for rest in [rest, &www] {
            let slash = rest.strip_suffix('/').map_or_else(|| format!("{rest}/"), str::to_owned);
            all.extend(
                [rest, &slash].iter().flat_map(|rest| ["http", "https"].map(|scheme| format!("{scheme}://{rest}"))),
            );
        }
    }
    all.retain(|url| !urls.contains(url) && canonical(url).as_ref() == Some(url));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_missing_scheme_is_both() {
        assert_eq!(meant(" Example.org/a#b ").unwrap(), ["http://example.org/a", "https://example.org/a"]);
        assert_eq!(meant("HTTPS://example.org").unwrap(), ["https://example.org/"]);
        for text in ["", " ", "ftp://example.org/", "http://", "http://a b/", "exa mple"] {
            assert_eq!(Reason::of(&meant(text).unwrap_err()), Some(Reason::BadRequest), "{text:?}");
        }
    }

    #[test]
    fn neighbours_are_other_spellings_of_one_address() {
        let near = neighbours(&["http://example.org/a".to_owned()]);
        for url in ["https://example.org/a", "http://www.example.org/a", "http://example.org/a/"] {
            assert!(near.iter().any(|found| found == url), "{url} in {near:?}");
        }
        assert!(!near.iter().any(|found| found == "http://example.org/a"));
    }

    proptest! {
        #[test]
        fn canonical_text_is_a_fixed_point(tail in "[ -~é\t]{0,40}") {
            if let Some(url) = canonical(&format!("http://{tail}")) {
                prop_assert_eq!(canonical(&url), Some(url.clone()));
                prop_assert!(!url.contains('#'));
            }
        }
    }
}
