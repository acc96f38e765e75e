//! Clusters of real processes as those who run them meet them: certificates that end, numbers and names that belong to
//! the cluster, servers that nobody answers.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod commands;
mod servers;

use commands::{command, succeeds};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use servers::{Server, get};
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// What is to come comes within this time, or the test fails.
const SOON: Duration = Duration::from_secs(30);
const PAGES: usize = 60;

fn page(number: usize) -> String {
    format!("http://host-{}.example/{number}", number % 7)
}

/// A store of some partitions, in which each page links to the next one.
fn store() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let mut lines = String::new();
    for number in 0..PAGES {
        let (url, link) = (page(number), page(number + 1));
        writeln!(lines, r#"{{"url":"{url}","ts":"20200101000000","links":["{link}"]}}"#).unwrap();
    }
    fs::write(dir.path().join("pages.jsonl"), lines).unwrap();
    succeeds(dir.path(), "build {}/pages.jsonl --out {}/store -w 1 --partition-urls 10");
    dir
}

/// Starts a server with a name and images of that name, which joins others.
fn start(dir: &Path, name: &str, others: &[&Server], more: &str) -> Server {
    start_at(dir, (name, name), others, more)
}

fn start_at(dir: &Path, (name, data): (&str, &str), others: &[&Server], more: &str) -> Server {
    let join: String = others.iter().map(|server| format!(" --join {}", server.address)).collect();
    let words = format!(
        "serve {{}}/store --listen 127.0.0.1:0 --admin 127.0.0.1:0 --name {name} --data {{}}/{data} --log info \
         --gossip 0.1 --settle 0.5 --watch 0.2 --drain 10{join} {more}"
    );
    Server::start(&mut command(dir, words.trim_end()), dir.join(format!("{data}.log")))
}

fn figure(server: &Server, name: &str) -> String {
    let (_, text) = get(server.admin.unwrap(), "/metrics").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("webstrata_{name} ")).map(str::to_owned));
    line.unwrap_or_default()
}

fn readyz(server: &Server) -> (u16, String) {
    get(server.admin.unwrap(), "/readyz").unwrap_or_default()
}

