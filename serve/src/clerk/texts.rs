//! The URLs of the UIDs in an answer. One batch asks for each URL once.

use tonic::Status;
use webstrata_layers::Uid;

use super::Pinned;

/// URLs by UID.
pub(crate) struct Texts {
    uids: Vec<Uid>,
    urls: Vec<String>,
}

impl Texts {
    /// Asks for the URLs of UIDs, which may come in any order and repeatedly.
    pub(crate) async fn of(pinned: &Pinned, mut uids: Vec<Uid>) -> Result<Self, Status> {
        uids.sort_unstable();
        uids.dedup();
        let urls = pinned.urls(&uids).await?;
        Ok(Self { uids, urls })
    }

    /// The URL of a UID; empty for a UID that was not asked for.
    pub(crate) fn get(&self, uid: Uid) -> &str {
        self.uids.binary_search(&uid).ok().and_then(|index| self.urls.get(index)).map_or("", String::as_str)
    }
}
