//! Advice after an error of the operating system, at the end of an error message.
//!
//! Libraries say what failed, where, and the error of the system. The advice follows from that error alone, so it is
//! given here, once, for every command.

use std::io::{self, ErrorKind};
use webstrata_analysis::Error as AnalysisError;
use webstrata_engine::Error as JobError;
use webstrata_pipeline::Error as PipelineError;

/// Error numbers that have no kind in the standard library. The last one is the number on Linux.
const INPUT_OUTPUT: i32 = 5;
const SYSTEM_HAS_TOO_MANY_FILES: i32 = 23;
const PROCESS_HAS_TOO_MANY_FILES: i32 = 24;
const NO_LOCKS: i32 = 37;

/// The end of an error message; empty if there is no advice.
pub(crate) fn advice(error: &anyhow::Error) -> String {
    let refused = error.chain().find_map(|cause| cause.downcast_ref::<io::Error>());
    let Some(help) = refused.and_then(help) else { return String::new() };
    let or = if is_of_temporary_files(error) { ", or choose another directory with --spill," } else { "" };
    format!("; {help}{or} and run the same command again")
}

fn help(refused: &io::Error) -> Option<&'static str> {
    match (refused.kind(), refused.raw_os_error()) {
        (ErrorKind::StorageFull | ErrorKind::QuotaExceeded, _) => Some("free some space there"),
        (ErrorKind::OutOfMemory, _) => Some("free some memory"),
        (_, Some(INPUT_OUTPUT)) => Some("check that disk or network drive"),
        (_, Some(PROCESS_HAS_TOO_MANY_FILES)) => Some("raise the limit of open files (ulimit -n)"),
        (_, Some(SYSTEM_HAS_TOO_MANY_FILES)) => Some("close files of other programs"),
        (_, Some(NO_LOCKS)) if cfg!(target_os = "linux") => Some("use a file system that can lock files"),
        _ => None,
    }
}

fn is_of_temporary_files(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let job = match (cause.downcast_ref(), cause.downcast_ref()) {
            (Some(AnalysisError::Job(job)), _) | (_, Some(PipelineError::Job(job))) => Some(job),
            _ => cause.downcast_ref(),
        };
        matches!(job, Some(JobError::Spill { .. }))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context;

    #[test]
    fn what_helps_follows_from_what_the_system_said() {
        let of = |number| advice(&io::Error::from_raw_os_error(number).into());
        assert_eq!(of(28), "; free some space there and run the same command again");
        assert!(of(5).contains("disk") && of(24).contains("ulimit -n") && of(12).contains("memory"));
        // Errors without a known remedy get no advice.
        assert_eq!([of(2), of(13), advice(&anyhow::anyhow!("not a store"))], [const { String::new() }; 3]);
    }

    #[test]
    fn temporary_files_may_go_elsewhere() {
        let spill = || JobError::Spill { directory: "/tmp".into(), source: io::Error::from_raw_os_error(28) };
        let expected =
            "; free some space there, or choose another directory with --spill, and run the same command again";
        assert_eq!(advice(&spill().into()), expected);
        assert_eq!(advice(&PipelineError::from(spill()).into()), expected);
        let of_export = Err::<(), _>(AnalysisError::from(spill())).context("export of store").unwrap_err();
        assert_eq!(advice(&of_export), expected);
    }
}
