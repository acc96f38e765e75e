//! `webstrata demo`: builds a small made-up crawl and asks about it. Each step is shown as the command to type.
//!
//! The demo runs exactly the commands that it shows: it calls the same functions with the same arguments.

mod harbour;

use crate::address::Address;
use crate::args::Outcome;
use crate::commands::build::BuildArgs;
use crate::commands::serve::ServeArgs;
use crate::commands::{build, links, overview, serve};
use crate::running::RunArgs;
use anyhow::{Context, bail};
use clap::{Args, Parser};
use harbour::FRONT;
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::str::FromStr;
use webstrata_analysis::write_file;
use webstrata_engine::{Progress, RunOptions};
use webstrata_layers::{Store, store_around};

/// The number of lines of the output of `build` that are shown.
const LINES_SHOWN: usize = 4;
const LISTEN: &str = "127.0.0.1:7400";

/// Arguments of `demo`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  webstrata demo\n  webstrata demo --serve --open\n  \
                        webstrata demo --dir /tmp/try-webstrata")]
pub(crate) struct DemoArgs {
    /// Directory for the crawl and the store [default: a new temporary directory]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Then serve the store, with a page for browsers
    #[arg(long)]
    pub(crate) serve: bool,
    /// With --serve: open the page in a browser
    #[arg(long, requires = "serve")]
    pub(crate) open: bool,
    /// With --serve: HOST:PORT to listen on
    #[arg(long, value_name = "ADDR", default_value = LISTEN, requires = "serve", value_parser = Address::from_str)]
    pub(crate) listen: Address,
}

pub(crate) fn run(args: &DemoArgs, out: &mut dyn Write) -> anyhow::Result<Outcome> {
    let dir = match &args.dir {
        Some(dir) => {
            fs::create_dir_all(dir).with_context(|| dir.display().to_string())?;
            dir.clone()
        }
        None => tempfile::Builder::new().prefix("webstrata-demo-").tempdir().context("temporary directory")?.keep(),
    };
    let path = dir.join("crawl.jsonl");
    let lines: String = harbour::crawl().iter().map(|line| format!("{line}\n")).collect();
    write_file(&path, lines.as_bytes())?;
    let (crawl, store) = (quoted(&path), quoted(&dir.join("store")));

    writeln!(out, "A made-up web around a harbour, captured now and then for ten years:")?;
    // If the directory is from an earlier demo, the store is replaced.
    let replace = if store_around(&dir.join("store")).is_some() { " --replace" } else { "" };
    step(out, &format!("webstrata build --out {store}{replace} {crawl}"), LINES_SHOWN)?;
    writeln!(out, "\nWhat did its front page link to, and when?\n")?;
    step(out, &format!("webstrata links {store} {FRONT} --bars"), usize::MAX)?;
    if args.serve {
        return serve_it(args, &dir.join("store"), out);
    }
    writeln!(
        out,
        "\nTry next{}:
  webstrata demo --serve --open
  webstrata links {store} {FRONT} --at 2008
  webstrata backlinks {store} tide-tables.example --period year
  webstrata build --out STORE YOUR-CRAWL.warc.gz",
        program().map(|path| format!(" (webstrata is {path} here)")).unwrap_or_default()
    )?;
    Ok(Outcome::Done)
}

/// Serves the store until the process is told to end.
fn serve_it(args: &DemoArgs, store: &Path, out: &mut dyn Write) -> anyhow::Result<Outcome> {
    let address = &args.listen;
    // One view of the page shows the whole store.
    let (_, not_kept) = overview::kept(&Store::open(store)?, &RunOptions::new(store), &Progress::default())?;
    not_kept.map_or(Ok(()), Err)?;
    writeln!(out, "\nThe same in a browser: http://{address}/?url={FRONT}  (Ctrl-C ends it)\n")?;
    let words = ["serve", &store.display().to_string(), "--listen", &address.to_string()].map(str::to_owned);
    if args.open {
        open_soon(format!("http://{address}/?url={FRONT}"));
    }
    serve::run(&parsed::<ServeArgs>(&words)?, out)
}

/// Opens an address in the browser of this system, once the server has had time to start.
fn open_soon(address: String) {
    let command = if cfg!(target_os = "macos") {
        "open"
    } else if cfg!(windows) {
        "explorer"
    } else {
        "xdg-open"
    };
    std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_secs(1));
        // The address is on the screen, so the demo works without a browser.
        let _ = Command::new(command).arg(address).stdout(Stdio::null()).stderr(Stdio::null()).status();
    });
}

/// The path of this program, if a shell does not find it by its name.
fn program() -> Option<String> {
    let program = std::env::current_exe().ok()?;
    let name = program.file_name()?;
    let is_found = |path: &OsStr| std::env::split_paths(path).any(|dir| dir.join(name).is_file());
    if std::env::var_os("PATH").is_some_and(|path| is_found(&path)) {
        return None;
    }
    let here = std::env::current_dir().ok();
    let short = here.and_then(|here| program.strip_prefix(here).ok());
    Some(quoted(short.unwrap_or(&program)))
}

/// Shows a command, runs it, and shows the first lines of its output.
fn step(out: &mut dyn Write, command: &str, lines_max: usize) -> anyhow::Result<()> {
    writeln!(out, "$ {command}")?;
    out.flush()?;
    let words = unquoted(command);
    let mut answer = Vec::new();
    let Some((_, of_command)) = words.split_first() else { return Ok(()) };
    match of_command.first().map(String::as_str) {
        Some("build") => {
            let args: BuildArgs = parsed(of_command)?;
            let run = RunArgs { workers: Some(args.run.workers.unwrap_or(2)), ..args.run };
            build::run(&BuildArgs { run, ..args }, &mut answer)?
        }
        Some("links") => links::run(&parsed(of_command)?, &mut answer)?,
        other => bail!("the demo does not run {other:?}"),
    };
    let text = String::from_utf8_lossy(&answer);
    text.lines().take(lines_max).try_for_each(|line| writeln!(out, "{line}"))?;
    Ok(())
}

/// Parses the arguments of a subcommand. The first word is the name of the subcommand.
fn parsed<A: Args>(words: &[String]) -> anyhow::Result<A> {
    #[derive(Parser)]
    struct Only<A: Args> {
        #[command(flatten)]
        args: A,
    }
    Ok(Only::try_parse_from(words)?.args)
}

/// A word in the form that a POSIX shell reads back.
fn quoted(word: &Path) -> String {
    let word = word.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:,@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) { word } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

/// The words of a command line made with [`quoted`].
fn unquoted(command: &str) -> Vec<String> {
    let (mut words, mut word, mut inside, mut escaped) = (Vec::new(), String::new(), false, false);
    for c in command.chars() {
        match c {
            _ if escaped => {
                word.push(c);
                escaped = false;
            }
            '\\' if !inside => escaped = true,
            '\'' => inside = !inside,
            ' ' if !inside => words.push(std::mem::take(&mut word)),
            _ => word.push(c),
        }
    }
    words.push(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_words_come_back() {
        for word in ["http://a.example/x?a=1&b=2", "it's here", "/plain/path", "~tilde", ""] {
            assert_eq!(unquoted(&format!("webstrata {}", quoted(Path::new(word)))), ["webstrata", word]);
        }
        assert_eq!(quoted(Path::new("http://a.example/x.html")), "http://a.example/x.html");
    }
}
