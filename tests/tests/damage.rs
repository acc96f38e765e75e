//! Damages random files of a store. Every answer after the damage is right, or is an error.
//!
//! The files are layers, manifests, translations, lists of inputs, cells, overviews and watches. An error names the
//! file, or at least the store. Mapped cells are also damaged while a server answers from them: the server makes these
//! cells again.
//!
//! By default the test makes a few hundred damages, the same each time. `WEBSTRATA_DAMAGES=2500,SEED` sets another
//! number and another seed. A twentieth of the number is made under a server.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]
#![expect(clippy::print_stdout, reason = "how many damages were found is for the reader of its output")]

#[path = "../../layers/tests/files/mod.rs"]
mod files;

use files::files_below;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use webstrata_analysis::overview;
use webstrata_analysis::standing::{Registered, Registration, Standing, registered};
use webstrata_cells::bench::measure;
use webstrata_cells::disk::check::{CellsReport, check as check_cells};
use webstrata_cells::disk::load::{Options, write_cell};
use webstrata_cells::image::Residence;
use webstrata_cells::image::label::{directory, partitions};
use webstrata_cells::links::encoding::{STRATA, STRATA_THIN};
use webstrata_cells::{Cells, Encoding, url_store};
use webstrata_codecs::ENCODINGS;
use webstrata_engine::Progress;
use webstrata_layers::overview::Overview;
use webstrata_layers::{CaptureTime, InputRecord, Lifespan, Precision, Translations, check_all, read_inputs};
use webstrata_layers::{Error, InLinks, Links, Page, Reader, Store, Uid, Window};
use webstrata_pipeline::{MergeOptions, build, merge};
use webstrata_tests::clusters::{Cluster, Shape};
use webstrata_tests::crawls::{Crawl, Random, Size};
use webstrata_tests::stores::{options, run_options};

/// The number of URLs of a partition, small enough that each row has several partitions.
const PARTITION_URLS: u64 = 40;

/// Makes a store of four epochs (a build, an update, a merge, an update), with the cells of the last epoch.
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
            let options = MergeOptions { partition_urls: Some(PARTITION_URLS), ..MergeOptions::new(run) };
            merge(&options, &Progress::default()).unwrap();
        }
    }
    overview(&run_options(&store), &Progress::default()).unwrap().write(&store.as_path().into()).unwrap();
    for (name, k) in [("top", 17), ("most", 1234)] {
        let standing = Standing::Top { k };
        let registration = Registration { standing, out: None, whole: false, epoch: None };
        Registered::take(&store.as_path().into(), name).unwrap().write(&registration).unwrap();
    }
    let opened = Store::open(store.as_path()).unwrap();
    let encodings: [&dyn Encoding; 2] = [&STRATA, &STRATA_THIN];
    for ((row, partition), encoding) in partitions(&opened).zip(encodings.into_iter().cycle()) {
        let options = Options { encoding, urls: url_store::Options::default() };
        write_cell(&opened, directory(&opened).unwrap(), row, partition, options).unwrap();
    }
    store
}

/// An answer of a store.
#[expect(clippy::large_enum_variant, reason = "a few hundred answers are held, one of them an overview")]
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
    Overview(Option<Overview>),
    Watches(Vec<(String, Registration)>),
    Inputs(Vec<InputRecord>),
    Translated(Vec<Option<Uid>>),
}

/// Reads the data beside the layers of an epoch.
fn ask_beside(store: &Store, mut take: impl FnMut(Result<Answer, Error>)) {
    take(Overview::read(store).map(Answer::Overview));
    let known = registered(store.location()).unwrap().into_iter();
    let known = known.map(|(name, watch)| Ok((name, watch.map_err(|error| Error::Elsewhere(Box::new(error)))?)));
    take(known.collect::<Result<_, Error>>().map(Answer::Watches));
    for entry in &store.manifest().provenance.inputs {
        take(read_inputs(store, entry).map(Answer::Inputs));
    }
    for past in store.manifest().lineage() {
        let translated = Translations::between(store, past.epoch)
            .map(|between| Uid::each(Uid::below(past.urls)).map(|uid| between.forward(uid)).collect());
        take(translated.map(Answer::Translated));
    }
}

/// Asks a store all questions of this test, always in the same order.
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

