//! Expands the names that a user gives into inputs: files, directories, patterns, and files on other machines.

use std::collections::BTreeSet;
use std::fs::Metadata;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use glob::MatchOptions;
use webstrata_remote::{Address, list, open_all};

use crate::files::compressed;
use crate::files::place::Place;
use crate::files::source::Source;
use crate::files::zip::{self, LOCAL_HEADER};
use crate::formats::tables::row_groups;
use crate::formats::wacz::Package;
use crate::input::{Input, InputSplit};
use crate::reader::detect::{self, Format};
use crate::{Error, Finding};

/// The number of files on other machines that are opened before the first of them is looked into. An opened file holds
/// its first bytes.
const OPENED_MAX: usize = 256;

/// Expands files, directories (all files below except hidden files), patterns, addresses of other machines and `-` into
/// sorted inputs without duplicates. A pipe or device that has several names is one input. Each row group of a Parquet
/// file is an input, and each crawl file in a WACZ. A WACZ with damage is an input itself, too, whose reader counts the
/// damage.
///
/// An address is `s3://bucket/key`, also with a pattern in the key or a `/` at its end, `http://...` or `https://...`.
/// Cost: a request for each file on another machine, many at the same time.
///
/// # Errors
/// A path, pattern or address names no file, or a directory or a file on another machine cannot be read.
pub fn inputs(paths: &[PathBuf]) -> Result<Vec<Input>, Error> {
    let (mut files, mut addresses) = (BTreeSet::new(), BTreeSet::new());
    for path in paths {
        match path.to_str().and_then(Address::of) {
            Some(address) => add_addresses(address, &mut addresses)?,
            None => add_files(path, &mut files)?,
        }
    }
    let (mut inputs, mut streams) = (Vec::new(), BTreeSet::new());
    for path in files {
        // Two readers of one pipe would each get a part of the bytes.
        if Place::of_path(&path).stream().is_some_and(|stream| !streams.insert(stream)) {
            continue;
        }
        let found = look(&path)?;
        let input = Input { bytes: found.as_ref().map_or(0, Metadata::len), ..Input::of_path(&path) };
        if found.is_some_and(|found| found.is_file()) {
            let source = input.place.source().map_err(|error| Error::io(&path, error))?;
            add_parts(input, &source, &mut inputs)?;
        } else {
            inputs.push(input);
        }
    }
    let addresses: Vec<Address> = addresses.into_iter().collect();
    for addresses in addresses.chunks(OPENED_MAX) {
        let path = |address: &Address| PathBuf::from(address.to_string());
        let opened = open_all(addresses).map_err(|error| Error::io(&path(&addresses[0]), error))?;
        for (address, opened) in addresses.iter().zip(opened) {
            let object = opened.map_err(|error| Error::io(&path(address), error))?;
            let (place, bytes) = (Place::of_object(&object), object.bytes());
            let input = Input { place, part: InputSplit::Whole, bytes };
            add_parts(input, &Source::Object(Arc::new(object)), &mut inputs)?;
        }
    }
    Ok(inputs)
}

/// The name of an input for people: an address without its secrets, any other path unchanged.
pub fn without_secrets(path: &Path) -> PathBuf {
    let address = path.to_str().and_then(Address::of);
    address.map_or_else(|| path.to_owned(), |address| address.to_string().into())
}

/// Adds the files that a path or a pattern of this machine names.
fn add_files(path: &Path, files: &mut BTreeSet<PathBuf>) -> Result<(), Error> {
    let matching = MatchOptions { require_literal_leading_dot: true, ..Default::default() };
    let found = look(path)?;
    if Place::of_path(path).is_stdin() || found.as_ref().is_some_and(|found| !found.is_dir()) {
        files.insert(path.to_owned()); // a pipe or a device, too
        return Ok(());
    }
    if found.is_some() {
        return files_below(path, files);
    }
    let before = files.len();
    let mut named = false;
    let found = path.to_str().and_then(|pattern| glob::glob_with(pattern, matching).ok());
    for path in found.into_iter().flatten() {
        let path = path.map_err(|error| {
            let path = error.path().to_owned();
            Error::io(&path, error.into())
        })?;
        named = true;
        if look(&path)?.is_some_and(|found| found.is_dir()) {
            files_below(&path, files)?;
        } else {
            files.insert(path);
        }
    }
    if named || files.len() > before {
        return Ok(());
    }
    let path = path.to_owned();
    let is_url = path.to_str().is_some_and(|path| path.contains("://"));
    Err(if is_url { Error::UnknownScheme { path } } else { Error::NoSuchFile { path } })
}

