//! Options that all jobs over a store share, and the progress and the report of a job.

mod metrics;
pub(crate) mod progress;

use clap::Args;
use serde_json::json;
use std::cell::RefCell;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;
use webstrata_analysis::{outside_stores, write_file};
use webstrata_engine::{Cluster, Progress, RunOptions, StageReport, memory_needed, workers_within};
use webstrata_layers::Location;

use crate::args::{processors, size};

thread_local! {
    /// The progress of the jobs of this thread, if another program watches them.
    static WATCHED: RefCell<Option<Progress>> = const { RefCell::new(None) };
}

/// Runs a function that starts jobs. The jobs count in `progress` and show nothing.
pub(crate) fn with_progress<T>(progress: &Progress, run: impl FnOnce() -> T) -> T {
    let before = WATCHED.replace(Some(progress.clone()));
    let done = run();
    WATCHED.set(before);
    done
}

/// With what a job runs.
#[derive(Args, Clone, Debug)]
pub(crate) struct RunArgs {
    #[arg(short, long, help = workers_help(), value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) workers: Option<u16>,
    /// Memory limit of this process; data that does not fit goes to temporary files
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = size)]
    pub(crate) memory: usize,
    /// Directory for temporary files [default: TMPDIR, or /tmp]
    #[arg(long, value_name = "DIR")]
    pub(crate) spill: Option<PathBuf>,
    /// File with the HOST:PORT of each process of this job, one per line
    #[arg(long, value_name = "FILE", requires = "process")]
    pub(crate) hosts: Option<PathBuf>,
    /// Line of --hosts that is this process, counted from 0
    #[arg(long, value_name = "K", requires = "hosts")]
    pub(crate) process: Option<usize>,
    /// Serve Prometheus metrics at this address while the job runs
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) metrics: Option<String>,
    /// Write the figures of each stage to this file, as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Log to standard error at this level: error, warn, info, debug or trace
    #[arg(long, value_name = "LEVEL")]
    pub(crate) log: Option<tracing::Level>,
}

/// The help for the number of workers, with the numbers that decide it.
fn workers_help() -> String {
    let [process, one] = [0, 1].map(|workers| memory_needed(workers) >> 20);
    format!(
        "Worker threads [default: one per processor, if --memory is enough for all: {process} MiB, and {} MiB each]",
        one - process
    )
}

/// The figures of a job in this process.
pub(crate) struct Run {
    pub(crate) seconds: f64,
    pub(crate) stages: Vec<StageReport>,
    pub(crate) spilled: u64,
}

impl RunArgs {
    /// The options of the pipeline.
    pub(crate) fn options(&self, store: &Location) -> anyhow::Result<RunOptions> {
        let workers = self.workers.map_or_else(|| processors().min(workers_within(self.memory)), usize::from);
        let cluster = match (&self.hosts, self.process) {
            (Some(hosts), Some(process)) => Some(Cluster::from_file(hosts, process)?),
            _ => None,
        };
        let (memory_max, spill) = (self.memory, self.spill.clone());
        Ok(RunOptions { store: store.clone(), workers, memory_max, spill, cluster })
    }

    /// Runs a job and shows its progress. The outer error says that the progress cannot be shown; the result of the job
    /// is inside.
    pub(crate) fn shown<T, E>(
        &self,
        job: impl FnOnce(&Progress) -> Result<T, E>,
    ) -> anyhow::Result<(Result<T, E>, Run)> {
        if let Some(level) = self.log {
            // If a process runs several jobs, the first job has started the log.
            let _ = tracing_subscriber::fmt().with_max_level(level).with_writer(io::stderr).try_init();
        }
        if let Some(report) = &self.report {
            outside_stores(report)?;
        }
        let watched = WATCHED.with_borrow(Clone::clone);
        let progress = watched.clone().unwrap_or_default();
        if let Some(address) = &self.metrics {
            metrics::serve(address, &progress)?;
        }
        let started = Instant::now();
        let done = match watched {
            Some(progress) => job(&progress),
            None => progress::shown(&progress, || job(&progress)),
        };
        let seconds = started.elapsed().as_secs_f64();
        Ok((done, Run { seconds, stages: progress.stages(), spilled: progress.spilled() }))
    }

    /// Writes the figures of the stages and the error, if `--report` is given.
    pub(crate) fn write_report(&self, run: &Run, error: Option<&impl std::error::Error>) -> anyhow::Result<()> {
        let Some(path) = &self.report else { return Ok(()) };
        let value = json!({"error": error.map(ToString::to_string), "seconds": run.seconds, "stages": run.stages});
        write_json(path, &value)
    }
}

/// Writes a report.
pub(crate) fn write_json(path: &Path, value: &serde_json::Value) -> anyhow::Result<()> {
    Ok(write_file(path, format!("{value:#}\n").as_bytes())?)
}
