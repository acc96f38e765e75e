//! Malformed and hostile requests to a server. Each request is answered, or refused with a status of the list in
//! `webstrata.proto`. The server does not panic and does not grow, and it answers valid questions all the time.
//!
//! Seeded. By default the test sends some thousands of requests, in seconds. `WEBSTRATA_HOSTILE=100000,7` sets the
//! number and the seed, and prints the number of requests by outcome, and the memory of the process before and after.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

#[path = "hostile/callers.rs"]
mod callers;
#[path = "hostile/counting.rs"]
mod counting;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use counting::{Counting, LIVE, PEAK};
use futures_util::future::join_all;
use prost::Message;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};
use webstrata_layers::{Links, RangeLength, Reader, Store, TIMES, Uid, Window as In};
use webstrata_serve::guard::limits::Limits;
use webstrata_serve::protocol::proto::links_client::LinksClient;
use webstrata_serve::protocol::proto::question::Question as Asked;
use webstrata_serve::protocol::proto::window::{Seen, Window as Of};
use webstrata_serve::protocol::proto::{self, CellName, Question, UidList, Window};
use webstrata_serve::protocol::status::Reason;
use webstrata_tests::clusters::{Cluster, Shape};
use webstrata_tests::crawls::Random;
use webstrata_tests::rows::{self, Rows};
use webstrata_tests::stores::reader;
use webstrata_tests::wire::{
    self, Kind, altered, call, call_framed, frame, greeted, headers, mutated, noise, random_bytes,
};

/// The time within which every call must end.
const WITHIN: Duration = Duration::from_secs(20);

/// The number of requests, the seed, and whether the caller set them and wants figures.
fn size() -> (u64, u64, bool) {
    let Ok(text) = std::env::var("WEBSTRATA_HOSTILE") else { return (4000, 1, false) };
    let (count, seed) = text.split_once(',').expect("WEBSTRATA_HOSTILE is COUNT,SEED");
    (count.parse().expect("a count"), seed.parse().expect("a seed"), true)
}

/// The number of panics of all threads since a test began to count.
static PANICS: AtomicU64 = AtomicU64::new(0);

/// Each test holds this lock, so that it measures only its own memory and panics.
static ALONE: Mutex<()> = Mutex::new(());

fn count_panics() {
    static SET: std::sync::Once = std::sync::Once::new();
    SET.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            PANICS.fetch_add(1, Ordering::SeqCst);
            before(panic);
        }));
    });
    PANICS.store(0, Ordering::SeqCst);
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The bytes that stay allocated while the server is idle: the minimum over a second.
async fn live() -> isize {
    let mut least = isize::MAX;
    for _ in 0..100 {
        tokio::time::sleep(Duration::from_millis(10)).await;
        least = least.min(LIVE.load(Ordering::Relaxed));
    }
    least
}

/// The resident memory of this process, in bytes.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    4096 * statm.split(' ').nth(1).unwrap().parse::<u64>().unwrap()
}

/// Starts servers of a small store of several rows.
fn served(shape: Shape) -> (TempDir, Reader, Cluster) {
    count_panics();
    let dir = tempfile::tempdir().unwrap();
    let rows = Rows::random(5, rows::Shape { rows: 3, pages: 30, captures: 200, links: 8, in_order: false });
    rows.write(dir.path(), 3, RangeLength::Month);
    let cluster = Cluster::start(dir.path(), shape);
    let layers = reader(dir.path());
    (dir, layers, cluster)
}

fn channel(address: &str) -> Channel {
    Endpoint::from_shared(format!("http://{address}")).unwrap().connect_lazy()
}

/// Asks a valid question and checks the answer, between hostile requests.
async fn is_right(channel: &Channel, layers: &Reader, uid: u64) {
    let request = proto::GetLinksRequest { uids: vec![uid], ..Default::default() };
    let begun = Instant::now();
    let answer = LinksClient::new(channel.clone()).get_links(request).await;
    let links = answer
        .unwrap_or_else(|status| panic!("a right question after {:?}: {status:?}", begun.elapsed()))
        .into_inner()
        .links;
    assert_eq!(Uid::of_numbers(links), layers.out_links(Uid(uid), In::ALWAYS).unwrap(), "UID {uid}");
}

