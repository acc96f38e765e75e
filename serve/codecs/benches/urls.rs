//! The URL store compared with other dictionaries of strings: bytes a URL, and CPU time of random look-ups both ways.
//!
//! `cargo bench -p webstrata-codecs --bench urls -- [--block K] [FILE]`: the file has URLs, one a line; the URLs are
//! sorted by their keys. Without a file, URLs are generated, and the output says so. Prints one table. Each time is the
//! median of three passes over a million look-ups by one thread, in random order. Keys to look for are stored in the
//! order of asking, so that fetching them is not measured. The other dictionaries hold and return the keys, not the
//! URLs.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
#![expect(clippy::cast_possible_truncation, reason = "numbers and sizes of what is in memory")]

use dsi_progress_logger::no_logging;
use mem_dbg::{MemSize, SizeFlags};
use std::hint::black_box;
use std::time::Instant;
use sux::dict::rear_coded_list::{RearCodedListBuilder, RearCodedListSliceU8};
use sux::func::LcpMmphfSliceU8;
use sux::traits::{IndexedDict, TryIntoUnaligned};
use webstrata_cells::UrlsError;
use webstrata_cells::bench::Random;
use webstrata_cells::url_store::{Options, UrlStore, encode};

const LOOK_UPS: usize = 1_000_000;

fn main() {
    let (mut options, mut urls) = (Options::default(), Vec::new());
    let mut args = std::env::args().skip(1).filter(|arg| arg != "--bench");
    while let Some(arg) = args.next() {
        if arg == "--block" {
            options.block = args.next().and_then(|block| block.parse().ok()).expect("--block K");
        } else {
            let text = std::fs::read_to_string(&arg).expect("a file of URLs, one a line");
            urls.extend(text.lines().map(str::to_owned));
        }
    }
    if urls.is_empty() {
        println!("no file given: made-up URLs\n");
        urls = (0..200_000u64).map(made_up).collect();
    }
    let mut key = Vec::new();
    let mut keys: Vec<Vec<u8>> = Vec::new();
    for url in &urls {
        webstrata_layers::record::key::key(url, &mut key);
        keys.push(key.clone());
    }
    keys.sort_unstable();
    keys.dedup();
    compare(&keys, options);
    cells(&keys, options);
}

fn made_up(n: u64) -> String {
    let mixed = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16;
    let words = ["news", "about", "list", "product", "archive", "forum", "image", "user", "blog", "topic", "help"];
    let word = |shift: u32| words[(mixed >> shift) as usize % words.len()];
    format!("http://www.{}-{}.example/{}/{}-{}/{n}.html", word(9), mixed % 997, word(3), word(7), mixed >> 12 & 0xfff)
}

fn image(keys: &[Vec<u8>], options: Options) -> Vec<u8> {
    encode::<UrlsError>(|each| keys.iter().try_for_each(|key| each(key)), options).expect("keys that rise")
}

/// Look-ups of one kind: takes the place in the order of asking and the number asked for.
type LookUp<'a> = Box<dyn FnMut(usize, usize) -> usize + 'a>;

/// Keys, stored in the order of asking.
struct Asked {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Asked {
    fn new(keys: &[Vec<u8>], order: &[usize]) -> Self {
        let (mut bytes, mut ends) = (Vec::new(), vec![0]);
        for &at in order {
            bytes.extend_from_slice(&keys[at]);
            ends.push(bytes.len());
        }
        Self { bytes, ends }
    }

