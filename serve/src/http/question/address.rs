//! Finds the URL in the store that a person means. Cost: one batch to the clerk, and a second batch for another
//! spelling if the store does not have the URL. If a text without a scheme may mean several URLs, also the captures of
//! these URLs.

use tonic::Status;
use webstrata_layers::{Uid, only_captured};
use webstrata_url::other_spellings;

use crate::clerk::Pinned;
use crate::protocol::status::{Reason, bad, refuse};

/// For each text, the URL in the spelling of the store, and its UID. A URL that is not in the store has no UID; its
/// first possible spelling is returned. If the store has the URL with http and with https, the one that was captured is
/// returned.
///
/// # Errors
/// BAD_REQUEST for text that is not a URL, or that lacks a scheme while both http and https, or neither, were captured;
/// errors of the clerk.
pub(in crate::http) async fn look_up(pinned: &Pinned, texts: &[&str]) -> Result<Vec<(String, Option<Uid>)>, Status> {
    let meant = texts.iter().map(|text| meant(text)).collect::<Result<Vec<_>, _>>()?;
    let mut uids = pinned.uids(&meant.concat()).await?.into_iter();
    let mut found = Vec::with_capacity(meant.len());
    for urls in meant {
        let first = urls[0].clone();
        let mut present: Vec<(String, Uid)> =
            urls.into_iter().zip(uids.by_ref()).filter_map(|(url, uid)| Some((url, uid?))).collect();
        let both = present.get(..2).map(|both| format!("{} and {}", both[0].0, both[1].0));
        let meant = match both {
            None => present.pop(),
            Some(both) => match captured(pinned, present).await? {
                Some(captured) => Some(captured),
                None => return Err(bad(format!("url: both {both} are in the store; give the scheme"))),
            },
        };
        found.push(meant.map_or((first, None), |(url, uid)| (url, Some(uid))));
    }
    Ok(found)
}

async fn captured(pinned: &Pinned, urls: Vec<(String, Uid)>) -> Result<Option<(String, Uid)>, Status> {
    let uids: Vec<Uid> = urls.iter().map(|&(_, uid)| uid).collect();
    let captures = pinned.captures(&uids).await?;
    Ok(only_captured(urls.into_iter().zip(captures.iter().map(|captures| !captures.is_empty()))))
}

/// Finds one URL that must be in the store. A text without a scheme may also mean the spelling with or without `www.`,
/// if only that one was captured.
///
/// # Errors
/// NOT_IN_STORE, which names another spelling if the store has one; and the errors of [`look_up`].
pub(in crate::http) async fn find(pinned: &Pinned, text: &str) -> Result<(String, Uid), Status> {
    let (url, uid) = look_up(pinned, &[text]).await?.remove(0);
    if let Some(uid) = uid {
        return Ok((url, uid));
    }
    let candidates = meant(text)?;
    let near = other_spellings(&candidates);
    let near = pinned.uids(&near).await?.into_iter().zip(near).filter_map(|(uid, url)| Some((url, uid?)));
    let near: Vec<(String, Uid)> = near.collect();
    let named = near.first().map(|(url, _)| url.clone());
    let is_bare = candidates.len() > 1;
    if is_bare && let Some(captured) = captured(pinned, near).await? {
        return Ok(captured);
    }
    let shown = if is_bare { text.trim() } else { url.as_str() };
    let message = match named {
        Some(near) => format!("{shown} is not in the store, but {near} is"),
        None => format!("{shown} is not in the store, neither as a page nor as the target of a link"),
    };
    Err(refuse(Reason::NotInStore, message, &[("epoch", pinned.epoch())]))
}

/// All spellings of the page that a text names. At least one spelling must be in the store.
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
