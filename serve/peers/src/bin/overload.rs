//! Measures a server under overload: calls at 1, 2, 5 and 10 times its rate, cheap and heavy, over gRPC and HTTP/1.1,
//! in one table.
//!
//! ```text
//! cargo run --release --manifest-path serve/peers/Cargo.toml --target-dir target --bin overload -- \
//!     STORE [SECONDS [TIMES]]
//! ```
//!
//! STORE is any store; missing cells are made. For each kind of call, the peak rate is measured first: the rate at
//! which the server answers when its callers always send as many calls as it takes. Then calls are *offered* at
//! multiples of the peak rate, whether or not earlier calls have finished.
//!
//! A call is *sent* if a connection takes it: over HTTP/2 while the connection has fewer calls than the server permits,
//! over HTTP/1.1 while it has none. A call that no connection takes is dropped. With TIMES as many connections the
//! server cannot hold back all calls and refuses some. A sent call is *answered* if the whole answer came within two
//! seconds, *refused* if the server refused it, *late* if it took longer, and *failed* otherwise.
//!
//! Each rate runs for a while before it is counted. Server and callers share the cores, with separate threads. Callers
//! must therefore be cheap: they use HTTP/2 without a gRPC client.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use bytes::{BufMut, Bytes, BytesMut};
use futures_util::future::BoxFuture;
use h2::client::SendRequest;
use http::Request;
use http_body_util::{BodyExt, Empty};
use hyper_util::rt::TokioIo;
use prost::Message;
use tokio::net::TcpStream;
use tokio::runtime::{Handle, Runtime};
use webstrata_layers::{Direction, Location, Uid, Window};
use webstrata_serve::clerk::{Clerk, ClerkOptions};
use webstrata_serve::cluster::ClusterOptions;
use webstrata_serve::dial::Dialer;
use webstrata_serve::protocol::proto::{Direction as Asks, GetLinksRequest};
use webstrata_serve::server::{Server, ServerOptions};

/// The numbers of HTTP/2 and HTTP/1.1 connections, to be multiplied by TIMES.
const CONNECTIONS: (usize, usize) = (4, 128);
/// The number of pages in a cheap call, and of hubs in a heavy call.
const CHEAP: usize = 2;
const HEAVY: usize = 500;
/// The number of different calls of each kind.
const CALLS: usize = 1000;
/// The time after which an answer is late.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long a rate runs before it is counted.
const WARM: Duration = Duration::from_secs(3);
/// The most calls offered between two reads of the clock.
const OFFERED_AT_ONCE: usize = 2000;
/// The offered rates, as multiples of the peak rate.
const TIMES: [f64; 4] = [1.0, 2.0, 5.0, 10.0];

/// How a call ended.
#[derive(Clone, Copy)]
enum End {
    Answered,
    Refused,
    Late,
    Failed,
}

/// A way to send calls. `send` returns a call if a connection takes it now.
trait Caller: Send + Sync {
    fn send(&self, number: usize) -> Option<BoxFuture<'static, End>>;
}

/// Calls over HTTP/2, without a gRPC client.
struct Grpc {
    connections: Vec<(SendRequest<Bytes>, Arc<AtomicUsize>)>,
    path: String,
    messages: Vec<Bytes>,
}

impl Grpc {
    async fn connect(address: &str, method: &str, messages: Vec<Bytes>, times: usize) -> anyhow::Result<Self> {
        let mut connections = Vec::new();
        for _ in 0..times * CONNECTIONS.0 {
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            let mut builder = h2::client::Builder::new();
            builder.initial_window_size(1 << 20).initial_connection_window_size(8 << 20);
            let (sender, connection) = builder.handshake(stream).await?;
            tokio::spawn(connection);
            connections.push((sender, Arc::default()));
        }
        // Wait until the server has sent its limit on concurrent calls.
        tokio::time::sleep(Duration::from_millis(200)).await;
        Ok(Self { connections, path: format!("http://{address}/webstrata.v1.Links/{method}"), messages })
    }
}

