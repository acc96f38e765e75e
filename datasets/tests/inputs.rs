//! Tests that paths and patterns become inputs, and that files without captures are reported.

#[cfg(test)]
mod reading;

use std::path::{Path, PathBuf};

use reading::read_all;
use webstrata_datasets::{Capture, DigestCell, Error, Finding, InputSplit, LinkKinds, Tally, inputs, open_metered};
use xxhash_rust::xxh3::xxh3_128;

/// A separate directory for a test.
#[cfg(test)]
fn directory(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("webstrata-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&path).unwrap();
    path
}

#[test]
fn files_directories_and_patterns() {
    let top = directory("inputs");
    std::fs::create_dir_all(top.join("below/.hidden")).unwrap();
    for name in ["b.warc", "a.warc", ".c.warc", "below/d.warc", "below/.hidden/e.warc"] {
        std::fs::write(top.join(name), name).unwrap();
    }
    let names = |paths: &[&str]| -> Vec<String> {
        let paths: Vec<_> = paths.iter().map(|path| top.join(path)).collect();
        let short = |path: &Path| path.strip_prefix(&top).unwrap().display().to_string();
        inputs(&paths).unwrap().iter().map(|input| short(input.path())).collect()
    };
    assert_eq!(names(&[""]), ["a.warc", "b.warc", "below/d.warc"]);
    assert_eq!(names(&["b.warc", "*.warc", "below"]), ["a.warc", "b.warc", "below/d.warc"]);
    assert_eq!(names(&["**/d.warc", ".c.warc"]), [".c.warc", "below/d.warc"]);
    let all = inputs(&[top.join("a.warc"), PathBuf::from("-")]).unwrap();
    assert_eq!((all[0].bytes, &all[0].part, all[1].path()), (6, &InputSplit::Whole, Path::new("-")));
    for missing in ["none.warc", "*.arc", "["] {
        let error = inputs(&[top.join(missing)]).unwrap_err();
        assert!(matches!(error, Error::NoSuchFile { .. }), "{error}");
    }
    std::fs::remove_dir_all(top).unwrap();
}

#[test]
fn other_files_count_once() {
    let top = directory("other");
    for (name, bytes, finding) in [
        ("empty", &b""[..], Finding::OtherFile),
        ("text", b"Dear reader,\n", Finding::OtherFile),
        ("zip", b"PK\x03\x04rest", Finding::OtherFile),
        ("gz", b"\x1f\x8b", Finding::OtherFile),
        ("idx", b"com,example)/ 20140127171200\tpart\t0\t275\t1\n", Finding::IndexFile),
    ] {
        let path = top.join(name);
        std::fs::write(&path, bytes).unwrap();
        let (captures, tally) = read_all(&path, LinkKinds::default());
        assert_eq!((captures.len(), tally.of(finding)), (0, 1), "{name}");
        assert_eq!(tally.files().iter().map(|file| &file.path).collect::<Vec<_>>(), [&path]);
    }
    std::fs::remove_dir_all(top).unwrap();
}

#[test]
fn inputs_are_counted_and_digested_as_they_are_read() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let inputs = inputs(&[directory]).unwrap();
    let bytes_read = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
    let so_far = || bytes_read.load(std::sync::atomic::Ordering::Relaxed);
    let (mut capture, mut tally, mut digests) = (Capture::default(), Tally::default(), 0);
    for input in &inputs {
        let before = so_far();
        let digest = DigestCell::default();
        let mut reader = open_metered(
            input,
            LinkKinds::default().into(),
            bytes_read.clone(),
            digest.clone(),
            &webstrata_datasets::Spill::default(),
        )
        .unwrap();
        while reader.read(&mut capture, &mut tally).unwrap() {}
        if let (InputSplit::Whole, Some(digest)) = (&input.part, digest.get()) {
            let bytes = std::fs::read(input.path()).unwrap();
            assert_eq!((digest.xxh3, digest.bytes), (xxh3_128(&bytes), bytes.len() as u64));
            digests += 1;
        }
        assert!(so_far() > before || input.bytes == 0, "{}", input.path().display());
        drop(reader);
        assert_eq!(so_far() - before, input.bytes, "{}", input.path().display());
    }
    assert!(so_far() > 1_000);
    // Files that are not crawl files are not read to their end.
    assert!(digests * 10 > inputs.len() * 8, "{digests} of {} files", inputs.len());
}
