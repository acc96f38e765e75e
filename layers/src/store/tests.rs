//! Writers of a store in a bucket that were given up, and go on: none of them makes an epoch current.

use super::*;

const EPOCH: &str = "1 0123456789abcdef0123456789abcdef\n";

/// A writer that was stalled, and the one that took its lock over.
fn writers(store: &Location) -> (StoreWriter, StoreWriter) {
    let stalled = StoreWriter::open(store, "stalled", None).expect("a lock");
    store.storage().remove(LOCK).expect("no lock");
    (stalled, StoreWriter::open(store, "next", None).expect("a lock"))
}

#[test]
fn a_writer_that_was_stalled_does_not_put_back_an_epoch() {
    let store = Location::in_memory();
    let (mut stalled, mut next) = writers(&store);
    assert!(matches!(stalled.check(), Err(Error::LockLost { owner, .. }) if owner == "next"));
    next.set_current(EPOCH).unwrap();
    let late = "1 ffffffffffffffffffffffffffffffff\n";
    assert!(matches!(stalled.set_current(late), Err(Error::LockLost { .. })));
    assert_eq!(store.storage().read(CURRENT).unwrap().as_deref(), Some(EPOCH.as_bytes()));
    drop(stalled);
    next.check().unwrap();
}

#[test]
fn a_fence_keeps_stalled_writers_from_replacing_current_and_is_no_epoch() {
    let store = Location::in_memory();
    let (mut stalled, mut next) = writers(&store);
    next.fence().unwrap();
    assert_eq!(current(&store).unwrap(), None);
    assert!(stalled.set_current("7 ffffffffffffffffffffffffffffffff\n").is_err());
    assert!(stalled.fence().is_err());
    drop((stalled, next));
    // Who comes after the fence reads the same epoch, and replaces it.
    let mut last = StoreWriter::open(&store, "last", None).unwrap();
    assert_eq!(last.current(), None);
    last.set_current(EPOCH).unwrap();
    assert_eq!(store.storage().read(CURRENT).unwrap().as_deref(), Some(EPOCH.as_bytes()));
}

#[test]
fn files_of_a_writer_that_was_given_up_are_removed_behind_a_fence() {
    let store = Location::in_memory();
    let (mut stalled, next) = writers(&store);
    drop(next);
    store.storage().create("rows/000001/ol/part-00000.parquet", b"half").unwrap();
    let next = StoreWriter::open(&store, "next", None).unwrap();
    assert_eq!(store.storage().names("rows").unwrap(), [] as [&str; 0]);
    assert!(stalled.set_current(EPOCH).is_err(), "its files are gone");
    drop((stalled, next));
}