/// Counts a call of a connection until it is dropped.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Caller for Grpc {
    fn send(&self, number: usize) -> Option<BoxFuture<'static, End>> {
        let at = (0..self.connections.len()).map(|more| (number + more) % self.connections.len()).find(|&at| {
            let (sender, own) = &self.connections[at];
            own.load(Ordering::Relaxed) < sender.current_max_send_streams()
        })?;
        let (sender, own) = &self.connections[at];
        own.fetch_add(1, Ordering::Relaxed);
        let (counted, mut sender) = (Counted(own.clone()), sender.clone());
        let request = Request::post(&self.path).header("content-type", "application/grpc").header("te", "trailers");
        let request = request.header("grpc-timeout", "2S").body(()).expect("a request");
        let message = self.messages[number % self.messages.len()].clone();
        Some(Box::pin(async move {
            let _counted = counted;
            let answered = async {
                let (response, mut body) = sender.send_request(request, false)?;
                body.send_data(message, true)?;
                let (head, mut body) = response.await?.into_parts();
                let status = |headers: &http::HeaderMap| headers.get("grpc-status").map(|own| own.as_bytes().to_vec());
                if let Some(status) = status(&head.headers) {
                    return Ok(Some(status));
                }
                while let Some(data) = body.data().await {
                    let length = data?.len();
                    body.flow_control().release_capacity(length)?;
                }
                Ok::<_, h2::Error>(body.trailers().await?.as_ref().and_then(status))
            };
            match answered.await.ok().flatten().as_deref() {
                Some(b"0") => End::Answered,
                Some(b"8") => End::Refused,
                Some(b"4" | b"1") => End::Late,
                _ => End::Failed,
            }
        }))
    }
}

type Plain = hyper::client::conn::http1::SendRequest<Empty<Bytes>>;

/// Calls over HTTP/1.1, one at a time on each of many connections.
struct Http {
    address: String,
    free: Arc<Mutex<VecDeque<Plain>>>,
    paths: Vec<String>,
}

impl Http {
    async fn connect(address: &str, paths: Vec<String>, times: usize) -> anyhow::Result<Self> {
        let free = Arc::<Mutex<VecDeque<Plain>>>::default();
        for _ in 0..times * CONNECTIONS.1 {
            let connection = Self::open(address).await?;
            free.lock().unwrap_or_else(PoisonError::into_inner).push_back(connection);
        }
        Ok(Self { address: address.to_owned(), free, paths })
    }

    async fn open(address: &str) -> anyhow::Result<Plain> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(sender)
    }
}

impl Caller for Http {
    fn send(&self, number: usize) -> Option<BoxFuture<'static, End>> {
        let mut sender = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop_front()?;
        let request = Request::get(&self.paths[number % self.paths.len()]).header("host", &self.address);
        let request = request.body(Empty::new()).expect("a request");
        let (free, address) = (self.free.clone(), self.address.clone());
        // A separate task, so that the connection is returned even if the call is dropped.
        let call = tokio::spawn(async move {
            let answered = async {
                let response = sender.send_request(request).await?;
                let status = response.status().as_u16();
                response.into_body().collect().await?;
                // Wait until the connection takes the next call.
                sender.ready().await?;
                Ok::<_, hyper::Error>(status)
            };
            let (end, sender) = match answered.await {
                Ok(200) => (End::Answered, Some(sender)),
                Ok(429) => (End::Refused, Some(sender)),
                Ok(_) => (End::Failed, Some(sender)),
                Err(_) => (End::Failed, Self::open(&address).await.ok()),
            };
            free.lock().unwrap_or_else(PoisonError::into_inner).extend(sender);
            end
        });
        Some(Box::pin(async move { call.await.unwrap_or(End::Failed) }))
    }
}

/// The results of calls.
#[derive(Default)]
struct Counts {
    /// Calls offered, calls sent, and calls by [`End`].
    calls: [AtomicU64; 6],
    /// The times of answered calls, in microseconds.
    times: Mutex<Vec<u64>>,
}

impl Counts {
    fn add(&self, at: usize) {
        self.calls[at].fetch_add(1, Ordering::Relaxed);
    }

    fn now(&self) -> [u64; 6] {
        self.calls.each_ref().map(|count| count.load(Ordering::Relaxed))
    }
}

