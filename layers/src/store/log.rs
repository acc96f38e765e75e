//! The epochs that a store has, and the time when each was committed.
//!
//! Reads the manifests. The time of an epoch is the modification time of the manifest's file, by the clock of the disk
//! or the server. Nothing inside a store has times of commits, so that the same input gives the same bytes. A copy of a
//! store therefore has other times.

use crate::error::Error;
use crate::identity::EpochId;
use crate::location::Location;
use crate::location::names::manifest_name;
use crate::store::manifest::Manifest;
use crate::store::{current, epochs, read_manifest};

/// An epoch and when it was made.
#[derive(Clone, Debug)]
pub struct Committed {
    /// The identity of the epoch.
    pub id: EpochId,
    /// The manifest of the epoch.
    pub manifest: Manifest,
    /// When the epoch was committed, in seconds since 1970.
    pub time: i64,
}

/// An epoch; `None` if it is removed.
fn committed(location: &Location, id: EpochId) -> Result<Option<Committed>, Error> {
    let manifest = match read_manifest(location, id) {
        Err(Error::MissingEpoch { .. }) => return Ok(None),
        read => read?,
    };
    let time = location.storage().modified(&manifest_name(id.epoch))?;
    Ok(time.map(|time| Committed { id, manifest, time }))
}

/// The epochs of a store, newest first. Epochs that are removed meanwhile are left out. The iterator reads each
/// manifest when it reaches the epoch.
///
/// # Errors
/// There is no store, or a manifest cannot be read.
pub fn log(location: impl Into<Location>) -> Result<impl Iterator<Item = Result<Committed, Error>>, Error> {
    let location = location.into();
    let newest = current(&location)?.ok_or_else(|| Error::NotAStore { path: location.path("") })?;
    let kept = epochs(&location)?;
    let past = read_manifest(&location, newest)?.history.into_iter().rev().map(|past| past.id());
    let ids = std::iter::once(newest).chain(past.filter(move |past| kept.contains(&past.epoch)));
    Ok(ids.filter_map(move |id| committed(&location, id).transpose()))
}
