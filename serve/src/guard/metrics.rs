//! The metrics of a server, for Prometheus: calls, answers, and the cells that the server holds.
//!
//! [`Metrics`] belong to one server, so that several servers in a process do not mix. They count and time every call
//! that passes [`Metrics::around`]. The numbers of [`Admission`] and [`Connections`] are read at each scrape. The
//! server sets all other metrics. `/metrics` gives OpenMetrics 1.0, or the older text format of Prometheus.
//!
//! Promises: all names begin with `webstrata_`, except the names of process metrics, and end in their unit. Labels come
//! from fixed lists, so the number of metrics is bounded whatever callers send. Memory: below a megabyte. Costs of a
//! call: three look-ups and a clock.

mod exposition;
mod process;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::get;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry, Unit};

use crate::guard::attend::{Attendant, Outcome, attended};
use crate::guard::connections::Connections;
use crate::guard::drain::Drain;
use crate::guard::limits::{Admission, Load};
use crate::guard::methods::{METRICS, Methods};
use crate::guard::panics;
use crate::protocol::refusal::name;
use webstrata_cells::image::Residence;

/// Upper bounds of the times of calls, in seconds.
const SECONDS: [f64; 17] =
    [5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0];
/// The prefix of the names of a server's metrics.
const PREFIX: &str = "webstrata";

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByMethod {
    method: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByCode {
    method: &'static str,
    code: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByPool {
    pool: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByResidence {
    residence: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByVersion {
    version: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByFile {
    file: String,
}

type Level = Gauge<u64, AtomicU64>;

/// Makes histograms of times.
#[derive(Clone)]
struct Times;

impl MetricConstructor<Histogram> for Times {
    fn new_metric(&self) -> Histogram {
        Histogram::new(SECONDS)
    }
}

/// The metrics of one server. Clones share them.
#[derive(Clone)]
pub struct Metrics(Arc<Figures>);

struct Figures {
    registry: Mutex<Registry>,
    calls: Family<ByCode, Counter>,
    call_seconds: Family<ByMethod, Histogram, Times>,
    answer_bytes: Family<ByMethod, Counter>,
    cells: Family<ByResidence, Level>,
    cell_bytes: Family<ByResidence, Level>,
    cells_wanted: Level,
    epoch_current: Level,
    epoch_newest: Level,
    epoch_lag: Gauge<f64, AtomicU64>,
    servers: Level,
    fetched_bytes: Counter,
    cells_made: Counter,
    cells_failed: Counter,
    cells_damaged: Counter,
    files_damaged: Level,
    scrubbed_bytes: Counter,
    clerk_retries: Counter,
    clerk_hedges: Counter,
    certificates: Family<ByFile, Level>,
    peers_distrusted: Level,
    cells_unsettled: Level,
    replicas: Level,
    views_differing: Level,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// Metrics that begin at zero.
    #[must_use]
    pub fn new() -> Self {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(process::Process::new()));
        let all = registry.sub_registry_with_prefix(PREFIX);
        let version = Family::<ByVersion, Level>::default();
        version.get_or_create(&ByVersion { version: env!("CARGO_PKG_VERSION") }).set(1);
        all.register("build_info", "The version of the program; the value is 1", version);
        all.register(
            "panics",
            "Panics of calls and of work on the store; each is an error of the program",
            panics::counter(),
        );
        let call_seconds = Family::new_with_constructor(Times);
        all.register_with_unit(
            "call",
            "Duration of calls, to the end of their answers",
            Unit::Seconds,
            call_seconds.clone(),
        );
        Self(Arc::new(Figures {
            calls: add(all, "calls", "Finished calls, by gRPC code or its HTTP counterpart"),
            call_seconds,
            answer_bytes: add_bytes(all, "answer", "Bytes of answers, before TLS encryption"),
            cells: add(all, "cells", "Cells ready to answer, in memory or on disk"),
            cell_bytes: add_bytes(all, "cell", "Bytes of cells ready to answer"),
            cells_wanted: add(all, "cells_wanted", "Cells placed on this server that are not ready here"),
            epoch_current: add(all, "epoch_current", "Current epoch, which questions without an epoch are about"),
            epoch_newest: add(all, "epoch_newest", "Newest epoch of the store"),
            epoch_lag: {
                let lag = Gauge::default();
                let help = "Time since a newer epoch than the current one exists";
                all.register_with_unit("epoch_lag", help, Unit::Seconds, lag.clone());
                lag
            },
            servers: add(all, "servers_alive", "Live servers of the cluster, including this server"),
            fetched_bytes: add_bytes(all, "fetched", "Bytes of images fetched from peers"),
            cells_made: add(all, "cells_made", "Images made from layers"),
            cells_failed: add(all, "cells_failed", "Failed attempts to make or fetch the image of a cell"),
            cells_damaged: add(all, "cells_damaged", "Cells dropped because their images changed on the disk"),
            files_damaged: add(all, "files_damaged", "Files of the store that the scrub finds damaged"),
            scrubbed_bytes: add_bytes(all, "scrubbed", "Bytes of cells and layers that the scrub has read"),
            clerk_retries: add(all, "clerk_retries", "Questions that the clerk retried at another server"),
            clerk_hedges: add(all, "clerk_hedges", "Questions that the clerk hedged at a second server"),
            certificates: {
                let ends = Family::default();
                let help = "End of the validity of the certificates in a file, in seconds since 1970";
                all.register_with_unit("certificate_not_after", help, Unit::Seconds, ends.clone());
                ends
            },
            peers_distrusted: add(all, "peers_distrusted", "Servers that TLS keeps from being called"),
            cells_unsettled: add(
                all,
                "cells_unsettled",
                "Cells of the current epoch that are not on all their servers",
            ),
            replicas: add(all, "replicas", "Replicas of each cell, as most servers of the cluster want"),
            views_differing: add(all, "views_differing", "Servers that see the cluster otherwise"),
            registry: Mutex::new(registry),
        }))
    }

    /// Counts and times the calls of a router.
    pub fn around(&self, router: Router, methods: &Methods) -> Router {
        router.layer(from_fn_with_state((self.clone(), methods.clone()), measure))
    }

    /// `/metrics`.
    pub fn routes(&self) -> Router {
        let metrics = self.clone();
        let answer = async move |headers: HeaderMap| exposition::answer(&headers, metrics.text());
        Router::new().route(METRICS, get(answer))
    }

    /// All metrics, as text.
    #[must_use]
    pub fn text(&self) -> String {
        let registry = self.0.registry.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = text::encode(&mut text, &registry);
        text
    }

    /// Adds the loads of the pools: calls running, waiting and refused.
    pub fn watch_admission(&self, admission: &Admission) {
        self.watch(Pools(admission.clone()));
    }

    /// Adds whether the server is ready, as `/readyz` says.
    pub fn watch_drain(&self, drain: &Drain) {
        self.watch(Readiness(drain.clone()));
    }

    /// Adds the numbers of open, refused and idle-closed connections.
    pub fn watch_connections(&self, connections: &Connections) {
        self.watch(Wires(connections.clone()));
    }

    /// Adds the free space and the size of the disk of a directory.
    pub fn watch_disk(&self, directory: PathBuf) {
        self.watch(process::Disk(directory));
    }

    fn watch(&self, collector: impl Collector) {
        let mut registry = self.0.registry.lock().unwrap_or_else(PoisonError::into_inner);
        registry.sub_registry_with_prefix(PREFIX).register_collector(Box::new(collector));
    }

    /// Sets the number and the bytes of cells ready in memory or on disk.
    pub fn cells(&self, residence: Residence, cells: u64, bytes: u64) {
        let residence = match residence {
            Residence::Memory => "memory",
            Residence::Mapped => "disk",
        };
        self.0.cells.get_or_create(&ByResidence { residence }).set(cells);
        self.0.cell_bytes.get_or_create(&ByResidence { residence }).set(bytes);
    }

    /// Sets the number of cells that should be ready here and are not.
    pub fn cells_wanted(&self, cells: u64) {
        self.0.cells_wanted.set(cells);
    }

    /// Sets the current epoch, the newest epoch of the store, and for how long the two have differed.
    pub fn epochs(&self, current: u64, newest: u64, lag: Duration) {
        self.0.epoch_current.set(current);
        self.0.epoch_newest.set(newest);
        self.0.epoch_lag.set(lag.as_secs_f64());
    }

    /// Sets the number of live servers, including this server.
    pub fn servers_alive(&self, servers: u64) {
        self.0.servers.set(servers);
    }

    /// Sets when the certificates of a file expire, in seconds since 1970.
    pub fn certificate(&self, file: &Path, last: u64) {
        self.0.certificates.get_or_create(&ByFile { file: file.display().to_string() }).set(last);
    }

    /// Sets the number of servers that TLS keeps from being called.
    pub fn peers_distrusted(&self, servers: u64) {
        self.0.peers_distrusted.set(servers);
    }

    /// Sets the number of cells that are not on all their servers, the number of replicas, and the number of servers
    /// with a different view of the cluster.
    pub fn agreement(&self, unsettled: u64, replicas: u64, differing: u64) {
        self.0.cells_unsettled.set(unsettled);
        self.0.replicas.set(replicas);
        self.0.views_differing.set(differing);
    }

    /// Adds bytes of images fetched from a peer.
    pub fn fetched(&self, bytes: u64) {
        self.0.fetched_bytes.inc_by(bytes);
    }

    /// Counts an image made from layers.
    pub fn cell_made(&self) {
        self.0.cells_made.inc();
    }

    /// Counts a failed attempt to make or fetch an image.
    pub fn cell_failed(&self) {
        self.0.cells_failed.inc();
    }

    /// Counts a cell whose image changed on the disk.
    pub fn cell_damaged(&self) {
        self.0.cells_damaged.inc();
    }

    /// Sets the number of files of the store that the scrub finds damaged, and adds bytes that it has read.
    pub fn scrub(&self, damaged_files: u64, read: u64) {
        self.0.files_damaged.set(damaged_files);
        self.0.scrubbed_bytes.inc_by(read);
    }

    /// Counts a retry of the clerk.
    pub fn retried(&self) {
        self.0.clerk_retries.inc();
    }

    /// Counts a hedge of the clerk.
    pub fn hedged(&self) {
        self.0.clerk_hedges.inc();
    }
}

fn add<M: Metric + Default + Clone>(registry: &mut Registry, name: &str, help: &str) -> M {
    let metric = M::default();
    registry.register(name, help, metric.clone());
    metric
}

fn add_bytes<M: Metric + Default + Clone>(registry: &mut Registry, name: &str, help: &str) -> M {
    let metric = M::default();
    registry.register_with_unit(name, help, Unit::Bytes, metric.clone());
    metric
}

/// A call; counted when it is dropped.
struct Call {
    metrics: Metrics,
    method: &'static str,
    begun: Instant,
    outcome: Outcome,
}

impl Attendant for Call {
    fn outcome(&mut self) -> Option<&mut Outcome> {
        Some(&mut self.outcome)
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let (figures, method) = (&self.metrics.0, self.method);
        figures.calls.get_or_create(&ByCode { method, code: name(self.outcome.code()) }).inc();
        figures.call_seconds.get_or_create(&ByMethod { method }).observe(self.begun.elapsed().as_secs_f64());
        figures.answer_bytes.get_or_create(&ByMethod { method }).inc_by(self.outcome.bytes);
    }
}

async fn measure(State((metrics, methods)): State<(Metrics, Methods)>, request: Request, next: Next) -> Response {
    let method = methods.of(request.uri().path()).name;
    let call = Call { metrics, method, begun: Instant::now(), outcome: Outcome::default() };
    attended(next.run(request).await, call)
}

/// Reads the numbers of [`Admission`] at each scrape.
struct Pools(Admission);

impl fmt::Debug for Pools {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.0.loads()).finish()
    }
}

impl Collector for Pools {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let loads = self.0.loads();
        let mut level = |name, help, of: fn(&Load) -> usize| {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            loads.iter().try_for_each(|load| {
                let level = ConstGauge::new(u64::try_from(of(load)).unwrap_or(u64::MAX));
                level.encode(family.encode_family(&ByPool { pool: load.pool.name() })?)
            })
        };
        level("calls_running", "Calls that run", |load| load.running)?;
        level("calls_waiting", "Calls that wait to run", |load| load.waiting)?;
        let mut count = |name, help, of: fn(&Load) -> u64| {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            loads.iter().try_for_each(|load| {
                ConstCounter::new(of(load)).encode(family.encode_family(&ByPool { pool: load.pool.name() })?)
            })
        };
        let help = "Calls refused because too many calls waited, or this call too long";
        count("calls_refused", help, |load| load.refused)?;
        count("answers_given_up", "Answers dropped because the caller did not read them", |load| load.given_up)
    }
}

/// Reads whether the server is ready at each scrape.
struct Readiness(Drain);

impl fmt::Debug for Readiness {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Readiness").field(&self.0.is_ready()).finish()
    }
}

