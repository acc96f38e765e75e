//! Checks the rules of the repository: headers; lengths of files, lines and folders; crates and folders that import
//! downwards only; tests that run or say how to run them; documents that agree with the code; links that lead
//! somewhere; and no references to anything outside the repository.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

#[path = "../../jobs/tests/book/mod.rs"]
mod book;

use book::{BOOK, REPOSITORY, document, documents, slugs};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use webstrata_tests::workspace;

/// The maximum number of lines of a file. Split a file long before it gets this long.
const LINES_MAX: usize = 600;
/// The maximum number of columns of a line.
const COLUMNS_MAX: usize = 120;
/// The maximum number of source files in a folder.
const FILES_MAX: usize = 14;
/// The maximum number of lines of a page of the book.
const PAGE_LINES_MAX: usize = 220;
/// Folders that may have more files: the files are equals, and a reader opens only the file of interest.
const EQUALS: [(&str, &str); 6] = [
    ("jobs/src/commands", "a file for each subcommand"),
    ("jobs/tests", "a file for each promise of the program"),
    ("pipeline/analysis/src/analyze", "a file for each analysis"),
    ("pipeline/analysis/src/export", "a file for each format"),
    ("tests/interop", "a script for each other tool"),
    ("tests/tests", "a file for each promise of the whole"),
];
/// The crates of the workspace that each crate may import: only crates below it.
const BELOW: [(&str, &[&str]); 13] = [
    ("datasets/url", &[]),
    ("datasets/remote", &[]),
    ("datasets", &["remote", "url"]),
    ("layers", &["remote"]),
    ("pipeline/engine", &["layers"]),
    ("pipeline", &["datasets", "engine", "layers", "url"]),
    ("pipeline/analysis", &["engine", "layers", "url"]),
    ("serve/cells", &["layers"]),
    ("serve/codecs", &["cells", "layers"]),
    ("serve", &["cells", "layers", "url"]),
    ("jobs", &["analysis", "cells", "codecs", "datasets", "engine", "layers", "pipeline", "serve", "url"]),
    ("python", &["engine", "layers", "tests"]),
    ("tests", &["analysis", "cells", "codecs", "datasets", "engine", "layers", "pipeline", "serve", "url"]),
];

