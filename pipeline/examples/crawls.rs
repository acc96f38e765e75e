//! Builds a store from a crawl, adds a second crawl, and prints what changed on a page between them:
//! `cargo run -p webstrata-pipeline --example crawls`.
//!
//! The example writes the crawls itself, as JSON lines in a temporary directory. Any files that `webstrata build` reads
//! can stand in their place.

#![expect(clippy::print_stdout, reason = "an example prints what it finds")]

use std::error::Error;
use std::path::{Path, PathBuf};
use webstrata_engine::{Progress, RunOptions};
use webstrata_layers::{Links, Reader, Store, format_time};
use webstrata_pipeline::{BuildOptions, build};

const PAGE: &str = "http://example.org/";

fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    let june = crawl(dir.path(), "20080601", r#""/about", "http://example.com/""#)?;
    let july = crawl(dir.path(), "20080701", r#""/about", "/contact""#)?;

    // One worker and 1 GiB of memory. A larger crawl takes `workers` and `memory_max`.
    let run = RunOptions::new(dir.path().join("store"));
    let progress = Progress::default();
    build(&BuildOptions::new(run.clone(), vec![june]), &progress)?;
    let second = BuildOptions { update: true, ..BuildOptions::new(run.clone(), vec![july]) };
    let report = build(&second, &progress)?;
    println!("epoch {}: {} captures were added", report.epoch, report.counts.captures);

    let reader = Reader::new(Store::open(&run.store)?, 64 << 20);
    let page = reader.uid(PAGE)?.ok_or("the page is not in the store")?;
    for lifespan in reader.lifespans(page)? {
        let (first, last) = (format_time(lifespan.first), format_time(lifespan.last));
        println!("{} from {first} to {last}", reader.url(lifespan.link)?);
    }
    Ok(())
}

/// Writes a crawl of one page.
fn crawl(dir: &Path, day: &str, links: &str) -> std::io::Result<PathBuf> {
    let path = dir.join(format!("{day}.jsonl"));
    std::fs::write(&path, format!("{{\"url\": \"{PAGE}\", \"ts\": \"{day}\", \"links\": [{links}]}}\n"))?;
    Ok(path)
}
