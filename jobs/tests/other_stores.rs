//! Stores that another store replaces: under a server, in a cluster, under a job that resumes, and for an update with
//! other options. An answer comes from one store, or is an error that says what happened. It never comes from both
//! stores.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod servers;

use serde_json::Value;
use servers::Server;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const SOON: Duration = Duration::from_secs(30);

fn webstrata(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_webstrata"));
    command.args(args).stdin(Stdio::null());
    command
}

fn run(args: &[&str]) -> Output {
    webstrata(args).output().unwrap()
}

fn succeeds(args: &[&str]) -> String {
    let output = run(args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Asserts that a command fails, and returns its standard error.
fn fails(args: &[&str]) -> String {
    let output = run(args);
    assert_eq!(output.status.code(), Some(1), "{args:?}: {}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stderr).unwrap()
}

/// Writes a crawl of pages that link to their `step`-th neighbours.
fn crawl(dir: &Path, name: &str, step: usize) -> PathBuf {
    let path = dir.join(name);
    let mut file = File::create(&path).unwrap();
    for page in 0..200 {
        let links: Vec<String> =
            (1..5).map(|link| format!("\"http://p{}.example/\"", (page + link * step) % 200)).collect();
        let links = links.join(",");
        writeln!(file, "{{\"url\":\"http://p{page}.example/\",\"ts\":\"20200101000000\",\"links\":[{links}]}}")
            .unwrap();
    }
    path
}

fn build(store: &Path, input: &Path) {
    succeeds(&["build", "-w", "1", "--out", store.to_str().unwrap(), input.to_str().unwrap()]);
}

/// The right links of a page, in order of URLs.
fn links_of(page: usize, step: usize) -> Vec<String> {
    let mut links: Vec<String> =
        (1..5).map(|link| format!("http://p{}.example/", (page + link * step) % 200)).collect();
    links.sort_unstable();
    links
}

/// Starts a server of a store under a name.
fn serve(dir: &Path, name: &str, store: &Path, args: &[&str]) -> Server {
    let data = dir.join(format!("data-{name}"));
    let mut command = webstrata(&["serve", store.to_str().unwrap(), "--data", data.to_str().unwrap()]);
    command.args(["--name", name, "--watch", "0.2", "--gossip", "0.1", "--settle", "0.5"]).args(args);
    if !args.contains(&"--listen") {
        command.args(["--listen", "127.0.0.1:0"]);
    }
    Server::start(&mut command, dir.join(format!("{name}.log")))
}

/// The links of a page from a server; `None` if the server does not answer.
fn links_from(server: &Server, page: usize) -> Option<Vec<String>> {
    let (status, body) = server.get(&format!("/v1/links?url=http://p{page}.example/"))?;
    let body: Value = serde_json::from_str(&body).ok()?;
    let links = body["links"].as_array().filter(|_| status == 200)?;
    let mut links: Vec<String> =
        links.iter().map(|link| link.as_str().or_else(|| link["url"].as_str()).unwrap().to_owned()).collect();
    links.sort_unstable();
    Some(links)
}

#[test]
fn a_server_whose_store_is_built_anew_answers_of_the_old_one_and_ends() {
    let dir = tempfile::tempdir().unwrap();
    let (store, first, second) =
        (dir.path().join("store"), crawl(dir.path(), "1.jsonl", 1), crawl(dir.path(), "7.jsonl", 7));
    build(&store, &first);
    let mut server = serve(dir.path(), "one", &store, &[]);
    server.until(200);
    assert_eq!(links_from(&server, 3), Some(links_of(3, 1)));
    // A program that keeps asking.
    let mut asking = webstrata(&["query", "--server", &server.address.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (mut questions, mut answers) = (asking.stdin.take().unwrap(), BufReader::new(asking.stdout.take().unwrap()));
    let mut ask = |page: usize| {
        writeln!(questions, "{{\"op\":\"links\",\"direction\":\"out\",\"url\":\"http://p{page}.example/\"}}").ok()?;
        let mut line = String::new();
        answers.read_line(&mut line).ok()?;
        serde_json::from_str::<Value>(&line).ok()
    };
    let known = ask(3).unwrap();

    fs::remove_dir_all(&store).unwrap();
    build(&store, &second);
    let begun = Instant::now();
    let status = loop {
        for page in 0..20 {
            let links = links_from(&server, page);
            assert!(links.as_ref().is_none_or(|links| *links == links_of(page, 1)), "{page}: {links:?}");
        }
        if let Some(status) = server.child.try_wait().unwrap() {
            break status;
        }
        assert!(begun.elapsed() < SOON, "it goes on: {}", server.said());
    };
    assert_eq!(status.code(), Some(1));
    assert!(server.said().contains("is another store now"), "{}", server.said());

    let address = server.address.to_string();
    let again = serve(dir.path(), "one", &store, &["--listen", &address]);
    again.until(200);
    assert_eq!(links_from(&again, 3), Some(links_of(3, 7)));
    // A client that knows the old store gets an error, and nothing from the new store.
    if let Some(answer) = ask(3) {
        assert!(answer == known || answer.get("error").is_some(), "{answer}");
    }
    let _ = asking.kill();
    asking.wait().unwrap();
}

#[test]
fn a_server_with_another_token_is_not_ready_and_says_why() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    build(&store, &crawl(dir.path(), "1.jsonl", 1));
    let token = |name: &str| {
        let path = dir.path().join(name);
        fs::write(&path, format!("{name}-0123456789abcdef0123456789\n")).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let first = serve(dir.path(), "first", &store, &["--tokens", &token("right")]);
    first.until(200);
    let second =
        serve(dir.path(), "second", &store, &["--tokens", &token("wrong"), "--join", &first.address.to_string()]);
    std::thread::sleep(Duration::from_secs(3));
    let why = second.until(503);
    assert!(why.contains("token"), "{why}");
    assert!(second.said().contains("token"), "{}", second.said());
    let third =
        serve(dir.path(), "third", &store, &["--tokens", &token("right"), "--join", &first.address.to_string()]);
    third.until(200);
}

/// Starts a build and kills it when a stage has begun.
fn killed(args: &[&str], stage: &str) {
    let mut child =
        webstrata(args).args(["--log", "info"]).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let begun = lines.map_while(Result::ok).any(|line| line.contains("stage begins") && line.contains(stage));
    assert!(begun, "it did not come to {stage}");
    child.kill().unwrap();
    child.wait().unwrap();
}

fn copy(from: &Path, to: &Path) {
    assert!(Command::new("cp").arg("-r").arg(from).arg(to).status().unwrap().success());
}

#[test]
fn a_job_goes_on_or_begins_anew_when_its_store_was_put_back_from_a_copy() {
    let dir = tempfile::tempdir().unwrap();
    let (store, spill) = (dir.path().join("store"), dir.path().join("spill"));
    fs::create_dir(&spill).unwrap();
    let backup = dir.path().join("backup");
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let update = |input: &str| {
        let mut args = vec!["update".to_owned(), text(&store), input.to_owned(), "--no-merge".to_owned()];
        args.extend(["-w", "1", "--spill"].map(str::to_owned));
        args.push(text(&spill));
        args
    };
    let words = |args: &[String]| args.iter().map(String::as_str).collect::<Vec<_>>().join(" ");
    let large = dir.path().join("large.jsonl");
    succeeds(&["generate", "uk:occurrences=400000,seed=3", "--out", large.to_str().unwrap()]);
    build(&store, &crawl(dir.path(), "1.jsonl", 1));
    copy(&store, &backup);
    let args = update(&text(&large));
    let line = words(&args);
    let args: Vec<&str> = line.split(' ').collect();
    // By then, the row of the update has files that the copy does not have.
    killed(&args, "\"inlinks\"");
    assert!(store.join("rows/000002").exists());
    fs::remove_dir_all(&store).unwrap();
    copy(&backup, &store);
    succeeds(&args);
    succeeds(&["check", store.to_str().unwrap()]);
    // A store with another history, in which the epoch has the same number.
    let expected = succeeds(&["info", store.to_str().unwrap()]);
    fs::remove_dir_all(&store).unwrap();
    copy(&backup, &store);
    killed(&args, "\"inlinks\"");
    fs::remove_dir_all(&store).unwrap();
    build(&store, &crawl(dir.path(), "7.jsonl", 7));
    succeeds(&args);
    succeeds(&["check", store.to_str().unwrap()]);
    assert_ne!(succeeds(&["info", store.to_str().unwrap()]), expected);
    let links = succeeds(&["links", store.to_str().unwrap(), "http://p3.example/"]);
    assert!(links_of(3, 7).iter().all(|link| links.contains(link)), "{links}");
}

#[test]
fn an_update_takes_the_options_of_its_store_and_refuses_others() {
    let dir = tempfile::tempdir().unwrap();
    let line =
        |ts: &str, links: &str| format!("{{\"url\":\"http://a.example/\",\"ts\":\"{ts}\",\"links\":[{links}]}}\n");
    let crawl = |name: &str, text: String| {
        let path = dir.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (known, rare, new) = ("\"http://known.example/\"", "\"http://rare.example/\"", "\"http://new.example/\"");
    let mut first = line("20200101000000", &format!("{known},{rare}"));
    (0..3).for_each(|page| {
        first += &format!("{{\"url\":\"http://p{page}.example/\",\"ts\":\"20200101000000\",\"links\":[{known}]}}\n")
    });
    let store = dir.path().join("store");
    let store = store.to_str().unwrap();
    succeeds(&[
        "build",
        "-w",
        "1",
        "--out",
        store,
        "--min-sources",
        "3",
        "--links",
        "redirects",
        &crawl("1.jsonl", first),
    ]);
    let second = crawl("2.jsonl", line("20200201000000", &format!("{known},{new}")));
    for (option, value, has) in [("--links", "embeds", "redirects"), ("--min-sources", "2", "\"3\"")] {
        let error = fails(&["update", store, &second, option, value]);
        assert!(error.contains(option) && error.contains(value) && error.contains(has), "{error}");
    }
    succeeds(&["update", "-w", "1", "--no-merge", store, &second]);
    // This batch has only one link to known.example. The store already has known.example, so `--min-sources` keeps the
    // link.
    let links = succeeds(&["links", store, "http://a.example/", "--at", "20200301"]);
    assert!(links.contains("known.example") && !links.contains("rare") && !links.contains("new"), "{links}");
    succeeds(&["merge", "-w", "1", store, "--rows", "all"]);
    succeeds(&["check", store]);
    let log = succeeds(&["log", store, "--format", "json"]);
    let newest: Value = serde_json::from_str(log.lines().next().unwrap()).unwrap();
    let options = &newest["provenance"]["options"];
    assert_eq!((&options["links"], &options["min-sources"]), (&"anchors,redirects".into(), &"3".into()), "{newest}");
    let inputs: Vec<&str> = newest["provenance"]["inputs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["path"].as_str().unwrap())
        .collect();
    let names = inputs.iter().flat_map(|path| {
        let text = fs::read_to_string(dir.path().join("store").join(path)).unwrap();
        text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).collect::<Vec<_>>()
    });
    let shown: Vec<(bool, u64)> = names
        .map(|input| (input["name"].as_str().unwrap().ends_with(".jsonl"), input["captures"].as_u64().unwrap()))
        .collect();
    assert_eq!(shown, [(true, 4), (true, 1)]);
}
