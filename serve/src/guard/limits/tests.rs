//! Tests of limits with real servers that get more calls than their limits.

use std::net::SocketAddr;
use std::time::Instant;

use futures_util::FutureExt;
use futures_util::future::join_all;
use tokio_stream::StreamExt;
use tonic::Code;
use tonic_types::StatusExt;

use super::*;
use crate::guard::methods::Method;
use crate::guard::trial::{HELD, Tardy, client, http, router, serve, slow, until};
use crate::protocol::proto::{FetchRequest, GossipRequest};

fn limits(calls: usize, queue: usize, wait: Duration) -> Limits {
    Limits { calls, queue, queue_wait: wait, sharers: 1, ..Limits::of_cores(2) }
}

async fn server(limits: &Limits, methods: Methods) -> (SocketAddr, Admission, Tardy) {
    let (admission, tardy) = (Admission::new(limits), Tardy::default());
    let address = serve(admission.around(router(&tardy), &methods), None).await;
    (address, admission, tardy)
}

fn load(admission: &Admission, pool: Pool) -> Load {
    admission.loads().into_iter().find(|load| load.pool == pool).expect("all pools")
}

/// Running, waiting.
fn busy(admission: &Admission, pool: Pool) -> (usize, usize) {
    let load = load(admission, pool);
    (load.running, load.waiting)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_times_more_calls_than_fit() {
    let (calls, queue) = (8, 8);
    let (address, admission, tardy) = server(&limits(calls, queue, Duration::from_secs(60)), Methods::default()).await;
    let client = client(address).await;
    for round in 1..=6 {
        tardy.released.send_replace(false);
        let asked = (0..10 * (calls + queue)).map(|_| {
            let mut client = client.clone();
            tokio::spawn(async move {
                let begun = Instant::now();
                (client.ask(slow(HELD)).await, begun.elapsed())
            })
        });
        let asked: Vec<_> = asked.collect();
        // All excess calls are refused before any call is answered.
        until(async || load(&admission, Pool::Ask).refused == round * 9 * 16).await;
        until(async || busy(&admission, Pool::Ask) == (calls, queue)).await;
        // A call that counts as running may not have reached the service yet.
        until(async || tardy.most.load(Ordering::SeqCst) == calls).await;
        tardy.released.send_replace(true);
        let mut served = 0;
        for call in asked {
            let (answer, time) = call.await.expect("no panic");
            match answer {
                Ok(_) => served += 1,
                Err(refused) => {
                    assert_eq!(refused.code(), Code::ResourceExhausted);
                    let info = refused.get_details_error_info().expect("an ErrorInfo");
                    assert_eq!((info.reason.as_str(), info.domain.as_str()), ("OVERLOADED", "webstrata"));
                    assert!(time < Duration::from_secs(2), "refused after {time:?}, and not at once");
                }
            }
        }
        assert_eq!(served, calls + queue, "all that were let in, and no more");
        assert_eq!(tardy.most.load(Ordering::SeqCst), calls);
        until(async || busy(&admission, Pool::Ask) == (0, 0)).await;
    }
}

#[tokio::test]
async fn one_caller_leaves_places_for_others() {
    let limits = Limits { sharers: 2, ..limits(4, 8, Duration::from_millis(500)) };
    let admission = Admission::new(&limits);
    let places = admission.places(Pool::Links).expect("a pool");
    let origin = |last: u8| Origin::of([10, 0, 0, last].into());
    let mut held = [places.enter(origin(1)).await, places.enter(origin(1)).await];
    let mut waiting: Vec<_> = (0..4).map(|_| Box::pin(places.enter(origin(1)))).collect();
    for call in &mut waiting {
        assert!(call.now_or_never().is_none(), "half of the places are another's");
    }
    assert_eq!(busy(&admission, Pool::Links), (2, 4));
    assert!(places.enter(origin(1)).await.is_none(), "so is half of the queue");
    let others = [places.enter(origin(2)).await, places.enter(origin(2)).await];
    assert!(others.iter().all(Option::is_some), "at once, whoever waits");
    // All permits are taken. A new caller gets a returned permit after the callers that came before.
    let mut third = Box::pin(places.enter(origin(3)));
    assert!((&mut third).now_or_never().is_none());
    held[0] = None;
    assert!(waiting.iter_mut().any(|call| call.now_or_never().is_some()) || (&mut third).now_or_never().is_some());
    drop((waiting, third, held, others));
    assert_eq!(busy(&admission, Pool::Links), (0, 0));
    let _again = places.enter(origin(4)).await.expect("a place");
    (0..=255).for_each(|last| drop(places.share_of(origin(last))));
    assert!(places.shares.lock().expect("no panic").len() < 64, "callers that have gone are forgotten");
}

#[tokio::test]
async fn who_waits_is_let_in_or_refused_in_time() {
    let (address, admission, tardy) = server(&limits(1, 2, Duration::from_secs(1)), Methods::default()).await;
    let client = client(address).await;
    let ask = |timeout: Option<u64>| {
        let mut client = client.clone();
        let mut question = slow(HELD);
        timeout.into_iter().for_each(|millis| question.set_timeout(Duration::from_millis(millis)));
        tokio::spawn(async move {
            let begun = Instant::now();
            (client.ask(question).await.map_err(|refused| refused.code()).map(drop), begun.elapsed())
        })
    };
    let first = ask(None);
    until(async || busy(&admission, Pool::Ask) == (1, 0)).await;
    // Each call waits for as long as its caller wants and the server permits.
    let (patient, hasty) = (ask(None), ask(Some(50)));
    let (refused, time) = hasty.await.expect("no panic");
    assert!(matches!(refused, Err(Code::ResourceExhausted | Code::Cancelled | Code::DeadlineExceeded)), "{refused:?}");
    assert!(time >= Duration::from_millis(45) && time < Duration::from_millis(900), "{time:?}");
    let (refused, time) = patient.await.expect("no panic");
    assert_eq!(refused, Err(Code::ResourceExhausted));
    assert!(time >= Duration::from_millis(990), "{time:?}");
    assert_eq!(busy(&admission, Pool::Ask), (1, 0), "nobody waits any more");
    let next = ask(None);
    until(async || busy(&admission, Pool::Ask) == (1, 1)).await;
    tardy.released.send_replace(true);
    assert!(first.await.expect("no panic").0.is_ok());
    assert!(next.await.expect("no panic").0.is_ok(), "who waits gets the place");
}

#[tokio::test]
async fn calls_that_are_dropped_give_their_places_back() {
    let (address, admission, tardy) = server(&limits(2, 2, Duration::from_secs(60)), Methods::default()).await;
    let channel = client(address).await;
    for _ in 0..5 {
        let calls: Vec<_> = (0..4)
            .map(|_| {
                let mut client = channel.clone();
                tokio::spawn(async move { client.ask(slow(60_000)).await })
            })
            .collect();
        until(async || busy(&admission, Pool::Ask) == (2, 2)).await;
        calls.iter().for_each(tokio::task::JoinHandle::abort);
        until(async || busy(&admission, Pool::Ask) == (0, 0)).await;
        assert_eq!(tardy.running.load(Ordering::SeqCst), 0, "the calls ended, too");
    }
    assert_eq!(load(&admission, Pool::Ask).refused, 0);
    channel.clone().ask(slow(0)).await.expect("there is room");
}

#[tokio::test]
async fn an_answer_keeps_its_place_until_it_has_ended() {
    let (address, admission, _) = server(&limits(4, 0, Duration::ZERO), Methods::default()).await;
    let channel = client(address).await;
    let fetch = async |source, row| {
        let cell = Some(crate::protocol::proto::CellName { row, partition: 0 });
        let answer = channel.clone().fetch(FetchRequest { cell, source }).await;
        answer.map(tonic::Response::into_inner)
    };
    // The answer is larger than the buffers for a caller that does not read.
    let mut long = fetch(1_000_000, 0).await.expect("a quarter of the places is for images");
    assert_eq!(busy(&admission, Pool::Fetch), (1, 0));
    assert_eq!(fetch(1, 0).await.expect_err("no place").code(), Code::ResourceExhausted);
    channel.clone().ask(slow(0)).await.expect("other pools have places of their own");
    let mut count = 0;
    while let Some(part) = long.next().await {
        part.expect("a part");
        count += 1;
    }
    assert_eq!(count, 1_000_000);
    until(async || busy(&admission, Pool::Fetch) == (0, 0)).await;
    // An answer that is dropped or fails gives its permit back.
    drop(fetch(1_000_000, 0).await.expect("a place"));
    until(async || busy(&admission, Pool::Fetch) == (0, 0)).await;
    let mut failing = fetch(3, 1).await.expect("a place");
    while failing.next().await.is_some_and(|part| part.is_ok()) {}
    until(async || busy(&admission, Pool::Fetch) == (0, 0)).await;
}

#[tokio::test]
async fn pools_do_not_wait_for_one_another() {
    // HTTP calls of the pool `links` that ask the same server, as it asks its peers.
    let methods = Methods::default().with("/v1/forwarded", Method::of("Links/GetLinks", Pool::Links));
    let (limits, tardy) = (limits(2, 100, Duration::from_secs(20)), Tardy::default());
    let admission = Admission::new(&limits);
    let peer = Arc::new(tokio::sync::OnceCell::new());
    let to = Arc::clone(&peer);
    let forwarded = axum::routing::get(async move || {
        let address = *to.get().expect("it is known");
        client(address).await.ask(slow(10)).await.map(|_| "forwarded").map_err(|error| error.to_string())
    });
    let router = router(&tardy).route("/v1/forwarded", forwarded);
    let address = serve(admission.around(router, &methods), None).await;
    peer.set(address).expect("once");
    let calls = join_all((0..20).map(|_| http(address, "/v1/forwarded", "")));
    let answers = timeout(Duration::from_secs(10), calls).await.expect("no deadlock");
    assert!(answers.iter().all(|answer| answer.ends_with("forwarded")), "{answers:?}");
}

#[tokio::test]
async fn a_full_server_still_gossips_and_is_looked_after() {
    let (address, admission, _) = server(&limits(1, 0, Duration::ZERO), Methods::default()).await;
    let channel = client(address).await;
    let mut busy_client = channel.clone();
    let busy_call = tokio::spawn(async move { busy_client.ask(slow(60_000)).await });
    until(async || busy(&admission, Pool::Ask) == (1, 0)).await;
    assert_eq!(channel.clone().ask(slow(0)).await.expect_err("full").code(), Code::ResourceExhausted);
    channel.clone().gossip(GossipRequest::default()).await.expect("gossip has no limit");
    assert!(http(address, "/readyz", "").await.ends_with("ready"));
    busy_call.abort();
}

#[tokio::test]
async fn http_callers_are_told_to_come_again() {
    let limits = Limits { calls: 0, queue: 0, ..Limits::of_cores(1) };
    let (address, _, _) = server(&limits, Methods::default()).await;
    let refused = http(address, "/v1/plain", "").await;
    assert!(refused.starts_with("HTTP/1.1 429") && refused.contains("\"OVERLOADED\""), "{refused}");
    assert!(refused.contains("retry-after: 1"), "{refused}");
}

#[tokio::test]
async fn work_that_outlives_its_caller_keeps_the_place() {
    let admission = Admission::new(&limits(1, 0, Duration::ZERO));
    let place = admission.places(Pool::Links).expect("a pool").enter(Origin::default()).await.expect("a place");
    let work = place.clone();
    drop(place);
    assert_eq!(busy(&admission, Pool::Links), (1, 0));
    drop(work);
    assert_eq!(busy(&admission, Pool::Links), (0, 0));
}

#[test]
fn limits_fit_the_machine() {
    let (small, large) = (Limits::of_cores(2), Limits::of_cores(64));
    assert_eq!((small.calls, small.queue, small.connections), (32, 1024, 1024));
    assert_eq!((large.calls, large.queue, large.connections), (1024, 32768, 16384));
    // All calls that one caller sends over four connections may run or wait.
    for limits in [small, large] {
        let sent = 4 * usize::try_from(limits.streams()).expect("64 bits");
        assert!(sent <= limits.share(limits.calls) + limits.share(limits.queue), "{limits:?}");
    }
    assert_eq!(Limits::of_cores(0), Limits::of_cores(1));
    assert_eq!(Limits::of_cores(usize::MAX), Limits::of_cores(256));

    let bounds = small.bounds();
    bounds.admit(100_000).expect("as many as may be");
    let refused = bounds.admit(100_001).expect_err("one more");
    let info = refused.get_details_error_info().expect("an ErrorInfo");
    assert_eq!((refused.code(), info.reason.as_str()), (Code::OutOfRange, "BATCH_TOO_LARGE"));
    assert_eq!((info.metadata["given"].as_str(), info.metadata["most"].as_str()), ("100001", "100000"));
    bounds.admit_values(2 << 20).expect("as many as may be");
    let refused = bounds.admit_values((2 << 20) + 1).expect_err("one more");
    assert_eq!(refused.get_details_error_info().expect("an ErrorInfo").reason, "ANSWER_TOO_LARGE");
}

#[tokio::test]
async fn who_is_refused_hears_so_after_a_while_unless_many_are_or_it_can_ask_another() {
    let wait = Duration::from_millis(300);
    let admission = Admission::new(&limits(1, 1, wait));
    for (pool, on_hold) in [(Pool::Links, HOLDS), (Pool::Ask, 0)] {
        let places = admission.places(pool).expect("it is counted");
        let enter = || places.enter(Origin::of([10, 0, 0, 1].into()));
        let _held = enter().await.expect("the place");
        let begun = Instant::now();
        let all = join_all((0..8).map(|_| async { (enter().await.is_none(), begun.elapsed()) })).await;
        assert!(all.iter().all(|(refused, _)| *refused));
        // One of the calls waited for the permit.
        assert_eq!(all.iter().filter(|(_, time)| *time >= wait).count(), 1 + on_hold, "{pool:?}: {all:?}");
        assert!(all.iter().all(|(_, time)| *time < 3 * wait), "{pool:?}: {all:?}");
    }
}
