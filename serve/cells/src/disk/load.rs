//! Layers to cells: reads the layers of a partition as streams, writes its image, and collects the digests of its
//! content.
//!
//! An image gets its name after it was read back from disk: it must open, every URL and record must decode, and the
//! content must equal the layers (`Content`). Reading back takes at most a sixth of the time of writing. An image
//! that fails is removed.
//!
//! For a later row, the UIDs that have a record are read first, and encoders get records with their numbers (see
//! `numbers`).
//!
//! Memory: the records of one side of one cell, or a sample if they take more than 256 MiB; the image of the cell; and
//! one row group of the layers. Passes over the layers of a partition: URLs twice, out-links once, in-links twice, and
//! once more if the records are not held or have no times. Encodings of links other than strata read out-links and
//! in-links once each, and hold all links of one direction in memory. An encoding that uses URLs holds their keys in
//! memory, and takes another pass. For a later row, the UIDs with records are in memory, 8 bytes each, and the number
//! of each link is looked up.

use std::cell::{Cell, RefCell};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use webstrata_layers::read::scan;
use webstrata_layers::record::key::key;
use webstrata_layers::{Draft, Error as LayersError, InLinks, Layer, PartitionEntry, RowEntry, Store, Uid};

use crate::cells::cell::{self, Content};
use crate::error::Error;
use crate::image::label::{Label, label_of, path_of, records};
use crate::image::{self, Image, Residence, SECTIONS};
use crate::links::encoding::{self, CellRecords, CellShape, Encoding, Records};
use crate::mapped::guard::Section;
use crate::numbers::{self, Numbers};
use crate::statuses::StatusesWriter;
use crate::url_store;

/// How cells are written.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The encoding of links.
    pub encoding: &'static dyn Encoding,
    /// The options of the URL store.
    pub urls: url_store::Options,
}

impl Default for Options {
    /// The options of `webstrata cells` and of servers.
    fn default() -> Self {
        Self { encoding: &encoding::STRATA_SPEED, urls: url_store::Options::default() }
    }
}

/// A cell that is on disk.
#[derive(Clone, Debug)]
pub struct Written {
    /// The path of its image.
    pub path: PathBuf,
    /// The number of URLs.
    pub urls: u64,
    /// The sizes of URLs, numbers, forward links, backward links and statuses in bytes.
    pub bytes: [u64; SECTIONS],
}

