//! The kinds of locations, for tests that must hold in each.

use webstrata_layers::Location;

/// An empty location of each kind. The directory is removed when the first value is dropped.
pub(crate) fn places() -> (tempfile::TempDir, Vec<Location>) {
    let dir = tempfile::tempdir().expect("a directory");
    let places = vec![
        Location::from(dir.path().join("store")),
        #[cfg(feature = "remote")]
        Location::in_memory(),
    ];
    (dir, places)
}
