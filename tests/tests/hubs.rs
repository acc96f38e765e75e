//! Questions about a hub take memory in proportion to their answers, however many pages link to the hub, and free the
//! memory afterwards.
//!
//! The hub has 100,000 pages in one or two rows, each page on its own host. `WEBSTRATA_HUB=1000000` makes the hub
//! larger; the bounds stay the same. `tests/interop/hubs.py` measures the process of a server.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]
#![expect(clippy::print_stdout, reason = "who measures asks for the figures")]

#[path = "hostile/counting.rs"]
mod counting;

use std::fmt::Write;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use counting::{Counting, LIVE, PEAK};
use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use webstrata_engine::Progress;
use webstrata_layers::format_digits;
use webstrata_pipeline::build;
use webstrata_serve::guard::limits::Limits;
use webstrata_serve::server::ServerOptions;
use webstrata_tests::number;
use webstrata_tests::served::Served;
use webstrata_tests::stores::options;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Each test holds this lock, because the allocator counts the allocations of all tests.
static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

const HUB: &str = "http%3A%2F%2Fhub.test%2F";
/// The maximum number of bytes that a call may allocate, for a hub of any size.
const CALL_BYTES: isize = 24 << 20;
/// The maximum number of bytes that each thread of the process keeps for its next question.
const KEPT_BYTES: isize = 1 << 20;

/// JSON lines of pages, each captured twice. A tenth of the pages has lost the link in the second capture.
fn crawl(pages: impl Iterator<Item = u64>) -> String {
    let mut lines = String::new();
    for number in pages {
        let hour = i64::try_from(number % 5000).unwrap() * 3600;
        let left = if number % 10 == 0 { "" } else { "\"http://hub.test/\"" };
        for (time, links) in [(1_100_000_000 + hour, "\"http://hub.test/\""), (1_140_000_000 + hour, left)] {
            let ts = format_digits(time);
            writeln!(lines, "{{\"url\":\"http://h{number:07}.example/\",\"ts\":\"{ts}\",\"links\":[{links}]}}")
                .unwrap();
        }
    }
    lines
}

/// The end of the hub: a capture in which it is there, and then a failure.
const END: &str = r#"{"url":"http://hub.test/","ts":"20080601","links":[]}
{"url":"http://hub.test/","ts":"20090601","status":404}
"#;

/// Builds a store of a hub that is gone in the end. The hosts of several rows interleave.
fn store(directory: &Path, pages: u64, rows: u64) -> std::path::PathBuf {
    let store = directory.join("store");
    for row in 0..rows {
        let input = directory.join(format!("{row}.jsonl"));
        let lines = crawl((0..pages).filter(|number| number % 7 % rows == row));
        std::fs::write(&input, lines + if row + 1 == rows { END } else { "" }).unwrap();
        let mut options = options(&store, vec![input]);
        options.update = row > 0;
        build(&options, &Progress::default()).unwrap();
    }
    store
}

/// The bytes that stay allocated while the server is idle: the minimum over a while.
async fn live() -> isize {
    let mut least = isize::MAX;
    for _ in 0..20 {
        tokio::time::sleep(Duration::from_millis(10)).await;
        least = least.min(LIVE.load(Ordering::Relaxed));
    }
    least
}

/// The number of threads of this process, or 4 where the system does not list them.
fn threads() -> isize {
    std::fs::read_dir("/proc/self/task").map_or(4, |threads| threads.count().cast_signed())
}

/// The answers of concurrent calls. Checks the memory that the calls allocate.
async fn asked(served: &Served, path: &str, at_once: usize) -> Vec<Value> {
    let before = live().await;
    PEAK.store(before, Ordering::Relaxed);
    let begun = Instant::now();
    let answers = join_all((0..at_once).map(|_| served.get(path))).await;
    let (took, most) = (begun.elapsed(), PEAK.load(Ordering::Relaxed) - before);
    let answer_bytes: usize = answers.iter().map(|answer| answer.to_string().len()).sum();
    let kept = live().await - before - 32 * answer_bytes.cast_signed();
    println!("{path}: {at_once} in {took:.2?}, {} KiB at most, {} KiB kept", most >> 10, kept >> 10);
    let most_allowed = at_once.cast_signed() * CALL_BYTES + 64 * answer_bytes.cast_signed();
    assert!(most <= most_allowed, "{path}: {most} bytes for {at_once} calls");
    assert!(kept <= threads() * KEPT_BYTES, "{path}: {kept} bytes stay in {} threads", threads());
    answers
}

/// Serves a store with the usual batches, answers of at most so many bytes, and this memory for all calls.
async fn serve(store: &Path, answer_bytes: usize, memory: usize) -> Served {
    let limits = |options: &mut ServerOptions| {
        options.limits.batch = Limits::default().batch;
        options.limits.memory = memory;
    };
    let served = Served::start_with(store, answer_bytes, limits).await;
    // The first call makes what later calls reuse.
    served.get(&format!("/v1/backlinks?url={HUB}&limit=1")).await;
    served
}

