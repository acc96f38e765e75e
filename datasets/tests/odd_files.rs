//! Files as the world has them: the samples and test files of the projects that read and write WARC, ARC and WAT.

mod shared;

use shared::{read_all, shared};
use webstrata_datasets::{LinkKinds, inputs};

#[test]
fn dump() {
    for dir in ["data/samples", "data/vectors/warc"] {
        let Some(dir) = shared(dir) else { return };
        for input in inputs(&[dir.clone()]).unwrap() {
            let (captures, tally) = read_all(&input.path, LinkKinds::default());
            let links: usize = captures.iter().map(|c| c.links.len()).sum();
            println!(
                "{} captures {} links {links} {:?}",
                input.path.strip_prefix(&dir).unwrap().display(),
                captures.len(),
                tally.counts().collect::<Vec<_>>()
            );
            for e in tally.examples() {
                println!("      {:?} {} {}", e.finding, e.offset, e.detail);
            }
        }
    }
}
