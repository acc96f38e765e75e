//! A shelf has only sound images of cells, made from layers or received. It does not keep unsound images.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::fs;
use std::path::Path;
use std::sync::Arc;
use webstrata_cells::Cell;
use webstrata_cells::cells::row::InRecord;
use webstrata_cells::disk::load::{Options, write_cell};
use webstrata_cells::image::label::{partitions, source_of};
use webstrata_cells::image::{Residence, label::path_of};
use webstrata_cells::{Error, Node, Row, Scratch, Shelf, url_store};
use webstrata_codecs::CodecTag;
use webstrata_codecs::ENCODINGS;
use webstrata_layers::{Links, PartitionEntry, RangeLength, Reader, RowEntry, Store, Uid};
use webstrata_tests::rows::{Rows, Shape};

fn options(codec: CodecTag) -> Options {
    Options { encoding: codec.encoding(), urls: url_store::Options::default() }
}

/// A store of two rows in three partitions.
fn store_in(dir: &Path, seed: u64) -> Store {
    let shape = Shape { rows: 2, pages: 12, captures: 60, links: 6, in_order: false };
    let path = dir.join("store");
    Rows::random(seed, shape).write(&path, 3, RangeLength::Month);
    Store::open(path.as_path()).unwrap()
}

/// The partition with the most URLs in a store, and its row.
fn largest(store: &Store) -> (&RowEntry, &PartitionEntry) {
    partitions(store).max_by_key(|(_, partition)| partition.urls).unwrap()
}

/// The names of all files of a shelf, without its lock.
fn files(dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for row in fs::read_dir(dir.join("cells")).unwrap() {
        let names = fs::read_dir(row.unwrap().path()).unwrap();
        found.extend(names.map(|name| name.unwrap().file_name().into_string().unwrap()));
    }
    found.sort();
    found
}

/// Compares the URLs of a cell with the URLs of the layers.
fn assert_urls(cell: &Cell, store: &Store) {
    let reader = Reader::new(store.clone(), 1 << 20);
    let (mut url, label) = (String::new(), cell.label());
    for uid in Uid::each(label.first_uid..label.first_uid + label.urls) {
        cell.url(uid, &mut url).unwrap();
        assert_eq!(url, reader.url(uid).unwrap());
    }
}

/// Sends the image of a peer in pieces.
fn send(shelf: &Shelf, (row, partition): (u32, u32), bytes: &[u8], source: u64) -> Result<(), Error> {
    let mut receiver = shelf.receive(row, partition)?;
    bytes.chunks(1000).try_for_each(|piece| receiver.push(piece))?;
    receiver.finish(source)
}

#[test]
fn images_are_made_from_layers_elsewhere_and_go_from_shelf_to_shelf() {
    let dir = tempfile::tempdir().unwrap();
    let store = store_in(dir.path(), 1);
    let (one, other) = (dir.path().join("one"), dir.path().join("other"));
    let (one, other) = (Shelf::open(one, ENCODINGS).unwrap(), Shelf::open(other, ENCODINGS).unwrap());
    for (row, partition) in partitions(&store) {
        let place = (row.row, partition.partition);
        assert!(one.find(&store, row, partition, Residence::Mapped).unwrap().is_none());
        one.write(&store, row, partition, options(CodecTag::Strata)).unwrap();
        let path = one.image(Some(&store), place.0, place.1, source_of(partition)).unwrap().unwrap();
        assert_eq!(path, path_of(&dir.path().join("one"), place.0, place.1));
        assert_eq!(one.image(None, place.0, place.1, 7).unwrap(), None, "of other layers");
        assert_eq!(other.image(Some(&store), place.0, place.1, source_of(partition)).unwrap(), None);
        send(&other, place, &fs::read(path).unwrap(), source_of(partition)).unwrap();
        let cells = [&one, &other].map(|shelf| shelf.find(&store, row, partition, Residence::Memory).unwrap().unwrap());
        assert_eq!(cells[0].label(), cells[1].label());
        cells.iter().for_each(|cell| assert_urls(cell, &store));
    }
    assert_eq!(files(&dir.path().join("one")), files(&dir.path().join("other")));
    assert!(!dir.path().join("store/cells").exists(), "nothing is written into the store");
}