/// The answers of the undamaged store.
struct Right {
    epoch: u64,
    urls: Vec<String>,
    windows: Vec<Window>,
    answers: Vec<Answer>,
    beside: Vec<Answer>,
    /// The text that every error must contain.
    named: String,
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
        let (mut beside, named) = (Vec::new(), store.display().to_string());
        ask_beside(reader.store(), |answer| beside.push(answer.unwrap()));
        Self { epoch, urls, windows, answers, beside, named }
    }

    /// Asks a store, and compares the answers. Returns the number of errors.
    fn compare(&self, links: &dyn Links) -> Result<usize, String> {
        let mut told = Told { expected: &self.answers, named: Some(&self.named), ..Told::default() };
        ask(links, &self.urls, &self.windows, |answer| told.take(answer));
        told.wrong.map_or(Ok(told.errors), Err)
    }

    /// Like `compare`, for the data beside the layers.
    fn compare_beside(&self, store: &Store) -> Result<usize, String> {
        let mut told = Told { expected: &self.beside, named: Some(&self.named), ..Told::default() };
        ask_beside(store, |answer| told.take(answer));
        told.wrong.map_or(Ok(told.errors), Err)
    }

    /// Like `compare`, through a server. Errors of a server name cells and not files.
    fn compare_served(&self, links: &dyn Links) -> Result<usize, String> {
        let mut told = Told { expected: &self.answers, ..Told::default() };
        ask(links, &self.urls, &self.windows, |answer| told.take(answer));
        told.wrong.map_or(Ok(told.errors), Err)
    }
}

/// Compares answers in order.
#[derive(Default)]
struct Told<'a> {
    expected: &'a [Answer],
    named: Option<&'a str>,
    at: usize,
    errors: usize,
    wrong: Option<String>,
}

impl Told<'_> {
    fn take(&mut self, answer: Result<Answer, Error>) {
        let expected = self.expected.get(self.at);
        self.at += 1;
        match answer {
            Err(error) => {
                self.errors += 1;
                let text = error.to_string();
                if self.named.is_some_and(|named| !text.contains(named)) {
                    self.wrong = Some(format!("the error names no file: {text}"));
                }
            }
            Ok(answer) if Some(&answer) == expected => {}
            Ok(answer) => self.wrong = Some(format!("{answer:?}, expected {expected:?}")),
        }
    }
}

/// Damages bytes in a random way, and names the way.
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

/// Whether `webstrata check --all` finds no problem.
fn is_sound(store: &Path) -> bool {
    let Ok(report) = check_all(store) else { return false };
    let mut cells = CellsReport::default();
    for &epoch in &report.epochs {
        let Ok(opened) = Store::open_epoch(store, epoch) else { return false };
        check_cells(&opened, ENCODINGS, &mut cells);
    }
    report.is_sound() && cells.problems.is_empty()
}

/// Overwrites a file in place, as a failing disk does: a process that has mapped the file sees the new bytes.
fn write_in_place(path: &Path, bytes: &[u8]) {
    let file = fs::File::options().write(true).open(path).unwrap();
    (&file).write_all(bytes).unwrap();
    if file.metadata().unwrap().len() != bytes.len() as u64 {
        file.set_len(bytes.len() as u64).unwrap();
    }
}

/// The requested number of damages, and the seed.
fn asked_for() -> (u32, Random) {
    let asked = std::env::var("WEBSTRATA_DAMAGES").unwrap_or_else(|_| "250,1".to_owned());
    let (count, seed) = asked.split_once(',').unwrap_or((&asked, "1"));
    (count.parse().unwrap(), Random(seed.parse().unwrap()))
}

#[test]
fn cells_damaged_under_a_server_give_right_answers_or_errors_and_are_made_anew() {
    let (count, mut random) = asked_for();
    let (count, dir) = ((count / 20).clamp(6, 100).min(count), tempfile::tempdir().unwrap());
    let store = store_in(dir.path());
    let newest = Store::open(store.as_path()).unwrap().manifest().epoch;
    let mut right = Right::of(&store, newest);
    // One window is enough, because each question goes over the network.
    right.windows.truncate(1);
    right.answers.clear();
    let reader = Reader::new(Store::open(store.as_path()).unwrap(), 1 << 20);
    ask(&reader, &right.urls, &right.windows, |answer| right.answers.push(answer.unwrap()));
    let is_cell = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "cell");
    let cluster = Cluster::start(&store, Shape { replicas: 1, memory: 0, ..Shape::default() });
    let clerk = cluster.clerk();
    assert_eq!(right.compare_served(&clerk), Ok(0));
    let mapped = || cluster.server(0).shared().cluster.counts().borrow().cells[1];
    let (all, mut failed, mut dropped) = (mapped(), 0, 0);
    assert!(all > 1 && cluster.server(0).shared().cluster.counts().borrow().cells[0] == 0);
    for trial in 0..count {
        // The server uses the cells of the store in place. A cell that was damaged there is made again in the server's
        // directory.
        let own: Vec<PathBuf> = files_below(cluster.data(0)).into_iter().filter(is_cell).collect();
        let others: Vec<PathBuf> = files_below(&store).into_iter().filter(is_cell).collect();
        let name = |path: &Path| {
            (path.parent().unwrap().file_name().map(ToOwned::to_owned), path.file_name().map(ToOwned::to_owned))
        };
        let chosen = &others[random.index(others.len())];
        let files: Vec<&PathBuf> = own.iter().filter(|path| name(path) == name(chosen)).chain([chosen]).collect();
        let sound = fs::read(chosen).unwrap();
        let mut bytes = sound.clone();
        let how = match random.below(4) {
            0 => {
                (0..40).for_each(|_| bytes[random.index(sound.len())] ^= 1 << random.below(8));
                "40 bits are others"
            }
            1 => {
                let at = random.index(sound.len());
                let end = (at + 512).min(sound.len());
                bytes[at..end].fill(0);
                "a block is zero"
            }
            2 => {
                bytes.truncate(random.index(sound.len()));
                "the end is missing"
            }
            _ => {
                let other = fs::read(&others[random.index(others.len())]).unwrap();
                bytes.clone_from(&other);
                "another cell is in its place"
            }
        };
        files.iter().for_each(|file| write_in_place(file, &bytes));
        let what = format!("trial {trial}, {}: {how}", chosen.display());
        failed += right.compare_served(&clerk).unwrap_or_else(|wrong| panic!("{what}: {wrong}"));
        write_in_place(chosen, &sound);
        cluster.until("damaged cells are made anew", || mapped() == all);
        let again = right.compare_served(&clerk);
        assert_eq!(again, Ok(0), "{what}");
        dropped = cluster.server(0).shared().cluster.counts().borrow().damaged;
    }
    println!(
        "{count} damages under a server: {failed} questions failed, {dropped} cells made anew, no answer is wrong"
    );
    assert!(dropped > 0);
}

