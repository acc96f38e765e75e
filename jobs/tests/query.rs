//! `webstrata query --server` and other questions to servers, as processes: many questions at once or one after
//! another, servers that die meanwhile, and servers that do not exist.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod commands;
mod ports;
mod servers;

use commands::command;
use servers::Server;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Output, Stdio};
use std::time::{Duration, Instant};
use webstrata_tests::crawls::{Crawl, Random, Size, digits};

/// The output of a command, and its duration.
fn said(dir: &Path, words: &str) -> (Output, Duration) {
    let begun = Instant::now();
    (command(dir, words).output().unwrap(), begun.elapsed())
}

fn crawl() -> Crawl {
    Crawl::random(81, Size { pages: 60, captures: 500, links: 12 })
}

/// A directory with a store of two rows.
fn built(crawl: &Crawl) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let lines = crawl.json_lines();
    let (old, new) = lines.split_at(lines.len() / 2);
    for (name, lines) in [("old", old), ("new", new)] {
        fs::write(dir.path().join(format!("{name}.jsonl")), lines.join("\n")).unwrap();
    }
    for words in ["build --out {}/store {}/old.jsonl", "update --no-merge {}/store {}/new.jsonl"] {
        let output = said(dir.path(), words).0;
        assert!(output.status.success(), "{output:?}");
    }
    dir
}

/// A ready server of the store in a directory.
fn serve(dir: &Path) -> Server {
    let words = "serve {}/store --listen 127.0.0.1:0 --data {}/data --settle 0.1 --gossip 0.1";
    let server = Server::start(&mut command(dir, words), dir.join("log"));
    server.until(200);
    server
}

/// Starts `query` with a server. Returns the process and its pipes.
fn asking(dir: &Path, server: SocketAddr) -> (Child, ChildStdin, BufReader<ChildStdout>) {
    let mut command = command(dir, &format!("query --server {server}"));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (questions, answers) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    (child, questions, BufReader::new(answers))
}

fn next(answers: &mut impl BufRead) -> serde_json::Value {
    let mut line = String::new();
    answers.read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap()
}

