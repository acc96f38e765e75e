//! All guards around a real server, as a program combines them: over TLS, with tokens, with too many calls, and at the
//! end of the server.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;
use std::time::Duration;

use futures_util::Stream;
use futures_util::future::join_all;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tonic::service::Routes;
use tonic::transport::{Channel, Error, Server};
use tonic::{Code, Request, Response, Status};
use tonic_types::StatusExt;
use webstrata_serve::dial::Dialer;
use webstrata_serve::guard::connections::ConnectionLimits;
use webstrata_serve::guard::connections::incoming::LimitedIncoming;
use webstrata_serve::guard::drain::{Drain, End};
use webstrata_serve::guard::host::Hosts;
use webstrata_serve::guard::limits::{Admission, Limits};
use webstrata_serve::guard::methods::{Method, Methods, Pool};
use webstrata_serve::guard::metrics::Metrics;
use webstrata_serve::guard::security::{Security, SecurityOptions};
use webstrata_serve::guard::{Caller, Guard};
use webstrata_serve::protocol::proto::cells_client::CellsClient;
use webstrata_serve::protocol::proto::cells_server::{Cells, CellsServer};
use webstrata_serve::protocol::proto::{
    AskRequest, AskResponse, FetchRequest, FetchResponse, GossipRequest, GossipResponse, Question,
};

/// A service that answers after ten milliseconds, with one answer for each question.
struct Slow;

#[tonic::async_trait]
impl Cells for Slow {
    async fn ask(&self, request: Request<AskRequest>) -> Result<Response<AskResponse>, Status> {
        tokio::time::sleep(Duration::from_millis(10)).await;
        let answers = request.into_inner().questions.iter().map(|_| Default::default()).collect();
        Ok(Response::new(AskResponse { answers }))
    }

    type FetchStream = Pin<Box<dyn Stream<Item = Result<FetchResponse, Status>> + Send>>;

    async fn fetch(&self, _: Request<FetchRequest>) -> Result<Response<Self::FetchStream>, Status> {
        Ok(Response::new(Box::pin(futures_util::stream::empty())))
    }

    async fn gossip(&self, _: Request<GossipRequest>) -> Result<Response<GossipResponse>, Status> {
        Ok(Response::new(GossipResponse {}))
    }
}

struct Running {
    address: SocketAddr,
    guard: Guard,
    end: JoinHandle<Result<End, Error>>,
}

async fn start(security: &Security, limits: &Limits) -> Running {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let incoming = LimitedIncoming::new(listener, ConnectionLimits::from(limits));
    let connections = incoming.connections();
    let (drain, health) = Drain::new(Duration::ZERO, Duration::from_secs(60)).await;
    let guard = Guard {
        hosts: Hosts::default(),
        methods: Methods::default().with("/v1/ask", Method::of("Cells/Ask", Pool::Links)),
        tokens: security.tokens(),
        admission: Admission::new(limits),
        metrics: Metrics::new(),
        drain: drain.clone(),
    };
    guard.metrics.watch_admission(&guard.admission);
    guard.metrics.watch_connections(&connections);
    let routes = Routes::new(CellsServer::new(Slow)).add_service(health).into_axum_router();
    let routes = Routes::from(guard.around(routes.route("/v1/ask", axum::routing::get(async || "asked"))));
    let server = Server::builder().accept_http1(true).add_routes(routes);
    let tls = security.server_tls();
    drain.set_ready(Ok(())).await;
    let end = tokio::spawn(async move {
        let serve = |stop| async {
            match tls {
                Some(tls) => server.serve_with_incoming_shutdown(tls.accept(incoming), stop).await,
                None => server.serve_with_incoming_shutdown(incoming, stop).await,
            }
        };
        drain.run(&connections, serve).await
    });
    Running { address, guard, end }
}

/// Writes a token, the certificate of a CA, and a certificate that the CA signed.
fn secure(dir: &Path) -> SecurityOptions {
    let mut params = CertificateParams::new(vec![]).expect("no names");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("a signer");
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(vec!["cluster.example".to_owned()]).expect("a name");
    let cert = params.signed_by(&key, &issuer).expect("a certificate");
    let write = |name: &str, text: String| {
        let path = dir.join(name);
        fs::write(&path, text).expect("a file");
        Some(path)
    };
    SecurityOptions {
        cert: write("cert.pem", cert.pem()),
        key: write("key.pem", key.serialize_pem()),
        client_ca: write("ca.pem", issuer.pem()),
        server_ca: write("ca.pem", issuer.pem()),
        tokens: write("tokens", "secret\n".to_owned()),
    }
}

fn channel(address: SocketAddr, security: &Security) -> Channel {
    let dialer = Dialer::default().secured(security.client_tls("cluster.example"), security.tokens());
    dialer.dial(&address.to_string()).expect("an address")
}