/// The files of the project with one of the endings, without files that Git ignores.
fn files(endings: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![workspace()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                let hidden = name.starts_with('.') && name != ".ci";
                if !hidden && !["target", "shared", "node_modules"].contains(&name.as_str()) {
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

/// Whether a generator wrote a file, as the first line of the file then says. Readers read the source of such a file
/// instead.
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
    let mut problems: Vec<String> =
        files(&[".rs"]).into_iter().filter(lacks).map(|path| format!("{}: no //! header", path.display())).collect();
    // A module of the page for browsers says it in its first comment.
    let scripts = files(&[".js", ".ts"]).into_iter().filter(|path| !read(path).starts_with("// "));
    problems.extend(scripts.map(|path| format!("{}: no // header", path.display())));
    complain(&problems);
}

#[test]
fn no_source_file_is_too_long() {
    let mut problems = Vec::new();
    for path in files(&[".rs", ".py", ".js", ".ts"]) {
        let lines = read(&path).lines().count();
        if lines > LINES_MAX && !is_generated(&path) {
            problems.push(format!("{}: {lines} lines, at most {LINES_MAX}", path.display()));
        }
    }
    complain(&problems);
}

#[test]
fn lines_fit_in_a_window() {
    let mut problems = Vec::new();
    let endings = [".rs", ".py", ".js", ".ts", ".css", ".toml", ".md", ".proto"];
    for path in files(&endings).into_iter().filter(|path| !is_generated(path)) {
        let text = read(&path);
        let long = text.lines().enumerate().filter(|(_, line)| line.chars().count() > COLUMNS_MAX);
        problems.extend(
            long.map(|(number, _)| format!("{}:{} has more than {COLUMNS_MAX} columns", path.display(), number + 1)),
        );
    }
    complain(&problems);
}

#[test]
fn folders_are_small_or_hold_equals() {
    let mut counts = BTreeMap::new();
    for path in files(&[".rs", ".py", ".js", ".ts"]) {
        let folder = path.parent().unwrap().strip_prefix(workspace()).unwrap().to_string_lossy().into_owned();
        *counts.entry(folder).or_insert(0) += 1;
    }
    let mut problems = Vec::new();
    for (folder, count) in counts {
        if count > FILES_MAX && !EQUALS.iter().any(|(equals, _)| *equals == folder) {
            problems.push(format!("{folder}: {count} files, at most {FILES_MAX}"));
        }
    }
    complain(&problems);
}

#[test]
fn crates_import_downwards_only() {
    let manifest = read(&workspace().join("Cargo.toml"));
    let members = manifest.split_once("members = [").and_then(|(_, rest)| rest.split_once(']')).unwrap().0;
    let mut problems = Vec::new();
    for member in members.split('"').skip(1).step_by(2) {
        let Some((_, below)) = BELOW.iter().find(|(name, _)| *name == member) else {
            problems.push(format!("{member}: BELOW does not say what it may import"));
            continue;
        };
        let own = read(&workspace().join(member).join("Cargo.toml"));
        let dependencies = own.split("\n[").filter(|section| section.starts_with("dependencies]"));
        for line in dependencies.flat_map(str::lines) {
            let name = line.strip_prefix("webstrata-").and_then(|rest| rest.split(['.', ' ']).next());
            if let Some(name) = name.filter(|name| !below.contains(name)) {
                problems.push(format!("{member}: it may not import webstrata-{name}"));
            }
        }
    }
    complain(&problems);
}

/// The names that follow `crate::` in a file: one name, or all names in braces. Tests may import anything.
fn names_imported(text: &str) -> BTreeSet<String> {
    let code = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap();
    let code: String = code.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let mut names = BTreeSet::new();
    for path in code.split("crate::").skip(1) {
        let end = if path.starts_with('{') { path.find('}') } else { path.find(|letter: char| !is_of_name(letter)) };
        let words = path[..end.unwrap_or(path.len())].split(|letter: char| !is_of_name(letter));
        names.extend(words.map(str::to_owned));
    }
    names
}

fn is_of_name(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// A program of a question has no input and output: it imports pure rules only.
#[test]
fn questions_know_only_records() {
    let mut problems = Vec::new();
    let questions =
        files(&[".rs"]).into_iter().filter(|path| path.starts_with(workspace().join("layers/src/questions")));
    for path in questions {
        let imported = names_imported(&read(&path)).into_iter();
        let others: Vec<String> =
            imported.filter(|name| !["record", "questions", "word"].contains(&name.as_str())).collect();
        if !others.is_empty() {
            problems.push(format!("{}: imports {}", path.display(), others.join(", ")));
        }
    }
    complain(&problems);
}

/// The file `NAME.rs` beside a folder belongs to the folder.
#[test]
fn no_two_folders_of_a_crate_import_each_other() {
    let mut imports: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
    for path in files(&[".rs"]).into_iter().filter(|path| !path.ends_with("tests.rs")) {
        let inside = path.strip_prefix(workspace()).unwrap().to_string_lossy().into_owned();
        let Some((member, file)) = inside.split_once("/src/") else { continue };
        let folder = file.split('/').next().unwrap().trim_end_matches(".rs").to_owned();
        if !["lib", "main"].contains(&folder.as_str()) {
            imports.entry((member.to_owned(), folder)).or_default().extend(names_imported(&read(&path)));
        }
    }
    let (mut arrows, mut problems) = (0, Vec::new());
    for ((member, from), to) in &imports {
        for to in to.iter().filter(|to| *to != from) {
            let Some(back) = imports.get(&(member.clone(), to.clone())) else { continue };
            arrows += 1;
            if from < to && back.contains(from) {
                problems.push(format!("{member}: {from} and {to} import each other"));
            }
        }
    }
    assert!(imports.len() > 80 && arrows > 150, "{} folders, {arrows} arrows", imports.len());
    complain(&problems);
}

/// The lines of tests, with their places: all lines of test files, and the lines below `cfg(test)` in other files.
fn lines_of_tests() -> Vec<(String, String)> {
    let mut lines = Vec::new();
    for path in files(&[".rs"]) {
        let inside = path.strip_prefix(workspace()).unwrap();
        let mut is_test = inside.iter().any(|part| part == "tests" || part == "tests.rs");
        for (number, line) in read(&path).lines().enumerate() {
            is_test |= line == "#[cfg(test)]";
            if is_test {
                lines.push((format!("{}:{}", inside.display(), number + 1), line.trim().to_owned()));
            }
        }
    }
    lines
}

/// A test that cannot run is ignored, and fails if it is run anyway. No test passes without running.
#[test]
fn no_test_passes_without_running() {
    // Joined at run time, so that this file does not match.
    let leaves = ["else { ", "return };"].concat();
    let says = [["print", "ln!(\"skip"], ["print", "ln!(\"left out"]].map(|parts| parts.concat());
    let mut problems = Vec::new();
    let lines = lines_of_tests();
    for (place, line) in &lines {
        let is_absent = line.starts_with("let Some(") || line.starts_with("let (Some(");
        if is_absent && line.ends_with(&leaves) || says.iter().any(|own| line.contains(own)) {
            problems.push(format!("{place}: a test that leaves early passes: {line}"));
        }
    }
    for window in lines.windows(3) {
        let [(_, before), (place, line), (_, after)] = window else { continue };
        if before.ends_with("else {") && line == "return;" && after == "};" {
            problems.push(format!("{place}: a test that leaves early passes"));
        }
    }
    complain(&problems);
}

#[test]
fn ignored_tests_say_how_to_run_them_and_the_build_server_does() {
    let run = read(&workspace().join(".ci/run"));
    let mut problems = Vec::new();
    for (place, line) in lines_of_tests().iter().filter(|(_, line)| line.starts_with("#[ignore")) {
        let name = line.split_once("cargo test --test ").and_then(|(_, rest)| rest.strip_suffix(" -- --ignored\"]"));
        match name {
            None => problems.push(format!("{place}: its reason ends without `cargo test --test NAME -- --ignored`")),
            Some(name) if !run.contains(&format!("--test {name} ")) => {
                problems.push(format!("{place}: .ci/run has no --test {name}"));
            }
            Some(_) => {}
        }
    }
    complain(&problems);
}

/// Whether a line cites a document of this name: the name with `.md`, or with a number or a section.
fn cites(line: &str, document: &str) -> bool {
    line.match_indices(document).any(|(at, _)| {
        let begins = !line[..at].ends_with(|letter: char| letter.is_alphanumeric() || letter == '_');
        let rest = line[at + document.len()..].trim_start_matches([',', ' ']);
        let section = rest.starts_with("section") || rest.starts_with(|letter: char| letter.is_ascii_digit());
        begins && (section || rest.starts_with('\u{a7}') || rest.starts_with(".md"))
    })
}

#[test]
fn no_file_cites_what_is_not_in_the_repository() {
    // Joined at run time, so that this file does not match.
    let documents = ["DES IGN", "FOR MATS", "FA CTS", "CEL LS", "LAB ELS", "PRO SE", "EXPLO RER"];
    let documents = documents.map(|parts| parts.replace(' ', ""));
    let plans = ["e plan asks", "e plan has", "e plan marks", "e plan samples", "e plan says", "e plan wants"];
    let plans = plans.map(|words| format!("th{words}"));
    let mut problems = Vec::new();
    for path in files(&[".rs", ".md", ".toml", ".py", ".js", ".ts", ".sh", ".proto", "run"]) {
        for (number, line) in read(&path).lines().enumerate() {
            let lower = line.to_lowercase();
            if documents.iter().any(|own| cites(line, own)) || plans.iter().any(|own| lower.contains(own)) {
                problems.push(format!("{}:{}: not here to be read: {}", path.display(), number + 1, line.trim()));
            }
        }
    }
    complain(&problems);
}

#[test]
fn the_readme_or_the_book_shows_every_subcommand() {
    let source = read(&workspace().join("jobs/src/cli.rs"));
    let body = source.split("enum Command {").nth(1).and_then(|rest| rest.split("\n}").next()).unwrap();
    let names: Vec<_> = body
        .lines()
        .filter_map(|line| line.trim().split_once('('))
        .filter(|(name, _)| name.starts_with(char::is_uppercase))
        .map(|(name, _)| name.to_lowercase())
        .collect();
    assert!(names.len() >= 8, "{names:?}");
    let shown: String = documents().into_iter().map(|page| page.text).collect();
    let missing = names.iter().filter(|name| !shown.contains(&format!("webstrata {name}")));
    complain(&missing.map(|name| format!("no document shows `webstrata {name}`")).collect::<Vec<_>>());
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

/// A document without its code blocks.
fn prose(text: &str) -> String {
    let mut is_fenced = false;
    let outside = text.lines().filter(|line| {
        is_fenced ^= line.starts_with("```");
        !is_fenced
    });
    outside.fold(String::new(), |kept, line| kept + line + "\n")
}

/// The targets of the links of a document: `](TARGET)`, `[NAME]: TARGET` at the beginning of a line, and `book:
/// "TARGET"` of an alert.
fn links(text: &str) -> Vec<&str> {
    let inline = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let defined = text.lines().filter(|line| line.starts_with('[')).filter_map(|line| line.split_once("]: "));
    let of_alerts = text.lines().filter_map(|line| line.trim().strip_prefix("book: \"")?.strip_suffix('"'));
    inline.chain(defined.map(|(_, target)| target)).chain(of_alerts).filter(|target| !target.contains(' ')).collect()
}

#[test]
fn links_in_documents_lead_somewhere() {
    let mut problems = Vec::new();
    let (mut titles, mut checked) = (BTreeMap::new(), 0);
    for path in files(&[".md", "llms.txt", "alerts.yml"]) {
        let text = prose(&read(&path));
        let (alerts, pages) = (text.matches("- alert: ").count(), text.matches("\n          book: ").count());
        if alerts != pages {
            problems.push(format!("{}: {alerts} alerts name {pages} pages of the book", path.display()));
        }
        let in_book = path.starts_with(workspace().join(BOOK));
        for link in links(&text) {
            // A file of the repository, linked by its address on the web.
            let inside = link
                .strip_prefix(REPOSITORY)
                .and_then(|rest| rest.strip_prefix("blob/main/").or_else(|| rest.strip_prefix("tree/main/")));
            if inside.is_none() && (link.contains("://") || link.starts_with("mailto:")) {
                continue;
            }
            let (target, fragment) = inside.unwrap_or(link).split_once('#').unwrap_or((inside.unwrap_or(link), ""));
            let target = match (inside, target) {
                (_, "") => path.clone(),
                (Some(_), _) => workspace().join(target),
                (None, _) => path.parent().unwrap().join(target),
            };
            checked += 1;
            let Ok(target) = target.canonicalize() else {
                problems.push(format!("{}: {link} leads nowhere", path.display()));
                continue;
            };
            if in_book && inside.is_none() && !target.starts_with(workspace().join(BOOK).canonicalize().unwrap()) {
                problems.push(format!("{}: the built book has no {link}: begin with {REPOSITORY}", path.display()));
            }
            if !fragment.is_empty() && target.extension().is_some_and(|ending| ending == "md") {
                let known = titles.entry(target.clone()).or_insert_with(|| slugs(&read(&target)));
                if !known.iter().any(|title| title == fragment) {
                    problems.push(format!("{}: {link}: no title there has this name", path.display()));
                }
            }
        }
        // A link by name needs a definition.
        for name in text.split("][").skip(1).filter_map(|rest| rest.split(']').next()) {
            if in_book && !text.contains(&format!("\n[{name}]: ")) {
                problems.push(format!("{}: [{name}] has no address", path.display()));
            }
        }
    }
    assert!(checked > 200, "{checked} links");
    complain(&problems);
}

#[test]
fn the_summary_lists_every_page_of_the_book() {
    let summary = document(&format!("{BOOK}/SUMMARY.md"));
    let listed: Vec<String> = links(&summary).into_iter().map(|link| format!("{BOOK}/{link}")).collect();
    let known: BTreeSet<String> = book::pages().into_iter().map(|page| page.name).collect();
    let mut problems = Vec::new();
    problems.extend(listed.iter().filter(|page| !known.contains(*page)).map(|page| format!("no page {page}")));
    problems.extend(known.iter().filter(|page| !listed.contains(page)).map(|page| format!("not listed: {page}")));
    let twice = listed.len() - listed.iter().collect::<BTreeSet<_>>().len();
    assert_eq!(twice, 0, "pages that the summary lists twice");
    complain(&problems);
}

#[test]
fn folders_of_the_book_are_small_and_pages_are_short() {
    let (mut counts, mut problems) = (BTreeMap::new(), Vec::new());
    for page in book::pages() {
        let lines = page.text.lines().count();
        if lines > PAGE_LINES_MAX {
            problems.push(format!("{}: {lines} lines, at most {PAGE_LINES_MAX}: a page is one task", page.name));
        }
        let folder = page.name.rsplit_once('/').unwrap().0.to_owned();
        *counts.entry(folder).or_insert(0) += 1;
    }
    let full = counts.iter().filter(|(_, count)| **count > FILES_MAX);
    problems.extend(full.map(|(folder, count)| format!("{folder}: {count} pages, at most {FILES_MAX}")));
    complain(&problems);
}

#[test]
fn the_readme_is_short() {
    let readme = document("README.md");
    let (lines, words) = (readme.lines().count(), readme.split_whitespace().count());
    assert!(lines <= 120 && words <= 900, "README.md: {lines} lines and {words} words, at most 120 and 900");
}

#[test]
fn the_architecture_fits_in_one_reading() {
    let lines = read(&workspace().join("ARCHITECTURE.md")).lines().count();
    assert!(lines <= 300, "ARCHITECTURE.md: {lines} lines, at most 300");
}

#[test]
fn no_file_knows_the_machine_it_was_written_on() {
    // Joined at run time, so that this file does not match.
    let traces =
        [["/wo", "rk/"], ["/ro", "ot/"], ["/ho", "me/"], ["/tm", "p/wt"], ["/Us", "ers/"]].map(|parts| parts.concat());
    let mut problems = Vec::new();
    for path in files(&[".rs", ".md", ".toml", ".py", ".js", ".ts", ".json", ".sh", "run"]) {
        for (number, line) in read(&path).lines().enumerate() {
            if let Some(trace) = traces.iter().find(|trace| line.contains(trace.as_str())) {
                problems.push(format!("{}:{}: {trace}", path.display(), number + 1));
            }
        }
    }
    complain(&problems);
}
