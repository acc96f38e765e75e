//! Reads the examples of formats in the book: each is read in its format, and means what the book says.

#[path = "../../jobs/tests/book/mod.rs"]
mod book;
#[cfg(test)]
mod reading;

use reading::read_all;
use std::path::{Path, PathBuf};
use webstrata_datasets::{Capture, Content, LinkKinds};

/// Writes the examples to files: blocks that begin with a line "```text NAME".
#[cfg(test)]
fn examples(directory: &Path) -> Vec<PathBuf> {
    let book = book::book();
    let blocks = book.split("\n```text ").skip(1);
    let written = blocks.map(|block| {
        let (name, rest) = block.split_once('\n').unwrap();
        let path = directory.join(name.trim());
        std::fs::write(&path, rest.split("\n```").next().unwrap().to_owned() + "\n").unwrap();
        path
    });
    written.collect()
}

#[cfg(test)]
fn shown(capture: &Capture) -> String {
    let content = match &capture.content {
        Content::Links => "links",
        Content::Unknown => "unknown",
        Content::Revisit(_) => "revisit",
    };
    let links: Vec<&str> = capture.links.iter().collect();
    format!("{} {} {content} {}", capture.url, capture.time - 1_212_321_600, links.join(" "))
}

#[test]
fn the_examples_of_the_book_are_read() {
    let directory = tempfile::tempdir().unwrap();
    let files = examples(directory.path());
    let of = |name: &str| -> Vec<String> {
        let path = directory.path().join(name);
        assert!(files.contains(&path), "{name} is not in the book");
        let (captures, tally) = read_all(&path, LinkKinds { redirects: true, ..LinkKinds::default() });
        assert_eq!(tally.counts().collect::<Vec<_>>(), [], "{name}");
        captures.iter().map(|capture| shown(capture).trim_end().to_owned()).collect()
    };
    let day = 86_400;
    assert_eq!(
        of("captures.jsonl"),
        [
            "http://example.org/ 0 links /a http://example.com/".to_owned(),
            format!("http://example.org/ {} revisit", 30 * day),
            format!("http://example.org/ {} revisit", 61 * day),
            format!("http://example.org/ {} unknown", 92 * day),
            "http://example.org/old 0 links http://example.org/new".to_owned(),
            "http://example.org/gone 0 links".to_owned(),
            "http://example.org/empty 0 links".to_owned(),
        ]
    );
    assert_eq!(
        of("crawl.links"),
        [
            "http://example.org/ 0 links http://example.org/a http://example.com/",
            "http://example.org/a 0 links http://example.org/",
            "http://example.org/b -1212321600 links http://example.org/a",
        ]
    );
    assert_eq!(of("web-graph.csv"), ["http://example.org/ 0 links http://example.org/a http://example.com/"]);
    assert_eq!(of("id.graph"), ["http://example.org/ 0 links http://example.org/ http://example.com/"]);
    assert_eq!(of("id.map"), [""; 0]);
    assert_eq!(files.len(), 5, "an example that no test reads");
}

/// Files beside crawl files that give no captures are reported by name, and are not damage.
#[test]
fn a_directory_with_other_files() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
    write("a.jsonl", "{\"url\":\"http://a/\",\"ts\":\"2008\",\"links\":[]}\n");
    write("index.cdx", " CDX N b a m s k r M S V g\ncom,example)/ 2014 http://example.com text/html 200 - - - 1 2 a\n");
    write(
        "netarchive.cdx",
        "http://a.example/ 1.2.3.4 20140102030405 text/html 120 x.arc 1000\n\
         http://b.example/ 1.2.3.4 20140102030405 text/html 120 x.arc 2000\n",
    );
    write("cluster.idx", "com,example)/ 20140127171200\tcdx-00000.gz\t0\t275\t1\n");
    write("README", "Dear reader,\nthis is a crawl of 2008.\n");
    write("seeds.txt", "http://a.example/\nhttp://b.example/\n");
    write("whole.wacz.lz4", "\u{4}\"M\u{18}");
    let (captures, tally) = read_all(directory.path(), LinkKinds::default());
    assert_eq!((captures.len(), tally.damaged()), (4, 0));
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    let files: Vec<String> =
        tally.files().iter().map(|file| format!("{}: {}", file.finding.name(), name(&file.path))).collect();
    assert_eq!(
        files,
        ["unread crawl file: whole.wacz.lz4", "index file: cluster.idx", "other file: README", "other file: seeds.txt",]
    );
}