/// The outcome of a call, for counts. A refusal that is not in the list is an error.
fn told(path: &str, answer: &Result<Vec<Bytes>, Status>) -> Result<String, String> {
    let status = match answer {
        Ok(_) => return Ok("OK".to_owned()),
        Err(status) => status,
    };
    let known = match Reason::of(status) {
        Some(reason) => status.code() == reason.code(),
        // tonic itself refuses bytes that are not a message, and messages that are too long. The caller may end a call
        // early.
        None => match status.code() {
            Code::Internal => status.message().starts_with("failed to decode Protobuf message"),
            Code::OutOfRange => status.message().contains("message length too large"),
            Code::DeadlineExceeded | Code::Cancelled | Code::Unimplemented => true,
            _ => false,
        },
    };
    let reason = Reason::of(status).map_or("of gRPC", Reason::name);
    if known { Ok(format!("{:?} {reason}", status.code())) } else { Err(format!("{path}: {status:?}")) }
}

fn seen(from: i64, to: i64) -> Option<Window> {
    Some(Window { window: Some(Of::Seen(Seen { from: Some(from), to: Some(to) })), ..Window::default() })
}

fn as_of(time: i64) -> Option<Window> {
    Some(Window { window: Some(Of::AsOf(time)), ..Window::default() })
}

