//! The most compressible inputs through every encoding, compared with plain loops over captures: equal pages, equal
//! captures, one link, all links, no links, and from no page to a million.
//!
//! Such inputs take far less than a byte an item, and in some places no bit at all. They therefore reach every bound of
//! an opener that does not follow from the coding. Encoded bytes must open, and answer as the plain lists do. Longer
//! runs:
//!
//! ```text
//! # 100,000 random inputs from seed 7
//! WEBSTRATA_COMPRESSIBLE=100000,7 cargo test --release -p webstrata-codecs --test compressible
//! # up to a million items of every kind
//! WEBSTRATA_COMPRESSIBLE_N=1000000 cargo test --release -p webstrata-codecs --test compressible
//! ```

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

#[path = "compressible/plain.rs"]
mod plain;
#[path = "compressible/shapes.rs"]
mod shapes;

use std::collections::{BTreeMap, BTreeSet};

use webstrata_layers::record::key::key;
use webstrata_layers::{CaptureTime, InLinks, Links, Page, Status, Uid, Window};

use plain::{Capture, Plain, RANGE, in_links_of, lifespans, links_in, page_of, union};
use shapes::Shape;
use webstrata_cells::bench::Random;
use webstrata_cells::image::label::Label;
use webstrata_cells::image::{Counts, bytes_of};
use webstrata_cells::links::backward::{Found, Wanted};
use webstrata_cells::links::encoding::{CellShape, Records};
use webstrata_cells::links::lists::Lists;
use webstrata_cells::links::scratch::StoreScratch;
use webstrata_cells::numbers::{self, Numbers};
use webstrata_cells::url_store::{self, UrlStore};
use webstrata_cells::{Cells, Error, Node, Number};
use webstrata_codecs::ENCODINGS;
use webstrata_codecs::codec::{self, CodecTag};

/// Some of the numbers below `count`, among them the first and the last.
fn some(count: usize) -> impl Iterator<Item = usize> {
    (0..count).step_by(count / 64 + 1).chain(count.checked_sub(1))
}

fn windows(captures: &[Capture]) -> Vec<Window> {
    let time = |at: usize| captures.get(at).map_or(0, |(time, _)| *time);
    let (first, middle, last) = (time(0), time(captures.len() / 2), time(captures.len().saturating_sub(1)));
    vec![
        Window::ALWAYS,
        Window::Seen { from: first, to: first },
        Window::Seen { from: middle, to: last },
        Window::Seen { from: last + 1, to: i64::MAX },
        Window::as_of(middle),
        Window::as_of(first - 1),
        Window::as_of(i64::MAX),
    ]
}

fn lists(plain: &Plain, tag: CodecTag, keys: &[Vec<u8>]) {
    let mut lists = Lists { first: plain.first, ..Lists::default() };
    let mut pages = plain.own().peekable();
    for uid in plain.uids() {
        lists.push(&pages.next_if(|page| page.0 == uid).map_or_else(Vec::new, |(_, captures)| union(captures)));
    }
    let keys = tag.reads_keys().then_some(keys);
    let codec = codec::open(tag, codec::encode(tag, &lists, keys).unwrap().into()).unwrap();
    assert_eq!(codec.nodes(), plain.nodes);
    let (mut scratch, mut links) = (StoreScratch::default(), Vec::new());
    for node in some(plain.nodes) {
        codec.list(node, &mut scratch, &mut links).unwrap();
        assert_eq!(links, lists.list(node), "list of node {node}");
        assert_eq!(codec.degree(node).unwrap(), links.len());
    }
    let mut next = 0;
    let mut visit = |node: usize, links: &[u64]| {
        assert_eq!((node, links), (next, lists.list(node)));
        next += 1;
    };
    codec.scan(&mut visit).unwrap();
    assert_eq!(next, plain.nodes);
}

