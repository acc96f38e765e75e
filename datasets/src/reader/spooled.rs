//! Archives and tables that come through a pipe, compressed, or from a server without ranges. Their directories are at
//! their ends, so they are read when all their bytes are in a file: in the copy that a pipe has anyway, otherwise in a
//! copy of their uncompressed bytes ([`Spool`]).
//!
//! Memory: that of a copy. Disk: the bytes, and the uncompressed bytes if the input is compressed.

use std::path::Path;
use std::vec::IntoIter;

use crate::files::compressed::Text;
use crate::files::source::Source;
use crate::files::spool::{Spill, Spool};
use crate::input::Input;
use crate::reader::{Count, ReadOptions, listing, open_part};
use crate::{Capture, CaptureReader, DigestCell, Error, Tally};

/// Copies a text to a file, and reads the parts of the file in order.
pub(super) fn open(
    text: Text,
    path: &Path,
    options: ReadOptions,
    spill: &Spill,
) -> Result<Box<dyn CaptureReader>, Error> {
    // The copy ends at damage of the compression, which is counted. The file is then cut off.
    let spool = Spool::begin(move || Ok(Box::new(text)), spill)?;
    parts(path, spool.source().map_err(|error| Error::io(path, error))?, options)
}

/// Reads the parts of a file in order.
pub(super) fn parts(path: &Path, source: Source, options: ReadOptions) -> Result<Box<dyn CaptureReader>, Error> {
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
