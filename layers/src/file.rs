//! The files of a partition: one writer for each file, above rows of Parquet.
//!
//! [`schema`] names the layers and their columns. Only `parquet` knows Parquet, and `records` turns the rows of a row
//! group into values. `url`, `outlinks` and `inlinks` write one file each; `outlinks` and `inlinks` build on `side`.
//! `evidence` writes the layer `rv`. `helpers` encode row groups on threads that would otherwise wait for other
//! threads.

pub(crate) mod entry;
pub(crate) mod evidence;
pub(crate) mod helpers;
pub(crate) mod inlinks;
pub(crate) mod outlinks;
pub(crate) mod parquet;
pub(crate) mod records;
pub(crate) mod row_dir;
pub(crate) mod schema;
pub(crate) mod side;
pub(crate) mod uids;
pub(crate) mod url;