/// Finds the cell of a partition: a sound image below the directory, made from these layers with these options.
///
/// # Errors
/// An image that cannot be read.
pub fn find_cell(
    store: &Store,
    directory: &Path,
    row: &RowEntry,
    partition: &PartitionEntry,
    options: Options,
) -> Result<Option<Written>, Error> {
    let path = path_of(directory, row.row, partition.partition);
    let image = match Image::open(&path, Residence::Mapped) {
        Ok(image) => image,
        Err(Error::Image { .. } | Error::Version { .. }) => return Ok(None),
        Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let sections = [&image.urls, &image.numbers, &image.forward, &image.backward, &image.statuses].map(Section::bytes);
    let bytes = sections.map(|section| section.len() as u64);
    if image.label != label_of(store, row, partition, options.encoding.tag()) {
        return Ok(None);
    }
    let same =
        cell::Cell::of(path.clone(), image, options.encoding).is_ok_and(|cell| cell.url_block() == options.urls.block);
    Ok(same.then_some(Written { path, urls: partition.urls, bytes }))
}

/// Writes the image of a partition below a directory: see `image::path_of`.
///
/// # Errors
/// Layers that cannot be read, or that do not mirror each other; an image that cannot be written, or that does not read
/// back.
pub fn write_cell(
    store: &Store,
    directory: &Path,
    row: &RowEntry,
    partition: &PartitionEntry,
    options: Options,
) -> Result<Written, Error> {
    let path = path_of(directory, row.row, partition.partition);
    let label = label_of(store, row, partition, options.encoding.tag());
    // Encoders read URLs and records more than once. Each is added to the content at its first reading.
    let (content, next) = (RefCell::new(Content::default()), [Cell::new(Uid(0)), Cell::new(Uid(0))]);
    let is_new = |next: &Cell<Uid>, uid: Uid| uid >= next.replace(next.get().max(Uid(uid.0.saturating_add(1))));
    let (mut own_key, mut passes) = (Vec::new(), 0);
    let urls = url_store::encode(
        |visit| {
            passes += 1;
            for url in scan::urls(store, partition) {
                let url = url?;
                key(&url, &mut own_key);
                visit(&own_key)?;
                if passes == 1 {
                    content.borrow_mut().add_url(&url);
                }
            }
            Ok::<_, Error>(())
        },
        options.urls,
    )?;
    let interval = label.first_record..label.end_record;
    // Then most UIDs have a record, so all of them are nodes, and no table of UIDs is written.
    let all_own = interval == (partition.first_uid..partition.first_uid + partition.urls);
    let numbered = if all_own { Vec::new() } else { numbers::encode(&recorded(store, partition)?, &interval) };
    let damaged = |damage| Error::Damaged { path: path.clone(), damage };
    let numbers = Numbers::open(numbered.clone().into(), interval.clone()).map_err(damaged)?;
    let number =
        |uid: Uid| numbers.number(uid).ok_or(Error::Unmatched { row: row.row, partition: partition.partition, uid });
    let statuses = RefCell::new(StatusesWriter::default());
    let pages = || -> Records<'_, _> {
        Box::new(scan::pages(store, partition).map(|page| {
            let page = page?;
            if is_new(&next[0], page.uid) {
                content.borrow_mut().add_page(&page);
                numbers.node(page.uid).into_iter().for_each(|node| statuses.borrow_mut().push(node, &page.statuses));
            }
            page.try_renumbered(number)
        }))
    };
    let in_links = || -> Records<'_, _> {
        Box::new(scan::in_links(store, partition).map(|record| {
            let record = record?;
            if is_new(&next[1], record.uid) {
                content.borrow_mut().add_in_links(&record);
            }
            record.try_renumbered(number)
        }))
    };
    // The keys of URLs in other rows are not here, and not in order.
    let keys =
        (options.encoding.reads_keys() && all_own).then(|| keys_of(store, partition).collect::<Result<Vec<_>, _>>());
    let keys = keys.transpose()?;
    let shape = CellShape { first: numbers.first(), nodes: numbers.len(), keys: keys.as_deref() };
    let each = CellRecords {
        pages: (records(partition, Layer::Ol), &pages),
        in_links: (records(partition, Layer::Il), &in_links),
    };
    let [forward, backward] = options.encoding.encode(shape, each)?;
    let statuses = statuses.into_inner().finish();
    let sections = [&urls[..], &numbered, &forward, &backward, &statuses];
    let draft = image::write(&path, &label, content.borrow().counts(), sections)?;
    settle(draft, &path, (&label, options.encoding), (&content.borrow(), scan::in_links(store, partition)))?;
    Ok(Written { path, urls: partition.urls, bytes: sections.map(|section| section.len() as u64) })
}

/// Reads an image back, and gives it its name if it equals the layers. Otherwise nothing of the image stays.
fn settle(
    draft: Draft,
    path: &Path,
    (label, encoding): (&Label, &dyn Encoding),
    (expected, in_links): (&Content, impl Iterator<Item = Result<InLinks, LayersError>>),
) -> Result<(), Error> {
    let read_back = || {
        let image = Image::open(draft.path(), Residence::Mapped)?;
        if image.label != *label {
            return Err(Error::OtherLayers { path: path.to_owned() });
        }
        expected.compare(&cell::Cell::of(path.to_owned(), image, encoding)?, in_links)
    };
    let Label { row, partition, .. } = *label;
    read_back().map_err(|why| match why {
        // An image that the system cannot read may be sound.
        Error::Io { .. } => why,
        why => Error::ReadBack { row, partition, why: Box::new(why) },
    })?;
    draft.finish().map_err(|source| Error::Io { path: path.to_owned(), source })
}

/// The UIDs that have a record in a partition, of out-links or of in-links.
fn recorded(store: &Store, partition: &PartitionEntry) -> Result<Vec<Uid>, Error> {
    let mut uids = scan::uids(store, partition, Layer::Ol)?;
    uids.extend(scan::uids(store, partition, Layer::Il)?);
    uids.sort_unstable();
    uids.dedup();
    Ok(uids)
}

