//! The doors by which bytes of strangers come in: crawl files, compressed crawl files, pages, manifests. The bodies of
//! the fuzz targets read the inputs of `fuzz/corpus`, and random changes of these inputs.
//!
//! Damage is counted or an error. Only a panic or a hang fails the test. `WEBSTRATA_PROBES=rounds,seed` makes more
//! changes, from another seed.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::fs;
use std::panic::catch_unwind;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use webstrata_cells::bench::Random;
use webstrata_tests::workspace;

/// Changes of each input.
const ROUNDS: u64 = 300;

/// The inputs of a target.
fn corpus(target: &str) -> Vec<PathBuf> {
    let directory = workspace().join("fuzz/corpus").join(target);
    let mut paths: Vec<PathBuf> = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "{target}: no inputs");
    paths
}

/// Changes some bytes, cuts a piece out, or repeats a piece.
fn changed(input: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = input.to_vec();
    for _ in 0..=random.below(3) {
        let length = bytes.len() as u64;
        if length == 0 {
            break;
        }
        let start = random.below(length);
        let end = start + random.below((length - start).min(40)) + 1;
        let [start, end] = [start, end].map(|at| usize::try_from(at).unwrap());
        match random.below(4) {
            0 => bytes[start] = u8::try_from(random.below(256)).unwrap(),
            1 => bytes[start] ^= 1 << random.below(8),
            2 => drop(bytes.drain(start..end)),
            _ => {
                let piece = bytes[start..end].to_vec();
                let at = usize::try_from(random.below(length)).unwrap();
                bytes.splice(at..at, piece);
            }
        }
    }
    bytes
}

/// Reads the inputs of a target and changes of them. `is_read` says whether it found anything.
fn probe(target: &str, is_read: fn(&[u8]) -> bool) {
    let wanted = std::env::var("WEBSTRATA_PROBES").ok();
    let wanted = wanted.as_deref().and_then(|text| text.split_once(','));
    let (rounds, seed) = wanted.map_or((ROUNDS, 12), |(rounds, seed)| (rounds.parse().unwrap(), seed.parse().unwrap()));
    let (mut random, mut found, mut slowest) = (Random::new(seed), 0, Duration::ZERO);
    for path in corpus(target) {
        let input = fs::read(&path).unwrap();
        for round in 0..=rounds {
            let bytes = if round == 0 { input.clone() } else { changed(&input, &mut random) };
            let start = Instant::now();
            let read = catch_unwind(|| is_read(&bytes));
            let shown = || format!("{target}: {}, changed: {:?}", path.display(), String::from_utf8_lossy(&bytes));
            found += usize::from(read.unwrap_or_else(|_| panic!("{}", shown())));
            slowest = slowest.max(start.elapsed());
        }
    }
    assert!(found > 10, "{target}: {found} inputs were read");
    assert!(slowest < Duration::from_secs(5), "{target}: {slowest:?}");
}

#[test]
fn crawl_files_are_read_whatever_they_say() {
    probe("warc", |bytes| webstrata_datasets::probe::crawl(bytes) > 0);
}

#[test]
fn compressed_files_are_read_whatever_is_damaged() {
    probe("gzip", |bytes| webstrata_datasets::probe::gzip(bytes) > 0);
}

#[test]
fn pages_are_read_whatever_they_say() {
    probe("html", |bytes| webstrata_datasets::probe::page(bytes) > 0);
}

#[test]
fn manifests_are_read_whatever_they_say() {
    probe("manifest", webstrata_layers::probe::manifest);
}
