//! The runbook of the book, incident by incident. Each test causes an incident, sees the symptoms of its section,
//! follows the steps of the section, and sees that the incident is over. A test has the name of its section.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod book;
mod commands;
#[cfg(target_os = "linux")]
mod mounts;
mod operated;
mod servers;

use book::{document, slug};
use commands::{run, succeeds};
use operated::{Authority, PAGES, SOON, build, figure, page, readyz, start, start_of, store, until, update, whole};
use servers::{Server, get};
use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use webstrata_cells::image::VERSION;

const RUNBOOK: &str = "docs/book/operator/runbook.md";
/// The number of cells of the first epoch.
const CELLS: u32 = 7;
/// The page that later epochs add.
const MORE: &str = "http://more.example/";

/// The status and the answer for the links of a page; status 0 without an answer.
fn links(server: SocketAddr, url: &str) -> (u16, String) {
    get(server, &format!("/v1/links?url={url}")).unwrap_or_default()
}

/// Whether a server gives the right link of a page, for a store in which each page links `step` pages further on.
fn is_right(server: SocketAddr, number: usize, step: usize) -> bool {
    let (status, answer) = links(server, &page(number));
    status == 200 && answer.contains(&format!(r#""links":["{}"]"#, page(number + step)))
}

/// Asserts that the servers answer all questions, and rightly.
fn answer(servers: &[&Server]) {
    for (server, number) in servers.iter().flat_map(|server| (0..PAGES).map(move |number| (server, number))) {
        let answer = links(server.address, &page(number));
        assert!(is_right(server.address, number, 1), "{number}: {answer:?} {}", server.said());
    }
}

/// Asks a server until `is_over` is set, or the test has failed. Returns the number of calls, and the pages of failed
/// calls.
fn ask(server: SocketAddr, is_over: &AtomicBool) -> (usize, Vec<usize>) {
    let begun = Instant::now();
    let calls = (0..).take_while(|_| !is_over.load(Ordering::Relaxed) && begun.elapsed() < 2 * SOON);
    let (mut asked, mut failed) = (0, Vec::new());
    for number in calls.map(|call| call % PAGES) {
        asked += 1;
        failed.extend(Some(number).filter(|_| !is_right(server, number, 1)));
    }
    (asked, failed)
}

fn kill(mut server: Server) {
    server.signal("KILL");
    assert!(!server.ends(SOON).success());
}

/// Copies a directory as an operator does.
fn copy(from: &Path, to: &Path) {
    assert!(Command::new("cp").arg("-a").args([from, to]).status().unwrap().success());
}

/// Returns when this epoch is current on all servers.
fn until_epoch(epoch: &str, servers: &[&Server]) {
    until("the epoch is current", servers, || servers.iter().all(|server| figure(server, "epoch_current") == epoch));
}

/// The output of a command that fails, from both streams.
fn fails(dir: &Path, line: &str) -> String {
    let output = run(dir, line);
    assert_eq!(output.status.code(), Some(1), "{line}: {output:?}");
    [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap()).concat()
}

/// The number of cells of a server.
fn cells(server: &Server) -> u32 {
    let counts = ["memory", "disk"].map(|place| figure(server, &format!("cells{{residence=\"{place}\"}}")));
    counts.iter().filter_map(|count| count.parse::<u32>().ok()).sum()
}

/// The images of cells below a directory.
fn images(dir: &Path) -> Vec<PathBuf> {
    let entries = |dir: &Path| fs::read_dir(dir).into_iter().flatten().map(|entry| entry.unwrap().path());
    entries(&dir.join("cells")).flat_map(|row| entries(&row).collect::<Vec<_>>()).collect()
}

#[test]
fn a_server_dies() {
    let dir = store();
    let dir = dir.path();
    // Servers wait before they copy cells, so that the test has time to look at them.
    let serve = |name, others: &[&Server]| start(dir, name, others, "--settle 2");
    let one = serve("one", &[]);
    let two = serve("two", &[&one]);
    let three = serve("three", &[&one, &two]);
    let all = [&one, &two, &three];
    whole(&all);
    until("nobody has cells of others", &all, || all.map(cells).iter().sum::<u32>() == 2 * CELLS);
    let is_over = &AtomicBool::new(false);
    let calls = thread::scope(|scope| {
        let asking = [one.address, three.address].map(|server| scope.spawn(move || ask(server, is_over)));
        let admin = two.admin.unwrap();
        kill(two);
        assert!(get(admin, "/metrics").is_none(), "what Prometheus sees");
        let ready = || [&one, &three].map(|server| get(server.admin.unwrap(), "/readyz").unwrap());
        let loads = "cells are still being loaded; calls are answered without them";
        until("they say that they load cells", &[&one], || ready()[0].1.contains(loads));
        until("cells have one replica", &[&one], || figure(&one, "cells_unsettled") != "0");
        let said = [&one, &three].map(|server| server.says("a server no longer answers"));
        until("cells are copied", &[&one, &three], || {
            assert_eq!(
                ready().map(|(status, _)| status),
                [200; 2],
                "a load balancer loses no other server: {:?}",
                ready()
            );
            [&one, &three].iter().all(|server| figure(server, "servers_alive") == "2")
                && [&one, &three].iter().all(|server| figure(server, "cells_unsettled") == "0")
        });
        let two = serve("two", &[&one, &three]);
        whole(&[&one, &two, &three]);
        answer(&[&two]);
        is_over.store(true, Ordering::Relaxed);
        let anew = ["cells_made_total", "fetched_bytes_total"].map(|name| figure(&two, name));
        assert_eq!(anew, ["0", "0"], "it has its cells from before");
        assert!(said.iter().all(|line| line.contains("WARN") && line.contains("\"two\"")), "{said:?}");
        asking.map(|asking| asking.join().unwrap())
    });
    assert!(calls.iter().all(|(asked, failed)| *asked > PAGES && failed.is_empty()), "{calls:?}");
}

#[test]
fn only_the_store_is_left() {
    let dir = store();
    let dir = dir.path();
    for from_store in [false, true] {
        let one = start(dir, "one", &[], "");
        let two = start(dir, "two", &[&one], "");
        whole(&[&one, &two]);
        for (server, data) in [(one, "one"), (two, "two")] {
            kill(server);
            fs::remove_dir_all(dir.join(data)).unwrap();
        }
        if from_store {
            succeeds(dir, "cells {}/store");
        }
        let one = start(dir, "one", &[], "");
        let (status, said) = readyz(&one);
        assert!(status == 503 && said.starts_with("not ready: ") || said == "ready\n", "{status} {said}");
        let two = start(dir, "two", &[&one], "");
        whole(&[&one, &two]);
        answer(&[&one, &two]);
        let made = |server| figure(server, "cells_made_total").parse::<u32>().unwrap();
        assert_eq!(made(&one) + made(&two) == 0, from_store, "{} {}", made(&one), made(&two));
    }
}

#[test]
#[cfg(target_os = "linux")]
#[ignore = "mounts small file systems (Linux, unshare): cargo test --test runbook -- --ignored"]
fn the_disk_of_the_cells_is_full() {
    mounts::with_own_mounts("the_disk_of_the_cells_is_full", || {
        let dir = store();
        let dir = dir.path();
        let _disk = mounts::Disk::mount(dir.join("one"), 256);
        let one = start(dir, "one", &[], "");
        let two = start(dir, "two", &[&one], "");
        whole(&[&one, &two]);
        assert!(fs::write(dir.join("one/other"), vec![0; 1 << 20]).is_err(), "the disk is not full");
        until("the metric shows it", &[&one], || figure(&one, "data_free_bytes") == "0");
        update(dir, MORE);
        let line = one.says("cannot make or fetch a cell; it will be tried again");
        assert!(line.contains("No space left on device"), "{line}");
        let ready = one.until(200);
        assert!(ready.contains(" cells are missing; row 2") && ready.contains("No space left on device"), "{ready}");
        two.until(200);
        until("the metrics show it", &[&one], || figure(&one, "cells_wanted") == "1");
        answer(&[&one, &two]);
        assert_eq!(figure(&one, "epoch_current"), "1", "the new epoch waits");

        fs::remove_file(dir.join("one/other")).unwrap();
        until_epoch("2", &[&one, &two]);
        whole(&[&one, &two]);
        assert_ne!(figure(&one, "data_free_bytes"), "0");
        assert_eq!([&one, &two].map(|server| links(server.address, MORE).0), [200; 2]);
    });
}

#[test]
fn a_certificate_has_expired() {
    let dir = store();
    let dir = dir.path();
    let (authority, names) = (Authority::new(dir), ["one", "two", "three"]);
    let tls = |name| format!("--tls-cert {{}}/{name}.cert --tls-key {{}}/{name}.key --tls-ca {{}}/ca.pem");
    names.iter().for_each(|name| authority.issue(dir, name, if *name == "three" { 5 } else { 1000 }));
    let one = start(dir, "one", &[], &tls("one"));
    let two = start(dir, "two", &[&one], &tls("two"));
    let three = start(dir, "three", &[&one, &two], &tls("three"));
    whole(&[&one, &two, &three]);
    let client = |server: &Server| format!("links --server {} --tls-ca {{}}/ca.pem {}", server.address, page(0));
    let metric = format!("certificate_not_after_seconds{{file=\"{}/three.cert\"}}", dir.display());
    let end = figure(&three, &metric);

    three.says("three.cert: the certificate expires at ");
    three.says("three.cert: the certificate expired at ");
    assert!(three.until(503).contains("three.cert: the certificate of this server expired"));
    let said = fails(dir, &client(&three));
    assert!(said.contains("invalid peer certificate: certificate expired"), "{said}");
    assert_eq!([&one, &two].map(|server| succeeds(dir, &client(server))), [page(1) + "\n", page(1) + "\n"]);
    // A restart does not help.
    let said = fails(dir, &format!("serve {{}}/store --listen 127.0.0.1:0 --data {{}}/other {}", tls("three")));
    assert!(said.contains("renew it, or set the clock"), "{said}");
    // Connections are opened again.
    [&one, &two].iter().for_each(|server| server.signal("HUP"));
    until("the others say whom they cannot call", &[&one, &two, &three], || {
        [&one, &two].iter().all(|server| {
            let (status, said) = readyz(server);
            status == 200 && said.contains(&format!("TLS: {}: its certificate is not accepted here", three.address))
        })
    });
    assert_eq!(figure(&one, "peers_distrusted"), "1");

    authority.issue(dir, "three", 1000);
    three.says("certificates and tokens were read again");
    whole(&[&one, &two, &three]);
    assert_eq!(succeeds(dir, &client(&three)), page(1) + "\n");
    assert!(figure(&three, &metric) > end);
    three.signal("HUP");
    three.says("certificates and tokens were read again");
}

#[test]
fn the_number_of_replicas_changes() {
    let dir = store();
    let dir = dir.path();
    let two = start(dir, "two", &[], "--replicas 2");
    let three = start(dir, "three", &[&two], "--replicas 2");
    let one = start(dir, "one", &[&two, &three], "--replicas 2");
    whole(&[&one, &two, &three]);
    let is_over = &AtomicBool::new(false);
    let there = |server: &Server| figure(server, "cells_unsettled") == "0" && readyz(server).0 == 200;
    let (one, two, (asked, failed)) = thread::scope(|scope| {
        let address = three.address;
        let asking = scope.spawn(move || ask(address, is_over));
        one.leave(SOON);
        let one = start(dir, "one", &[&two, &three], "--replicas 3");
        one.says("were started with --replicas 2, which counts; this server was started with 3");
        until("it is there", &[&one, &two, &three], || there(&one));
        assert!(readyz(&one).1.contains("started with --replicas 3, most servers with 2, which counts"));
        assert_eq!(figure(&one, "replicas"), "2", "one server changes nothing");
        two.leave(SOON);
        let two = start(dir, "two", &[&one, &three], "--replicas 3");
        let all = [&one, &two, &three];
        until("two servers do", &all, || all.iter().all(|server| figure(server, "replicas") == "3"));
        until("it is there", &all, || all.iter().all(|server| there(server)));
        is_over.store(true, Ordering::Relaxed);
        (one, two, asking.join().unwrap())
    });
    assert!(asked > PAGES && failed.is_empty(), "{asked} {failed:?}");
    three.leave(SOON);
    let three = start(dir, "three", &[&one, &two], "--replicas 3");
    whole(&[&one, &two, &three]);
    until("all have all", &[&one, &two, &three], || [&one, &two, &three].map(cells) == [CELLS; 3]);
}

/// Replaces the store of running servers by another store. Each server says so and ends.
fn exchange(dir: &Path, other: &str, servers: Vec<Server>) {
    fs::rename(dir.join("store"), dir.join("aside")).unwrap();
    fs::rename(dir.join(other), dir.join("store")).unwrap();
    for mut server in servers {
        assert_eq!(server.ends(SOON).code(), Some(1));
        assert!(server.says("error: ").contains("store is another store now: epoch "), "{}", server.said());
    }
}

#[test]
fn a_store_is_restored_from_a_backup() {
    let dir = store();
    let dir = dir.path();
    copy(&dir.join("store"), &dir.join("backup"));
    let one = start(dir, "one", &[], "");
    let two = start(dir, "two", &[&one], "");
    update(dir, MORE);
    until_epoch("2", &[&one, &two]);
    whole(&[&one, &two]);
    assert_eq!(links(one.address, MORE).0, 200);

    exchange(dir, "backup", vec![one, two]);
    assert!(succeeds(dir, "check {}/store").contains("store: epoch 1 is sound"));
    let one = start(dir, "one", &[], "");
    let two = start(dir, "two", &[&one], "");
    whole(&[&one, &two]);
    assert_eq!([&one, &two].map(|server| figure(server, "epoch_current")), ["1", "1"]);
    answer(&[&one, &two]);
    assert_eq!(links(one.address, MORE).0, 404);
    // Another epoch of the same number. The servers still have cells of the earlier epoch.
    let other = "http://other.example/";
    update(dir, other);
    until_epoch("2", &[&one, &two]);
    whole(&[&one, &two]);
    for server in [&one, &two] {
        assert_eq!([MORE, other].map(|url| links(server.address, url).0), [404, 200]);
    }
}

/// Changes the images below a store to another version of the program. The version is the ninth byte.
fn of_another_version(store: &Path) {
    for image in images(store) {
        let mut bytes = fs::read(&image).unwrap();
        bytes[8] -= 1;
        // Servers have mapped the file, so the test replaces it and does not overwrite it.
        fs::write(store.join("image"), bytes).unwrap();
        fs::rename(store.join("image"), image).unwrap();
    }
}

#[test]
fn a_new_version_of_the_program() {
    let dir = store();
    let dir = dir.path();
    succeeds(dir, "cells {}/store");
    // With one replica, no server waits for another server to make a cell.
    let serve = |name, others: &[&Server]| start(dir, name, others, "--replicas 1");
    let one = serve("one", &[]);
    let two = serve("two", &[&one]);
    let three = serve("three", &[&one, &two]);
    whole(&[&one, &two, &three]);
    let is_over = &AtomicBool::new(false);
    let why = &*format!("has version {}, expected {VERSION}; run `webstrata cells`", VERSION - 1);
    let (one, two, (asked, failed)) = thread::scope(|scope| {
        let address = three.address;
        let asking = scope.spawn(move || ask(address, is_over));
        one.leave(SOON);
        of_another_version(&dir.join("store"));
        let one = serve("one", &[&two, &three]);
        let line = one.says("the image of a cell is not sound, and is not used");
        assert!(line.contains("WARN") && line.contains(why), "{line}");
        whole(&[&one, &two, &three]);
        assert_ne!(figure(&one, "cells_made_total"), "0");
        two.leave(SOON);
        let two = serve("two", &[&one, &three]);
        whole(&[&one, &two, &three]);
        is_over.store(true, Ordering::Relaxed);
        (one, two, asking.join().unwrap())
    });
    assert!(asked > PAGES && failed.is_empty(), "{asked} {failed:?}");
    for command in ["check {}/store", "links {}/store http://host-0.example/0"] {
        assert!(fails(dir, command).contains(why));
    }
    assert!(succeeds(dir, "cells {}/store").contains(&format!("{CELLS} of them made now")));
    assert!(succeeds(dir, "check {}/store").contains("is sound"));
    answer(&[&one, &two, &three]);
    let (_, metrics) = get(one.admin.unwrap(), "/metrics").unwrap();
    assert!(metrics.contains(&format!("webstrata_build_info{{version=\"{}\"}} 1", env!("CARGO_PKG_VERSION"))));
}

#[test]
fn pages_must_be_removed_now() {
    let dir = store();
    let dir = dir.path();
    fs::write(dir.join("list.txt"), page(1) + "\n").unwrap();
    let one = start(dir, "one", &[], "");
    let two = start(dir, "two", &[&one], "");
    whole(&[&one, &two]);
    let before = images(&dir.join("one"));
    assert!(fails(dir, "check {}/store --removed {}/list.txt").contains(&page(1)));
    // A process reads the epoch, and does not end.
    let reader = webstrata_layers::Store::open(dir.join("store")).unwrap();
    let said = fails(dir, "remove {}/store --host host-1.example --reason case-17 --wait 1");
    // A slow server may still hold the epoch, too, and is named beside this process.
    let open = said.lines().find(|line| line.contains("epoch 1 is still open: ")).unwrap_or_default();
    assert!(open.contains(&format!("process {} ", std::process::id())), "{said}");
    drop(reader);
    let said = succeeds(dir, "remove {}/store --finish");
    assert!(said.contains("store: no file contains what 1 rule removed"), "{said}");
    for server in [&one, &two] {
        assert_eq!(links(server.address, &page(1)).0, 404, "{}", server.said());
        let (status, said) = links(server.address, &format!("{}&epoch=1", page(0)));
        assert!(status == 400 && said.contains("EPOCH_RETIRED"), "{status} {said}");
        server.says("retired an epoch epoch=1");
        assert_eq!(figure(server, "epoch_lag_seconds"), "0.0");
    }
    assert!(succeeds(dir, "check {}/store --removed {}/list.txt").contains("store: no file contains the URL"));
    assert!(succeeds(dir, "remove {}/store --list").contains("case-17"));
    let left = images(&dir.join("one"));
    assert!(!before.is_empty() && before.iter().all(|image| !left.contains(image)), "{left:?}");
    whole(&[&one, &two]);
    assert!(is_right(one.address, 2, 1));
}

#[test]
fn a_server_is_slow() {
    let dir = store();
    let dir = dir.path();
    let one = start(dir, "one", &[], "--calls 1");
    let two = start(dir, "two", &[&one], "");
    let three = start(dir, "three", &[&one, &two], "");
    whole(&[&one, &two, &three]);
    let hedges = |server| figure(server, "clerk_hedges_total").parse::<u32>().unwrap();
    let before = hedges(&one);
    two.signal("STOP");
    let begun = Instant::now();
    answer(&[&one]);
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    until("others were asked in its place", &[&one], || hedges(&one) > before);
    one.says("a server no longer answers");
    until("it is given up", &[&one, &three], || figure(&one, "servers_alive") == "2");
    two.signal("CONT");
    whole(&[&one, &two, &three]);
    answer(&[&two]);

    // More concurrent callers than the server accepts.
    let (callers, gate, address) = (80, Barrier::new(80), one.address);
    let statuses: BTreeSet<u16> = thread::scope(|scope| {
        let ask = || {
            gate.wait();
            (0..5).map(|number| links(address, &page(number)).0).collect::<Vec<u16>>()
        };
        let asking: Vec<_> = (0..callers).map(|_| scope.spawn(ask)).collect();
        asking.into_iter().flat_map(|asking| asking.join().unwrap()).collect()
    });
    assert_eq!(statuses, [200, 429].into());
    assert_ne!(figure(&one, "calls_refused_total{pool=\"links\"}"), "0");
    assert_eq!(readyz(&one).0, 200);
    answer(&[&one]);
}

#[test]
fn a_server_has_another_store() {
    let dir = store();
    let dir = dir.path();
    build(dir, "other", 2);
    let one = start(dir, "one", &[], "");
    one.until(200);
    let foreign = start_of(dir, "other", ("foreign", "foreign"), &[&one], "");
    for server in [&one, &foreign] {
        let line = server.says("cannot form a cluster with this server");
        assert!(line.contains("ERROR") && line.contains("serves another store"), "{line}");
    }
    until("the foreign server says why", &[&foreign], || {
        let (status, said) = readyz(&foreign);
        status == 503 && said.contains("this server could not join its cluster") && said.contains("another store")
    });
    assert_eq!(readyz(&one), (200, "ready\n".to_owned()));
    assert_eq!(figure(&one, "servers_alive"), "1");
    answer(&[&one]);
    drop(foreign);
    let two = start(dir, "two", &[&one], "");
    whole(&[&one, &two]);

    exchange(dir, "other", vec![one, two]);
    let one = start(dir, "one", &[], "");
    whole(&[&one]);
    assert!((0..PAGES).all(|number| is_right(one.address, number, 2)), "{}", one.said());
}

/// The titles of the sections, as names of tests.
fn sections(text: &str) -> BTreeSet<String> {
    text.lines().filter_map(|line| line.strip_prefix("## ")).map(|title| slug(title).replace('-', "_")).collect()
}

#[test]
fn each_section_has_its_test() {
    let tests = include_str!("runbook.rs").split("#[test]").skip(1);
    let names = tests.filter_map(|text| text.split_once("\nfn ")?.1.split_once("()")).map(|(name, _)| name.to_owned());
    let about_the_page = ["each_section_has_its_test", "the_names_of_the_runbook_exist"];
    let names: BTreeSet<String> = names.filter(|name| !about_the_page.contains(&&**name)).collect();
    assert_eq!(sections(&document(RUNBOOK)), names);
    assert_eq!(names.len(), 10);
}

#[test]
fn the_names_of_the_runbook_exist() {
    let (text, alerts) = (document(RUNBOOK), document("packages/prometheus/alerts.yml"));
    let words = text.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'));
    let begins = |word: &str| word.strip_prefix("Webstrata").is_some_and(|rest| rest.starts_with(char::is_uppercase));
    let (mut named, mut measured) = (0, 0);
    let dir = store();
    let dir = dir.path();
    Authority::new(dir).issue(dir, "one", 1000);
    let one = start(dir, "one", &[], "--tls-cert {}/one.cert --tls-key {}/one.key");
    one.until(200);
    // Some metrics exist only after the first call.
    succeeds(dir, &format!("links --server {} --tls-ca {{}}/ca.pem {}", one.address, page(0)));
    let metrics = get(one.admin.unwrap(), "/metrics").unwrap().1;
    for word in words {
        if begins(word) {
            assert!(alerts.contains(&format!("- alert: {word}\n")), "no alert is called {word}");
            named += 1;
        } else if word.starts_with("webstrata_") && word != "webstrata_" || word.starts_with("process_") {
            let names = ["", "_count"].map(|end| format!("\n{word}{end}"));
            let is_it = |name: &String| [" ", "{"].iter().any(|next| metrics.contains(&format!("{name}{next}")));
            assert!(names.iter().any(is_it), "no metric is called {word}");
            measured += 1;
        }
    }
    assert!(named >= 5 && measured >= 10, "{named} alerts, {measured} metrics");
}
