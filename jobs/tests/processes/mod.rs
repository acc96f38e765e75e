//! Shared code of tests that run the program as processes and kill them: random numbers, and a running process with its
//! standard error.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::Instant;
use webstrata_tests::crawls::Random;
use webstrata_tests::number;

/// Random numbers from the seed in `WEBSTRATA_SEED` (1).
pub(crate) fn chance() -> Random {
    Random(number("WEBSTRATA_SEED", 1))
}

/// A running process and its standard error.
pub(crate) struct Process {
    pub(crate) child: Child,
    stderr: BufReader<ChildStderr>,
    pub(crate) said: String,
}

impl Process {
    pub(crate) fn start(command: &mut Command) -> Process {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        Process { child, stderr, said: String::new() }
    }

    /// Waits until the next stage begins (the process logs at `info`), and names the stage; `None` if the process ends
    /// before.
    pub(crate) fn next_stage(&mut self) -> Option<String> {
        loop {
            let start = self.said.len();
            if self.stderr.read_line(&mut self.said).unwrap() == 0 {
                return None;
            }
            if let Some((_, rest)) = self.said[start..].split_once("stage begins") {
                return rest.split('"').nth(1).map(str::to_owned);
            }
        }
    }

    /// Waits for the end. Returns the exit code, all of standard error, and the time of the end.
    pub(crate) fn end(mut self) -> JoinHandle<(Option<i32>, String, Instant)> {
        thread::spawn(move || {
            self.stderr.read_to_string(&mut self.said).unwrap();
            (self.child.wait().unwrap().code(), self.said, Instant::now())
        })
    }
}