/// Measures the CPU time of the same questions on mapped cells, whose blocks are checked, and on cells in memory, which
/// are not checked.
#[test]
#[ignore = "a measurement, for a machine with nothing else to do: cargo test --test damage -- --ignored"]
fn checks_by_block_cost_little() {
    let dir = tempfile::tempdir().unwrap();
    let (input, store) = (dir.path().join("crawl.jsonl"), dir.path().join("store"));
    let crawl = Crawl::random(5, Size { pages: 4000, captures: 40_000, links: 20 });
    fs::write(&input, crawl.json_lines().join("\n")).unwrap();
    build(&options(&store, vec![input]), &Progress::default()).unwrap();
    let opened = Store::open(store.as_path()).unwrap();
    for (row, partition) in partitions(&opened) {
        let options = Options { encoding: &STRATA, urls: url_store::Options::default() };
        write_cell(&opened, directory(&opened).unwrap(), row, partition, options).unwrap();
    }
    let counts = opened.manifest().counts;
    let span = counts.first_time.zip(counts.last_time).unwrap();
    let [memory, mapped] = [Residence::Memory, Residence::Mapped]
        .map(|residence| Cells::open(&opened, residence, ENCODINGS).unwrap().unwrap());
    let mut sums = std::collections::BTreeMap::<&str, [f64; 2]>::new();
    for round in 0..6 {
        for (at, cells) in [&memory, &mapped].into_iter().enumerate() {
            for figures in measure(cells, 20_000, round, span).unwrap() {
                sums.entry(figures.what).or_default()[at] += figures.ns_a_question() / 6.0;
            }
        }
    }
    for (what, [memory, mapped]) in &sums {
        println!("{what:40} {memory:8.0} ns in memory, {mapped:8.0} ns mapped, ratio {:.3}", mapped / memory);
    }
    let [memory, mapped] = [0, 1].map(|at| sums.values().map(|both| both[at]).sum::<f64>());
    println!("all: ratio {:.3}", mapped / memory);
    assert!(mapped < 1.2 * memory);
}

#[test]
fn after_random_damage_answers_are_right_or_errors() {
    let (count, mut random) = asked_for();
    let dir = tempfile::tempdir().unwrap();
    let store = store_in(dir.path());
    let files = files_below(&store);
    let sound: Vec<Vec<u8>> = files.iter().map(|file| fs::read(file).unwrap()).collect();
    let newest = Store::open(store.as_path()).unwrap().manifest().epoch;
    let rights: Vec<Right> = (1..=newest).map(|epoch| Right::of(&store, epoch)).collect();
    assert!(rights.len() == 4 && is_sound(&store));
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
            let beside = right.compare_beside(&opened);
            errors += beside.unwrap_or_else(|wrong| panic!("{what}: epoch {}: {wrong}", right.epoch));
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
        let is_sound = is_sound(&store);
        seen_by_check += u32::from(!is_sound);
        // `check` does not look at data that no reader uses: the holder of a lock, and the text behind the digest in
        // CURRENT.
        let name = files[at].file_name().unwrap().to_string_lossy();
        let counts = name != "LOCK" && !name.ends_with(".lock") && name != "CURRENT";
        assert!(!is_sound || !counts, "{what}: check finds nothing");
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
