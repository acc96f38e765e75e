//! Test servers for guards: a service `Cells` that takes as long as the question says, on a free port, over gRPC and
//! HTTP.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use futures_util::{Stream, StreamExt, stream};
use tokio::net::TcpListener;
use tonic::service::Routes;
use tonic::transport::{Channel, Server};
use tonic::{Request, Response, Status};

use crate::guard::connections::ConnectionLimits;
use crate::guard::connections::incoming::LimitedIncoming;
use crate::guard::limits::Limits;
use crate::guard::security::tls::ServerTls;
use crate::protocol::proto::cells_client::CellsClient;
use crate::protocol::proto::cells_server::{Cells, CellsServer};
use crate::protocol::proto::{AskRequest, AskResponse, FetchRequest, FetchResponse, GossipRequest, GossipResponse};

/// The milliseconds of a question that is held until the test releases it.
pub(crate) const HELD: u64 = u64::MAX;

/// A service that answers after the time in the question, and counts calls.
#[derive(Clone, Default)]
pub(crate) struct Tardy {
    /// The calls that run now, and the most that ever ran at once.
    pub(crate) running: Arc<AtomicUsize>,
    pub(crate) most: Arc<AtomicUsize>,
    /// Whether questions of [`HELD`] milliseconds are released.
    pub(crate) released: Arc<tokio::sync::watch::Sender<bool>>,
    /// The header `traceparent` of the last question.
    pub(crate) seen: Arc<std::sync::Mutex<Option<String>>>,
}

struct Running(Arc<AtomicUsize>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[tonic::async_trait]
impl Cells for Tardy {
    /// Waits for the milliseconds in the header `millis`.
    async fn ask(&self, request: Request<AskRequest>) -> Result<Response<AskResponse>, Status> {
        let millis = request.metadata().get("millis").and_then(|value| value.to_str().ok()?.parse().ok()).unwrap_or(0);
        let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
        let _running = Running(Arc::clone(&self.running));
        self.most.fetch_max(running, Ordering::SeqCst);
        let parent = request.metadata().get("traceparent").and_then(|value| value.to_str().ok());
        *self.seen.lock().expect("no panic") = parent.map(str::to_owned);
        crate::guard::spans::epoch(millis);
        match millis {
            HELD => drop(self.released.subscribe().wait_for(|released| *released).await),
            millis => tokio::time::sleep(Duration::from_millis(millis)).await,
        }
        Ok(Response::new(AskResponse::default()))
    }

    type FetchStream = Pin<Box<dyn Stream<Item = Result<FetchResponse, Status>> + Send>>;

    /// Sends `source` messages of one byte, then an error if the row is not 0.
    async fn fetch(&self, request: Request<FetchRequest>) -> Result<Response<Self::FetchStream>, Status> {
        let FetchRequest { cell, source } = request.into_inner();
        let bytes = stream::iter(0..source).map(|_| Ok(FetchResponse { bytes: Bytes::from_static(b"!") }));
        let fails = cell.is_some_and(|cell| cell.row > 0);
        let end = fails.then(|| Err(Status::data_loss("as was asked for")));
        Ok(Response::new(Box::pin(bytes.chain(stream::iter(end)))))
    }

    async fn gossip(&self, _: Request<GossipRequest>) -> Result<Response<GossipResponse>, Status> {
        Ok(Response::new(GossipResponse {}))
    }
}

/// The service, with `/v1/plain` and health beside it.
pub(crate) fn router(tardy: &Tardy) -> Router {
    let (_, health) = tonic_health::server::health_reporter();
    Routes::new(CellsServer::new(tardy.clone()))
        .add_service(health)
        .into_axum_router()
        .route("/v1/plain", axum::routing::get(|| async { "plain" }))
        .route("/readyz", axum::routing::get(|| async { "ready" }))
}

/// Serves a router until the test ends.
pub(crate) async fn serve(router: Router, tls: Option<ServerTls>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let server = Server::builder().accept_http1(true).add_routes(Routes::from(router));
    let incoming =
        LimitedIncoming::new(listener, ConnectionLimits::from(&Limits { sharers: 1, ..Limits::of_cores(1) }));
    match tls {
        Some(tls) => tokio::spawn(server.serve_with_incoming(tls.accept(incoming))),
        None => tokio::spawn(server.serve_with_incoming(incoming)),
    };
    address
}

/// A client of a server in plain text.
pub(crate) async fn client(address: SocketAddr) -> CellsClient<Channel> {
    CellsClient::connect(format!("http://{address}")).await.expect("a connection")
}

/// A question that takes this many milliseconds.
pub(crate) fn slow(millis: u64) -> Request<AskRequest> {
    let mut question = Request::new(AskRequest::default());
    question.metadata_mut().insert("millis", millis.into());
    question
}

/// Asks a question with these headers, without a gRPC client. Returns the headers of the answer.
pub(crate) async fn raw(address: SocketAddr, headers: &[(&str, &str)]) -> axum::http::HeaderMap {
    let stream = tokio::net::TcpStream::connect(address).await.expect("a connection");
    let (mut client, connection) = h2::client::handshake(stream).await.expect("HTTP/2");
    let connection = tokio::spawn(connection);
    let request = axum::http::Request::post("http://peer.example/webstrata.v1.Cells/Ask");
    let request = request.header("content-type", "application/grpc").header("te", "trailers");
    let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    let (answer, mut body) = client.send_request(request.body(()).expect("a request"), false).expect("a stream");
    body.send_data(Bytes::from_static(&[0; 5]), true).expect("an empty message");
    let answer = answer.await.expect("an answer");
    connection.abort();
    answer.headers().clone()
}

/// Sends an HTTP/1.1 request. Returns the whole answer as text.
pub(crate) async fn http(address: SocketAddr, path: &str, headers: &str) -> String {
    http_over(tokio::net::TcpStream::connect(address).await.expect("a connection"), path, headers).await
}

/// As [`http`], over an open connection.
pub(crate) async fn http_over(
    mut stream: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
    path: &str,
    headers: &str,
) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let request = format!("GET {path} HTTP/1.1\r\nhost: peer.example\r\nconnection: close\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).await.expect("a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    answer
}

/// Waits at most five seconds for a condition.
pub(crate) async fn until<F: Future<Output = bool>>(mut so: impl FnMut() -> F) {
    for _ in 0..5000 {
        if so().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("it never came to be so");
}
