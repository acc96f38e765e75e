//! One command of the command line inside Python.
//!
//! The command runs in a separate thread, without the interpreter. The calling thread checks 20 times a second whether
//! Ctrl-C was pressed, and reports the progress of the command. An interrupted job stops at its next step, and leaves
//! the store as it was before.

use std::ffi::OsString;
use std::sync::Mutex;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use webstrata_engine::Progress;

use crate::failed::exception;

/// The time between two looks at Ctrl-C.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// The longest time that an interrupted command may take to stop.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs the command line of this process, and returns its exit code.
#[pyfunction]
pub(crate) fn main(py: Python<'_>, words: Vec<OsString>) -> u8 {
    py.detach(|| webstrata_jobs::main(words))
}

/// Runs one command with these words, and returns what it prints. `progress` is called with the stage, the part that is
/// done (from 0 to 1, or None) and the captures that are read.
#[pyfunction]
#[pyo3(signature = (words, progress=None))]
pub(crate) fn run(py: Python<'_>, words: Vec<OsString>, progress: Option<Py<PyAny>>) -> PyResult<Py<PyBytes>> {
    let counted = Progress::default();
    let (send, receive) = channel();
    let of_command = counted.clone();
    std::thread::spawn(move || {
        let mut printed = Vec::new();
        let done = webstrata_jobs::run(words, &of_command, &mut printed);
        // The caller may be gone.
        let _ = send.send((done, printed));
    });
    // The end of a channel cannot be shared between threads, but detached code must be shareable.
    let receive = Mutex::new(receive);
    let mut interrupted: Option<(PyErr, Instant)> = None;
    loop {
        let received = py.detach(|| match receive.lock() {
            Ok(receive) => receive.recv_timeout(LOOK_EVERY),
            Err(_) => Err(RecvTimeoutError::Disconnected),
        });
        match (received, interrupted.take()) {
            (Ok(_), Some((error, _))) => return Err(error),
            (Ok((Ok(()), printed)), None) => return Ok(PyBytes::new(py, &printed).unbind()),
            (Ok((Err(failed), printed)), None) => {
                let error = exception(py, &failed);
                // A check that finds something prints its findings and fails.
                error.value(py).setattr("printed", String::from_utf8_lossy(&printed))?;
                return Err(error);
            }
            (Err(RecvTimeoutError::Disconnected), _) => return Err(PyRuntimeError::new_err("the command panicked")),
            (Err(RecvTimeoutError::Timeout), Some((error, since))) if since.elapsed() > PATIENCE => return Err(error),
            (Err(RecvTimeoutError::Timeout), Some(kept)) => interrupted = Some(kept),
            (Err(RecvTimeoutError::Timeout), None) => {
                if let Err(error) = py.check_signals().and_then(|()| tell(py, progress.as_ref(), &counted)) {
                    counted.cancel();
                    interrupted = Some((error, Instant::now()));
                }
            }
        }
    }
}

fn tell(py: Python<'_>, progress: Option<&Py<PyAny>>, counted: &Progress) -> PyResult<()> {
    let Some(progress) = progress else { return Ok(()) };
    let moment = counted.moment();
    progress.call1(py, (moment.stage, moment.part, moment.input_records)).map(|_| ())
}
