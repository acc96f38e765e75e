//! Inputs that can be read only once. A store from a pipe has the bytes of the store from a file, also if revisits need
//! an input a second time. A job that waits for such an input stops when it is asked to, and leaves the store free.
//!
//! Standard input belongs to a whole process, so a build from it runs in a process of its own: this test, started again
//! with the store and the inputs in environment variables.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::collections::BTreeMap;
use std::env;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use webstrata_engine::{Progress, RunOptions};
use webstrata_layers::{Links, Reader, Store, Window};
use webstrata_pipeline::{BuildOptions, Error, build};

/// The values of payload digests.
const DIGESTS: [&str; 2] = ["ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", "234567ABCDEFGHIJKLMNOPQRSTUVWXYZ"];
/// A time longer than any job of these tests takes, unless the job waits for something that never comes.
const LIMIT: Duration = Duration::from_secs(120);
/// The store, the number of workers and the inputs of a build in a process of its own.
const ALONE: &str = "WEBSTRATA_PIPES";

fn original(number: usize) -> String {
    let links: Vec<String> = (0..40).map(|link| format!("\"/of/{number}/{link}\"")).collect();
    format!(
        "{{\"url\":\"http://a.example/{number}\",\"ts\":\"20080101000000\",\"digest\":\"sha1:{}\",\"links\":[{}]}}\n",
        DIGESTS[number],
        links.join(",")
    )
}

/// A copy under the URL of another host.
fn copy(number: usize) -> String {
    format!(
        "{{\"url\":\"http://b.example/{number}\",\"ts\":\"20090101000000\",\"digest\":\"sha1:{}\",\"revisit\":\
         {{\"refers_to_target_uri\":\"http://a.example/{number}\"}}}}\n",
        DIGESTS[number]
    )
}

/// The options of a build or an update. Temporary files go to the directory `tmp` beside the store.
fn options(store: &Path, inputs: Vec<PathBuf>, workers: usize) -> BuildOptions {
    let mut options = BuildOptions::new(RunOptions::new(store), inputs);
    options.update = store.join("CURRENT").exists();
    options.run.workers = workers;
    options.run.spill = Some(store.with_file_name("tmp"));
    options
}

/// The layers of all rows of a store, by path.
fn rows(store: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let (mut files, mut directories) = (BTreeMap::new(), vec![store.join("rows")]);
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|end| end == "parquet") {
                files.insert(path.strip_prefix(store).unwrap().to_owned(), fs::read(&path).unwrap());
            }
        }
    }
    files
}

fn make_pipe(path: &Path) {
    let _ = fs::remove_file(path);
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// Builds in a process of its own, from these bytes in standard input and in named pipes beside the store.
fn run(store: &Path, workers: usize, inputs: &str, stdin: &[u8], pipes: &[(&str, &str)]) {
    let mut alone = Command::new(env::current_exe().unwrap());
    alone.args(["--exact", "a_build_in_a_process_of_its_own", "--nocapture"]);
    alone.env(ALONE, format!("{} {workers} {inputs}", store.display()));
    for (name, _) in pipes {
        make_pipe(&store.with_file_name(name));
    }
    let mut child = alone.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    thread::scope(|scope| {
        scope.spawn(move || input.write_all(stdin));
        for &(name, bytes) in pipes {
            let path = store.with_file_name(name);
            scope.spawn(move || File::options().write(true).open(path).unwrap().write_all(bytes.as_bytes()).unwrap());
        }
        let started = Instant::now();
        while child.try_wait().unwrap().is_none() {
            if started.elapsed() > LIMIT {
                child.kill().unwrap();
                panic!("{inputs}: does not end");
            }
            thread::sleep(Duration::from_millis(5));
        }
        assert!(child.wait().unwrap().success(), "{inputs}");
    });
    let left: Vec<_> = fs::read_dir(store.with_file_name("tmp")).unwrap().collect();
    assert!(left.is_empty(), "{inputs}: {left:?}");
}

#[test]
fn a_build_in_a_process_of_its_own() {
    let Ok(said) = env::var(ALONE) else { return };
    let words: Vec<&str> = said.split(' ').collect();
    let store = Path::new(words[0]);
    let input = |word: &&str| if word.starts_with("pipe") { store.with_file_name(word) } else { word.into() };
    let inputs = words[2..].iter().map(input).collect();
    build(&options(store, inputs, words[1].parse().unwrap()), &Progress::default()).unwrap();
}

/// A directory with the directory `tmp`.
fn place() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("tmp")).unwrap();
    dir
}

