//! Targets of results: a file that is complete or absent, compressed if its name ends with `.gz`, or a stream.
//!
//! A file is a [`Draft`] until [`Outlet::finish`], so nobody opens an incomplete file. An outlet that is dropped leaves
//! no file. No file is written into a store. [`format_of`] returns the format that the ending of a name asks for.

use crate::Error;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use webstrata_layers::{Draft, store_around};

/// The number of bytes that are gathered before they are written.
const BUFFER: usize = 1 << 16;

/// The target of results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A file. If an export has several files, the beginning of their names.
    File(PathBuf),
    /// A stream, which is given separately.
    Stream,
}

impl Target {
    /// Returns the target for a path of the command line, where `-` is standard output.
    pub fn of(path: &Path) -> Self {
        if path.as_os_str() == "-" { Target::Stream } else { Target::File(path.to_owned()) }
    }
}

/// An open target for results.
///
/// ```
/// use std::io::Write;
/// use webstrata_analysis::Outlet;
///
/// let dir = tempfile::tempdir()?;
/// let path = dir.path().join("hosts.csv");
/// let mut outlet = Outlet::file(&path)?;
/// outlet.write_all(b"host\nexample.org\n")?;
/// // Nobody sees a file that is not complete.
/// assert!(!path.exists());
/// outlet.finish()?;
/// assert_eq!(std::fs::read_to_string(&path)?, "host\nexample.org\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Outlet<'a> {
    /// The name of the target in messages.
    path: PathBuf,
    to: To<'a>,
}

enum To<'a> {
    File(Draft, BufWriter<File>),
    Gzip(Draft, Box<GzEncoder<BufWriter<File>>>),
    Stream(Box<dyn Write + Send + 'a>),
}

impl<'a> Outlet<'a> {
    /// Opens a target. `stream` takes the output of [`Target::Stream`].
    ///
    /// # Errors
    /// As [`file`](Self::file).
    pub fn open(target: &Target, stream: impl Write + Send + 'a) -> Result<Self, Error> {
        match target {
            Target::File(path) => Self::file(path),
            Target::Stream => Ok(Self { path: "standard output".into(), to: To::Stream(Box::new(stream)) }),
        }
    }

    /// Begins a file.
    ///
    /// # Errors
    /// A path inside a store; errors of the system.
    pub fn file(path: &Path) -> Result<Self, Error> {
        let Self { path, to } = Self::plain(path)?;
        let to = match to {
            To::File(draft, file) if is_gzip(&path) => {
                To::Gzip(draft, Box::new(GzEncoder::new(file, Compression::default())))
            }
            to => to,
        };
        Ok(Self { path, to })
    }

    /// Begins a file without compression, whatever its name, for content that is already compressed.
    ///
    /// # Errors
    /// As [`file`](Self::file).
    pub fn plain(path: &Path) -> Result<Self, Error> {
        let failed = |source| Error::Output { path: path.to_owned(), source };
        let draft = draft(path)?;
        let file = BufWriter::with_capacity(BUFFER, draft.file().try_clone().map_err(failed)?);
        Ok(Self { path: path.to_owned(), to: To::File(draft, file) })
    }

    /// Returns the name of the target in messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the error for a failed write.
    pub(crate) fn failed(&self, source: io::Error) -> Error {
        Error::Output { path: self.path.clone(), source }
    }

    /// Puts a file in its place.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn finish(self) -> Result<(), Error> {
        let Self { path, to } = self;
        let into_file = |file: BufWriter<File>| file.into_inner().map(drop).map_err(io::IntoInnerError::into_error);
        let finished = match to {
            To::File(draft, file) => into_file(file).and_then(|()| draft.finish()),
            To::Gzip(draft, gzip) => gzip.finish().and_then(into_file).and_then(|()| draft.finish()),
            To::Stream(mut stream) => stream.flush(),
        };
        finished.map_err(|source| Error::Output { path, source })
    }
}

impl Write for Outlet<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.to {
            To::File(_, file) => file.write(bytes),
            To::Gzip(_, gzip) => gzip.write(bytes),
            To::Stream(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.to {
            To::File(_, file) => file.flush(),
            To::Gzip(_, gzip) => gzip.flush(),
            To::Stream(stream) => stream.flush(),
        }
    }
}

/// Writes a small file.
///
/// # Errors
/// As [`Outlet::file`].
pub fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let mut outlet = Outlet::file(path)?;
    outlet.write_all(bytes).map_err(|source| outlet.failed(source))?;
    outlet.finish()
}

