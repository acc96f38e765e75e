//! A cluster of real processes grows from three servers to six under load, and shrinks to three others. No call fails,
//! no answer is wrong, and hardly more bytes move than the cells that belong to the new servers.
//!
//! The cluster waits for servers that join within the settle time of members, so that each cell moves once. The store
//! has no images of cells: the first servers make the images from layers, and all other servers fetch them.
//! `WEBSTRATA_SEED` (1) selects the crawl.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]
#![expect(clippy::print_stdout, reason = "what was measured")]

mod cluster;
mod servers;

use cluster::{Cluster, run};
use servers::Server;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use webstrata_cells::image::label::partitions;
use webstrata_layers::Store;
use webstrata_serve::clerk::{Clerk, ClerkOptions};
use webstrata_serve::cluster::placement::{self, place};
use webstrata_serve::dial::Dialer;
use webstrata_serve::protocol::proto::CellName;
use webstrata_tests::crawls::Size;
use webstrata_tests::load::Load;
use webstrata_tests::number;
use webstrata_tests::story::Story;

const SIZE: Size = Size { pages: 600, captures: 4000, links: 12 };
const REPLICAS: usize = 2;
const PARTITION_URLS: u64 = 25;
const WHOLE: Duration = Duration::from_secs(90);

/// The value of a server's metric.
fn figure(server: &Server, name: &str) -> u64 {
    let mut stream = TcpStream::connect(server.address).unwrap();
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", server.address).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no {name} in {text}"))
}

/// The servers of each cell, by row and partition, in order.
type Placed = BTreeMap<(u32, u32), Vec<String>>;

/// The placement of all cells on the servers with these names.
fn placed(dir: &Path, names: &[String]) -> Placed {
    let store = Store::open(dir.join("store")).unwrap();
    let mut rows = BTreeMap::<u32, Vec<placement::Load>>::new();
    partitions(&store)
        .for_each(|(row, partition)| rows.entry(row.row).or_default().push(placement::Load::of(partition)));
    let mut placed = Placed::new();
    for (row, cells) in rows {
        for (cell, (order, copies)) in cells.iter().zip(place(row, &cells, names, &vec![true; names.len()], REPLICAS)) {
            placed.insert((row, cell.partition), order[..copies].iter().map(|&at| names[at].clone()).collect());
        }
    }
    placed
}

/// The bytes of a cell's image on a server.
fn bytes(dir: &Path, server: &str, (row, partition): (u32, u32)) -> u64 {
    let file = dir.join(server).join(format!("cells/{row:06}/part-{partition:05}.cell"));
    file.metadata().unwrap_or_else(|error| panic!("{}: {error}", file.display())).len()
}

/// Returns when all cells are on exactly the servers that they belong to. Returns the names of the servers, and the
/// placement.
fn settle(cluster: &Cluster, clerk: &Clerk, story: &Story) -> (Vec<String>, Placed) {
    let names: Vec<String> = cluster.servers.iter().map(|server| server.name.clone()).collect();
    let (cells, begun) = (placed(story.dir(), &names), Instant::now());
    let settled = || {
        let map = clerk.map();
        let names = |row, partition| map.holders(CellName { row, partition }).map(|server| &server.name);
        cells.iter().all(|(&(row, partition), placed)| names(row, partition).eq(placed))
    };
    while !settled() {
        assert!(begun.elapsed() < WHOLE, "cells are not where they belong: {:#?}", clerk.map());
        thread::sleep(Duration::from_millis(50));
    }
    (names, cells)
}

#[test]
fn a_cluster_grows_and_shrinks_under_load_and_moves_what_has_to_move() {
    let seed = number("WEBSTRATA_SEED", 1);
    let story = Arc::new(Story::new(seed, SIZE, 2, PARTITION_URLS));
    let mut cluster =
        Cluster::new(story.dir(), "--gossip 0.1 --settle 2 --watch 0.2 --grace 20 --replicas 2 --drain 60");
    (0..3).for_each(|_| _ = cluster.start(None));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let addresses: Vec<String> = cluster.servers.iter().map(|server| server.address.to_string()).collect();
    let clerk = runtime.block_on(Clerk::connect(&addresses, Dialer::default(), ClerkOptions::default())).unwrap();
    cluster.whole(&clerk, REPLICAS, WHOLE);
    let fetched = |cluster: &Cluster| -> u64 {
        cluster.servers.iter().map(|server| figure(server, "webstrata_fetched_bytes_total")).sum()
    };
    // The first three servers finish sending cells to one another.
    settle(&cluster, &clerk, &story);
    let before = fetched(&cluster);
    let load = Load::start(&runtime, &clerk, &story, 4, seed);

    let begun = Instant::now();
    for _ in 0..3 {
        cluster.start(None);
        thread::sleep(Duration::from_millis(300));
    }
    cluster.whole(&clerk, REPLICAS, WHOLE);
    let (names, cells) = settle(&cluster, &clerk, &story);
    let (grown, moved) = (begun.elapsed(), fetched(&cluster) - before);
    let copies = cells.iter().flat_map(|(&cell, placed)| placed.iter().map(move |name| (name, cell)));
    let came = copies.filter(|(name, _)| names[3..].contains(name));
    let ideal: u64 = came.map(|(name, cell)| bytes(story.dir(), name, cell)).sum();
    println!(
        "{} cells; grown in {grown:?}; moved {moved} bytes, ideal {ideal}: {:.3}",
        cells.len(),
        moved as f64 / ideal as f64
    );

    let begun = Instant::now();
    let first = names[..3].iter().map(|name| cluster.take(name)).collect::<Vec<Server>>();
    thread::scope(|scope| first.into_iter().for_each(|server| _ = scope.spawn(|| server.leave(WHOLE))));
    let shrunk = begun.elapsed();
    cluster.whole(&clerk, REPLICAS, WHOLE);
    run(&story, &format!("update STORE DIR/batch-1 -w 1 --partition-urls {PARTITION_URLS}"));
    while clerk.map().current < 2 {
        assert!(begun.elapsed() < 2 * WHOLE, "the next epoch does not become current: {:#?}", clerk.map());
        thread::sleep(Duration::from_millis(50));
    }
    thread::sleep(Duration::from_millis(500));
    let report = load.finish(&runtime);
    println!("shrunk in {shrunk:?}; calls {:?}; epochs {:?}; {:?}", report.calls, report.epochs, clerk.counts());
    println!("p50, p99, longest: {:?}", report.latencies(|_| true));
    report.assert_sound();
    assert!(cells.len() >= 60, "{}", cells.len());
    assert!(moved as f64 <= 1.2 * ideal as f64, "{moved} bytes moved, {ideal} had to");
    assert!(report.epochs.len() > 1, "{:?}", report.epochs);
}
