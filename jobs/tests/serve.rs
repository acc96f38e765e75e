//! `webstrata serve` as its operators meet it: its output at the start, and its reaction to signals.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod commands;
mod servers;

use commands::{command, succeeds};
use servers::{Server, get};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

fn program(dir: &Path, words: &str) -> Command {
    let mut command = command(dir, words);
    command.env("XDG_CACHE_HOME", dir);
    command
}

/// A store of one page.
fn store() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let page = r#"{"url":"http://a.example/","ts":"20200101000000","links":["http://b.example/"]}"#;
    fs::write(dir.path().join("h.jsonl"), page).unwrap();
    succeeds(dir.path(), "build {}/h.jsonl --out {}/store -w 1");
    dir
}

/// A ready server with an admin port.
fn serve(dir: &Path, words: &str) -> Server {
    let words = format!("serve {{}}/store --data {{}}/data --admin 127.0.0.1:0 {words}");
    let server = Server::start(&mut program(dir, &words), dir.join("log"));
    server.until(200);
    server
}

#[test]
fn who_links_to_a_name_links_to_its_domain_by_every_door() {
    let dir = tempfile::tempdir().unwrap();
    let line = |page: &str, link: &str| format!(r#"{{"url":"{page}","ts":"20200101000000","links":["{link}"]}}"#);
    let lines = [line("http://a.example/", "http://b.example/"), line("http://c.example/", "http://www.b.example/x")];
    fs::write(dir.path().join("h.jsonl"), lines.join("\n")).unwrap();
    succeeds(dir.path(), "build {}/h.jsonl --out {}/store -w 1");
    let server = serve(dir.path(), "--listen 127.0.0.1:0");
    for (target, matched, pages) in [
        ("b.example", "domain", &["http://a.example/", "http://c.example/"][..]),
        ("www.b.example", "domain", &["http://c.example/"]),
        ("http://b.example/", "exact", &["http://a.example/"]),
        ("b.example/", "domain", &["http://a.example/", "http://c.example/"]),
    ] {
        let at = server.address;
        for source in ["{}/store".to_owned(), format!("--server {at}")] {
            let shown = succeeds(dir.path(), &format!("backlinks {source} {target} --format json"));
            let shown: Vec<serde_json::Value> = shown.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            assert_eq!(shown.iter().map(|row| row["page"].as_str().unwrap()).collect::<Vec<_>>(), pages, "{target}");
        }
        let (status, answer) = server.get(&format!("/v1/backlinks?url={target}&limit=0")).unwrap();
        let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
        assert_eq!((status, answer["match"].as_str()), (200, Some(matched)), "{target}");
        let rows = answer["rows"].as_array().unwrap();
        assert_eq!(rows.iter().map(|row| row["page"].as_str().unwrap()).collect::<Vec<_>>(), pages, "{target}");
    }
}

#[test]
fn a_source_of_backlinks_means_the_same_by_every_door() {
    let dir = tempfile::tempdir().unwrap();
    let line = |page: &str, link: &str| format!(r#"{{"url":"{page}","ts":"20200101000000","links":["{link}"]}}"#);
    let target = "http://b.example/";
    let pages = ["http://a.example/", "http://www.a.example/x", "https://www.a.example/xy", "http://c.example/"];
    let own = "http://b.example/own";
    for (name, lines) in [("first", &pages[..2]), ("second", &[pages[2], pages[3], own])] {
        let lines: Vec<String> = lines.iter().map(|page| line(page, target)).collect();
        fs::write(dir.path().join(format!("{name}.jsonl")), lines.join("\n")).unwrap();
    }
    succeeds(dir.path(), "build {}/first.jsonl --out {}/store -w 1");
    succeeds(dir.path(), "update {}/store {}/second.jsonl -w 1");
    let server = serve(dir.path(), "--listen 127.0.0.1:0");
    for (source, matched, internal, expected) in [
        ("a.example", "", false, &[0, 1, 2][..]),
        ("a.example", "host", false, &[0]),
        ("http://www.a.example/x", "", false, &[1]),
        ("www.a.example/x", "exact", false, &[1]),
        ("http://www.a.example/x", "prefix", false, &[1, 2]),
        ("http://www.a.example/x", "host", false, &[1, 2]),
        ("http://www.a.example/x", "domain", false, &[1, 2]),
        // The source is in the store and is not a page, or is not in the store at all.
        ("http://b.example/", "", true, &[]),
        ("http://nobody.example/", "", false, &[]),
        ("nobody.example", "", false, &[]),
        ("b.example", "", false, &[]),
        ("b.example", "", true, &[4]),
    ] {
        let expected: BTreeSet<&str> = expected.iter().map(|&at| [&pages[..], &[own]].concat()[at]).collect();
        let mut words = format!("{target} --source {source} --order key --format json");
        let mut path = format!("/v1/backlinks?url={target}&source={source}&order=key");
        if !matched.is_empty() {
            words += &format!(" --source-match {matched}");
            path += &format!("&source_match={matched}");
        }
        if internal {
            words += " --internal";
            path += "&internal=true";
        }
        for store in ["{}/store".to_owned(), format!("--server {}", server.address)] {
            let shown = succeeds(dir.path(), &format!("backlinks {store} {words}"));
            let rows = shown.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
            let rows: Vec<String> = rows.map(|row| row["page"].as_str().unwrap().to_owned()).collect();
            assert_eq!(rows.iter().map(String::as_str).collect::<BTreeSet<_>>(), expected, "{store} {words}");
        }
        let (status, answer) = server.get(&path).unwrap();
        assert_eq!(status, 200, "{path}: {answer}");
        let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
        let rows = answer["rows"].as_array().unwrap().iter().map(|row| row["page"].as_str().unwrap());
        assert_eq!(rows.collect::<BTreeSet<_>>(), expected, "{path}");
        assert_eq!(answer["rows_total"], expected.len(), "{path}");
        assert_eq!(answer["source"], source);
    }
    // A note explains an empty answer to the user.
    for (words, note) in [
        ("--source nobody.example", "note: nothing in the store matches --source nobody.example\n"),
        ("--source http://a.example", ""),
        ("--source https://a.example", "note: https://a.example/ is not in the store, but http://a.example/ is\n"),
        (
            "--source b.example",
            "note: no page of b.example links there; --internal also counts the target's own pages\n",
        ),
    ] {
        let output = command(dir.path(), &format!("backlinks {{}}/store {target} {words}")).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), said.as_str()), (Some(0), note), "{words}");
    }
    let output = command(dir.path(), &format!("backlinks {{}}/store {target} --source-match host")).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
}

