//! `webstrata check --removed`: looks for URLs in every file of a store.
//!
//! Reads the URLs of each row of each epoch that is there, of the cells beside them, and the first keys in manifests;
//! translations, watches, overviews and lists of inputs are searched as bytes. UIDs are in the other layers, and lead
//! nowhere without these. Rows and cells that no epoch names cannot be read, and are problems. Memory: the list; a row
//! group.

use crate::args::{Format, Outcome};
use crate::commands::remove::read_urls;
use anyhow::Context;
use serde_json::json;
use std::collections::{BTreeSet, HashSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use webstrata_cells::image::check::for_each_url;
use webstrata_codecs::ENCODINGS;
use webstrata_layers::read::scan;
use webstrata_layers::record::key::key_of;
use webstrata_layers::store::log::log;
use webstrata_layers::{Layer, Location, RowEntry, Selection, Store};

/// What was looked at, and what was found.
#[derive(Default)]
struct Search {
    urls: BTreeSet<String>,
    /// Keys of these URLs, as manifests have them.
    keys: HashSet<String>,
    files: u64,
    /// File and URL.
    found: BTreeSet<(String, String)>,
    /// What could not be looked at.
    problems: BTreeSet<String>,
}

/// Looks for the URLs of a file in a store.
pub(crate) fn run(store: &Location, list: &Path, format: Format, out: &mut dyn Write) -> anyhow::Result<Outcome> {
    let mut search = Search::default();
    for selection in read_urls(list)? {
        if let Selection::Url(url) = selection {
            search.keys.insert(key_of(&url).iter().map(|byte| format!("{byte:02x}")).collect());
            search.urls.insert(url);
        }
    }
    let mut rows = BTreeSet::new();
    for committed in log(store.clone())? {
        let committed = committed?;
        let opened = Store::open_epoch(store, committed.id.epoch)?;
        for row in &opened.manifest().rows {
            search.first_keys(row, committed.id.epoch);
            if rows.insert(row.row) {
                search.row(&opened, row)?;
            }
        }
        let urls = &search.urls;
        let mut found = Vec::new();
        for_each_url(&opened, ENCODINGS, |path, url| {
            if urls.contains(url) {
                found.push((path.display().to_string(), url.to_owned()));
            }
        })?;
        search.found.extend(found);
    }
    if let Some(directory) = store.directory() {
        search.directory(directory, &rows)?;
    }
    search.print(store, format, out)?;
    Ok(if search.found.is_empty() && search.problems.is_empty() { Outcome::Done } else { Outcome::Failed })
}

impl Search {
    fn first_keys(&mut self, row: &RowEntry, epoch: u64) {
        for partition in row.partitions.iter().filter(|partition| self.keys.contains(&partition.first_key)) {
            self.found.insert((format!("the manifest of epoch {epoch}"), format!("key {}", partition.first_key)));
        }
    }

    fn row(&mut self, store: &Store, row: &RowEntry) -> anyhow::Result<()> {
        for partition in &row.partitions {
            self.files += 1;
            for url in scan::urls(store, partition) {
                let url = url?;
                if self.urls.contains(&url) {
                    let file = partition.file(Layer::Url).map(|file| file.path.clone());
                    self.found.insert((file.unwrap_or_default(), url));
                }
            }
        }
        Ok(())
    }

    /// Looks at what manifests do not name.
    fn directory(&mut self, store: &Path, rows: &BTreeSet<u32>) -> anyhow::Result<()> {
        for folder in ["rows", "cells"] {
            for path in entries(&store.join(folder))? {
                let number = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.parse().ok());
                if number.is_none_or(|number| !rows.contains(&number)) {
                    let text = format!("{}: no epoch names it: run webstrata gc, then check again", path.display());
                    self.problems.insert(text);
                }
            }
        }
        for folder in ["translations", "watches", "overviews", "inputs"] {
            for path in entries(&store.join(folder))? {
                self.files += 1;
                let bytes = std::fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
                let text = String::from_utf8_lossy(&bytes);
                let inside = self.urls.iter().filter(|url| text.contains(url.as_str()));
                self.found.extend(inside.map(|url| (path.display().to_string(), url.clone())));
            }
        }
        Ok(())
    }

    fn print(&self, store: &Location, format: Format, out: &mut dyn Write) -> anyhow::Result<()> {
        let Search { urls, files, found, problems, .. } = self;
        if format == Format::Json {
            let found: Vec<_> = found.iter().map(|(file, url)| json!({"file": file, "url": url})).collect();
            let value = json!({
                "store": store.to_string(), "urls": urls.len(), "files": files, "found": found, "problems": problems,
            });
            writeln!(out, "{value}")?;
            return Ok(());
        }
        for (file, url) in found {
            writeln!(out, "{file}: {url}")?;
        }
        for problem in problems {
            writeln!(out, "{problem}")?;
        }
        let count = urls.len();
        match found.len() + problems.len() {
            0 => writeln!(out, "{store}: no file contains any of the {count} URLs ({files} files)")?,
            found => writeln!(out, "{store}: {found} problems ({count} URLs, {files} files)")?,
        }
        Ok(())
    }
}

/// The files of a directory; none where it is not there.
fn entries(directory: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if !directory.exists() {
        return Ok(Vec::new());
    }
    let read =
        || -> std::io::Result<Vec<PathBuf>> { std::fs::read_dir(directory)?.map(|entry| Ok(entry?.path())).collect() };
    read().with_context(|| format!("reading {}", directory.display()))
}