    fn key(&self, place: usize) -> &[u8] {
        &self.bytes[self.ends[place]..self.ends[place + 1]]
    }
}

fn compare(keys: &[Vec<u8>], options: Options) {
    let count = keys.len();
    let bytes = keys.iter().map(Vec::len).sum::<usize>();
    println!("{count} URLs, {:.1} bytes a key\n", bytes as f64 / count as f64);
    println!("| | bytes a URL | number to key ns | to URL ns | key to number ns | absent key ns | encoding us a URL |");
    println!("|---|---|---|---|---|---|---|");
    let mut numbers = Random::new(1);
    let mut random = |bound: usize| numbers.below(bound as u64) as usize;
    let order: Vec<usize> = (0..LOOK_UPS).map(|_| random(count)).collect();
    // Keys with one byte altered anywhere but at the end.
    let absent: Vec<Vec<u8>> = keys
        .iter()
        .map(|key| {
            loop {
                let mut key = key.clone();
                let at = random(key.len() - 1);
                key[at] = b"aeinst0123-/"[random(12)];
                if keys.binary_search(&key).is_err() {
                    break key;
                }
            }
        })
        .collect();
    let (asked, absent) = (Asked::new(keys, &order), Asked::new(&absent, &order));
    let row = |name: &str, bytes: usize, encoding: Option<f64>, look_ups: [Option<LookUp<'_>>; 4]| {
        let times =
            look_ups.map(|look_up| look_up.map_or("-".to_owned(), |look_up| format!("{:.0}", median(&order, look_up))));
        let encoding =
            encoding.map_or("-".to_owned(), |nanoseconds| format!("{:.2}", nanoseconds / 1e3 / count as f64));
        let bytes = bytes as f64 / count as f64;
        println!("| {name} | {bytes:.2} | {} | {encoding} |", times.join(" | "));
    };

    let (clock, image) = (Clock::start(), image(keys, options));
    let encoding = Some(clock.nanoseconds());
    let clock = Clock::start();
    let store = UrlStore::open(image.into()).expect("an image");
    let open = clock.nanoseconds() / 1e6;
    let sizes = store.sizes();
    let all = sizes.data + sizes.index + sizes.dictionary + sizes.expanded;
    let (mut out, mut url) = (Vec::new(), String::new());
    row(
        &format!("URL store, k = {}", options.block),
        all as usize,
        encoding,
        [
            Some(Box::new(|_, at| store.key(at as u64, &mut out).map_or(0, |()| out.len()))),
            Some(Box::new(|_, at| store.url(at as u64, &mut url).map_or(0, |()| url.len()))),
            Some(Box::new(|place, _| {
                store.find(asked.key(place)).ok().flatten().expect("a key of the store") as usize
            })),
            Some(Box::new(|place, _| usize::from(store.find(absent.key(place)).expect("a sound store").is_some()))),
        ],
    );

    let clock = Clock::start();
    let mut builder = RearCodedListBuilder::<[u8], true>::new(16);
    keys.iter().for_each(|key| builder.push(key.as_slice()));
    let list: RearCodedListSliceU8 = builder.build();
    let encoding = Some(clock.nanoseconds());
    let list_bytes = list.mem_size(SizeFlags::default());
    let (mut out, mut again) = (Vec::new(), Vec::new());
    row(
        "RearCodedList, k = 16 (sux)",
        list_bytes,
        encoding,
        [
            Some(Box::new(|_, at| {
                list.get_in_place(at, &mut out);
                out.len()
            })),
            None,
            Some(Box::new(|place, _| list.index_of(asked.key(place)).expect("a key of the list"))),
            Some(Box::new(|place, _| usize::from(list.index_of(absent.key(place)).is_some()))),
        ],
    );

    let rank = <LcpMmphfSliceU8>::try_par_new(keys, no_logging![]).expect("a function");
    let rank = rank.try_into_unaligned().expect("a function");
    let rank_bytes = rank.mem_size(SizeFlags::default());
    let mut find = |key: &[u8]| {
        let at = rank.get(key).min(count - 1);
        list.get_in_place(at, &mut again);
        (again == key).then_some(at)
    };
    let find = std::cell::RefCell::new(&mut find);
    row(
        "LcpMmphf, with the list above (sux)",
        list_bytes + rank_bytes,
        None,
        [
            None,
            None,
            Some(Box::new(|place, _| (find.borrow_mut())(asked.key(place)).expect("a key of the list"))),
            Some(Box::new(|place, _| usize::from((find.borrow_mut())(absent.key(place)).is_some()))),
        ],
    );

    let clock = Clock::start();
    let map = fst::Map::from_iter(keys.iter().zip(0u64..)).expect("keys that rise");
    let encoding = Some(clock.nanoseconds());
    let mut out = Vec::new();
    row(
        "fst::Map",
        map.as_fst().size(),
        encoding,
        [
            Some(Box::new(|_, at| {
                out.clear();
                map.as_fst().get_key_into(at as u64, &mut out);
                out.len()
            })),
            None,
            Some(Box::new(|place, _| map.get(asked.key(place)).expect("a key of the map") as usize)),
            Some(Box::new(|place, _| usize::from(map.get(absent.key(place)).is_some()))),
        ],
    );
    let share = |bytes: u64| bytes as f64 / count as f64;
    println!(
        "\nURL store: data {:.2}, index {:.2}, dictionary {:.2} bytes a URL, and {:.2} in memory for the dictionary \
         expanded; open {open:.2} ms",
        share(sizes.data),
        share(sizes.index),
        share(sizes.dictionary),
        share(sizes.expanded),
    );
}

/// Prints the sizes of small cells.
fn cells(keys: &[Vec<u8>], options: Options) {
    for size in [1_000, 10_000, 50_000] {
        let bytes: Vec<(f64, f64)> = keys
            .chunks_exact(size)
            .map(|keys| {
                let image = image(keys, options);
                let length = image.len();
                let expanded = UrlStore::open(image.into()).expect("an image").sizes().expanded;
                (length as f64 / size as f64, (length as u64 + expanded) as f64 / size as f64)
            })
            .collect();
        let mean = |of: fn(&(f64, f64)) -> f64| bytes.iter().map(of).sum::<f64>() / bytes.len() as f64;
        let most = |of: fn(&(f64, f64)) -> f64| bytes.iter().map(of).fold(0.0, f64::max);
        println!(
            "cells of {size}: image mean {:.2}, worst {:.2}; with the dictionary expanded mean {:.2}, worst {:.2} \
             bytes a URL",
            mean(|bytes| bytes.0),
            most(|bytes| bytes.0),
            mean(|bytes| bytes.1),
            most(|bytes| bytes.1),
        );
    }
}

/// CPU time of a look-up in nanoseconds: the median of three passes.
fn median(order: &[usize], mut look_up: LookUp<'_>) -> f64 {
    let mut passes = [(); 3].map(|()| {
        let clock = Clock::start();
        black_box(order.iter().enumerate().map(|(place, &at)| look_up(place, at)).fold(0, usize::wrapping_add));
        clock.nanoseconds() / order.len() as f64
    });
    passes.sort_unstable_by(f64::total_cmp);
    passes[1]
}

/// CPU time of this thread, or wall time if the system does not report CPU time.
struct Clock(Option<u128>, Instant);

impl Clock {
    fn start() -> Self {
        Self(on_processor(), Instant::now())
    }

    fn nanoseconds(&self) -> f64 {
        match (self.0, on_processor()) {
            (Some(start), Some(end)) => (end - start) as f64,
            _ => self.1.elapsed().as_nanos() as f64,
        }
    }
}

/// On Linux: the nanoseconds that this thread was on a processor.
fn on_processor() -> Option<u128> {
    // The system updates its count when the thread yields.
    std::thread::yield_now();
    std::fs::read_to_string("/proc/thread-self/schedstat").ok()?.split(' ').next()?.parse().ok()
}
