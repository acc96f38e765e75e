//! Inputs that could take all memory: every format with a long URL, a long link, many links, many captures, many units
//! and one giant line or row. Each input is built in a separate process within `--memory 256M -w 1`.
//!
//! A part of the input that is too long is counted and left out, and everything around the part is read. By default the
//! inputs are small. With `WEBSTRATA_MEMORY=full` they have the sizes of `full` below. The test prints a table of the
//! peaks.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]
#![expect(clippy::print_stdout, reason = "what it measures is for the reader of its output")]
#![cfg(target_os = "linux")]

use arrow_array::builder::{Int64Builder, ListBuilder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use webstrata_engine::{Progress, RunOptions};
use webstrata_pipeline::{BuildOptions, build};

/// The memory of every build, in MiB.
const MEMORY: usize = 256;
const START: i64 = 1_209_588_506;

/// Returns `small` by default, and `full` with `WEBSTRATA_MEMORY=full`.
fn size(small: usize, full: usize) -> usize {
    if std::env::var("WEBSTRATA_MEMORY").is_ok_and(|value| value == "full") { full } else { small }
}

/// One capture at a time: page, second, links.
type Captures<'a> = Box<dyn Iterator<Item = (String, i64, Box<dyn Iterator<Item = String> + 'a>)> + 'a>;

/// The part of an input that is too large.
#[derive(Clone, Copy, Debug)]
enum Excess {
    LongUrl,
    LongLink,
    ManyLinks,
    ManyCaptures,
    ManyUnits,
    Dictionary,
}

const ALL: [Excess; 6] =
    [Excess::LongUrl, Excess::LongLink, Excess::ManyLinks, Excess::ManyCaptures, Excess::ManyUnits, Excess::Dictionary];

fn page(number: usize) -> String {
    format!("http://a.example/{number}")
}

/// Returns the captures of an excess, with some sound captures before and after them.
fn captures(excess: Excess) -> Captures<'static> {
    let link = |number: usize| Box::new([format!("http://b.example/{number}")].into_iter());
    let sound =
        move |from: usize| (from..from + 10).map(move |at| (page(at), START, link(at) as Box<dyn Iterator<Item = _>>));
    let long = |bytes: usize| "http://c.example/".to_owned() + &"x".repeat(bytes);
    let middle: Captures<'static> = match excess {
        Excess::LongUrl => {
            let url = long(size(17 << 20, 200 << 20));
            Box::new([(url, START, link(7) as Box<dyn Iterator<Item = _>>)].into_iter())
        }
        Excess::LongLink => {
            let url = long(size(17 << 20, 200 << 20));
            Box::new([(page(99), START, Box::new([url].into_iter()) as Box<dyn Iterator<Item = _>>)].into_iter())
        }
        Excess::ManyLinks => {
            let links = (0..size(300_000, 30_000_000)).map(|number| format!("http://b.example/{}", number % 300_000));
            Box::new([(page(99), START, Box::new(links) as Box<dyn Iterator<Item = _>>)].into_iter())
        }
        Excess::ManyCaptures => Box::new((0..size(20_000, 2_000_000)).map(move |at| {
            (page(at % 1000), START + i64::try_from(at).unwrap(), link(at % 7) as Box<dyn Iterator<Item = _>>)
        })),
        Excess::ManyUnits => Box::new((0..size(5_000, 100_000)).map(move |at| {
            (page(at % 1000), START + i64::try_from(at).unwrap(), link(at % 7) as Box<dyn Iterator<Item = _>>)
        })),
        // One long URL many times, which a dictionary contains once.
        Excess::Dictionary => {
            let (url, count) = (long(size(8 << 20, 20 << 20)), size(40, 300));
            Box::new((0..count).map(move |at| {
                (url.clone(), START + i64::try_from(at).unwrap(), link(7) as Box<dyn Iterator<Item = _>>)
            }))
        }
    };
    Box::new(sound(0).chain(middle).chain(sound(10)))
}

fn digits(second: i64) -> String {
    webstrata_layers::format_time(second).chars().filter(char::is_ascii_digit).collect()
}