/// Questions about a crawl, in windows of all kinds. Some lines are not questions, and some questions have no answer.
fn questions(crawl: &Crawl, count: u64) -> String {
    let (oracle, mut random) = (crawl.oracle(), Random(5));
    let (urls, times): (Vec<&str>, Vec<i64>) =
        (oracle.urls().into_iter().collect(), oracle.times().into_iter().collect());
    let mut text = String::new();
    for id in 0..count {
        // A third has no scheme.
        let url = *random.pick(&urls);
        let url = if random.once_in(3) { url.split_once("://").unwrap().1 } else { url };
        let mut time = || digits(*random.pick(&times));
        let (one, other) = (time(), time());
        let (from, to) = (one.clone().min(other.clone()), one.clone().max(other));
        let way = if random.once_in(2) { "in" } else { "out" };
        let links = format!(r#"{{"id":{id},"op":"links","url":"{url}","direction":"{way}""#);
        text += &match id % 11 {
            0 => format!(r#"{{"id":{id},"op":"captures","url":"{url}"}}"#),
            1 | 2 => format!(r#"{links}}}"#),
            3 => String::new(),
            4 => format!(r#"{links},"at":"soon"}}"#),
            5 => format!("question {id}"),
            6 => format!(r#"{{"id":{id},"op":"links","url":"http://nowhere.example/{id}"}}"#),
            7 | 8 => format!(r#"{links},"at":"{one}"}}"#),
            _ => format!(r#"{links},"from":"{from}","to":"{to}"}}"#),
        };
        text.push('\n');
    }
    text
}

#[test]
fn servers_answer_many_questions_as_the_store_does_in_the_same_order() {
    let crawl = crawl();
    let dir = built(&crawl);
    let path = dir.path().join("questions");
    fs::write(&path, questions(&crawl, 3000)).unwrap();
    let server = serve(dir.path());
    let mut posted = TcpStream::connect(&server.address).unwrap();
    let body = fs::read(&path).unwrap();
    write!(posted, "POST /v1/query HTTP/1.0\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n", body.len()).unwrap();
    posted.write_all(&body).unwrap();
    let mut answer = String::new();
    posted.read_to_string(&mut answer).unwrap();
    let (head, over_http) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.") && head.contains(" 200 "), "{head}");
    let [of_store, of_server] = ["{}/store", &format!("--server {}", server.address)].map(|source| {
        let mut command = command(dir.path(), &format!("query {source}"));
        let output = command.stdin(fs::File::open(&path).unwrap()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    });
    assert_eq!(of_store.lines().count(), 3000 - 3000_usize.div_ceil(11), "empty lines have no answer");
    for (at, (right, answer)) in of_store.lines().zip(of_server.lines()).enumerate() {
        assert_eq!(right, answer, "answer {at}");
    }
    assert_eq!(of_store.len(), of_server.len());
    for (right, answer) in of_store.lines().zip(over_http.lines()) {
        assert_eq!(right, answer, "over HTTP");
    }
    assert_eq!(of_store.len(), over_http.len());
}

#[test]
fn a_line_that_is_too_long_has_an_error_and_the_next_line_an_answer() {
    let dir = built(&crawl());
    let long = format!(r#"{{"op":"links","url":"http://a.org/{}"}}"#, "x".repeat(65_536));
    let path = dir.path().join("questions");
    fs::write(&path, format!("{long}\n{{\"op\":\"captures\",\"url\":\"http://nowhere.example/\"}}\n{long}")).unwrap();
    let server = serve(dir.path());
    for source in ["{}/store", &format!("--server {}", server.address)] {
        let mut command = command(dir.path(), &format!("query {source}"));
        let output = command.stdin(fs::File::open(&path).unwrap()).output().unwrap();
        let answers: Vec<serde_json::Value> =
            String::from_utf8(output.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let told: Vec<_> = answers.iter().map(|answer| (&answer["line"], answer["error"].as_str().unwrap())).collect();
        let long = "the line is longer than 65536 bytes";
        assert_eq!(told, [(&1.into(), long), (&().into(), "url not in store"), (&3.into(), long)]);
    }
}

#[test]
fn a_program_can_ask_servers_one_question_after_another() {
    let dir = built(&crawl());
    let server = serve(dir.path());
    let (mut child, mut ask, mut answers) = asking(dir.path(), server.address);
    let question = |id: u32| format!(r#"{{"id":{id},"op":"captures","url":"http://nowhere.example/"}}"#);
    // The program and its pipe stay open. Each answer comes before the next question, even if an empty line or half of
    // the next question has already arrived.
    ask.write_all(question(0).as_bytes()).unwrap();
    for id in 0..20 {
        let after = question(id + 1);
        let (begin, rest) = after.split_at(20);
        ask.write_all(format!("\n\n{begin}").as_bytes()).unwrap();
        assert_eq!(next(&mut answers)["id"], id);
        ask.write_all(rest.as_bytes()).unwrap();
    }
    // Many questions at once, and then one.
    let many: String = (21..2000).map(|id| format!("\n{}", question(id))).collect();
    let writer = std::thread::spawn(move || {
        ask.write_all(many.as_bytes()).unwrap();
        ask
    });
    for id in 20..1999 {
        assert_eq!(next(&mut answers)["id"], id);
    }
    // The last line needs no line break.
    drop(writer.join().unwrap());
    assert_eq!(next(&mut answers)["id"], 1999);
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_server_that_dies_ends_the_run_after_the_answers_before() {
    let dir = built(&crawl());
    let server = serve(dir.path());
    let (mut child, mut ask, mut answers) = asking(dir.path(), server.address);
    for id in 0..3 {
        writeln!(ask, r#"{{"id":{id},"op":"captures","url":"http://nowhere.example/"}}"#).unwrap();
        assert_eq!(next(&mut answers)["id"], id);
    }
    drop(server);
    for id in 3..300 {
        writeln!(ask, r#"{{"id":{id},"op":"captures","url":"http://nowhere.example/"}}"#).unwrap();
    }
    let mut rest = String::new();
    answers.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "", "nobody knows these answers");
    let mut error = String::new();
    child.stderr.take().unwrap().read_to_string(&mut error).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1));
    assert!(error.starts_with("error: ") && error.lines().count() == 1, "{error}");
}

#[test]
fn a_server_that_is_not_there_is_named_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let [one, other] = ports::addresses(2).try_into().unwrap();
    let questions = [
        format!("links --server {one} http://a.example/"),
        format!("query --server {one} --server {other}"),
        format!("captures --server http://{one}/ http://a.example/"),
    ];
    for words in questions {
        let (output, took) = said(dir.path(), &words);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{words}: {error}");
        assert!(error.contains(&one) && error.contains("refused"), "{words}: {error}");
        assert_eq!(error.contains(&other), words.contains(&other), "{words}: {error}");
        assert!(took < Duration::from_secs(5), "{words}: {took:?}");
    }
    for (address, told) in [
        ("nowhere", "HOST:PORT"),
        ("ftp://127.0.0.1:7400", "HOST:PORT"),
        ("http://127.0.0.1:7400/v1", "HOST:PORT"),
        ("https://127.0.0.1:7400", "--tls-ca"),
    ] {
        let (output, took) = said(dir.path(), &format!("links --server {address} http://a.example/"));
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{address}: {error}");
        assert!(error.contains(&format!("{address}: ")) && error.contains(told), "{address}: {error}");
        assert!(took < Duration::from_secs(5), "{address}: {took:?}");
    }
}

#[test]
fn the_address_of_a_server_may_be_written_as_a_url() {
    let crawl = crawl();
    let dir = built(&crawl);
    let server = serve(dir.path());
    let url = crawl.oracle().urls().first().unwrap().to_string();
    for address in
        [server.address.to_string(), format!("http://{}", server.address), format!("http://{}/", server.address)]
    {
        let output = said(dir.path(), &format!("links --server {address} {url}")).0;
        assert!(output.status.success(), "{address}: {output:?}");
    }
}
