//! Where text goes: a file that is whole or not there, or a stream.

use super::Target;
use crate::Error;
use crate::table::Draft;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

/// A place for text; see the head of this file.
pub(super) enum Text<'a> {
    File(Draft, BufWriter<File>),
    Stream(&'a mut dyn Write),
}

impl<'a> Text<'a> {
    pub(super) fn create(target: &Target, stream: &'a mut dyn Write) -> Result<Self, Error> {
        Ok(match target {
            Target::Stream => Text::Stream(stream),
            Target::File(path) => {
                let (draft, file) = Draft::create(path)?;
                Text::File(draft, file)
            }
        })
    }

    /// What an error of writing is.
    pub(super) fn failed(&self, source: io::Error) -> Error {
        match self {
            Text::File(draft, _) => draft.failed(source),
            Text::Stream(_) => failed_stream(source),
        }
    }

    /// Puts the file in its place.
    pub(super) fn finish(self) -> Result<(), Error> {
        match self {
            Text::File(mut draft, file) => {
                let file = file.into_inner().map_err(|error| draft.failed(error.into_error()))?;
                draft.keep(file)
            }
            Text::Stream(stream) => stream.flush().map_err(failed_stream),
        }
    }
}

/// What an error of writing to the stream is.
pub(super) fn failed_stream(source: io::Error) -> Error {
    Error::Output { path: PathBuf::from("standard output"), source }
}

impl Write for Text<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Text::File(_, file) => file.write(bytes),
            Text::Stream(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Text::File(_, file) => file.flush(),
            Text::Stream(stream) => stream.flush(),
        }
    }
}
