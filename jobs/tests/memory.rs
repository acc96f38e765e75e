//! Inputs that would take all memory, built within a budget: the stores and cells that they give, and the memory that
//! they take.
//!
//! By default each input is small, so that the test takes a second. With `WEBSTRATA_MEMORY=full`, the inputs have the
//! sizes in `docs/benchmarks.md`, and need 3 GB in the directory for temporary files.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]
#![expect(clippy::print_stdout, reason = "what it measures is for the reader of its output")]
#![cfg(target_os = "linux")]

mod commands;

use commands::command;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// The memory budget of every build, in MiB.
const MEMORY: u64 = 256;

/// The default size, or the size with `WEBSTRATA_MEMORY=full`.
fn size(small: u64, full: u64) -> u64 {
    if std::env::var("WEBSTRATA_MEMORY").is_ok_and(|value| value == "full") { full } else { small }
}

/// Writes an input.
type Writing<'a> = &'a dyn Fn(&mut dyn Write) -> std::io::Result<()>;

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        Place(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Makes an input file with the content from `write`.
    fn input(&self, name: &str, write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) {
        let mut file = BufWriter::new(File::create(self.path(name)).unwrap());
        write(&mut file).and_then(|()| file.flush()).unwrap();
    }

    fn command(&self, words: &str) -> Command {
        command(self.0.path(), words)
    }

    /// Builds or updates a store from an input. Returns the report of the job: counts, and the URLs that were left out.
    fn take(&self, job: &str, input: &str) -> serde_json::Value {
        let words = match job {
            "build" => format!("build --replace --out {{}}/store --memory {MEMORY}M -w 1 --format json {{}}/{input}"),
            _ => format!("update {{}}/store --memory {MEMORY}M -w 1 --no-merge --format json {{}}/{input}"),
        };
        self.within(MEMORY, input, self.command(&words))
    }

    /// The lines that a command prints.
    fn lines(&self, words: &str) -> Vec<String> {
        let output = self.command(words).output().unwrap();
        assert!(output.status.success(), "{words}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
    }

    /// Runs a job, which may take this memory in MiB.
    fn within(&self, memory: u64, name: &str, mut command: Command) -> serde_json::Value {
        let begun = Instant::now();
        let (output, most) = watched(&mut command);
        let seconds = begun.elapsed().as_secs_f64();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}: {said}");
        println!("{name}: {} MiB, {seconds:.1} s", most >> 20);
        assert!(most >> 20 <= memory, "{name} took {} MiB", most >> 20);
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

/// Runs a command. Returns its output, and its peak memory in bytes, as the system reported it until just before the
/// end.
fn watched(command: &mut Command) -> (Output, u64) {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let status = PathBuf::from(format!("/proc/{}/status", child.id()));
    let mut most = 0;
    while child.try_wait().unwrap().is_none() {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let held: Option<u64> = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
        most = most.max(held.unwrap_or(0) << 10);
        std::thread::sleep(Duration::from_millis(5));
    }
    (child.wait_with_output().unwrap(), most)
}

/// A WARC with one page.
fn warc(out: &mut dyn Write, body: &[u8]) -> std::io::Result<()> {
    let mut gzip = flate2::write::GzEncoder::new(out, flate2::Compression::fast());
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n";
    write!(
        gzip,
        "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://a.example/\r\nWARC-Date: 2020-01-01T00:00:00Z\r\n\
        Content-Type: application/http; msgtype=response\r\nContent-Length: {}\r\n\r\n{head}",
        head.len() + body.len()
    )?;
    gzip.write_all(body)?;
    gzip.write_all(b"\r\n\r\n")?;
    gzip.finish().map(drop)
}

#[test]
fn a_long_base_and_many_relative_links() {
    let place = Place::new();
    let links = size(400, 40_000);
    place.input("base.warc.gz", |out| {
        let mut body = format!("<html><base href='http://b.example/{}/'>", "x".repeat(60_000)).into_bytes();
        (0..links).for_each(|number| body.extend(format!("<a href={number}>").as_bytes()));
        warc(out, &body)
    });
    let report = place.take("build", "base.warc.gz");
    assert_eq!(report["counts"]["links"], links);
    place.input("long.warc.gz", |out| {
        warc(
            out,
            format!("<html><base href='http://b.example/{}/'><a href=x><a href=/y>", "x".repeat(70_000)).as_bytes(),
        )
    });
    let report = place.take("build", "long.warc.gz");
    assert_eq!((&report["counts"]["links"], &report["findings"]["link too long"]), (&0.into(), &2.into()));
}

#[test]
fn a_url_of_any_length_is_counted_and_left_out() {
    let place = Place::new();
    place.input("url.jsonl", |out| {
        let (capture, other) =
            (r#"{"url":"http://a.example/","ts":"20200101000000","links":["http://c.example/","#, "x");
        let long = |out: &mut dyn Write| -> std::io::Result<()> {
            write!(out, "http://b.example/")?;
            (0..size(17, 60)).try_for_each(|_| out.write_all(other.repeat(1 << 20).as_bytes()))
        };
        write!(out, "{capture}\"")?;
        long(out)?;
        write!(out, "\"]}}\n{{\"url\":\"")?;
        long(out)?;
        writeln!(out, "\",\"ts\":\"20200101000000\",\"links\":[\"http://d.example/\"]}}")
    });
    let report = place.take("build", "url.jsonl");
    let findings = &report["findings"];
    assert_eq!((&findings["link too long"], &findings["page URL too long"]), (&1.into(), &1.into()), "{report}");
    assert_eq!((&report["counts"]["urls"], &report["damaged"]), (&2.into(), &0.into()));
}

/// Writes a capture of `http://a.example/` with links to `from..to` and a link to `http://c.example/`.
fn capture(out: &mut dyn Write, ts: u64, links: std::ops::Range<u64>) -> std::io::Result<()> {
    write!(out, r#"{{"url":"http://a.example/","ts":{ts},"links":["http://c.example/""#)?;
    for number in links {
        write!(out, r#","http://b.example/{number}""#)?;
    }
    writeln!(out, "]}}")
}

const START: u64 = 1_000_000_000;

#[test]
fn a_line_of_any_number_of_links() {
    let place = Place::new();
    let links = size(700_000, 1_900_000);
    place.input("line.jsonl", |out| capture(out, START, 0..links));
    let report = place.take("build", "line.jsonl");
    assert_eq!((&report["counts"]["links"], &report["captures_read"]), (&(links + 1).into(), &1.into()));
    assert!(report["left_out"].as_array().unwrap().is_empty());
}

#[test]
fn a_page_that_is_too_large_keeps_its_captures_and_is_named() {
    // Links that come and go make a change in each capture. A wide page has too many links.
    let alternating = |out: &mut dyn Write| {
        (0..1500).try_for_each(|second| capture(out, START + second, 0..if second % 2 == 0 { 1500 } else { 0 }))
    };
    let wide =
        |out: &mut dyn Write| (0..2).try_for_each(|second| capture(out, START + second, 0..10_000_000 * (1 - second)));
    let mut trials: Vec<(&str, u64, Writing<'_>)> = vec![("changes.jsonl", 1500, &alternating)];
    if size(0, 1) > 0 {
        trials.push(("wide.jsonl", 2, &wide));
    }
    for (name, captures, write) in trials {
        let place = Place::new();
        place.input(name, |out| {
            write(out)?;
            writeln!(out, r#"{{"url":"http://z.example/","ts":{START},"links":["http://b.example/7"]}}"#)
        });
        let report = place.take("build", name);
        let left_out = serde_json::json!([{"kind": "page too large", "url": "http://a.example/"}]);
        assert_eq!(report["left_out"], left_out);
        let counts = &report["counts"];
        // The store does not have URLs that only the left-out links name.
        let got = ["pages", "captures", "unknown_captures", "links", "urls"].map(|name| counts[name].as_u64().unwrap());
        assert_eq!(got, [2, captures + 1, captures, 1, 3], "{report}");
        assert_eq!(place.lines("links {}/store http://b.example/7 --in"), ["http://z.example/"]);
        assert_eq!(place.lines("check {}/store").len(), 1);
    }
}

#[test]
#[ignore = "2,200,000 captures of one page: cargo test --test memory -- --ignored"]
fn a_page_of_any_number_of_captures_keeps_them_all() {
    const CAPTURES: u64 = 2_200_000;
    let place = Place::new();
    place.input("captures.jsonl", |out| {
        (0..CAPTURES).try_for_each(|second| capture(out, START + second, second / 100_000..second / 100_000 + 1))
    });
    let report = place.take("build", "captures.jsonl");
    let counts = &report["counts"];
    let got = ["captures", "unknown_captures", "links"].map(|name| counts[name].as_u64().unwrap());
    assert_eq!(got, [CAPTURES, 0, 23], "{report}");
    assert!(report["left_out"].as_array().unwrap().is_empty(), "{report}");
    assert_eq!(place.lines("check {}/store").len(), 1);
    let last = place.lines("links {}/store http://a.example/ --at now");
    assert_eq!(last, ["http://b.example/21", "http://c.example/"]);
    // An update and a merge give the bytes of one build.
    place.input("more.jsonl", |out| capture(out, START + CAPTURES, 3..4));
    place.take("update", "more.jsonl");
    place.lines("merge {}/store --rows all");
    let info = place.lines("info {}/store --format json").concat();
    let info: serde_json::Value = serde_json::from_str(&info).unwrap();
    assert_eq!(info["counts"]["captures"], CAPTURES + 1);
    place.lines("build --out {}/all {}/captures.jsonl {}/more.jsonl");
    assert!(files(&place.path("store")) == files(&place.path("all")));
}

/// The files of the layers of the newest row.
fn files(store: &Path) -> [Vec<u8>; 8] {
    let rows = std::fs::read_dir(store.join("rows")).unwrap();
    let row = rows.map(|entry| entry.unwrap().path()).max().unwrap();
    let layers = ["url", "ol", "ts", "bv", "rv", "il", "tr", "ibv"];
    layers.map(|layer| std::fs::read(row.join(layer).join("part-00000.parquet")).unwrap())
}

#[test]
fn a_page_that_only_all_rows_make_too_large_comes_to_that_of_one_build() {
    // The captures of each update lie between the captures of the other update, so that each link changes at each
    // capture.
    let (all, steps) = (Place::new(), Place::new());
    let captures = |out: &mut dyn Write, number: u64| {
        (0..800).try_for_each(|second| capture(out, START + 2 * second + number, 0..1500 * (1 - number)))?;
        // This page sorts before the URLs that go, so its UID is the same with and without these URLs.
        writeln!(out, r#"{{"url":"http://a.example/{number}","ts":{START},"links":["http://b.example/7"]}}"#)
    };
    all.input("all.jsonl", |out| (0..2).try_for_each(|number| captures(out, number)));
    all.take("build", "all.jsonl");
    for number in 0..2 {
        let name = format!("{number}.jsonl");
        steps.input(&name, |out| captures(out, number));
        let report = steps.take(if number == 0 { "build" } else { "update" }, &name);
        assert!(report["left_out"].as_array().unwrap().is_empty());
    }
    assert_eq!(steps.lines("check {}/store").len(), 1);
    let merged = steps.lines("merge {}/store --rows all");
    assert!(merged.iter().any(|line| line.contains("page too large: http://a.example/")), "{merged:?}");
    assert_eq!(steps.lines("check {}/store").len(), 1);
    let files = |place: &Place| files(&place.path("store"));
    // The first merge leaves the links of the page out. The URLs that only these links name go with the second merge.
    let layers = [files(&all), files(&steps)];
    assert!(layers[0][2..5] == layers[1][2..5], "ts, bv and rv are the same at once");
    // The page stays too large with more captures.
    for place in [&all, &steps] {
        place.input("more.jsonl", |out| capture(out, START + 9999, 3..4));
        place.take("update", "more.jsonl");
        place.lines("merge {}/store --rows all");
        assert_eq!(place.lines("links {}/store http://b.example/3 --in --count"), ["0"]);
    }
    assert!(files(&all) == files(&steps));
}

#[test]
fn a_body_of_many_links() {
    let place = Place::new();
    let links = size(300_000, 1_900_000);
    place.input("body.warc.gz", |out| {
        let mut body = b"<html>".to_vec();
        (0..links).for_each(|number| body.extend(format!("<a href={number}>").as_bytes()));
        warc(out, &body)
    });
    assert_eq!(place.take("build", "body.warc.gz")["counts"]["links"], links);
}

#[test]
fn many_captures_of_one_second_are_one() {
    let place = Place::new();
    let captures = size(50_000, 1_000_000);
    place.input("second.jsonl", |out| (0..captures).try_for_each(|number| capture(out, START, number..number + 1)));
    let report = place.take("build", "second.jsonl");
    let counts = &report["counts"];
    assert_eq!((&counts["captures"], &counts["links"]), (&1.into(), &(captures + 1).into()), "{report}");
}

#[test]
fn many_captures_of_a_page() {
    let place = Place::new();
    let captures = size(50_000, 1_000_000);
    place.input("same.jsonl", |out| (0..captures).try_for_each(|number| capture(out, START + number, 0..1)));
    let counts = &place.take("build", "same.jsonl")["counts"];
    assert_eq!((&counts["captures"], &counts["occurrences"]), (&captures.into(), &(2 * captures).into()));
    place.input("own.jsonl", |out| {
        (0..captures).try_for_each(|number| capture(out, START + number, number..number + 1))
    });
    let report = place.take("build", "own.jsonl");
    let unknown = if 4 * captures > 1 << 21 { captures } else { 0 };
    assert_eq!(report["counts"]["unknown_captures"], unknown, "{report}");
    assert_eq!(report["counts"]["captures"], captures);
}

#[test]
fn a_url_with_more_in_links_than_a_record_has() {
    let place = Place::new();
    let (sources, more) = (size(600_000, 10_000_000), 1_000);
    let page = |out: &mut dyn Write, number: u64| {
        writeln!(out, r#"{{"url":"http://s.example/{number}","ts":{START},"links":["http://hub.example/"]}}"#)
    };
    place.input("hub.jsonl", |out| (0..sources).try_for_each(|number| page(out, number)));
    place.input("more.jsonl", |out| (sources..sources + more).try_for_each(|number| page(out, number)));
    place.take("build", "hub.jsonl");
    let count = |place: &Place| place.lines("links {}/store http://hub.example/ --in --count");
    assert_eq!(count(&place), [sources.to_string()]);
    place.take("update", "more.jsonl");
    assert_eq!(count(&place), [(sources + more).to_string()]);
    place.lines("merge {}/store --rows all");
    assert_eq!(count(&place), [(sources + more).to_string()]);
    assert_eq!(place.lines("check {}/store").len(), 1);
    // A cell has one record of the captures. `cells` reads the record back and compares it with the layers.
    let memory = size(256, 640);
    place.within(memory, "cells", place.command(&format!("cells {{}}/store --memory {memory}M -w 4 --format json")));
    assert_eq!(place.lines("check {}/store").len(), 1);
}

/// The compressor of the smallest files needs most memory where a row group has many links.
#[test]
fn the_smallest_files_need_no_more_memory() {
    let (place, least) = (Place::new(), webstrata_engine::memory_needed(1) as u64 >> 20);
    let links = size(3_000_000, 20_000_000);
    let words = format!(
        "build --compact --out {{}}/store --partition-urls 2000000 --memory {least}M -w 1 --format json \
         --generate uk:occurrences={links},seed=9,months=1"
    );
    place.within(least, "--compact", place.command(&words));
}

#[test]
fn cells_keep_to_their_memory_and_have_the_same_bytes() {
    let (place, links) = (Place::new(), size(400_000, 20_000_000));
    place.lines(&format!("build --out {{}}/store --generate uk:occurrences={links},months=1,seed=3"));
    let output = place.command("cells {}/store --memory 32M").output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("--memory of 32 MiB is too little for the cell of row 1, partition "), "{said}");
    assert!(!place.path("store/cells").exists());
    let least = said.split("use at least ").nth(1).and_then(|rest| rest.split(' ').next());
    let least: u64 = least.unwrap().parse().unwrap();
    let made = |memory: u64, workers: u64| {
        let cells = place.path("store/cells");
        let _ = std::fs::remove_dir_all(&cells);
        let words = format!("cells {{}}/store --memory {memory}M -w {workers} --format json");
        let count = place.within(memory, "cells", place.command(&words))["made"].as_u64().unwrap();
        let image = |number: u64| std::fs::read(cells.join(format!("000001/part-{number:05}.cell"))).unwrap();
        (0..count).map(image).collect::<Vec<_>>()
    };
    let all = made(1024, 1);
    assert!(all.len() > 1);
    for (memory, workers) in [(least, 1), (least, 4), (3 * least, 4)] {
        assert!(made(memory, workers) == all, "{memory} MiB, {workers} workers");
    }
}

#[test]
fn too_little_address_space_is_said_before_the_work() {
    let place = Place::new();
    for (limit, memory, code) in
        [("900000", "", 1), ("500000", " --memory 160M -w 1", 1), ("2000000", " --memory 160M -w 1", 0)]
    {
        let program = env!("CARGO_BIN_EXE_webstrata");
        let words =
            format!("ulimit -v {limit}; exec {program} build --out store{memory} --generate uk:occurrences=10000");
        let mut shell = Command::new("sh");
        shell.args(["-c", &words]).current_dir(place.0.path()).env("TMPDIR", place.0.path());
        let output = shell.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{words}: {said}");
        let named = said.contains(" MiB of address space, and the limit (ulimit -v) is ");
        assert_eq!(named, code == 1, "{said}");
    }
}

#[test]
fn the_book_tells_the_memory_that_is_needed() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/book/archivist/memory-and-disk.md");
    let page = std::fs::read_to_string(page).unwrap();
    let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
    let [process, one, two] = [0, 1, 2].map(|workers| webstrata_engine::memory_needed(workers) >> 20);
    let told =
        format!("A build takes {process} MiB, and {} MiB for each worker thread, so {one} MiB at least", one - process);
    assert!(page.contains(&told), "{told}");
    let place = Place::new();
    let build = |memory: usize, workers: u8| {
        let words =
            format!("build --replace --out {{}}/store --memory {memory}M -w {workers} --generate uk:occurrences=1000");
        String::from_utf8(place.command(&words).output().unwrap().stderr).unwrap()
    };
    for (workers, least) in [(1, one), (2, two)] {
        assert!(build(least - 1, workers).contains(&format!("use at least {least} MiB")));
        assert!(!build(least, workers).contains("error"));
    }
    let help = place.lines("build --help").join(" ");
    assert!(help.contains(&format!("{process} MiB, and {} MiB each", one - process)), "{help}");
}
