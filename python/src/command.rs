//! One command of the command line inside Python.
//!
//! The command runs in a thread of its own, without the interpreter. The thread that called looks 20 times a second
//! whether Ctrl-C was pressed, and tells how far the command is. A job that is interrupted stops at its next step, and
//! leaves a store as it was.

use std::ffi::OsString;
use std::sync::Mutex;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use webstrata_pipeline::Progress;

use crate::failed::exception;

/// Between two looks at Ctrl-C.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How long an interrupted command may take to stop.
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
        // Whoever called may have gone.
        let _ = send.send((done, printed));
    });
    // The end of a channel is not shared between threads, and detached code must be.
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
                // A check that finds something prints it, and fails.
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
    progress.call1(py, (moment.stage, moment.part, moment.captures)).map(|_| ())
}
