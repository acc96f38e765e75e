//! The files that a check did not read: files of epochs that were not checked, and files that no epoch names.
//!
//! Reads only the names in the directories of the store, never a file. `LOCK`, the locks of watches, and leases are not
//! counted, because no answer depends on them.

use std::collections::BTreeSet;

use crate::error::Error;
use crate::file::schema::Layer;
use crate::location::names::{CURRENT, EPOCHS, LEASES, LOCK, ROWS, manifest_name, row_name};
use crate::location::{Location, draft};
use crate::store::held::HELD;
use crate::store::inputs::INPUTS;
use crate::store::manifest::Manifest;
use crate::store::manifest::history::TRANSLATIONS;
use crate::store::sealed::Sealed;

/// The directory of the cells of rows.
const CELLS: &str = "cells";

/// The files that were not read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unread {
    /// The number of files that only unchecked epochs have.
    pub files: u64,
    /// The unchecked epochs with such files, newest first.
    pub epochs: Vec<u64>,
    /// Files and directories in the store that no epoch names. A writer that died has left them, or they belong to
    /// another program. In order, relative to the store.
    pub unnamed: Vec<String>,
}

impl Unread {
    /// Whether everything was read.
    pub fn is_nothing(&self) -> bool {
        self.files == 0 && self.unnamed.is_empty()
    }
}

/// The files and rows that manifests name.
#[derive(Default)]
pub(super) struct Named {
    epochs: Vec<(u64, BTreeSet<String>)>,
    rows: BTreeSet<u32>,
}

impl Named {
    pub(super) fn of(manifest: &Manifest) -> Self {
        let mut named = Self::default();
        named.add(manifest);
        named
    }

    /// Adds an epoch. Epochs are added newest first.
    pub(super) fn add(&mut self, manifest: &Manifest) {
        let files = manifest.files().map(|entry| &entry.path);
        let files = files.chain(manifest.translations().map(|entry| &entry.path));
        let files = files.chain(manifest.provenance.inputs.iter().map(|entry| &entry.path));
        let files = files.chain(manifest.provenance.held.iter().map(|entry| &entry.path));
        self.epochs.push((manifest.epoch, files.cloned().collect()));
        self.rows.extend(manifest.rows.iter().map(|row| row.row));
    }

    /// Compares the named files, and all names in the store, with the files that were read.
    pub(super) fn unread(&self, location: &Location, read: &BTreeSet<String>, epochs: &[u64]) -> Result<Unread, Error> {
        let mut left: BTreeSet<&String> = BTreeSet::new();
        let mut unread = Unread::default();
        for (epoch, files) in self.epochs.iter().filter(|(epoch, _)| !epochs.contains(epoch)) {
            let before = left.len();
            left.extend(files.difference(read));
            if left.len() > before || !files.is_subset(read) {
                unread.epochs.push(*epoch);
            }
        }
        unread.files = left.len() as u64;
        let storage = location.storage();
        let [overviews, watches] = Sealed::ALL.map(Sealed::directory);
        let known = [CURRENT, LOCK, EPOCHS, ROWS, TRANSLATIONS, INPUTS, HELD, CELLS, LEASES, overviews, watches];
        let mut others = Vec::new();
        for name in storage.names("")? {
            if !known.contains(&name.as_str()) && !draft::is_of(&name, CURRENT) {
                others.push(name);
            }
        }
        let all: BTreeSet<&str> = self.epochs.iter().flat_map(|(_, files)| files).map(String::as_str).collect();
        let mut below = |directory: &str, is_named: &dyn Fn(&str) -> bool| -> Result<(), Error> {
            let paths = storage.names(directory)?.into_iter().map(|name| format!("{directory}/{name}"));
            others.extend(paths.filter(|path| !is_named(path)));
            Ok(())
        };
        let manifests: BTreeSet<String> = self.epochs.iter().map(|(epoch, _)| manifest_name(*epoch)).collect();
        below(EPOCHS, &|path| manifests.contains(path))?;
        [TRANSLATIONS, INPUTS, HELD].iter().try_for_each(|directory| below(directory, &|path| all.contains(path)))?;
        let rows: BTreeSet<String> = self.rows.iter().map(|&row| row_name(row)).collect();
        below(ROWS, &|path| rows.contains(path))?;
        for row in &rows {
            below(row, &|path| Layer::ALL.iter().any(|layer| path == format!("{row}/{layer}")))?;
            for layer in Layer::ALL {
                below(&format!("{row}/{layer}"), &|path| all.contains(path))?;
            }
        }
        below(CELLS, &|path| self.rows.iter().any(|row| path == format!("{CELLS}/{row:06}")))?;
        for directory in [overviews, watches] {
            // All sealed files are read, regardless of their epochs.
            below(directory, &|path| path.ends_with(".json") || path.ends_with(".lock"))?;
        }
        others.sort_unstable();
        unread.unnamed = others;
        Ok(unread)
    }
}
