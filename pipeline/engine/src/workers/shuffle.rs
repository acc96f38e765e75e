//! The one dataflow of the engine: every worker produces records, timely carries each record to its worker, and every
//! worker consumes the records that reach it. A stage is a shuffle, or work between two shuffles.
//!
//! Records travel in blocks of bytes (about 64 KiB), which cost a tenth of typed vectors when they cross a process.
//! Timely's channels are not bounded. A source therefore waits while more than `EPOCHS_IN_FLIGHT` epochs of
//! `EPOCH_BYTES` are on the way, so that a slow consumer slows its producers and memory stays bounded.
//!
//! Errors and panics of producers and consumers go to the [`Job`]. Every worker sees the error in its step loop, drops
//! the dataflow and returns, so that no worker waits for records that will not come.
//!
//! A worker that has nothing more to produce helps writers of layers while it waits ([`webstrata_layers::Helpers`]).

use crate::Error;
use crate::job::{Job, Stopped};
use crate::wire::append;
use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::time::Duration;
use timely::container::CapacityContainerBuilder;
use timely::dataflow::ProbeHandle;
use timely::dataflow::channels::pact::Exchange;
use timely::dataflow::operators::Probe;
use timely::dataflow::operators::generic::{Operator, source};
use timely::worker::Worker;

/// The size of a block of records.
const BLOCK_BYTES: usize = 64 << 10;
/// The number of bytes that a source releases at once.
const EPOCH_BYTES: usize = 1 << 20;
/// The number of epochs of a source that may be on the way.
const EPOCHS_IN_FLIGHT: u64 = 4;

/// A block of records for one worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Block {
    worker: u64,
    #[serde(with = "serde_bytes")]
    bytes: Vec<u8>,
}

/// Receives the records of a producer.
pub struct Outbox {
    open: Vec<Vec<u8>>,
    full: Vec<Block>,
    bytes: usize,
    records: u64,
}

impl Outbox {
    fn new(workers: usize) -> Self {
        Outbox { open: vec![Vec::new(); workers], full: Vec::new(), bytes: 0, records: 0 }
    }

    /// Returns the number of workers.
    pub fn workers(&self) -> usize {
        self.open.len()
    }

    /// Sends a record to a worker.
    pub fn send(&mut self, worker: usize, key: &[u8], payload: &[u8]) {
        let open = &mut self.open[worker];
        if open.is_empty() {
            open.reserve(BLOCK_BYTES);
        } else if open.len() + key.len() + payload.len() + 10 > BLOCK_BYTES {
            let bytes = std::mem::replace(open, Vec::with_capacity(BLOCK_BYTES));
            self.bytes += bytes.len();
            self.full.push(Block { worker: worker as u64, bytes });
        }
        append(open, key, payload);
        self.records += 1;
    }

    /// Sends a record to every worker.
    pub fn send_to_all(&mut self, key: &[u8], payload: &[u8]) {
        for worker in 0..self.workers() {
            self.send(worker, key, payload);
        }
    }

    fn flush(&mut self) {
        for (worker, open) in self.open.iter_mut().enumerate().filter(|(_, open)| !open.is_empty()) {
            self.full.push(Block { worker: worker as u64, bytes: std::mem::take(open) });
        }
    }
}

/// Runs a closure of a stage; its error or panic becomes the error of the job.
pub(crate) fn guarded<T>(job: &Job, stage: &'static str, body: impl FnOnce() -> Result<T, Error>) -> Option<T> {
    let error = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(value)) => return Some(value),
        Ok(Err(error)) => error,
        Err(panic) => {
            let text = panic.downcast_ref::<&str>().map(ToString::to_string);
            let message = text.or_else(|| panic.downcast_ref::<String>().cloned());
            Error::Panic { stage, message: message.unwrap_or_else(|| "panic".to_owned()) }
        }
    };
    job.fail(error);
    None
}

