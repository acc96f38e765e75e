//! Where test data lies that is too large for the repository, and how tests read files.

use std::path::{Path, PathBuf};

use webstrata_datasets::{Capture, LinkKinds, Tally, inputs, open};

/// A file or directory of the shared test data; `None`, with a word on it, where there is none.
#[allow(dead_code, reason = "not every test file uses it")]
pub(crate) fn shared(name: &str) -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared");
    let directory = std::env::var_os("WEBSTRATA_SHARED").map_or(beside, PathBuf::from);
    let path = directory.join(name);
    if path.exists() {
        return Some(path);
    }
    say(&format!("skipped: {} is missing", path.display()));
    None
}

/// All captures of a file or directory, and what was counted.
pub(crate) fn read_all(path: &Path, kinds: LinkKinds) -> (Vec<Capture>, Tally) {
    let mut captures = Vec::new();
    let mut tally = Tally::default();
    for input in inputs(&[path.to_owned()]).unwrap() {
        let mut reader = open(&input, kinds).unwrap();
        let mut capture = Capture::default();
        while reader.read(&mut capture, &mut tally).unwrap() {
            captures.push(capture.clone());
        }
    }
    (captures, tally)
}

#[expect(clippy::print_stdout, reason = "a skipped test says so")]
#[allow(dead_code, reason = "not every test file uses it")]
fn say(text: &str) {
    println!("{text}");
}