#[test]
fn cells_know_how_much_is_in_them() {
    let dir = tempfile::tempdir().unwrap();
    let store = store_in(dir.path(), 8);
    let shelf = Shelf::open(dir.path().join("shelf"), ENCODINGS).unwrap();
    for codec in CodecTag::ALL {
        let (mut sums, mut scratch) = ([0; 3], Scratch::default());
        for (row, partition) in partitions(&store) {
            shelf.write(&store, row, partition, options(codec)).unwrap();
            let cell = shelf.find(&store, row, partition, Residence::Mapped).unwrap().unwrap();
            let (label, counts) = (*cell.label(), *cell.counts());
            let uids = Uid::each(label.first_record..label.end_record);
            let nodes: Vec<Node> = uids.filter_map(|uid| cell.node(uid)).collect();
            let pages: Vec<_> = nodes.iter().filter_map(|&node| cell.page(node).unwrap()).collect();
            let held = Row::of(row).with(Arc::new(cell));
            let mut into = Vec::new();
            for uid in Uid::each(label.first_record..label.end_record) {
                let InRecord::Whole(record) = held.in_record(uid, &mut scratch).unwrap() else { panic!("{uid}") };
                into.extend(record);
            }
            let cell = held.cell(partition.partition).unwrap();
            assert_eq!(counts.pages, pages.len() as u64);
            assert_eq!(counts.captures, pages.iter().map(|page| page.timestamps.len() as u64).sum::<u64>());
            assert_eq!(counts.links, pages.iter().map(|page| page.links.len() as u64).sum::<u64>());
            let most = pages.iter().map(|page| page.links.len() as u64).max().unwrap_or(0);
            assert_eq!(counts.max_out_degree, most);
            assert_eq!(counts.max_in_degree, into.iter().map(|record| record.sources.len() as u64).max().unwrap_or(0));
            let image = path_of(&dir.path().join("shelf"), row.row, partition.partition);
            assert!((1..image.metadata().unwrap().len()).contains(&cell.bytes()));
            sums = [sums[0] + counts.pages, sums[1] + counts.captures, sums[2] + counts.links];
        }
        let all = store.manifest().counts;
        assert_eq!(sums, [all.pages, all.captures, all.links], "{}", codec.name());
    }
}

#[test]
fn nothing_stays_of_an_image_that_is_damaged_cut_or_another_one() {
    let dir = tempfile::tempdir().unwrap();
    let store = store_in(dir.path(), 2);
    let (row, partition) = largest(&store);
    let (place, source) = ((row.row, partition.partition), source_of(partition));
    let made = Shelf::open(dir.path().join("made"), ENCODINGS).unwrap();
    made.write(&store, row, partition, options(CodecTag::Strata)).unwrap();
    let whole = fs::read(made.image(None, place.0, place.1, source).unwrap().unwrap()).unwrap();
    let path = dir.path().join("shelf");
    let shelf = Shelf::open(path.clone(), ENCODINGS).unwrap();
    let refused = |place, bytes: &[u8], source| {
        let error = send(&shelf, place, bytes, source).unwrap_err();
        assert!(matches!(error, Error::Received { .. }), "{error}");
        assert_eq!(files(&path), [""; 0]);
    };
    for at in [0, 9, 30, 70, 80, 150, 210, 260, whole.len() / 2] {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x10;
        refused(place, &damaged, source);
    }
    for end in [0, 5, 11, 100, 256, whole.len() / 2, whole.len() - 70] {
        refused(place, &whole[..end], source);
    }
    refused(place, b"not a cell", source);
    refused(place, &whole, source + 1);
    refused((place.0, place.1 + 1), &whole, source);
    refused((place.0 + 1, place.1), &whole, source);
    let mut receiver = shelf.receive(place.0, place.1).unwrap();
    receiver.push(&whole).unwrap();
    assert_eq!(files(&path).len(), 1);
    drop(receiver);
    assert_eq!(files(&path), [""; 0], "the peer went away");
    send(&shelf, place, &whole, source).unwrap();
    // A bad image leaves the good image unchanged.
    send(&shelf, place, &whole[..whole.len() / 2], source).unwrap_err();
    assert!(shelf.find(&store, row, partition, Residence::Mapped).unwrap().is_some());
}

#[test]
fn the_store_s_own_image_is_used_in_place_where_it_is_sound() {
    let dir = tempfile::tempdir().unwrap();
    let store = store_in(dir.path(), 3);
    let (row, partition) = largest(&store);
    let (path, own) = (dir.path().join("shelf"), dir.path().join("store"));
    let shelf = Shelf::open(path.clone(), ENCODINGS).unwrap();
    shelf.write(&store, row, partition, options(CodecTag::Csr)).unwrap();
    let codec = || {
        let cell = shelf.find(&store, row, partition, Residence::Mapped).unwrap();
        cell.map(|cell| cell.label().encoding)
    };
    assert_eq!(codec(), Some(CodecTag::Csr.encoding().tag()));
    write_cell(&store, &own, row, partition, options(CodecTag::Strata)).unwrap();
    assert_eq!(codec(), Some(CodecTag::Strata.encoding().tag()));
    let [in_store, in_shelf] = [&own, &path].map(|dir| path_of(dir, row.row, partition.partition));
    let damage = |path: &Path| {
        let mut bytes = fs::read(path).unwrap();
        let at = bytes.len() / 2;
        bytes[at] ^= 1;
        fs::write(path, bytes).unwrap();
    };
    // First an image of another build, then a damaged image. The shelf uses neither, and leaves the store's file alone.
    let other = tempfile::tempdir().unwrap();
    let other_store = store_in(other.path(), 4);
    let (other_row, other_partition) = partitions(&other_store)
        .find(|other| (other.0.row, other.1.partition) == (row.row, partition.partition))
        .unwrap();
    write_cell(&other_store, other.path(), other_row, other_partition, options(CodecTag::Strata)).unwrap();
    let other_image = path_of(other.path(), other_row.row, other_partition.partition);
    fs::copy(&other_image, &in_store).unwrap();
    assert_eq!(codec(), Some(CodecTag::Csr.encoding().tag()));
    write_cell(&store, &own, row, partition, options(CodecTag::Strata)).unwrap();
    damage(&in_store);
    assert_eq!(codec(), Some(CodecTag::Csr.encoding().tag()));
    let image = |store| shelf.image(store, row.row, partition.partition, source_of(partition)).unwrap();
    assert_eq!(image(Some(&store)), Some(in_shelf.clone()));
    // A damaged image in the shelf is removed.
    damage(&in_shelf);
    assert_eq!(codec(), None);
    assert!(in_store.exists() && !in_shelf.exists());
    assert_eq!((image(None), image(Some(&store))), (None, Some(in_store.clone())), "only the head was looked at");
    fs::write(&in_store, "no image").unwrap();
    assert_eq!(image(Some(&store)), None);
}