/// The keys of a partition's URLs, in order.
///
/// # Errors
/// Layers that cannot be read. The error is the last item.
pub fn keys_of<'a>(
    store: &'a Store,
    partition: &'a PartitionEntry,
) -> impl Iterator<Item = Result<Vec<u8>, Error>> + 'a {
    scan::urls(store, partition).map(|url| {
        let mut url_key = Vec::new();
        key(&url?, &mut url_key);
        Ok(url_key)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::links::encoding::{STRATA, SideEncoding};
    use crate::numbers::{Node, Number};
    use webstrata_layers::{Page, RangeLength, Status, StatusChange};

    /// The sections of a cell with one page that links to itself, and its content.
    fn made() -> ([Vec<u8>; SECTIONS], Content) {
        let (mut own_key, mut content) = (Vec::new(), Content::default());
        let url = "http://a.example/";
        key(url, &mut own_key);
        let not_found = StatusChange { capture: 1, status: Status::new(404).unwrap() };
        let page = Page {
            uid: Uid(7),
            timestamps: vec![0, 1],
            blank: vec![1],
            links: vec![Uid(7)],
            statuses: vec![not_found],
            ..Page::default()
        };
        let record = InLinks { uid: Uid(7), ranges: vec![0], sources: vec![Uid(7)], changes: Vec::new() };
        content.add_url(url);
        content.add_page(&page);
        content.add_in_links(&record);
        let urls = url_store::encode(|visit| visit(&own_key).map_err(Error::from), url_store::Options::default());
        let given = CellShape { first: Number(7), nodes: 1, keys: None };
        // All UIDs are nodes, so each UID is its own number.
        let (page, record) = (page.renumbered(|uid| Number(uid.0)), record.renumbered(|uid| Number(uid.0)));
        let pages = || -> Records<'_, Page<Number>> { Box::new(std::iter::once(Ok(page.clone()))) };
        let records = || -> Records<'_, InLinks<Number>> { Box::new(std::iter::once(Ok(record.clone()))) };
        let (out, into) = (STRATA.encode_forward(given, (1, &pages)), STRATA.encode_backward(given, (1, &records)));
        let mut statuses = StatusesWriter::default();
        statuses.push(Node(0), &[not_found]);
        ([urls.unwrap(), Vec::new(), out.unwrap(), into.unwrap(), statuses.finish()], content)
    }

    #[test]
    fn an_image_that_does_not_read_back_is_an_error_and_does_not_stay() {
        let dir = tempfile::tempdir().unwrap();
        let place = path_of(dir.path(), 3, 5);
        let label = Label {
            row: 3,
            partition: 5,
            encoding: STRATA.tag(),
            first_uid: Uid(7),
            urls: 1,
            first_record: Uid(7),
            end_record: Uid(8),
            in_range: RangeLength::Month,
            source: 1,
        };
        let (whole, said) = made();
        let settle = |sections: &[Vec<u8>; SECTIONS], said: &Content| {
            let draft = image::write(&place, &label, said.counts(), sections.each_ref().map(Vec::as_slice)).unwrap();
            settle(draft, &place, (&label, &STRATA), (said, std::iter::empty()))
        };
        let files = || std::fs::read_dir(place.parent().unwrap()).unwrap().count();
        let refused = |sections: &[Vec<u8>; SECTIONS], said: &Content| {
            let error = settle(sections, said).unwrap_err();
            assert!(error.to_string().starts_with("row 3, partition 5: the cell does not read back"), "{error}");
            assert_eq!(files(), 0);
            let Error::ReadBack { why, .. } = error else { panic!("{error}") };
            *why
        };
        // Bytes that an encoder could write wrongly: each section in turn is truncated, or replaced by another.
        for section in 0..SECTIONS {
            let mut broken = whole.clone();
            let half = broken[section].len() / 2;
            broken[section].truncate(half);
            broken[section].push(1);
            let why = refused(&broken, &said);
            assert!(matches!(why, Error::Damaged { .. }), "section {section}: {why}");
        }
        let mut other = said.clone();
        other.add_in_links(&InLinks {
            uid: Uid(8),
            ranges: vec![0],
            sources: [7].map(Uid).to_vec(),
            changes: Vec::new(),
        });
        assert!(matches!(refused(&whole, &other), Error::Differs { part: "in-links", .. }));
        let mut other = Content::default();
        other.add_url("http://b.example/");
        assert!(matches!(refused(&whole, &other), Error::Differs { part: "URLs", .. }));
        settle(&whole, &said).unwrap();
        assert!(place.exists() && files() == 1);
    }
}
