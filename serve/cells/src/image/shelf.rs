//! The images of cells on a server's local disk: made there from the layers of a store anywhere, or received from a
//! peer.
//!
//! ```text
//! DIRECTORY/LOCK                            locked by the one process that uses it
//! DIRECTORY/cells/000001/part-00000.cell    see [`crate::image`]
//! ```
//!
//! Where a store lies in a directory of this machine and has an image of its own, that is used in place. Images get
//! their names when they are whole, verified and durable; what was mapped stays so when it is removed. Threads share a
//! shelf freely.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use webstrata_layers::location::{draft, regular};
use webstrata_layers::store::manifest::{PartitionEntry, RowEntry};
use webstrata_layers::{Draft, Store};

use crate::cells::cell::Cell;
use crate::error::Error;
use crate::image::label::{CELLS, path_of, row_and_partition};
use crate::image::load::{self, Options};
use crate::image::{self, Image, Residence};
use crate::links::encoding::Encodings;

/// Images on the local disk of one process.
pub struct Shelf {
    directory: PathBuf,
    encodings: Encodings,
    /// Locked as long as the shelf is used.
    _lock: File,
}

/// An image on its way from a peer. Dropped before its end, nothing of it stays.
pub struct Receiver {
    draft: Draft,
    row: u32,
    partition: u32,
    encodings: Encodings,
}

impl Shelf {
    /// Opens the shelf in a directory, which is made where there is none, and removes what is left of killed writers.
    ///
    /// # Errors
    /// A directory that another process uses, that is a store, or that cannot be written to.
    pub fn open(directory: PathBuf, encodings: Encodings) -> Result<Self, Error> {
        let wrong = |what| Error::Shelf { path: directory.clone(), what };
        let failed = |source| Error::Io { path: directory.clone(), source };
        if directory.join("CURRENT").try_exists().map_err(failed)? {
            return Err(wrong("it is a store, and cells of a server need a directory of their own"));
        }
        std::fs::create_dir_all(directory.join(CELLS)).map_err(failed)?;
        let lock =
            regular::open_with(&directory.join("LOCK"), File::options().create(true).append(true)).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(std::fs::TryLockError::WouldBlock) => {
                return Err(wrong("another process has its cells there; give each server a directory of its own"));
            }
            Err(std::fs::TryLockError::Error(error)) => return Err(failed(error)),
        }
        for row in rows_in(&directory).map_err(failed)? {
            draft::clear(&row).map_err(failed)?;
            match std::fs::remove_dir(&row) {
                Err(error) if error.kind() != ErrorKind::DirectoryNotEmpty => return Err(failed(error)),
                _ => {}
            }
        }
        Ok(Self { directory, encodings, _lock: lock })
    }

    fn path_of(&self, row: u32, partition: u32) -> PathBuf {
        path_of(&self.directory, row, partition)
    }

    /// The cell of a partition: from the store's own image, else from the one in the shelf. Only sound images of these
    /// layers count; one in the shelf that is damaged is removed.
    ///
    /// # Errors
    /// A file that cannot be read or removed.
    pub fn find(
        &self,
        store: &Store,
        row: &RowEntry,
        partition: &PartitionEntry,
        residence: Residence,
    ) -> Result<Option<Cell>, Error> {
        let open = |directory| {
            let found = Cell::open(store, directory, row, partition, (residence, self.encodings));
            let flaw = found.as_ref().err().filter(|error| is_flaw(error)).map(ToString::to_string);
            if let Some(why) = &flaw {
                let (row, partition) = (row.row, partition.partition);
                tracing::warn!(row, partition, why, "the image of a cell is not sound, and is not used");
            }
            Ok::<_, Error>((sound(found)?, flaw.is_some()))
        };
        if let Some(directory) = store.location().directory()
            && let (Some(cell), _) = open(directory)?
        {
            return Ok(Some(cell));
        }
        let (found, is_damaged) = open(&self.directory)?;
        if is_damaged {
            remove(&self.path_of(row.row, partition.partition))?;
        }
        Ok(found)
    }

    /// Makes the image of a partition from the layers of a store.
    ///
    /// # Errors
    /// See [`load::write_cell`].
    pub fn write(
        &self,
        store: &Store,
        row: &RowEntry,
        partition: &PartitionEntry,
        options: Options,
    ) -> Result<(), Error> {
        load::write_cell(store, &self.directory, row, partition, options).map(drop)
    }

    /// Begins to receive the image of a partition.
    ///
    /// # Errors
    /// A directory that cannot be written to.
    pub fn receive(&self, row: u32, partition: u32) -> Result<Receiver, Error> {
        let path = self.path_of(row, partition);
        let draft = image::begin(&path).map_err(|source| Error::Io { path, source })?;
        Ok(Receiver { draft, row, partition, encodings: self.encodings })
    }

    /// The file to send to a peer that wants the image of a partition made from layers with this hash
    /// ([`load::source_of`]): the shelf's own, else the store's. Its head was looked at; the peer verifies the rest.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn image(
        &self,
        store: Option<&Store>,
        row: u32,
        partition: u32,
        source: u64,
    ) -> Result<Option<PathBuf>, Error> {
        // The store's own is not sound, or was not there yet, where the shelf has one, too.
        let directories = [Some(self.directory.as_path()), store.and_then(|store| store.location().directory())];
        for directory in directories.into_iter().flatten() {
            let path = path_of(directory, row, partition);
            if let Some(label) = sound(image::label_at(&path))?
                && (label.row, label.partition, label.source) == (row, partition, source)
            {
                return Ok(Some(path));
            }
        }
        Ok(None)
    }

    /// Removes the images of the shelf, never of a store, that are not wanted, by row and partition. How many bytes
    /// these were.
    ///
    /// # Errors
    /// A directory that cannot be read, a file that cannot be removed.
    pub fn keep(&self, is_wanted: &dyn Fn(u32, u32) -> bool) -> Result<u64, Error> {
        let failed = |source| Error::Io { path: self.directory.clone(), source };
        let mut removed = 0;
        for directory in rows_in(&self.directory).map_err(failed)? {
            for entry in std::fs::read_dir(&directory).map_err(failed)? {
                let path = entry.map_err(failed)?.path();
                let Some((row, partition)) = row_and_partition(&path) else { continue };
                // A file of another name is none of its images.
                if path == self.path_of(row, partition) && !is_wanted(row, partition) {
                    removed += remove(&path)?;
                }
            }
        }
        Ok(removed)
    }
}

