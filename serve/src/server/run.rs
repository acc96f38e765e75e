//! Starts, runs and ends a server: the port, the cluster, the services, and the guards around the services.

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

use super::{CellsService, LinksService};
use crate::clerk::{Clerk, ClerkOptions, LocalCells};
use crate::cluster::{Cluster, ClusterOptions};
use crate::dial::{Connect, Dialer};
use crate::guard::Guard;
use crate::guard::connections::incoming::LimitedIncoming;
use crate::guard::connections::{ConnectionLimits, Connections};
use crate::guard::drain::{Drain, End};
use crate::guard::host::{Hosts, host_of};
use crate::guard::limits::{Admission, Limits};
use crate::guard::memory::Budget;
use crate::guard::methods::Methods;
use crate::guard::metrics::Metrics;
use crate::guard::security::Security;
use crate::http;
use crate::http::options::{HttpOptions, cors, frames};
use crate::protocol::proto;
use crate::protocol::proto::cells_server::CellsServer;
use crate::protocol::proto::links_server::LinksServer;
use crate::shared::{HttpManner, Shared};
use webstrata_cells::image::Residence;

/// Connections to the admin port, and concurrent calls over each connection.
const ADMIN_CONNECTIONS: usize = 64;
const ADMIN_STREAMS: u32 = 16;
/// How long a connection to the admin port lasts, and how long its calls may last after that.
const ADMIN_MAX: Duration = Duration::from_secs(60);

/// The options of a server.
#[derive(Clone)]
pub struct ServerOptions {
    /// How the server takes part in its cluster.
    pub cluster: ClusterOptions,
    /// The options of the server's clerk.
    pub clerk: ClerkOptions,
    /// The limits on concurrent work.
    pub limits: Limits,
    /// Certificates and tokens.
    pub security: Security,
    /// The name in the certificates of the peers.
    pub peer_name: String,
    /// On shutdown: how long the server still answers while health checks already fail.
    pub linger: Duration,
    /// On shutdown: how long running calls may take, and how long other servers may take to get the cells.
    pub patience: Duration,
    /// The transport to peers; `None`: TCP.
    pub connect: Option<Connect>,
    /// The address of the admin port: health and metrics, without tokens and TLS.
    pub admin: Option<SocketAddr>,
    /// Why no other server may join this server; `None` if other servers may join.
    pub alone: Option<Alone>,
    /// The options of answers over HTTP.
    pub http: HttpOptions,
    /// Gives memory that is free in this process back to the system; called after large calls.
    pub give_back: fn(),
}

/// Why a server accepts no other servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alone {
    /// The server listens at all addresses and does not know which address other servers can reach.
    Unaddressed,
    /// The server uses TLS and does not know the CA of the other servers' certificates.
    Unsigned,
}

impl Alone {
    /// The message to a server that wants to join.
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
    /// Options with limits for this machine, without TLS and tokens.
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
            http: HttpOptions::default(),
            give_back: || {},
        }
    }
}

/// Why a server fails.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The server cannot listen at its address.
    #[error("cannot listen at {address}: {source}{}", advice(source))]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The store or the cluster cannot be opened.
    #[error("{}", .0.message())]
    Start(Status),
    /// The served store was replaced by another store, or another server of the cluster has the name of this one.
    #[error("{0}")]
    Exchanged(String),
    /// The transport failed.
    #[error(transparent)]
    Transport(#[from] tonic::transport::Error),
}

/// The advice in the message of a server that cannot listen.
fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => "; another program uses this port",
        io::ErrorKind::AddrNotAvailable => "; this machine has no such address",
        io::ErrorKind::PermissionDenied => "; ports below 1024 need a privilege",
        _ => "",
    }
}

