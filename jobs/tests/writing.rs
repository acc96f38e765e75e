//! The files that commands write: a file is whole or absent, has the form that its name says, and is never in a store.
//! Also the files that commands refuse to make or to open.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod commands;

use commands::command;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const CRAWL: &str = concat!(
    r#"{"url":"http://a.example/","ts":"20060115120000","links":["http://b.example/x","http://a.example/"]}"#,
    "\n",
    r#"{"url":"http://a.example/","ts":"20070115120000","links":["http://b.example/x","http://c.example/"]}"#,
    "\n",
);

/// The end of the names of drafts.
const DRAFT: &str = ".webstrata-draft";
/// A time longer than any command of these tests takes, unless the command waits for something that never comes.
const LIMIT: Duration = Duration::from_secs(60);

/// A place with the directory `tmp` for temporary files.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        fs::create_dir(place.path("tmp")).unwrap();
        place
    }

    /// A place with `crawl.jsonl`, and `store` built from the crawl.
    fn built() -> Self {
        let place = Self::new();
        fs::write(place.path("crawl.jsonl"), CRAWL).unwrap();
        place.succeeds("build --out {}/store {}/crawl.jsonl");
        place
    }

    /// A place with a store of this number of links in captures.
    fn large(occurrences: u64) -> Self {
        let place = Self::new();
        place.succeeds(&format!("build --generate hard:occurrences={occurrences} --out {{}}/store"));
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A command line given as one text. `{}` stands for the place.
    fn command(&self, line: &str) -> Command {
        let mut command = command(self.0.path(), line);
        command.env("TMPDIR", self.path("tmp"));
        command
    }

    fn succeeds(&self, line: &str) -> String {
        let output = self.command(line).output().unwrap();
        assert!(output.status.success(), "{line}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// The error of a command, which must come in time.
    fn fails(&self, line: &str, code: i32) -> String {
        let output = ended(self.command(line));
        assert_eq!(output.status.code(), Some(code), "{line}: {output:?}");
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(error.starts_with("error: ") && error.lines().count() == 1, "{line}: {error}");
        error
    }

    /// The names in a directory, sorted.
    fn names(&self, directory: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(directory)).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    fn drafts(&self, directory: &str) -> usize {
        self.names(directory).iter().filter(|name| name.ends_with(DRAFT)).count()
    }

    /// Starts a command and kills it when a draft exists.
    fn kill_in_draft(&self, line: &str, directory: &str) {
        let mut child = self.command(line).stdout(Stdio::null()).spawn().unwrap();
        let started = Instant::now();
        while !self.path(directory).exists() || self.drafts(directory) == 0 {
            assert!(child.try_wait().unwrap().is_none(), "{line}: it was over too soon");
            assert!(started.elapsed() < LIMIT, "{line}: no draft");
            thread::sleep(Duration::from_millis(1));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(self.drafts(directory) > 0, "{line}: it was over too soon");
    }
}

/// The output of a command that must not wait forever.
fn ended(mut command: Command) -> Output {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let started = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if started.elapsed() > LIMIT {
            child.kill().unwrap();
            panic!("{command:?} does not end");
        }
        thread::sleep(Duration::from_millis(5));
    }
    child.wait_with_output().unwrap()
}

fn make_pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

fn unpacked(path: &Path) -> String {
    let output = Command::new("gzip").arg("-dc").arg(path).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn nothing_is_made_of_inputs_that_hold_nothing() {
    let place = Place::built();
    fs::create_dir(place.path("empty")).unwrap();
    fs::create_dir(place.path("made")).unwrap();
    for (name, bytes) in [
        ("junk", &b"\x01\x02\x03 some bytes"[..]),
        ("a.cdx", b" CDX N b a"),
        ("none", b""),
        ("broken.gz", b"\x1f\x8b\x08\x00 and nothing that deflate makes"),
        ("large.zst", b"\x28\xb5\x2f\xfd\x00\xa0\x19\x00\x00abc"),
        ("broken.jsonl", b"{\"url\": nonsense\n"),
        ("nowhere.jsonl", b"{\"url\": \"http://a b/\", \"ts\": \"2008\", \"links\": []}\n"),
    ] {
        fs::write(place.path(name), bytes).unwrap();
    }
    for (inputs, said) in [
        ("{}/empty", "/empty: no file in it"),
        ("{}/junk", "/junk: other file, the content matches no known format"),
        ("{}/none", "/none: other file, the file is empty"),
        ("{}/broken.gz", "/broken.gz: other file, nothing in the file can be decompressed"),
        ("{}/large.zst", "the zstd frame needs a window of more than 128 MiB"),
        ("{}/broken.jsonl", "/broken.jsonl: bad JSON"),
        ("{}/nowhere.jsonl", "no record that can be read (bad page URL: http://a b/)"),
        ("{}/junk {}/a.cdx", "none of 2 inputs has a record"),
        ("-", "no capture was read from -"),
    ] {
        for words in ["", " -w 2"] {
            let error = place.fails(&format!("build --out {{}}/new{words} {inputs}"), 1);
            assert!(error.contains(said) && error.contains("reads WARC, ARC, WAT"), "{error}");
            assert!(!place.path("new").exists(), "{inputs}: a store is made");
        }
        // An existing directory is not removed.
        place.fails(&format!("build --out {{}}/made {inputs}"), 1);
        assert!(place.names("made").is_empty(), "{inputs}: {:?}", place.names("made"));
        for command in ["update {}/store", "build --replace --out {}/store"] {
            place.fails(&format!("{command} {inputs}"), 1);
            assert!(fs::read_to_string(place.path("store/CURRENT")).unwrap().starts_with("1 "));
            assert_eq!((place.names("store/epochs").len(), place.names("store/rows").len()), (1, 1), "{command}");
        }
        assert!(place.names("tmp").is_empty(), "{:?}", place.names("tmp"));
    }
    place.succeeds("check {}/store");
    // An input with content is read, even beside empty inputs.
    place.succeeds("build --out {}/new {}/junk {}/empty {}/crawl.jsonl");
}

#[test]
fn a_second_build_is_refused_and_takes_nothing_from_a_job_that_was_stopped() {
    let place = Place::built();
    place.succeeds("generate uk:occurrences=60000,seed=3 --out {}/more.jsonl");
    let update = "update {}/store {}/more.jsonl --no-merge --log info";
    let mut stopped = place.command(update);
    let mut child = stopped.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    let lines = std::io::BufRead::lines(std::io::BufReader::new(child.stderr.take().unwrap()));
    assert!(lines.map_while(Result::ok).any(|line| line.contains("stage begins") && line.contains("\"uids\"")));
    child.kill().unwrap();
    child.wait().unwrap();
    let error = place.fails("build --out {}/store {}/crawl.jsonl", 1);
    for word in ["is already a store", "epoch is 1", "`webstrata update ", "--replace"] {
        assert!(error.contains(word), "{word}: {error}");
    }
    let said = String::from_utf8(place.command(update).output().unwrap().stderr).unwrap();
    assert!(said.contains("going on with an unfinished job"), "{said}");
    place.succeeds("build --replace --out {}/store {}/crawl.jsonl");
    assert!(place.succeeds("log {}/store").lines().nth(1).unwrap().trim_start().starts_with("3 "));
    let error = place.fails("diff {}/store", 1);
    assert!(error.contains("epoch 3 replaced everything that the store had"), "{error}");
}

#[test]
fn the_name_of_a_file_says_how_it_is_written() {
    let place = Place::built();
    for (line, known) in [
        ("export {}/store --out {}/out/x", ".parquet, .csv, .csv.gz"),
        ("export {}/store --out {}/out/x.xlsx", ".graphml.gz"),
        ("export {}/store --out {}/out/x.parquet.gz", ".mtx"),
        ("export {}/store --format csv --out {}/out/x.parquet", "names a file of parquet"),
        ("export {}/store --format arrow --out {}/out/x.gz", "compressed in itself"),
        ("export {}/store --parts --out {}/out/x.d", ".parquet"),
        ("analyze {}/store degrees --out {}/out/x.json", ".csv.gz, .arrow, .feather"),
        ("analyze {}/store degrees --out {}/out/x.graphml", ".csv"),
        ("fold {}/store --out {}/out/x", ".parquet"),
        ("generate --out {}/out/x.csv", ".jsonl, .jsonl.gz, .warc, .warc.gz, .parquet"),
        ("generate --as jsonl --out {}/out/x.parquet", "--as and the ending"),
        ("sql {}/store --out {}/out/x.csv", ".sql"),
        ("watch {}/store top --out {}/out/x.csv", "a directory"),
    ] {
        fs::create_dir_all(place.path("out")).unwrap();
        let error = place.fails(line, 2);
        assert!(error.contains(known), "{line}: {error}");
        assert!(place.names("out").is_empty(), "{line}: {:?}", place.names("out"));
    }
    let edges = place.succeeds("export {}/store --out -");
    place.succeeds("export {}/store --out {}/x.csv.gz");
    place.succeeds("export {}/store --format csv --parts --out {}/parts.gz");
    assert_eq!(
        (unpacked(&place.path("x.csv.gz")), unpacked(&place.path("parts.gz/part-00000.csv.gz"))),
        (edges.clone(), edges)
    );
    place.succeeds("export {}/store --out {}/x.gexf.gz");
    assert!(unpacked(&place.path("x.gexf.gz")).ends_with("</gexf>\n"));
    place.succeeds("export {}/store --format networkit --out {}/links.txt");

    let crawl = place.succeeds("generate uk:occurrences=2000");
    place.succeeds("generate uk:occurrences=2000 --out {}/x.jsonl.gz");
    assert_eq!(unpacked(&place.path("x.jsonl.gz")), crawl);
    for (name, magic) in [("x.parquet", &b"PAR1"[..]), ("x.warc", b"\x1f\x8b"), ("x.warc.gz", b"\x1f\x8b")] {
        place.succeeds(&format!("generate uk:occurrences=2000 --out {{}}/{name}"));
        assert!(fs::read(place.path(name)).unwrap().starts_with(magic), "{name}");
    }
    assert!(unpacked(&place.path("x.warc.gz")).starts_with("WARC/1.0"));
}

#[test]
fn tables_go_to_standard_output_and_their_reports_beside() {
    let place = Place::built();
    for line in ["fold {}/store --unit host --period year", "analyze {}/store degrees", "analyze {}/store growth"] {
        place.succeeds(&format!("{line} --out {{}}/x.csv -w 2"));
        for (format, said) in [("text", "epoch 1"), ("json", "\"epoch\":1")] {
            let output = place.command(&format!("{line} --out - -w 2 --format {format}")).output().unwrap();
            assert_eq!(output.stdout, fs::read(place.path("x.csv")).unwrap(), "{line}");
            assert!(String::from_utf8(output.stderr).unwrap().contains(said), "{line}");
        }
    }
    // A reader that closes its pipe early does not cause a failure.
    let large = Place::large(100_000);
    let mut child = large
        .command("analyze {}/store degrees --out -")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdout.take().unwrap().read_exact(&mut [0; 8]).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}

#[test]
fn nothing_is_written_into_a_store() {
    let place = Place::built();
    std::os::unix::fs::symlink("store", place.path("link")).unwrap();
    let files = || {
        let names = ["", "epochs", "rows"].map(|name| place.names(&format!("store/{name}")));
        (names, fs::read(place.path("store/CURRENT")).unwrap())
    };
    let before = files();
    for line in [
        "export {}/store --out {}/store/x.csv",
        "export {}/store --out {}/link/rows/x.parquet",
        "export {}/store --parts --out {}/store/x",
        "export {}/store --format webgraph --out {}/store/x",
        "analyze {}/store degrees --out {}/store/x.csv",
        "fold {}/store --out {}/store/epochs/x.csv",
        "sql {}/store --out {}/store/x.sql",
        "watch {}/store top --out {}/store/tables --once",
        "generate uk:occurrences=2000 --out {}/store/x.jsonl",
        "build --out {}/store/inside {}/crawl.jsonl",
        "update {}/store {}/crawl.jsonl --report {}/store/x.json",
    ] {
        let error = place.fails(line, 1);
        assert!(error.contains("inside the store") && error.contains("outside the store"), "{line}: {error}");
        assert_eq!(files(), before, "{line}");
    }
}

/// Whether the system has stopped a process. A system without `/proc` gets time to do so.
fn is_stopped(process: &Child) -> bool {
    let Ok(state) = fs::read_to_string(format!("/proc/{}/stat", process.id())) else {
        thread::sleep(Duration::from_millis(200));
        return true;
    };
    state.rsplit(") ").next().is_some_and(|state| state.starts_with('T'))
}

#[test]
fn drafts_of_killed_commands_go_and_those_of_others_stay() {
    let place = Place::large(400_000);
    fs::create_dir(place.path("out")).unwrap();
    for (killed, again, there) in [
        ("--urls --out {}/out/a.csv", "--urls --out {}/out/a.csv", &["a.csv"][..]),
        ("--out {}/out/a.gexf", "--what nodes --out {}/out/b.parquet", &["b.parquet"]),
        ("--urls --parts -w 2 --out {}/out/parts", "--parts -w 2 --out {}/out/parts", &["parts"]),
        ("--parts --urls --out {}/out/other", "--parts --out {}/out/parts", &["parts"]),
        ("--format webgraph --out {}/out/g", "--at 2006 --out {}/out/c.mtx", &["c.mtx"]),
    ] {
        place.kill_in_draft(&format!("export {{}}/store {killed}"), "out");
        place.succeeds(&format!("export {{}}/store {again}"));
        assert_eq!(place.names("out"), there, "{killed}");
        fs::remove_dir_all(place.path("out")).unwrap();
        fs::create_dir(place.path("out")).unwrap();
    }
    place.succeeds("export {}/store --format webgraph --out {}/out/g");
    assert!(place.names("tmp").is_empty(), "{:?}", place.names("tmp"));

    // Other commands do not disturb a living command that is stopped in its draft.
    let signal = |alive: &Child, name: &str| {
        let sent = Command::new("kill").arg(name).arg(alive.id().to_string()).status().unwrap();
        assert!(sent.success());
    };
    let mut alive = loop {
        let mut alive =
            place.command("export {}/store --urls --out {}/out/alive.csv").stdout(Stdio::null()).spawn().unwrap();
        // A draft that holds bytes is locked. Before that, another command may remove it, and its writer begins again.
        let has_bytes = |name: &String| {
            name.ends_with(DRAFT) && fs::metadata(place.path("out").join(name)).is_ok_and(|draft| draft.len() > 0)
        };
        while !place.names("out").iter().any(has_bytes) && alive.try_wait().unwrap().is_none() {
            thread::sleep(Duration::from_millis(1));
        }
        if alive.try_wait().unwrap().is_some() {
            continue;
        }
        signal(&alive, "-STOP");
        // The signal arrives a little later. The command may have ended by then.
        while alive.try_wait().unwrap().is_none() && !is_stopped(&alive) {
            thread::sleep(Duration::from_millis(1));
        }
        if place.drafts("out") == 1 {
            break alive;
        }
        signal(&alive, "-CONT");
        alive.wait().unwrap();
    };
    place.succeeds("export {}/store --at 2006 --urls --out {}/out/alive.csv");
    assert_eq!(place.drafts("out"), 1);
    let before = fs::metadata(place.path("out/alive.csv")).unwrap().len();
    signal(&alive, "-CONT");
    assert!(alive.wait().unwrap().success());
    assert!(fs::metadata(place.path("out/alive.csv")).unwrap().len() > before);
    assert_eq!(place.drafts("out"), 0);
}

#[test]
fn drafts_of_killed_watches_go() {
    let place = Place::large(200_000);
    place.kill_in_draft("watch {}/store degrees --whole --out {}/tables", "tables");
    place.succeeds("watch {}/store degrees --once");
    assert_eq!(place.names("tables"), ["degrees-000001.parquet"]);
}

#[test]
fn a_generated_crawl_is_whole_or_not_there() {
    let place = Place::new();
    fs::create_dir(place.path("out")).unwrap();
    fs::write(place.path("out/x.jsonl"), "before").unwrap();
    place.kill_in_draft("generate uk:occurrences=5000000 --out {}/out/x.jsonl", "out");
    assert_eq!(fs::read_to_string(place.path("out/x.jsonl")).unwrap(), "before");
    place.succeeds("generate uk:occurrences=2000 --out {}/out/x.jsonl");
    assert_eq!(place.names("out"), ["x.jsonl"]);
    fs::create_dir(place.path("out/directory.jsonl")).unwrap();
    place.fails("generate --out {}/out/directory.jsonl", 1);
}

#[test]
fn a_place_for_temporary_files_is_not_made() {
    let place = Place::built();
    fs::write(place.path("file"), "").unwrap();
    for line in [
        "build --out {}/new {}/crawl.jsonl",
        "update {}/store {}/crawl.jsonl",
        "merge {}/store --rows all",
        "export {}/store --format webgraph --out {}/graph",
        "analyze {}/store degrees",
    ] {
        for missing in ["missing", "file", "file/below"] {
            let error = place.fails(&format!("{line} --spill {{}}/{missing}"), 1);
            assert!(error.contains(&format!("/{missing}")) && error.contains("--spill"), "{line}: {error}");
        }
        let output = place.command(line).env("TMPDIR", place.path("missing/tmp")).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(1) && error.contains("missing/tmp"), "{line}: {error}");
        assert!(!place.path("missing").exists() && !place.path("new").exists(), "{line}");
    }
    fs::create_dir(place.path("spill")).unwrap();
    place.succeeds("build --out {}/new {}/crawl.jsonl --spill {}/spill");
}

#[test]
fn jobs_on_damaged_stores_leave_no_temporary_files() {
    for layer in ["url", "ol", "ts", "bv", "rv", "il", "tr", "ibv"] {
        for is_cut in [false, true] {
            let place = Place::built();
            fs::write(place.path("more.jsonl"), CRAWL.replace("2006", "2008")).unwrap();
            place.succeeds("update {}/store {}/more.jsonl --no-merge");
            let path = place.path(&format!("store/rows/000001/{layer}/part-00000.parquet"));
            let mut bytes = fs::read(&path).unwrap();
            let middle = bytes.len() / 2;
            if is_cut {
                bytes.truncate(middle);
            } else {
                bytes[middle] ^= 0xff;
            }
            fs::write(&path, bytes).unwrap();
            for line in [
                "update {}/store {}/crawl.jsonl",
                "merge {}/store --rows all",
                "remove {}/store --host a.example",
                "export {}/store --format webgraph --out {}/graph",
                "analyze {}/store degrees",
            ] {
                // Answers about links alone need neither revisits nor in-links.
                let is_of_links = line.starts_with("export") || line.starts_with("analyze");
                let is_read = !(is_of_links && ["rv", "il", "tr", "ibv"].contains(&layer));
                let output = ended(place.command(line));
                assert!(output.status.success() || output.status.code() == Some(1), "{line}: {output:?}");
                assert!(!is_cut || output.status.success() != is_read, "{line} with a part of {layer}: {output:?}");
                assert_eq!(place.names("tmp"), [""; 0], "{line}, {layer}");
            }
        }
    }
}

#[test]
fn pipes_and_devices_in_a_store_are_refused() {
    let place = Place::built();
    place.succeeds("watch {}/store top --once");
    place.succeeds("cells {}/store");
    let layer = |name: &str| format!("rows/000001/{name}/part-00000.parquet");
    for (name, line) in [
        ("CURRENT".to_owned(), "info {}/store"),
        ("CURRENT".to_owned(), "build --out {}/store {}/crawl.jsonl"),
        ("epochs/000001.json".to_owned(), "links {}/store a.example/"),
        ("epochs/000001.json".to_owned(), "gc {}/store --keep 1"),
        ("LOCK".to_owned(), "update {}/store {}/crawl.jsonl"),
        (layer("url"), "uids {}/store"),
        (layer("ol"), "check {}/store"),
        (layer("ibv"), "update {}/store {}/crawl.jsonl"),
        ("watches/top.json".to_owned(), "watch {}/store"),
        ("watches/top.lock".to_owned(), "watch {}/store top --once"),
        ("cells/000001/part-00000.cell".to_owned(), "links {}/store a.example/"),
        ("cells/000001/part-00000.cell".to_owned(), "cells {}/store"),
    ] {
        let (file, aside) = (place.path("store").join(&name), place.path("aside"));
        fs::rename(&file, &aside).unwrap();
        if !name.starts_with("cells") {
            fs::rename(place.path("store/cells"), place.path("cells")).unwrap();
        }
        // For a layer that an update does not read, only the size is checked.
        let reads = !(name.contains("/ibv/"));
        for kind in ["named pipe", "device"] {
            if kind == "named pipe" {
                make_pipe(&file)
            } else {
                std::os::unix::fs::symlink("/dev/zero", &file).unwrap()
            }
            let output = ended(place.command(line));
            // `check` prints the problem as its result.
            let error = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
            let says = error.contains(kind) || error.contains("bytes, got 0");
            assert!(!reads || (output.status.code() == Some(1) && says && error.contains(&name)), "{line}: {error}");
            fs::remove_file(&file).unwrap();
        }
        fs::rename(&aside, &file).unwrap();
        if !name.starts_with("cells") {
            fs::rename(place.path("cells"), place.path("store/cells")).unwrap();
        }
    }
    place.succeeds("check {}/store");
}

#[test]
fn pipes_that_a_user_names_are_read_and_written() {
    let place = Place::built();
    let edges = place.succeeds("export {}/store --out -");
    for name in ["in.jsonl", "out.csv"] {
        make_pipe(&place.path(name));
    }
    let input = place.path("in.jsonl");
    let writer =
        thread::spawn(move || fs::File::options().write(true).open(input).unwrap().write_all(CRAWL.as_bytes()));
    assert!(ended(place.command("build --out {}/piped {}/in.jsonl")).status.success());
    writer.join().unwrap().unwrap();
    let output = place.path("out.csv");
    let reader = thread::spawn(move || fs::read_to_string(output).unwrap());
    assert!(ended(place.command("export {}/piped --out {}/out.csv")).status.success());
    assert_eq!(reader.join().unwrap(), edges);
    // The device stays a device.
    assert!(ended(place.command("export {}/store --format csv --out /dev/null")).status.success());
    assert!(!Path::new("/dev/null").is_file());
}

#[test]
fn a_random_sample_is_another_one_each_time_unless_a_seed_is_given() {
    let place = Place::new();
    let links: Vec<_> = (0..200).map(|link| format!("\"http://b.example/{link}\"")).collect();
    let line = format!("{{\"url\":\"http://a.example/\",\"ts\":\"2006\",\"links\":[{}]}}\n", links.join(","));
    fs::write(place.path("crawl.jsonl"), line).unwrap();
    place.succeeds("build --out {}/store {}/crawl.jsonl");
    let sample = |words: &str| place.succeeds(&format!("links {{}}/store a.example/ --sample 20{words}"));
    assert_eq!(sample(""), sample(" --seed 0"));
    assert_eq!(sample(" --random --seed 7"), sample(" --random --seed 7"));
    assert_ne!(sample(" --random --seed 7"), sample(" --random --seed 8"));
    // Two random samples out of 10^27.
    assert_ne!(sample(" --random"), sample(" --random"));
}
