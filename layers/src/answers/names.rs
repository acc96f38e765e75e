//! URLs and UIDs.

use schemars::JsonSchema;
use serde::Serialize;

use super::Time;
use crate::record::uid::Uid;

/// A URL and its UID.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "NamedUrl")]
pub struct Named {
    /// The URL.
    pub url: String,
    /// Its UID.
    pub uid: Uid,
}

/// URLs that match, in order of UIDs.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Urls {
    /// The epoch of the answer. UIDs are valid in this epoch only.
    pub epoch: u64,
    /// The URLs.
    pub urls: Vec<Named>,
    /// There is more. Repeat the question with this key to continue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resume_key: Option<String>,
}

/// A URL and its UID, if it is in the store.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "FoundUrl")]
pub struct Found {
    /// The URL.
    pub url: String,
    /// Its UID; null if the URL is not in the store.
    pub uid: Option<Uid>,
}

/// The UIDs of URLs, in the order of the question.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Uids {
    /// The epoch of the answer. UIDs are valid in this epoch only.
    pub epoch: u64,
    /// The URLs with their UIDs.
    pub uids: Vec<Found>,
}

/// The URL of a UID.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct UrlOfUid {
    /// The epoch of the answer. UIDs are valid in this epoch only.
    pub epoch: u64,
    /// The URL.
    #[serde(flatten)]
    pub named: Named,
}

/// UIDs of one epoch in another epoch.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Translated {
    /// The epoch of the translated UIDs.
    pub epoch: u64,
    /// The epoch of the UIDs in the question.
    pub from: u64,
    /// The epoch of the translated UIDs.
    pub to: u64,
    /// The UIDs, in the order of the question.
    pub uids: Vec<TranslatedUid>,
}

/// A UID in another epoch.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct TranslatedUid {
    /// The UID in the question.
    pub uid: Uid,
    /// The UID of the same URL; null if the URL is not in that epoch.
    pub translated: Option<Uid>,
}

/// Suggestions for a search field.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Suggested {
    /// The epoch of the answer.
    pub epoch: u64,
    /// Pages, captured ones first.
    pub pages: Vec<SuggestedPage>,
    /// Hosts, those with the most URLs first.
    pub hosts: Vec<SuggestedHost>,
}

/// A suggested page.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SuggestedPage {
    /// The URL.
    pub url: String,
    /// Its captures; 0 for a URL that was never captured.
    pub captures: usize,
    /// The number of pages that ever linked to the URL.
    pub inlinks: u64,
    /// The first capture, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<Time>,
    /// The last capture, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<Time>,
}

/// A suggested host.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SuggestedHost {
    /// The name of the host.
    pub host: String,
    /// Its URLs.
    pub urls: u64,
}