impl Collector for Readiness {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let help = "Whether the server is ready: 1 where /readyz has the status 200, else 0";
        let ready = ConstGauge::new(u64::from(self.0.is_ready()));
        ready.encode(encoder.encode_descriptor("ready", help, None, MetricType::Gauge)?)
    }
}

/// Reads the numbers of [`Connections`] at each scrape.
struct Wires(Connections);

impl fmt::Debug for Wires {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} connections", self.0.open())
    }
}

impl Collector for Wires {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let open = ConstGauge::new(u64::try_from(self.0.open()).unwrap_or(u64::MAX));
        open.encode(encoder.encode_descriptor("connections_open", "Open connections", None, MetricType::Gauge)?)?;
        let refused = ConstCounter::new(self.0.refused());
        let help = "Connections refused because too many were open";
        refused.encode(encoder.encode_descriptor("connections_refused", help, None, MetricType::Counter)?)?;
        let idle = ConstCounter::new(self.0.closed_idle());
        let help = "Idle connections closed, after the idle timeout or to make place for a new one";
        idle.encode(encoder.encode_descriptor("connections_closed_idle", help, None, MetricType::Counter)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard::limits::Limits;
    use crate::guard::trial::{HELD, Tardy, client, http, router, serve, slow, until};
    use crate::protocol::proto::{CellName, FetchRequest};
    use tokio_stream::StreamExt;

    /// The value of the only metric with this name and these labels.
    fn figure(text: &str, name: &str) -> Option<f64> {
        let mut found = text.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok());
        let value = found.next();
        assert_eq!(found.next(), None, "{name} stands there once");
        value
    }

