//! Prints the captures of crawl files (WARC, ARC, WAT and others, also compressed), and counts of what was not read:
//! `cargo run -p webstrata-datasets --example captures -- crawl.warc.gz`.

#![expect(clippy::print_stdout, reason = "an example prints what it finds")]

use std::error::Error;
use std::path::PathBuf;
use webstrata_datasets::{Capture, LinkKinds, Tally, inputs, open};

fn main() -> Result<(), Box<dyn Error>> {
    let paths: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let (mut capture, mut tally) = (Capture::default(), Tally::default());
    for input in inputs(&paths)? {
        let mut reader = open(&input, LinkKinds::default())?;
        while reader.read(&mut capture, &mut tally)? {
            // Seconds since 1970, the page, and the number of its links.
            println!("{} {} {} links", capture.time, capture.url, capture.links.iter().count());
        }
    }
    for (finding, count) in tally.counts() {
        println!("{finding:?}: {count}");
    }
    Ok(())
}
