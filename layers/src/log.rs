//! The epochs that a store has, and when each was committed.
//!
//! Reads manifests, one at a time, newest first. The time is that of the manifest's file, by the clock of the disk or the
//! server: nothing inside a store tells times, so that the same input gives the same bytes; a copy has its own.

use crate::error::Error;
use crate::location::Location;
use crate::manifest::Manifest;
use crate::store::{current, epochs, manifest_name, read_manifest};

/// An epoch and when it was made.
#[derive(Clone, Debug)]
pub struct Committed {
    /// What it has.
    pub manifest: Manifest,
    /// Seconds since 1970.
    pub time: i64,
}

/// The epochs of a store, newest first; those that are removed meanwhile are left out.
///
/// # Errors
/// No store; later, manifests that cannot be read.
pub fn log(location: impl Into<Location>) -> Result<impl Iterator<Item = Result<Committed, Error>>, Error> {
    let location = location.into();
    let current = current(&location)?.ok_or_else(|| Error::NotAStore { path: location.path("") })?;
    let numbers = epochs(&location)?.into_iter().rev().filter(move |&epoch| epoch <= current);
    Ok(numbers.filter_map(move |epoch| {
        let read = || -> Result<Option<Committed>, Error> {
            let Some(time) = location.place().modified(&manifest_name(epoch))? else { return Ok(None) };
            match read_manifest(&location, epoch) {
                Ok(manifest) => Ok(Some(Committed { manifest, time })),
                Err(Error::MissingEpoch { .. }) => Ok(None),
                Err(error) => Err(error),
            }
        };
        read().transpose()
    }))
}
