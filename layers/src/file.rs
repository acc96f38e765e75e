//! The files of a partition: one writer a file, over rows of Parquet.
//!
//! [`schema`] names the layers and their columns; `parquet` alone knows Parquet, `records` turns rows of a row group
//! into values. `url`, `outlinks` and `inlinks` (both on `side`) write one file each, `evidence` what revisits refer
//! to; `helpers` encode row groups while their threads wait for others.

pub(crate) mod evidence;
pub(crate) mod helpers;
pub(crate) mod inlinks;
pub(crate) mod outlinks;
pub(crate) mod parquet;
pub(crate) mod records;
pub mod schema;
pub(crate) mod side;
pub(crate) mod url;