/// A running server.
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
    /// Listens, joins the cluster, and answers. Until the server is ready, it answers NOT_READY.
    ///
    /// # Errors
    /// The port is taken, or the store does not open.
    pub async fn start(location: Location, listen: SocketAddr, options: ServerOptions) -> Result<Self, ServerError> {
        let (listener, address) = bound(listen).await?;
        let incoming = LimitedIncoming::new(listener, ConnectionLimits::from(&options.limits));
        let connections = incoming.connections();
        Self::over(location, address, incoming, connections, options).await
    }

    /// Like [`Server::start`], over a stream of connections from any transport. If the shutdown takes too long, the
    /// server cuts the connections in `connections`.
    ///
    /// # Errors
    /// The store does not open.
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
        let (give_back, data) = (options.give_back, options.cluster.data.clone());
        let prepared = PreparedServer::start((location, address), options).await.map_err(ServerError::Start)?;
        prepared.metrics.watch_connections(&connections);
        prepared.metrics.watch_disk(data);
        let given_back = (prepared.budgets.clone(), give_back);
        let tidied = (prepared.limits, prepared.admission.clone(), given_back, connections.clone());
        tokio::spawn(tidy(tidied, prepared.stop.subscribe()));
        let admin = admin.map(|(listener, address)| {
            tokio::spawn(serve_admin(listener, prepared.admin_router.clone(), prepared.stop.subscribe()));
            address
        });
        let router = prepared.router.clone();
        let drain = prepared.drain.clone();
        let limits = prepared.limits;
        let streams = limits.streams();
        let serve = move |stop| {
            Box::pin(async move {
                let mut transport = Transport::builder()
                    .accept_http1(true)
                    .http2_keepalive_interval(Some(Duration::from_secs(10)))
                    .http2_keepalive_timeout(Some(Duration::from_secs(10)))
                    .http2_max_pending_accept_reset_streams(Some(64))
                    .max_concurrent_streams(streams)
                    // The request bytes of a waiting call stay in memory, so windows must be small.
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
        Ok(prepared.running((address, admin), connections, task))
    }

    /// The address where the server listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address of the admin port.
    pub fn admin(&self) -> Option<SocketAddr> {
        self.admin
    }

    /// The state that the services share.
    pub fn shared(&self) -> &Shared {
        &self.shared
    }

    /// The metrics.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Returns when the server is ready.
    pub async fn ready(&self) {
        // The keeper's counts do not cover everything that the server may lack, so this polls.
        while self.shared.cluster.readiness().is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Drains the server: other servers take over its cells, running calls are answered, and the server ends.
    ///
    /// # Errors
    /// The transport failed.
    pub async fn end(mut self) -> Result<End, ServerError> {
        self.shared.cluster.leave(self.patience).await;
        self.drain.begin();
        let end = (&mut self.task).await;
        let _ = self.stop.send(true);
        end.unwrap_or(Ok(End::Whole))
    }

    /// Returns when the server has ended by itself: it can no longer accept connections, its store was replaced, or
    /// another server has its name.
    ///
    /// # Errors
    /// [`ServerError::Exchanged`]. If the store was replaced, all answers until the end are from the earlier store.
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
        // As if the process were killed: connections end and the keeper stops. Each connection is a separate task.
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

/// Answers health checks and metrics until the server has ended. An operator can always connect: all connections count
/// as idle, a new connection replaces the oldest, and every connection has a maximum age.
async fn serve_admin(listener: TcpListener, router: Router, mut stop: watch::Receiver<bool>) {
    let limits = ConnectionLimits { most: ADMIN_CONNECTIONS, of_one: ADMIN_CONNECTIONS, idle: ADMIN_MAX };
    let mut transport = Transport::builder()
        .accept_http1(true)
        .max_concurrent_streams(ADMIN_STREAMS)
        .max_connection_age(ADMIN_MAX)
        .max_connection_age_grace(ADMIN_MAX);
    let routes = transport.add_routes(Routes::from(router));
    tokio::select! {
        _ = routes.serve_with_incoming(LimitedIncoming::new(listener, limits)) => {}
        _ = stop.wait_for(|stopped| *stopped) => {}
    }
}

/// The state that [`tidy`] cleans up.
type Tidied = (Limits, Admission, ([Budget; 2], fn()), Connections);

/// Closes idle connections, drops answers that nobody reads, and gives memory of large calls back to the system, until
/// the server stops.
async fn tidy((limits, admission, (budgets, give_back), connections): Tidied, mut stop: watch::Receiver<bool>) {
    let interval = (limits.stall / 4).min(limits.idle / 4).clamp(Duration::from_millis(10), Duration::from_secs(1));
    loop {
        tokio::select! {
            () = tokio::time::sleep(interval) => {}
            _ = stop.wait_for(|stopped| *stopped) => return,
        }
        admission.give_up();
        if budgets.each_ref().map(Budget::was_used).contains(&true) {
            // The allocator may look through all free memory.
            let _ = tokio::task::spawn_blocking(give_back).await;
        }
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

/// A server without its port.
struct PreparedServer {
    router: Router,
    admin_router: Router,
    admission: Admission,
    budgets: [Budget; 2],
    shared: Shared,
    drain: Drain,
    metrics: Metrics,
    limits: Limits,
    stop: watch::Sender<bool>,
    patience: Duration,
}

impl PreparedServer {
    async fn start((location, listen): (Location, SocketAddr), options: ServerOptions) -> Result<Self, Status> {
        let ServerOptions {
            cluster: cluster_options,
            clerk,
            limits,
            security,
            peer_name,
            linger,
            patience,
            connect,
            alone,
            http: http_options,
            ..
        } = options;
        let tokens = security.tokens();
        let mut names = http_options.hosts;
        names.push(cluster_options.address.ip().to_string());
        names.extend(http_options.public_url.as_deref().and_then(host_of));
        let hosts = Hosts::of(listen, names);
        let mut dialer = Dialer::default().secured(security.client_tls(&peer_name), tokens.clone());
        if let Some(connect) = connect {
            dialer = dialer.over(connect);
        }
        let name = cluster_options.name.clone();
        let (stop, stopped) = watch::channel(false);
        let bounds = limits.bounds();
        let cluster = Cluster::start(location, cluster_options, bounds, dialer.clone(), stopped.clone()).await?;
        let [answers, work] = limits.budgets();
        let cells = CellsService::new(cluster.clone(), (bounds, work.clone()), limits.calls, alone);
        let local: (String, Arc<dyn LocalCells>) = (name, Arc::new(cells.clone()));
        let clerk = Clerk::of_server(cluster.maps(), dialer, clerk, (local, answers.clone()));
        let manner = HttpManner {
            replay: http_options.replay,
            public_url: http_options.public_url,
            frames: frames(&http_options.frames),
            scheme: if security.server_tls().is_some() { "https" } else { "http" },
            is_private: tokens.header().is_some(),
        };
        let shared = Shared { clerk, cluster, bounds, http: Arc::new(manner) };
        let (drain, health) = Drain::new(linger, patience).await;
        let metrics = Metrics::new();
        let admission = Admission::new(&limits);
        metrics.watch_admission(&admission);
        metrics.watch_drain(&drain);
        tokio::spawn(publish_state(shared.clone(), security, drain.clone(), metrics.clone(), stopped));
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
        // Many tools know only the older version of reflection.
        let (newer, older) = (reflection().build_v1().map_err(failed)?, reflection().build_v1alpha().map_err(failed)?);
        let methods = http::methods(Methods::default());
        let router = Routes::new(links)
            .add_service(cells)
            .add_service(health.clone())
            .add_service(newer)
            .add_service(older)
            .into_axum_router()
            .merge(http::routes(shared.clone()));
        let guard = Guard {
            methods,
            hosts,
            tokens,
            admission: admission.clone(),
            metrics: metrics.clone(),
            drain: drain.clone(),
        };
        let admin_router = Routes::new(health).into_axum_router().merge(guard.beside());
        let mut router = guard.around(router);
        if let Some(cors) = cors(&http_options.origins) {
            router = router.layer(cors);
        }
        let budgets = [answers, work];
        Ok(Self { router, admin_router, admission, budgets, shared, drain, metrics, limits, stop, patience })
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

/// Copies the state of the keeper into health checks and metrics, until the server stops. This task must end with the
/// server: a task that holds the cluster keeps the server a member.
async fn publish_state(
    shared: Shared,
    security: Security,
    drain: Drain,
    metrics: Metrics,
    mut stopped: watch::Receiver<bool>,
) -> Option<Infallible> {
    let mut counts = shared.cluster.counts();
    let (mut fetched, mut made, mut failed, mut known) = (0, 0, 0, crate::clerk::ClerkCounts::default());
    let (mut damaged, mut scrubbed, mut behind) = (0, 0, None);
    loop {
        let now = *counts.borrow_and_update();
        drain.set_ready(shared.cluster.readiness().and(security.readiness())).await;
        drain.set_notes(shared.cluster.notes());
        security.expiries().iter().for_each(|expiry| metrics.certificate(&expiry.path, expiry.last()));
        metrics.peers_distrusted(shared.cluster.distrusted().len() as u64);
        for (residence, index) in [(Residence::Memory, 0), (Residence::Mapped, 1)] {
            metrics.cells(residence, now.cells[index], now.bytes[index]);
        }
        metrics.cells_wanted(now.missing);
        metrics.agreement(now.unsettled_now, now.replicas, now.differing);
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
        (damaged..now.damaged).for_each(|_| metrics.cell_damaged());
        metrics.scrub(now.damaged_files, now.scrubbed_bytes - scrubbed);
        (fetched, made, failed) = (now.fetched_bytes, now.made, now.failed);
        (damaged, scrubbed) = (now.damaged, now.scrubbed_bytes);
        let clerk = shared.clerk.counts();
        (known.retries..clerk.retries).for_each(|_| metrics.retried());
        (known.hedges..clerk.hedges).for_each(|_| metrics.hedged());
        known = clerk;
        tokio::select! {
            changed = counts.changed() => changed.ok()?,
            // At least once a second, for changes that send no notification.
            () = tokio::time::sleep(Duration::from_secs(1)) => {}
            _ = stopped.wait_for(|stopped| *stopped) => return None,
        }
    }
}
