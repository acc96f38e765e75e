//! `webstrata serve` as those who run it meet it: what it says at the start, what it does about signals.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

fn program(dir: &Path, words: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_webstrata"));
    command.args(words.split(' ').map(|word| word.replace("DIR", &dir.display().to_string())));
    command.env("TMPDIR", dir).env("XDG_CACHE_HOME", dir).stdin(Stdio::null());
    command
}

/// A store of one page.
fn store() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let page = r#"{"url":"http://a.example/","ts":"20200101000000","links":["http://b.example/"]}"#;
    fs::write(dir.path().join("h.jsonl"), page).unwrap();
    let built = program(dir.path(), "build DIR/h.jsonl --out DIR/store -w 1").output().unwrap();
    assert!(built.status.success(), "{built:?}");
    dir
}

/// A server that is ended with the test.
struct Server {
    child: Child,
    err: BufReader<ChildStderr>,
    /// Where it listens, and its port for those who look after it.
    at: SocketAddr,
    admin: SocketAddr,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    fn start(dir: &Path, words: &str) -> Self {
        let words = format!("serve DIR/store --data DIR/data --admin 127.0.0.1:0 {words}");
        let mut child = program(dir, &words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut address = |before: &str| {
            let line = out.next().expect("it goes on").unwrap();
            line.strip_prefix(before).unwrap_or_else(|| panic!("{line}")).parse().unwrap()
        };
        let (at, admin) = (address("listening on "), address("admin on "));
        assert!(out.next().unwrap().unwrap().starts_with("ready: "));
        let err = BufReader::new(child.stderr.take().unwrap());
        Self { child, err, at, admin }
    }

    fn signal(&self, signal: &str) {
        let status = Command::new("kill").arg(format!("-{signal}")).arg(self.child.id().to_string()).status().unwrap();
        assert!(status.success());
    }

    /// The next line that it says.
    fn said(&mut self) -> String {
        let mut line = String::new();
        assert!(self.err.read_line(&mut line).unwrap() > 0, "it has ended");
        line
    }
}

fn get(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nhost: a.example\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn refused(dir: &Path, words: &str) -> (Option<i32>, String) {
    let Output { status, stderr, .. } = program(dir, &format!("serve DIR/store {words}")).output().unwrap();
    (status.code(), String::from_utf8(stderr).unwrap())
}

#[test]
fn hangups_read_tokens_again_and_end_nothing() {
    let dir = store();
    fs::write(dir.path().join("tokens"), "first\n").unwrap();
    let mut server = Server::start(dir.path(), "--listen 127.0.0.1:0 --tokens DIR/tokens --log error");
    assert!(get(server.at, "/metrics").starts_with("HTTP/1.1 401"));
    assert!(get(server.admin, "/metrics").contains("webstrata_connections_closed_idle_total"));
    for path in ["/livez", "/readyz"] {
        assert!(get(server.admin, path).starts_with("HTTP/1.1 200"), "{path}");
    }
    server.signal("HUP");
    assert!(server.said().contains("certificates and tokens were read again"));
    fs::write(dir.path().join("tokens"), "").unwrap();
    server.signal("HUP");
    let said = server.said();
    assert!(said.contains("stay as they were") && said.contains("has no token"), "{said}");
    assert!(get(server.at, "/readyz").starts_with("HTTP/1.1 200"));
    server.signal("TERM");
    let begun = Instant::now();
    while server.child.try_wait().unwrap().is_none() {
        assert!(begun.elapsed() < Duration::from_secs(60), "it does not end");
        thread::sleep(Duration::from_millis(10));
    }
    assert!(server.child.wait().unwrap().success());
}

#[test]
fn a_server_at_all_addresses_needs_no_other_and_says_that_it_is_open() {
    let dir = store();
    let mut server = Server::start(dir.path(), "--listen 0.0.0.0:0");
    let said = server.said();
    assert!(said.contains("everybody who reaches 0.0.0.0:0 can call this server, in plain text"), "{said}");
    let at = format!("127.0.0.1:{}", server.at.port());
    let asked = program(dir.path(), &format!("links --server {at} http://a.example/")).output().unwrap();
    assert_eq!(String::from_utf8(asked.stdout).unwrap(), "http://b.example/\n", "a clerk finds it where it asked");
    // Who would join it is told why not.
    let joins = format!("serve DIR/store --data DIR/other --listen 127.0.0.1:0 --join {at}");
    let mut other = program(dir.path(), &joins).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let said = server.said();
    other.kill().unwrap();
    other.wait().unwrap();
    assert!(said.contains("this server is alone: start it with --advertise"), "{said}");
}

#[test]
fn what_a_cluster_needs_is_named() {
    let dir = store();
    let (code, said) = refused(dir.path(), "--listen 0.0.0.0:0 --join 127.0.0.1:9");
    assert!(code == Some(2) && said.contains("needs --advertise"), "{said}");
    let (code, said) = refused(dir.path(), "--join 127.0.0.1:9 --tls-cert cert.pem --tls-key key.pem");
    let needs = "--tls-cert needs --tls-ca (the CA that signs the other servers' certificates)";
    assert!(code == Some(2) && said.contains(needs), "{said}");
    let (code, said) = refused(dir.path(), "--log loud");
    assert!(code == Some(2) && said.contains("NAME=LEVEL"), "{said}");
}

#[test]
fn debugging_shows_this_program_and_not_its_transport() {
    let dir = store();
    let mut server = Server::start(dir.path(), "--listen 127.0.0.1:0 --log debug");
    assert!(get(server.at, "/v1/stats").starts_with("HTTP/1.1 200"));
    server.signal("TERM");
    let mut said = String::new();
    server.err.read_to_string(&mut said).unwrap();
    assert!(said.contains("webstrata_serve"), "{said}");
    assert!(!said.contains(" h2::") && !said.contains(" hyper"), "{said}");
}
