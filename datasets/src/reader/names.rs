//! Reads the names of inputs from a file: one a line, as Common Crawl lists the files of a crawl (`warc.paths.gz`).

use std::io::BufRead;
use std::path::{Path, PathBuf};

use webstrata_remote::{Address, Object};

use crate::Error;
use crate::files::compressed::{Lines, Notes, Text};
use crate::files::hashed::{DigestCell, Hashed, InputDigest};
use crate::files::place::Place;
use crate::reader::listing::without_secrets;

/// A list of inputs that was read.
#[derive(Clone, Debug)]
pub struct NameList {
    /// The file, as [`crate::Input::path`] names files.
    pub path: PathBuf,
    /// The digest of its bytes.
    pub digest: Option<InputDigest>,
    /// The names of the inputs.
    pub names: Vec<PathBuf>,
}

/// The names of inputs in a file, one a line, without empty lines. The file is plain, or compressed with gzip or zstd;
/// it is on this or another machine, or `-` is standard input.
///
/// `prefix` and one `/` come before each name except addresses, unless the prefix is empty.
///
/// ```
/// use webstrata_datasets::names_in;
///
/// let dir = tempfile::tempdir()?;
/// let list = dir.path().join("warc.paths");
/// std::fs::write(&list, "crawl-data/a.warc.gz\n\ns3://other/b.warc.gz\n")?;
/// let names = names_in(&list, "https://data.example.org/")?;
/// let names: Vec<_> = names.names.iter().filter_map(|name| name.to_str()).collect();
/// assert_eq!(names, ["https://data.example.org/crawl-data/a.warc.gz", "s3://other/b.warc.gz"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// The file cannot be read or decompressed, or has a line that is not UTF-8.
pub fn names_in(list: &Path, prefix: &str) -> Result<NameList, Error> {
    let shown = without_secrets(list);
    let io = |error| Error::io(&shown, error);
    let place = match list.to_str().and_then(Address::of) {
        Some(address) => Place::of_object(&Object::open(&address).map_err(io)?),
        None => Place::of_path(list),
    };
    let (notes, digest) = (Notes::default(), DigestCell::default());
    let bytes = Hashed::new(place.reader().map_err(io)?, DigestCell::clone(&digest));
    let text = Text::new(Box::new(bytes), Notes::clone(&notes)).map_err(io)?;
    let mut names = Vec::new();
    for line in Lines(text).lines() {
        let line = line.map_err(io)?;
        let name = line.trim();
        if name.is_empty() {
            continue;
        }
        let is_whole = prefix.is_empty() || Address::of(name).is_some();
        names.push(if is_whole {
            name.into()
        } else {
            format!("{}/{}", prefix.trim_end_matches('/'), name.trim_start_matches('/')).into()
        });
    }
    // Half a list would be half a crawl.
    match notes.lock().ok().and_then(|notes| notes.first()) {
        Some(note) => Err(Error::BadList { path: shown, offset: note.offset, finding: note.finding }),
        None => Ok(NameList { path: shown, digest: digest.get().copied(), names }),
    }
}
