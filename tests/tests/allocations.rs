//! Answers from cells of strata allocate no memory besides the answer itself. There is no allocation if the answer has
//! room, and each kind of question was asked before. This also holds for several rows if one row has all records of a
//! URL.

#![expect(unsafe_code, reason = "an allocator that counts what it hands on")]
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::fs;
use std::ops::ControlFlow;
use webstrata_cells::disk::load::{Options, write_cell};
use webstrata_cells::image::Residence;
use webstrata_cells::image::label::{directory, partitions};
use webstrata_cells::links::encoding::{STRATA, STRATA_SPEED, STRATA_THIN};
use webstrata_cells::{Cells, Encoding, url_store};
use webstrata_codecs::ENCODINGS;
use webstrata_engine::Progress;
use webstrata_layers::{Direction, Links, Precision, Sample, Sampling, Store, Uid, Window};
use webstrata_pipeline::build;
use webstrata_tests::crawls::{Crawl, Size};
use webstrata_tests::stores::options;

thread_local! {
    static COUNT: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: passes every call unchanged to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.set(COUNT.get() + 1);
        // SAFETY: the caller upholds the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: the caller upholds the contract.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn answers_allocate_nothing_but_themselves() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("crawl.jsonl");
    let crawl = Crawl::random(41, Size { pages: 80, captures: 900, links: 20 });
    fs::write(&input, crawl.json_lines().join("\n")).unwrap();
    let path = dir.path().join("store");
    build(&options(&path, vec![input]), &Progress::default()).unwrap();
    assert_no_allocations(&Store::open(path.as_path()).unwrap());
    // Two rows of the same time. Each row has its own pages.
    let input = dir.path().join("other.jsonl");
    fs::write(&input, crawl.json_lines().join("\n").replace("example", "other").replace("EXAMPLE", "OTHER")).unwrap();
    let mut options = options(&path, vec![input]);
    options.update = true;
    build(&options, &Progress::default()).unwrap();
    let store = Store::open(path.as_path()).unwrap();
    assert_eq!(store.manifest().rows.len(), 2);
    assert_no_allocations(&store);
}

fn assert_no_allocations(store: &Store) {
    let encodings: [&dyn Encoding; 3] = [&STRATA, &STRATA_SPEED, &STRATA_THIN];
    for encoding in encodings {
        let cell = Options { encoding, urls: url_store::Options::default() };
        for (row, partition) in partitions(store) {
            write_cell(store, directory(store).unwrap(), row, partition, cell).unwrap();
        }
        let cells = Cells::open(store, Residence::Mapped, ENCODINGS).unwrap().unwrap();
        let counts = store.manifest().counts;
        let (first, last) = (counts.first_time.unwrap(), counts.last_time.unwrap());
        let (middle, quarter) = (first.midpoint(last), (last - first) / 4);
        let windows = [
            Window::ALWAYS,
            Window::as_of(middle),
            Window::Seen { from: middle - quarter, to: middle + quarter },
            Window::Seen { from: middle, to: middle },
        ];
        let directions = [Direction::Out, Direction::In(Precision::Exact), Direction::In(Precision::Range)];
        let (mut links, mut captures, mut url) = (Vec::new(), Vec::new(), Vec::new());
        let mut ask_all = || {
            for uid in Uid::each(Uid::below(counts.urls)) {
                for (direction, window) in directions.into_iter().flat_map(|own| windows.map(|window| (own, window))) {
                    cells.links_into(uid, direction, window, &mut links).unwrap();
                    cells.degree(uid, direction, window).unwrap();
                    let sample = Sample { count: 3, sampling: Sampling::Consistent, seed: 1 };
                    cells.sample_into(uid, direction, window, sample, &mut links).unwrap();
                }
                cells.has_link(uid, Uid(uid.0 / 2), windows[2]).unwrap();
                cells.captures_into(uid, &mut captures).unwrap();
                cells.url_into(uid, &mut url).unwrap();
                assert_eq!(cells.uid(std::str::from_utf8(&url).unwrap()).unwrap(), Some(uid));
            }
            cells.uids(Uid::below(counts.urls), (first, middle), &mut |_| ControlFlow::Continue(())).unwrap();
        };
        ask_all();
        let before = COUNT.get();
        ask_all();
        assert_eq!(COUNT.get() - before, 0, "{encoding:?}");
    }
}
