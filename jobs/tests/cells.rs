//! `cells`, `check` and servers with cells of links that compress best, with damaged cells, and with cells that cannot
//! be made.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod commands;
mod servers;

use commands::{command, run, succeeds};
use servers::Server;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

/// A store of `pages` pages that all link to one hub.
fn hub(dir: &Path, pages: usize) {
    let line = |page| {
        format!(r#"{{"url":"http://p{page}.example/","ts":"20200101000000","links":["http://hub.example/"]}}"#) + "\n"
    };
    fs::write(dir.join("hub.jsonl"), (0..pages).map(line).collect::<String>()).unwrap();
    succeeds(dir, "build {}/hub.jsonl --out {}/store");
}

const IMAGE: &str = "store/cells/000001/part-00000.cell";
const LAYER: &str = "store/rows/000001/il/part-00000.parquet";

/// Changes one bit in the middle of a file. Returns the bytes before the change.
fn damage(path: &Path) -> Vec<u8> {
    let whole = fs::read(path).unwrap();
    let mut damaged = whole.clone();
    damaged[whole.len() / 2] ^= 4;
    fs::write(path, damaged).unwrap();
    whole
}

#[test]
fn a_hub_of_any_size_is_answered_from_cells() {
    for pages in [300, 301, 4096] {
        let dir = tempfile::tempdir().unwrap();
        hub(dir.path(), pages);
        for codec in ["strata", "strata-speed", "strata-thin", "csr"] {
            succeeds(dir.path(), &format!("cells {{}}/store --codec {codec}"));
            let sources = succeeds(dir.path(), "links {}/store http://hub.example/ --in");
            assert_eq!(sources.lines().count(), pages, "{codec}");
            assert!(succeeds(dir.path(), "check {}/store").contains("; 1 cell)"));
        }
    }
}

#[test]
fn check_finds_cells_that_are_damaged_or_of_other_layers() {
    let dir = tempfile::tempdir().unwrap();
    hub(dir.path(), 20);
    let of_cells = |line: &str| -> serde_json::Value { serde_json::from_slice(&run(dir.path(), line).stdout).unwrap() };
    assert_eq!(of_cells("check {}/store --format json")["cells"], 0);
    succeeds(dir.path(), "cells {}/store");
    let sound = of_cells("check {}/store --format json");
    assert_eq!((&sound["cells"], &sound["problems_found"]), (&1.into(), &0.into()));
    let image = dir.path().join(IMAGE);
    assert_eq!(sound["cell_bytes"], image.metadata().unwrap().len());

    let says = |problem: &str| {
        let output = run(dir.path(), "check {}/store");
        let said = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(&image.display().to_string()) && said.contains(problem), "{problem}: {said}");
        assert!(said.contains("store: 1 problem (") && said.ends_with(" files and 1 cell read)\n"), "{said}");
    };
    let whole = damage(&image);
    says("a section does not have its checksum");
    fs::write(&image, &whole[..whole.len() - 64]).unwrap();
    says("it is cut off");
    // `cells` makes the damaged cell again.
    assert!(succeeds(dir.path(), "cells {}/store").contains("1 of them made now"));
    succeeds(dir.path(), "check {}/store");
    // Another build, of the same pages and one more page.
    fs::rename(dir.path().join("store"), dir.path().join("other")).unwrap();
    hub(dir.path(), 21);
    fs::create_dir_all(image.parent().unwrap()).unwrap();
    fs::copy(dir.path().join("other/cells/000001/part-00000.cell"), &image).unwrap();
    says("written from other layers");
}

/// Starts a server of the store in a directory.
fn serve(dir: &Path) -> Server {
    Server::start(&mut command(dir, "serve {}/store --listen 127.0.0.1:0 --data {}/images"), dir.join("log"))
}

#[test]
fn a_server_that_cannot_make_a_cell_says_why_and_waits_longer_each_time() {
    let dir = tempfile::tempdir().unwrap();
    hub(dir.path(), 20);
    let layer = dir.path().join(LAYER);
    let whole = damage(&layer);
    let server = serve(dir.path());
    for (tries, wait) in [(1, "1s"), (2, "2s")] {
        let line = server.says("cannot make or fetch a cell");
        for part in ["row=1", "partition=0", &format!("tries={tries}"), &format!("wait={wait}"), LAYER] {
            assert!(line.contains(part), "{part}: {line}");
        }
    }
    // The metrics follow the log within a second.
    thread::sleep(Duration::from_millis(1200));
    let (status, ready) = server.get("/readyz").unwrap();
    assert_eq!(status, 503, "{ready}");
    for part in ["not ready: 1 cells are missing", "row 1, partition 0 failed 2 times", "after 2 s", LAYER] {
        assert!(ready.contains(part), "{part}: {ready}");
    }
    let (_, metrics) = server.get("/metrics").unwrap();
    assert!(metrics.contains("\nwebstrata_cells_failed_total 2\n"), "{metrics}");
    assert!(metrics.contains("\nwebstrata_cells_wanted 1\n"), "{metrics}");
    fs::write(&layer, whole).unwrap();
    server.until(200);
    assert_eq!(server.get("/v1/links?url=http://hub.example/&direction=in").unwrap().0, 200);
}

#[test]
fn a_server_makes_the_cell_whose_image_in_the_store_is_damaged_and_says_so() {
    let dir = tempfile::tempdir().unwrap();
    hub(dir.path(), 400);
    succeeds(dir.path(), "cells {}/store");
    damage(&dir.path().join(IMAGE));
    let server = serve(dir.path());
    let line = server.says("the image of a cell is not sound, and is not used");
    assert!(line.contains(IMAGE) && line.contains("does not have its checksum"), "{line}");
    server.until(200);
    assert!(dir.path().join("images/cells/000001/part-00000.cell").exists());
    assert!(server.get("/metrics").unwrap().1.contains("\nwebstrata_cells_failed_total 0\n"));
}
