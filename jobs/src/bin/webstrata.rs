//! `webstrata`: the program, whose command line is the library around it.

use std::process::ExitCode;

fn main() -> ExitCode {
    webstrata_jobs::main(std::env::args_os().collect()).into()
}
