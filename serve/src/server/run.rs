//! A server from its start to its end: the port, the cluster, the services, the guards around them.

use std::convert::Infallible;
use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use futures_util::Stream;
use futures_util::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tonic::Status;
use tonic::codec::CompressionEncoding;
use tonic::service::Routes;
use tonic::transport::Server as Transport;
use tonic::transport::server::Connected;
use webstrata_layers::Location;

use super::{CellsService, LinksService, Shared};
use crate::clerk::{Clerk, ClerkOptions};
use crate::cluster::{Cluster, ClusterOptions};
use crate::dial::{Connect, Dialer};
use crate::guard::Guard;
use crate::guard::connections::incoming::LimitedIncoming;
use crate::guard::connections::{ConnectionLimits, Connections};
use crate::guard::drain::{Drain, End};
use crate::guard::limits::{Admission, Limits};
use crate::guard::methods::Methods;
use crate::guard::metrics::Metrics;
use crate::guard::security::Security;
use crate::http;
use crate::protocol::proto;
use crate::protocol::proto::cells_server::CellsServer;
use crate::protocol::proto::links_server::LinksServer;
use webstrata_cells::image::Residence;

/// Connections, and calls over each, of those who look after a server.
const ADMIN_CONNECTIONS: usize = 64;
const ADMIN_STREAMS: u32 = 16;
/// How long such a connection lasts, and then its calls.
const ADMIN_MAX: Duration = Duration::from_secs(60);

/// What a server is told.
#[derive(Clone)]
pub struct ServerOptions {
    /// How it takes part in its cluster.
    pub cluster: ClusterOptions,
    /// How its own clerk asks.
    pub clerk: ClerkOptions,
    /// How much it does at once.
    pub limits: Limits,
    /// Whom it trusts.
    pub security: Security,
    /// The name in the certificates of its peers.
    pub peer_name: String,
    /// How long it still answers, and says that it ends, when it is to end.
    pub linger: Duration,
    /// How long calls that run then may take, and others to take over its cells.
    pub patience: Duration,
    /// How peers are reached, where that is not TCP.
    pub connect: Option<Connect>,
    /// Where it answers, beside its port, those who look after it: health and figures, without tokens and TLS.
    pub admin: Option<SocketAddr>,
    /// Why no other server may join it, if none may.
    pub alone: Option<Alone>,
}

/// Why a server stays alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alone {
    /// It listens at all addresses and does not know by which one others reach it.
    Unaddressed,
    /// It speaks TLS and does not know who signs the certificates of other servers.
    Unsigned,
}

impl Alone {
    /// What it says to who would join it.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Self::Unaddressed => {
                "this server accepts no other servers: restart it with --advertise, the address that they can reach"
            }
            Self::Unsigned => {
                "this server accepts no other servers: restart it with --tls-ca, the CA that signs their certificates"
            }
        }
    }
}

impl ServerOptions {
    /// Limits by the machine, no TLS and no tokens.
    #[must_use]
    pub fn new(cluster: ClusterOptions) -> Self {
        Self {
            linger: 5 * cluster.gossip,
            cluster,
            clerk: ClerkOptions::default(),
            limits: Limits::default(),
            security: Security::default(),
            peer_name: "localhost".to_owned(),
            patience: Duration::from_secs(30),
            connect: None,
            admin: None,
            alone: None,
        }
    }
}