/// A valid message for each method, and for each kind of question to a cell.
fn valid(urls: &[String], (cell, first): (CellName, Uid)) -> Vec<(&'static str, Vec<u8>)> {
    let uids = vec![0, 3, 1, 7];
    let window = seen(0, 40 * 86_400);
    let cell = Some(cell);
    let list = || UidList { uids: (first.0..first.0 + 3).collect() };
    let questions = [
        Asked::Find(proto::Find { keys: vec![b"example,a,)/\x01".to_vec(), Vec::new()] }),
        Asked::Urls(list()),
        Asked::Links(proto::LinksOf {
            uids: uids.clone(),
            direction: 1,
            window,
            count: true,
            sample: None,
            first: 3,
            most: 5,
        }),
        Asked::Links(proto::LinksOf {
            uids: uids.clone(),
            sample: Some(proto::Drawing { samples: 2, random: true, seed: 9 }),
            ..Default::default()
        }),
        Asked::Captures(list()),
        Asked::Lifespans(list()),
        Asked::Pages(list()),
        Asked::HasLinks(proto::HasLinks { pages: vec![0, 1], links: vec![2, 3], window }),
        Asked::Listing(proto::Listing { first: 0, end: 50, from: 0, to: i64::MAX }),
        Asked::Prefix(proto::Prefix { prefix: b"example,".to_vec() }),
        Asked::Spellings(proto::Spelling { url: urls[0].clone() }),
        Asked::InRecords(list()),
        Asked::Counts(true),
    ];
    let question = |question| Question { cell, question: Some(question) };
    let gossip =
        proto::GossipRequest { from: "127.0.0.1:9".to_owned(), message: (0..80).collect(), store: String::new() };
    let mut all = vec![
        ("/webstrata.v1.Links/UrlToUid", proto::UrlToUidRequest { epoch: 0, urls: urls[..3].to_vec() }.encode_to_vec()),
        ("/webstrata.v1.Links/UidToUrl", proto::UidToUrlRequest { epoch: 1, uids: uids.clone() }.encode_to_vec()),
        (
            "/webstrata.v1.Links/GetLinks",
            proto::GetLinksRequest { uids: uids.clone(), window, limit: 3, ..Default::default() }.encode_to_vec(),
        ),
        (
            "/webstrata.v1.Links/GetLinkCount",
            proto::GetLinkCountRequest { epoch: 0, uids: uids.clone(), direction: 1, window }.encode_to_vec(),
        ),
        (
            "/webstrata.v1.Links/SampleLinks",
            proto::SampleLinksRequest { uids: uids.clone(), direction: 2, window, samples: 2, ..Default::default() }
                .encode_to_vec(),
        ),
        (
            "/webstrata.v1.Links/GetLifespans",
            proto::GetLifespansRequest { epoch: 0, uids: uids.clone() }.encode_to_vec(),
        ),
        ("/webstrata.v1.Links/GetCaptures", proto::GetCapturesRequest { epoch: 0, uids: uids.clone() }.encode_to_vec()),
        (
            "/webstrata.v1.Links/GetChangedLinks",
            proto::GetChangedLinksRequest {
                epoch: 0,
                uids: uids.clone(),
                direction: 1,
                from: as_of(0),
                to: as_of(90 * 86_400),
            }
            .encode_to_vec(),
        ),
        (
            "/webstrata.v1.Links/GetFirstLinks",
            proto::GetFirstLinksRequest { epoch: 0, uids: uids.clone(), limit: 3 }.encode_to_vec(),
        ),
        (
            "/webstrata.v1.Links/GetBacklinks",
            proto::GetBacklinksRequest { url: urls[0].clone(), r#match: 3, limit: 9, ..Default::default() }
                .encode_to_vec(),
        ),
        (
            "/webstrata.v1.Links/GetDeaths",
            proto::GetDeathsRequest { url: urls[0].clone(), r#match: 3, linkers: 9, limit: 9, ..Default::default() }
                .encode_to_vec(),
        ),
        (
            "/webstrata.v1.Links/ListUids",
            proto::ListUidsRequest {
                from: Some(0),
                to: Some(90 * 86_400),
                first_uid: 2,
                limit: 9,
                url: urls[0].clone(),
                r#match: 3,
                ..Default::default()
            }
            .encode_to_vec(),
        ),
        ("/webstrata.v1.Links/Stats", proto::StatsRequest { epoch: 1 }.encode_to_vec()),
        ("/webstrata.v1.Links/TranslateUids", proto::TranslateUidsRequest { from: 1, to: 1, uids }.encode_to_vec()),
        ("/webstrata.v1.Links/Request", proto::RequestRequest { epoch: 1, here: false }.encode_to_vec()),
        ("/webstrata.v1.Links/Relinquish", proto::RelinquishRequest { epoch: 1, here: true }.encode_to_vec()),
        ("/webstrata.v1.Links/Topology", proto::TopologyRequest { after: 0 }.encode_to_vec()),
        ("/webstrata.v1.Cells/Fetch", proto::FetchRequest { cell, source: 5 }.encode_to_vec()),
        ("/webstrata.v1.Cells/Gossip", gossip.encode_to_vec()),
    ];
    let together =
        proto::AskRequest { questions: questions.iter().cloned().map(question).collect(), store: String::new() };
    all.push(("/webstrata.v1.Cells/Ask", together.encode_to_vec()));
    for own in questions {
        all.push((
            "/webstrata.v1.Cells/Ask",
            proto::AskRequest { questions: vec![question(own)], store: String::new() }.encode_to_vec(),
        ));
    }
    all
}

/// Sends one random hostile request. Returns the outcome.
async fn hostile(
    address: &str,
    channel: &Channel,
    valid: &[(&'static str, Vec<u8>)],
    random: &mut Random,
) -> Result<String, String> {
    let ((path, message), (_, other)) = (random.pick(valid), random.pick(valid));
    match random.below(40) {
        0 => {
            let _ = noise(address, random).await;
            Ok("noise on the port".to_owned())
        }
        1 => {
            let _ = wire::rapid_resets(address, path, 20).await;
            Ok("streams that are reset".to_owned())
        }
        2..=4 => {
            let mut framed = random_bytes(random, 5);
            framed.extend(mutated(message, other, random));
            if random.once_in(3) {
                let length = u32::try_from(message.len()).unwrap() + u32::try_from(random.below(3)).unwrap();
                framed = [&[0][..], &length.to_be_bytes(), message].concat();
            }
            match tokio::time::timeout(WITHIN, call_framed(channel, path, framed)).await {
                Ok(Ok(code)) => Ok(format!("wrong frames: {code:?}")),
                Ok(Err(error)) => Err(format!("{path}: {error:?}")),
                Err(_) => Err(format!("{path}: wrong frames are not answered")),
            }
        }
        5 | 6 => {
            let within = Duration::from_micros(random.below(3000));
            told(path, &call(channel, path, message.clone().into(), within).await)
                .map(|told| format!("{told}, in no time"))
        }
        7 | 8 => {
            let left = call(channel, path, message.clone().into(), WITHIN);
            let ended = tokio::time::timeout(Duration::from_micros(random.below(2000)), left).await;
            Ok(if ended.is_ok() { "in time".to_owned() } else { "cancelled".to_owned() })
        }
        kind => {
            let bytes = match kind {
                9 => random_bytes(random, 300).into(),
                10 => message.clone().into(),
                11..=28 => (0..random.below(3)).fold(altered(message, random), |bytes, _| altered(&bytes, random)),
                _ => mutated(message, other, random),
            };
            let answer = tokio::time::timeout(WITHIN, call(channel, path, bytes.clone(), WITHIN)).await;
            let answer = answer.map_err(|_| format!("{path}: no answer to {bytes:?}"))?;
            told(path, &answer).map_err(|problem| format!("{problem}, of {bytes:?}"))
        }
    }
}

#[test]
fn hostile_requests_are_answered_and_harm_nobody() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (count, seed, is_told) = size();
    // Answers are small, so that growth shows memory that is kept, and not the largest answers that come together.
    let limits = Limits { batch: 5000, answer_bytes: 1 << 18, ..Limits::of_cores(1) };
    let (dir, layers, cluster) = served(Shape { servers: 2, limits, ..Shape::default() });
    let urls: Vec<String> = Uid::each(Uid::below(layers.urls())).map(|uid| layers.url(uid).unwrap()).collect();
    let row = &Store::open(dir.path()).unwrap().manifest().rows[0].clone();
    let cell = CellName { row: row.row, partition: row.partitions[1].partition };
    let (valid, address) = (valid(&urls, (cell, row.partitions[1].first_uid)), cluster.addresses()[0].clone());
    let (told, asked, over) = (Mutex::new(BTreeMap::<String, u64>::new()), AtomicU64::new(0), AtomicBool::new(false));
    let layers = &layers;
    let mut kept = Vec::new();
    PEAK.store(LIVE.load(Ordering::Relaxed), Ordering::Relaxed);
    cluster.wait(async {
        for (path, message) in &valid {
            let answer = call(&channel(&address), path, message.clone().into(), WITHIN).await;
            let gossips = path.ends_with("Gossip") || path.ends_with("Fetch");
            assert!(answer.is_ok() || gossips, "{path}: {answer:?}");
        }
        let worker = |worker: u64, end: u64| {
            let (valid, address, told, asked) = (&valid, &address, &told, &asked);
            async move {
                let (channel, mut random) = (channel(address), Random(seed << 8 | end << 4 | worker));
                loop {
                    let number = asked.fetch_add(1, Ordering::SeqCst);
                    if number >= end {
                        asked.fetch_sub(1, Ordering::SeqCst);
                        break;
                    }
                    if is_told && number.is_multiple_of(count / 10) {
                        say(&format!("{number:>8} requests: RSS {} KiB", resident() >> 10));
                    }
                    let kind = hostile(address, &channel, valid, &mut random)
                        .await
                        .unwrap_or_else(|problem| panic!("{problem}"));
                    *told.lock().unwrap().entry(kind).or_default() += 1;
                }
            }
        };
        let right = async {
            let (channel, mut random) = (channel(&address), Random(seed));
            while !over.load(Ordering::SeqCst) {
                is_right(&channel, layers, random.below(layers.urls())).await;
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let work = async {
            for end in [count / 2, count] {
                join_all((0..8).map(|number| worker(number, end))).await;
                kept.push((live().await, resident()));
            }
            over.store(true, Ordering::SeqCst);
        };
        tokio::join!(work, right);
    });
    let &[(half, warm), (whole, after)] = &kept[..] else { panic!("two halves") };
    if is_told {
        for (kind, count) in &*told.lock().unwrap() {
            say(&format!("{count:>8} {kind}"));
        }
        say(&format!("allocated: {} KiB after half of them, {} KiB at the end", half >> 10, whole >> 10));
        say(&format!("allocated at once: {} KiB", PEAK.load(Ordering::Relaxed) >> 10));
        say(&format!("RSS: {} KiB after half of them, {} KiB at the end", warm >> 10, after >> 10));
    }
    assert_eq!(PANICS.load(Ordering::SeqCst), 0, "a panic");
    // A request that leaves a kilobyte behind would exceed this bound.
    let most: isize = 512 << 10;
    assert!(whole <= half + most, "{half} bytes stay after half, {whole} after all");
    // Eight callers at once, each with a batch and its answer, and the memory of the callers themselves.
    let peak = PEAK.load(Ordering::Relaxed);
    assert!(peak <= 32 << 20, "{peak} bytes at once");
    // The allocator keeps the memory of each thread's largest answers. This memory grows for hundreds of thousands of
    // requests, ever more slowly, so the halves of a short run cannot be compared. The bound is for half a million
    // requests.
    assert!(after <= 128 << 20, "memory: {warm} bytes after half of the calls, {after} at the end");
    let connections = || cluster.server(0).shared().clerk.map().servers.len();
    assert_eq!(connections(), 2, "strangers are no members");
}

/// Prints a line for a caller who asked for figures.
#[expect(clippy::print_stderr, reason = "figures that were asked for")]
fn say(text: &str) {
    eprintln!("{text}");
}

/// Makes a call, and expects a refusal with this reason.
async fn refused(channel: &Channel, path: &'static str, message: impl Message, reason: Reason) {
    let answer = call(channel, path, message.encode_to_vec().into(), WITHIN).await;
    let status = answer.expect_err(path);
    assert_eq!((status.code(), Reason::of(&status)), (reason.code(), Some(reason)), "{path}: {status:?}");
}

async fn ask(channel: &Channel, cell: Option<CellName>, question: Option<Asked>, reason: Reason) {
    let request = proto::AskRequest { questions: vec![Question { cell, question }], store: String::new() };
    refused(channel, "/webstrata.v1.Cells/Ask", request, reason).await;
}

#[test]
fn what_makes_no_sense_is_refused_for_its_reason() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let limits = Limits { batch: 1000, request_bytes: 1 << 20, ..Limits::of_cores(2) };
    let (_dir, layers, cluster) = served(Shape { limits, ..Shape::default() });
    let (end, address) = (layers.urls(), cluster.addresses()[0].clone());
    cluster.wait(async {
        let channel = &channel(&address);
        let links = |uids: Vec<u64>| proto::GetLinksRequest { uids, ..Default::default() };
        let path = "/webstrata.v1.Links/GetLinks";
        for uid in [end, end + 1, i64::MAX as u64, u64::MAX] {
            refused(channel, path, links(vec![0, uid]), Reason::UnknownUid).await;
            refused(channel, path, proto::GetLinksRequest { limit: 1, ..links(vec![0, uid]) }, Reason::UnknownUid)
                .await;
            for epoch in [0, 1] {
                let uids = vec![uid];
                refused(
                    channel,
                    "/webstrata.v1.Links/UidToUrl",
                    proto::UidToUrlRequest { epoch, uids: uids.clone() },
                    Reason::UnknownUid,
                )
                .await;
                refused(
                    channel,
                    "/webstrata.v1.Links/GetLifespans",
                    proto::GetLifespansRequest { epoch, uids: uids.clone() },
                    Reason::UnknownUid,
                )
                .await;
                refused(
                    channel,
                    "/webstrata.v1.Links/GetCaptures",
                    proto::GetCapturesRequest { epoch, uids: uids.clone() },
                    Reason::UnknownUid,
                )
                .await;
                let translated = proto::TranslateUidsRequest { from: epoch, to: 1, uids };
                refused(channel, "/webstrata.v1.Links/TranslateUids", translated, Reason::UnknownUid).await;
            }
        }
        for (from, to, direction) in [
            (as_of(1), as_of(0), 0),
            (as_of(0), seen(0, 1), 0),
            (None, as_of(0), 0),
            (as_of(0), as_of(1), 2),
            (as_of(0), as_of(1), 7),
        ] {
            let request = proto::GetChangedLinksRequest { epoch: 0, uids: vec![0], direction, from, to };
            refused(channel, "/webstrata.v1.Links/GetChangedLinks", request, Reason::BadRequest).await;
        }
        refused(channel, path, links(vec![0; 1001]), Reason::BatchTooLarge).await;
        let urls = vec![String::new(); 1001];
        refused(
            channel,
            "/webstrata.v1.Links/UrlToUid",
            proto::UrlToUidRequest { epoch: 0, urls },
            Reason::BatchTooLarge,
        )
        .await;
        let translated = proto::TranslateUidsRequest { from: 1, to: 1, uids: vec![0; 1001] };
        refused(channel, "/webstrata.v1.Links/TranslateUids", translated, Reason::BatchTooLarge).await;
        let long = proto::UrlToUidRequest { epoch: 0, urls: vec!["a".repeat(2 << 20)] }.encode_to_vec();
        let status = call(channel, "/webstrata.v1.Links/UrlToUid", long.into(), WITHIN).await.expect_err("too long");
        assert_eq!(status.code(), Code::OutOfRange, "as tonic has it: {status:?}");
        let (first, last) = (*TIMES.start(), *TIMES.end());
        let outside =
            [seen(first - 1, 0), seen(0, last + 1), seen(i64::MIN, i64::MAX), seen(1_401_010_000_000, i64::MAX)];
        for window in [seen(1, 0), seen(i64::MAX, i64::MIN)].into_iter().chain(outside) {
            refused(channel, path, proto::GetLinksRequest { window, ..links(vec![0]) }, Reason::BadRequest).await;
        }
        for direction in [-1, 3, i32::MAX, i32::MIN] {
            refused(channel, path, proto::GetLinksRequest { direction, ..links(vec![0]) }, Reason::BadRequest).await;
        }
        for token in ["1.0", "0", ".", "-1.0", &"0".repeat(64), &"f".repeat(64), &"f".repeat(10_000), "\0"] {
            for limit in [0, 5] {
                let request = proto::GetLinksRequest { limit, page_token: token.to_owned(), ..links(vec![0]) };
                refused(channel, path, request, Reason::BadRequest).await;
            }
        }
        for epoch in [2, 99, u64::MAX] {
            refused(channel, path, proto::GetLinksRequest { epoch, ..links(vec![0]) }, Reason::EpochUnknown).await;
            refused(channel, "/webstrata.v1.Links/Stats", proto::StatsRequest { epoch }, Reason::EpochUnknown).await;
            let translated = proto::TranslateUidsRequest { from: epoch, to: 0, uids: vec![0] };
            refused(channel, "/webstrata.v1.Links/TranslateUids", translated, Reason::EpochUnknown).await;
        }
        for kind in [-1, 5, i32::MAX] {
            let request =
                proto::ListUidsRequest { url: "http://a.example/".to_owned(), r#match: kind, ..Default::default() };
            refused(channel, "/webstrata.v1.Links/ListUids", request, Reason::BadRequest).await;
        }
        for url in ["http://", "\0", "//", &"a".repeat(500_000), "http://[::1]/", "http://user@a.example/"] {
            let request = proto::ListUidsRequest { url: url.to_owned(), r#match: 2, ..Default::default() };
            let answer = call(channel, "/webstrata.v1.Links/ListUids", request.encode_to_vec().into(), WITHIN).await;
            told("ListUids", &answer).unwrap();
        }
        let here = CellName { row: layers_row(channel).await, partition: 0 };
        let list = |uid| UidList { uids: vec![uid] };
        ask(channel, None, Some(Asked::Urls(list(0))), Reason::BadRequest).await;
        ask(channel, Some(here), None, Reason::BadRequest).await;
        for (row, partition) in [(999, 0), (u32::MAX, u32::MAX), (here.row, 999)] {
            ask(channel, Some(CellName { row, partition }), Some(Asked::Captures(list(0))), Reason::CellNotHere).await;
            let fetched = proto::FetchRequest { cell: Some(CellName { row, partition }), source: 0 };
            refused(channel, "/webstrata.v1.Cells/Fetch", fetched, Reason::CellNotHere).await;
        }
        refused(
            channel,
            "/webstrata.v1.Cells/Fetch",
            proto::FetchRequest { cell: None, source: 0 },
            Reason::BadRequest,
        )
        .await;
        refused(
            channel,
            "/webstrata.v1.Cells/Fetch",
            proto::FetchRequest { cell: Some(here), source: 1 },
            Reason::CellNotHere,
        )
        .await;
        ask(channel, Some(here), Some(Asked::Urls(list(u64::MAX))), Reason::BadRequest).await;
        let unequal = proto::HasLinks { pages: vec![1, 2], links: vec![1], window: None };
        ask(channel, Some(here), Some(Asked::HasLinks(unequal)), Reason::BadRequest).await;
        let large = Asked::Captures(UidList { uids: vec![0; 64_001] });
        ask(channel, Some(here), Some(large), Reason::BatchTooLarge).await;
        for (from, message) in
            [("127.0.0.1:9", vec![]), ("127.0.0.1:9", vec![0; 100_000]), ("nowhere", vec![1]), ("", vec![])]
        {
            let request = proto::GossipRequest { from: from.to_owned(), message, store: String::new() };
            refused(channel, "/webstrata.v1.Cells/Gossip", request, Reason::BadRequest).await;
        }
        is_right(channel, &layers, 0).await;
    });
    assert_eq!(PANICS.load(Ordering::SeqCst), 0, "a panic");
}

/// The number of a row.
async fn layers_row(channel: &Channel) -> u32 {
    let topology = LinksClient::new(channel.clone()).topology(proto::TopologyRequest { after: 0 }).await;
    topology.unwrap().into_inner().rows[0].row
}
