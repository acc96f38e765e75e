//! Files of a store beside the rows of its epochs: small files that may hold texts, and directories that no epoch
//! names.
//!
//! Reads the files in `translations`, `watches`, `overviews` and `inputs`, and the names in `rows` and `cells`, in a
//! directory and in S3 alike. Memory: one file.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::error::Error;
use crate::location::Location;
use crate::location::names::ROWS;
use crate::store::gc::CELLS;
use crate::store::inputs::INPUTS;
use crate::store::manifest::history::TRANSLATIONS;
use crate::store::sealed::Sealed;

/// Calls `visit` with each small file: its path as in messages, and its bytes.
///
/// # Errors
/// A directory or a file that cannot be read.
pub fn for_each_small_file(location: &Location, mut visit: impl FnMut(PathBuf, &[u8])) -> Result<(), Error> {
    let storage = location.storage();
    for folder in [TRANSLATIONS, INPUTS].into_iter().chain(Sealed::ALL.map(Sealed::directory)) {
        for name in storage.names(folder)? {
            let path = format!("{folder}/{name}");
            // A file that is removed meanwhile is left out.
            if let Some(bytes) = storage.read(&path)? {
                visit(location.path(&path), &bytes);
            }
        }
    }
    Ok(())
}

/// The directories of rows and of cells that belong to none of the given rows.
///
/// # Errors
/// A directory that cannot be read.
pub fn of_no_row(location: &Location, rows: &BTreeSet<u32>) -> Result<Vec<PathBuf>, Error> {
    let mut found = Vec::new();
    for folder in [ROWS, CELLS] {
        let names = location.storage().names(folder)?;
        let others = names.iter().filter(|name| !name.parse().is_ok_and(|row| rows.contains(&row)));
        found.extend(others.map(|name| location.path(&format!("{folder}/{name}"))));
    }
    Ok(found)
}
