//! Drain: shuts a server down without failed calls.
//!
//! ```text
//! begin --linger--> stop --patience--> cut
//! ```
//!
//! From `begin` on, gRPC health checks and `/readyz` say that the server is not ready, and the server still answers, so
//! that clients have time to learn this. At `stop` it accepts no connection and no new call. At `cut` the remaining
//! connections are cut with their calls. The server ends as soon as no call runs. [`Drain::around`] ends calls that
//! wait for an event at `stop`, because they may last as long as the server. [`Drain::run`] drains a tonic server. A
//! server is not ready until it calls [`Drain::set_ready`].

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::get;
use futures_util::FutureExt;
use http_body::Frame;
use tokio::sync::{Mutex, watch};
use tokio::time::{sleep, timeout};
use tonic::{Code, Status};
use tonic_health::ServingStatus;
use tonic_health::pb::health_server::{Health, HealthServer};
use tonic_health::server::{HealthReporter, health_reporter};

use crate::guard::connections::Connections;
use crate::guard::methods::{LIVE, Methods, READY};
use crate::protocol::refusal::{answer, is_grpc};

/// The services that health checks may name; the empty name is the server.
const SERVICES: [&str; 3] = ["", "webstrata.v1.Links", "webstrata.v1.Cells"];
/// Time for tasks to see that their connections were cut.
const CUT_MAX: Duration = Duration::from_secs(1);

/// The phases of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// The server serves, or gets ready to serve.
    Open,
    /// The server answers, and says that it is not ready.
    Lingers,
    /// The server finishes the calls that run.
    Stopped,
}

/// How a server ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// All calls were answered.
    Whole,
    /// These connections were cut, most of them with calls.
    Cut {
        /// The number of cut connections.
        connections: usize,
    },
}

/// The phase and the readiness of a server. Clones share them.
#[derive(Clone)]
pub struct Drain {
    linger: Duration,
    patience: Duration,
    phase: watch::Sender<Phase>,
    /// Whether the server is ready, or why not.
    ready: watch::Sender<Result<(), String>>,
    /// Further lines of `/readyz` for a server that is ready.
    notes: watch::Sender<String>,
    health: HealthReporter,
    /// Held while health checks are updated, so that the last update is the newest.
    updating: Arc<Mutex<()>>,
}

impl Drain {
    /// A drain, and the health service to serve. `linger`: how long the server still answers after it stops being
    /// ready, at least the interval of health checks. `patience`: how long running calls may take after that.
    pub async fn new(linger: Duration, patience: Duration) -> (Self, HealthServer<impl Health>) {
        let (health, service) = health_reporter();
        let (phase, ready) = (watch::Sender::new(Phase::Open), watch::Sender::new(Err("it is starting up".to_owned())));
        let drain =
            Self { linger, patience, phase, ready, notes: watch::Sender::default(), health, updating: Arc::default() };
        drain.update_health().await;
        (drain, service)
    }

    /// `/readyz` and `/livez`.
    pub fn routes(&self) -> Router {
        let ready = async |State(drain): State<Self>| match drain.phase() {
            Phase::Open => match &*drain.ready.borrow() {
                Ok(()) => (StatusCode::OK, format!("ready\n{}", *drain.notes.borrow())),
                Err(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {why}\n")),
            },
            _ => (StatusCode::SERVICE_UNAVAILABLE, "the server is shutting down\n".to_owned()),
        };
        Router::new().route(READY, get(ready)).route(LIVE, get(async || "alive\n")).with_state(self.clone())
    }

    /// Ends calls that may last as long as the server with `UNAVAILABLE` when the server stops.
    pub fn around(&self, router: Router, methods: &Methods) -> Router {
        router.layer(from_fn_with_state((self.clone(), methods.clone()), end))
    }

    /// A future that completes when the server stops.
    fn stop(&self) -> Stop {
        let drain = self.clone();
        Box::pin(async move { drain.reached(Phase::Stopped).await })
    }

    /// Sets whether the server is ready, for `/readyz`. The error says what the server lacks. A server that shuts down
    /// is never ready.
    pub async fn set_ready(&self, ready: Result<(), String>) {
        let is_ready = ready.is_ok();
        if self.ready.send_replace(ready).is_ok() != is_ready {
            self.update_health().await;
        }
    }

    /// Sets lines for `/readyz`, each with its end, that do not decide whether the server is ready.
    pub fn set_notes(&self, notes: String) {
        self.notes.send_replace(notes);
    }

    /// Whether the server is ready.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.phase() == Phase::Open && self.ready.borrow().is_ok()
    }

    /// The phase of the server.
    #[must_use]
    pub fn phase(&self) -> Phase {
        *self.phase.borrow()
    }

