//! Analyses and exports as processes: alone, together, stopped, and with requests that make no sense.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod ports;

use ports::addresses;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

struct Place(tempfile::TempDir);

impl Place {
    /// A place with a store of a generated crawl.
    fn new(occurrences: u64) -> Place {
        let place = Place(tempfile::tempdir().unwrap());
        let crawl = format!("hard:occurrences={occurrences},seed=3");
        let built = command(&["build", "--generate", &crawl, "-w", "2", "--out"]).arg(place.path("store")).output();
        assert!(built.unwrap().status.success());
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn analyze(&self, words: &str, out: Option<&str>) -> Command {
        let mut analyze = command(&["analyze"]);
        analyze.arg(self.path("store")).args(words.split(' '));
        out.into_iter().for_each(|name| _ = analyze.arg("--no-urls").arg("--out").arg(self.path(name)));
        analyze
    }

    /// The columns of a table, by name.
    fn table(&self, name: &str) -> BTreeMap<String, Vec<f64>> {
        let text = fs::read_to_string(self.path(name)).unwrap();
        let (head, rows) = text.split_once('\n').unwrap();
        let rows: Vec<Vec<f64>> =
            rows.lines().map(|row| row.split(',').map(|text| text.parse().unwrap()).collect()).collect();
        head.split(',')
            .enumerate()
            .map(|(at, name)| (name.to_owned(), rows.iter().map(|row| row[at]).collect()))
            .collect()
    }

    /// Writes a hosts file for two processes of this machine.
    fn hosts(&self) -> PathBuf {
        let path = self.path("hosts.txt");
        fs::write(&path, addresses(2).join("\n")).unwrap();
        path
    }
}

fn command(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_webstrata"));
    command.args(words).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn said(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn start(mut analyze: Command, hosts: &Path, process: usize) -> Child {
    analyze.arg("--hosts").arg(hosts).args(["--process", &process.to_string(), "-w", "2"]).spawn().unwrap()
}

#[test]
fn two_processes_find_what_one_finds() {
    let place = Place::new(200_000);
    for (words, error) in
        [("pagerank", 1e-12), ("scc", 0.0), ("wcc --at 2006", 0.0), ("salsa", 1e-12), ("harmonic", 1e-9)]
    {
        let alone = place.analyze(words, Some("alone.csv")).output().unwrap();
        assert!(alone.status.success(), "{}", said(&alone));
        let hosts = place.hosts();
        let first = start(place.analyze(words, Some("together.csv")), &hosts, 0);
        let second = start(place.analyze(words, None), &hosts, 1);
        let outputs = [first, second].map(|process| process.wait_with_output().unwrap());
        outputs.iter().for_each(|output| assert!(output.status.success(), "{words}: {}", said(output)));
        let (alone, together) = (place.table("alone.csv"), place.table("together.csv"));
        assert_eq!(alone.keys().collect::<Vec<_>>(), together.keys().collect::<Vec<_>>());
        for (name, values) in &alone {
            assert!(values.len() > 1000);
            for (got, want) in together[name].iter().zip(values) {
                assert!((got - want).abs() <= error, "{words} {name}: {got}, expected {want}");
            }
        }
    }
}

#[test]
fn two_processes_write_parts_of_one_table() {
    let place = Place::new(100_000);
    let export = |out: &str| {
        let mut export = command(&["export", "--urls", "--format", "csv"]);
        export.arg(place.path("store")).arg("--out").arg(place.path(out));
        export
    };
    assert!(export("whole.csv").output().unwrap().status.success());
    let hosts = place.hosts();
    let both = [0, 1].map(|process| {
        let mut export = export("parts");
        export.arg("--parts");
        start(export, &hosts, process)
    });
    let outputs = both.map(|process| process.wait_with_output().unwrap());
    outputs.iter().for_each(|output| assert!(output.status.success(), "{}", said(output)));
    let whole = fs::read_to_string(place.path("whole.csv")).unwrap();
    let (head, rows) = whole.split_once('\n').unwrap();
    let part = |number| fs::read_to_string(place.path(&format!("parts/part-0000{number}.csv"))).unwrap();
    let parts: String = (0..4).map(|number| part(number).strip_prefix(head).unwrap().trim_start().to_owned()).collect();
    assert_eq!(parts, rows);
    assert_eq!(fs::read_dir(place.path("parts")).unwrap().count(), 4);
    // Several processes cannot write one file.
    let output = start(export("one.csv"), &hosts, 0).wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
}

#[test]
fn a_process_that_goes_ends_the_other_and_leaves_nothing() {
    let place = Place::new(200_000);
    let hosts = place.hosts();
    // No change is below this tolerance, so the analysis iterates forever.
    let words = "pagerank --tolerance=-1 --iterations 1000000000";
    let first = start(place.analyze(words, Some("values.csv")), &hosts, 0);
    let mut second = start(place.analyze(words, None), &hosts, 1);
    while fs::read_dir(place.0.path()).unwrap().count() <= 2 {
        // The process makes the draft of the table first. Then both processes read the store.
        std::thread::yield_now();
    }
    std::thread::sleep(std::time::Duration::from_millis(500));
    second.kill().unwrap();
    second.wait().unwrap();
    let output = first.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("process 1 at"), "{}", said(&output));
    assert_eq!(fs::read_dir(place.0.path()).unwrap().count(), 2, "the store and the hosts are there");
}

#[test]
#[cfg(unix)]
fn ctrl_c_leaves_nothing() {
    let place = Place::new(200_000);
    let mut analyze = place.analyze("pagerank --tolerance=-1 --iterations 1000000000 --log info", Some("values.csv"));
    let mut child = analyze.spawn().unwrap();
    let mut stderr = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("stage begins stage=\"pagerank\"") {
        line.clear();
        assert!(std::io::BufRead::read_line(&mut stderr, &mut line).unwrap() > 0, "it ended before it iterated");
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut stderr, &mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1), "{rest}");
    assert!(rest.contains("error: stopped; nothing was written"), "{rest}");
    assert_eq!(fs::read_dir(place.0.path()).unwrap().count(), 1, "only the store is there");
}

/// `gone` and `missing` mean the same in the table by URL as in the printed numbers and in the table by host.
#[test]
fn columns_of_rot_add_up() {
    let place = Place(tempfile::tempdir().unwrap());
    let line =
        |page: &str, time: &str, rest: &str| format!(r#"{{"url":"http://a.example/{page}","ts":"{time}",{rest}}}"#);
    let [there, gone] = [r#""links":[]"#, r#""status":404"#];
    let lines = [
        line("there", "2008", there),
        line("gone", "2008", there),
        line("gone", "2009", gone),
        line("never", "2008", gone),
        line("nor", "2009", gone),
    ];
    fs::write(place.path("crawl.jsonl"), lines.join("\n")).unwrap();
    let built = command(&["build", "--out"]).arg(place.path("store")).arg(place.path("crawl.jsonl")).output().unwrap();
    assert!(built.status.success(), "{}", said(&built));
    let output = place.analyze("rot", Some("rot.csv")).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let table = place.table("rot.csv");
    let sum = |name: &str| table[name].iter().sum::<f64>();
    assert_eq!((sum("gone"), sum("missing")), (1.0, 2.0), "{table:?}");
    // `deaths --missing` names these pages.
    let deaths = command(&["deaths"]).arg(place.path("store")).args(["--missing", "--format", "csv"]).output().unwrap();
    let right = [
        "page,died,status,seen,returned,linking,unknown",
        "http://a.example/never,2008-01-01T00:00:00Z,404,,,0,0",
        "http://a.example/nor,2009-01-01T00:00:00Z,404,,,0,0",
    ];
    assert_eq!(String::from_utf8(deaths.stdout).unwrap().lines().collect::<Vec<_>>(), right);
}

#[test]
fn what_makes_no_sense_is_refused_with_a_reason() {
    let place = Place::new(10_000);
    for (words, code, reason) in [
        ("scc --damping 0.5", 2, "--damping is an option of pagerank only"),
        ("pagerank --damping 1.5", 2, "from 0 to 1"),
        ("mortality --period month", 2, "omit --period"),
        ("growth --at 2006", 2, "growth covers all periods"),
        ("pagerank --at 2006 --period month", 2, "cannot be used with"),
        ("degrees --from 2007 --to 2006", 2, "--from is later than --to"),
        ("ranks", 2, "invalid value 'ranks'"),
        ("harmonic --memory 1M", 1, "use at least"),
        ("wcc --period month --from 2050", 1, "no capture in this window"),
    ] {
        let output = place.analyze(words, None).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{words}: {}", said(&output));
        assert!(said(&output).contains(reason), "{words}: {}", said(&output));
        assert!(output.stdout.is_empty(), "{words}");
    }
    let missing = place.analyze("wcc", Some("none/values.csv")).output().unwrap();
    assert!(said(&missing).contains("none/values.csv cannot be written"), "{}", said(&missing));
    for words in ["pagerank", "growth", "menus", "scc --period year", "mortality", "locality"] {
        let output = place.analyze(words, None).output().unwrap();
        assert!(output.status.success(), "{words}: {}", said(&output));
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.lines().count() <= 40 && text.lines().skip(1).all(|line| line.chars().count() <= 80), "{text}");
    }
}
