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
    let mut sources: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (u, c) in &all {
        for l in c.values().flatten() {
            sources.entry(l.clone()).or_default().insert(u.clone());
        }
    }
    urls.extend(sources.keys().cloned());
    let key = |u: &str| {
        let mut k = vec![];
        layers::key(u, &mut k);
        k
    };
    let keys: BTreeMap<Vec<u8>, String> = urls.iter().map(|u| (key(u), u.clone())).collect();
    let urls: Vec<String> = keys.values().cloned().collect();
    let uids: BTreeMap<&String, u64> = urls.iter().enumerate().map(|(i, u)| (u, i as u64)).collect();
    let writer = layers::StoreWriter::open(&options.store)?;
    let row = writer.begin_row()?;
    let mut w = layers::UrlWriter::create(&row, 0)?;
    for (i, u) in urls.iter().enumerate() {
        w.push(i as u64, u, u)?;
    }
    let first_key = w.first_key();
    let mut files = w.finish()?;
    let mut counts = layers::Counts::default();
    let mut w = layers::OutlinksWriter::create(&row, 0)?;
    let matrix = |list: &[u64], caps: Vec<BTreeSet<u64>>| {
        let mut changes = vec![];
        for (i, l) in list.iter().enumerate() {
            let mut now = true;
            for (j, c) in caps.iter().enumerate() {
                if c.contains(l) != now {
                    now = !now;
                    changes.push(layers::presence::Change { link: i as u32, capture: j as u32 });
                }
            }
        }
        changes
    };
    for u in &urls {
        let Some(c) = all.get(u) else { continue };
        let links: BTreeSet<u64> = c.values().flatten().map(|l| uids[l]).collect();
        let links: Vec<u64> = links.into_iter().collect();
        let changes = matrix(&links, c.values().map(|s| s.iter().map(|l| uids[l]).collect()).collect());
        let page = layers::Page { uid: uids[u], timestamps: c.keys().copied().collect(), unknown: vec![], links, changes };
        counts.add_page(&page);
        w.push(&page)?;
    }
    files.extend(w.finish()?);
    let mut w = layers::InlinksWriter::create(&row, 0)?;
    for u in &urls {
        let Some(ss) = sources.get(u) else { continue };
        let mut ranges: BTreeMap<i64, BTreeSet<u64>> = BTreeMap::new();
        for s in ss {
            for (t, l) in &all[s] {
                if l.contains(u) {
                    ranges.entry(options.in_range.start(*t)).or_default().insert(uids[s]);
                }
            }
        }
        let mut list: Vec<u64> = ss.iter().map(|s| uids[s]).collect();
        list.sort();
        let changes = matrix(&list, ranges.values().cloned().collect());
        w.push(&layers::InLinks { uid: uids[u], ranges: ranges.keys().copied().collect(), sources: list, changes })?;
    }
    files.extend(w.finish()?);
    counts.urls = urls.len() as u64;
    let n = urls.len() as u64;
    let part = layers::PartitionEntry { partition: 0, first_uid: 0, urls: n, first_key, files };
    let row = layers::RowEntry { row: row.row(), first_uid: 0, urls: n, partitions: vec![part], counts };
    let epoch = writer.commit(layers::NewEpoch { rows: vec![row], in_range: options.in_range, provenance: Default::default() })?;
    Ok(BuildReport { epoch, counts, tally, partitions: 1, largest_over_mean: 1.0, seconds: 0.1, spilled_bytes: 0 })
}
