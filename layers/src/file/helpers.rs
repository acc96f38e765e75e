//! Threads that have time, for writers that have row groups to encode.
//!
//! Encoding a row group (splitting, compressing) is most of a writer's work and needs nothing but its columns. Where
//! threads attend ([`Helpers::attend`]) a writer leaves the row groups of its files to whoever comes first and goes on,
//! at most one row group a file ahead; where none does, it encodes them at once. Whoever encodes, the bytes are the
//! same. No thread is started here, so no more of them work than there are.

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

/// See the head of this file; a handle, cheap to clone.
#[derive(Clone, Default)]
pub struct Helpers(Arc<Mutex<Desk>>);

impl Helpers {
    fn desk(&self) -> MutexGuard<'_, Desk> {
        // No task runs under the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says that this thread has time, and calls [`Helpers::help`] whenever it is unparked, until the answer is
    /// dropped.
    pub fn attend(&self) -> Attending {
        self.desk().attending.push(thread::current());
        Attending(self.clone())
    }

    /// Does one task; `false` where none waits.
    pub fn help(&self) -> bool {
        let task = self.desk().tasks.pop_front();
        task.map(|task| task()).is_some()
    }

    /// Has work done, here and now where nobody attends.
    pub(crate) fn ask<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Answer<T> {
        let mut desk = self.desk();
        let (send, receive) = mpsc::channel();
        let task = move || {
            // Nobody waits for the answer of a writer that is gone.
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

/// A thread that attends.
#[derive(Debug)]
pub struct Attending(Helpers);

impl Drop for Attending {
    fn drop(&mut self) {
        let this = thread::current().id();
        self.0.desk().attending.retain(|thread| thread.id() != this);
    }
}

/// What some work comes to.
pub(crate) struct Answer<T>(Receiver<T>);

impl<T> Answer<T> {
    /// Waits for it, helping meanwhile; `None` where the thread that did it panicked.
    pub(crate) fn get(self, helpers: &Helpers) -> Option<T> {
        loop {
            match self.0.try_recv() {
                Ok(answer) => return Some(answer),
                // A task that no longer waits is being done.
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