/// Adds the files that an address names.
fn add_addresses(address: Address, addresses: &mut BTreeSet<Address>) -> Result<(), Error> {
    let path = PathBuf::from(address.to_string());
    match list(&address).map_err(|error| Error::io(&path, error))? {
        Some(found) if found.is_empty() => return Err(Error::NoSuchFile { path }),
        Some(found) => addresses.extend(found),
        None => _ = addresses.insert(address),
    }
    Ok(())
}

/// Adds a file, or its parts that can be read independently.
pub(super) fn add_parts(input: Input, source: &Source, inputs: &mut Vec<Input>) -> Result<(), Error> {
    let io = |error| Error::io(input.path(), error);
    // Without ranges, only the whole file can be read, from its beginning.
    let magic = if source.has_ranges() { source.read(0..4).map_err(io)? } else { Vec::new() };
    let part = |part, bytes| Input { part, bytes, ..input.clone() };
    if magic == b"PAR1" {
        let groups = row_groups(input.path(), source)?.into_iter().enumerate();
        inputs.extend(groups.map(|(group, bytes)| part(InputSplit::RowGroup(group), bytes)));
    } else if let Some(package) = look_into(source, &magic).map_err(io)? {
        if !package.flaws.is_empty() || !package.requires.is_empty() {
            // The members count the bytes of the file, if there are members.
            inputs.push(part(InputSplit::Archive, if package.members.is_empty() { input.bytes } else { 0 }));
        }
        let members = package.members.into_iter();
        inputs.extend(members.map(|member| part(InputSplit::Member(member.clone()), member.stored_bytes)));
    } else {
        inputs.push(input);
    }
    Ok(())
}

/// The metadata of the file at a path; `None` if there is no file. A pattern may be a name that no file can have.
pub(super) fn look(path: &Path) -> Result<Option<Metadata>, Error> {
    /// The error codes of links that lead in circles, on Linux and on macOS.
    const CIRCLE: [i32; 2] = [40, 62];
    match std::fs::metadata(path) {
        Ok(found) => Ok(Some(found)),
        Err(error) => match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::InvalidFilename | ErrorKind::InvalidInput => {
                Ok(None)
            }
            _ if error.raw_os_error().is_some_and(|code| CIRCLE.contains(&code)) => Ok(None),
            _ => Err(Error::io(path, error)),
        },
    }
}

fn files_below(directory: &Path, files: &mut BTreeSet<PathBuf>) -> Result<(), Error> {
    let entries = std::fs::read_dir(directory).map_err(|error| Error::io(directory, error))?;
    for entry in entries {
        let entry = entry.map_err(|error| Error::io(directory, error))?;
        if entry.file_name().as_encoded_bytes().starts_with(b".") {
            continue;
        }
        let kind = entry.file_type().map_err(|error| Error::io(&entry.path(), error))?;
        if kind.is_dir() {
            files_below(&entry.path(), files)?;
        } else if kind.is_file() || look(&entry.path())?.is_some_and(|found| found.is_file()) {
            files.insert(entry.path()); // links to directories are not followed: they may lead in circles
        }
    }
    Ok(())
}

/// Looks into a file with this beginning; `None` if it is no ZIP. A ZIP begins with a member. Bytes before the first
/// member are allowed, if the file ends like a ZIP, begins like no crawl file, and holds crawl files.
fn look_into(source: &Source, magic: &[u8]) -> io::Result<Option<Package>> {
    let begins = magic == LOCAL_HEADER;
    if !begins {
        if magic.is_empty() || compressed::is_compressed(magic) || magic == b"WARC" || !zip::ends_like_one(source)? {
            return Ok(None);
        }
        let head = source.read(0..detect::HEAD_BYTES as u64)?;
        if !matches!(detect::format(&head), Format::NotRead(Finding::OtherFile, _)) {
            return Ok(None);
        }
    }
    let package = Package::open(source.clone())?;
    Ok((begins || package.is_wacz).then_some(package))
}
