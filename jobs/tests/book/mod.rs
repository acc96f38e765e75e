//! The pages of the book and the other documents, for the tests that check them. Tests of other crates include this
//! file by its path.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]
#![allow(dead_code, reason = "each test uses a part of it")]

use std::fs;
use std::path::{Path, PathBuf};

/// The directory of the pages.
pub(crate) const BOOK: &str = "docs/book";
/// The address with which pages name a file of the repository. The built book contains only its pages.
pub(crate) const REPOSITORY: &str = "https://github.com/webstrata/webstrata/";

/// A document: its path in the repository, and its text.
pub(crate) struct Page {
    pub(crate) name: String,
    pub(crate) text: String,
}

/// The root of the workspace, from any crate directly below it.
pub(crate) fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

pub(crate) fn document(name: &str) -> String {
    fs::read_to_string(workspace().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// All pages of the book, in the order of their names.
pub(crate) fn pages() -> Vec<Page> {
    let (mut found, mut open) = (Vec::new(), vec![workspace().join(BOOK)]);
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|ending| ending == "md") && !path.ends_with("SUMMARY.md") {
                found.push(path);
            }
        }
    }
    found.sort();
    assert!(found.len() >= 40, "{} pages", found.len());
    let name = |path: PathBuf| path.strip_prefix(workspace()).unwrap().to_str().unwrap().to_owned();
    found.into_iter().map(name).map(|name| Page { text: document(&name), name }).collect()
}

/// The README and all pages of the book.
pub(crate) fn documents() -> Vec<Page> {
    let readme = "README.md".to_owned();
    std::iter::once(Page { text: document(&readme), name: readme }).chain(pages()).collect()
}

/// The text of all pages, one after the other.
pub(crate) fn book() -> String {
    pages().iter().map(|page| page.text.as_str()).collect::<Vec<_>>().join("\n")
}

/// The anchor of a title in an address, as GitHub and mdBook make it.
pub(crate) fn slug(title: &str) -> String {
    let title = title.trim().to_lowercase();
    let kept = title.chars().filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
    kept.map(|letter| if letter == ' ' { '-' } else { letter }).collect()
}

/// The anchors of all titles of a document, outside its code blocks.
pub(crate) fn slugs(text: &str) -> Vec<String> {
    let mut is_fenced = false;
    let mut found = Vec::new();
    for line in text.lines() {
        is_fenced ^= line.starts_with("```");
        let title = line.trim_start_matches('#');
        if !is_fenced && title.len() < line.len() && title.starts_with(' ') {
            found.push(slug(title));
        }
    }
    found
}