/// Writes a file piece by piece, so that no file is held in memory.
fn file(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) {
    let mut file = BufWriter::new(File::create(path).unwrap());
    write(&mut file).and_then(|()| file.flush()).unwrap();
}

fn json_lines(path: &Path, captures: Captures<'_>) {
    file(path, |out| {
        for (url, second, links) in captures {
            write!(out, "{{\"ts\":{second},\"links\":[")?;
            for (at, link) in links.enumerate() {
                write!(out, "{}\"{link}\"", if at == 0 { "" } else { "," })?;
            }
            writeln!(out, "],\"url\":\"{url}\"}}")?;
        }
        Ok(())
    });
}

fn links_file(path: &Path, captures: Captures<'_>) {
    file(path, |out| {
        for (url, second, links) in captures {
            write!(out, "{url} {}", digits(second))?;
            links.into_iter().try_for_each(|link| write!(out, " {link}"))?;
            out.write_all(b"\n")?;
        }
        Ok(())
    });
}

fn aut_csv(path: &Path, captures: Captures<'_>) {
    file(path, |out| {
        writeln!(out, "crawl_date,src,dest,anchor")?;
        for (url, second, links) in captures {
            let date = digits(second);
            links.into_iter().try_for_each(|link| writeln!(out, "{date},{url},{link},x"))?;
        }
        Ok(())
    });
}

/// Writes a WARC or an ARC, with one record a capture.
fn records(path: &Path, captures: Captures<'_>, is_arc: bool) {
    file(path, |out| {
        for (url, second, links) in captures {
            let mut block = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<html>".to_vec();
            links.for_each(|link| block.extend(format!("<a href={link}>").as_bytes()));
            if is_arc {
                writeln!(out, "{url} 1.2.3.4 {} text/html {}", digits(second), block.len())?;
                out.write_all(&block)?;
                out.write_all(b"\n")?;
            } else {
                write!(
                    out,
                    "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: {url}\r\nWARC-Date: {}\r\n\
                     Content-Type: application/http\r\nContent-Length: {}\r\n\r\n",
                    webstrata_layers::format_time(second),
                    block.len()
                )?;
                out.write_all(&block)?;
                out.write_all(b"\r\n\r\n")?;
            }
        }
        Ok(())
    });
}

/// Writes Parquet with captures, or with the links of a web graph; a row group has at most `rows_a_group` rows.
fn parquet(path: &Path, captures: Captures<'_>, is_graph: bool, excess: Excess, dictionary: bool) {
    let rows_a_group = if matches!(excess, Excess::ManyUnits) { 50 } else { 1 << 20 };
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_dictionary_enabled(dictionary)
        .set_dictionary_page_size_limit(64 << 20)
        .build();
    let mut writer = None;
    let (mut urls, mut seconds, mut dates, mut rows) =
        (StringBuilder::new(), Int64Builder::new(), StringBuilder::new(), 0);
    let (mut lists, mut targets) = (ListBuilder::new(StringBuilder::new()), StringBuilder::new());
    let mut flush = |urls: &mut StringBuilder,
                     seconds: &mut Int64Builder,
                     dates: &mut StringBuilder,
                     lists: &mut ListBuilder<StringBuilder>,
                     targets: &mut StringBuilder| {
        let source: ArrayRef = Arc::new(urls.finish());
        let columns: Vec<(&str, ArrayRef)> = if is_graph {
            vec![("crawl_date", Arc::new(dates.finish())), ("src", source), ("dest", Arc::new(targets.finish()))]
        } else {
            vec![("url", source), ("ts", Arc::new(seconds.finish())), ("links", Arc::new(lists.finish()))]
        };
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let writer = writer.get_or_insert_with(|| {
            ArrowWriter::try_new(File::create(path).unwrap(), batch.schema(), Some(properties.clone())).unwrap()
        });
        writer.write(&batch).unwrap();
        writer.flush().unwrap();
    };
    let mut bytes = 0;
    for (url, second, links) in captures {
        let mut add = |link: Option<&str>| {
            bytes += url.len() + link.map_or(0, str::len);
            urls.append_value(&url);
            seconds.append_value(second);
            dates.append_value(digits(second));
            targets.append_value(link.unwrap_or_default());
            rows += 1;
        };
        if is_graph {
            links.for_each(|link| add(Some(&link)));
        } else {
            links.for_each(|link| lists.values().append_value(link));
            lists.append(true);
            add(None);
        }
        if bytes > 64 << 20 || rows >= rows_a_group {
            flush(&mut urls, &mut seconds, &mut dates, &mut lists, &mut targets);
            (bytes, rows) = (0, 0);
        }
    }
    flush(&mut urls, &mut seconds, &mut dates, &mut lists, &mut targets);
    writer.unwrap().close().unwrap();
}

