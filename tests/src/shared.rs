//! The place of the shared test data: histories of real sites, graphs, and test files of other projects, which are too
//! large for the repository.
//!
//! Tests that read this data are ignored by default and run with `-- --ignored`. They fail if the data is missing.
//! Crates below `webstrata_tests` include this file by its path, so this file imports only `std`.

use std::path::{Path, PathBuf};

/// A file or directory of the shared test data: below `WEBSTRATA_SHARED` (a relative path begins at the workspace),
/// else below `shared` beside the workspace.
pub(crate) fn shared(name: &str) -> PathBuf {
    let mut ancestors = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let workspace = ancestors.find(|dir| dir.join("Cargo.lock").is_file()).expect("the workspace has a Cargo.lock");
    let path = workspace.join(std::env::var_os("WEBSTRATA_SHARED").unwrap_or_else(|| "../shared".into())).join(name);
    assert!(path.exists(), "no {}: set WEBSTRATA_SHARED to the directory of the shared test data", path.display());
    path
}