/// Asks for backlinks of the hub, and checks the answers and their memory.
async fn asked_for_backlinks(served: &Served, pages: u64, at_once: usize) {
    let sum = |answer: &Value, field: &str| {
        answer[field].as_array().unwrap().iter().map(|count| count.as_u64().unwrap()).sum::<u64>()
    };
    for rest in [
        "unit=page&limit=200&order=last",
        "unit=host&limit=0&period=year",
        "unit=domain&event=lost&from=2006&limit=1000&order=key",
    ] {
        for answer in asked(served, &format!("/v1/backlinks?url={HUB}&{rest}"), at_once).await {
            assert_eq!(answer["pages"], pages);
            assert_eq!((sum(&answer, "found"), sum(&answer, "lost")), (pages, pages.div_ceil(10)));
            let selected = if rest.contains("lost") { pages.div_ceil(10) } else { pages };
            assert_eq!(answer["rows_selected"], selected);
            assert_eq!(answer["hosts"].as_array().unwrap().len(), 50);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn backlinks_in_one_row_take_no_more_memory() {
    let _alone = ALONE.lock().await;
    let (pages, directory) = (number("WEBSTRATA_HUB", 100_000), tempfile::tempdir().unwrap());
    let store = store(directory.path(), pages, 1);
    let served = serve(&store, 16 << 20, Limits::default().memory).await;
    for at_once in [1, 4] {
        asked_for_backlinks(&served, pages, at_once).await;
    }
    // A call that has less memory than batches of the usual size take, which is 13 MiB here, asks for smaller ones.
    let little = serve(&store, 8 << 20, 32 << 20).await;
    let before = live().await;
    PEAK.store(before, Ordering::Relaxed);
    assert_eq!(little.get(&format!("/v1/backlinks?url={HUB}&limit=200")).await["pages"], pages);
    let most = PEAK.load(Ordering::Relaxed) - before;
    assert!(most <= 11 << 20, "{most} bytes");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_about_a_hub_take_the_memory_of_their_answers() {
    let _alone = ALONE.lock().await;
    let (pages, directory) = (number("WEBSTRATA_HUB", 100_000), tempfile::tempdir().unwrap());
    let served = serve(&store(directory.path(), pages, 2), 16 << 20, Limits::default().memory).await;
    for at_once in [1, 4] {
        asked_for_backlinks(&served, pages, at_once).await;
        for path in [
            format!("/v1/links?url={HUB}&direction=in&limit=1000"),
            format!("/v1/links?url={HUB}&direction=in&count=true"),
            format!("/v1/links?url={HUB}&direction=in&sample=10"),
            format!("/v1/links?url={HUB}&direction=in&at=2005-06&limit=1000"),
            format!("/v1/lifespans?url={HUB}&direction=in&limit=1000"),
            format!("/v1/first?url={HUB}"),
            format!("/v1/neighbourhood?url={HUB}&limit=100"),
            format!("/v1/ways?url=http%3A%2F%2Fh0000001.example%2F&target={HUB}"),
        ] {
            asked(&served, &path, at_once).await;
        }
        for rest in ["&linkers=100", "&linkers=0&order=most"] {
            let path = format!("/v1/deaths?url={HUB}&match=exact{rest}");
            for answer in asked(&served, &path, at_once).await {
                assert_eq!((&answer["rows_total"], answer["rows"][0]["status"].as_u64()), (&json!(1), Some(404)));
                assert_eq!(answer["rows"][0]["linking"], pages - pages.div_ceil(10));
            }
        }
    }
    // The parts of the table, one after the other, are the whole table.
    let path = format!("/v1/backlinks?url={HUB}&order=most&limit=10000&event=lost&from=2006");
    let (rows, parts) = served.all(&path, "rows").await;
    assert_eq!((rows.len() as u64, parts as u64), (pages.div_ceil(10), pages.div_ceil(10).div_ceil(10_000)));
    let uids: std::collections::BTreeSet<u64> = rows.iter().map(|row| row["uid"].as_u64().unwrap()).collect();
    assert_eq!(uids.len(), rows.len());
}

/// Reads the answer to a call over a connection, and keeps nothing of it. Returns its status and its bytes.
async fn read(served: &Served, path: &str) -> (u16, u64) {
    let mut stream = TcpStream::connect(served.server.address()).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let (mut room, mut bytes, mut status) = (vec![0; 1 << 14], 0, 0);
    loop {
        let count = stream.read(&mut room).await.unwrap();
        if bytes == 0 {
            let head = String::from_utf8_lossy(&room[..count]).into_owned();
            status = head.split(' ').nth(1).unwrap().parse().unwrap();
        }
        bytes += count as u64;
        if count == 0 {
            return (status, bytes);
        }
    }
}

/// The same, repeated while the server has no memory for the call.
async fn read_at_last(served: &Served, path: &str) -> u64 {
    loop {
        match read(served, path).await {
            (200, bytes) => return bytes,
            (status, _) => assert_eq!(status, 429, "{path}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_of_many_calls_stay_below_the_memory_of_all_calls() {
    let _alone = ALONE.lock().await;
    let (pages, directory) = (number("WEBSTRATA_HUB", 40_000), tempfile::tempdir().unwrap());
    let store = store(directory.path(), pages, 1);
    let often = directory.path().join("often.jsonl");
    let captures = (0..i64::try_from(pages).unwrap()).map(|number| {
        let ts = format_digits(1_100_000_000 + 60 * number);
        format!("{{\"url\":\"http://often.test/\",\"ts\":\"{ts}\",\"links\":[]}}\n")
    });
    std::fs::write(&often, captures.collect::<String>()).unwrap();
    let mut options = options(&store, vec![often]);
    options.update = true;
    build(&options, &Progress::default()).unwrap();
    let (calls, memory) = (20, 256 << 20);
    let served = serve(&store, 16 << 20, memory).await;
    for path in [
        format!("/v1/links?url={HUB}&direction=in&limit=0"),
        format!("/v1/links?url={HUB}&direction=in&limit=0&match=host"),
        format!("/v1/lifespans?url={HUB}&direction=in&limit=0"),
        "/timemap/json/http://often.test/".to_owned(),
        "/timemap/link/http://often.test/".to_owned(),
        "/v1/captures?url=often.test&limit=0".to_owned(),
        "/cdx?url=often.test".to_owned(),
        "/cdx?url=test&matchType=domain".to_owned(),
    ] {
        let whole = read_at_last(&served, &path).await;
        assert!(whole > 1 << 20, "{path}: {whole} bytes");
        let before = live().await;
        PEAK.store(before, Ordering::Relaxed);
        let answers = join_all((0..calls).map(|_| read_at_last(&served, &path))).await;
        let most = PEAK.load(Ordering::Relaxed) - before;
        println!("{path}: {} KiB each, {} KiB at most for {calls} calls", whole >> 10, most >> 10);
        assert!(answers.into_iter().all(|bytes| bytes == whole), "{path}");
        // What each call has without a charge is a megabyte.
        assert!(most < (memory + (calls << 20)).cast_signed(), "{path}: {most} bytes");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_never_fits_is_refused_for_good() {
    let _alone = ALONE.lock().await;
    let directory = tempfile::tempdir().unwrap();
    let small = |options: &mut ServerOptions| {
        options.limits.batch = Limits::default().batch;
        options.limits.memory = 4 << 20;
    };
    let served = Served::start_with(&store(directory.path(), 100_000, 2), 16 << 20, small).await;
    let (status, reason, _) = served.refused(&format!("/v1/backlinks?url={HUB}")).await;
    assert_eq!((status, reason.as_str()), (413, "ANSWER_TOO_LARGE"));
    // Smaller calls are answered.
    assert_eq!(served.get("/v1/links?url=http%3A%2F%2Fh0000001.example%2F").await["links"][0], "http://hub.test/");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deaths_of_many_pages_take_the_memory_of_their_answers() {
    let _alone = ALONE.lock().await;
    let pages = number("WEBSTRATA_HUB", 100_000);
    let directory = tempfile::tempdir().unwrap();
    let mut lines = String::new();
    for number in 0..pages {
        let url = format!("http://h{:04}.example/{number}", number % 1000);
        writeln!(lines, "{{\"url\":\"{url}\",\"ts\":\"2008\",\"links\":[\"http://h0000.example/0\"]}}").unwrap();
        writeln!(lines, "{{\"url\":\"{url}\",\"ts\":\"{}\",\"status\":404}}", 2009 + number % 5).unwrap();
    }
    let (input, store) = (directory.path().join("dead.jsonl"), directory.path().join("store"));
    std::fs::write(&input, lines).unwrap();
    build(&options(&store, vec![input]), &Progress::default()).unwrap();
    let usual = |options: &mut ServerOptions| options.limits.batch = Limits::default().batch;
    let served = Served::start_with(&store, 16 << 20, usual).await;
    served.get("/v1/deaths?limit=1").await;
    for at_once in [1, 4] {
        for order in ["last", "most", "key"] {
            for answer in asked(&served, &format!("/v1/deaths?limit=1000&linkers=3&order={order}"), at_once).await {
                assert_eq!((&answer["rows_total"], &answer["rows_selected"]), (&json!(pages), &json!(pages)));
                assert_eq!(answer["rows"].as_array().unwrap().len(), 1000);
                assert_eq!(answer["gone"].as_array().unwrap().last(), Some(&json!(pages)));
            }
        }
    }
    let (rows, parts) = served.all("/v1/deaths?limit=10000&from=2010&to=2010", "rows").await;
    assert_eq!((rows.len() as u64, parts as u64), (pages / 5, (pages / 5).div_ceil(10_000)));
}
