//! `webstrata serve`: answers questions about a store over the network, alone or in a cluster.

use crate::address::Address;
use crate::args::{Outcome, Usage, location, seconds, size};
use crate::ask::CallerArgs;
use crate::signals::{self, Signals};
use crate::spans::{self, Spans};
use anyhow::Context;
use clap::Args;
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;
use webstrata_engine::meter;
use webstrata_layers::{Location, counted};
use webstrata_serve::cluster::ClusterOptions;
use webstrata_serve::guard::drain::End;
use webstrata_serve::guard::limits::Limits;
use webstrata_serve::guard::security::renewal::{self, Renewal};
use webstrata_serve::guard::security::{Security, SecurityOptions};
use webstrata_serve::http::options::{HttpOptions, Origin};
use webstrata_serve::server::{Alone, Server, ServerOptions};

const ABOUT: &str = "\
The server answers gRPC and HTTP/JSON on one port. `curl http://HOST:PORT/`
lists the HTTP paths, `grpcurl -plaintext HOST:PORT list` the gRPC services.

To form a cluster, start servers of the same store, each with --join and the
address of any member. Each cell of the store is on --replicas servers. With N
replicas, N - 1 servers may fail without a failed call. The servers load new
epochs of the store automatically.

A name in --listen, --advertise or --admin is looked up when the server starts;
the server waits a minute for its address. A name in --join is looked up again
and again, and may have the addresses of all servers.

SIGTERM and Ctrl-C drain the server: other servers take over its cells, and it
exits when its calls are answered. SIGHUP reloads the certificates, the key and
the tokens; files that change are also reloaded without it.

A server without --join needs neither --advertise nor --tls-ca. Without them, a
server that listens at all addresses or speaks TLS cannot be joined by others.

Cells are read from STORE/cells, copied from other servers, or made from the
layers.

Examples:
  webstrata serve STORE
  webstrata serve STORE --listen 10.0.0.2:7400 --join 10.0.0.1:7400
  webstrata serve STORE --listen 0.0.0.0:7400 --admin 127.0.0.1:7401 \\
    --tls-cert cert.pem --tls-key key.pem --tokens tokens
  webstrata links --server 10.0.0.1:7400 http://example.org/";