/// Builds a store of an input, if this test runs as a separate process, and prints the result.
#[test]
fn in_a_process_of_its_own() {
    let Ok(input) = std::env::var("WEBSTRATA_BUILD") else { return };
    let mut run = RunOptions::new(Path::new(&input).with_extension("store").as_path());
    run.memory_max = MEMORY << 20;
    run.workers = 1;
    let report = build(&BuildOptions::new(run, vec![input.into()]), &Progress::default()).unwrap();
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak: usize = line.trim().trim_end_matches(" kB").parse().unwrap();
    let pages = report.counts.pages;
    println!("RESULT {} {pages} {} {}", peak >> 10, report.tally.damaged(), report.captures_read);
}

/// Builds an input in a separate process. Returns the peak in MiB, and the numbers of pages, damaged places and
/// captures.
fn built(input: &Path) -> Vec<usize> {
    let program = std::env::current_exe().unwrap();
    let mut command = Command::new(program);
    command.args(["in_a_process_of_its_own", "--exact", "--nocapture"]).env("WEBSTRATA_BUILD", input);
    let output = command.env("TMPDIR", input.parent().unwrap()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    let result = said.lines().find_map(|line| line.split_once("RESULT ")).unwrap_or_else(|| panic!("{said}"));
    result.1.split(' ').map(|number| number.parse().unwrap()).collect()
}

/// Writes captures with an excess in one format.
type Writes<'a> = &'a dyn Fn(&Path, Excess);

#[test]
fn every_format_is_read_within_its_memory() {
    let formats: [(&str, Writes<'_>); 9] = [
        ("JSON lines", &|path, excess| json_lines(path, captures(excess))),
        ("links file", &|path, excess| links_file(path, captures(excess))),
        ("AUT, CSV", &|path, excess| aut_csv(path, captures(excess))),
        ("WARC", &|path, excess| records(path, captures(excess), false)),
        ("ARC", &|path, excess| records(path, captures(excess), true)),
        ("Parquet", &|path, excess| parquet(path, captures(excess), false, excess, true)),
        ("Parquet, plain", &|path, excess| parquet(path, captures(excess), false, excess, false)),
        ("AUT, Parquet", &|path, excess| parquet(path, captures(excess), true, excess, true)),
        ("AUT, plain", &|path, excess| parquet(path, captures(excess), true, excess, false)),
    ];
    let mut over = Vec::new();
    for (name, write) in formats {
        // Only tables have dictionaries.
        let is_table = name.contains("Parquet") || name.ends_with("plain");
        for excess in ALL.into_iter().filter(|excess| is_table || !matches!(excess, Excess::Dictionary)) {
            let dir = tempfile::tempdir().unwrap();
            let input = dir.path().join("input");
            write(&input, excess);
            let bytes = fs::metadata(&input).unwrap().len();
            let [peak, pages, damaged, captures] = built(&input)[..] else { panic!("{name}") };
            let counts = format!("{pages} pages of {captures} captures, {damaged} damaged");
            println!("{name:<15} {excess:<14?} {bytes:>11} B {peak:>5} MiB, {counts}");
            if peak > MEMORY {
                over.push(format!("{name}, {excess:?}: {peak} MiB"));
            }
            // The sound captures before and after the excess.
            assert!(pages >= 20, "{name}, {excess:?}: {pages} pages");
        }
    }
    assert!(over.is_empty(), "{over:?}");
}
