//! The directory of a row that is being written: the writers of layers ask it for names, helpers and effort.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::file::helpers::Helpers;
use crate::file::schema::Layer;
use crate::location::Location;
use crate::location::names::row_name;

/// A row that is being written, by one or many processes.
#[derive(Clone, Debug)]
pub struct RowDir {
    location: Location,
    row: u32,
    staging: Arc<Path>,
    helpers: Helpers,
    effort: Effort,
}

impl RowDir {
    /// A row that the [`StoreWriter`](crate::StoreWriter) has begun or resumed, perhaps in another process. In S3,
    /// files wait for their upload in `staging`, without names; in a directory, files are written in place.
    pub fn open(location: impl Into<Location>, row: u32, staging: &Path) -> RowDir {
        RowDir {
            location: location.into(),
            row,
            staging: staging.into(),
            helpers: Helpers::default(),
            effort: Effort::default(),
        }
    }

    /// The same row, with writers that leave row groups to `helpers`.
    pub fn with_helpers(self, helpers: Helpers) -> RowDir {
        RowDir { helpers, ..self }
    }

    /// The same row, with writers that compress with this effort.
    pub fn with_effort(self, effort: Effort) -> RowDir {
        RowDir { effort, ..self }
    }

    /// The number of the row.
    pub fn row(&self) -> u32 {
        self.row
    }

    /// The directory of the row, or its URL in S3.
    pub fn path(&self) -> PathBuf {
        self.location.path(&row_name(self.row))
    }

    /// The location of the store that the row is in.
    pub fn location(&self) -> &Location {
        &self.location
    }

    pub(crate) fn effort(&self) -> Effort {
        self.effort
    }

    pub(crate) fn helpers(&self) -> &Helpers {
        &self.helpers
    }

    pub(crate) fn staging(&self) -> &Path {
        &self.staging
    }

    /// The name of a file of this row.
    pub(crate) fn file(&self, layer: Layer, partition: u32) -> String {
        format!("{}/{layer}/part-{partition:05}.parquet", row_name(self.row))
    }
}

/// How strongly layers are compressed. Readers are as fast with either.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Effort {
    /// Compression takes a small part of a job.
    #[default]
    Quick,
    /// For stores that stay as they are: the smallest files.
    Compact,
}
