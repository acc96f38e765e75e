//! A cluster of real processes under load. Servers are killed, stopped and restarted, and join and leave, at random
//! moments. Meanwhile the store is updated, merged and garbage-collected. No call fails, and no answer is wrong.
//!
//! `replicas - 1` servers fail at a time. The next server fails when the cluster is whole again. Each call is about the
//! epoch that is current when the call begins, and its answer is compared with the oracle of that epoch.
//! `WEBSTRATA_CHAOS=SECONDS,SEED` (25,1) sets the duration and the events. A longer run: `WEBSTRATA_CHAOS=600,7 cargo
//! test -p webstrata --test chaos -- --nocapture`.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]
#![expect(clippy::print_stdout, reason = "what chance has come to")]

mod cluster;
mod servers;

use cluster::{Cluster, run};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::Duration;
use tokio::time::Instant;
use webstrata_serve::clerk::{Clerk, ClerkOptions};
use webstrata_serve::dial::Dialer;
use webstrata_tests::crawls::{Random, Size};
use webstrata_tests::load::Load;
use webstrata_tests::story::Story;

const SIZE: Size = Size { pages: 150, captures: 3000, links: 12 };
const PARTITION_URLS: u64 = 150;
const REPLICAS: usize = 2;
const SERVERS: usize = 5;
/// The time within which a cluster must be whole again.
const WHOLE: Duration = Duration::from_secs(60);
/// A call that begins within this time after a failure counts as a call during the failure.
const AFTER: Duration = Duration::from_secs(3);
/// The maximum p99 of the calls that begin during a failure.
const P99_MAX: Duration = Duration::from_millis(200);

fn setting() -> (u64, u64) {
    let text = std::env::var("WEBSTRATA_CHAOS").unwrap_or_else(|_| "25,1".to_owned());
    let (seconds, seed) = text.split_once(',').unwrap();
    (seconds.parse().unwrap(), seed.parse().unwrap())
}

/// Adds batches until there are none left, and sometimes merges and garbage-collects. Returns the number of runs of
/// each command.
fn write(story: &Story, batches: u64, mut random: Random, stop: &AtomicBool) -> BTreeMap<&'static str, u64> {
    let mut done: BTreeMap<&'static str, u64> = BTreeMap::new();
    for batch in 1..batches {
        thread::sleep(Duration::from_secs(1) + random.moment(3.0));
        if stop.load(SeqCst) {
            break;
        }
        run(story, &format!("update STORE DIR/batch-{batch} -w 1 --partition-urls {PARTITION_URLS}"));
        *done.entry("updates").or_default() += 1;
        if random.once_in(3) {
            run(story, "merge STORE --rows all -w 1");
            *done.entry("merges").or_default() += 1;
        }
        if random.once_in(3) {
            run(story, "gc STORE --keep 1");
            *done.entry("collections").or_default() += 1;
        }
    }
    done
}

/// Sets a flag at the end, even if a test fails.
struct AtTheEnd<'a>(&'a AtomicBool);

impl Drop for AtTheEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

/// The events of servers, and the times of failures.
#[derive(Default)]
struct Events {
    counts: BTreeMap<&'static str, u64>,
    failures: Vec<Instant>,
}

impl Events {
    /// Kills a server, and after a while starts the same server or a new server.
    fn kill(&mut self, cluster: &mut Cluster, random: &mut Random) {
        let name = random.pick(&cluster.servers).name.clone();
        *self.counts.entry("kills").or_default() += 1;
        self.failures.push(Instant::now());
        drop(cluster.take(&name));
        thread::sleep(random.moment(2.5));
        cluster.start(random.once_in(2).then_some(name));
    }
}