    /// Waits for a phase.
    pub async fn reached(&self, phase: Phase) {
        // Cannot fail: the sender lives as long as `self`.
        let _ = self.phase.subscribe().wait_for(|now| *now >= phase).await;
    }

    /// Begins the drain. Later calls do nothing.
    pub fn begin(&self) {
        self.advance(Phase::Lingers);
    }

    /// Serves until the drain is done. `serve` gets a future that completes when it must stop accepting, as in
    /// `drain.run(&connections, |stop| server.serve_with_incoming_shutdown(incoming, stop))`.
    ///
    /// # Errors
    /// Errors of `serve`.
    pub async fn run<F, E>(&self, connections: &Connections, serve: impl FnOnce(Stop) -> F) -> Result<End, E>
    where
        F: Future<Output = Result<(), E>>,
    {
        let mut server = std::pin::pin!(serve(self.stop()));
        let overdue = async {
            self.reached(Phase::Lingers).await;
            tracing::info!(linger = ?self.linger, "draining: clients are told to ask other servers");
            self.update_health().await;
            sleep(self.linger).await;
            tracing::info!(connections = connections.open(), "draining: finishing the calls that run");
            self.advance(Phase::Stopped);
            sleep(self.patience).await;
        };
        tokio::select! {
            served = &mut server => return served.map(|()| End::Whole),
            () = overdue => {}
        }
        let open = connections.open();
        tracing::warn!(connections = open, patience = ?self.patience, "draining took too long: cutting connections");
        connections.cut();
        // A transport that does not notice the cut is dropped.
        timeout(CUT_MAX, server).await.unwrap_or(Ok(())).map(|()| End::Cut { connections: open })
    }

    fn advance(&self, phase: Phase) {
        self.phase.send_if_modified(|now| {
            let later = phase > *now;
            *now = phase.max(*now);
            later
        });
    }

    /// Updates the health checks.
    async fn update_health(&self) {
        let _updating = self.updating.lock().await;
        let status = if self.is_ready() { ServingStatus::Serving } else { ServingStatus::NotServing };
        for service in SERVICES {
            self.health.set_service_status(service, status).await;
        }
    }
}

/// A future that completes when a server must stop.
pub type Stop = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The status of a call that ends with the server.
fn ends() -> Status {
    Status::new(Code::Unavailable, "the server stops; ask another")
}

async fn end(State((drain, methods)): State<(Drain, Methods)>, request: Request, next: Next) -> Response {
    if !methods.of(request.uri().path()).lasts {
        return next.run(request).await;
    }
    let (grpc, mut stop) = (is_grpc(request.headers()), drain.stop());
    tokio::select! {
        response = next.run(request) => response.map(|inner| Body::new(Lasting { inner, stop: Some(stop) })),
        () = &mut stop => answer(ends(), grpc),
    }
}

/// An answer that ends when the server stops, or earlier.
struct Lasting {
    inner: Body,
    /// `None` after the end.
    stop: Option<Stop>,
}

