//! Which of the URLs that people may mean the store has. Cost: one batch to the clerk; one more for a hint where there
//! is no such URL.

use tonic::Status;
use webstrata_url::neighbours;

use crate::clerk::Pinned;
use crate::protocol::status::{Reason, bad, refuse};

/// The UID of each text's URL, and the URL as the store spells it; of one that is not in the store no UID, and the
/// first URL that may be meant.
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
            return Err(bad(format!("url: both {one} and {other} are in the store; give the scheme")));
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
        Some((_, near)) => format!("{shown} is not in the store, but {near} is"),
        None => format!("{shown} is not in the store, neither as a page nor as the target of a link"),
    };
    Err(refuse(Reason::NotInStore, message, &[("epoch", pinned.epoch())]))
}

/// The URLs that may be meant.
///
/// # Errors
/// BAD_REQUEST for what is no URL.
pub(super) fn meant(text: &str) -> Result<Vec<String>, Status> {
    webstrata_url::meant(text).map_err(|error| bad(format!("url: {text:?}: {error}")))
}
