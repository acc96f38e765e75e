//! The epochs that a store has, and when each was committed.
//!
//! Reads all manifests. The time is that of the manifest's file, by the clock of the disk or the
//! server: nothing inside a store tells times, so that the same input gives the same bytes; a copy has its own.

use crate::error::Error;
use crate::location::Location;
use crate::names::manifest_name;
use crate::store::identity::EpochId;
use crate::store::manifest::Manifest;
use crate::store::manifests;

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

/// The epochs of a store, newest first; those that are removed meanwhile are left out.
///
/// # Errors
/// No store; manifests that cannot be read.
pub fn log(location: impl Into<Location>) -> Result<impl Iterator<Item = Result<Committed, Error>>, Error> {
    let location = location.into();
    let manifests = manifests(&location)?;
    if manifests.is_empty() {
        return Err(Error::NotAStore { path: location.path("") });
    }
    Ok(manifests.into_iter().rev().filter_map(move |(id, manifest)| {
        let time = location.storage().modified(&manifest_name(id.epoch)).transpose()?;
        Some(time.map(|time| Committed { id, manifest, time }))
    }))
}
