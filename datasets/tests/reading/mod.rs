//! How tests read files.

use std::path::Path;

use webstrata_datasets::{Capture, LinkKinds, Tally, inputs, open};

/// Reads all captures of a file or directory, and the tally.
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

/// The captures of a file that other programs list as pages: those with status 200, or without a status.
#[allow(dead_code, reason = "not every test that reads files compares them with such a list")]
pub(crate) fn read_pages(path: &Path) -> (Vec<Capture>, Tally) {
    let (mut captures, tally) = read_all(path, LinkKinds::default());
    captures.retain(|capture| capture.status.is_none_or(|status| status == 200));
    (captures, tally)
}
