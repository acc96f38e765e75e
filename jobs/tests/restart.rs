//! Builds that are killed and started again, alone and in clusters of real processes, and updates and merges in
//! clusters. The bytes are the same, and no temporary files are left.
//!
//! `WEBSTRATA_SEED` (1) is the seed of the moments, and `WEBSTRATA_KILLS` (6) the number of kills. A longer run:
//! `WEBSTRATA_KILLS=40 WEBSTRATA_SEED=7 cargo test --release -p webstrata --test restart`.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod ports;
mod processes;

use ports::addresses;
use processes::{Process, chance};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use webstrata_tests::crawls::Random;
use webstrata_tests::number;

const STAGES: [&str; 8] = ["ingest", "pages", "sources", "uids", "replace", "outlinks", "inlinks", "commit"];
/// The time within which the processes of a cluster must notice the loss of a process.
const NOTICED_MAX: Duration = Duration::from_secs(5);
/// The number of attempts to kill a build in a stage.
const ATTEMPTS: u32 = 8;

/// A directory with a crawl in six files, and the store that one process builds from the crawl.
struct Setting {
    dir: TempDir,
    random: Random,
    /// The seconds of each stage, and of the whole build.
    seconds: BTreeMap<String, f64>,
    whole: f64,
}

impl Setting {
    fn new() -> Setting {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("crawl")).unwrap();
        for seed in 0..6 {
            let out = dir.path().join(format!("crawl/{seed}.jsonl"));
            let crawl = format!("uk:occurrences=150000,seed={seed}");
            let mut generate = webstrata(&["generate", &crawl, "--out"]);
            assert!(generate.arg(out).status().unwrap().success());
        }
        let random = chance();
        let mut setting = Setting { dir, random, seconds: BTreeMap::new(), whole: 0.0 };
        let report = setting.path("report.json");
        let mut build = setting.build("one", 2);
        assert!(build.arg("--report").arg(&report).status().unwrap().success());
        let report: serde_json::Value = serde_json::from_slice(&fs::read(report).unwrap()).unwrap();
        setting.whole = report["seconds"].as_f64().unwrap();
        for stage in report["stages"].as_array().unwrap() {
            setting.seconds.insert(stage["stage"].as_str().unwrap().to_owned(), stage["seconds"].as_f64().unwrap());
        }
        setting
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn spill(&self, name: &str) -> PathBuf {
        let spill = self.path("spill").join(name);
        fs::create_dir_all(&spill).unwrap();
        spill
    }

    /// A build into the store `name`.
    fn build(&self, name: &str, workers: usize) -> Command {
        let mut build = webstrata(&["build", "--memory", "1G", "--partition-urls", "2000", "--log", "info", "-w"]);
        build.arg(workers.to_string()).arg("--out").arg(self.path(name)).arg("--spill").arg(self.spill(name));
        build.arg(self.path("crawl")).stdout(Stdio::null()).stderr(Stdio::null());
        build
    }

    /// A random moment in a stage.
    fn moment_in(&mut self, stage: &str) -> Duration {
        self.random.moment(self.seconds.get(stage).copied().unwrap_or(0.0))
    }

    /// Whether the store is there, and no temporary files are left from which another build could resume.
    fn is_done(&self, name: &str) -> bool {
        let left = fs::read_dir(self.spill(name)).is_ok_and(|mut left| left.next().is_some());
        self.path(name).join("CURRENT").exists() && !left
    }

