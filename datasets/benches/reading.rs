//! Speed of the hot input: `cargo bench -p webstrata-datasets -- TABLE.parquet` reads and interns a capture table.
//! Before it: the interner alone, on 100,000 URLs of 70 bytes, and the generator.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::path::PathBuf;
use std::time::Instant;
use webstrata_datasets::{Base, Capture, CaptureReader, GenerateOptions, Generator, Interner, LinkKinds, Tally};
use webstrata_datasets::{inputs, open};

fn main() {
    let paths: Vec<PathBuf> = std::env::args_os().skip(1).filter(|arg| arg != "--bench").map(PathBuf::from).collect();
    interner();
    for options in ["uk:occurrences=20000000", "hard:occurrences=20000000", "irregular:occurrences=20000000,months=60"]
    {
        generator(options);
    }
    if !paths.is_empty() {
        for intern in [false, true, true] {
            read(&paths, intern);
        }
    }
}

fn interner() {
    let urls: Vec<String> = (0..100_000u64)
        .map(|n| format!("http://www.example-{:04}.co.uk/directory/of/the/page/{:018}.html", n % 1000, n * 7))
        .collect();
    let mut interner = Interner::new(1 << 18);
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

fn read(paths: &[PathBuf], intern: bool) {
    let (mut capture, mut tally, mut interner) = (Capture::default(), Tally::default(), Interner::new(1 << 18));
    let (mut captures, mut links, mut bytes, mut fresh) = (0u64, 0u64, 0u64, 0u64);
    let start = Clock::start();
    for input in inputs(paths).expect("inputs") {
        let mut reader = open(&input, LinkKinds::default()).expect("an input");
        while reader.read(&mut capture, &mut tally).expect("a capture") {
            captures += 1;
            links += capture.links.len() as u64;
            if intern {
                let base = Base::new(&capture.url, &capture.base).expect("a web page");
                for link in capture.links.iter() {
                    bytes += link.len() as u64;
                    let _ = interner.intern(Some(&base), link, &mut |_, _| fresh += 1);
                }
            }
        }
    }
    let nanoseconds = start.nanoseconds() as f64 / links as f64;
    println!(
        "{captures} captures, {links} links, {bytes} bytes, {fresh} fresh, {tally:?}: {nanoseconds:.1} ns a link, intern {intern}"
    );
}

/// Time of this thread on a processor where the system tells it, so that a busy machine does not show; else wall time.
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
