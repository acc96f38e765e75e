//! Clusters of real processes as their operators meet them: certificates that expire, numbers and names that belong to
//! the cluster, and servers that do not answer.

#![cfg(unix)]

mod commands;
mod operated;
mod servers;

use operated::{Authority, PAGES, SOON, figure, page, readyz, start, start_at, store, until, update, whole};
use servers::{Server, get};
use std::thread::sleep;
use std::time::{Duration, Instant};

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

    // The certificates are renewed twice. Server one gets a signal, and the other servers notice the new files
    // themselves. Then all first certificates have expired.
    let begun = Instant::now();
    for _ in 0..2 {
        sleep(Duration::from_secs(5));
        names.iter().for_each(|name| authority.issue(dir, name, life));
        one.signal("HUP");
    }
    assert!(begun.elapsed() >= Duration::from_secs(life));
    one.says("certificates and tokens were read again");
    two.says("certificates and tokens were read again");
    // All connections to and from the third server are opened again.
    three.child.kill().unwrap();
    three.child.wait().unwrap();
    names.iter().for_each(|name| authority.issue(dir, name, 1000));
    let three = start(dir, "three", &[&one, &two], &mutual("three"));
    [&one, &two].iter().for_each(|server| server.signal("HUP"));
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
    // The difference does not hold up the next epoch.
    let begun = Instant::now();
    update(dir, "http://more.example/");
    let all = [&one, &two, &three];
    until("all have the epoch", &all, || all.iter().all(|server| figure(server, "epoch_current") == "2"));
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
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
    // This server makes the cells of the other servers after a fifth of a second, and does not wait for the other
    // servers.
    let (middle, longest) = (times[PAGES / 2], times[PAGES - 1]);
    assert!(middle < Duration::from_millis(300) && longest < Duration::from_millis(1500), "{times:?}");

    // A question about an epoch that no server knows does not wait either.
    let begun = Instant::now();
    let (status, answer) = one.get("/v1/links?url=http://host-0.example/0&epoch=2").unwrap();
    assert!(status == 409 || status == 400 || status == 412, "{status}: {answer}");
    assert!(answer.contains("EPOCH_UNKNOWN") && begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
}
