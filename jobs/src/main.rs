//! `webstrata`: the command line. Each subcommand is one file: parse, one call of a library, print.
//!
//! Results go to standard output, everything else (progress, notes, errors) to standard error. Exit code 0: done; 1: it
//! failed, or what was asked for was not found; 2: the command line makes no sense. A reader of the output that goes
//! away early is no failure.

mod advice;
mod args;
mod ask;
mod bars;
mod cli;
mod commands;
mod metrics;
mod progress;
mod running;
mod signals;
mod spans;
mod table;

use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = cli::Cli::of_process();
    // Where signals cannot be heard, they end the process.
    let _ = signals::hear();
    // The lock is not taken, because workers write results to standard output too.
    let mut out = BufWriter::new(io::stdout());
    let result = cli.command.run(&mut out).and_then(|outcome| {
        out.flush()?;
        Ok(outcome)
    });
    match result {
        Ok(args::Outcome::Done) => ExitCode::SUCCESS,
        Ok(args::Outcome::Failed) => ExitCode::FAILURE,
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            // Earlier output must stand before the error. A failure to print that output is no second error.
            let _ = out.flush();
            let _ = writeln!(io::stderr(), "error: {}{}", one_line(&error), advice::advice(&error));
            if error.is::<args::Usage>() { ExitCode::from(2) } else { ExitCode::FAILURE }
        }
    }
}

/// Whether the reader of standard output has closed it.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// The error and its causes on one line. A cause that the text before it already contains is left out.
fn one_line(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain() {
        let cause = cause.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context;

    #[test]
    fn causes_are_said_once_and_on_one_line() {
        let error = Err::<(), _>(io::Error::other("disk\nfull")).context("x: disk full").context("build").unwrap_err();
        assert_eq!(one_line(&error), "build: x: disk full");
    }

    #[test]
    fn a_closed_pipe_is_told_from_other_errors() {
        assert!(is_closed_pipe(&io::Error::from(io::ErrorKind::BrokenPipe).into()));
        assert!(!is_closed_pipe(&io::Error::from(io::ErrorKind::NotFound).into()));
    }
}
