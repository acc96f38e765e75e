//! `remove` as a guarantee. When the command ends well, no server, file or earlier epoch has the removed data: under
//! load, with a server that was down, and after kills at any moment.
//!
//! `WEBSTRATA_SEED` (1) is the seed of the moments of kills, and `WEBSTRATA_KILLS` (4) their number.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]
#![expect(clippy::print_stdout, reason = "what was measured")]

mod commands;
mod servers;

use commands::{command, run, succeeds};
use serde_json::Value;
use servers::{Server, get};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use webstrata_layers::{Store, check};
use webstrata_tests::crawls::Random;
use webstrata_tests::number;
use webstrata_tests::stores::row_bytes;

const HOST: &str = "secret.example";
const OPTIONS: &str = "--watch 0.2 --gossip 0.1 --settle 0.3 --replicas 2 --log info";

/// The captures of a month: pages of many hosts that link to the host to remove, and the pages of that host.
fn lines(month: u32) -> String {
    let line = |page: u32| {
        let host = if page.is_multiple_of(10) { HOST.to_owned() } else { format!("h{}.example", page % 17) };
        let (own, other) = (page % 7 * 10, (page + month) % 300);
        let links = format!(r#"["http://{HOST}/p{own}","http://h{}.example/p{other}"]"#, other % 17);
        format!(r#"{{"url":"http://{host}/p{page}","ts":"2008{month:02}01120000","links":{links}}}"#)
    };
    (0..300).map(|page| line(page) + "\n").collect()
}

/// A store of two rows.
fn built(dir: &Path) {
    for month in 1..=2 {
        fs::write(dir.join(format!("{month}.jsonl")), lines(month)).unwrap();
    }
    succeeds(dir, "build --out {}/store {}/1.jsonl --partition-urls 60");
    succeeds(dir, "update {}/store --no-merge {}/2.jsonl --partition-urls 60");
}

fn serve(dir: &Path, name: &str, join: &[SocketAddr]) -> Server {
    let joins: String = join.iter().map(|address| format!(" --join {address}")).collect();
    let line = format!("serve {{}}/store --listen 127.0.0.1:0 --name {name} --data {{}}/{name} {OPTIONS}{joins}");
    Server::start(&mut command(dir, &line), dir.join(format!("{name}.log")))
}

/// The rows whose images a server has.
fn rows_of_images(dir: &Path, name: &str) -> BTreeSet<u32> {
    let row = |entry: std::io::Result<fs::DirEntry>| {
        let path = entry.unwrap().path();
        let is_used = fs::read_dir(&path).is_ok_and(|mut files| files.next().is_some());
        is_used.then(|| path.file_name().unwrap().to_str().unwrap().parse().unwrap())
    };
    fs::read_dir(dir.join(name).join("cells")).unwrap().filter_map(row).collect()
}

fn rows_of_store(dir: &Path) -> BTreeSet<u32> {
    Store::open(dir.join("store")).unwrap().manifest().rows.iter().map(|row| row.row).collect()
}

/// The time for which caches may keep an answer: the header `cache-control`.
fn kept(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let field = text.lines().find_map(|line| line.strip_prefix("cache-control: "));
    field.unwrap_or_default().to_owned()
}

/// An answer that has removed data: the time of the question, the duration of the call, and the server.
type Shown = (Instant, Duration, usize);

#[test]
fn a_removal_is_over_on_every_server_when_the_command_ends() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    built(dir);
    let mut servers = vec![serve(dir, "one", &[])];
    for name in ["two", "three", "down"] {
        let join: Vec<SocketAddr> = servers.iter().map(|server| server.address).collect();
        servers.push(serve(dir, name, &join));
    }
    servers.iter().for_each(|server| drop(server.until(200)));
    let old_rows = rows_of_store(dir);
    assert!(!rows_of_images(dir, "down").is_disjoint(&old_rows), "the server that will be down has cells");
    drop(servers.pop());

    let addresses: Vec<SocketAddr> = servers.iter().map(|server| server.address).collect();
    let of_before = format!("/v1/links?url={HOST}&match=host&direction=in&epoch=2");
    let current = "/v1/links?url=h1.example&match=host&limit=500";
    for &address in &addresses {
        for path in [&of_before[..], current] {
            let (status, body) = get(address, path).unwrap();
            assert!(status == 200 && body.contains(HOST), "{path}: {status} {body}");
        }
    }
    assert_eq!([current, &of_before].map(|path| kept(addresses[0], path)), ["max-age=60"; 2]);
    let is_over = AtomicBool::new(false);
    let ask = |server: usize, path: &str| {
        let (mut shown, mut statuses) = (Vec::<Shown>::new(), BTreeMap::<u16, u64>::new());
        while !is_over.load(Ordering::Relaxed) {
            let begun = Instant::now();
            let (status, body) = get(addresses[server], path).unwrap_or_default();
            *statuses.entry(status).or_default() += 1;
            if status == 200 && body.contains(HOST) {
                shown.push((begun, begun.elapsed(), server));
            }
            thread::sleep(Duration::from_millis(5));
        }
        (shown, statuses)
    };
    let (begun, ended, asked) = thread::scope(|scope| {
        let asking: Vec<_> = (0..addresses.len())
            .flat_map(|server| [(server, current), (server, &of_before[..])])
            .map(|(server, path)| (path, scope.spawn(move || ask(server, path))))
            .collect();
        thread::sleep(Duration::from_millis(200));
        let begun = Instant::now();
        let line = format!("remove {{}}/store --host {HOST} --wait 60 --format json -w 1");
        let output = run(dir, &line);
        let ended = Instant::now();
        thread::sleep(Duration::from_secs(1));
        is_over.store(true, Ordering::Relaxed);
        assert!(output.status.success(), "{output:?}");
        let steps: Vec<Value> =
            output.stdout.split(|&byte| byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect();
        assert_eq!(steps[2]["still_open"], Value::Array(Vec::new()));
        assert_eq!((&steps[3]["rules"], &steps[3]["found"]), (&Value::from(1), &Value::Array(Vec::new())));
        println!("{} s after the merge no reader had an earlier epoch", steps[2]["seconds"]);
        (begun, ended, asking.into_iter().map(|(path, asking)| (path, asking.join().unwrap())).collect::<Vec<_>>())
    });
    let mut last = Duration::ZERO;
    for (path, (shown, statuses)) in asked {
        for (when, took, server) in shown {
            last = last.max((when + took).duration_since(begun));
            assert!(when < ended, "server {server} still answers {path}");
        }
        println!("{path}: {statuses:?}");
        let allowed: &[u16] = if path == current { &[200] } else { &[200, 400] };
        assert!(statuses.keys().all(|status| allowed.contains(status)), "{path}: {statuses:?}");
    }
    println!("removed in {:?}; the last answer with it was {last:?} after the start", ended.duration_since(begun));
    for &address in &addresses {
        let (status, body) = get(address, &of_before).unwrap();
        assert!(status == 400 && body.contains("EPOCH_RETIRED"), "{status} {body}");
    }
    assert_eq!([current, &of_before].map(|path| kept(addresses[0], path)), ["no-cache", "no-store"]);
    let rows = rows_of_store(dir);
    assert!(rows.is_disjoint(&old_rows));
    for name in ["one", "two", "three"] {
        assert!(rows_of_images(dir, name).is_subset(&rows), "{name}: {:?}", rows_of_images(dir, name));
    }
    // A server that was down keeps no image of an old cell, whatever cells the cluster gives to it.
    let server = serve(dir, "down", &addresses);
    server.until(200);
    assert!(rows_of_images(dir, "down").is_subset(&rows), "{:?}", rows_of_images(dir, "down"));
    let (status, body) = get(server.address, current).unwrap();
    assert!(status == 200 && !body.contains(HOST), "{status} {body}");
    assert_eq!(get(server.address, &of_before).unwrap().0, 400);
}

#[test]
fn a_server_whose_new_cells_do_not_come_answers_nothing_rather_than_what_was_taken_out() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    built(dir);
    let line = format!("serve {{}}/store --listen 127.0.0.1:0 --data {{}}/data {OPTIONS} --removal-grace 1");
    let server = Server::start(&mut command(dir, &line), dir.join("server.log"));
    server.until(200);
    // The server cannot write images.
    let cells = dir.join("data/cells");
    fs::rename(&cells, dir.join("data/aside")).unwrap();
    fs::write(&cells, "").unwrap();
    let output = run(dir, &format!("remove {{}}/store --host {HOST} --no-merge --wait 0.001 -w 1"));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.code() == Some(1) && text.contains("epoch 2 is still open: process "), "{text}");
    let ask = || get(server.address, "/v1/links?url=h1.example&match=host&limit=500").unwrap();
    let begun = Instant::now();
    while ask().0 == 200 {
        assert!(begun.elapsed() < Duration::from_secs(20), "it still answers {}", ask().1);
        thread::sleep(Duration::from_millis(20));
    }
    println!("the last answer of before came {:?} after the removal", begun.elapsed());
    assert!(ask().0 == 503 && get(server.address, "/readyz").unwrap().0 == 503, "{:?}", ask());
    fs::remove_file(&cells).unwrap();
    fs::rename(dir.join("data/aside"), &cells).unwrap();
    server.until(200);
    let (status, body) = ask();
    assert!(status == 200 && !body.contains(HOST), "{status} {body}");
    succeeds(dir, "remove {}/store --finish");
}

