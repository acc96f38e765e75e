//! Spills texts that do not fit into memory to disk, and returns the texts in the order in which they were added.
//!
//! An overflow writes chunks to an unnamed temporary file and reads the chunks back in order. The system removes the
//! file when the file is closed, even if the process is killed. A chunk holds the length of the text and the number of
//! texts (8 bytes each), the end of each text (8 bytes each), and the text. The caller holds the only chunk in memory.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};

/// Texts on disk, in the order in which they were added.
#[derive(Debug)]
pub(crate) struct Overflow {
    directory: PathBuf,
    /// The bytes that the caller may keep in memory.
    pub(crate) bytes_max: usize,
    state: State,
}

#[derive(Debug)]
enum State {
    Empty,
    Writing(BufWriter<File>),
    Reading(BufReader<File>),
    Failed(io::Error),
}

impl Overflow {
    pub(crate) fn new(directory: &Path, bytes_max: usize) -> Self {
        Overflow { directory: directory.to_owned(), bytes_max, state: State::Empty }
    }

    /// Whether no texts are on disk.
    pub(crate) fn is_empty(&self) -> bool {
        matches!(self.state, State::Empty)
    }

    pub(crate) fn clear(&mut self) {
        self.state = State::Empty;
    }

    /// Adds a chunk. [`Overflow::next`] returns the I/O errors of this call.
    pub(crate) fn add(&mut self, text: &str, ends: &[usize]) {
        if matches!(self.state, State::Empty) {
            let file = tempfile::tempfile_in(&self.directory);
            self.state = file.map_or_else(State::Failed, |file| State::Writing(BufWriter::new(file)));
        }
        let State::Writing(file) = &mut self.state else { return };
        let mut write = || {
            for number in [text.len(), ends.len()].iter().chain(ends) {
                file.write_all(&(*number as u64).to_le_bytes())?;
            }
            file.write_all(text.as_bytes())
        };
        if let Err(error) = write() {
            self.state = State::Failed(error);
        }
    }

    /// Fills `text` and `ends`, which are empty, with the next chunk; `false` after the last chunk.
    pub(crate) fn next(&mut self, text: &mut String, ends: &mut Vec<usize>) -> io::Result<bool> {
        match std::mem::replace(&mut self.state, State::Empty) {
            State::Empty => return Ok(false),
            State::Failed(error) => return Err(error),
            State::Writing(file) => {
                let mut file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
                file.rewind()?;
                self.state = State::Reading(BufReader::new(file));
            }
            reading => self.state = reading,
        }
        let State::Reading(file) = &mut self.state else { return Ok(false) };
        let mut number = || -> io::Result<Option<usize>> {
            let mut bytes = [0; 8];
            match file.read_exact(&mut bytes) {
                Ok(()) => Ok(usize::try_from(u64::from_le_bytes(bytes)).ok()),
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
                Err(error) => Err(error),
            }
        };
        let Some(length) = number()? else {
            self.state = State::Empty;
            return Ok(false);
        };
        let count = number()?.unwrap_or(0);
        for _ in 0..count {
            ends.extend(number()?);
        }
        file.take(length as u64).read_to_string(text)?;
        Ok(true)
    }
}
