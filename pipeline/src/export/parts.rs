//! A table in parts: a directory with a file from each worker of each process, for tables that one writer would be slow with.
//!
//! ```text
//! edges/part-00000.parquet    the records of the first range of UIDs
//! edges/part-00001.parquet    those of the second: parts one after the other are the table in one file
//! ```
//!
//! There are as many parts as workers, some of them perhaps without rows. Until all are whole the directory has another name
//! (`.edges.draft`), which is the same for all processes: they share the disk. What a job leaves there that was killed, the next
//! one clears away. Memory: as for one file, for each worker, with its share of the budget.

use super::{Export, ExportOptions, ExportReport, Target, table};
use crate::engine::{gather, work_together};
use crate::{Error, Progress};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use webstrata_layers::{Links, Reader};

/// Writes the parts of this process; all processes return the report of all.
pub(super) fn write(
    options: &ExportOptions,
    reader: Reader,
    out: &Path,
    progress: &Progress,
) -> Result<ExportReport, Error> {
    let run = &options.run;
    let workers = run.workers.max(1);
    let reader = Arc::new(reader.for_scans(workers));
    let parts = workers * run.processes();
    let ranges = reader.ranges(parts)?;
    let job = run.job(progress);
    let ExportOptions { what, format, names, window, urls, .. } = options;
    let identity = format!("{} {what} {format} {names} {window:?} {urls} {}", reader.epoch(), out.display());
    let (shared, options, out) = (job.clone(), options.clone(), out.to_owned());
    work_together(run, &job, "export", &identity, move |worker| {
        let (job, index) = (&shared, worker.index());
        let first = index.is_multiple_of(workers);
        let made = if index == 0 { Some(job.check(Directory::create(&out))?) } else { None };
        // The directory is there for all.
        gather(worker, job, None, &())?;
        let part = draft(&out).join(format!("part-{index:05}.{}", options.format));
        let mut options = ExportOptions { target: Target::File(part), ..options.clone() };
        options.run.memory_max /= workers;
        if first {
            let captures = reader.store().manifest().counts.captures;
            job.progress().enter(options.what.name(), captures * workers as u64 / parts as u64);
        }
        let export = Export { reader: &reader, options: &options, job, part: Some(ranges[index].clone()) };
        let written = job.check(table(&export, &mut io::sink()))?;
        let all = gather(worker, job, None, &written)?;
        if first {
            job.progress().leave();
        }
        if let Some(mut made) = made {
            job.check(made.keep(parts))?;
        }
        // It has its name before anyone ends.
        gather(worker, job, None, &())?;
        Ok(ExportReport { records: all.iter().map(|report| report.records).sum(), ..written })
    })
}

/// What the directory is called until it is whole.
fn draft(out: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(out.file_name().unwrap_or_default());
    name.push(".draft");
    out.with_file_name(name)
}

/// A directory that is there when it is whole.
struct Directory {
    out: PathBuf,
    kept: bool,
}

impl Directory {
    fn create(out: &Path) -> Result<Self, Error> {
        let failed = |source| Error::Output { path: out.to_owned(), source };
        if out.file_name().is_none() || out.exists() {
            let text = "it is there already, and parts go into a directory of their own";
            return Err(failed(io::Error::new(io::ErrorKind::AlreadyExists, text)));
        }
        let draft = draft(out);
        match fs::remove_dir_all(&draft) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => return Err(failed(source)),
            _ => fs::create_dir(&draft).map_err(failed)?,
        }
        Ok(Self { out: out.to_owned(), kept: false })
    }

    /// Gives it its name, if it has so many parts.
    fn keep(&mut self, parts: usize) -> Result<(), Error> {
        let failed = |source| Error::Output { path: self.out.clone(), source };
        let draft = draft(&self.out);
        let there = fs::read_dir(&draft).map_err(failed)?.count();
        if there != parts {
            let text = format!("{there} of {parts} parts are there; all processes must write to one shared disk");
            return Err(failed(io::Error::other(text)));
        }
        fs::rename(draft, &self.out).map_err(failed)?;
        self.kept = true;
        Ok(())
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        if !self.kept {
            // What else could be done about it? The next job clears it away.
            let _ = fs::remove_dir_all(draft(&self.out));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_there_when_all_parts_are() {
        let place = tempfile::tempdir().unwrap();
        let out = place.path().join("edges");
        let mut made = Directory::create(&out).unwrap();
        fs::write(draft(&out).join("part-00000.csv"), "src,dst\n").unwrap();
        assert!(made.keep(2).unwrap_err().to_string().contains("1 of 2 parts"));
        drop(made);
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0, "a draft is left");
        // What a killed job has left is no hindrance.
        fs::create_dir(draft(&out)).unwrap();
        fs::write(draft(&out).join("part-00007.csv"), "").unwrap();
        Directory::create(&out).unwrap().keep(0).unwrap();
        assert!(out.is_dir());
        assert!(Directory::create(&out).is_err(), "what is there is not replaced");
    }
}
