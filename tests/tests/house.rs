//! Rules of the house, kept by a machine: headers, lengths of files, documents that say what the code has, links that
//! lead somewhere, and no trace of the machine on which something was written.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::fs;
use std::path::{Path, PathBuf};
use webstrata_tests::workspace;

/// No file is longer; think again long before.
const LINES_MAX: usize = 600;

/// Files of the project with one of the endings, without what Git ignores.
fn files(endings: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![workspace()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                let hidden = name.starts_with('.') && name != ".ci";
                if !hidden && !["target", "shared"].contains(&name.as_str()) {
                    open.push(path);
                }
            } else if endings.iter().any(|ending| name.ends_with(ending)) {
                found.push(path);
            }
        }
    }
    assert!(!found.is_empty(), "no files {endings:?}");
    found.sort();
    found
}

/// Whether a generator wrote a file, as its first line then says: nobody reads it, its source is read.
fn is_generated(path: &Path) -> bool {
    read(path).lines().next().is_some_and(|first| first.contains("@generated"))
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn complain(problems: &[String]) {
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

#[test]
fn every_source_file_says_what_it_is() {
    let lacks = |path: &PathBuf| !read(path).starts_with("//! ") && !is_generated(path);
    complain(
        &files(&[".rs"])
            .into_iter()
            .filter(lacks)
            .map(|path| format!("{}: no //! header", path.display()))
            .collect::<Vec<_>>(),
    );
}

#[test]
fn no_source_file_is_too_long() {
    let mut problems = Vec::new();
    for path in files(&[".rs", ".py"]) {
        let lines = read(&path).lines().count();
        if lines > LINES_MAX && !is_generated(&path) {
            problems.push(format!("{}: {lines} lines, at most {LINES_MAX}", path.display()));
        }
    }
    complain(&problems);
}

#[test]
fn the_documents_show_every_subcommand() {
    let source = read(&workspace().join("jobs/src/cli.rs"));
    let body = source.split("enum Command {").nth(1).and_then(|rest| rest.split("\n}").next()).unwrap();
    let names: Vec<_> = body
        .lines()
        .filter_map(|line| line.trim().split_once('('))
        .filter(|(name, _)| name.starts_with(char::is_uppercase))
        .map(|(name, _)| name.to_lowercase())
        .collect();
    assert!(names.len() >= 8, "{names:?}");
    let documents = ["README.md", "docs/manual.md"].map(|name| read(&workspace().join(name))).concat();
    let missing = names.iter().filter(|name| !documents.contains(&format!("webstrata {name}")));
    let told = |name| format!("neither README.md nor docs/manual.md shows `webstrata {name}`");
    complain(&missing.map(told).collect::<Vec<_>>());
}

#[test]
fn the_format_names_every_layer() {
    let format = read(&workspace().join("layers/src/format.md"));
    let missing = ["url", "ol", "ts", "bv", "il", "tr", "ibv"].into_iter().filter(|layer| {
        let named = [format!("`{layer}`"), format!("{layer}/"), format!("| {layer} ")];
        !named.iter().any(|name| format.contains(name))
    });
    complain(&missing.map(|layer| format!("format.md says nothing of layer {layer}")).collect::<Vec<_>>());
}

#[test]
fn links_in_documents_lead_somewhere() {
    let mut problems = Vec::new();
    for path in files(&[".md"]) {
        let text = read(&path);
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let target = link.split('#').next().unwrap_or_default();
            let elsewhere =
                target.is_empty() || target.contains("://") || target.starts_with("mailto:") || target.contains(' ');
            if !elsewhere && !path.parent().unwrap().join(target).exists() {
                problems.push(format!("{}: {link} leads nowhere", path.display()));
            }
        }
    }
    complain(&problems);
}

#[test]
fn the_architecture_fits_in_one_reading() {
    let lines = read(&workspace().join("ARCHITECTURE.md")).lines().count();
    assert!(lines <= 300, "ARCHITECTURE.md: {lines} lines, at most 300");
}

#[test]
fn no_file_knows_the_machine_it_was_written_on() {
    // Put together here, so that this file does not find itself.
    let traces =
        [["/wo", "rk/"], ["/ro", "ot/"], ["/ho", "me/"], ["/tm", "p/wt"], ["/Us", "ers/"]].map(|parts| parts.concat());
    let mut problems = Vec::new();
    for path in files(&[".rs", ".md", ".toml", ".py", ".sh", "run"]) {
        for (number, line) in read(&path).lines().enumerate() {
            if let Some(trace) = traces.iter().find(|trace| line.contains(trace.as_str())) {
                problems.push(format!("{}:{}: {trace}", path.display(), number + 1));
            }
        }
    }
    complain(&problems);
}