/// Begins a file outside of all stores.
pub(crate) fn draft(path: &Path) -> Result<Draft, Error> {
    outside_stores(path)?;
    Draft::create(path).map_err(|source| {
        // A disk that does not respond says nothing about its content.
        let is_missing = |directory: &&Path| matches!(directory.try_exists(), Ok(false));
        let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty()).filter(is_missing);
        match directory {
            Some(directory) => Error::NoDirectory { path: path.to_owned(), directory: directory.to_owned() },
            None => Error::Output { path: path.to_owned(), source },
        }
    })
}

/// Rejects paths inside a store. A file there could replace a file of the store, and `gc` may remove it.
///
/// # Errors
/// A path inside a store.
pub fn outside_stores(path: &Path) -> Result<(), Error> {
    match store_around(path) {
        Some(store) => Err(webstrata_layers::Error::InsideStore { path: path.to_owned(), store }.into()),
        None => Ok(()),
    }
}

/// Whether output to this path is compressed.
pub(crate) fn is_gzip(path: &Path) -> bool {
    has_ending(path, "gz")
}

fn has_ending(path: &Path, ending: &str) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case(ending))
}

/// A format that the ending of a file name can ask for.
pub trait Ending: Copy + 'static {
    /// The endings. Each has its format, and says whether `.gz` may follow.
    const ENDINGS: &'static [(&'static str, Self, bool)];
}

/// Returns the format that the name of a file asks for.
///
/// # Errors
/// An ending that belongs to no format.
pub fn format_of<T: Ending>(path: &Path) -> Result<T, UnknownEnding> {
    let gzip = is_gzip(path);
    let bare = if gzip { path.with_extension("") } else { path.to_owned() };
    let found = T::ENDINGS.iter().find(|(ending, _, packs)| has_ending(&bare, ending) && (*packs || !gzip));
    found.map(|(_, format, _)| *format).ok_or_else(|| UnknownEnding { path: path.to_owned(), known: known::<T>() })
}

fn known<T: Ending>() -> String {
    let known = T::ENDINGS.iter().flat_map(|(ending, _, packs)| {
        [Some(format!(".{ending}")), packs.then(|| format!(".{ending}.gz"))].into_iter().flatten()
    });
    known.collect::<Vec<_>>().join(", ")
}

/// The name of a file does not say its format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the name {} does not say the format: it must end in one of {known}", path.display())]
pub struct UnknownEnding {
    /// The file.
    pub path: PathBuf,
    /// The endings that the name could have.
    pub known: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TableFormat;
    use std::io::Read;

    #[test]
    fn the_ending_of_a_name_says_the_format() {
        let of = |name: &str| format_of::<TableFormat>(Path::new(name));
        for (name, format) in [
            ("a.parquet", TableFormat::Parquet),
            ("a.b.csv", TableFormat::Csv),
            ("A.CSV.GZ", TableFormat::Csv),
            ("a.arrow", TableFormat::Arrow),
            ("a.feather", TableFormat::Arrow),
        ] {
            assert_eq!(of(name), Ok(format), "{name}");
        }
        for name in ["a", "csv", ".csv", "a.xlsx", "a.parquet.gz", "a.gz", "a.csv.gz.gz", "dir.csv/a"] {
            let text = of(name).unwrap_err().to_string();
            assert!(text.contains(name) && text.ends_with(".parquet, .csv, .csv.gz, .arrow, .feather"), "{text}");
        }
    }

    #[test]
    fn a_name_that_ends_with_gz_is_compressed() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("a.csv.gz");
        write_file(&path, b"uid,url\n").unwrap();
        let mut text = String::new();
        flate2::read::GzDecoder::new(File::open(path).unwrap()).read_to_string(&mut text).unwrap();
        assert_eq!(text, "uid,url\n");
        let mut stream = Vec::new();
        let mut outlet = Outlet::open(&Target::of(Path::new("-")), &mut stream).unwrap();
        outlet.write_all(b"plain").unwrap();
        outlet.finish().unwrap();
        assert_eq!(stream, b"plain");
    }

    #[test]
    fn nothing_is_written_into_a_store() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        std::fs::create_dir_all(at("store/epochs")).unwrap();
        std::fs::write(at("store/CURRENT"), "1\n").unwrap();
        std::fs::create_dir(at("beside")).unwrap();
        for name in ["store", "store/a.csv", "store/rows/a.csv", "beside/../store/a.csv"] {
            let text = write_file(&at(name), b"").unwrap_err().to_string();
            assert!(text.contains("inside the store"), "{text}");
        }
        write_file(&at("beside/a.csv"), b"").unwrap();
    }
}