#[test]
fn a_pipe_means_what_a_file_means() {
    let dir = place();
    let path = |name: &str| dir.path().join(name);
    // Revisits come before and after the captures whose links they have.
    let halves = [[copy(1), original(0)].concat(), [copy(0), original(1)].concat()];
    let all = halves.concat();
    let file = |name: &str, text: &str| {
        fs::write(path(name), text).unwrap();
        path(name)
    };
    let (whole, one) = (file("all.jsonl", &all), file("one.jsonl", &halves[0]));
    build(&options(&path("file"), vec![whole.clone()], 1), &Progress::default()).unwrap();
    let expected = rows(&path("file"));
    assert!(expected.len() >= 8, "{:?}", expected.keys());
    let reader = Reader::new(Store::open(path("file")).unwrap(), 16 << 20);
    let copied = reader.uid("http://b.example/1").unwrap().unwrap();
    assert_eq!(reader.out_links(copied, Window::ALWAYS).unwrap().len(), 40, "a copy has the links of its original");
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(all.as_bytes()).unwrap();
    let (text, packed, one) = (all.as_bytes(), packed.finish().unwrap(), one.display().to_string());
    let [first, second] = [("pipe-1", &halves[0][..]), ("pipe-2", &halves[1][..])];
    for (at, (inputs, stdin, pipes)) in [
        ("-", text, &[][..]),
        ("-", &packed, &[]),
        ("- -", text, &[]),
        ("/dev/stdin - /dev/fd/0", text, &[]),
        ("pipe-1", b"", &[("pipe-1", &all[..])]),
        ("pipe-1 pipe-2 pipe-1", b"", &[first, second]),
        ("- pipe-2", halves[0].as_bytes(), &[second]),
        (&format!("{one} -"), halves[1].as_bytes(), &[]),
    ]
    .into_iter()
    .enumerate()
    {
        let store = path(&format!("store-{at}"));
        run(&store, 1 + at % 2, inputs, stdin, pipes);
        assert_eq!(rows(&store), expected, "{inputs}");
    }
    // An update gives the revisits of the store their links.
    let revisits = file("revisits.jsonl", &[copy(0), copy(1)].concat());
    for store in ["before", "after"] {
        build(&options(&path(store), vec![revisits.clone()], 1), &Progress::default()).unwrap();
    }
    build(&options(&path("before"), vec![whole], 1), &Progress::default()).unwrap();
    run(&path("after"), 2, "-", text, &[]);
    assert_eq!(rows(&path("before")), rows(&path("after")));
}

#[test]
fn a_job_that_waits_for_input_stops_when_asked() {
    let dir = place();
    let path = |name: &str| dir.path().join(name);
    fs::write(path("all.jsonl"), [original(0), copy(0)].concat()).unwrap();
    build(&options(&path("store"), vec![path("all.jsonl")], 1), &Progress::default()).unwrap();
    make_pipe(&path("pipe"));
    for (workers, is_silent) in [(1, false), (2, false), (1, true), (2, true)] {
        // Nobody opens the pipe, or somebody writes a record and then nothing.
        let writer = is_silent.then(|| {
            let mut writer = File::options().read(true).write(true).open(path("pipe")).unwrap();
            writer.write_all(original(1).as_bytes()).unwrap();
            writer
        });
        let progress = Progress::default();
        let asking = progress.clone();
        let asked = thread::spawn(move || {
            thread::sleep(Duration::from_millis(500));
            asking.cancel();
            Instant::now()
        });
        let inputs = vec![path("all.jsonl"), path("pipe")];
        let error = build(&options(&path("store"), inputs, workers), &progress).unwrap_err();
        let seconds = asked.join().unwrap().elapsed().as_secs_f64();
        assert!(matches!(error, Error::Job(webstrata_engine::Error::Cancelled)), "{error}");
        assert!(seconds < 5.0, "{seconds} s on a machine that may be busy");
        assert!(fs::read_dir(path("tmp")).unwrap().next().is_none(), "files are left");
        drop(writer);
        // The store is free.
        build(&options(&path("store"), vec![path("all.jsonl")], 1), &Progress::default()).unwrap();
    }
}
