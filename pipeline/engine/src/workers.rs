//! The workers of a job: threads of one or more processes, on timely.
//!
//! `cluster` connects the processes, and `shuffle` carries records between workers. [`gather`] is a shuffle of one
//! value a worker.

pub(crate) mod cluster;
pub(crate) mod shuffle;

use crate::job::{Job, Stopped};
use crate::workers::cluster::Cluster;
use crate::workers::shuffle::{guarded, shuffle};
use crate::{Error, wire};
use serde::{Deserialize, Serialize};
use std::any::Any;
use std::cell::RefCell;
use std::rc::Rc;
use timely::communication::Hooks;
use timely::communication::allocator::zero_copy::initialize::initialize_networking_from_sockets;
use timely::communication::allocator::{AllocatorBuilder, ProcessBuilder};
use timely::worker::Worker;
use timely::{CommunicationConfig, WorkerConfig};

/// Sends the value of each worker to the worker `to`, or to all workers if `to` is `None`. Returns the received values.
pub fn gather<T: Serialize + for<'a> Deserialize<'a> + 'static>(
    worker: &mut Worker,
    job: &Job,
    to: Option<usize>,
    value: &T,
) -> Result<Vec<T>, Stopped> {
    let received = Rc::new(RefCell::new(Vec::new()));
    let collect = Rc::clone(&received);
    let mut json = Some(job.check(serde_json::to_vec(value).map_err(Error::State))?);
    shuffle(
        worker,
        job,
        "commit",
        move |outbox| {
            let Some(json) = json.take() else { return Ok(false) };
            match to {
                Some(worker) => outbox.send(worker, &[], &json),
                None => outbox.send_to_all(&[], &json),
            }
            Ok(true)
        },
        move |block| {
            let mut read = Ok(());
            wire::for_each(&block, |_, json| match serde_json::from_slice(json) {
                Ok(value) => collect.borrow_mut().push(value),
                Err(error) => read = Err(Error::State(error)),
            });
            read
        },
    )?;
    Ok(received.take())
}

/// Runs `body` on the timely workers of this process and returns the report of the first worker. The processes of a job
/// compare `id` (32 bytes) when they connect.
pub fn execute<T: Send + 'static>(
    job: &Job,
    id: &str,
    name: &'static str,
    cluster: Option<&Cluster>,
    body: impl Fn(&mut Worker) -> Result<T, Stopped> + Send + Sync + 'static,
) -> Result<T, Error> {
    let workers = job.workers();
    let (builders, connections) = match cluster {
        None => {
            let config = if workers == 1 { CommunicationConfig::Thread } else { CommunicationConfig::Process(workers) };
            config.try_build().map_err(Error::Dataflow)?
        }
        Some(cluster) => {
            let peers = cluster::connect(cluster, id, job)?;
            let process_builders = ProcessBuilder::new_bytes_vector(workers, Hooks::default().refill, None);
            initialize_networking_from_sockets(process_builders, peers, cluster.process, workers, Hooks::default())
                .map(|(builders, guard)| {
                    let builders = builders.into_iter().map(AllocatorBuilder::Tcp).collect();
                    (builders, Box::new(guard) as Box<dyn Any + Send>)
                })
                .map_err(|error| Error::Dataflow(error.to_string()))?
        }
    };
    let shared = job.clone();
    let guards = timely::execute::execute_from(builders, Box::new(()), WorkerConfig::default(), move |worker| {
        let report = guarded(&shared, name, || Ok(body(worker)));
        // Drop everything that a stopped worker left behind, or timely would wait for it.
        for dataflow in worker.installed_dataflows() {
            worker.drop_dataflow(dataflow);
        }
        let report = report?.ok();
        if report.is_some() {
            shared.finish();
        }
        report
    })
    .map_err(Error::Dataflow)?;
    let reports: Vec<_> = guards.join().into_iter().collect();
    if !job.finished() {
        // Threads that hold connections to processes that are gone would never end.
        std::mem::forget(connections);
        return Err(job.take_error().unwrap_or(Error::Internal("a worker stopped without an error")));
    }
    drop(connections);
    let stopped = || Error::Dataflow("no worker has reported".to_owned());
    reports.into_iter().next().ok_or_else(stopped)?.map_err(Error::Dataflow)?.ok_or_else(stopped)
}