    #[tokio::test]
    async fn calls_are_counted_by_their_ends() {
        let (metrics, tardy) = (Metrics::new(), Tardy::default());
        let admission = Admission::new(&Limits { calls: 1, queue: 0, ..Limits::of_cores(1) });
        metrics.watch_admission(&admission);
        let methods = Methods::default();
        let router = admission.around(router(&tardy).merge(metrics.routes()), &methods);
        let address = serve(metrics.around(router, &methods), None).await;
        let channel = client(address).await;

        for _ in 0..3 {
            channel.clone().ask(slow(2)).await.expect("an answer");
        }
        let mut gone = channel.clone();
        let gone = tokio::spawn(async move { gone.ask(slow(HELD)).await });
        until(async || admission.loads()[1].running == 1).await;
        assert_eq!(figure(&metrics.text(), "webstrata_calls_running{pool=\"ask\"}"), Some(1.0));
        channel.clone().ask(slow(0)).await.expect_err("no place");
        gone.abort();
        until(async || admission.loads()[1].running == 0).await;
        let mut stream = channel
            .clone()
            .fetch(FetchRequest { cell: Some(CellName { row: 1, partition: 0 }), source: 3 })
            .await
            .expect("a stream")
            .into_inner();
        while stream.next().await.is_some_and(|part| part.is_ok()) {}
        for path in ["/v1/plain", "/nothing", "/webstrata.v1.Links/Nothing"] {
            http(address, path, "").await;
        }

        let counts = [
            ("Cells/Ask\",code=\"OK", 3.0),
            ("Cells/Ask\",code=\"RESOURCE_EXHAUSTED", 1.0),
            ("Cells/Ask\",code=\"CANCELLED", 1.0),
            ("Cells/Fetch\",code=\"DATA_LOSS", 1.0),
            ("other\",code=\"OK", 1.0),
        ];
        let count = |text: &str, labels: &str| figure(text, &format!("webstrata_calls_total{{method=\"{labels}\"}}"));
        until(async || counts.iter().all(|(labels, _)| count(&metrics.text(), labels).is_some())).await;
        let older = http(address, "/metrics", "accept: text/plain\r\n").await;
        assert!(older.contains("content-type: text/plain; version=0.0.4"), "{older}");
        assert!(older.contains("# TYPE webstrata_calls_total counter") && !older.contains("# EOF"), "{older}");
        let answer = http(address, "/metrics", "accept: application/openmetrics-text; version=1.0.0\r\n").await;
        assert!(answer.contains(&format!("content-type: {}", exposition::OPEN_METRICS)), "{answer}");
        assert!(answer.ends_with("# EOF\n"), "{answer}");
        for name in ["process_start_time_seconds", "webstrata_build_info"] {
            assert!(answer.contains(&format!("# TYPE {name} gauge")), "{name}: {answer}");
        }
        for (labels, expected) in counts {
            assert_eq!(count(&answer, labels), Some(expected), "{labels}");
        }
        assert_eq!(figure(&answer, "webstrata_calls_refused_total{pool=\"ask\"}"), Some(1.0));
        assert_eq!(figure(&answer, "webstrata_calls_waiting{pool=\"links\"}"), Some(0.0));
        // Three parts of one byte each. Each part is a message of three bytes after a header of five bytes.
        assert_eq!(figure(&answer, "webstrata_answer_bytes_total{method=\"Cells/Fetch\"}"), Some(24.0));
        let bucket = |most: &str| {
            figure(&answer, &format!("webstrata_call_seconds_bucket{{le=\"{most}\",method=\"Cells/Ask\"}}"))
        };
        // Three calls took longer than two milliseconds.
        assert!(bucket("0.002").is_some_and(|count| count <= 2.0) && bucket("+Inf") == Some(5.0), "{answer}");
        assert!(figure(&answer, "webstrata_call_seconds_sum{method=\"Cells/Ask\"}").is_some_and(|sum| sum > 0.006));
    }

