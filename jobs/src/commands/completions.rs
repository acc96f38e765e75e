//! `webstrata completions`: scripts that let shells complete commands and options; and manual pages.

use crate::args::Outcome;
use clap::{Args, Command};
use clap_complete::Shell;
use std::io::Write;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  webstrata completions bash > ~/.local/share/bash-completion/completions/webstrata
  webstrata completions zsh > ~/.zfunc/_webstrata
  webstrata completions fish > ~/.config/fish/completions/webstrata.fish
  webstrata completions --man /usr/local/share/man/man1";

/// Arguments of `completions`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CompletionsArgs {
    /// Shell whose completions are printed
    #[arg(value_enum, required_unless_present = "man")]
    pub(crate) shell: Option<Shell>,
    /// Write manual pages into this directory: webstrata.1, and one for each command
    #[arg(long, value_name = "DIR")]
    pub(crate) man: Option<PathBuf>,
}

/// Writes the completions of the program `command`.
pub(crate) fn run(args: &CompletionsArgs, mut command: Command, out: &mut dyn Write) -> anyhow::Result<Outcome> {
    if let Some(shell) = args.shell {
        // The library ends the process if a write fails, so it writes into memory.
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut command, "webstrata", &mut script);
        out.write_all(&script)?;
    }
    if let Some(directory) = &args.man {
        std::fs::create_dir_all(directory)?;
        clap_mangen::generate_to(command, directory)?;
    }
    Ok(Outcome::Done)
}
