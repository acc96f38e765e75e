//! A small store and its servers in separate processes, as operators see them: readiness, metrics, certificates.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]
#![allow(dead_code, reason = "each test uses a part of it")]

use crate::commands::{command, succeeds};
use crate::servers::{Server, get};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The time within which an expected event must happen. A test fails after this time.
pub(crate) const SOON: Duration = Duration::from_secs(30);
pub(crate) const PAGES: usize = 60;

pub(crate) fn page(number: usize) -> String {
    format!("http://host-{}.example/{number}", number % 7)
}

/// A store of several partitions, in which each page links to the next page.
pub(crate) fn store() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    build(dir.path(), "store", 1);
    dir
}

/// Builds a store of this name, in which each page links to the page `step` pages further on.
pub(crate) fn build(dir: &Path, name: &str, step: usize) {
    let mut lines = String::new();
    for number in 0..PAGES {
        let (url, link) = (page(number), page(number + step));
        writeln!(lines, r#"{{"url":"{url}","ts":"20200101000000","links":["{link}"]}}"#).unwrap();
    }
    fs::write(dir.join("pages.jsonl"), lines).unwrap();
    succeeds(dir, &format!("build {{}}/pages.jsonl --out {{}}/{name} -w 1 --partition-urls 10"));
}

/// Adds one page with one link to the store, which makes the next epoch.
pub(crate) fn update(dir: &Path, url: &str) {
    let line = format!(r#"{{"url":"{url}","ts":"20210101000000","links":["{url}link"]}}"#);
    fs::write(dir.join("more.jsonl"), line).unwrap();
    // A merge of due rows would make another epoch at once.
    succeeds(dir, "update {}/store {}/more.jsonl -w 1 --no-merge");
}

/// Starts a server with a name and images of this name. The server joins others.
pub(crate) fn start(dir: &Path, name: &str, others: &[&Server], more: &str) -> Server {
    start_at(dir, (name, name), others, more)
}

pub(crate) fn start_at(dir: &Path, (name, data): (&str, &str), others: &[&Server], more: &str) -> Server {
    start_of(dir, "store", (name, data), others, more)
}

/// Like [`start_at`], with a store of this name.
pub(crate) fn start_of(dir: &Path, store: &str, (name, data): (&str, &str), others: &[&Server], more: &str) -> Server {
    let join: String = others.iter().map(|server| format!(" --join {}", server.address)).collect();
    let settle = if more.contains("--settle ") { "" } else { " --settle 0.5" };
    let words = format!(
        "serve {{}}/{store} --listen 127.0.0.1:0 --admin 127.0.0.1:0 --name {name} --data {{}}/{data} --log info \
         --gossip 0.1{settle} --watch 0.2 --drain 10{join} {more}"
    );
    Server::start(&mut command(dir, words.trim_end()), dir.join(format!("{data}.log")))
}

pub(crate) fn figure(server: &Server, name: &str) -> String {
    let (_, text) = get(server.admin.unwrap(), "/metrics").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("webstrata_{name} ")).map(str::to_owned));
    line.unwrap_or_default()
}

pub(crate) fn readyz(server: &Server) -> (u16, String) {
    get(server.admin.unwrap(), "/readyz").unwrap_or_default()
}

pub(crate) fn until(what: &str, servers: &[&Server], mut is: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is() {
        if begun.elapsed() > SOON {
            let said = servers.iter().map(|server| format!("{}: {:?}\n{}", server.name, readyz(server), server.said()));
            let said: Vec<String> = said.collect();
            panic!("it does not come to be that {what}:\n{}", said.join("\n"));
        }
        sleep(Duration::from_millis(50));
    }
}

/// Returns when all servers see all servers, and have their cells.
pub(crate) fn whole(servers: &[&Server]) {
    let all = servers.len().to_string();
    until("all are one cluster", servers, || {
        servers.iter().all(|server| {
            figure(server, "servers_alive") == all
                && figure(server, "cells_unsettled") == "0"
                && readyz(server) == (200, "ready\n".to_owned())
        })
    });
}

/// Signs short-lived certificates for the servers of a directory.
pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub(crate) fn new(dir: &Path) -> Self {
        let mut params = CertificateParams::new(vec![]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        fs::write(dir.join("ca.pem"), issuer.pem()).unwrap();
        Self(issuer)
    }

    pub(crate) fn issue(&self, dir: &Path, name: &str, seconds: u64) {
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let epoch = rcgen::date_time_ymd(1970, 1, 1);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        params.not_before = epoch + Duration::from_secs(now - 5);
        params.not_after = epoch + Duration::from_secs(now + seconds);
        let key = KeyPair::generate().unwrap();
        let cert = params.signed_by(&key, &self.0).unwrap();
        fs::write(dir.join(format!("{name}.key")), key.serialize_pem()).unwrap();
        fs::write(dir.join(format!("{name}.cert")), cert.pem()).unwrap();
    }
}
