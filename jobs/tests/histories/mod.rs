//! Stores with several epochs, the jobs that make or remove epochs, and the results that must be the same whatever
//! happens to a job: the answers of an epoch, by the texts of URLs, and the bytes of the current epoch.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;
use webstrata_layers::check;
use webstrata_layers::{Error, Links, Manifest, Precision, Reader, Store, StoreWriter, Translations, Uid, Window};

/// A job on a store.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) name: &'static str,
    /// The name of the store that the job begins with.
    pub(crate) base: &'static str,
    /// The command. `STORE` and `DIR` stand for the store and the directory of all stores.
    words: &'static str,
    /// Whether the job has the option for workers.
    pub(crate) works: bool,
}

/// An update after which all rows are merged, a merge of four rows, a garbage collection of five epochs, and an update
/// without a merge.
pub(crate) const JOBS: [Job; 4] = [
    Job { name: "update", base: "updated", words: "update STORE DIR/batch-4.jsonl", works: true },
    Job { name: "merge", base: "rows", words: "merge STORE --rows all", works: true },
    Job { name: "gc", base: "merged", words: "gc STORE --keep 1", works: false },
    Job { name: "no-merge", base: "updated", words: "update STORE --no-merge DIR/batch-4.jsonl", works: true },
];

/// A directory with a crawl in four batches, and the stores of [`JOBS`].
pub(crate) struct Histories {
    dir: TempDir,
}

impl Histories {
    pub(crate) fn new() -> Histories {
        let histories = Histories { dir: tempfile::tempdir().unwrap() };
        for batch in 1..=4 {
            let crawl = format!("uk:occurrences=60000,months=8,from={},to={}", 2 * batch - 1, 2 * batch);
            histories.succeeds(&format!("generate {crawl} --out DIR/batch-{batch}.jsonl"), "none");
        }
        // The rows of `updated` have two updates and one update.
        histories.succeeds("build --out STORE DIR/batch-1.jsonl", "updated");
        for batch in 2..=3 {
            histories.succeeds(&format!("update STORE DIR/batch-{batch}.jsonl"), "updated");
        }
        histories.succeeds("build --out STORE DIR/batch-1.jsonl", "rows");
        for batch in 2..=4 {
            histories.succeeds(&format!("update STORE --no-merge DIR/batch-{batch}.jsonl"), "rows");
        }
        histories.copy("rows", "merged");
        histories.succeeds("merge STORE --rows 2", "merged");
        histories.succeeds("merge STORE --rows all", "merged");
        histories
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Copies the store `from` to `to`.
    pub(crate) fn copy(&self, from: &str, to: &str) {
        copy(&self.path(from), &self.path(to));
    }

    /// A command from words, with a directory for the temporary files of the store.
    fn command(&self, words: &str, store: &Path, spill: &Path) -> Command {
        fs::create_dir_all(spill).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_webstrata"));
        let [store, dir] = [store, self.dir.path()].map(|path| path.display().to_string());
        command.args(words.split(' ').map(|word| word.replace("STORE", &store).replace("DIR", &dir)));
        if ["build", "update", "merge"].iter().any(|verb| words.starts_with(verb)) {
            command.args(["--memory", "1G", "--partition-urls", "300", "--log", "info", "--spill"]).arg(spill);
        }
        command.env("TMPDIR", spill).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        command
    }

    /// The command of a job on the store at `store`.
    pub(crate) fn job(&self, job: &Job, store: &Path, spill: &Path, workers: u64) -> Command {
        let mut command = self.command(job.words, store, spill);
        if job.works {
            command.args(["-w", &workers.to_string()]);
        }
        command
    }

    /// Runs a command on the store `name`, and asserts that it succeeds.
    pub(crate) fn succeeds(&self, words: &str, name: &str) {
        let spill = self.dir.path();
        let output = self.command(words, &self.path(name), spill).output().unwrap();
        assert!(output.status.success(), "{words}: {output:?}");
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let to = to.join(path.file_name().unwrap());
        if path.is_dir() { copy(&path, &to) } else { fs::copy(&path, &to).map(drop).unwrap() }
    }
}

/// All data about a URL: its captures and whether their links are known, the lifespans of its links, and its sources.
type Known = (Vec<(i64, bool)>, BTreeSet<(String, i64, i64)>, BTreeSet<String>);
/// The answers of a store about every URL that is a page or a link target.
type Answers = BTreeMap<String, Known>;

/// The answers of an epoch.
fn answers(store: Store) -> Answers {
    let reader = Reader::new(store, 64 << 20);
    let every = Uid::each(Uid::below(reader.urls()));
    let urls: Vec<String> = every.clone().map(|uid| reader.url(uid).unwrap()).collect();
    let text = |uid: Uid| urls[usize::try_from(uid.0).unwrap()].clone();
    let always = Window::Seen { from: i64::MIN, to: i64::MAX };
    let known = |uid: Uid| {
        let captures = reader.captures(uid).unwrap();
        let captures: Vec<_> = captures.iter().map(|capture| (capture.time, capture.known)).collect();
        let spans = reader.lifespans(uid).unwrap();
        let sources = reader.in_links(uid, always, Precision::Exact).unwrap();
        let spans = spans.iter().map(|span| (text(span.link), span.first, span.last)).collect();
        (captures, spans, sources.into_iter().map(text).collect::<BTreeSet<_>>())
    };
    let all = every.map(|uid| (text(uid), known(uid)));
    all.filter(|(_, (captures, _, sources))| !captures.is_empty() || !sources.is_empty()).collect()
}

/// The result of an undisturbed job.
pub(crate) struct Expected {
    /// The answers of the epoch before the job, and of the epochs that the job makes.
    pub(crate) answers: BTreeMap<u64, Answers>,
    content: Manifest,
}

impl Expected {
    /// Reads the result from a store on which a job has run. The job began at the epoch `first`.
    pub(crate) fn of(store: &Path, first: u64) -> Expected {
        let answers = (first..=current(store)).map(|epoch| (epoch, answers(Store::open_epoch(store, epoch).unwrap())));
        Expected { answers: answers.collect(), content: content(store) }
    }