    /// Asserts that the store `name` has one row and the bytes that one process makes, and that no temporary files are
    /// left.
    fn is_as_by_one(&self, name: &str) {
        let files = |name: &str| {
            let mut files = BTreeMap::new();
            read_all(&self.path(name).join("rows"), &mut files);
            files
        };
        let (one, other) = (files("one"), files(name));
        assert!(one.len() > 7);
        // Rows that were never committed may have used up numbers.
        assert!(one.into_values().eq(other.into_values()), "{name} has other bytes");
        assert_eq!(fs::read_dir(self.path(name).join("rows")).unwrap().count(), 1, "rows without a commit are left");
        let left: Vec<_> = fs::read_dir(self.spill(name)).unwrap().collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

/// Reads all files below a directory: their bytes, by path.
fn read_all(dir: &Path, files: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read_all(&path, files);
        } else {
            files.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
}

fn webstrata(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_webstrata"));
    command.args(args);
    command
}

/// Waits until a stage begins; `false` if the process ends before.
fn wait_for(process: &mut Process, stage: &str) -> bool {
    std::iter::from_fn(|| process.next_stage()).any(|begun| begun == stage)
}

#[test]
fn a_killed_build_goes_on_and_makes_the_same_bytes() {
    let mut setting = Setting::new();
    let (mut kills, mut went_on) = (0, 0);
    let wanted = number("WEBSTRATA_KILLS", 6);
    let mut round = 0;
    // Some kills come before the first stage has ended, and then nothing is there to go on with.
    while kills < wanted || went_on == 0 {
        assert!(kills < 10 * wanted, "no build went on where another had been killed");
        let name = format!("killed-{round}");
        round += 1;
        // At most twice in a row, so that the build reaches its end.
        let mut killed = true;
        for _ in 0..2 {
            let mut child = Process::start(&mut setting.build(&name, 2));
            thread::sleep(setting.random.moment(setting.whole));
            child.child.kill().unwrap();
            // The build may have finished before the kill. Then the same command would be a second build.
            killed = child.end().join().unwrap().0.is_none() && !setting.is_done(&name);
            if !killed {
                break;
            }
            kills += 1;
        }
        let mut said = String::new();
        if killed {
            let (code, all, _) = Process::start(&mut setting.build(&name, 2)).end().join().unwrap();
            // The build may have been killed while it removed the files from which it could have resumed.
            assert!(code == Some(0) || all.contains(" is already a store, "), "{all}");
            said = all;
        }
        went_on += u64::from(said.contains("going on with an unfinished job"));
        setting.is_as_by_one(&name);
    }
}

#[test]
fn a_build_killed_in_a_stage_does_not_begin_again_before_it() {
    let mut setting = Setting::new();
    for (number, stage) in STAGES.iter().enumerate() {
        // A stage may end before the test kills the build. Then the test kills earlier, with another store.
        let name = (1..=ATTEMPTS).find_map(|attempt| {
            let name = format!("in-{stage}-{attempt}");
            let mut child = Process::start(&mut setting.build(&name, 1));
            assert!(wait_for(&mut child, stage));
            thread::sleep(setting.moment_in(stage) / attempt);
            child.child.kill().unwrap();
            child.end().join().unwrap().0.is_none().then_some(name)
        });
        let name = name.unwrap_or_else(|| panic!("no build could be killed in {stage}"));
        let (code, said, _) = Process::start(&mut setting.build(&name, 1)).end().join().unwrap();
        assert_eq!(code, Some(0), "{said}");
        for before in &STAGES[..number] {
            assert!(!said.contains(&format!("stage begins stage=\"{before}\"")), "{stage}: {said}");
        }
        setting.is_as_by_one(&name);
    }
}

#[test]
fn what_a_dead_job_left_is_cleared_by_another_one() {
    let setting = Setting::new();
    let mut child = Process::start(&mut setting.build("store", 2));
    assert!(wait_for(&mut child, "replace"));
    child.child.kill().unwrap();
    child.end().join().unwrap();
    assert!(fs::read_dir(setting.spill("store")).unwrap().count() > 0);
    // With another number of workers, the build is another job.
    let (code, said, _) = Process::start(&mut setting.build("store", 1)).end().join().unwrap();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("stage begins stage=\"ingest\""), "{said}");
    setting.is_as_by_one("store");
}

/// Writes a hosts file for processes on this machine.
fn hosts(setting: &Setting, processes: usize) -> PathBuf {
    let path = setting.path("hosts.txt");
    fs::write(&path, format!("# processes\n{}\n", addresses(processes).join("\n"))).unwrap();
    path
}

fn start_all(setting: &Setting, name: &str, hosts: &Path, processes: usize) -> Vec<Process> {
    let start = |process: usize| {
        let mut build = setting.build(name, 1);
        Process::start(build.arg("--hosts").arg(hosts).arg("--process").arg(process.to_string()))
    };
    (0..processes).map(start).collect()
}

#[test]
fn processes_together_make_the_bytes_of_one() {
    let setting = Setting::new();
    for processes in [2, 4] {
        let hosts = hosts(&setting, processes);
        let name = format!("by-{processes}");
        let ends: Vec<_> = start_all(&setting, &name, &hosts, processes).into_iter().map(Process::end).collect();
        let ends: Vec<_> = ends.into_iter().map(|end| end.join().unwrap()).collect();
        assert!(ends.iter().all(|(code, _, _)| *code == Some(0)), "{ends:#?}");
        setting.is_as_by_one(&name);
    }
}

/// Kills a process of a cluster in a stage. The other processes must stop and say why. Returns the store and the hosts
/// file; `None` if the job finished before.
fn kill_one(setting: &mut Setting, stage: &str, processes: usize, attempt: u32) -> Option<(String, PathBuf)> {
    let hosts = hosts(setting, processes);
    let name = format!("cluster-{stage}-{attempt}");
    let mut all = start_all(setting, &name, &hosts, processes);
    let victim = usize::try_from(setting.random.below(processes as u64)).unwrap();
    assert!(wait_for(&mut all[victim], stage), "{}", all[victim].said);
    thread::sleep(setting.moment_in(stage) / attempt);
    all[victim].child.kill().unwrap();
    let killed = Instant::now();
    let ends: Vec<_> = all.into_iter().map(Process::end).collect();
    let mut ends: Vec<_> = ends.into_iter().map(|end| end.join().unwrap()).collect();
    ends.remove(victim);
    if ends.iter().any(|(code, _, _)| *code == Some(0)) {
        return None;
    }
    for (code, said, ended) in ends {
        assert_eq!(code, Some(1), "{stage}: {said}");
        assert!(ended < killed + NOTICED_MAX, "{stage}: {:?}", ended - killed);
        // A process that stops makes other processes stop, so the error may name another process first.
        let error = said.lines().rfind(|line| line.starts_with("error: ")).unwrap_or_default();
        assert!(error.contains("process ") && error.contains(" is gone"), "{stage}: {said}");
    }
    Some((name, hosts))
}

#[test]
fn a_process_killed_in_any_stage_stops_the_others_and_the_restart_makes_the_same_bytes() {
    let mut setting = Setting::new();
    for stage in STAGES {
        let processes = if setting.random.below(3) == 0 { 4 } else { 2 };
        // The job may end before the kill. Then the test kills earlier, with another store.
        let killed = (1..=ATTEMPTS).find_map(|attempt| kill_one(&mut setting, stage, processes, attempt));
        let (name, hosts) = killed.unwrap_or_else(|| panic!("no process could be killed in {stage}"));
        let ends: Vec<_> = start_all(&setting, &name, &hosts, processes).into_iter().map(Process::end).collect();
        let ends: Vec<_> = ends.into_iter().map(|end| end.join().unwrap()).collect();
        assert!(ends.iter().all(|(code, _, _)| *code == Some(0)), "{stage}: {ends:#?}");
        setting.is_as_by_one(&name);
    }
}

/// An update or a merge of the store `name`.
fn change(setting: &Setting, name: &str, what: &str, workers: usize) -> Command {
    let (store, more) = (setting.path(name), setting.path("more"));
    let mut job = webstrata(&[what, "--memory", "1G", "--partition-urls", "2000", "--log", "info", "-w"]);
    job.arg(workers.to_string()).arg("--spill").arg(setting.spill(name)).arg(store);
    if what == "update" {
        job.arg("--no-merge").arg(more)
    } else {
        job.args(["--rows", "all"])
    };
    job.stdout(Stdio::null()).stderr(Stdio::null());
    job
}

#[test]
fn processes_update_and_merge_as_one_does_also_when_one_is_killed() {
    let mut setting = Setting::new();
    assert!(setting.build("two", 1).status().unwrap().success());
    // Captures that the store already has, and new captures.
    fs::create_dir(setting.path("more")).unwrap();
    fs::copy(setting.path("crawl/0.jsonl"), setting.path("more/old.jsonl")).unwrap();
    let mut generate = webstrata(&["generate", "uk:occurrences=300000,seed=9", "--out"]);
    assert!(generate.arg(setting.path("more/new.jsonl")).status().unwrap().success());
    for (what, first) in [("update", "ingest"), ("merge", "sample")] {
        let started = Instant::now();
        assert!(change(&setting, "one", what, 2).status().unwrap().success());
        let whole = started.elapsed().as_secs_f64();
        let (hosts, moment) = (hosts(&setting, 2), setting.random.moment(whole));
        let start = || -> Vec<Process> {
            let of = |process: u32| {
                let mut job = change(&setting, "two", what, 1);
                Process::start(job.arg("--hosts").arg(&hosts).arg("--process").arg(process.to_string()))
            };
            (0..2).map(of).collect()
        };
        let mut all = start();
        // If a process is killed before this stage, the other process waits for it for a long time.
        assert!(wait_for(&mut all[1], first), "{}", all[1].said);
        thread::sleep(moment);
        all[1].child.kill().unwrap();
        // If the kill came too late, all processes have finished.
        let codes: Vec<_> = all.into_iter().map(|process| process.end().join().unwrap().0).collect();
        assert!([Some(0), Some(1)].contains(&codes[0]), "{codes:?}");
        for end in start().into_iter().map(Process::end).collect::<Vec<_>>() {
            let (code, said, _) = end.join().unwrap();
            assert_eq!(code, Some(0), "{what}: {said}");
        }
        let files = |name: &str| {
            let mut files = BTreeMap::new();
            read_all(&setting.path(name).join("rows"), &mut files);
            files
        };
        // Rows that were never committed may have used up numbers.
        assert!(files("one").into_values().eq(files("two").into_values()), "{what}: other bytes");
        assert!(fs::read_dir(setting.spill("two")).unwrap().next().is_none(), "{what}: temporary files are left");
    }
}

/// A process that stops in order tells its user. The other processes must not take this for the end of the job.
#[test]
#[cfg(unix)]
fn a_process_that_is_asked_to_stop_stops_the_others() {
    let setting = Setting::new();
    let hosts = hosts(&setting, 2);
    let mut all = start_all(&setting, "asked", &hosts, 2);
    assert!(wait_for(&mut all[1], "ingest"), "{}", all[1].said);
    let asked = Instant::now();
    assert!(Command::new("kill").args(["-INT", &all[1].child.id().to_string()]).status().unwrap().success());
    let ends: Vec<_> = all.into_iter().map(Process::end).collect();
    let errors = ["process 1 at ", "stopped; run the same command to resume"];
    for (end, error) in ends.into_iter().zip(errors) {
        let (code, said, ended) = end.join().unwrap();
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains(&format!("error: {error}")), "{said}");
        assert!(ended < asked + NOTICED_MAX, "{:?}: {said}", ended - asked);
    }
}

#[test]
fn processes_of_different_jobs_are_told_apart() {
    let setting = Setting::new();
    let hosts = hosts(&setting, 2);
    let one = Process::start(setting.build("apart", 1).arg("--hosts").arg(&hosts).args(["--process", "0"]));
    let other = Process::start(setting.build("apart", 1).arg("--hosts").arg(&hosts).args([
        "--process",
        "1",
        "--links",
        "embeds",
    ]));
    for process in [one, other].map(Process::end) {
        let (code, said, _) = process.join().unwrap();
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains("has other inputs, options or hosts") || said.contains("has gone"), "{said}");
    }
}
