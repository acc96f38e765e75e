//! What a job is given: a store, workers, memory, a directory for temporary files, and other processes.

use crate::job::{Job, WRITERS_BYTES};
use crate::scratch::Scratch;
use crate::workers::cluster::Cluster;
use crate::{Error, Progress, meter};
use std::path::PathBuf;
use webstrata_layers::Location;
use xxhash_rust::xxh3::xxh3_128;

/// The store and the resources of a job.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// The location of the store.
    pub store: Location,
    /// The number of worker threads, at least 1.
    pub workers: usize,
    /// The memory that this process may take in total, in bytes.
    pub memory_max: usize,
    /// The directory for temporary files; `None` for the system's temporary directory.
    pub spill: Option<PathBuf>,
    /// The processes that work together; `None` if this process works alone.
    pub cluster: Option<Cluster>,
}

impl RunOptions {
    /// Options with one worker in this process and 1 GiB of memory.
    pub fn new(store: impl Into<Location>) -> Self {
        Self { store: store.into(), workers: 1, memory_max: 1 << 30, spill: None, cluster: None }
    }

    /// Returns the number of processes.
    pub fn processes(&self) -> usize {
        self.cluster.as_ref().map_or(1, |cluster| cluster.hosts.len())
    }

    /// Returns the [`Job`] of work that cannot be resumed: the temporary files of the work disappear with the job.
    pub fn job(&self, progress: &Progress) -> Result<Job, Error> {
        let scratch = Scratch::temporary(&self.spill()?);
        Ok(Job::new(self.workers.max(1), self.memory_max, scratch, progress.clone()))
    }

    /// Returns the directory for temporary files. The directory must exist: a directory created where a disk is not
    /// mounted would fill another disk.
    fn spill(&self) -> Result<PathBuf, Error> {
        let directory = self.spill.clone().unwrap_or_else(std::env::temp_dir);
        match std::fs::metadata(&directory) {
            Ok(found) if found.is_dir() => Ok(directory),
            Ok(_) => Err(Error::NoSpill { directory, source: std::io::ErrorKind::NotADirectory.into() }),
            Err(source) => Err(Error::NoSpill { directory, source }),
        }
    }

    /// Returns the directory that contains the scratch directories of the processes.
    pub(crate) fn scratch_directory(&self) -> Result<PathBuf, Error> {
        let store = PathBuf::from(self.store.to_string());
        // A URL is absolute already. A directory gets the same name wherever the job is started.
        let is_url = self.store.to_string().contains("://");
        let store = std::path::absolute(&store).ok().filter(|_| !is_url).unwrap_or(store);
        let name = format!("webstrata-{:016x}", xxh3_128(store.as_os_str().as_encoded_bytes()) >> 64);
        Ok(self.spill()?.join(name))
    }
}

/// The memory of a worker beyond the memory for sorting and [`WRITERS_BYTES`]: the batch of a reader, row groups on
/// their way to the writers, and blocks on their way to other workers.
const WORKER_BYTES: usize = 50 << 20;
/// The memory of a process beyond the memory of its workers.
const PROCESS_BYTES: usize = 30 << 20;
/// The least memory that a worker needs to sort in.
const SORTING_BYTES_MIN: usize = 16 << 20;

/// Returns the least memory that a process with this number of workers needs, in bytes.
pub fn memory_needed(workers: usize) -> usize {
    PROCESS_BYTES + workers * (WORKER_BYTES + WRITERS_BYTES + SORTING_BYTES_MIN)
}

/// Returns the number of workers that can work within `memory_max` bytes, at least 1.
pub fn workers_within(memory_max: usize) -> usize {
    (memory_max.saturating_sub(memory_needed(0)) / (memory_needed(1) - memory_needed(0))).max(1)
}

/// The address space of a process beyond its memory: the program, mapped files, and space that allocators reserve and
/// do not use.
const ADDRESS_BYTES: u64 = 512 << 20;
/// The address space of a worker beyond its memory: an arena of the allocator and a stack.
const ADDRESS_BYTES_A_WORKER: u64 = 192 << 20;

/// Fails if a limit of the system would stop the job on the way; warns if a limit might stop it.
pub(crate) fn check_limits(memory_max: usize, workers: usize) -> Result<(), Error> {
    let needed = memory_max as u64 + ADDRESS_BYTES + workers as u64 * ADDRESS_BYTES_A_WORKER;
    if let Some(limit) = meter::address_space_max().filter(|&limit| limit < needed) {
        return Err(Error::TooLittleAddressSpace { limit, given: memory_max, workers, needed });
    }
    if let Some(limit) = meter::group_memory_max().filter(|&limit| limit < memory_max as u64) {
        tracing::warn!(limit, memory_max, "the control group of this process may have less memory than it was given");
    }
    Ok(())
}

/// Returns the part of the memory for sorting and for writers, in bytes.
pub(crate) fn budget(memory_max: usize, workers: usize) -> Result<usize, Error> {
    let needed = memory_needed(workers);
    if memory_max < needed {
        return Err(Error::TooLittleMemory { given: memory_max, workers, needed });
    }
    Ok(memory_max - PROCESS_BYTES - workers * WORKER_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_workers_as_fit_are_enough() {
        for memory_max in [1 << 20, 160 << 20, 1 << 30, 64 << 30] {
            let workers = workers_within(memory_max);
            assert_eq!(budget(memory_max, workers).is_ok(), memory_max >= memory_needed(1), "{memory_max} {workers}");
            assert!(budget(memory_max, workers + 1).is_err(), "{memory_max} {workers}");
        }
    }
}
