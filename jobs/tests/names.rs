//! Servers whose names get addresses only after the servers have started, and that find each other by one shared name.
//!
//! The names are in a hosts file, mounted where no other process sees it. This needs `unshare` and the right to make
//! user namespaces, which some machines do not have. The test is ignored by default, and fails without these.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod commands;
mod mounts;
mod servers;

use commands::{command, succeeds};
use mounts::with_own_mounts;
use servers::Server;
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

const SERVERS: [u8; 3] = [1, 2, 3];

/// A port that is free at all addresses.
fn port() -> u16 {
    let listen = |number: u8, port| TcpListener::bind(format!("127.0.0.{number}:{port}")).ok();
    for _ in 0..20 {
        let first = listen(SERVERS[0], 0).unwrap();
        let port = first.local_addr().unwrap().port();
        if SERVERS[1..].iter().all(|&number| listen(number, port).is_some()) {
            return port;
        }
    }
    panic!("no port is free at all addresses");
}

fn start(dir: &Path, number: u8, port: u16) -> Server {
    let mut command = command(
        dir,
        &format!(
            "serve {{}}/store --data {{}}/data-{number} --listen server-{number}.test:{port} \
             --join servers.test:{port} --replicas 3 --settle 0.3 --log info"
        ),
    );
    let server = Server::start(&mut command, dir.join(format!("{number}.log")));
    server.until(200);
    server
}

#[test]
#[ignore = "needs unshare and user namespaces: cargo test --test names -- --ignored"]
fn servers_wait_for_their_names_and_meet_at_one() {
    with_own_mounts("servers_wait_for_their_names_and_meet_at_one", || {
        let dir = tempfile::tempdir().unwrap();
        let (dir, hosts) = (dir.path(), dir.path().join("hosts"));
        fs::write(&hosts, "127.0.0.1 localhost\n").unwrap();
        let mount = Command::new("mount").arg("--bind").args([&hosts, Path::new("/etc/hosts")]).status().unwrap();
        assert!(mount.success());
        let page = r#"{"url":"http://a.example/","ts":"20200101000000","links":["http://b.example/"]}"#;
        fs::write(dir.join("h.jsonl"), page).unwrap();
        succeeds(dir, "build {}/h.jsonl --out {}/store -w 1");

        let port = port();
        let waits = |number: u8| {
            let said = fs::read_to_string(dir.join(format!("{number}.log"))).unwrap_or_default();
            said.contains(&format!("no address of server-{number}.test yet"))
        };
        let servers: Vec<Server> = thread::scope(|scope| {
            let started = SERVERS.map(|number| scope.spawn(move || start(dir, number, port)));
            while !SERVERS.into_iter().all(waits) && !started.iter().any(|server| server.is_finished()) {
                thread::sleep(Duration::from_millis(20));
            }
            let names = SERVERS.map(|number| format!("127.0.0.{number} server-{number}.test servers.test\n"));
            fs::write(&hosts, format!("127.0.0.1 localhost\n{}", names.concat())).unwrap();
            started.into_iter().map(|server| server.join().unwrap()).collect()
        });
        for (number, server) in SERVERS.iter().zip(&servers) {
            assert_eq!(server.address.to_string(), format!("127.0.0.{number}:{port}"));
            assert!(waits(*number), "{}", server.said());
            let is_whole = || server.get("/metrics").is_some_and(|(_, text)| text.contains("servers_alive 3\n"));
            server.wait("all three are one cluster", is_whole);
        }
    });
}
