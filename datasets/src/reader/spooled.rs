//! Archives and tables that come through a pipe, compressed, or from a server without ranges. Their directories are at
//! their ends, so they are copied to an unnamed file, and read there.
//!
//! The system removes the file when the reader is dropped, even if the process is killed. Memory: none for the bytes.
//! Disk: the bytes, uncompressed, in the directory of the caller.

use std::io::{self, Seek};
use std::path::Path;
use std::vec::IntoIter;

use crate::files::compressed::Text;
use crate::files::source::Source;
use crate::input::Input;
use crate::reader::{Count, ReadOptions, listing, open_part};
use crate::{Capture, CaptureReader, DigestCell, Error, Tally};

/// Copies the rest of a text to a file in a directory, and reads the parts of the file in order.
pub(super) fn open(
    mut text: Text,
    path: &Path,
    options: ReadOptions,
    spill: &Path,
) -> Result<Box<dyn CaptureReader>, Error> {
    let mut file = tempfile::tempfile_in(spill).map_err(|error| Error::io(spill, error))?;
    // Ends at damage of the compression, which is counted. The file is then cut off.
    io::copy(&mut text, &mut file).map_err(|error| Error::io(path, error))?;
    let source = file.rewind().and_then(|()| Source::of_file(file)).map_err(|error| Error::io(spill, error))?;
    let mut parts = Vec::new();
    listing::add_parts(Input::of_path(path), &source, &mut parts)?;
    Ok(Box::new(Spooled { source, parts: parts.into_iter(), part: None, options }))
}

struct Spooled {
    source: Source,
    parts: IntoIter<Input>,
    /// The reader of the part at hand.
    part: Option<Box<dyn CaptureReader>>,
    options: ReadOptions,
}

impl CaptureReader for Spooled {
    fn read(&mut self, capture: &mut Capture, tally: &mut Tally) -> Result<bool, Error> {
        loop {
            if let Some(part) = &mut self.part
                && part.read(capture, tally)?
            {
                return Ok(true);
            }
            let Some(input) = self.parts.next() else {
                self.part = None;
                capture.clear();
                return Ok(false);
            };
            self.part = Some(open_part(&input, &self.source, self.options, Count::default(), DigestCell::default())?);
        }
    }
}