fn forward(plain: &Plain, tag: CodecTag, given: CellShape<'_>) -> Vec<u8> {
    let page = |(uid, captures): &(u64, Vec<Capture>)| page_of(*uid, captures).renumbered(Number);
    let pages = || -> Records<'_, Page<Number>> { Box::new(plain.own().map(|own| Ok(page(own)))) };
    let bytes = tag.encoding().encode_forward(given, (plain.own().count(), &pages)).unwrap();
    let store = tag.encoding().open_forward(&bytes.clone().into(), Number(plain.first), plain.nodes).unwrap();
    let (mut links, mut captures, mut spans) = (Vec::new(), Vec::new(), Vec::new());
    let mut scratch = StoreScratch::default();
    let by_uid: BTreeMap<u64, &Vec<Capture>> = plain.own().map(|(uid, captures)| (*uid, captures)).collect();
    for node in 0..plain.nodes {
        let uid = plain.first + node as u64;
        let own = by_uid.get(&uid).copied();
        let page = own.map(|captures| page_of(uid, captures).renumbered(Number));
        assert_eq!(store.page(Node(node)).unwrap(), page, "page of node {node}");
        assert_eq!(store.has(Node(node)).unwrap(), own.is_some());
    }
    for node in some(plain.nodes) {
        let own = by_uid.get(&(plain.first + node as u64)).map_or(&[][..], |captures| captures);
        for window in windows(own) {
            store.window(Node(node), window, &mut scratch, &mut links).unwrap();
            let expected: Vec<Number> = links_in(own, window).into_iter().map(Number).collect();
            assert_eq!(links, expected, "node {node} in {window:?}");
        }
        store.captures(Node(node), &mut scratch, &mut captures).unwrap();
        let expected =
            own.iter().map(|(time, links)| CaptureTime { time: *time, known: links.is_some(), status: Status::OK });
        assert!(captures.iter().copied().eq(expected), "captures of node {node}");
        store.lifespans(Node(node), &mut scratch, &mut spans).unwrap();
        assert_eq!(spans, lifespans(own), "lifespans of node {node}");
        let (first, last) = own.first().zip(own.last()).map_or((0, 0), |(first, last)| (first.0, last.0));
        assert_eq!(store.captured(Node(node), (last, i64::MAX), &mut scratch).unwrap(), !own.is_empty());
        assert!(!store.captured(Node(node), (i64::MIN, first - 1), &mut scratch).unwrap());
    }
    bytes
}

fn backward(plain: &Plain, tag: CodecTag, given: CellShape<'_>) -> Vec<u8> {
    let own = || plain.sources.range(plain.uids());
    let records = || -> Records<'_, InLinks<Number>> {
        Box::new(own().map(|(uid, sources)| Ok(in_links_of(*uid, sources).renumbered(Number))))
    };
    let bytes = tag.encoding().encode_backward(given, (own().count(), &records)).unwrap();
    let store = tag.encoding().open_backward(&bytes.clone().into(), Number(plain.first), plain.nodes).unwrap();
    for node in 0..plain.nodes {
        let uid = plain.first + node as u64;
        let record = plain.sources.get(&uid).map(|sources| in_links_of(uid, sources).renumbered(Number));
        assert_eq!(store.record(Node(node)).unwrap(), record, "in-links of node {node}");
    }
    let mut scratch = StoreScratch::default();
    for (uid, sources) in own() {
        let ranges: BTreeSet<i64> = sources.values().flatten().copied().collect();
        let ranges: Vec<i64> = ranges.into_iter().collect();
        let node = usize::try_from(uid - plain.first).unwrap();
        let last = ranges.len() - 1;
        for (from, to) in [(0, last), (0, 0), (last, last), (last / 3, last / 2)] {
            for inner in [None, Some((from, to)), Some((from, (from + to) / 2))] {
                let mut found = Vec::new();
                let wanted = |_: &[i64]| Some(Wanted { ranges: (from, to), inner });
                let mut visit = |source, how| found.push((source, how == Found::Inner));
                store.sources(Node(node), &wanted, &mut scratch, &mut visit).unwrap();
                let in_any = |set: &BTreeSet<i64>, (from, to): (usize, usize)| {
                    set.range(ranges[from]..=ranges[to]).next().is_some()
                };
                let expected = sources.iter().filter(|(_, set)| in_any(set, (from, to)));
                let expected =
                    expected.map(|(&source, set)| (Number(source), inner.is_some_and(|inner| in_any(set, inner))));
                assert!(found.iter().copied().eq(expected), "sources of node {node}, {from} to {to}, {inner:?}");
            }
        }
    }
    bytes
}

/// The URL at a place in a cell. URLs have equal length, so that their order is the order of numbers.
fn url_of(at: usize, alike: bool) -> Vec<u8> {
    let mut own = Vec::new();
    if alike {
        key(&format!("http://example/{at:07}"), &mut own);
    } else {
        key(&format!("http://p{at:07}.example/"), &mut own);
    }
    own
}

fn urls(keys: &[Vec<u8>], block: usize) -> Vec<u8> {
    let visit = |visit: &mut dyn FnMut(&[u8]) -> Result<(), webstrata_cells::UrlsError>| {
        keys.iter().try_for_each(|key| visit(key)).map_err(Error::from)
    };
    let bytes = url_store::encode(visit, url_store::Options { block, ..url_store::Options::default() }).unwrap();
    let store = UrlStore::open(bytes.clone().into()).unwrap();
    assert_eq!(store.len(), keys.len() as u64);
    let mut own = Vec::new();
    for at in some(keys.len()) {
        store.key(at as u64, &mut own).unwrap();
        assert_eq!(own, keys[at]);
        assert_eq!(store.find(&keys[at]).unwrap(), Some(at as u64));
    }
    bytes
}

