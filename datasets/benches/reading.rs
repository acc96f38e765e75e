//! Measures the speed of reading inputs, in CPU time of this thread.
//!
//! `cargo bench -p webstrata-datasets --bench reading -- [--times N] FILES` prints one line of JSON for each crawl file
//! and stage. A stage includes the stages before it. `bytes` is the file and its decompression alone. `captures` adds
//! records, documents and links. `fingerprints` adds resolving, canonical URLs and hashes of all links, and counts only
//! links to the web. `cpu_seconds` is for one pass, the mean of N (1).
//! Without a file: the interner alone, on 100,000 URLs of 70 bytes, and the generator.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use flate2::bufread::MultiGzDecoder;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::Instant;
use webstrata_datasets::{Base, Capture, CaptureReader, GenerateOptions, Generator, Interner, LinkKinds, Tally};
use webstrata_datasets::{URL_BYTES, inputs, open};

fn main() {
    let (mut times, mut paths) = (1, Vec::new());
    let mut args = std::env::args_os().skip(1).filter(|arg| arg != "--bench");
    while let Some(arg) = args.next() {
        if arg == "--times" {
            times = args.next().and_then(|times| times.to_str()?.parse().ok()).expect("--times N");
        } else {
            paths.push(PathBuf::from(arg));
        }
    }
    if paths.is_empty() {
        interner();
        for crawl in ["uk", "hard", "irregular"] {
            generator(&format!("{crawl}:occurrences=20000000"));
        }
    }
    for path in paths {
        for stage in ["bytes", "captures", "fingerprints"] {
            measure(&path, stage, times);
        }
    }
}

fn interner() {
    let urls: Vec<String> = (0..100_000u64)
        .map(|n| format!("http://www.example-{:04}.co.uk/directory/of/the/page/{:018}.html", n % 1000, n * 7))
        .collect();
    let mut interner = Interner::new(1 << 18, URL_BYTES);
    let order: Vec<usize> =
        (0..10_000_000u64).map(|n| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20) as usize % urls.len()).collect();
    let page = Base::new(&urls[0], "").expect("a web page");
    for (name, sequential) in [("cold", true), ("sequential", true), ("random", false)] {
        let (start, mut fresh, count) = (Clock::start(), 0, if name == "cold" { urls.len() } else { order.len() });
        for n in 0..count {
            let url = &urls[if sequential { n % urls.len() } else { order[n] }];
            let _ = interner.intern(Some(&page), url, &mut |_, _| fresh += 1);
        }
        let nanoseconds = start.nanoseconds() / count as u128;
        println!("interner, {} bytes, {name}: {nanoseconds} ns a reference, {fresh} fresh", urls[0].len());
    }
}

fn generator(options: &str) {
    let options: GenerateOptions = options.parse().expect("options");
    let (start, mut crawl) = (Clock::start(), Generator::new(options));
    let (mut capture, mut tally, mut captures, mut links, mut bytes) = (Capture::default(), Tally::default(), 0, 0, 0);
    while crawl.read(&mut capture, &mut tally).expect("a capture") {
        captures += 1;
        links += capture.links.len();
        bytes += capture.links.iter().map(str::len).sum::<usize>();
    }
    let nanoseconds = start.nanoseconds() as f64 / links as f64;
    println!("{options}: {captures} captures, {links} links of {} bytes, {nanoseconds:.1} ns a link", bytes / links);
}

/// The counts of one pass over a file.
#[derive(Default)]
struct Met {
    bytes: u64,
    captures: u64,
    links: u64,
    urls: u64,
}

fn measure(path: &Path, stage: &str, times: u32) {
    let (start, mut met) = (Clock::start(), Met::default());
    for _ in 0..times {
        met = if stage == "bytes" { bytes(path) } else { captures(path, stage == "fingerprints") };
    }
    let cpu_seconds = start.nanoseconds() as f64 / 1e9 / f64::from(times);
    println!(
        "{{\"file\":{:?},\"stage\":\"{stage}\",\"cpu_seconds\":{cpu_seconds:.6},\"bytes\":{},\"captures\":{},\
         \"links\":{},\"urls\":{}}}",
        path, met.bytes, met.captures, met.links, met.urls
    );
}

/// Counts the bytes of the text of a file, plain or gzip.
fn bytes(path: &Path) -> Met {
    let mut file = BufReader::with_capacity(1 << 16, File::open(path).expect("a file"));
    let gzip = file.fill_buf().expect("bytes").starts_with(&[0x1f, 0x8b]);
    let mut text: Box<dyn Read> = if gzip { Box::new(MultiGzDecoder::new(file)) } else { Box::new(file) };
    let (mut met, mut buffer) = (Met::default(), vec![0; 1 << 16]);
    loop {
        match text.read(&mut buffer).expect("bytes") {
            0 => return met,
            bytes => met.bytes += bytes as u64,
        }
    }
}

fn captures(path: &Path, intern: bool) -> Met {
    let (mut met, mut tally, mut capture) = (Met::default(), Tally::default(), Capture::default());
    let mut interner = Interner::new(1 << 18, URL_BYTES);
    for input in inputs(&[path.to_owned()]).expect("inputs") {
        let mut reader = open(&input, LinkKinds::default()).expect("an input");
        while reader.read(&mut capture, &mut tally).expect("a capture") {
            met.captures += 1;
            if !intern {
                met.links += capture.links.len() as u64;
                continue;
            }
            let Ok(base) = Base::new(&capture.url, &capture.base) else { continue };
            let mut fresh = 0;
            for link in capture.links.iter() {
                met.links += u64::from(interner.intern(Some(&base), link, &mut |_, _| fresh += 1).is_ok());
            }
            met.urls += fresh;
        }
    }
    met
}

/// The processor time of this thread if the system provides it, so that a busy machine does not matter; else wall time.
struct Clock(Option<u128>, Instant);

impl Clock {
    fn start() -> Self {
        Clock(on_processor(), Instant::now())
    }

    fn nanoseconds(&self) -> u128 {
        match (self.0, on_processor()) {
            (Some(start), Some(end)) => end - start,
            _ => self.1.elapsed().as_nanos(),
        }
    }
}

fn on_processor() -> Option<u128> {
    std::fs::read_to_string("/proc/thread-self/schedstat").ok()?.split(' ').next()?.parse().ok()
}
