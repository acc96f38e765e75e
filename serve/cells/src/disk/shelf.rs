//! The images of cells on a server's local disk: written there from the layers of a store at any location, or received
//! from a peer.
//!
//! ```text
//! DIRECTORY/LOCK                            locked by the one process that uses it
//! DIRECTORY/cells/000001/part-00000.cell    see [`crate::image`]
//! ```
//!
//! If a store is in a directory of this machine and has an image there, that image is used in place. Images get their
//! names when they are complete, verified and durable. A mapped image stays mapped when it is removed. Threads share a
//! shelf freely. Nothing inside a shelf is a symbolic link, which would lead what the shelf writes and removes to
//! another place.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use webstrata_layers::{Draft, PartitionEntry, RowEntry, Store, regular};

use crate::cells::cell::Cell;
use crate::disk::load::{self, Options};
use crate::error::Error;
use crate::image::label::{CELLS, path_of, row_and_partition};
use crate::image::{self, Image, Residence};
use crate::links::encoding::Encodings;

/// The images on the local disk of one process.
pub struct Shelf {
    directory: PathBuf,
    encodings: Encodings,
    /// A file that is locked while the shelf is used.
    _lock: File,
}

/// An image that a peer is sending. If it is dropped before its end, nothing of it stays.
pub struct Receiver {
    draft: Draft,
    row: u32,
    partition: u32,
    encodings: Encodings,
}

impl Shelf {
    /// Opens the shelf in a directory, which is created if necessary, and removes the files that killed writers left.
    ///
    /// # Errors
    /// A directory that another process uses, that is a store, or that cannot be written to.
    pub fn open(directory: PathBuf, encodings: Encodings) -> Result<Self, Error> {
        let wrong = |what| Error::Shelf { path: directory.clone(), what };
        let failed = |source| Error::Io { path: directory.clone(), source };
        if directory.join("CURRENT").try_exists().map_err(failed)? {
            return Err(wrong("it is a store, and cells of a server need a directory of their own"));
        }
        let leads_away = |path: &Path| path.symlink_metadata().is_ok_and(|found| found.is_symlink());
        if [CELLS, "LOCK"].iter().any(|name| leads_away(&directory.join(name))) {
            return Err(wrong("it has a symbolic link in place of its files, which is not followed; remove the link"));
        }
        std::fs::create_dir_all(directory.join(CELLS)).map_err(failed)?;
        if rows_in(&directory).map_err(failed)?.iter().any(|row| leads_away(row)) {
            return Err(wrong("it has a symbolic link in place of a row, which is not followed; remove the link"));
        }
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
            Draft::clear(&row).map_err(failed)?;
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

    /// The cell of a partition: from the store's image, else from the image in the shelf. Only sound images of these
    /// layers are used. A damaged image in the shelf is removed.
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

    /// Writes the image of a partition from the layers of a store.
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

    /// The path of the image to send to a peer. The peer wants the image of a partition that was made from layers with
    /// this hash ([`crate::image::label::source_of`]). The shelf's image is preferred to the store's. Only its head was
    /// checked; the peer verifies the rest.
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
        // If the shelf has an image, the store's image is unsound, or was written later.
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

    /// Removes the images of the shelf, never of a store, that are not wanted, by row and partition. Returns the number
    /// of bytes removed.
    ///
    /// # Errors
    /// A directory that cannot be read, or a file that cannot be removed.
    pub fn keep(&self, is_wanted: &dyn Fn(u32, u32) -> bool) -> Result<u64, Error> {
        let failed = |source| Error::Io { path: self.directory.clone(), source };
        let mut removed = 0;
        for directory in rows_in(&self.directory).map_err(failed)? {
            for entry in std::fs::read_dir(&directory).map_err(failed)? {
                let path = entry.map_err(failed)?.path();
                let Some((row, partition)) = row_and_partition(&path) else { continue };
                // A file with another name is not an image of the shelf.
                if path == self.path_of(row, partition) && !is_wanted(row, partition) {
                    removed += remove(&path)?;
                }
            }
        }
        Ok(removed)
    }
}

impl Receiver {
    /// Writes the next bytes.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let written = self.draft.file().write_all(bytes);
        written.map_err(|source| Error::Io { path: self.draft.target().to_owned(), source })
    }

    /// Verifies the complete image, and that it is the image of the partition, made from layers with this hash
    /// ([`crate::image::label::source_of`]). Then puts it into the shelf durably.
    ///
    /// # Errors
    /// [`Error::Received`] if the bytes are not that image, and a file that cannot be written.
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

/// Whether the image is wrong, and not the disk.
fn is_flaw(error: &Error) -> bool {
    matches!(error, Error::Image { .. } | Error::Version { .. } | Error::Damaged { .. })
}

/// The opened image; `None` if the image is unsound, or was just removed.
fn sound<T>(opened: Result<Option<T>, Error>) -> Result<Option<T>, Error> {
    match opened {
        Err(error) if is_flaw(&error) => Ok(None),
        Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => Ok(None),
        opened => opened,
    }
}

/// Removes a file that may be missing. Returns its size in bytes.
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
