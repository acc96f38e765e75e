//! The inputs that a job has read: one file for each job. Manifests name the file from the epoch of the job on.
//!
//! ```text
//! STORE/inputs/000003.jsonl     the inputs of the job that wrote row 3, one JSON object a line, in order of names
//! {"name":"a.warc.gz","bytes":1048576,"captures":812,"first":1149120000,"last":1151711999,"digest":"99aa06d3..."}
//! ```
//!
//! A merge keeps the files of the rows that it merges, so a store always knows its inputs. The layers do not depend on
//! these files: the same captures give the same rows, however the captures were split into inputs.

use std::io::Write;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::error::Error;
use crate::file::row_dir::RowDir;
use crate::store::Store;
use crate::store::manifest::InputsEntry;

/// The directory of the files of inputs.
pub(crate) const INPUTS: &str = "inputs";

/// An input of a job, as its line in the file describes it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct InputRecord {
    /// The path of the input, as given or found. For a part of a file, the name also says which part. A list that named
    /// inputs is an input without captures.
    pub name: String,
    /// The size in bytes; 0 if the input has no size.
    pub bytes: u64,
    /// The number of captures that were read from the input.
    pub captures: u64,
    /// The time of the first of these captures, in seconds; `None` without captures.
    pub first: Option<i64>,
    /// The time of the last one.
    pub last: Option<i64>,
    /// XXH3-128 of the bytes, 32 hexadecimal digits; `None` if the input was not read to its end, or was generated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

/// The name of the file with the inputs of the job that writes a row.
pub(crate) fn inputs_name(row: u32) -> String {
    format!("{INPUTS}/{row:06}.jsonl")
}

/// The row in the name of a file of inputs, given without its directory; `None` for other names.
pub(crate) fn row_of_inputs(name: &str) -> Option<u32> {
    let row = name.strip_suffix(".jsonl")?.parse().ok()?;
    (inputs_name(row) == format!("{INPUTS}/{name}")).then_some(row)
}

/// Writes the inputs of the job that writes a row.
///
/// # Errors
/// An error of the disk or of the server.
pub fn write_inputs(row: &RowDir, mut inputs: Vec<InputRecord>) -> Result<InputsEntry, Error> {
    inputs.sort_unstable();
    let path = inputs_name(row.row());
    let mut text = Vec::new();
    for input in &inputs {
        let syntax = |source| Error::ManifestSyntax { path: row.location().path(&path), source };
        serde_json::to_writer(&mut text, input).map_err(syntax)?;
        text.push(b'\n');
    }
    let (mut file, shown) = row.location().storage().begin(&path, row.staging())?;
    file.write_all(&text).map_err(Error::io(&shown))?;
    row.location().storage().finish(&path, file)?;
    let checksum = format!("{:016x}", xxh3_64(&text));
    Ok(InputsEntry { path, inputs: inputs.len() as u64, bytes: text.len() as u64, checksum })
}

/// Reads the inputs that a job of a store has read.
///
/// # Errors
/// A file that cannot be read, or does not match the checksum of its entry.
pub fn read_inputs(store: &Store, entry: &InputsEntry) -> Result<Vec<InputRecord>, Error> {
    let path = store.location().path(&entry.path);
    let text = store.location().storage().read(&entry.path)?;
    let text = text.ok_or_else(|| Error::io(&path)(std::io::ErrorKind::NotFound.into()))?;
    let got = format!("{:016x}", xxh3_64(&text));
    if got != entry.checksum {
        return Err(Error::Checksum { path, expected: entry.checksum.clone(), got });
    }
    let lines = text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    let records = lines.map(serde_json::from_slice).collect::<Result<Vec<_>, _>>();
    records.map_err(|source| Error::ManifestSyntax { path, source })
}