    /// Checks a store in the middle of the job: it is at one epoch of the job, whole, and answers as this epoch.
    /// Returns the epoch.
    pub(crate) fn inspect(&self, store: &Path) -> u64 {
        let epoch = current(store);
        let expected = self.answers.get(&epoch).unwrap_or_else(|| panic!("epoch {epoch} is none of the job"));
        let got = answers(Store::open(store).unwrap());
        if let Some((url, own)) = expected.iter().find(|(url, own)| got.get(*url) != Some(own)) {
            panic!("epoch {epoch}, {url}: {:?}, expected {own:?}", got.get(url));
        }
        assert_eq!(got.len(), expected.len(), "epoch {epoch} has other URLs");
        assert_eq!(whole_epochs(store).last(), Some(&epoch));
        epoch
    }

    /// Checks a store after the job: it has the right bytes, and no temporary files are left.
    pub(crate) fn is_done(&self, store: &Path, spill: &Path) {
        let got = content(store);
        let short = |manifest: &Manifest| (manifest.epoch, manifest.rows.len(), manifest.counts);
        assert_eq!(short(&got), short(&self.content), "{}", store.display());
        assert!(got == self.content, "{}: {got:?}", store.display());
        self.inspect(store);
        let left: Vec<_> = fs::read_dir(spill).into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

/// The epochs of a sound store that are not retired, oldest first. Each epoch has all its files, and its translations.
pub(crate) fn whole_epochs(store: &Path) -> Vec<u64> {
    let checked = check(store).unwrap();
    assert!(checked.is_sound(), "{:?}", checked.problems);
    let of_epoch = |epoch| match Store::open_epoch(store, epoch) {
        Ok(opened) => {
            opened.manifest().files().for_each(|file| opened.verify(file).unwrap());
            let first = opened.manifest().history.first().map_or(epoch, |past| past.epoch);
            Translations::between(&opened, first).unwrap();
            Some(epoch)
        }
        Err(Error::RetiredEpoch { .. }) => None,
        Err(error) => panic!("{error}"),
    };
    (1..=current(store)).filter_map(of_epoch).collect()
}

/// The number of the current epoch.
pub(crate) fn current(store: &Path) -> u64 {
    Store::open(store).unwrap().manifest().epoch
}

/// The content of the current epoch, with the checksums of all its files. The numbers of rows are left out, because
/// rows that were never committed may have used up numbers.
fn content(store: &Path) -> Manifest {
    let mut manifest = Store::open(store).unwrap().manifest().clone();
    for row in &mut manifest.rows {
        row.row = 0;
        row.partitions.iter_mut().flat_map(|partition| &mut partition.files).for_each(|file| file.path.clear());
    }
    manifest
}

/// Checks that after the next writer, the store has only the rows and translations that its epochs name.
pub(crate) fn nothing_is_left(store: &Path) {
    drop(StoreWriter::open(store, "the next writer", None).unwrap());
    let (mut rows, mut translations) = (BTreeSet::new(), BTreeSet::new());
    for epoch in whole_epochs(store) {
        let opened = Store::open_epoch(store, epoch).unwrap();
        rows.extend(opened.manifest().rows.iter().map(|row| format!("rows/{:06}", row.row)));
        translations.extend(opened.manifest().translations().map(|entry| entry.path.clone()));
    }
    let names = |dir: &str| -> BTreeSet<String> {
        let entries = fs::read_dir(store.join(dir)).into_iter().flatten();
        entries.map(|entry| format!("{dir}/{}", entry.unwrap().file_name().to_string_lossy())).collect()
    };
    assert_eq!((names("rows"), names("translations")), (rows, translations), "{}", store.display());
}
