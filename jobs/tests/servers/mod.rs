//! Servers in separate processes: how tests start servers, ask them, read their logs, and end them.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]
#![allow(dead_code, reason = "each test uses a part of it")]

use std::cell::Cell;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The time within which an expected event must happen. A test fails after this time.
const SOON: Duration = Duration::from_secs(30);

/// A server in its own process, which is killed with the test.
pub(crate) struct Server {
    /// The name of the log, without its extension.
    pub(crate) name: String,
    pub(crate) child: Child,
    /// The address at which the server listens.
    pub(crate) address: SocketAddr,
    /// The address of the admin port, if the command asks for one.
    pub(crate) admin: Option<SocketAddr>,
    log: PathBuf,
    /// The length of the log that [`Server::says`] has read, in bytes.
    read: Cell<usize>,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    /// Starts a command that serves, and returns when it listens. Standard error is appended to a file.
    pub(crate) fn start(command: &mut Command, log: PathBuf) -> Server {
        let has_admin = command.get_args().any(|word| word == "--admin");
        let err = File::options().create(true).append(true).open(&log).unwrap();
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(err).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut address = |before: &str| {
            let line = out.next().and_then(Result::ok).unwrap_or_default();
            let address = line.strip_prefix(before).and_then(|address| address.parse().ok());
            address.unwrap_or_else(|| panic!("{before}nothing: {line}, {}", fs::read_to_string(&log).unwrap()))
        };
        let at = address("listening on ");
        let admin = has_admin.then(|| address("admin on "));
        // A server whose output nobody reads would end.
        thread::spawn(move || out.for_each(drop));
        let name = log.file_stem().unwrap().to_string_lossy().into_owned();
        Server { name, child, address: at, admin, log, read: Cell::new(0) }
    }

    /// The whole log, including earlier servers with the same file.
    pub(crate) fn said(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Waits for the next line of the log that contains a text, and returns the line.
    pub(crate) fn says(&self, what: &str) -> String {
        let mut found = None;
        self.wait(&format!("it says {what}"), || {
            let said = self.said();
            for line in said[self.read.get()..].split_inclusive('\n').filter(|line| line.ends_with('\n')) {
                self.read.set(self.read.get() + line.len());
                if line.contains(what) {
                    found = Some(line.trim_end().to_owned());
                    return true;
                }
            }
            false
        });
        found.unwrap()
    }

    /// The status and the body of an answer; `None` without an answer.
    pub(crate) fn get(&self, path: &str) -> Option<(u16, String)> {
        get(self.address, path)
    }

    /// Waits until the readiness check has this status. Returns the body, which says why.
    pub(crate) fn until(&self, status: u16) -> String {
        let mut last = None;
        self.wait(&format!("/readyz comes to {status}"), || {
            last = get(self.admin.unwrap_or(self.address), "/readyz");
            last.as_ref().is_some_and(|(own, _)| *own == status)
        });
        last.unwrap().1
    }

    /// Waits until `is` returns true.
    pub(crate) fn wait(&self, what: &str, mut is: impl FnMut() -> bool) {
        let begun = Instant::now();
        while !is() {
            assert!(begun.elapsed() < SOON, "it does not come to be that {what}: {}", self.said());
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Sends a signal to the server, by name.
    pub(crate) fn signal(&self, signal: &str) {
        let status = Command::new("kill").arg(format!("-{signal}")).arg(self.child.id().to_string()).status().unwrap();
        assert!(status.success(), "no signal {signal}: {}", self.said());
    }

    /// Waits until the server ends by itself. Returns its exit status.
    pub(crate) fn ends(&mut self, within: Duration) -> ExitStatus {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(begun.elapsed() < within, "it does not end: {}", self.said());
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Asks the server to end, and returns when it has ended well.
    pub(crate) fn leave(mut self, within: Duration) {
        self.signal("TERM");
        let status = self.ends(within);
        assert!(status.success(), "{status}: {}", self.said());
    }
}

/// The status and the body of a server's answer; `None` if the server does not answer.
pub(crate) fn get(address: SocketAddr, path: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(address).ok()?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    Some((head.split(' ').nth(1)?.parse().ok()?, body.to_owned()))
}