/// Runs one shuffle on this worker and returns when all workers are done.
///
/// `produce` is called until it returns `false`. Each call sends a bounded number of records.
/// `consume` gets each block that reaches this worker.
///
/// # Errors
/// [`Stopped`] if any worker of the job has failed.
pub fn shuffle(
    worker: &mut Worker,
    job: &Job,
    stage: &'static str,
    mut produce: impl FnMut(&mut Outbox) -> Result<bool, Error> + 'static,
    mut consume: impl FnMut(Vec<u8>) -> Result<(), Error> + 'static,
) -> Result<(), Stopped> {
    let peers = worker.peers();
    let dataflow = worker.next_dataflow_index();
    let probe = ProbeHandle::new();
    let ended = Rc::new(Cell::new(false));
    let end = Rc::clone(&ended);
    worker.dataflow::<u64, _, _>(|scope| {
        let (job_in, job_out, seen) = (job.clone(), job.clone(), probe.clone());
        source::<_, CapacityContainerBuilder<Vec<Block>>, _, _>(scope, stage, |capability, info| {
            let activator = scope.activator_for(info.address);
            let (mut capability, mut outbox, mut epoch) = (Some(capability), Outbox::new(peers), 0u64);
            move |output| {
                let Some(held) = capability.as_mut() else { return };
                if job_in.failed() {
                    capability = None;
                    return;
                }
                if epoch > EPOCHS_IN_FLIGHT && seen.less_than(&(epoch - EPOCHS_IN_FLIGHT)) {
                    activator.activate_after(Duration::from_millis(1));
                    return;
                }
                let goes_on = guarded(&job_in, stage, || {
                    while outbox.bytes < EPOCH_BYTES {
                        if job_in.failed() || !produce(&mut outbox)? {
                            outbox.flush();
                            return Ok(false);
                        }
                    }
                    Ok(true)
                });
                let bytes: usize = outbox.full.iter().map(|block| block.bytes.len()).sum();
                job_in.progress().add_exchanged(std::mem::take(&mut outbox.records), bytes as u64);
                output.session(&*held).give_iterator(outbox.full.drain(..));
                outbox.bytes = 0;
                if goes_on == Some(true) {
                    epoch += 1;
                    held.downgrade(&epoch);
                    activator.activate();
                } else {
                    capability = None;
                    end.set(true);
                }
            }
        })
        .unary::<CapacityContainerBuilder<Vec<()>>, _, _, _>(
            Exchange::new(|block: &Block| block.worker),
            stage,
            |_, _| {
                move |input, _output| {
                    input.for_each_time(|_time, blocks| {
                        for block in blocks.flat_map(|blocks| blocks.drain(..)) {
                            if !job_out.failed() {
                                guarded(&job_out, stage, || consume(block.bytes));
                            }
                        }
                    });
                }
            },
        )
        .probe_with(&probe);
    });
    let mut attending = None;
    while !probe.done() {
        if job.failed() {
            worker.drop_dataflow(dataflow);
            return Err(Stopped);
        }
        let mut park = Duration::from_millis(20);
        if ended.get() {
            attending.get_or_insert_with(|| job.helpers().attend());
            if job.helpers().help() {
                park = Duration::ZERO;
            }
        }
        worker.step_or_park(Some(park));
    }
    if job.failed() { Err(Stopped) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Progress;
    use crate::scratch::Scratch;
    use crate::wire::for_each;
    use std::sync::{Arc, Mutex};

    /// Runs one shuffle on two workers; returns the numbers that they received, sorted, and the job.
    fn run(fail: Option<fn() -> Error>) -> (Vec<u64>, Job) {
        let scratch = Scratch::temporary(&std::env::temp_dir());
        let job = Job::new(2, 1 << 20, scratch, Progress::default());
        let (received, job_in) = (Arc::new(Mutex::new(Vec::new())), job.clone());
        let heard = Arc::clone(&received);
        let guards = timely::execute(timely::Config::process(2), move |worker| {
            let (index, heard) = (worker.index() as u64, Arc::clone(&heard));
            let mut next = 0u64;
            let produce = move |outbox: &mut Outbox| {
                if next == 30_000 {
                    return fail.filter(|_| index == 1).map_or(Ok(false), |fail| Err(fail()));
                }
                let target = usize::from(next.is_multiple_of(3));
                outbox.send(target, &(next * 2 + index).to_be_bytes(), &[7; 50]);
                next += 1;
                Ok(true)
            };
            let consume = move |block: Vec<u8>| {
                for_each(&block, |mut key, payload| {
                    assert_eq!(payload, [7; 50]);
                    let number = u64::from_be_bytes(crate::wire::take_array(&mut key));
                    assert_eq!(index, u64::from((number / 2).is_multiple_of(3)), "a record for another worker");
                    heard.lock().unwrap().push(number);
                });
                Ok(())
            };
            shuffle(worker, &job_in, "test", produce, consume).is_ok()
        });
        let done: Vec<_> = guards.unwrap().join().into_iter().map(Result::unwrap).collect();
        assert_eq!(done, [fail.is_none(); 2]);
        let mut received = received.lock().unwrap().clone();
        received.sort_unstable();
        (received, job)
    }

    #[test]
    fn every_record_reaches_its_worker_once() {
        let (received, job) = run(None);
        assert!(received.into_iter().eq(0..60_000));
        assert!(job.take_error().is_none());
    }

    #[test]
    fn an_error_or_a_panic_of_one_worker_stops_all() {
        let (_, job) = run(Some(|| Error::Internal("disk on fire")));
        assert!(matches!(job.take_error(), Some(Error::Internal("disk on fire"))));
        let (_, job) = run(Some(|| panic!("not on data")));
        let error = job.take_error().unwrap().to_string();
        assert!(error.contains("test failed: not on data"), "{error}");
    }
}
