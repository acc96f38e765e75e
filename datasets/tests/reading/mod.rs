//! How tests read files.

use std::path::Path;

use webstrata_datasets::{Capture, LinkKinds, Tally, inputs, open};

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
