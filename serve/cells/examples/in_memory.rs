//! Compresses a small store into cells, and asks one cell and all cells from memory:
//! `cargo run -p webstrata-cells --example in_memory`.

#![expect(clippy::print_stdout, reason = "an example prints what it finds")]

use std::error::Error;
use webstrata_cells::Cells;
use webstrata_cells::disk::load::{Options, write_cell};
use webstrata_cells::image::Residence;
use webstrata_cells::image::label::partitions;
use webstrata_cells::links::encoding::Encodings;
use webstrata_engine::{Progress, RunOptions};
use webstrata_layers::{Links, Precision, Store, Window};
use webstrata_pipeline::{BuildOptions, build};

fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    let (crawl, path) = (dir.path().join("crawl.jsonl"), dir.path().join("store"));
    let line = |page: usize| {
        let next = page + 1;
        format!(r#"{{"url": "http://example.org/{page}", "ts": "2008", "links": ["/", "/{next}"]}}"#)
    };
    std::fs::write(&crawl, (0..1000).map(|page| line(page) + "\n").collect::<String>())?;
    build(&BuildOptions::new(RunOptions::new(&path), vec![crawl]), &Progress::default())?;

    // One image for each partition, as `webstrata cells` writes them.
    let store = Store::open(&path)?;
    for (row, partition) in partitions(&store) {
        write_cell(&store, &path, row, partition, Options::default())?;
    }
    let cells = Cells::open(&store, Residence::Memory, Encodings::STRATA)?.ok_or("a partition has no image")?;
    for cell in cells.cells() {
        let label = cell.label();
        println!("cell {} of row {}: {} URLs in {} bytes", label.partition, label.row, label.urls, cell.bytes());
    }

    let home = cells.uid("http://example.org/")?.ok_or("the page is not in the store")?;
    let linking = cells.in_links(home, Window::ALWAYS, Precision::Exact)?;
    println!("{} pages link to http://example.org/", linking.len());
    println!("one of them is {}", cells.url(linking[0])?);
    Ok(())
}