/// Arguments of `serve`.
#[derive(Args, Debug)]
#[command(after_help = ABOUT)]
pub(crate) struct ServeArgs {
    /// Store: a directory, or s3://bucket/prefix
    #[arg(value_parser = location())]
    store: Location,
    /// HOST:PORT to listen on; PORT alone is of this machine only, :PORT of all its addresses, and
    /// port 0 is any free port
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7400", value_parser = Address::from_str)]
    listen: Address,
    /// HOST:PORT at which other servers and clients reach this one [default: that of --listen];
    /// needed in a cluster if --listen is at all addresses
    #[arg(long, value_name = "ADDR", value_parser = Address::from_str)]
    advertise: Option<Address>,
    /// HOST:PORT for /livez, /readyz, /metrics and gRPC health, without TLS and tokens
    #[arg(long, value_name = "ADDR", value_parser = Address::from_str)]
    admin: Option<Address>,
    /// HOST:PORT of a server of the cluster to join; repeat for more servers
    #[arg(long, value_name = "ADDR")]
    join: Vec<String>,
    /// Name of this server, the same after a restart [default: its address]
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    name: String,
    /// Name of the cluster; servers of other clusters are rejected
    #[arg(long, value_name = "NAME", default_value = "webstrata")]
    cluster: String,
    /// Number of servers that hold each cell
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=64))]
    replicas: u16,
    /// Memory for cells; cells that do not fit are read from mapped files
    #[arg(long, value_name = "SIZE", default_value = "4G", value_parser = size)]
    memory: usize,
    /// Serve this epoch only, not the newest
    #[arg(long, value_name = "E")]
    epoch: Option<u64>,
    /// Directory for copies of cells [default: in the user's cache directory]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Seconds to serve an epoch after the next one is ready
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0, value_parser = seconds)]
    grace: f64,
    /// Seconds to serve the epoch before one that `webstrata remove` made, until that one is ready
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0, value_parser = seconds)]
    removal_grace: f64,
    /// Seconds between checks for a new epoch
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0, value_parser = seconds)]
    watch: f64,
    /// Seconds without a change of members before cells move
    #[arg(long, value_name = "SECONDS", default_value_t = 3.0, value_parser = seconds)]
    settle: f64,
    /// Seconds between rounds of gossip
    #[arg(long, value_name = "SECONDS", default_value_t = 0.2, value_parser = seconds)]
    gossip: f64,
    /// Bytes of cells and layers to read again each second, to find damage
    #[arg(long, value_name = "SIZE", default_value = "8M", value_parser = size)]
    scrub: usize,
    /// Concurrent calls of each kind; further calls wait, at most 32 times as many [default: 16 per
    /// processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    calls: Option<u16>,
    /// Maximum number of open connections; one client gets at most half of the connections and
    /// calls [default: by the processors, at least 1024]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=1_000_000))]
    connections: Option<u32>,
    /// Maximum number of UIDs or URLs in one call
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    batch: u32,
    /// Maximum seconds to drain: to finish calls and hand over cells
    #[arg(long, value_name = "SECONDS", default_value_t = 30.0, value_parser = seconds)]
    drain: f64,
    /// Certificate of this server (PEM); turns TLS on
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Private key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// CA certificate (PEM): clients must have a certificate that it signed
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_client_ca: Option<PathBuf>,
    #[command(flatten)]
    caller: CallerArgs,
    /// Origin whose pages may read answers in a browser (CORS), as https://example.org, or * for all;
    /// repeat for more
    #[arg(long, value_name = "ORIGIN", value_parser = Origin::parse)]
    cors: Vec<Origin>,
    /// Origin whose pages may show the explorer in a frame, or * for all; repeat for more
    #[arg(long, value_name = "ORIGIN", value_parser = Origin::parse)]
    embed: Vec<Origin>,
    /// What URLs of mementos begin with: the replay service of the archive
    #[arg(long, value_name = "URL", default_value = "https://web.archive.org/web/")]
    replay: String,
    /// URL at which callers reach this server, for links in TimeMaps [default: the host that they name]
    #[arg(long, value_name = "URL")]
    public_url: Option<String>,
    /// Host name at which callers reach a server that listens on a loopback address, as a proxy passes
    /// it on; localhost, --advertise and the host of --public-url always do; * for all; repeat for more
    #[arg(long, value_name = "NAME")]
    host: Vec<String>,
    /// Log to standard error at this level: off, error, warn, info, debug or trace; other modules
    /// by name, as in info,h2=debug; access=info logs each call
    #[arg(long, value_name = "LEVEL", default_value = "info", value_parser = spans::filter)]
    log: tracing_subscriber::filter::Targets,
    /// Format of the log
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    log_format: spans::Format,
    /// Send traces of calls to this OpenTelemetry (OTLP) collector
    #[cfg(feature = "otel")]
    #[arg(long, value_name = "http://HOST:PORT")]
    otlp: Option<String>,
}

/// The addresses where the server listens, and where other servers reach it.
struct Addresses {
    listen: SocketAddr,
    admin: Option<SocketAddr>,
    advertise: SocketAddr,
}

impl Addresses {
    async fn of(args: &ServeArgs) -> anyhow::Result<Addresses> {
        let listen = args.listen.known().await.context("--listen")?;
        let advertise = match &args.advertise {
            Some(address) => address.known().await.context("--advertise")?,
            None => listen,
        };
        let admin = match &args.admin {
            Some(address) => Some(address.known().await.context("--admin")?),
            None => None,
        };
        Ok(Addresses { listen, admin, advertise })
    }
}