fn refused(dir: &Path, words: &str) -> (Option<i32>, String) {
    let Output { status, stderr, .. } = program(dir, &format!("serve {{}}/store {words}")).output().unwrap();
    (status.code(), String::from_utf8(stderr).unwrap())
}

#[test]
fn hangups_read_tokens_again_and_end_nothing() {
    let dir = store();
    fs::write(dir.path().join("tokens"), "first\n").unwrap();
    let server = serve(dir.path(), "--listen 127.0.0.1:0 --tokens {}/tokens");
    assert_eq!(server.get("/metrics").unwrap().0, 401);
    let of_admin = |path: &str| get(server.admin.unwrap(), path).unwrap();
    assert!(of_admin("/metrics").1.contains("webstrata_connections_closed_idle_total"));
    for path in ["/livez", "/readyz"] {
        assert_eq!(of_admin(path).0, 200, "{path}");
    }
    server.signal("HUP");
    server.says("certificates and tokens were read again");
    fs::write(dir.path().join("tokens"), "").unwrap();
    server.signal("HUP");
    let said = server.says("were not reloaded");
    assert!(said.contains("has no token"), "{said}");
    assert_eq!(server.get("/readyz").unwrap().0, 200);
    server.leave(Duration::from_secs(60));
}

#[test]
fn a_server_at_all_addresses_needs_no_other_and_says_that_it_is_open() {
    let dir = store();
    let server = serve(dir.path(), "--listen 0.0.0.0:0");
    server.says("everybody who reaches 0.0.0.0:0 can call this server, in plain text");
    let at = format!("127.0.0.1:{}", server.address.port());
    let asked = program(dir.path(), &format!("links --server {at} http://a.example/")).output().unwrap();
    assert_eq!(String::from_utf8(asked.stdout).unwrap(), "http://b.example/\n", "a clerk finds it where it asked");
    // The log of this server says why another server cannot join.
    let joins = format!("serve {{}}/store --data {{}}/other --listen 127.0.0.1:0 --join {at}");
    let mut other = program(dir.path(), &joins).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    server.says("this server accepts no other servers: restart it with --advertise");
    other.kill().unwrap();
    other.wait().unwrap();
}