#[tokio::test]
async fn peers_call_one_another_and_others_do_not() {
    let dir = tempfile::tempdir().expect("a directory");
    let security = Security::open(&secure(dir.path())).expect("sound files");
    let Running { address, guard, end } = start(&security, &Limits::default()).await;
    let channel = channel(address, &security);

    let mut peer = CellsClient::with_interceptor(channel.clone(), Caller::new(security.tokens()));
    let mut asked = AskRequest::default();
    asked.questions.resize_with(3, Question::default);
    let answer = peer.ask(asked.clone()).await.expect("an answer");
    assert_eq!(answer.into_inner().answers.len(), 3);
    let mut stranger = CellsClient::with_interceptor(channel.clone(), Caller::default());
    let refused = stranger.ask(AskRequest::default()).await.expect_err("no token");
    assert_eq!(refused.get_details_error_info().expect("an ErrorInfo").reason, "BAD_TOKEN");
    let mut health = tonic_health::pb::health_client::HealthClient::new(channel);
    let health = health.check(tonic_health::pb::HealthCheckRequest::default()).await.expect("open to everybody");
    assert_eq!(health.into_inner().status, 1, "it serves");

    let text = guard.metrics.text();
    for line in [
        "webstrata_calls_total{method=\"Cells/Ask\",code=\"OK\"} 1",
        "webstrata_calls_total{method=\"Cells/Ask\",code=\"UNAUTHENTICATED\"} 1",
        "webstrata_calls_total{method=\"Health/Check\",code=\"OK\"} 1",
        "webstrata_connections_open 1",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    guard.drain.begin();
    assert_eq!(end.await.expect("no panic").expect("no error"), End::Whole);
    assert!(peer.ask(asked).await.is_err());
}

/// The answer to a GET over HTTP/1.1.
async fn http(address: SocketAddr, path: &str) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::TcpStream::connect(address).await.expect("a connection");
    let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    answer
}

#[tokio::test]
async fn one_port_speaks_to_everybody() {
    let security = Security::open(&SecurityOptions::default()).expect("nothing to read");
    let Running { address, guard, .. } = start(&security, &Limits::default()).await;
    CellsClient::new(channel(address, &security)).gossip(GossipRequest::default()).await.expect("an answer");
    assert!(http(address, "/v1/ask").await.ends_with("asked"));
    assert!(http(address, "/readyz").await.ends_with("ready\n"));
    assert!(http(address, "/livez").await.ends_with("alive\n"));
    let figures = http(address, "/metrics").await;
    assert!(figures.contains("webstrata_calls_total{method=\"Cells/Gossip\",code=\"OK\"} 1\n"), "{figures}");
    assert!(figures.contains("webstrata_calls_total{method=\"Cells/Ask\",code=\"OK\"} 1\n"), "{figures}");
    let unknown = http(address, "/v2/ask").await;
    assert!(unknown.starts_with("HTTP/1.1 404") && unknown.contains("\"NO_SUCH_PATH\""), "{unknown}");
    let mut links = webstrata_serve::protocol::proto::links_client::LinksClient::new(channel(address, &security));
    let unknown =
        links.stats(webstrata_serve::protocol::proto::StatsRequest::default()).await.expect_err("it has none");
    assert_eq!(unknown.code(), Code::Unimplemented);
    assert!(guard.metrics.text().contains("webstrata_calls_total{method=\"Links/Stats\",code=\"UNIMPLEMENTED\"} 1\n"));
}

/// The resident memory of this process, in bytes; 0 if the system does not report it.
fn resident() -> usize {
    let statm = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0) * 4096
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_does_not_grow_with_calls_that_are_too_many() {
    let security = Security::open(&SecurityOptions::default()).expect("nothing to read");
    let limits = Limits { calls: 8, queue: 8, queue_wait: Duration::from_secs(60), ..Limits::default() };
    let Running { address, guard, .. } = start(&security, &limits).await;
    let channel = channel(address, &security);
    let mut after = Vec::new();
    for _ in 0..40 {
        let calls = (0..160).map(|_| {
            let mut client = CellsClient::new(channel.clone());
            async move { client.ask(AskRequest::default()).await }
        });
        for refused in join_all(calls).await.into_iter().filter_map(Result::err) {
            assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
        }
        after.push(resident());
    }
    let load = guard.admission.loads()[1];
    assert_eq!((load.pool, load.running, load.waiting), (Pool::Ask, 0, 0));
    assert!(load.refused > 1000, "{load:?}");
    let grown = after[39].saturating_sub(after[19]);
    assert!(grown < 4 << 20, "{grown} bytes more after twenty rounds of 160 calls");
}
