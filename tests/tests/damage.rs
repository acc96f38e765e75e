//! Random damage to any file of a store: what is answered after it is right, or is an error.
//!
//! By default a few hundred damages, the same each time; `WEBSTRATA_DAMAGES=2500,SEED` asks for more and for others.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]
#![expect(clippy::print_stdout, reason = "how many damages were found is for the reader of its output")]

#[path = "../../layers/tests/files/mod.rs"]
mod files;

use files::files_below;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use webstrata_cells::image::Residence;
use webstrata_cells::image::label::{directory, partitions};
use webstrata_cells::image::load::{Options, write_cell};
use webstrata_cells::{Cells, url_store};
use webstrata_codecs::CodecTag;
use webstrata_codecs::ENCODINGS;
use webstrata_layers::read::check;
use webstrata_layers::{CaptureTime, Lifespan, Precision};
use webstrata_layers::{Error, InLinks, Links, Page, Reader, Store, Uid, Window};
use webstrata_pipeline::{MergeOptions, Progress, build, merge};
use webstrata_tests::crawls::{Crawl, Random, Size};
use webstrata_tests::stores::{options, run_options};

/// URLs of a partition, so that each row has several.
const PARTITION_URLS: u64 = 40;

/// A store of four epochs (a build, an update, a merge, an update), with the cells of the last.
fn store_in(dir: &Path) -> PathBuf {
    let store = dir.join("store");
    let crawl = Crawl::random(77, Size { pages: 25, captures: 250, links: 9 });
    let lines = crawl.json_lines();
    for (step, lines) in lines.chunks(lines.len().div_ceil(3)).enumerate() {
        let input = dir.join(format!("{step}.jsonl"));
        fs::write(&input, lines.join("\n")).unwrap();
        let mut options = options(&store, vec![input]);
        (options.update, options.partition_urls) = (step > 0, Some(PARTITION_URLS));
        build(&options, &Progress::default()).unwrap();
        if step == 1 {
            let run = run_options(&store);
            let options = MergeOptions { run, rows: None, partition_urls: Some(PARTITION_URLS) };
            merge(&options, &Progress::default()).unwrap();
        }
    }
    let opened = Store::open(store.as_path()).unwrap();
    for (row, partition) in partitions(&opened) {
        let options = Options { encoding: CodecTag::Strata.encoding(), urls: url_store::Options::default() };
        write_cell(&opened, directory(&opened).unwrap(), row, partition, options).unwrap();
    }
    store
}

/// What a store says of a URL.
#[derive(Debug, PartialEq)]
enum Answer {
    Url(String),
    Uid(Option<Uid>),
    Captures(Vec<CaptureTime>),
    Links(Vec<Uid>),
    Lifespans(Vec<Lifespan>),
    Page(Option<Arc<Page>>),
    InLinks(Option<Arc<InLinks>>),
    Linked(bool),
}

/// All questions of this test to one store, in an order that is always the same.
fn ask(links: &dyn Links, urls: &[String], windows: &[Window], mut take: impl FnMut(Result<Answer, Error>)) {
    let all = urls.len() as u64;
    for (uid, url) in Uid::each(Uid::below(all)).zip(urls) {
        take(links.url(uid).map(Answer::Url));
        take(links.uid(url).map(Answer::Uid));
        take(links.captures(uid).map(Answer::Captures));
        take(links.lifespans(uid).map(Answer::Lifespans));
        take(links.page(uid).map(Answer::Page));
        take(links.in_record(uid).map(Answer::InLinks));
        for &window in windows {
            take(links.out_links(uid, window).map(Answer::Links));
            take(links.in_links(uid, window, Precision::Exact).map(Answer::Links));
            take(links.has_link(uid, Uid((uid.0 * 7 + 3) % all), window).map(Answer::Linked));
        }
    }
}

/// Answers of the sound store.
struct Right {
    epoch: u64,
    urls: Vec<String>,
    windows: Vec<Window>,
    answers: Vec<Answer>,
}

impl Right {
    fn of(store: &Path, epoch: u64) -> Self {
        let reader = Reader::new(Store::open_epoch(store, epoch).unwrap(), 1 << 20);
        let every = Uid::each(Uid::below(reader.urls()));
        let urls: Vec<String> = every.clone().map(|uid| reader.url(uid).unwrap()).collect();
        let mut times: Vec<i64> =
            every.flat_map(|uid| reader.captures(uid).unwrap()).map(|capture| capture.time).collect();
        times.sort_unstable();
        let at = |share: usize| times[times.len() * share / 4];
        let windows = vec![Window::ALWAYS, Window::as_of(at(2)), Window::Seen { from: at(1), to: at(3) }];
        let mut answers = Vec::new();
        ask(&reader, &urls, &windows, |answer| answers.push(answer.unwrap()));
        Self { epoch, urls, windows, answers }
    }

