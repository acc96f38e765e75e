//! Comments in plain English: by folder, how often a comment has a phrase that hides who does what.
//!
//! Each phrase is right somewhere, so a folder may have some. Where they are frequent, sentences must be read twice.
//! `cargo test --test prose -- --nocapture` prints the figures of all folders, and the phrases of the worst.

#![expect(clippy::print_stdout, reason = "the figures")]
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use webstrata_tests::workspace;

/// The most marked phrases in 1,000 words of the comments of a folder.
const MARKED_MAX: usize = 8;
/// A folder with fewer words is too small for a rate.
const WORDS_MIN: usize = 300;
/// Phrases in which a pronoun or a chain of nouns stands for what should be named.
const PHRASES: [&str; 50] = [
    "all that",
    "anew",
    "are had",
    "are no",
    "are so",
    "are to be",
    "are told",
    "as far as",
    "as it is",
    "as they are",
    "as yet",
    "becomes of",
    "but for",
    "comes to be",
    "for whom",
    "hence",
    "in the place of",
    "is had",
    "is no",
    "is so",
    "is to be",
    "is told",
    "knows of",
    "made of",
    "makes of",
    "may so",
    "none of",
    "of both",
    "of its own",
    "of the one",
    "of their own",
    "of which",
    "or none",
    "said of",
    "says of",
    "so many",
    "so much",
    "stand for",
    "stands for",
    "that of",
    "the one of",
    "those of",
    "what a",
    "what is",
    "what it",
    "what the",
    "what they",
    "what was",
    "whether what",
    "whose",
];
/// Words that begin a sentence whose subject comes late.
const BEGINNINGS: [&str; 12] =
    ["as many", "as much", "by", "of", "one of", "that", "those", "to whom", "what", "where", "whether what", "who"];

/// The marked phrases of a comment.
fn marked(comment: &str) -> impl Iterator<Item = String> {
    let sentences = comment.split_inclusive(['.', ':', ';']).flat_map(|part| part.split(['(', ')']));
    sentences.flat_map(|sentence| {
        let text = sentence.to_lowercase();
        let words: Vec<&str> = text
            .split(|letter: char| !letter.is_alphanumeric() && letter != '_')
            .filter(|word| !word.is_empty())
            .collect();
        let joined = format!(" {} ", words.join(" "));
        let inside = PHRASES.into_iter().flat_map(|phrase| {
            let times = joined.matches(&format!(" {phrase} ")).count();
            std::iter::repeat_n(phrase.to_owned(), times)
        });
        let first = BEGINNINGS.into_iter().find(|first| joined.starts_with(&format!(" {first} ")));
        inside.chain(first.map(|first| format!("{first} ..."))).collect::<Vec<_>>()
    })
}

/// The comments of a source file. Lines without code between them are one comment.
fn comments(text: &str) -> Vec<String> {
    let mut all = vec![String::new()];
    for line in text.lines().map(str::trim_start) {
        match line.strip_prefix("//") {
            Some(rest) => {
                let last = all.last_mut().unwrap();
                last.push(' ');
                last.push_str(rest.trim_start_matches(['/', '!']).trim_start());
            }
            None if !all.last().unwrap().is_empty() => all.push(String::new()),
            None => {}
        }
    }
    all
}

/// The source files below a directory, without what is compiled or generated.
fn sources(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && !name.starts_with('.') && name != "target" && name != "shared" {
            sources(&path, found);
        } else if name.ends_with(".rs") {
            found.push(path);
        }
    }
}

#[derive(Default)]
struct Folder {
    words: usize,
    marked: BTreeMap<String, usize>,
}

impl Folder {
    fn rate(&self) -> usize {
        self.marked.values().sum::<usize>() * 1000 / self.words.max(1)
    }
}

#[test]
fn comments_say_who_does_what() {
    let (mut paths, mut folders) = (Vec::new(), BTreeMap::<String, Folder>::new());
    sources(&workspace(), &mut paths);
    for path in paths {
        let text = fs::read_to_string(&path).unwrap();
        if text.lines().next().is_some_and(|first| first.contains("@generated")) {
            continue;
        }
        let folder = path.parent().unwrap().strip_prefix(workspace()).unwrap().display().to_string();
        let folder = folders.entry(folder).or_default();
        for comment in comments(&text) {
            folder.words += comment.split_whitespace().count();
            marked(&comment).for_each(|phrase| *folder.marked.entry(phrase).or_default() += 1);
        }
    }
    let mut problems = Vec::new();
    for (name, folder) in folders.iter().filter(|(_, folder)| folder.words >= WORDS_MIN) {
        println!("{name:34} {:6} words {:3}", folder.words, folder.rate());
        if folder.rate() > MARKED_MAX {
            let mut phrases: Vec<_> = folder.marked.iter().map(|(phrase, times)| (times, phrase)).collect();
            phrases.sort_by(|a, b| b.cmp(a));
            phrases.truncate(8);
            problems.push(format!("{name}: {} in 1,000 words, at most {MARKED_MAX}: {phrases:?}", folder.rate()));
        }
    }
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

#[test]
fn phrases_are_found_in_sentences() {
    let found: Vec<String> = marked("What the system refuses. A row whose links are no more.").collect();
    assert_eq!(found, ["what the", "what ...", "are no", "whose"]);
    assert_eq!(marked("The server rejects calls with `UNAVAILABLE`.").count(), 0);
}
