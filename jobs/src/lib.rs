//! The command line of Webstrata. Each subcommand is one file: parse, one call of a library, print.
//!
//! Results go to standard output, everything else (progress, notes, errors) to standard error. Exit code 0: done; 1:
//! the command failed, or found nothing that was asked for; 2: the command line makes no sense. A reader that closes
//! the output early is not a failure.
//!
//! [`main`] is the program. [`run`] is one command inside another program, for example the Python package: the same
//! words, the same results and errors, and no exit. [`graph`] opens a store or servers for the questions of such a
//! program.

mod address;
mod advice;
mod args;
mod ask;
mod bars;
mod cli;
mod commands;
pub mod graph;
mod running;
mod settings;
mod signals;
mod spans;
mod table;

use std::ffi::OsString;
use std::io::{self, BufWriter, Write};
use webstrata_engine::Progress;

/// Runs the program, with its name as the first word, and returns its exit code. Ends the process if the command line
/// makes no sense, or asks for help.
pub fn main(words: Vec<OsString>) -> u8 {
    let cli = match cli::Cli::of(words) {
        Ok(cli) => cli,
        Err(cli::Wrong::Words(error)) => error.exit(),
        Err(cli::Wrong::Settings(error)) => {
            let _ = writeln!(io::stderr(), "error: {error}");
            return 2;
        }
    };
    // If signals cannot be received, they end the process.
    let _ = signals::hear();
    // The lock is not taken, because workers write results to standard output too.
    let mut out = BufWriter::new(io::stdout());
    let result = cli.run(&mut out).and_then(|outcome| {
        out.flush()?;
        Ok(outcome)
    });
    match result {
        Ok(args::Outcome::Done) => 0,
        Ok(args::Outcome::Failed) => 1,
        Err(error) if is_closed_pipe(&error) => 0,
        Err(error) => {
            // Earlier output must stand before the error. A failure to print that output is not a second error.
            let _ = out.flush();
            let _ = writeln!(io::stderr(), "error: {}", said(&error));
            if error.is::<args::Usage>() { 2 } else { 1 }
        }
    }
}

/// Why a command inside another program did not succeed, with the message of the program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failed {
    /// The command line makes no sense.
    #[error("{0}")]
    Usage(String),
    /// A URL is not in the store.
    #[error("{0}")]
    NotInStore(String),
    /// The command failed, or found nothing that was asked for.
    #[error("{0}")]
    Other(String),
}

impl From<anyhow::Error> for Failed {
    fn from(error: anyhow::Error) -> Self {
        let text = said(&error);
        match () {
            () if error.is::<args::Usage>() => Self::Usage(text),
            () if error.is::<ask::NotInStore>() => Self::NotInStore(text),
            () => Self::Other(text),
        }
    }
}

/// Runs one command, given its words after the name of the program, and writes its result to `out`. A job counts its
/// steps in `progress`, draws nothing, and stops soon after `progress` is cancelled.
///
/// # Errors
/// The errors of the program.
pub fn run(words: Vec<OsString>, progress: &Progress, out: &mut dyn Write) -> Result<(), Failed> {
    let words = std::iter::once("webstrata".into()).chain(words).collect();
    let cli = cli::Cli::of(words).map_err(|wrong| match wrong {
        cli::Wrong::Words(error) => Failed::Usage(without_usage(&error.to_string())),
        cli::Wrong::Settings(error) => Failed::Usage(error.to_string()),
    })?;
    match running::with_progress(progress, || cli.run(out))? {
        args::Outcome::Done => Ok(()),
        args::Outcome::Failed => Err(Failed::Other("the command printed its result and failed".to_owned())),
    }
}

/// The error of a command line in one line, without the usage.
fn without_usage(text: &str) -> String {
    let text = text.split("\n\nUsage:").next().unwrap_or(text);
    text.trim_start_matches("error: ").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// An error in the words of the program, with advice.
fn said(error: &anyhow::Error) -> String {
    one_line(error) + &advice::advice(error)
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
