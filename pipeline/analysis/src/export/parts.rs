//! A table in parts: a directory with a file from each worker of each process, for tables that take one writer too
//! long.
//!
//! ```text
//! edges/part-00000.parquet    the records of the first range of UIDs
//! edges/part-00001.parquet    the records of the second range; all parts in order are the table in one file
//! ```
//!
//! There is a part for each worker, and some parts may have no rows. Until all parts are complete, the directory has
//! another name ([`Draft`]). The name is the same for all processes, because they share the disk. Memory: each worker
//! takes as much as an export to one file, with its share of the budget.

use super::{Export, ExportOptions, ExportReport, table};
use crate::Error;
use crate::nodes::NumberedNodes;
use crate::outlet::{Target, is_gzip, outside_stores};
use std::io;
use std::path::Path;
use std::sync::Arc;
use webstrata_engine::{Progress, gather, work_together};
use webstrata_layers::{Draft, Links, Reader};

/// Writes the parts of this process. All processes return the report of all parts.
pub(super) fn write(
    options: &ExportOptions,
    reader: Reader,
    nodes: Option<NumberedNodes>,
    out: &Path,
    progress: &Progress,
) -> Result<ExportReport, Error> {
    let run = &options.run;
    let workers = run.workers.max(1);
    let reader = Arc::new(reader.for_scans(workers));
    let parts = workers * run.processes();
    let ranges = reader.ranges(parts)?;
    let job = run.job(progress)?;
    let ExportOptions { what, format, names, window, urls, nodes: rule, .. } = options;
    let identity = format!("{} {what} {format} {names} {window:?} {urls} {rule:?} {}", reader.epoch(), out.display());
    let (shared, options, out) = (job.clone(), options.clone(), out.to_owned());
    let done = work_together(run, &job, "export", &identity, move |worker| {
        let (job, index) = (&shared, worker.index());
        let first = index.is_multiple_of(workers);
        let made = if index == 0 { Some(job.check(Directory::create(&out, parts))?) } else { None };
        // The directory now exists for all workers.
        gather(worker, job, None, &())?;
        let gzip = if is_gzip(&out) { ".gz" } else { "" };
        let part = Draft::directory_of(&out).join(format!("part-{index:05}.{}{gzip}", options.format));
        let mut options = ExportOptions { target: Target::File(part), ..options.clone() };
        options.run.memory_max /= workers;
        if first {
            let captures = reader.store().manifest().counts.captures;
            job.progress().enter(options.what.name(), captures * workers as u64 / parts as u64);
        }
        let export = Export {
            reader: &reader,
            options: &options,
            job,
            part: Some(ranges[index].clone()),
            nodes: nodes.as_ref(),
        };
        let written = job.check(table(&export, &mut io::sink()))?;
        let all = gather(worker, job, None, &written)?;
        if first {
            job.progress().leave();
        }
        if let Some(made) = made {
            job.check(made.keep())?;
        }
        // The directory has its name before any worker ends.
        gather(worker, job, None, &())?;
        Ok(ExportReport { records: all.iter().map(|report| report.records).sum(), ..written })
    });
    done.map_err(Error::without_state)
}

/// A directory of parts that appears when it is complete.
pub(super) struct Directory {
    draft: Draft,
    parts: usize,
}

impl Directory {
    pub(super) fn create(out: &Path, parts: usize) -> Result<Self, Error> {
        outside_stores(out)?;
        let draft = Draft::directory(out).map_err(|source| {
            let source = match source.kind() {
                io::ErrorKind::AlreadyExists => {
                    io::Error::new(source.kind(), "it is there already, and the files go into a directory of their own")
                }
                io::ErrorKind::ResourceBusy => io::Error::new(source.kind(), "another export writes it now"),
                _ => source,
            };
            Error::Output { path: out.to_owned(), source }
        })?;
        Ok(Self { draft, parts })
    }

    /// Gives the directory its name, if all parts are there.
    pub(super) fn keep(self) -> Result<(), Error> {
        let Self { draft, parts } = self;
        let path = draft.target().to_owned();
        let kept = draft.names().and_then(|names| {
            if names.len() == parts {
                return draft.finish();
            }
            let there = names.len();
            let text = format!("{there} of {parts} parts are there; all processes must write to one shared disk");
            Err(io::Error::other(text))
        });
        kept.map_err(|source| Error::Output { path, source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_directory_is_there_when_all_parts_are() {
        let place = tempfile::tempdir().unwrap();
        let out = place.path().join("edges");
        let draft = Draft::directory_of(&out);
        let made = Directory::create(&out, 2).unwrap();
        fs::write(draft.join("part-00000.csv"), "src,dst\n").unwrap();
        let error = Directory::create(&out, 2).err().unwrap().to_string();
        assert!(error.contains("another export"), "{error}");
        assert!(made.keep().unwrap_err().to_string().contains("1 of 2 parts"));
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0, "a draft is left");
        // Files that a killed job has left do not prevent an export.
        fs::create_dir(&draft).unwrap();
        fs::write(draft.join("part-00007.csv"), "").unwrap();
        Directory::create(&out, 0).unwrap().keep().unwrap();
        assert!(out.is_dir());
        assert!(Directory::create(&out, 0).is_err(), "what is there is not replaced");
    }
}
