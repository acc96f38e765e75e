//! Updates, merges and garbage collections that are killed at random moments. The store stays at a committed epoch,
//! whole and with the answers of this epoch. The same command, run again, ends as if nothing had happened.
//!
//! `WEBSTRATA_SEED` (1) is the seed of the moments, and `WEBSTRATA_KILLS` (6) the number of kills. A longer run:
//! `WEBSTRATA_KILLS=50 WEBSTRATA_SEED=7 cargo test --release -p webstrata --test kills`.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]
#![expect(clippy::print_stdout, reason = "what chance has come to")]

mod histories;
mod processes;

use histories::{Expected, Histories, JOBS, Job, current, nothing_is_left, whole_epochs};
use processes::{Process, chance};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};
use webstrata_tests::crawls::Random;
use webstrata_tests::number;

/// The moment of a kill: a time after the start of a stage (the first is the start of the job), or a time after the job
/// has made or removed a manifest.
enum Moment {
    Stage(usize, Duration),
    Manifest(Duration),
}

/// The course of an undisturbed job.
struct Undisturbed {
    /// The start of each stage and the end of the job, in seconds. The list has at least the start of the job.
    begins: Vec<f64>,
    end: f64,
    expected: Expected,
}

impl Undisturbed {
    fn new(histories: &Histories, job: &Job) -> Undisturbed {
        let name = format!("undisturbed-{}", job.name);
        histories.copy(job.base, &name);
        let store = histories.path(&name);
        let (first, started) = (current(&store), Instant::now());
        let mut process = Process::start(&mut histories.job(job, &store, &histories.path("spill"), 1));
        let mut begins = vec![0.0];
        while process.next_stage().is_some() {
            begins.push(started.elapsed().as_secs_f64());
        }
        let (code, said, _) = process.end().join().unwrap();
        assert_eq!(code, Some(0), "{said}");
        let end = started.elapsed().as_secs_f64();
        Undisturbed { begins, end, expected: Expected::of(&store, first) }
    }

    /// A random moment of the job. Short stages get their share, and so does the time around a commit.
    fn moment(&self, random: &mut Random) -> Moment {
        let last = self.begins.len() - 1;
        match random.below(3) {
            0 => Moment::Stage(0, random.moment(self.end)),
            1 => {
                let stage = random.index(self.begins.len());
                let end = self.begins.get(stage + 1).copied().unwrap_or(self.end);
                Moment::Stage(stage, random.moment(end - self.begins[stage]))
            }
            _ => Moment::Manifest(random.moment((self.end - self.begins[last]) / 2.0)),
        }
    }
}

/// Starts a job and kills it at a moment. Returns whether the job was still running.
fn kill(mut command: Command, store: &Path, moment: Moment) -> bool {
    let manifests = || -> BTreeSet<_> {
        fs::read_dir(store.join("epochs")).unwrap().map(|entry| entry.unwrap().file_name()).collect()
    };
    let before = manifests();
    let mut process = Process::start(&mut command);
    let after = match moment {
        Moment::Stage(stages, after) => {
            (0..stages).for_each(|_| drop(process.next_stage()));
            after
        }
        Moment::Manifest(after) => {
            while manifests() == before && process.child.try_wait().unwrap().is_none() {
                std::hint::spin_loop();
            }
            after
        }
    };
    thread::sleep(after);
    process.child.kill().unwrap();
    process.end().join().unwrap().0.is_none()
}

#[test]
fn whatever_is_killed_leaves_an_epoch_and_ends_right_when_it_is_given_again() {
    let histories = Histories::new();
    let mut random = chance();
    let undisturbed = JOBS.map(|job| Undisturbed::new(&histories, &job));
    assert_eq!(undisturbed.each_ref().map(|own| own.expected.answers.len()), [3, 2, 1, 2]);
    let spill = histories.path("spill");
    // The number of kills, by job and by the number of epochs that the job had made.
    let mut kills = BTreeMap::new();
    let (mut round, wanted) = (0, number("WEBSTRATA_KILLS", 6));
    while kills.values().sum::<u64>() < wanted {
        let at = round % JOBS.len();
        let (job, name) = (&JOBS[at], format!("{}-{round}", JOBS[at].name));
        let (undisturbed, expected) = (&undisturbed[at], &undisturbed[at].expected);
        round += 1;
        histories.copy(job.base, &name);
        let (store, first) = (histories.path(&name), current(&histories.path(&name)));
        let workers = 1 + u64::from(random.below(4) == 0);
        // At most twice in a row, so that the job reaches its end.
        let was_killed = (0..2).take_while(|_| {
            let killed = kill(histories.job(job, &store, &spill, workers), &store, undisturbed.moment(&mut random));
            let made = expected.inspect(&store) - first;
            *kills.entry((job.name, made)).or_default() += u64::from(killed);
            killed
        });
        if was_killed.count() > 0 {
            if random.below(3) == 0 {
                // Garbage collection removes nothing that an unfinished job needs.
                histories.succeeds("gc STORE --keep 1", &name);
                expected.inspect(&store);
            }
            let workers = if random.below(4) == 0 { 3 - workers } else { workers };
            let mut again = histories.job(job, &store, &spill, workers);
            let (code, said, _) = Process::start(&mut again).end().join().unwrap();
            assert_eq!(code, Some(0), "{said}");
        }
        expected.is_done(&store, &spill);
        if job.name == "gc" {
            assert_eq!(whole_epochs(&store), [first]);
        }
        nothing_is_left(&store);
        fs::remove_dir_all(&store).unwrap();
    }
    println!("kills by job and epochs made before: {kills:?}");
}