impl Receiver {
    /// Takes the next bytes.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let written = self.draft.file().write_all(bytes);
        written.map_err(|source| Error::Io { path: self.draft.target().to_owned(), source })
    }

    /// Verifies the whole image, and that it is the one of the partition, made from layers with this hash
    /// ([`load::source_of`]); then it is in the shelf, durable.
    ///
    /// # Errors
    /// [`Error::Received`] for bytes that are not that image, and a file that cannot be written.
    pub fn finish(self, source: u64) -> Result<(), Error> {
        let Self { draft, row, partition, encodings } = self;
        let wrong = |what| Error::Received { row, partition, what };
        let image = match Image::open(draft.path(), Residence::Mapped) {
            Err(Error::Image { what, .. }) => return Err(wrong(what)),
            Err(Error::Version { .. }) => return Err(wrong("it has another version")),
            image => image?,
        };
        let label = image.label;
        if (label.row, label.partition) != (row, partition) {
            return Err(wrong("it is of another cell"));
        }
        if label.source != source {
            return Err(wrong("it was made from other layers"));
        }
        let opened = encodings.of(draft.path(), label.encoding);
        match opened.and_then(|encoding| Cell::of(draft.path().to_owned(), image, encoding)) {
            Err(Error::Image { what, .. }) => return Err(wrong(what)),
            Err(Error::Damaged { .. }) => return Err(wrong("its sections do not fit together")),
            cell => drop(cell?),
        }
        let path = draft.target().to_owned();
        draft.finish().map_err(|source| Error::Io { path, source })
    }
}

/// Whether it is the image that is wrong, not the disk.
fn is_flaw(error: &Error) -> bool {
    matches!(error, Error::Image { .. } | Error::Version { .. } | Error::Damaged { .. })
}

/// What was opened, and nothing where it is no sound image, or was removed just now.
fn sound<T>(opened: Result<Option<T>, Error>) -> Result<Option<T>, Error> {
    match opened {
        Err(error) if is_flaw(&error) => Ok(None),
        Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => Ok(None),
        opened => opened,
    }
}

/// Removes a file that may be gone. Its bytes.
fn remove(path: &Path) -> Result<u64, Error> {
    let bytes = path.metadata().map(|metadata| metadata.len());
    match bytes.and_then(|bytes| std::fs::remove_file(path).map(|()| bytes)) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(0),
        done => done.map_err(|source| Error::Io { path: path.to_owned(), source }),
    }
}

/// The directories of rows.
fn rows_in(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(directory.join(CELLS))?.map(|entry| Ok(entry?.path()));
    let is_row = |path: &io::Result<PathBuf>| path.as_ref().map_or(true, |path| path.is_dir());
    entries.filter(is_row).collect()
}
