//! The scratch directory of one process of a job: its temporary files, and the states from which a killed job resumes.
//!
//! ```text
//! SPILL/webstrata-1f0c.../process-0/LOCK               held while a process uses the directory; its random name
//! SPILL/webstrata-1f0c.../process-0/job.json           which job it is, and the row that it writes
//! SPILL/webstrata-1f0c.../process-0/state-003-04.json  the state of worker 3 after four stages
//! SPILL/webstrata-1f0c.../process-0/captures-17        a run of records
//! ```
//!
//! The name of the directory follows from the store, so a store has one scratch directory for each process and each
//! `--spill` directory. The next job uses or removes all files that a dead job left there. The work of a killed process
//! survives. The files are not synced, so a job starts from the beginning after a crash of the machine.

use crate::Error;
use crate::state::{JobState, Run, runs};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use webstrata_layers::{Draft, EpochId, unique};

const LOCK: &str = "LOCK";
const JOB: &str = "job.json";
const PROCESS: &str = "process-";

/// A handle on a scratch directory, cheap to clone.
#[derive(Clone, Debug)]
pub struct Scratch(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    directory: PathBuf,
    name: String,
    next: AtomicU64,
    written: Arc<AtomicU64>,
    read: Arc<AtomicU64>,
    _lock: Option<File>,
}

/// The contents of `job.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct JobFile {
    /// The hash by which a later start recognizes the job.
    pub(crate) id: String,
    /// The row that the job writes.
    pub(crate) row: u32,
    /// The epoch that was current when the job began.
    pub(crate) base: Option<EpochId>,
}

