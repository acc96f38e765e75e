//! The program as a user runs it. A command line is one text, in which `{}` stands for a directory.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]
#![allow(dead_code, reason = "each test uses a part of it")]

use std::path::Path;
use std::process::{Command, Output, Stdio};

/// A command without input. Its temporary files go to the directory.
pub(crate) fn command(dir: &Path, line: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_webstrata"));
    command.args(line.split(' ').map(|word| word.replace("{}", dir.to_str().unwrap())));
    command.env("TMPDIR", dir).stdin(Stdio::null());
    command
}

pub(crate) fn run(dir: &Path, line: &str) -> Output {
    command(dir, line).output().unwrap()
}

/// The output of a command that succeeds.
pub(crate) fn succeeds(dir: &Path, line: &str) -> String {
    let output = run(dir, line);
    assert!(output.status.success(), "{line}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}