/// Checks the numbers of a cell in which every `every`-th UID is a node, from the first UID plus `from` on.
fn numbers(interval: std::ops::Range<u64>, from: u64, every: usize) {
    let uids: Vec<Uid> = (interval.start + from..interval.end).step_by(every).map(Uid).collect();
    let interval = Uid(interval.start)..Uid(interval.end);
    let numbers = Numbers::open(numbers::encode(&uids, &interval).into(), interval).unwrap();
    assert_eq!(numbers.len(), uids.len());
    for node in some(uids.len()) {
        assert_eq!(numbers.node(uids[node]), Some(Node(node)));
        assert_eq!(numbers.uid(numbers.number(uids[node]).unwrap()), uids[node]);
    }
}

/// Makes a cell of all parts. The cell must open, and give back its records and URLs.
fn cell(plain: &Plain, tag: CodecTag, keys: &[Vec<u8>], sections: [&[u8]; 4]) {
    let uids = plain.uids();
    let label = Label {
        row: 1,
        partition: 0,
        encoding: tag.encoding().tag(),
        first_uid: Uid(uids.start),
        urls: plain.nodes as u64,
        first_record: Uid(uids.start),
        end_record: Uid(uids.end),
        in_range: RANGE,
        source: 0,
    };
    let cells = Cells::of_image(
        bytes_of(&label, &Counts::default(), [sections[0], sections[1], sections[2], sections[3], &[]]).into(),
        ENCODINGS,
    )
    .unwrap();
    let mut own = Vec::new();
    for node in some(plain.nodes) {
        let uid = plain.first + node as u64;
        let url = cells.url(Uid(uid)).unwrap();
        own.clear();
        key(&url, &mut own);
        assert_eq!((cells.uid(&url).unwrap(), &own), (Some(Uid(uid)), &keys[node]));
        let page = plain.own().find(|page| page.0 == uid).map(|(_, captures)| page_of(uid, captures).renumbered(Uid));
        assert_eq!(cells.page(Uid(uid)).unwrap().as_deref(), page.as_ref());
        let record = plain.sources.get(&uid).map(|sources| in_links_of(uid, sources).renumbered(Uid));
        assert_eq!(cells.in_record(Uid(uid)).unwrap().as_deref(), record.as_ref());
    }
}

/// Everything that is encoded from a shape opens, and answers as the plain lists do.
fn conforms(shape: &Shape, tags: &[CodecTag]) {
    let plain = shape.plain();
    let keys: Vec<Vec<u8>> = (0..plain.nodes).map(|at| url_of(at, shape.step % 2 == 0)).collect();
    let block = [4, 16, 64][plain.nodes % 3];
    let urls = urls(&keys, block);
    numbers(plain.uids(), 0, 1);
    numbers(plain.uids(), shape.pages % 7, 1 + plain.pages.len() % 5);
    numbers(0..1 << 40, 9, (1 << 40) / (plain.nodes + 1));
    for &tag in tags {
        let whole = std::panic::AssertUnwindSafe(|| {
            lists(&plain, tag, &keys);
            let keys_of = tag.reads_keys().then_some(&keys[..]);
            let given = CellShape { first: Number(plain.first), nodes: plain.nodes, keys: keys_of };
            let (out, into) = (forward(&plain, tag, given), backward(&plain, tag, given));
            cell(&plain, tag, &keys, [&urls, &[], &out, &into]);
        });
        assert!(std::panic::catch_unwind(whole).is_ok(), "{}: {shape:?}", tag.name());
    }
}

/// The sizes that all encodings are tested with.
const SIZES: [u64; 4] = [0, 1, 65, 301];
/// More sizes for the default encodings, and for all encodings if the environment variable sets a limit.
const MORE: [u64; 12] = [2, 16, 255, 256, 257, 300, 513, 4095, 4096, 4097, 65_537, 1_000_000];

#[test]
fn pages_that_are_all_the_same_are_written_and_read() {
    let wanted = std::env::var("WEBSTRATA_COMPRESSIBLE_N").ok().map(|text| text.parse::<u64>().unwrap());
    SIZES.into_iter().flat_map(Shape::of).for_each(|shape| conforms(&shape, &CodecTag::ALL));
    for n in MORE.into_iter().filter(|&n| n <= wanted.unwrap_or(4097)) {
        let tags = if wanted.is_some() { &CodecTag::ALL[..] } else { &[CodecTag::Strata, CodecTag::StrataSpeed] };
        Shape::of(n).iter().for_each(|shape| conforms(shape, tags));
    }
}

#[test]
fn random_pages_that_are_all_the_same_are_written_and_read() {
    let wanted = std::env::var("WEBSTRATA_COMPRESSIBLE").ok();
    let wanted = wanted.as_deref().and_then(|text| text.split_once(','));
    let (rounds, seed): (u64, u64) =
        wanted.map_or((25, 5), |(rounds, seed)| (rounds.parse().unwrap(), seed.parse().unwrap()));
    let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get() as u64);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            scope.spawn(move || {
                for round in (thread..rounds).step_by(usize::try_from(threads).unwrap()) {
                    let mut random = Random::new(seed.wrapping_mul(1 << 32).wrapping_add(round + 1));
                    conforms(&Shape::random(&mut random), &CodecTag::ALL);
                }
            });
        }
    });
}