/// Causes random events on the servers until the time is over.
fn disturb(cluster: &mut Cluster, clerk: &Clerk, random: &mut Random, end: Instant) -> Events {
    let mut events = Events::default();
    while Instant::now() < end {
        cluster.whole(clerk, REPLICAS, WHOLE);
        thread::sleep(random.moment(1.0));
        let at = random.index(cluster.servers.len());
        let name = cluster.servers[at].name.clone();
        let event = match random.below(10) {
            0..5 => "kills",
            5..7 => "stops",
            7..9 if cluster.servers.len() > SERVERS - 1 => "leaves",
            _ if cluster.servers.len() <= SERVERS => "joins",
            _ => "leaves",
        };
        if event != "kills" {
            *events.counts.entry(event).or_default() += 1;
        }
        tracing::info!(event, name, "an event");
        match event {
            "kills" => events.kill(cluster, random),
            "stops" => {
                events.failures.push(Instant::now());
                cluster.servers[at].signal("STOP");
                thread::sleep(Duration::from_millis(300) + random.moment(5.0));
                cluster.servers[at].signal("CONT");
            }
            // A server that joins or leaves does not count as failed, so another server may fail meanwhile.
            "leaves" => {
                let server = cluster.take(&name);
                let leaving = thread::spawn(move || server.leave(WHOLE));
                thread::sleep(random.moment(1.5));
                if random.once_in(2) {
                    events.kill(cluster, random);
                }
                leaving.join().unwrap();
            }
            _ => {
                cluster.start(None);
                thread::sleep(random.moment(1.5));
                if random.once_in(2) {
                    events.kill(cluster, random);
                }
            }
        }
    }
    cluster.whole(clerk, REPLICAS, WHOLE);
    events
}

#[test]
fn no_call_fails_whatever_happens_to_one_server_at_a_time() {
    let (seconds, seed) = setting();
    println!("WEBSTRATA_CHAOS={seconds},{seed}");
    if let Some(level) = std::env::var("WEBSTRATA_LOG").ok().and_then(|level| level.parse::<tracing::Level>().ok()) {
        let _ = tracing_subscriber::fmt().with_max_level(level).with_ansi(false).try_init();
    }
    let batches = 2 + seconds / 3;
    let story = Arc::new(Story::new(seed, SIZE, batches, PARTITION_URLS));
    let mut cluster =
        Cluster::new(story.dir(), "--gossip 0.1 --settle 0.5 --watch 0.2 --grace 20 --replicas 2 --drain 20");
    (0..SERVERS).for_each(|_| _ = cluster.start(None));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let addresses: Vec<String> = cluster.servers.iter().map(|server| server.address.to_string()).collect();
    let clerk = runtime.block_on(Clerk::connect(&addresses, Dialer::default(), ClerkOptions::default())).unwrap();
    cluster.whole(&clerk, REPLICAS, WHOLE);

    let load = Load::start(&runtime, &clerk, &story, 6, seed);
    let (mut random, stop) = (Random(seed), AtomicBool::new(false));
    let writing = random.clone();
    let begun = Instant::now();
    let (events, written) = thread::scope(|scope| {
        let writer = scope.spawn(|| write(&story, batches, writing, &stop));
        let at_the_end = AtTheEnd(&stop);
        let events = disturb(&mut cluster, &clerk, &mut random, begun + Duration::from_secs(seconds));
        drop(at_the_end);
        (events, writer.join().unwrap())
    });
    let report = load.finish(&runtime);

    println!("{:?}; {:?}; {written:?}; epochs {:?}", begun.elapsed(), events.counts, report.epochs);
    println!("{} calls: {:?}; {:?}", report.times.len(), report.calls, clerk.counts());
    let in_failure = |call: Instant| events.failures.iter().any(|&at| at <= call && call < at + AFTER);
    let (all, failing) = (report.latencies(|_| true), report.latencies(in_failure));
    println!("p50, p99, longest: {all:?}; of calls within {AFTER:?} of a failure: {failing:?}");
    println!("without failures: {:?}", report.latencies(|call| !in_failure(call)));
    report.assert_sound();
    assert!(failing[1] < P99_MAX, "{failing:?}");
}