fn until(what: &str, servers: &[&Server], mut is: impl FnMut() -> bool) {
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

/// All see all, and have their cells.
fn whole(servers: &[&Server]) {
    let all = servers.len().to_string();
    until("all are one cluster", servers, || {
        servers.iter().all(|server| {
            figure(server, "servers_alive") == all
                && figure(server, "cells_unsettled") == "0"
                && readyz(server) == (200, "ready\n".to_owned())
        })
    });
}

/// Signs certificates of some seconds for the servers of a directory.
struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new(dir: &Path) -> Self {
        let mut params = CertificateParams::new(vec![]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        fs::write(dir.join("ca.pem"), issuer.pem()).unwrap();
        Self(issuer)
    }

    fn issue(&self, dir: &Path, name: &str, seconds: u64) {
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

fn mutual(name: &str) -> String {
    format!("--tls-cert {{}}/{name}.cert --tls-key {{}}/{name}.key --tls-ca {{}}/ca.pem --tls-client-ca {{}}/ca.pem")
}

#[test]
fn a_cluster_outlives_its_certificates() {
    let dir = store();
    let dir = dir.path();
    let (authority, names) = (Authority::new(dir), ["one", "two", "three"]);
    let life = 10;
    names.iter().for_each(|name| authority.issue(dir, name, life));
    let one = start(dir, "one", &[], &mutual("one"));
    let two = start(dir, "two", &[&one], &mutual("two"));
    let mut three = start(dir, "three", &[&one, &two], &mutual("three"));
    whole(&[&one, &two, &three]);
    assert!(figure(&one, &format!("certificate_not_after_seconds{{file=\"{}/one.cert\"}}", dir.display())).len() > 9);

    // Renewed twice: one is told, the others see it themselves. Then all first certificates are over.
    let begun = Instant::now();
    for _ in 0..2 {
        sleep(Duration::from_secs(5));
        names.iter().for_each(|name| authority.issue(dir, name, life));
        one.signal("HUP");
    }
    assert!(begun.elapsed() >= Duration::from_secs(life));
    one.says("certificates and tokens were read again");
    two.says("certificates and tokens were read again");
    // Every connection to and from the third is opened anew.
    three.child.kill().unwrap();
    three.child.wait().unwrap();
    authority.issue(dir, "three", 6);
    let three = start(dir, "three", &[&one, &two], &mutual("three"));
    authority.issue(dir, "one", 1000);
    authority.issue(dir, "two", 1000);
    [&one, &two].iter().for_each(|server| server.signal("HUP"));
    whole(&[&one, &two, &three]);

    // The third is forgotten.
    three.says("three.cert: the certificate expires at ");
    three.says("three.cert: the certificate expired at ");
    assert!(three.until(503).contains("three.cert: the certificate of this server expired"));
    [&one, &two].iter().for_each(|server| server.signal("HUP"));
    until("the others say whom they cannot call", &[&one, &two, &three], || {
        [&one, &two].iter().all(|server| {
            let (status, said) = readyz(server);
            status == 200 && said.contains(&format!("TLS: {}: its certificate is not accepted here", three.address))
        })
    });
    assert_eq!(figure(&one, "peers_distrusted"), "1");
    authority.issue(dir, "three", 1000);
    whole(&[&one, &two, &three]);
}

#[test]
fn replicas_belong_to_the_cluster() {
    let dir = store();
    let dir = dir.path();
    let two = start(dir, "two", &[], "--replicas 2");
    let three = start(dir, "three", &[&two], "--replicas 2");
    let one = start(dir, "one", &[&two, &three], "--replicas 1");
    one.says("were started with --replicas 2, which counts; this server was started with 1");
    until("its note says so", &[&one], || {
        readyz(&one)
            == (
                200,
                "ready\nreplicas: this server was started with --replicas 1, most servers with 2, which \
                               counts\n"
                    .to_owned(),
            )
    });
    // Nothing is held back.
    fs::write(dir.join("more.jsonl"), r#"{"url":"http://more.example/","ts":"20210101000000","links":[]}"#).unwrap();
    let begun = Instant::now();
    // A merge of the rows that are due would make one more epoch at once.
    succeeds(dir, "update {}/store {}/more.jsonl -w 1 --no-merge");
    let all = [&one, &two, &three];
    until("all have the epoch", &all, || all.iter().all(|server| figure(server, "epoch_current") == "2"));
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());

    // As the book says: one after the other.
    one.leave(SOON);
    let one = start(dir, "one", &[&two, &three], "--replicas 3");
    until("it is there", &[&one, &two, &three], || figure(&one, "cells_unsettled") == "0" && readyz(&one).0 == 200);
    assert_eq!(figure(&one, "replicas"), "2", "one server changes nothing");
    two.leave(SOON);
    let two = start(dir, "two", &[&one, &three], "--replicas 3");
    until("two servers do", &[&one, &two, &three], || {
        [&one, &two, &three].iter().all(|server| figure(server, "replicas") == "3")
    });
    until("it is there", &[&one, &two, &three], || figure(&two, "cells_unsettled") == "0" && readyz(&two).0 == 200);
    three.leave(SOON);
    let three = start(dir, "three", &[&one, &two], "--replicas 3");
    whole(&[&one, &two, &three]);
    let cells = |server| ["memory", "disk"].map(|place| figure(server, &format!("cells{{residence=\"{place}\"}}")));
    let count = |server| cells(server).iter().map(|cells| cells.parse::<u32>().unwrap()).sum::<u32>();
    assert_eq!(count(&three), count(&one), "all have all");
}

#[test]
fn a_newcomer_does_not_take_the_name_of_a_server() {
    let dir = store();
    let dir = dir.path();
    let one = start(dir, "one", &[], "");
    let mut two = start(dir, "two", &[&one], "");
    whole(&[&one, &two]);
    sleep(Duration::from_secs(3));
    let mut newcomer = start_at(dir, ("two", "newcomer"), &[&one, &two], "");
    let begun = Instant::now();
    while newcomer.child.try_wait().unwrap().is_none() {
        assert!(begun.elapsed() < SOON, "it does not end: {}", newcomer.said());
        let topology = get(one.address, "/v1/stats").unwrap().1;
        assert!(!topology.contains(&newcomer.address.to_string()), "{topology}");
        assert!(readyz(&one).0 == 200 && readyz(&two).0 == 200);
        sleep(Duration::from_millis(50));
    }
    let said = newcomer.said();
    assert_eq!(newcomer.ends(SOON).code(), Some(1), "{said}");
    let expected = format!("the server at {} has the name two already: give each server its own --name", two.address);
    assert!(said.contains(&expected), "{said}");
    two.says("another server has this name: give each its own --name");
    whole(&[&one, &two]);

    // The same server after a crash, at another address and with another disk.
    two.child.kill().unwrap();
    two.child.wait().unwrap();
    let again = start_at(dir, ("two", "disk"), &[&one], "");
    whole(&[&one, &again]);
}

#[test]
fn a_server_that_nobody_answers_answers() {
    let dir = store();
    let dir = dir.path();
    let one = start(dir, "one", &[], "");
    let others: Vec<Server> = ["two", "three", "four"].iter().map(|name| start(dir, name, &[&one], "")).collect();
    whole(&[&one, &others[0], &others[1], &others[2]]);
    others.iter().for_each(|server| server.signal("STOP"));
    let mut times: Vec<Duration> = (0..PAGES)
        .map(|number| {
            let begun = Instant::now();
            let (status, answer) = one.get(&format!("/v1/links?url={}", page(number))).unwrap();
            assert!(status == 200 && answer.contains(&page(number + 1)), "{status}: {answer}");
            begun.elapsed()
        })
        .collect();
    others.iter().for_each(|server| server.signal("CONT"));
    times.sort_unstable();
    // The cells that others have are made here after a fifth of a second, and others are not waited for.
    let (middle, longest) = (times[PAGES / 2], times[PAGES - 1]);
    assert!(middle < Duration::from_millis(300) && longest < Duration::from_millis(1500), "{times:?}");

    // An epoch that nobody has heard of is not waited for either.
    let begun = Instant::now();
    let (status, answer) = one.get("/v1/links?url=http://host-0.example/0&epoch=2").unwrap();
    assert!(status == 409 || status == 400 || status == 412, "{status}: {answer}");
    assert!(answer.contains("EPOCH_UNKNOWN") && begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
}