    #[tokio::test]
    async fn hostile_paths_do_not_make_it_grow() {
        let metrics = Metrics::new();
        let methods = Methods::default();
        let address = serve(metrics.around(router(&Tardy::default()), &methods), None).await;
        http(address, "/a", "").await;
        until(async || metrics.text().contains("other")).await;
        let lines = metrics.text().lines().count();
        for number in 0..50 {
            http(address, &format!("/a{number}?x=\"y\""), "").await;
        }
        assert_eq!(metrics.text().lines().count(), lines);
    }

    #[tokio::test]
    async fn a_scrape_says_whether_the_server_is_ready() {
        let metrics = Metrics::new();
        let (drain, _health) = Drain::new(Duration::ZERO, Duration::ZERO).await;
        metrics.watch_drain(&drain);
        let ready = || figure(&metrics.text(), "webstrata_ready");
        assert_eq!(ready(), Some(0.0));
        drain.set_ready(Ok(())).await;
        assert_eq!(ready(), Some(1.0));
        drain.begin();
        assert_eq!(ready(), Some(0.0));
    }

    #[test]
    fn figures_are_what_they_were_told() {
        let (metrics, other) = (Metrics::new(), Metrics::default());
        metrics.cells(Residence::Memory, 3, 1 << 40);
        metrics.cells(Residence::Mapped, 4, 5);
        metrics.cells_wanted(6);
        metrics.epochs(7, 8, Duration::from_millis(1500));
        metrics.servers_alive(9);
        metrics.fetched(10);
        metrics.fetched(1);
        metrics.cell_made();
        metrics.cell_failed();
        metrics.cell_damaged();
        metrics.scrub(2, 3);
        metrics.scrub(1, 4);
        metrics.retried();
        metrics.hedged();
        metrics.hedged();
        metrics.watch_connections(&Connections::default());
        let text = metrics.text();
        for (name, value) in [
            ("cells{residence=\"memory\"}", 3.0),
            ("cell_bytes{residence=\"memory\"}", 1_099_511_627_776.0),
            ("cells{residence=\"disk\"}", 4.0),
            ("cell_bytes{residence=\"disk\"}", 5.0),
            ("cells_wanted", 6.0),
            ("epoch_current", 7.0),
            ("epoch_newest", 8.0),
            ("epoch_lag_seconds", 1.5),
            ("servers_alive", 9.0),
            ("fetched_bytes_total", 11.0),
            ("cells_made_total", 1.0),
            ("cells_failed_total", 1.0),
            ("cells_damaged_total", 1.0),
            ("files_damaged", 1.0),
            ("scrubbed_bytes_total", 7.0),
            ("clerk_retries_total", 1.0),
            ("clerk_hedges_total", 2.0),
            ("connections_open", 0.0),
            ("connections_refused_total", 0.0),
            ("connections_closed_idle_total", 0.0),
        ] {
            assert_eq!(figure(&text, &format!("webstrata_{name}")), Some(value), "{name}\n{text}");
        }
        assert_eq!(figure(&other.text(), "webstrata_fetched_bytes_total"), Some(0.0), "servers do not mix");
        let helped = text.lines().filter(|line| line.starts_with("# HELP")).count();
        assert_eq!(helped, text.lines().filter(|line| line.starts_with("# TYPE")).count());
    }
}