/// A row of the table: calls a second, and the median and 99th percentile of the times of answered calls.
struct Row {
    a_second: [f64; 6],
    times: [u64; 2],
}

/// Offers calls at a rate, in calls a second; `None`: as many as the connections take.
async fn offer(caller: &Arc<dyn Caller>, rate: Option<f64>, seconds: f64) -> anyhow::Result<Row> {
    let counts = Arc::<Counts>::default();
    let (begun, end) = (Instant::now(), WARM + Duration::from_secs_f64(seconds));
    let (mut number, mut before) = (0_usize, None);
    let mut calls = tokio::task::JoinSet::new();
    while begun.elapsed() < end {
        if before.is_none() && begun.elapsed() >= WARM {
            before = Some((counts.now(), Instant::now()));
            counts.times.lock().unwrap_or_else(PoisonError::into_inner).clear();
        }
        // The burst is bounded, so that the clock is read even if calls are refused as fast as they are sent.
        for _ in 0..OFFERED_AT_ONCE {
            if rate.is_some_and(|rate| number as f64 >= begun.elapsed().as_secs_f64() * rate) {
                break;
            }
            let Some(call) = caller.send(number) else {
                if rate.is_none() {
                    break;
                }
                counts.add(0);
                number += 1;
                continue;
            };
            counts.add(0);
            counts.add(1);
            number += 1;
            let counts = counts.clone();
            calls.spawn(async move {
                let sent = Instant::now();
                let end = tokio::time::timeout(PATIENCE, call).await.unwrap_or(End::Late);
                counts.add(2 + end as usize);
                if matches!(end, End::Answered) {
                    let time = u64::try_from(sent.elapsed().as_micros()).unwrap_or(u64::MAX);
                    counts.times.lock().unwrap_or_else(PoisonError::into_inner).push(time);
                }
            });
        }
        while calls.try_join_next().is_some() {}
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let (before, since) = before.context("SECONDS is too short")?;
    let (after, elapsed) = (counts.now(), since.elapsed().as_secs_f64());
    let mut times = std::mem::take(&mut *counts.times.lock().unwrap_or_else(PoisonError::into_inner));
    while calls.join_next().await.is_some() {}
    times.sort_unstable();
    let at = |share: usize| times.get(times.len() * share / 100).copied().unwrap_or(0);
    Ok(Row {
        a_second: std::array::from_fn(|kind| (after[kind] - before[kind]) as f64 / elapsed),
        times: [at(50), at(99)],
    })
}

/// A message in a gRPC frame.
fn framed(message: &impl Message) -> Bytes {
    let mut framed = BytesMut::new();
    framed.put_u8(0);
    framed.put_u32(u32::try_from(message.encoded_len()).expect("a small message"));
    message.encode(&mut framed).expect("there is room");
    framed.freeze()
}

/// Encodes a text as a value in the query of a URL.
fn escaped(text: &str) -> String {
    text.bytes().fold(String::new(), |out, byte| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => out + &char::from(byte).to_string(),
        _ => format!("{out}%{byte:02X}"),
    })
}

fn main() -> anyhow::Result<()> {
    let servers = Runtime::new()?;
    Runtime::new()?.block_on(measure(servers.handle().clone()))
}