/// What can go wrong with a server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The port.
    #[error("cannot listen at {address}: {source}; does another program use the port?")]
    Listen {
        /// Where it was to listen.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The store, or the cluster.
    #[error("{}", .0.message())]
    Start(Status),
    /// Another store is in the place of the one that was served.
    #[error("{0}")]
    Exchanged(String),
    /// The connections.
    #[error(transparent)]
    Transport(#[from] tonic::transport::Error),
}

/// A server that runs.
pub struct Server {
    address: SocketAddr,
    admin: Option<SocketAddr>,
    shared: Shared,
    drain: Drain,
    metrics: Metrics,
    connections: Connections,
    stop: watch::Sender<bool>,
    patience: Duration,
    task: JoinHandle<Result<End, ServerError>>,
}

impl Server {
    /// Begins to listen, joins the cluster, and answers: first that it is not ready, then what it is asked.
    ///
    /// # Errors
    /// A port that is taken, a store that does not open.
    pub async fn start(location: Location, listen: SocketAddr, options: ServerOptions) -> Result<Self, ServerError> {
        let (listener, address) = bound(listen).await?;
        let incoming = LimitedIncoming::new(listener, ConnectionLimits::from(&options.limits));
        let connections = incoming.connections();
        Self::over(location, address, incoming, connections, options).await
    }

    /// As [`Server::start`], over connections that come to this address however they come. Those of `connections` are
    /// cut where its end takes too long.
    ///
    /// # Errors
    /// A store that does not open.
    pub async fn over<I, C, E>(
        location: Location,
        address: SocketAddr,
        incoming: I,
        connections: Connections,
        mut options: ServerOptions,
    ) -> Result<Self, ServerError>
    where
        I: Stream<Item = Result<C, E>> + Send + 'static,
        C: AsyncRead + AsyncWrite + Connected<ConnectInfo: Clone + Send + Sync> + Unpin + Send + 'static,
        E: Into<Box<dyn Error + Send + Sync>> + Send + 'static,
    {
        if options.cluster.address.port() == 0 {
            options.cluster.address.set_port(address.port());
        }
        if options.cluster.name.is_empty() {
            options.cluster.name = options.cluster.address.to_string();
        }
        let tls = options.security.server_tls();
        let admin = match options.admin {
            Some(address) => Some(bound(address).await?),
            None => None,
        };
        let parts = Parts::start(location, options).await.map_err(ServerError::Start)?;
        parts.metrics.watch_connections(&connections);
        tokio::spawn(tidy(parts.limits, parts.admission.clone(), connections.clone(), parts.stop.subscribe()));
        let at = admin.map(|(listener, address)| {
            tokio::spawn(look_after(listener, parts.beside.clone(), parts.stop.subscribe()));
            address
        });
        let router = parts.router.clone();
        let drain = parts.drain.clone();
        let limits = parts.limits;
        let streams = limits.streams();
        let serve = move |stop| {
            Box::pin(async move {
                let mut transport = Transport::builder()
                    .accept_http1(true)
                    .http2_keepalive_interval(Some(Duration::from_secs(10)))
                    .http2_keepalive_timeout(Some(Duration::from_secs(10)))
                    .http2_max_pending_accept_reset_streams(Some(64))
                    .max_concurrent_streams(streams)
                    // What a call that waits has sent stays in memory, and nobody wants more of it meanwhile.
                    .initial_stream_window_size(1 << 18)
                    .initial_connection_window_size(2 << 20);
                let routes = transport.add_routes(Routes::from(router));
                match tls {
                    Some(tls) => routes.serve_with_incoming_shutdown(tls.accept(incoming), stop).await,
                    None => routes.serve_with_incoming_shutdown(incoming, stop).await,
                }
            }) as BoxFuture<'static, Result<(), tonic::transport::Error>>
        };
        let task = tokio::spawn(run(drain, connections.clone(), serve));
        Ok(parts.running((address, at), connections, task))
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where it answers those who look after it.
    pub fn admin(&self) -> Option<SocketAddr> {
        self.admin
    }

    /// What its services share.
    pub fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Its figures.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Returns when it can be asked.
    pub async fn ready(&self) {
        // Not all that it lacks is told of by the keeper's counts.
        while self.shared.cluster.readiness().is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Lets others take over its cells, answers what runs, and ends.
    ///
    /// # Errors
    /// Connections that failed.
    pub async fn end(mut self) -> Result<End, ServerError> {
        self.shared.cluster.leave(self.patience).await;
        self.drain.begin();
        let end = (&mut self.task).await;
        let _ = self.stop.send(true);
        end.unwrap_or(Ok(End::Whole))
    }

    /// Returns when it has ended by itself: where connections cannot be accepted any more, or another store is in the
    /// place of its own.
    ///
    /// # Errors
    /// [`ServerError::Exchanged`]: what it still answers is of the store that was there.
    pub async fn ended(&mut self) -> Result<End, ServerError> {
        let cluster = self.shared.cluster.clone();
        tokio::select! {
            ended = &mut self.task => ended.unwrap_or(Ok(End::Whole)),
            found = cluster.exchanged() => Err(ServerError::Exchanged(found)),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // As a process that is killed: connections end, the keeper stops. Each connection is a task of its own.
        self.task.abort();
        self.connections.cut();
        let _ = self.stop.send(true);
    }
}

async fn bound(address: SocketAddr) -> Result<(TcpListener, SocketAddr), ServerError> {
    let failed = |source| ServerError::Listen { address, source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok((listener, address))
}

/// Answers health and figures until the server has ended. Who looks after it is let in whoever else is there: all
/// connections count as idle, the oldest makes room, and none lasts.
async fn look_after(listener: TcpListener, router: Router, mut stop: watch::Receiver<bool>) {
    let room = ConnectionLimits { most: ADMIN_CONNECTIONS, of_one: ADMIN_CONNECTIONS, idle: ADMIN_MAX };
    let mut transport = Transport::builder()
        .accept_http1(true)
        .max_concurrent_streams(ADMIN_STREAMS)
        .max_connection_age(ADMIN_MAX)
        .max_connection_age_grace(ADMIN_MAX);
    let routes = transport.add_routes(Routes::from(router));
    tokio::select! {
        _ = routes.serve_with_incoming(LimitedIncoming::new(listener, room)) => {}
        _ = stop.wait_for(|stopped| *stopped) => {}
    }
}

/// Closes what is idle and gives up what nobody reads, until the server stops.
async fn tidy(limits: Limits, admission: Admission, connections: Connections, mut stop: watch::Receiver<bool>) {
    let often = (limits.stall / 4).min(limits.idle / 4).clamp(Duration::from_millis(10), Duration::from_secs(1));
    loop {
        tokio::select! {
            () = tokio::time::sleep(often) => {}
            _ = stop.wait_for(|stopped| *stopped) => return,
        }
        admission.give_up();
        connections.close_idle(limits.idle);
    }
}

async fn run<F>(
    drain: Drain,
    connections: Connections,
    serve: impl FnOnce(crate::guard::drain::Stop) -> F,
) -> Result<End, ServerError>
where
    F: Future<Output = Result<(), tonic::transport::Error>>,
{
    Ok(drain.run(&connections, serve).await?)
}

/// All of a server but its port.
struct Parts {
    router: Router,
    beside: Router,
    admission: Admission,
    shared: Shared,
    drain: Drain,
    metrics: Metrics,
    limits: Limits,
    stop: watch::Sender<bool>,
    patience: Duration,
}

impl Parts {
    async fn start(location: Location, options: ServerOptions) -> Result<Self, Status> {
        let ServerOptions {
            cluster: own, clerk, limits, security, peer_name, linger, patience, connect, alone, ..
        } = options;
        let tokens = security.tokens();
        let mut dialer = Dialer::default().secured(security.client_tls(&peer_name), tokens.clone());
        if let Some(connect) = connect {
            dialer = dialer.over(connect);
        }
        let name = own.name.clone();
        let (stop, stopped) = watch::channel(false);
        let bounds = limits.bounds();
        let cluster = Cluster::start(location, own, bounds, dialer.clone(), stopped.clone()).await?;
        let cells = CellsService::new(cluster.clone(), bounds, limits.calls, alone);
        let clerk = Clerk::of_server(cluster.maps(), dialer, clerk, (name, Arc::new(cells.clone())));
        let shared = Shared { clerk, cluster, bounds };
        let (drain, health) = Drain::new(linger, patience).await;
        let metrics = Metrics::new();
        let admission = Admission::new(&limits);
        metrics.watch_admission(&admission);
        tokio::spawn(tell(shared.clone(), drain.clone(), metrics.clone(), stopped));
        let messages = limits.request_bytes;
        let links = LinksServer::new(LinksService::new(shared.clone()))
            .max_decoding_message_size(messages)
            .max_encoding_message_size(usize::MAX)
            .accept_compressed(CompressionEncoding::Gzip)
            .send_compressed(CompressionEncoding::Gzip);
        let cells = CellsServer::new(cells)
            .max_decoding_message_size(messages)
            .max_encoding_message_size(usize::MAX)
            .accept_compressed(CompressionEncoding::Gzip)
            .send_compressed(CompressionEncoding::Gzip);
        let reflection = || {
            tonic_reflection::server::Builder::configure()
                .register_encoded_file_descriptor_set(proto::DESCRIPTOR)
                .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        };
        let failed = |error: tonic_reflection::server::Error| Status::internal(error.to_string());
        // Many tools know the older version alone.
        let (newer, older) = (reflection().build_v1().map_err(failed)?, reflection().build_v1alpha().map_err(failed)?);
        let methods = http::methods(Methods::default());
        let router = Routes::new(links)
            .add_service(cells)
            .add_service(health.clone())
            .add_service(newer)
            .add_service(older)
            .into_axum_router()
            .merge(http::routes(shared.clone()));
        let guard =
            Guard { methods, tokens, admission: admission.clone(), metrics: metrics.clone(), drain: drain.clone() };
        let beside = Routes::new(health).into_axum_router().merge(guard.beside());
        let router = guard.around(router);
        Ok(Self { router, beside, admission, shared, drain, metrics, limits, stop, patience })
    }

    fn running(
        self,
        (address, admin): (SocketAddr, Option<SocketAddr>),
        connections: Connections,
        task: JoinHandle<Result<End, ServerError>>,
    ) -> Server {
        let Self { shared, drain, metrics, stop, patience, .. } = self;
        Server { address, admin, shared, drain, metrics, connections, stop, patience, task }
    }
}

/// Tells health checks and figures what the keeper does, until the server stops: whoever holds the cluster keeps it a
/// member.
async fn tell(
    shared: Shared,
    drain: Drain,
    metrics: Metrics,
    mut stopped: watch::Receiver<bool>,
) -> Option<Infallible> {
    let mut counts = shared.cluster.counts();
    let (mut fetched, mut made, mut failed, mut asked) = (0, 0, 0, crate::clerk::ClerkCounts::default());
    let mut behind = None;
    loop {
        let now = *counts.borrow_and_update();
        drain.set_ready(shared.cluster.readiness()).await;
        for (residence, at) in [(Residence::Memory, 0), (Residence::Mapped, 1)] {
            metrics.cells(residence, now.cells[at], now.bytes[at]);
        }
        metrics.cells_wanted(now.missing);
        metrics.servers_alive(now.servers);
        if now.newest > now.current {
            behind.get_or_insert_with(std::time::Instant::now);
        } else {
            behind = None;
        }
        metrics.epochs(now.current, now.newest, behind.map_or(Duration::ZERO, |since| since.elapsed()));
        metrics.fetched(now.fetched_bytes - fetched);
        (made..now.made).for_each(|_| metrics.cell_made());
        (failed..now.failed).for_each(|_| metrics.cell_failed());
        (fetched, made, failed) = (now.fetched_bytes, now.made, now.failed);
        let clerk = shared.clerk.counts();
        (asked.retries..clerk.retries).for_each(|_| metrics.retried());
        (asked.hedges..clerk.hedges).for_each(|_| metrics.hedged());
        asked = clerk;
        tokio::select! {
            changed = counts.changed() => changed.ok()?,
            // Once a second at least, for what nobody tells of.
            () = tokio::time::sleep(Duration::from_secs(1)) => {}
            _ = stopped.wait_for(|stopped| *stopped) => return None,
        }
    }
}
