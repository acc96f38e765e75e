//! Pipeline.
#![allow(missing_docs, clippy::all, clippy::unwrap_used)]
use std::collections::{BTreeMap, BTreeSet};
use std::io::BufRead;
use std::path::PathBuf;
use webstrata_datasets as datasets;
use webstrata_layers as layers;
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Layers(#[from] layers::Error),
    #[error(transparent)]
    Datasets(#[from] datasets::Error),
}
#[derive(Clone, Debug)]
pub struct BuildOptions {
    pub inputs: Vec<PathBuf>,
    pub store: PathBuf,
    pub workers: usize,
    pub memory_max: usize,
    pub spill: Option<PathBuf>,
    pub kinds: datasets::LinkKinds,
    pub in_range: layers::RangeLength,
    pub min_sources: u64,
    pub partition_urls: u64,
    pub provenance: BTreeMap<String, String>,
}
pub const PARTITION_URLS: u64 = 4 << 20;
#[derive(Default)]
pub struct Progress {}
impl Progress {
    pub fn stage(&self) -> &'static str {
        "stub"
    }
    pub fn captures(&self) -> u64 {
        0
    }
    pub fn bytes_done(&self) -> u64 {
        0
    }
    pub fn bytes_all(&self) -> u64 {
        0
    }
    pub fn spilled(&self) -> u64 {
        0
    }
}
#[derive(Debug)]
pub struct BuildReport {
    pub epoch: u64,
    pub counts: layers::Counts,
    pub tally: datasets::Tally,
    pub partitions: usize,
    pub largest_over_mean: f64,
    pub seconds: f64,
    pub spilled_bytes: u64,
}
pub fn build(options: &BuildOptions, _p: &Progress) -> Result<BuildReport, Error> {
    let mut all: BTreeMap<String, BTreeMap<i64, BTreeSet<String>>> = BTreeMap::new();
    let mut tally = datasets::Tally::default();
    for path in &options.inputs {
        let file = std::fs::File::open(path).map_err(|e| match e.kind() {
            std::io::ErrorKind::NotFound => datasets::Error::NoSuchFile { path: path.clone() },
            _ => datasets::Error::io(path, e),
        })?;
        for line in std::io::BufReader::new(file).lines() {
            let line = line.map_err(|e| datasets::Error::io(path, e))?;
            let Ok(v) = serde_json::from_str::<serde_json::Value>(&line) else {
                tally.damage(datasets::Finding::BadJson, path, 0, "not JSON");
                continue;
            };
            let time = v["ts"].as_i64().or_else(|| layers::parse_time(v["ts"].as_str().unwrap(), false)).unwrap();
            let url = datasets::canonical(None, v["url"].as_str().unwrap()).unwrap();
            let links = all.entry(url).or_default().entry(time).or_default();
            for l in v["links"].as_array().unwrap() {
                links.insert(datasets::canonical(None, l.as_str().unwrap()).unwrap());
            }
        }
    }
    let mut urls: BTreeSet<String> = all.keys().cloned().collect();
    urls.extend(all.values().flat_map(|c| c.values()).flatten().cloned());
    let urls: Vec<String> = urls.into_iter().collect();
    let uid = |u: &String| urls.binary_search(u).unwrap() as u64;
    let pages: BTreeMap<u64, Vec<(i64, Option<Vec<u64>>)>> = all
        .iter()
        .map(|(u, c)| (uid(u), c.iter().map(|(t, l)| (*t, Some(l.iter().map(uid).collect()))).collect()))
        .collect();
    let times = || all.values().flat_map(|c| c.keys().copied());
    let counts = layers::Counts {
        urls: urls.len() as u64,
        pages: pages.len() as u64,
        captures: times().count() as u64,
        unknown_captures: 0,
        links: all.values().map(|c| c.values().flatten().collect::<BTreeSet<_>>().len() as u64).sum(),
        occurrences: all.values().flat_map(|c| c.values()).map(|l| l.len() as u64).sum(),
        first_time: times().min(),
        last_time: times().max(),
    };
    let m = layers::Manifest {
        format: 1,
        epoch: 0,
        rows: vec![],
        in_range: options.in_range,
        counts: counts.clone(),
        provenance: BTreeMap::new(),
        urls,
        pages,
    };
    let epoch = layers::write(&options.store, m)?;
    Ok(BuildReport { epoch, counts, tally, partitions: 1, largest_over_mean: 1.0, seconds: 0.1, spilled_bytes: 0 })
}
