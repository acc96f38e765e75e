//! Tests of spans: the fields in the log, and the trace in calls to other servers. With the feature `otel`, also the
//! spans that a collector receives.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::{Arc, LazyLock, Mutex};

use tracing::dispatcher::{self, DefaultGuard, Dispatch};
use tracing_subscriber::fmt::MakeWriter;

use super::*;
use crate::guard::trial::{HELD, Tardy, client, http, router, serve, slow, until};
use crate::protocol::proto::FetchRequest;

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

#[test]
fn traces_are_read_as_they_are_written() {
    let trace = Trace::parse(PARENT).expect("the example of the standard");
    assert_eq!((trace.span, trace.sampled), (0xb7ad_6b71_6920_3331, true));
    assert_eq!(trace.to_string(), PARENT);
    let child = trace.child();
    assert_eq!((child.id, child.sampled), (trace.id, true));
    assert_ne!(child.span, trace.span);
    assert_eq!(Trace::parse(&Trace::begin().to_string()).map(|trace| trace.sampled), Some(false));

    let later = PARENT.replacen("00", "01", 1);
    assert_eq!(Trace::parse(&later), Some(trace));
    assert_eq!(Trace::parse(&format!("{later}-more")), Some(trace));
    for none in [
        "",
        "00",
        &PARENT[1..],
        &PARENT[..54],
        &format!("{PARENT}-more"),
        &format!("{PARENT}0"),
        &PARENT.replacen("00", "ff", 1),
        &PARENT.to_uppercase(),
        &PARENT.replace('c', "g"),
        &PARENT.replace("b7ad6b7169203331", "0000000000000000"),
        &PARENT.replace("0af7651916cd43dd8448eb211c80319c", "00000000000000000000000000000000"),
        &PARENT.replace('-', "+"),
    ] {
        assert_eq!(Trace::parse(none), None, "{none}");
    }
}

/// The text that a subscriber writes.
#[derive(Clone, Default)]
struct Text(Arc<Mutex<Vec<u8>>>);

impl Text {
    fn get(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().expect("no panic")).into_owned()
    }
}

impl Write for Text {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no panic").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Text {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

/// A subscriber of the whole process, which records nothing. If a process has only one subscriber, a thread without it
/// that reaches a span first hides that span from all threads.
static OTHER: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(tracing_subscriber::registry()));

/// The subscriber of this test, until the guard is dropped.
fn watched(subscriber: impl Into<Dispatch>) -> DefaultGuard {
    LazyLock::force(&OTHER);
    dispatcher::set_default(&subscriber.into())
}

/// Asks a server as a peer does: with the trace of the current call.
async fn ask(address: SocketAddr, millis: u64) -> String {
    let mut question = slow(millis);
    propagate(question.metadata_mut());
    client(address).await.ask(question).await.map_or_else(|refused| refused.to_string(), |_| "forwarded".to_owned())
}

#[tokio::test]
async fn logs_show_a_call_with_its_trace_and_its_end() {
    let text = Text::default();
    let subscriber = tracing_subscriber::fmt().with_ansi(false);
    let _default = watched(subscriber.with_writer(text.clone()).finish());
    let tardy = Tardy::default();
    let address = serve(around(router(&tardy), &Methods::default()), None).await;
    let channel = client(address).await;

    let mut question = slow(5);
    question.metadata_mut().insert(TRACEPARENT, PARENT.parse().expect("a header"));
    channel.clone().ask(question).await.expect("an answer");
    until(async || text.get().contains("answered")).await;
    let line = text.get();
    for field in [
        "method=\"Cells/Ask\"",
        "path=\"/webstrata.v1.Cells/Ask\"",
        "peer=127.0.0.1:",
        "trace=0af7651916cd43dd8448eb211c80319c",
        "epoch=5",
        "code=\"OK\"",
        "seconds=0.0",
        "bytes=5",
    ] {
        assert!(line.contains(field), "{field}: {line}");
    }

    let mut gone = channel.clone();
    let gone = tokio::spawn(async move { gone.ask(slow(HELD)).await });
    until(async || tardy.running.load(std::sync::atomic::Ordering::SeqCst) == 1).await;
    gone.abort();
    until(async || text.get().contains("code=\"CANCELLED\"")).await;
    http(address, "/none", &format!("traceparent: {PARENT}\r\ntraceparent: {PARENT}\r\n")).await;
    until(async || text.get().contains("code=\"UNIMPLEMENTED\"") || text.get().contains("method=\"other\"")).await;
    let last = text.get().lines().last().expect("a line").to_owned();
    assert!(!last.contains("0af7651916cd43dd8448eb211c80319c"), "two parents are none: {last}");
}

#[tokio::test]
async fn a_trace_goes_on_from_server_to_server() {
    let far = Tardy::default();
    let far_address = serve(around(router(&far), &Methods::default()), None).await;
    let forward = axum::routing::get(async move || ask(far_address, 0).await);
    let streamed = axum::routing::get(async move || {
        let asked = futures_util::stream::once(async move { io::Result::Ok(ask(far_address, 0).await) });
        axum::body::Body::from_stream(asked)
    });
    let near = router(&Tardy::default()).route("/v1/forwarded", forward).route("/v1/streamed", streamed);
    let near = serve(around(near, &Methods::default()), None).await;

    let seen = || Trace::parse(far.seen.lock().expect("no panic").take().as_deref()?);
    for path in ["/v1/forwarded", "/v1/streamed"] {
        let answer = http(near, path, &format!("traceparent: {PARENT}\r\n")).await;
        assert!(answer.contains("forwarded"), "{answer}");
        let (there, here) = (seen().expect("a trace"), Trace::parse(PARENT).expect("a trace"));
        assert_eq!((there.id, there.sampled), (here.id, true));
        assert_ne!(there.span, here.span, "the span of the server between");
        let answer = http(near, path, "traceparent: none\r\n").await;
        assert!(answer.contains("forwarded"), "{answer}");
        assert_ne!(seen().expect("a new trace").id, here.id);
    }
    ask(far_address, 0).await;
    assert_eq!(seen(), None, "outside of calls there is no trace");
    let trace = Trace::begin();
    tokio::spawn(within(trace, ask(far_address, 0))).await.expect("no panic");
    assert_eq!(seen(), Some(trace), "a part of a call in another task");
}

