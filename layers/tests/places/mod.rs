//! The places where a store can lie, for tests that must hold in each.

use webstrata_layers::Location;

/// Each kind of place, empty; the directory goes with the first value.
pub(crate) fn places() -> (tempfile::TempDir, Vec<Location>) {
    let dir = tempfile::tempdir().expect("a directory");
    let places = vec![
        Location::from(dir.path().join("store")),
        #[cfg(feature = "s3")]
        Location::in_memory(),
    ];
    (dir, places)
}