pub(crate) fn run(args: &ServeArgs, out: &mut dyn Write) -> anyhow::Result<Outcome> {
    let in_cluster = args.advertise.is_some() || !args.join.is_empty();
    if in_cluster && args.advertise.is_none() && args.listen.is_every() {
        let needed = "--join with --listen at all addresses needs --advertise (the address at which other servers \
                      reach this one)";
        return Err(Usage(needed.into()).into());
    }
    if in_cluster && args.tls_cert.is_some() && args.caller.tls_ca.is_none() {
        let needed = "--tls-cert needs --tls-ca (the CA that signs the other servers' certificates)";
        return Err(Usage(needed.into()).into());
    }
    let alone = match (args.listen.is_every(), args.tls_cert.is_some() && args.caller.tls_ca.is_none()) {
        _ if in_cluster => None,
        (true, _) => Some(Alone::Unaddressed),
        (_, true) => Some(Alone::Unsigned),
        _ => None,
    };
    // The memory of a large answer goes back to the system when the answer was sent.
    meter::give_back_large();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let signals = Arc::new(Signals::default());
    let _acting = signals::watch(&signals);
    let end = runtime.block_on(async {
        let targets = args.log.clone();
        #[cfg(not(feature = "otel"))]
        let spans = Spans::start(args.log_format, targets);
        #[cfg(feature = "otel")]
        let spans = Spans::start(args.log_format, targets, args.otlp.as_deref())?;
        let end = answer(args, alone, &signals, out).await;
        spans.end().await;
        end
    });
    // Tasks that still block are not waited for.
    runtime.shutdown_timeout(Duration::from_secs(1));
    match end? {
        End::Whole => Ok(Outcome::Done),
        End::Cut { connections } => {
            tracing::warn!("the server ended and cut {}", counted(connections, "connection"));
            Ok(Outcome::Failed)
        }
    }
}

/// Answers questions until the server was told to end and has ended.
async fn answer(
    args: &ServeArgs,
    alone: Option<Alone>,
    signals: &Arc<Signals>,
    out: &mut dyn Write,
) -> anyhow::Result<End> {
    let addresses = tokio::select! {
        found = Addresses::of(args) => found?,
        () = signals.end.notified() => return Ok(End::Whole),
    };
    warn_of_strangers(args, addresses.listen);
    let options = ServerOptions { alone, ..options(args, &addresses)? };
    let renewal = Renewal::of(options.security.clone(), files(args));
    let reloads = tokio::spawn(renew(signals.clone(), renewal));
    let end = serve(args, addresses.listen, options, &signals.end, out).await;
    reloads.abort();
    end
}

/// Warns if everybody may call the server.
fn warn_of_strangers(args: &ServeArgs, listen: SocketAddr) {
    let is_open = args.caller.tokens.is_none() && args.tls_client_ca.is_none();
    if !listen.ip().is_loopback() && is_open {
        let plain = if args.tls_cert.is_none() { ", in plain text" } else { "" };
        tracing::warn!(
            "everybody who reaches {listen} can call this server{plain}: give --tokens or --tls-client-ca where the \
             network is not trusted"
        );
    }
}

/// Reads certificates and tokens again on request, and certificates also if their files have changed. Says when the
/// certificates expire.
async fn renew(signals: Arc<Signals>, mut renewal: Renewal) {
    loop {
        let outcome = tokio::select! {
            () = signals.reload.notified() => Some(renewal.read()),
            () = tokio::time::sleep(renewal::LOOK) => renewal.look(),
        };
        match outcome {
            None => {}
            Some(Ok(())) => tracing::info!("certificates and tokens were read again; new connections use them"),
            Some(Err(error)) => tracing::error!("certificates and tokens were not reloaded: {error}"),
        }
    }
}