impl Scratch {
    /// Opens the directory of a process for the job `id`, and removes files that other jobs left there.
    ///
    /// # Errors
    /// Another process uses the directory, or the directory cannot be created.
    pub(crate) fn open(
        around: &Path,
        process: usize,
        id: &str,
        [written, read]: [Arc<AtomicU64>; 2],
    ) -> Result<Scratch, Error> {
        let directory = around.join(format!("{PROCESS}{process}"));
        let failed = |source| Error::Spill { directory: directory.clone(), source };
        fs::create_dir_all(&directory).map_err(failed)?;
        let lock = File::options().create(true).truncate(false).read(true).write(true).open(directory.join(LOCK));
        let mut lock = lock.map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => return Err(Error::ScratchInUse { directory }),
            Err(fs::TryLockError::Error(source)) => return Err(failed(source)),
        }
        let mut name = String::new();
        lock.read_to_string(&mut name).map_err(failed)?;
        if name.is_empty() {
            name = unique();
            lock.write_all(name.as_bytes()).map_err(failed)?;
        }
        let inner = Inner { directory, name, next: 0.into(), written, read, _lock: Some(lock) };
        let scratch = Scratch(Arc::new(inner));
        if scratch.job().is_none_or(|job| job.id != id) {
            scratch.retain(&BTreeSet::new())?;
        }
        Ok(scratch)
    }

    /// Whether the directory of a process has files of the job `id`.
    pub(crate) fn is_of(around: &Path, process: usize, id: &str) -> bool {
        job_in(&around.join(format!("{PROCESS}{process}"))).is_some_and(|job| job.id == id)
    }

    /// Removes the files of dead processes with numbers from `processes` on: these processes were part of a larger
    /// cluster.
    pub(crate) fn clear_others(&self, processes: usize) {
        let entries = self.0.directory.parent().and_then(|around| fs::read_dir(around).ok());
        for entry in entries.into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let number = name.strip_prefix(PROCESS).and_then(|number| number.parse::<usize>().ok());
            let is_of_larger = number.is_some_and(|number| number >= processes);
            // A process of this cluster may be starting, and this check holds the lock for a moment. Only directories
            // of a larger cluster are checked, so the process keeps its lock.
            if is_of_larger && File::open(entry.path().join(LOCK)).is_ok_and(|lock| lock.try_lock().is_ok()) {
                // Another process may do the same at the same time.
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }

    /// Removes what a removal left that was killed: the directory of a process, if it has no job and no process uses
    /// it, and the directory around it.
    pub(crate) fn clear_left(around: &Path, process: usize) {
        let directory = around.join(format!("{PROCESS}{process}"));
        let lock = File::open(directory.join(LOCK));
        let is_used = lock.as_ref().is_ok_and(|lock| lock.try_lock().is_err());
        if job_in(&directory).is_none() && !is_used {
            // There may be nothing, or files that this user may not remove: the refused job touches nothing else.
            let _ = fs::remove_dir_all(&directory);
            let _ = fs::remove_dir(around);
        }
    }

    /// A directory for jobs that cannot be resumed, and for tests: files go directly into `directory`.
    pub fn temporary(directory: &Path) -> Scratch {
        let directory = directory.to_owned();
        let (written, read) = (Arc::default(), Arc::default());
        Scratch(Arc::new(Inner { directory, name: String::new(), next: 0.into(), written, read, _lock: None }))
    }

    /// The random name of the directory. It stays as long as the directory, and no other directory has it.
    pub(crate) fn name(&self) -> &str {
        &self.0.name
    }

    /// Returns the directory.
    pub fn directory(&self) -> &Path {
        &self.0.directory
    }

    /// Returns the error for an error of the file system in this directory.
    pub fn error(&self, source: std::io::Error) -> Error {
        Error::Spill { directory: self.0.directory.clone(), source }
    }

    /// Creates a new file and returns its name and the file.
    pub(crate) fn create(&self, what: &str) -> Result<(String, File), Error> {
        loop {
            let name = format!("{what}-{}", self.0.next.fetch_add(1, Relaxed));
            match File::options().write(true).create_new(true).open(self.0.directory.join(&name)) {
                Ok(file) => return Ok((name, file)),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(self.error(error)),
            }
        }
    }

    /// Opens a file and checks that its length is `bytes`.
    pub(crate) fn open_file(&self, name: &str, bytes: u64) -> Result<File, Error> {
        let file = File::open(self.0.directory.join(name)).map_err(|source| self.error(source))?;
        let got = file.metadata().map_err(|source| self.error(source))?.len();
        if got != bytes {
            let text = format!("{name} has {got} bytes for {bytes}; remove the directory and start again");
            return Err(self.error(std::io::Error::other(text)));
        }
        Ok(file)
    }

    /// Removes a file.
    pub fn remove(&self, name: &str) -> Result<(), Error> {
        fs::remove_file(self.0.directory.join(name)).map_err(|source| self.error(source))
    }

    /// Counts bytes of temporary files that were written.
    pub(crate) fn count_written(&self, bytes: usize) {
        self.0.written.fetch_add(bytes as u64, Relaxed);
    }

    /// Returns the bytes written so far.
    #[cfg(test)]
    pub(crate) fn written(&self) -> u64 {
        self.0.written.load(Relaxed)
    }

    /// Counts bytes of temporary files that were read.
    pub(crate) fn count_read(&self, bytes: usize) {
        self.0.read.fetch_add(bytes as u64, Relaxed);
    }

    /// Returns the job whose files are in this directory.
    pub(crate) fn job(&self) -> Option<JobFile> {
        job_in(&self.0.directory)
    }

    /// Records the job whose files are in this directory.
    pub(crate) fn set_job(&self, job: &JobFile) -> Result<(), Error> {
        self.replace(JOB, job)
    }

    /// Saves the state of a worker after this number of stages.
    pub(crate) fn save(&self, (worker, stages): (usize, usize), state: &impl JobState) -> Result<(), Error> {
        self.replace(&state_name(worker, stages), state)
    }

    /// Returns the state of a worker after a stage; `None` if the state does not exist or cannot be read, or if one of
    /// its files is missing or has another length.
    pub(crate) fn load<S: JobState>(&self, worker: usize, stages: usize) -> Option<S> {
        let json = fs::read(self.0.directory.join(state_name(worker, stages))).ok()?;
        let state: S = serde_json::from_slice(&json).ok()?;
        let bytes = |run: &Run| fs::metadata(self.0.directory.join(&run.name)).map(|file| file.len());
        let is_complete = runs(&state).all(|run| bytes(run).is_ok_and(|bytes| bytes == run.bytes));
        is_complete.then_some(state)
    }

    /// Removes all files that a start after an error would not use. If no state exists, removes the directory. Returns
    /// whether a state exists.
    pub(crate) fn tidy<S: JobState>(&self, workers: Range<usize>, stages: usize) -> Result<bool, Error> {
        let states: Vec<_> = workers
            .flat_map(|worker| {
                (1..=stages).filter_map(move |stages| Some(((worker, stages), self.load::<S>(worker, stages)?)))
            })
            .collect();
        if states.is_empty() {
            return self.remove_all().map(|()| false);
        }
        self.retain(&Self::needed(states.iter().map(|(at, state)| (*at, state)))).map(|()| true)
    }

    /// Removes the state of a worker after a stage.
    pub(crate) fn forget(&self, worker: usize, stages: usize) -> Result<(), Error> {
        self.remove(&state_name(worker, stages))
    }

    fn replace(&self, name: &str, value: &impl Serialize) -> Result<(), Error> {
        let bytes = serde_json::to_vec(value).map_err(|error| self.error(error.into()))?;
        let write = || {
            let draft = Draft::create(&self.0.directory.join(name))?;
            draft.file().write_all(&bytes)?;
            draft.finish_unsynced()
        };
        write().map_err(|source| self.error(source))
    }

    /// Removes all files except the lock and the files in `kept`.
    pub(crate) fn retain(&self, kept: &BTreeSet<String>) -> Result<(), Error> {
        let remove = || -> std::io::Result<()> {
            for entry in fs::read_dir(&self.0.directory)? {
                let entry = entry?;
                let name = entry.file_name().to_string_lossy().into_owned();
                if name != LOCK && !kept.contains(&name) {
                    if entry.file_type()?.is_dir() {
                        fs::remove_dir_all(entry.path())?;
                    } else {
                        fs::remove_file(entry.path())?;
                    }
                }
            }
            Ok(())
        };
        remove().map_err(|source| self.error(source))
    }

    /// Returns the names of the files that workers need to resume from these states, and `job.json`.
    pub(crate) fn needed<'a, S: JobState>(states: impl Iterator<Item = ((usize, usize), &'a S)>) -> BTreeSet<String> {
        let mut names = BTreeSet::from([JOB.to_owned()]);
        for ((worker, stages), state) in states {
            names.insert(state_name(worker, stages));
            names.extend(runs(state).map(|run| run.name.clone()));
        }
        names
    }

    /// Removes the directory with its contents, and the directory around it if that is empty then.
    pub(crate) fn remove_all(&self) -> Result<(), Error> {
        // First, so that what a kill leaves of the directory is no job to resume.
        let _ = fs::remove_file(self.0.directory.join(JOB));
        fs::remove_dir_all(&self.0.directory).map_err(|source| self.error(source))?;
        if let Some(parent) = self.0.directory.parent() {
            // Other processes may still have their directories there.
            let _ = fs::remove_dir(parent);
        }
        Ok(())
    }
}