    /// Asks a store; how many answers are errors.
    fn compare(&self, links: &dyn Links) -> Result<usize, String> {
        let (mut errors, mut at, mut wrong) = (0, 0, None);
        ask(links, &self.urls, &self.windows, |answer| {
            match answer {
                Err(_) => errors += 1,
                Ok(answer) if answer == self.answers[at] => {}
                Ok(answer) => wrong = Some(format!("{answer:?}, expected {:?}", self.answers[at])),
            }
            at += 1;
        });
        wrong.map_or(Ok(errors), Err)
    }
}

/// Damages bytes in one way or another; says how.
fn damaged(bytes: &mut Vec<u8>, others: &[Vec<u8>], random: &mut Random) -> &'static str {
    let index = |random: &mut Random, end: usize| usize::try_from(random.below(end.max(1) as u64)).unwrap();
    let at = index(random, bytes.len());
    let end = (at + 1 + index(random, 64)).min(bytes.len());
    match random.below(9) {
        0 | 1 if !bytes.is_empty() => {
            bytes[at] ^= 1 << random.below(8);
            "a bit is another"
        }
        2 if !bytes.is_empty() => {
            let digits: Vec<usize> = (0..bytes.len()).filter(|&at| bytes[at].is_ascii_digit()).collect();
            let at = if digits.is_empty() { at } else { digits[index(random, digits.len())] };
            let more = u8::try_from(1 + random.below(9)).unwrap();
            bytes[at] = b'0' + bytes[at].wrapping_sub(b'0').wrapping_add(more) % 10;
            "a digit is another"
        }
        3 => {
            bytes.truncate(at);
            "the end is missing"
        }
        4 => {
            bytes[at..end].fill(0);
            "bytes are zero"
        }
        5 => {
            bytes.drain(at..end);
            "bytes are missing"
        }
        6 => {
            let part = bytes[at..end].to_vec();
            bytes.splice(at..at, part);
            "bytes stand twice"
        }
        7 => {
            let from = index(random, bytes.len() - (end - at) + 1);
            bytes.copy_within(at..end, from);
            "bytes stand elsewhere too"
        }
        _ => {
            bytes.clone_from(&others[index(random, others.len())]);
            "another file of the store is in its place"
        }
    }
}

#[test]
fn after_random_damage_answers_are_right_or_errors() {
    let asked = std::env::var("WEBSTRATA_DAMAGES").unwrap_or_else(|_| "250,1".to_owned());
    let (count, seed) = asked.split_once(',').unwrap_or((&asked, "1"));
    let (count, mut random) = (count.parse::<u32>().unwrap(), Random(seed.parse().unwrap()));
    let dir = tempfile::tempdir().unwrap();
    let store = store_in(dir.path());
    let files = files_below(&store);
    let sound: Vec<Vec<u8>> = files.iter().map(|file| fs::read(file).unwrap()).collect();
    let newest = Store::open(store.as_path()).unwrap().manifest().epoch;
    let rights: Vec<Right> = (1..=newest).map(|epoch| Right::of(&store, epoch)).collect();
    assert!(rights.len() == 4 && check::check(store.as_path()).unwrap().is_sound());
    let (mut refused, mut failed, mut unseen, mut seen_by_check) = (0, 0, 0, 0);
    for trial in 0..count {
        let at = random.index(files.len());
        let mut bytes = sound[at].clone();
        let how = damaged(&mut bytes, &sound, &mut random);
        if bytes == sound[at] {
            continue;
        }
        fs::write(&files[at], &bytes).unwrap();
        let what = format!("trial {trial}, {}: {how}", files[at].display());
        let mut errors = 0;
        for right in &rights {
            let Ok(opened) = Store::open_epoch(store.as_path(), right.epoch) else {
                errors += 1;
                continue;
            };
            let reader = Reader::new(opened, 1 << 20);
            errors += right.compare(&reader).unwrap_or_else(|wrong| panic!("{what}: epoch {}: {wrong}", right.epoch));
        }
        match Store::open(store.as_path()) {
            Err(_) => refused += 1,
            Ok(opened) => {
                assert_eq!(opened.manifest().epoch, newest, "{what}");
                for residence in [Residence::Memory, Residence::Mapped] {
                    match Cells::open(&opened, residence, ENCODINGS) {
                        Ok(Some(cells)) => {
                            let wrong = |wrong| panic!("{what}: cells, {residence:?}: {wrong}");
                            errors += rights[rights.len() - 1].compare(&cells).unwrap_or_else(wrong);
                        }
                        Ok(None) | Err(_) => errors += 1,
                    }
                }
                if errors > 0 { failed += 1 } else { unseen += 1 }
            }
        }
        let is_sound = check::check(store.as_path()).is_ok_and(|report| report.is_sound());
        seen_by_check += u32::from(!is_sound);
        fs::write(&files[at], &sound[at]).unwrap();
    }
    println!(
        "{count} damages: of {refused} the store does not open, after {failed} some questions fail, after \
         {unseen} all are answered; \
         check finds {seen_by_check}; no answer is wrong"
    );
    for right in &rights {
        let reader = Reader::new(Store::open_epoch(store.as_path(), right.epoch).unwrap(), 1 << 20);
        assert_eq!(right.compare(&reader), Ok(0));
    }
}