impl HttpBody for Lasting {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let Some(stop) = &mut self.stop else { return Poll::Ready(None) };
        if stop.poll_unpin(context).is_pending() {
            return Pin::new(&mut self.inner).poll_frame(context);
        }
        self.stop = None;
        let mut trailers = HeaderMap::new();
        // Cannot fail: the message is a valid header.
        let _ = ends().add_header(&mut trailers);
        Poll::Ready(Some(Ok(Frame::trailers(trailers))))
    }

    fn is_end_stream(&self) -> bool {
        self.stop.is_none() || self.inner.is_end_stream()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard::connections::ConnectionLimits;
    use crate::guard::connections::incoming::LimitedIncoming;
    use crate::guard::limits::Limits;
    use crate::guard::methods::{Method, Pool};
    use crate::guard::trial::{HELD, Tardy, client, http, slow, until};
    use crate::protocol::proto::cells_server::CellsServer;
    use std::net::SocketAddr;
    use std::sync::atomic::Ordering;
    use std::time::Instant;
    use tokio::net::{TcpListener, TcpStream};
    use tokio::task::JoinHandle;
    use tonic::service::Routes;
    use tonic::transport::{Error, Server};
    use tonic_health::pb::HealthCheckRequest;
    use tonic_health::pb::health_check_response::ServingStatus as Said;
    use tonic_health::pb::health_client::HealthClient;

    struct Running {
        address: SocketAddr,
        drain: Drain,
        tardy: Tardy,
        end: JoinHandle<Result<End, Error>>,
    }

    async fn start(linger: u64, patience: u64) -> Running {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let millis = Duration::from_millis;
        let (drain, health) = Drain::new(millis(linger), millis(patience)).await;
        let tardy = Tardy::default();
        let routes = Routes::new(CellsServer::new(tardy.clone())).add_service(health);
        let methods = Methods::default().with("/v1/topology", Method::of("Links/Topology", Pool::Watch));
        let never = get(async || futures_util::future::pending::<&str>().await);
        let router = routes.into_axum_router().merge(drain.routes()).route("/v1/topology", never);
        let router = drain.around(router, &methods);
        let incoming = LimitedIncoming::new(listener, ConnectionLimits::from(&Limits::of_cores(1)));
        let connections = incoming.connections();
        let (own, server) = (drain.clone(), Server::builder().accept_http1(true).add_routes(Routes::from(router)));
        let end = tokio::spawn(async move {
            own.run(&connections, |stop| server.serve_with_incoming_shutdown(incoming, stop)).await
        });
        Running { address, drain, tardy, end }
    }

    async fn held(running: &Running) -> JoinHandle<Result<(), tonic::Status>> {
        let mut client = client(running.address).await;
        let call = tokio::spawn(async move { client.ask(slow(HELD)).await.map(drop) });
        until(async || running.tardy.running.load(Ordering::SeqCst) == 1).await;
        call
    }

    async fn health(address: SocketAddr) -> [Said; 3] {
        let channel = tonic::transport::Endpoint::try_from(format!("http://{address}")).expect("an address");
        let mut client = HealthClient::new(channel.connect().await.expect("a connection"));
        let mut all = [Said::Unknown; 3];
        for (status, service) in all.iter_mut().zip(SERVICES) {
            let request = HealthCheckRequest { service: service.to_owned() };
            *status = client.check(request).await.expect("it is known").into_inner().status();
        }
        all
    }

    #[tokio::test]
    async fn a_server_ends_without_failed_calls() {
        let running = start(300, 60_000).await;
        let (address, drain) = (running.address, &running.drain);
        assert_eq!(health(address).await, [Said::NotServing; 3]);
        assert!(http(address, "/readyz", "").await.starts_with("HTTP/1.1 503"));
        drain.set_ready(Ok(())).await;
        assert_eq!(health(address).await, [Said::Serving; 3]);
        assert!(http(address, "/readyz", "").await.starts_with("HTTP/1.1 200"));

        let call = held(&running).await;
        drain.begin();
        drain.begin();
        until(async || health(address).await == [Said::NotServing; 3]).await;
        assert!(http(address, "/readyz", "").await.contains("the server is shutting down"));
        assert!(http(address, "/livez", "").await.starts_with("HTTP/1.1 200"));
        drain.set_ready(Ok(())).await;
        assert!(!drain.is_ready());
        client(address).await.ask(slow(0)).await.expect("it lingers");
        assert_eq!(drain.phase(), Phase::Lingers);

        drain.reached(Phase::Stopped).await;
        until(async || TcpStream::connect(address).await.is_err()).await;
        assert_eq!(running.tardy.running.load(Ordering::SeqCst), 1, "what runs goes on");
        running.tardy.released.send_replace(true);
        call.await.expect("no panic").expect("it was answered");
        assert_eq!(running.end.await.expect("no panic").expect("no error"), End::Whole);
    }

    #[tokio::test]
    async fn calls_that_take_too_long_are_cut() {
        let running = start(0, 100).await;
        let call = held(&running).await;
        let begun = Instant::now();
        running.drain.begin();
        assert_eq!(running.end.await.expect("no panic").expect("no error"), End::Cut { connections: 1 });
        assert!(begun.elapsed() >= Duration::from_millis(100) && begun.elapsed() < Duration::from_secs(5));
        call.await.expect("no panic").expect_err("it was cut");
        until(async || running.tardy.running.load(Ordering::SeqCst) == 0).await;
    }

    #[tokio::test]
    async fn nobody_waits_for_idle_clients_and_watchers() {
        let running = start(0, 60_000).await;
        let idle = client(running.address).await;
        let channel = tonic::transport::Endpoint::try_from(format!("http://{}", running.address)).expect("an address");
        let mut health = HealthClient::new(channel.connect_lazy());
        let mut watched = health.watch(HealthCheckRequest::default()).await.expect("a stream").into_inner();
        let said = watched.message().await.expect("a state").expect("no end");
        assert_eq!(said.status(), Said::NotServing);
        let address = running.address;
        let waits = tokio::spawn(async move { http(address, "/v1/topology", "").await });
        tokio::time::sleep(Duration::from_millis(20)).await;
        running.drain.begin();
        let refused = loop {
            if let Err(refused) = watched.message().await {
                break refused;
            }
        };
        assert_eq!((refused.code(), refused.message()), (Code::Unavailable, "the server stops; ask another"));
        assert!(waits.await.expect("no panic").starts_with("HTTP/1.1 503"));
        let end = timeout(Duration::from_secs(5), running.end).await.expect("it waits for nobody");
        assert_eq!(end.expect("no panic").expect("no error"), End::Whole);
        drop(idle);
    }
}