#[test]
fn addresses_to_listen_on_are_written_as_elsewhere() {
    let dir = store();
    for (listen, at) in [("0", "127.0.0.1:"), ("localhost:0", "127.0.0.1:"), (":0", "0.0.0.0:")] {
        let server = serve(dir.path(), &format!("--listen {listen}"));
        assert!(server.address.to_string().starts_with(at), "{listen}: {}", server.address);
        server.leave(Duration::from_secs(60));
    }
    if std::net::TcpListener::bind("[::1]:0").is_ok() {
        let server = serve(dir.path(), "--listen [::1]:0");
        assert_eq!(server.get("/v1/stats").unwrap().0, 200);
        server.leave(Duration::from_secs(60));
    }
    for listen in ["localhost", "::1:7400", "localhost:", "localhost:port", "65536", "-1", ":+1"] {
        let (code, said) = refused(dir.path(), &format!("--data {{}}/data --listen={listen}"));
        assert!(code == Some(2) && said.contains("expected HOST:PORT"), "{listen}: {said}");
    }
}

#[test]
fn a_user_without_a_home_is_told_where_copies_of_cells_go() {
    let dir = store();
    for home in [None, Some("/dev/null")] {
        let mut program = program(dir.path(), "serve {}/store --listen 127.0.0.1:0");
        program.env_remove("XDG_CACHE_HOME").env_remove("HOME").envs(home.map(|home| ("HOME", home)));
        let Output { status, stderr, .. } = program.output().unwrap();
        let said = String::from_utf8(stderr).unwrap();
        assert!(!status.success() && said.contains("--data DIR"), "{home:?}: {said}");
    }
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
    assert!(code == Some(2) && said.contains("such as info,h2=trace"), "{said}");
}

#[test]
fn debugging_shows_this_program_and_not_its_transport() {
    let dir = store();
    let mut server = serve(dir.path(), "--listen 127.0.0.1:0 --log debug");
    assert_eq!(server.get("/v1/stats").unwrap().0, 200);
    server.signal("TERM");
    server.ends(Duration::from_secs(60));
    let said = server.said();
    assert!(said.contains("webstrata_serve"), "{said}");
    assert!(!said.contains(" h2::") && !said.contains(" hyper"), "{said}");
}

#[test]
fn the_log_says_what_happened_and_calls_only_where_they_are_asked_for() {
    let dir = store();
    let mut server = serve(dir.path(), "--listen 127.0.0.1:0");
    assert_eq!(server.get("/v1/stats").unwrap().0, 200);
    server.signal("TERM");
    server.ends(Duration::from_secs(60));
    let said = server.said();
    for event in ["an epoch became current", "draining: the server ends when"] {
        let line = said.lines().find(|line| line.contains(event)).unwrap_or_else(|| panic!("{event}: {said}"));
        assert!(line.contains(" INFO ") && line.starts_with("20") && line.contains('Z'), "{line}");
    }
    assert!(!said.contains("call{"), "{said}");
}

#[test]
fn calls_are_logged_as_json() {
    let dir = store();
    let server = serve(dir.path(), "--listen 127.0.0.1:0 --log warn,access=info --log-format json");
    assert_eq!(server.get("/v1/links?url=http://a.example/").unwrap().0, 200);
    assert_eq!(server.get("/v1/links?url=http://none.example/").unwrap().0, 404);
    for (status, code) in [("a.example", "OK"), ("none.example", "NOT_FOUND")] {
        let line: serde_json::Value = serde_json::from_str(&server.says(status)).unwrap();
        assert_eq!((line["message"].as_str(), line["target"].as_str()), (Some("answered"), Some("access")), "{line}");
        let call = &line["span"];
        assert_eq!(call["path"], format!("/v1/links?url=http://{status}/"));
        assert_eq!((&call["method"], &call["code"]), (&"v1/links".into(), &code.into()), "{line}");
        assert!(call["peer"].as_str().unwrap().starts_with("127.0.0.1:") && call["seconds"].is_f64(), "{line}");
    }
    assert!(!server.said().contains("readyz"), "health checks are no calls of clients: {}", server.said());
}
