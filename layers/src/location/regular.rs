//! Opens files that must be regular files: the files of a store, and the files beside a store.
//!
//! A named pipe instead of a file would block its reader forever, and a device would give bytes without an end. The
//! type of the file is therefore checked before the file is opened. Symbolic links to regular files are opened. Cost:
//! one more `stat` of the file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// Opens a file for reading.
///
/// # Errors
/// Errors of the operating system; [`ErrorKind::InvalidInput`] if the path exists and is not a regular file.
pub fn open(path: &Path) -> io::Result<File> {
    open_with(path, File::options().read(true))
}

/// Opens or creates a file.
///
/// # Errors
/// See [`open`].
pub fn open_with(path: &Path, options: &OpenOptions) -> io::Result<File> {
    match fs::metadata(path) {
        Ok(found) if !found.is_file() => Err(io::Error::new(ErrorKind::InvalidInput, Refused(kind(&found)))),
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        // If there is no file, the options decide whether one is created.
        _ => options.open(path),
    }
}

/// Reads a whole file.
///
/// # Errors
/// See [`open`].
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let (mut file, mut bytes) = (open(path)?, Vec::new());
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The kind of the object that is in the place of a regular file.
#[derive(Debug, thiserror::Error)]
#[error("it is a {0} and not a regular file: remove it, or restore the file")]
struct Refused(&'static str);

/// The kind of the object at a path.
fn kind(found: &fs::Metadata) -> &'static str {
    if found.is_dir() {
        return "directory";
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        let of = found.file_type();
        if of.is_fifo() {
            return "named pipe";
        }
        if of.is_socket() {
            return "socket";
        }
    }
    "device"
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn only_regular_files_and_links_to_them_are_opened() {
        let place = tempfile::tempdir().unwrap();
        let [file, link, pipe, none] = ["file", "link", "pipe", "none"].map(|name| place.path().join(name));
        fs::write(&file, "bytes").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        assert_eq!((read(&file).unwrap(), read(&link).unwrap()), (b"bytes".to_vec(), b"bytes".to_vec()));
        assert_eq!(open(&none).unwrap_err().kind(), ErrorKind::NotFound);
        open_with(&none, File::options().write(true).create(true)).unwrap();
        for (path, what) in
            [(pipe.as_path(), "named pipe"), (place.path(), "directory"), (Path::new("/dev/zero"), "device")]
        {
            let error = read(path).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            assert!(error.to_string().contains(what), "{error}");
            assert!(open_with(path, File::options().write(true).create(true)).is_err());
        }
    }
}