fn job_in(directory: &Path) -> Option<JobFile> {
    serde_json::from_slice(&fs::read(directory.join(JOB)).ok()?).ok()
}

fn state_name(worker: usize, stages: usize) -> String {
    format!("state-{worker:03}-{stages:02}.json")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::Runs;
    use webstrata_layers::FileEntry;

    #[derive(Clone, Default, Serialize, Deserialize)]
    struct State {
        urls: Runs,
    }

    impl JobState for State {
        fn collections(&self) -> Vec<&Runs> {
            vec![&self.urls]
        }

        fn files(&self) -> &[FileEntry] {
            &[]
        }
    }

    fn open(around: &Path, process: usize, id: &str) -> Result<Scratch, Error> {
        Scratch::open(around, process, id, Default::default())
    }

    #[test]
    fn a_job_finds_its_own_files_and_another_one_none() {
        let dir = tempfile::tempdir().unwrap();
        let around = dir.path().join("webstrata-test");
        let first = open(&around, 0, "one").unwrap();
        assert!(matches!(open(&around, 0, "one"), Err(Error::ScratchInUse { .. })));
        first.set_job(&JobFile { id: "one".into(), row: 7, base: None }).unwrap();
        let mut run = crate::runs::RunWriter::create("urls", &first).unwrap();
        run.push(b"key", b"payload").unwrap();
        let mut state = State::default();
        state.urls.0.push(run.finish().unwrap());
        first.save((0, 1), &state).unwrap();
        first.create("garbage").unwrap();
        first.tidy::<State>(0..1, 3).unwrap();
        drop(first);

        let again = open(&around, 0, "one").unwrap();
        assert_eq!(again.job().unwrap().row, 7);
        assert_eq!(again.load::<State>(0, 1).unwrap().urls, state.urls);
        assert_eq!(fs::read_dir(around.join("process-0")).unwrap().count(), 4, "lock, job, state, run");
        fs::write(around.join("process-0").join(&state.urls.0[0].name), b"short").unwrap();
        assert!(again.load::<State>(0, 1).is_none(), "a file of another length is none of ours");
        drop(again);

        let other = open(&around, 0, "two").unwrap();
        assert_eq!(fs::read_dir(around.join("process-0")).unwrap().count(), 1, "the lock");
        let (alive, dead) = (open(&around, 3, "one").unwrap(), open(&around, 2, "one").unwrap());
        drop(dead);
        other.clear_others(1);
        assert!(around.join("process-3").exists() && !around.join("process-2").exists());
        drop(alive);
        other.clear_others(1);
        other.remove_all().unwrap();
        assert!(!around.exists());
    }

    #[test]
    fn what_a_killed_removal_leaves_is_cleared_and_no_job_or_process_in_use() {
        let dir = tempfile::tempdir().unwrap();
        let around = dir.path().join("webstrata-test");
        Scratch::clear_left(&around, 0);
        let scratch = open(&around, 0, "one").unwrap();
        scratch.set_job(&JobFile { id: "one".into(), row: 7, base: None }).unwrap();
        Scratch::clear_left(&around, 0);
        scratch.create("garbage").unwrap();
        drop(scratch);
        Scratch::clear_left(&around, 0);
        let directory = around.join("process-0");
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 3, "lock, job, garbage: another start may resume");
        // The kill comes after the first file.
        fs::remove_file(directory.join(JOB)).unwrap();
        let used = open(&around, 0, "two").unwrap();
        Scratch::clear_left(&around, 0);
        assert!(directory.exists());
        drop(used);
        Scratch::clear_left(&around, 0);
        assert!(!around.exists());
        fs::create_dir(&around).unwrap();
        Scratch::clear_left(&around, 0);
        assert!(!around.exists(), "the kill came before the last directory");
    }

    #[test]
    fn processes_that_start_at_once_do_not_take_each_others_locks() {
        let dir = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for process in 0..2 {
                let around = dir.path();
                scope.spawn(move || {
                    for round in 0..5_000 {
                        let scratch = open(around, process, &round.to_string()).unwrap();
                        scratch.clear_others(2);
                    }
                });
            }
        });
    }
}
