//! Clusters of real processes on loopback: shared code of the tests that start, kill and stop servers.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use crate::servers::Server;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use webstrata_serve::clerk::Clerk;
use webstrata_tests::story::Story;

/// A command of the program. Spaces separate the words.
fn program(words: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_webstrata"));
    command.args(words.split(' ')).stdin(Stdio::null());
    command
}

/// Runs a command on the store of a story, at low priority. In `words`, `STORE` and `DIR` stand for the store and the
/// directory of the story.
pub(crate) fn run(story: &Story, words: &str) {
    let words = words.replace("STORE", "DIR/store").replace("DIR", &story.dir().display().to_string());
    let own = program(&words);
    let mut command = Command::new("nice");
    command.args(["-n", "19"]).arg(own.get_program()).args(own.get_args()).env("TMPDIR", story.dir());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{words}: {output:?}");
}

/// The last 30 lines of a server's log.
fn last_said(server: &Server) -> String {
    let text = server.said();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(30)..].join("\n")
}

/// The servers of one store.
pub(crate) struct Cluster {
    dir: PathBuf,
    /// Additional arguments of each server.
    arguments: String,
    pub(crate) servers: Vec<Server>,
    started: usize,
}

impl Cluster {
    /// A cluster of the store `DIR/store`, without servers.
    pub(crate) fn new(dir: &Path, arguments: &str) -> Cluster {
        Cluster { dir: dir.to_owned(), arguments: arguments.to_owned(), servers: Vec::new(), started: 0 }
    }

    /// Starts a server and returns when it listens. The name is new, or the name of a server that has ended, whose
    /// images are used again.
    pub(crate) fn start(&mut self, name: Option<String>) -> &Server {
        self.started += 1;
        let name = name.unwrap_or_else(|| format!("server-{}", self.started));
        let dir = self.dir.display();
        let mut command = program(&format!(
            "serve {dir}/store --listen 127.0.0.1:0 --name {name} --data {dir}/{name} --log info {}",
            self.arguments
        ));
        self.servers.iter().for_each(|server| _ = command.arg("--join").arg(server.address.to_string()));
        let server = Server::start(&mut command, self.dir.join(format!("{name}.log")));
        self.servers.push(server);
        self.servers.last().unwrap()
    }

    /// Takes a server out of the list.
    pub(crate) fn take(&mut self, name: &str) -> Server {
        let at = self.servers.iter().position(|server| server.name == name).unwrap();
        self.servers.remove(at)
    }

    /// Returns when the clerk's map has exactly the servers of the list, and each cell is on at least `replicas` of
    /// them.
    pub(crate) fn whole(&self, clerk: &Clerk, replicas: usize, within: Duration) {
        let names: BTreeSet<&str> = self.servers.iter().map(|server| server.name.as_str()).collect();
        let addresses: BTreeSet<String> = self.servers.iter().map(|server| server.address.to_string()).collect();
        let begun = Instant::now();
        loop {
            let map = clerk.map();
            let is_same = map.servers.iter().map(|server| server.name.as_str()).eq(names.iter().copied())
                && map.servers.iter().all(|server| addresses.contains(&server.address));
            let mut cells = map.epochs.values().flat_map(|graph| &graph.rows).flat_map(|row| &row.cells);
            if is_same && map.current > 0 && cells.all(|cell| cell.servers.len() >= replicas) {
                return;
            }
            if begun.elapsed() > within {
                let logs: Vec<String> =
                    self.servers.iter().map(|server| format!("{}:\n{}", server.name, last_said(server))).collect();
                panic!("{names:?} are not whole after {within:?}: {map:#?}\n{}", logs.join("\n"));
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
}