/// A process that has an epoch open is named, and the removal is not over.
#[test]
fn a_reader_that_stays_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    built(dir);
    let reader = Store::open(dir.join("store")).unwrap();
    let output = run(dir, &format!("remove {{}}/store --host {HOST} --wait 0.3 -w 1"));
    let text = String::from_utf8(output.stdout).unwrap();
    let named = format!("epoch 2 is still open: process {}", std::process::id());
    assert!(output.status.code() == Some(1) && text.contains(&named), "{text}");
    assert!(text.contains("rows/000001/url/part-"), "{text}");
    let output = run(dir, "diff {}/store --from 2");
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(1) && text.contains("is retired"), "nobody else gets it: {text}");
    drop(reader);
    let text = succeeds(dir, "remove {}/store --finish");
    assert!(
        text.contains("earlier epochs deleted: 2,") && text.contains("no file contains what 1 rule removed"),
        "{text}"
    );
    assert!(succeeds(dir, "check {}/store --removed").contains("no file contains"));
}

/// A removal waits for another writer.
/// A revisit in the period of a rule does not bring back links of a capture before the period, which may keep them.
#[test]
fn a_revisit_brings_back_nothing_that_is_removed_for_a_period() {
    let page = "http://a.example/";
    let line = |time: &str, says: &str| format!(r#"{{"url":"{page}","ts":"{time}",{says}}}"#) + "\n";
    let digest = "sha1:B2LTWWPUOYAH7UIPQ7ZUPQ4VMBSVC36A";
    let first = line("2006", &format!(r#""digest":"{digest}","links":["http://{HOST}/x","/y"]"#));
    let by_date = r#""revisit":{"refers_to_date":"2006"}"#;
    let by_digest = format!(r#""digest":"{digest}","revisit":{{}}"#);
    for says in [r#""status":304"#, by_date, &by_digest] {
        for first_comes_later in [false, true] {
            let dir = tempfile::tempdir().unwrap();
            let dir = dir.path();
            let write = |name: &str, text: &str| fs::write(dir.join(name), text).unwrap();
            write("other.jsonl", &(line("2005", r#""links":[]"#)));
            write("first.jsonl", &first);
            write("revisit.jsonl", &line("2008", says));
            write("both.jsonl", &(first.clone() + &line("2008", says)));
            let begin = if first_comes_later { "other" } else { "first" };
            succeeds(dir, &format!("build --out {{}}/store {{}}/{begin}.jsonl"));
            succeeds(dir, &format!("remove {{}}/store --host {HOST} --from 2007 --to 2009"));
            let then = if first_comes_later { "both" } else { "revisit" };
            let report = succeeds(dir, &format!("update {{}}/store --no-merge {{}}/{then}.jsonl"));
            assert!(report.contains("removed link"), "{says}: {report}");
            write("later.jsonl", &line("2010", r#""links":[]"#));
            for next in ["update {}/store --no-merge {}/later.jsonl", "merge {}/store --rows all"] {
                let spans = succeeds(dir, &format!("links {{}}/store {page} --lifespans"));
                let has = |link: &str, last: &str| spans.lines().any(|it| it.contains(link) && it.contains(last));
                assert!(has("/x", "2006-01-01T00:00:00Z  2006-01-01") && has("/y", "2006-01-01T00:00:00Z  2008-01-01"));
                succeeds(dir, next);
            }
        }
    }
}

/// With `--min-sources`, a link that is held while the rule is made is kept out when it is released.
#[test]
fn a_held_link_that_is_removed_for_a_period_is_kept_out_of_revisits_when_it_is_released() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let page = "http://a.example/";
    let update = |text: &str| {
        fs::write(dir.join("batch.jsonl"), text).unwrap();
        succeeds(dir, "update {}/store --no-merge {}/batch.jsonl");
    };
    let links = format!(r#"["http://{HOST}/x","{page}"]"#);
    fs::write(dir.join("first.jsonl"), format!(r#"{{"url":"{page}","ts":"2006","links":{links}}}"#)).unwrap();
    succeeds(dir, "build --out {}/store --min-sources 2 {}/first.jsonl");
    succeeds(dir, &format!("remove {{}}/store --host {HOST} --from 2007 --to 2009"));
    update(&format!(r#"{{"url":"{page}","ts":"2008","status":304}}"#));
    assert!(!succeeds(dir, &format!("links {{}}/store {page}")).contains(HOST));
    update(&format!(r#"{{"url":"http://b.example/","ts":"2006","links":{links}}}"#));
    for merge in ["check {}/store", "merge {}/store --rows all"] {
        let spans = succeeds(dir, &format!("links {{}}/store {page} --lifespans"));
        let has = |link: &str, times: &str| spans.lines().any(|it| it.contains(link) && it.starts_with(times));
        assert!(has("/x", "2006-01-01T00:00:00Z  2006-01-01"), "{spans}");
        assert!(has(&format!("  {page}"), "2006-01-01T00:00:00Z  2008-01-01"), "{spans}");
        succeeds(dir, merge);
    }
}

/// A capture in the period of a rule does not lend links that are taken out of it, in one update as in two.
#[test]
fn a_capture_lends_nothing_that_is_removed_for_its_period() {
    let digest = r#""digest":"sha1:B2LTWWPUOYAH7UIPQ7ZUPQ4VMBSVC36A""#;
    let original = format!(
        r#"{{"url":"http://a.example/","ts":"2008",{digest},"links":["http://{HOST}/x","http://b.example/y"]}}"#
    );
    let revisit = format!(
        r#"{{"url":"http://c.example/","ts":"2006",{digest},"revisit":{{"refers_to_target_uri":"http://a.example/"}}}}"#
    );
    for batches in [vec![format!("{original}\n{revisit}\n")], vec![original.clone(), revisit.clone()]] {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        fs::write(dir.join("other.jsonl"), r#"{"url":"http://z.example/","ts":"2005","links":[]}"#).unwrap();
        succeeds(dir, "build --out {}/store {}/other.jsonl");
        succeeds(dir, &format!("remove {{}}/store --host {HOST} --from 2007 --to 2009"));
        for batch in batches {
            fs::write(dir.join("batch.jsonl"), batch).unwrap();
            succeeds(dir, "update {}/store --no-merge {}/batch.jsonl");
        }
        assert_eq!(succeeds(dir, "links {}/store http://c.example/"), "http://b.example/y\n");
    }
}

#[test]
fn a_removal_waits_for_an_update() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    built(dir);
    fs::write(dir.join("3.jsonl"), lines(3)).unwrap();
    let update = command(dir, "update {}/store --no-merge {}/3.jsonl -w 1").spawn().unwrap();
    let removed = succeeds(dir, &format!("remove {{}}/store --host {HOST} --wait 60 -w 1"));
    let updated = update.wait_with_output().unwrap();
    // If the removal came first, the update leaves the host out, or says that it must run again.
    let is_right = updated.status.success() || updated.status.code() == Some(1);
    assert!(is_right && removed.contains("no file contains"), "{removed}");
    assert!(succeeds(dir, "check {}/store --removed").contains("no file contains"));
}

#[test]
fn a_removal_that_is_killed_goes_on_when_it_is_run_again() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    built(dir);
    let line = format!("remove {{}}/STORE --host {HOST} --wait 20 -w 1");
    let copy = |name: &str| {
        let copied = std::process::Command::new("cp").arg("-r").arg(dir.join("store")).arg(dir.join(name)).status();
        assert!(copied.unwrap().success());
    };
    copy("whole");
    let begun = Instant::now();
    succeeds(dir, &line.replace("STORE", "whole"));
    let (length, expected) = (begun.elapsed(), row_bytes(&dir.join("whole")));
    let mut random = Random(number("WEBSTRATA_SEED", 1));
    for kill in 0..number("WEBSTRATA_KILLS", 4) {
        let name = format!("killed-{kill}");
        copy(&name);
        let after = length.mul_f64(random.below(1000) as f64 / 1000.0);
        let mut child =
            command(dir, &line.replace("STORE", &name)).stdout(std::process::Stdio::null()).spawn().unwrap();
        thread::sleep(after);
        // The removal may be over.
        let _ = child.kill();
        child.wait().unwrap();
        let again =
            if random.once_in(2) { line.replace("STORE", &name) } else { format!("remove {{}}/{name} --finish") };
        succeeds(dir, &again);
        if again == line.replace("STORE", &name) {
            let text = succeeds(dir, &format!("check {{}}/{name} --removed"));
            assert!(text.contains("no file contains what 1 rule"), "{text}");
            let rows: BTreeMap<_, _> = row_bytes(&dir.join(&name));
            assert!(rows.values().eq(expected.values()), "after {after:?}: {text}");
        }
        assert!(check(dir.join(&name)).unwrap().is_sound());
        println!("killed after {after:?} of {length:?}");
    }
}
