//! `webstrata`: the program. Its command line is the library of this crate.

use std::process::ExitCode;

fn main() -> ExitCode {
    webstrata_jobs::main(std::env::args_os().collect()).into()
}