#[tokio::test]
async fn an_answer_in_parts_is_one_call() {
    let text = Text::default();
    let subscriber = tracing_subscriber::fmt().with_ansi(false);
    let _default = watched(subscriber.with_writer(text.clone()).finish());
    let address = serve(around(router(&Tardy::default()), &Methods::default()), None).await;
    let answer = client(address).await.fetch(FetchRequest { cell: None, source: 10 }).await.expect("a stream");
    let parts = tokio_stream::StreamExt::collect::<Vec<_>>(answer.into_inner()).await;
    assert_eq!(parts.len(), 10);
    until(async || text.get().contains("answered")).await;
    assert!(text.get().contains("code=\"OK\"") && text.get().contains("bytes=80"), "{}", text.get());
}

#[cfg(feature = "otel")]
mod otel {
    use super::*;
    use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{TraceService, TraceServiceServer};
    use opentelemetry_proto::tonic::collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse};
    use opentelemetry_proto::tonic::common::v1::any_value::Value;
    use std::time::Duration;
    use tracing_subscriber::layer::SubscriberExt;

    /// Keeps the received spans.
    #[derive(Clone, Default)]
    struct Collector(Arc<Mutex<Vec<ExportTraceServiceRequest>>>);

    #[tonic::async_trait]
    impl TraceService for Collector {
        async fn export(
            &self,
            request: tonic::Request<ExportTraceServiceRequest>,
        ) -> Result<tonic::Response<ExportTraceServiceResponse>, tonic::Status> {
            self.0.lock().expect("no panic").push(request.into_inner());
            Ok(tonic::Response::new(ExportTraceServiceResponse::default()))
        }
    }

    #[tokio::test]
    async fn a_collector_gets_the_spans_of_calls() {
        let collector = Collector::default();
        let service = tonic::service::Routes::new(TraceServiceServer::new(collector.clone()));
        let to = serve(service.into_axum_router(), None).await;
        let (layer, exporter) = exporter(&format!("http://{to}"), "webstrata-trial").expect("an exporter");
        let _default = watched(tracing_subscriber::registry().with(layer));

        let far = Tardy::default();
        let far_address = serve(around(router(&far), &Methods::default()), None).await;
        let forward = axum::routing::get(async move || ask(far_address, 3).await);
        let near = router(&Tardy::default()).route("/v1/forwarded", forward);
        let near = serve(around(near, &Methods::default()), None).await;
        http(near, "/v1/forwarded", &format!("traceparent: {PARENT}\r\n")).await;
        let cell = Some(crate::protocol::proto::CellName { row: 1, partition: 0 });
        let failing = client(far_address).await.fetch(FetchRequest { cell, source: 0 }).await;
        drop(failing.expect("a stream").into_inner().message().await);
        tokio::time::sleep(Duration::from_millis(20)).await;
        exporter.end(Duration::from_secs(5)).await;

        let got = collector.0.lock().expect("no panic").clone();
        let resources: Vec<_> = got.iter().flat_map(|request| &request.resource_spans).collect();
        let named = resources[0].resource.as_ref().expect("a resource").attributes.iter();
        let service = named.clone().find(|pair| pair.key == "service.name").and_then(|pair| pair.value.clone());
        assert_eq!(service.and_then(|any| any.value), Some(Value::StringValue("webstrata-trial".to_owned())));
        let spans: Vec<_> =
            resources.iter().flat_map(|spans| &spans.scope_spans).flat_map(|scope| &scope.spans).collect();
        let of = |name: &str| *spans.iter().find(|span| span.name == name).expect("a span of it");
        let (near, far, failed) = (of("other"), of("Cells/Ask"), of("Cells/Fetch"));
        let parent = Trace::parse(PARENT).expect("a trace");
        assert_eq!(near.trace_id, parent.id.to_be_bytes());
        assert_eq!(near.parent_span_id, parent.span.to_be_bytes());
        assert_eq!((&far.trace_id, &far.parent_span_id), (&near.trace_id, &near.span_id), "a child of the first");
        assert_eq!(far.kind, 2, "a server's");
        let has = |key: &str| far.attributes.iter().any(|pair| pair.key == key);
        assert!(["method", "peer", "epoch", "code", "seconds", "bytes"].into_iter().all(has), "{far:?}");
        assert_eq!(failed.status.as_ref().map(|status| status.code), Some(2), "an error");
        assert!(spans.iter().all(|span| span.kind == 2), "calls alone");
    }

    #[tokio::test]
    async fn what_is_no_collector_is_refused() {
        for endpoint in ["", "http://", "localhost:4317", "https://localhost:4317", "http://a b"] {
            let refused = exporter::<tracing_subscriber::Registry>(endpoint, "webstrata").err();
            assert!(refused.is_some_and(|error| error.to_string().contains(endpoint)), "{endpoint}");
        }
    }
}