/// Serves until the server was told to end and has ended.
async fn serve(
    args: &ServeArgs,
    listen: SocketAddr,
    options: ServerOptions,
    ended: &tokio::sync::Notify,
    out: &mut dyn Write,
) -> anyhow::Result<End> {
    let mut server = Server::start(args.store.clone(), listen, options).await?;
    writeln!(out, "listening on {}", server.address())?;
    if let Some(address) = server.admin() {
        writeln!(out, "admin on {address}")?;
    }
    out.flush()?;
    let exchanged = server.shared().cluster.clone();
    let is_ended = tokio::select! {
        () = server.ready() => {
            let pinned = server.shared().clerk.at_last(None).await?;
            let scheme = if args.tls_cert.is_some() { "https" } else { "http" };
            let address = server.address();
            let host = match address.ip().is_unspecified() {
                true => format!("localhost:{}", address.port()),
                false => address.to_string(),
            };
            let urls = counted(pinned.len(), "URL");
            writeln!(out, "ready: epoch {}, {urls}; see {scheme}://{host}/", pinned.epoch())?;
            out.flush()?;
            false
        }
        found = exchanged.exchanged() => anyhow::bail!(found),
        () = ended.notified() => true,
    };
    if !is_ended {
        tokio::select! {
            end = server.ended() => return Ok(end?),
            () = ended.notified() => {}
        }
    }
    tracing::info!(
        "draining: the server ends when calls are answered and other servers have the cells; press Ctrl-C again to \
         end at once"
    );
    tokio::select! {
        end = server.end() => Ok(end?),
        () = ended.notified() => Ok(End::Cut { connections: 0 }),
    }
}

fn options(args: &ServeArgs, addresses: &Addresses) -> anyhow::Result<ServerOptions> {
    let period = Duration::from_secs_f64;
    let mut limits = args.calls.map_or_else(Limits::default, |calls| {
        let calls = usize::from(calls);
        Limits { calls, queue: 32 * calls, ..Limits::default() }
    });
    limits.batch = usize::try_from(args.batch)?;
    if let Some(connections) = args.connections {
        limits.connections = usize::try_from(connections)?;
    }
    let security = Security::open(&files(args))?;
    let address = addresses.advertise;
    let data = match &args.data {
        Some(data) => data.clone(),
        None => cache(&args.store, address)?,
    };
    Ok(ServerOptions {
        limits,
        security,
        admin: addresses.admin,
        peer_name: args.caller.tls_name.clone(),
        patience: period(args.drain),
        http: HttpOptions {
            replay: args.replay.clone(),
            public_url: args.public_url.as_ref().map(|url| url.trim_end_matches('/').to_owned()),
            hosts: args.host.clone(),
            origins: args.cors.clone(),
            frames: args.embed.clone(),
        },
        give_back: meter::give_back,
        ..ServerOptions::new(ClusterOptions {
            name: args.name.clone(),
            address,
            join: args.join.clone(),
            cluster: args.cluster.clone(),
            replicas: usize::from(args.replicas),
            memory: args.memory as u64,
            epoch: args.epoch,
            watch: period(args.watch),
            grace: period(args.grace),
            removal_max: period(args.removal_grace),
            settle: period(args.settle),
            gossip: period(args.gossip),
            scrub: args.scrub as u64,
            ..ClusterOptions::new(data)
        })
    })
}

fn files(args: &ServeArgs) -> SecurityOptions {
    SecurityOptions {
        cert: args.tls_cert.clone(),
        key: args.tls_key.clone(),
        client_ca: args.tls_client_ca.clone(),
        server_ca: args.caller.tls_ca.clone(),
        tokens: args.caller.tokens.clone(),
    }
}

/// The directory for images of the cells of a store, for a server with this address.
fn cache(store: &Location, address: SocketAddr) -> anyhow::Result<PathBuf> {
    let of = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let caches = of("XDG_CACHE_HOME").or_else(|| of("HOME").map(|home| home.join(".cache")));
    let caches = caches
        .ok_or(Usage("neither XDG_CACHE_HOME nor HOME is set: give --data DIR for the copies of cells".into()))?;
    let mut name: String = store.to_string();
    if let Some(directory) = store.directory() {
        name = std::path::absolute(directory)?.display().to_string();
    }
    let name: String = name.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' }).collect();
    Ok(caches.join("webstrata").join(format!("{}-{}", name.trim_matches('-'), address.port())))
}