async fn measure(servers: Handle) -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let location = Location::parse(arguments.next().context("usage: overload STORE [SECONDS [TIMES]]")?)?;
    let seconds: f64 = arguments.next().map_or(Ok(5.0), |text| text.parse())?;
    let times: usize = arguments.next().map_or(Ok(1), |text| text.parse())?;
    let directory = tempfile::tempdir()?;
    let options =
        ServerOptions::new(ClusterOptions { replicas: 1, ..ClusterOptions::new(directory.path().join("data")) });
    let server = servers.spawn(Server::start(location, "127.0.0.1:0".parse()?, options)).await??;
    server.ready().await;
    let address = server.address().to_string();
    let clerk = Clerk::connect(std::slice::from_ref(&address), Dialer::default(), ClerkOptions::default()).await?;
    let pinned = clerk.at_last(None).await?;

    let mut seed = 7u64;
    let mut draw = |end: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(seed >> 33).expect("64 bits") % end
    };
    // Random pages, and random links of these pages. Most of the links are hubs.
    let urls = usize::try_from(pinned.len())?;
    let (mut pages, mut hubs) = (Vec::new(), Vec::new());
    for _ in 0..1000 {
        let uids: Vec<Uid> = (0..1000).map(|_| Uid(draw(urls) as u64)).collect();
        for (uid, links) in uids.iter().zip(pinned.links(&uids, Direction::Out, Window::ALWAYS).await?.iter()) {
            if !links.is_empty() {
                pages.push(*uid);
                hubs.push(links[draw(links.len())]);
            }
        }
        if pages.len() >= 10 * CALLS {
            break;
        }
    }
    ensure!(!pages.is_empty(), "the store has no page with links");
    let grpc = |of: &[Uid], many: usize, direction: Asks, draw: &mut dyn FnMut(usize) -> usize| -> Vec<Bytes> {
        let uids = |draw: &mut dyn FnMut(usize) -> usize| (0..many).map(|_| of[draw(of.len())].0).collect();
        let calls = if many == HEAVY { CALLS / 50 } else { CALLS };
        (0..calls)
            .map(|_| framed(&GetLinksRequest { uids: uids(draw), direction: direction.into(), ..Default::default() }))
            .collect()
    };
    let (cheap, heavy) = (grpc(&pages, CHEAP, Asks::Out, &mut draw), grpc(&hubs, HEAVY, Asks::InByRange, &mut draw));
    let texts = async |uids: &[Uid], draw: &mut dyn FnMut(usize) -> usize, rest: &str| {
        let uids: Vec<Uid> = (0..CALLS).map(|_| uids[draw(uids.len())]).collect();
        let urls = pinned.urls(&uids).await?;
        anyhow::Ok(urls.iter().map(|url| format!("/v1/links?url={}{rest}", escaped(url))).collect::<Vec<_>>())
    };
    let page = texts(&pages, &mut draw, "&limit=2").await?;
    let hub = texts(&hubs, &mut draw, "&direction=in&precision=range&limit=1000").await?;
    println!("Calls a second. p50 and p99: times of answered calls. part: answered calls as a part of the peak.");
    println!(
        "{:<12} {:>6} {:>9} {:>8} {:>9} {:>8} {:>6} {:>7} {:>9} {:>9} {:>5}",
        "calls", "times", "offered", "sent", "answered", "refused", "late", "failed", "p50 ms", "p99 ms", "part"
    );
    let mut worst = f64::INFINITY;
    for name in ["gRPC, cheap", "gRPC, heavy", "HTTP, cheap", "HTTP, heavy"] {
        // Connections opened earlier would be idle until their turn, and the server would close them.
        let caller: Arc<dyn Caller> = match name {
            "gRPC, cheap" => Arc::new(Grpc::connect(&address, "GetLinks", cheap.clone(), times).await?),
            "gRPC, heavy" => Arc::new(Grpc::connect(&address, "GetLinks", heavy.clone(), times).await?),
            "HTTP, cheap" => Arc::new(Http::connect(&address, page.clone(), times).await?),
            _ => Arc::new(Http::connect(&address, hub.clone(), times).await?),
        };
        let peak = offer(&caller, None, seconds).await?;
        let most = peak.a_second[2];
        let show = |times: &str, row: &Row| {
            let [offered, sent, answered, refused, late, failed] = row.a_second;
            let [p50, p99] = row.times.map(|time| time as f64 / 1000.0);
            println!(
                "{name:<12} {times:>6} {offered:>9.0} {sent:>8.0} {answered:>9.0} {refused:>8.0} {late:>6.0} \
                 {failed:>7.0} \
                 {p50:>9.1} {p99:>9.1} {:>5.2}",
                answered / most
            );
        };
        show("peak", &peak);
        if most == 0.0 {
            bail!("{name}: no call was answered");
        }
        for times in TIMES {
            let row = offer(&caller, Some(most * times), seconds).await?;
            show(&format!("{times}"), &row);
            worst = worst.min(row.a_second[2] / most);
        }
    }
    println!("lowest part of the peak: {worst:.2}");
    Ok(())
}
