//! Finds the URL in the store that a person means. Cost: one batch to the clerk, and a second batch for a hint if the
//! store has no such URL.

use tonic::Status;
use webstrata_layers::Uid;
use webstrata_url::other_spellings;

use crate::clerk::Pinned;
use crate::protocol::status::{Reason, bad, refuse};

/// For each text the URL as the store spells it, and its UID. A URL that is not in the store has no UID; its first
/// possible spelling is returned.
///
/// # Errors
/// BAD_REQUEST for text that is not a URL, or that lacks a scheme while the store has both http and https; errors of
/// the clerk.
pub(in crate::http) async fn look_up(pinned: &Pinned, texts: &[&str]) -> Result<Vec<(String, Option<Uid>)>, Status> {
    let meant = texts.iter().map(|text| meant(text)).collect::<Result<Vec<_>, _>>()?;
    let mut uids = pinned.uids(&meant.concat()).await?.into_iter();
    let mut found = Vec::with_capacity(meant.len());
    for urls in meant {
        let first = urls[0].clone();
        let mut matches = urls.into_iter().zip(uids.by_ref()).filter(|(_, uid)| uid.is_some());
        let found_url = matches.next();
        if let (Some((one, _)), Some((other, _))) = (&found_url, matches.next()) {
            return Err(bad(format!("url: both {one} and {other} are in the store; give the scheme")));
        }
        // The remaining answers of this text must be skipped.
        matches.for_each(drop);
        found.push(found_url.unwrap_or((first, None)));
    }
    Ok(found)
}

/// Finds one URL that must be in the store.
///
/// # Errors
/// NOT_IN_STORE, which names another spelling if the store has one; and the errors of [`look_up`].
pub(in crate::http) async fn find(pinned: &Pinned, text: &str) -> Result<(String, Uid), Status> {
    let (url, uid) = look_up(pinned, &[text]).await?.remove(0);
    if let Some(uid) = uid {
        return Ok((url, uid));
    }
    let near = other_spellings(&meant(text)?);
    let known = pinned.uids(&near).await?.into_iter().zip(&near).find(|(uid, _)| uid.is_some());
    let shown = if text.contains("://") { url.as_str() } else { text.trim() };
    let message = match known {
        Some((_, near)) => format!("{shown} is not in the store, but {near} is"),
        None => format!("{shown} is not in the store, neither as a page nor as the target of a link"),
    };
    Err(refuse(Reason::NotInStore, message, &[("epoch", pinned.epoch())]))
}

/// All spellings of the page that a text names, of which one at least must be in the store.
///
/// # Errors
/// BAD_REQUEST for text that is not a URL; NOT_IN_STORE.
pub(in crate::http) async fn spellings_of(pinned: &Pinned, text: &str) -> Result<Vec<Uid>, Status> {
    let url = meant(text)?.swap_remove(0);
    let found = pinned.spellings(&url).await?;
    if found.is_empty() {
        let message = format!("no spelling of {url} is in the store, neither as a page nor as the target of a link");
        return Err(refuse(Reason::NotInStore, message, &[("epoch", pinned.epoch())]));
    }
    Ok(found)
}

/// The URLs that a text may mean.
///
/// # Errors
/// BAD_REQUEST for text that is not a URL.
pub(in crate::http) fn meant(text: &str) -> Result<Vec<String>, Status> {
    webstrata_url::meant(text).map_err(|error| bad(format!("url: {text:?}: {error}")))
}
