//! The files of a directory and its subdirectories, for tests that damage each file.

use std::fs;
use std::path::{Path, PathBuf};

/// The files below a directory, in order.
pub(crate) fn files_below(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() { found.extend(files_below(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}