#[test]
fn only_what_is_wanted_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let store = store_in(dir.path(), 5);
    let path = dir.path().join("shelf");
    let shelf = Shelf::open(path.clone(), ENCODINGS).unwrap();
    for (row, partition) in partitions(&store) {
        shelf.write(&store, row, partition, options(CodecTag::Strata)).unwrap();
        write_cell(&store, &dir.path().join("store"), row, partition, options(CodecTag::Strata)).unwrap();
    }
    let all = files(&path).len();
    let (row, partition) = largest(&store);
    let kept = (row.row, partition.partition);
    let mut receiver = shelf.receive(kept.0, kept.1 + 50).unwrap();
    receiver.push(b"on its way").unwrap();
    fs::write(path.join("cells/notes.txt"), "of somebody").unwrap();
    fs::write(path_of(&path, kept.0, 0).with_file_name("notes.txt"), "of somebody").unwrap();
    let bytes = |row, partition| path_of(&path, row, partition).metadata().unwrap().len();
    let others = partitions(&store).map(|(row, partition)| (row.row, partition.partition)).filter(|own| *own != kept);
    let expected: u64 = others.map(|(row, partition)| bytes(row, partition)).sum();
    let open = shelf.find(&store, row, partition, Residence::Mapped).unwrap().unwrap();
    assert_eq!(shelf.keep(&|row, partition| (row, partition) == kept).unwrap(), expected);
    // The kept image, the draft, and a file that does not belong to the shelf.
    fs::remove_file(path.join("cells/notes.txt")).unwrap();
    assert_eq!(files(&path).len(), 3);
    assert_eq!(files(&dir.path().join("store")).len(), all);
    assert!(shelf.image(None, kept.0, kept.1, source_of(partition)).unwrap().is_some());
    let last = bytes(kept.0, kept.1);
    assert_eq!(shelf.keep(&|_, _| false).unwrap(), last);
    assert_urls(&open, &store);
}

#[test]
fn a_directory_is_of_one_shelf_and_of_no_store() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("shelf");
    let shelf = Shelf::open(path.clone(), ENCODINGS).unwrap();
    let refused = |path: &Path| match Shelf::open(path.to_owned(), ENCODINGS) {
        Err(error @ Error::Shelf { .. }) => error.to_string(),
        other => panic!("{:?}", other.err()),
    };
    assert!(refused(&path).contains("another process"));
    drop(shelf);
    // Drafts of a killed process are removed, and its finished images stay.
    let draft = path_of(&path, 4, 2).with_file_name(".part-00002.cell.7-0.webstrata-draft");
    let images = [path_of(&path, 5, 0), draft.clone()];
    for file in &images {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, "some").unwrap();
    }
    let _shelf = Shelf::open(path.clone(), ENCODINGS).unwrap();
    assert!(images[0].exists() && !draft.parent().unwrap().exists());
    let store = store_in(dir.path(), 6);
    assert!(refused(&dir.path().join("store")).contains("is a store"));
    assert!(Store::open(store.location().directory().unwrap()).is_ok());
}

#[cfg(unix)]
#[test]
fn links_inside_a_shelf_lead_nowhere() {
    let dir = tempfile::tempdir().unwrap();
    let other = dir.path().join("other");
    fs::create_dir_all(&other).unwrap();
    let kept = other.join("part-00000.cell");
    fs::write(&kept, "of somebody else").unwrap();
    for place in ["LOCK", "cells", "cells/000001"] {
        let path = dir.path().join(place.replace('/', "-"));
        fs::create_dir_all(path.join(place).parent().unwrap()).unwrap();
        let target = if place == "LOCK" { &kept } else { &other };
        std::os::unix::fs::symlink(target, path.join(place)).unwrap();
        let refused = Shelf::open(path.clone(), ENCODINGS).err().map(|error| error.to_string());
        assert!(refused.is_some_and(|refused| refused.contains("symbolic link")), "{place}");
        assert_eq!(fs::read_to_string(&kept).unwrap(), "of somebody else");
        fs::remove_file(path.join(place)).unwrap();
        assert!(Shelf::open(path, ENCODINGS).is_ok(), "{place}");
    }
}
