//! The epochs that a store has, and when each was committed.
//!
//! Reads their manifests. The time is that of the manifest's file, by the clock of the disk or the
//! server: nothing inside a store tells times, so that the same input gives the same bytes; a copy has its own.

use crate::error::Error;
use crate::location::Location;
use crate::names::manifest_name;
use crate::store::identity::EpochId;
use crate::store::manifest::Manifest;
use crate::store::{current, epochs, read_manifest};

/// An epoch and when it was made.
#[derive(Clone, Debug)]
pub struct Committed {
    /// Which it is.
    pub id: EpochId,
    /// What it has.
    pub manifest: Manifest,
    /// Seconds since 1970.
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

/// The epochs of a store, newest first; those that are removed meanwhile are left out. Each manifest is read when its
/// turn comes.
///
/// # Errors
/// No store; manifests that cannot be read.
pub fn log(location: impl Into<Location>) -> Result<impl Iterator<Item = Result<Committed, Error>>, Error> {
    let location = location.into();
    let newest = current(&location)?.ok_or_else(|| Error::NotAStore { path: location.path("") })?;
    let kept = epochs(&location)?;
    let past = read_manifest(&location, newest)?.history.into_iter().rev().map(|past| past.id());
    let ids = std::iter::once(newest).chain(past.filter(move |past| kept.contains(&past.epoch)));
    Ok(ids.filter_map(move |id| committed(&location, id).transpose()))
}
