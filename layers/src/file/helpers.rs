//! Idle threads that encode row groups for writers.
//!
//! Encoding a row group (splitting, compressing) is most of the work of a writer and needs only the columns of the row
//! group. If threads attend ([`Helpers::attend`]), a writer queues its row groups for the first free thread and
//! continues, at most one row group ahead for each file. If no thread attends, the writer encodes the row groups
//! immediately. The bytes do not depend on the thread that encodes. This module starts no threads, so the number of
//! working threads does not grow.

use std::collections::VecDeque;
use std::fmt;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};

type Task = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Desk {
    tasks: VecDeque<Task>,
    attending: Vec<Thread>,
}

/// The queue of tasks and the attending threads; see the head of this file. A handle, cheap to clone.
#[derive(Clone, Default)]
pub struct Helpers(Arc<Mutex<Desk>>);

impl Helpers {
    fn desk(&self) -> MutexGuard<'_, Desk> {
        // No task runs while the lock is held.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers this thread as idle until the returned value is dropped. The thread must call [`Helpers::help`]
    /// whenever it is unparked.
    pub fn attend(&self) -> Attending {
        self.desk().attending.push(thread::current());
        Attending(self.clone())
    }

    /// Runs one task. Returns `false` if no task waits.
    pub fn help(&self) -> bool {
        let task = self.desk().tasks.pop_front();
        task.map(|task| task()).is_some()
    }

    /// Queues work, or does the work immediately if no thread attends.
    pub(crate) fn ask<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Answer<T> {
        let mut desk = self.desk();
        let (send, receive) = mpsc::channel();
        let task = move || {
            // If the writer is gone, nobody waits for the answer.
            let _ = send.send(work());
        };
        if desk.attending.is_empty() {
            drop(desk);
            task();
        } else {
            desk.tasks.push_back(Box::new(task));
            desk.attending.iter().for_each(Thread::unpark);
        }
        Answer(receive)
    }
}

impl fmt::Debug for Helpers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let desk = self.desk();
        write!(f, "Helpers {{ tasks: {}, attending: {:?} }}", desk.tasks.len(), desk.attending)
    }
}

/// The registration of an attending thread.
#[derive(Debug)]
pub struct Attending(Helpers);

impl Drop for Attending {
    fn drop(&mut self) {
        let this = thread::current().id();
        self.0.desk().attending.retain(|thread| thread.id() != this);
    }
}

/// The result of some work.
pub(crate) struct Answer<T>(Receiver<T>);

impl<T> Answer<T> {
    /// Waits for the result, and runs tasks in the meantime. `None` if the thread that did the work panicked.
    pub(crate) fn get(self, helpers: &Helpers) -> Option<T> {
        loop {
            match self.0.try_recv() {
                Ok(answer) => return Some(answer),
                // If no task waits in the queue, another thread is doing the work.
                Err(mpsc::TryRecvError::Empty) if !helpers.help() => return self.0.recv().ok(),
                Err(mpsc::TryRecvError::Empty) => {}
                Err(mpsc::TryRecvError::Disconnected) => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_done_once_whether_someone_attends_or_not() {
        let helpers = Helpers::default();
        assert_eq!(helpers.ask(|| 7).get(&helpers), Some(7));
        assert!(!helpers.help(), "it was done at once");
        let attending = helpers.attend();
        let answers: Vec<_> = (0..100).map(|n| helpers.ask(move || n)).collect();
        let other = helpers.clone();
        let helping = thread::spawn(move || while other.help() {});
        let got: Option<Vec<_>> = answers.into_iter().map(|answer| answer.get(&helpers)).collect();
        assert_eq!(got, Some((0..100).collect()));
        helping.join().unwrap();
        drop(attending);
        let thread = helpers.ask(|| thread::current().id()).get(&helpers);
        assert_eq!(thread, Some(thread::current().id()));
        assert!(!helpers.help());
    }

    #[test]
    fn a_helper_that_panics_leaves_no_answer() {
        let helpers = Helpers::default();
        let _attending = helpers.attend();
        let answer: Answer<()> = helpers.ask(|| panic!("no"));
        let other = helpers.clone();
        assert!(thread::spawn(move || other.help()).join().is_err());
        assert_eq!(answer.get(&helpers), None);
    }
}
