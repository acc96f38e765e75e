//! Spans: each call has one span, in the log of a server and across the servers that the call reaches.
//!
//! A call runs in a span of `tracing` with its `method`, `path`, `peer`, `trace`, and, when known, `epoch`, `code`,
//! `seconds` and `bytes`. When the call ends, it logs an event: the access log. The span and the event have the target
//! [`ACCESS`], so a filter can separate them from the rest of the log. The event of calls without a limit, such as
//! gossip and health checks, has the level DEBUG. The header `traceparent` (W3C Trace Context, level 1) gives the
//! position in a [`Trace`]. [`propagate`] adds the header to the calls that this call makes. With the feature `otel`,
//! spans are exported by OTLP.
//!
//! Promises: an invalid header begins a new trace. Names of methods come from a fixed list. A task or thread of a call
//! has the trace only if it runs in [`within`]. Costs of a call: a span, which is almost free without a subscriber.

use std::fmt;
use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::time::Instant;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use tonic::metadata::MetadataMap;
use tracing::field::{Empty, display};
use tracing::{Instrument, Span};

use crate::guard::attend::{Attendant, Outcome, attended};
use crate::guard::connections::origin::Link;
use crate::guard::methods::{Methods, Pool};
use crate::protocol::refusal::name;

#[cfg(feature = "otel")]
mod otlp;
#[cfg(feature = "otel")]
use otlp::begin as exported;
#[cfg(feature = "otel")]
pub use otlp::{Exporter, ExporterError, exporter};

/// The target of calls in the log.
pub const ACCESS: &str = "access";

const TRACEPARENT: &str = "traceparent";

tokio::task_local! {
    /// The trace of the current call.
    static TRACE: Trace;
}

/// A position in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The number of the trace; not 0.
    pub id: u128,
    /// The number of the span; not 0.
    pub span: u64,
    /// Whether the process that began the trace records it.
    pub sampled: bool,
}

impl Trace {
    /// Parses the value of `traceparent`. Later versions may have more fields, after a `-`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut fields = text.trim().splitn(5, '-');
        let mut hex = |digits: usize| {
            let field = fields.next()?;
            let lower = field.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
            if field.len() == digits && lower { u128::from_str_radix(field, 16).ok() } else { None }
        };
        let (version, id, span, flags) = (hex(2)?, hex(32)?, u64::try_from(hex(16)?).ok()?, hex(2)?);
        let has_more = fields.next().is_some();
        let sound = id != 0 && span != 0 && version != 0xff && !(version == 0 && has_more);
        sound.then_some(Self { id, span, sampled: flags & 1 == 1 })
    }

    /// A new trace, with its first span.
    fn begin() -> Self {
        Self { id: u128::from(random()) << 64 | u128::from(random()), span: random(), sampled: false }
    }

    /// A new span of the same trace.
    fn child(self) -> Self {
        Self { span: random(), ..self }
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "00-{:032x}-{:016x}-{:02x}", self.id, self.span, u8::from(self.sampled))
    }
}

/// A random number for names. It is not a secret.
fn random() -> u64 {
    RandomState::new().hash_one(0).max(1)
}

/// The position of the current call in its trace: the position of the current span, or else of the task.
#[must_use]
pub fn current() -> Option<Trace> {
    #[cfg(feature = "otel")]
    if let Some(trace) = otlp::trace_of(&Span::current()) {
        return Some(trace);
    }
    TRACE.try_with(|trace| *trace).ok()
}

/// Runs a part of a call in another task, in the trace of the call.
pub async fn within<F: Future>(trace: Trace, part: F) -> F::Output {
    TRACE.scope(trace, part).await
}

/// Adds the trace of the current call to an outgoing call.
pub fn propagate(metadata: &mut MetadataMap) {
    if let Some(value) = current().and_then(|trace| trace.to_string().parse().ok()) {
        metadata.insert(TRACEPARENT, value);
    }
}

/// Records the epoch of a call in the current span.
pub fn epoch(epoch: u64) {
    Span::current().record("epoch", epoch);
}

/// Runs each call of a router in a span.
pub fn around(router: Router, methods: &Methods) -> Router {
    router.layer(from_fn_with_state(methods.clone(), seen))
}

/// A call. When it is dropped, its results are recorded in the span.
struct Call {
    span: Span,
    trace: Trace,
    pool: Pool,
    begun: Instant,
    outcome: Outcome,
}

impl Attendant for Call {
    fn outcome(&mut self) -> Option<&mut Outcome> {
        Some(&mut self.outcome)
    }

    fn within<T>(&self, poll: impl FnOnce() -> T) -> T {
        self.span.in_scope(|| TRACE.sync_scope(self.trace, poll))
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let code = self.outcome.code();
        self.span.record("code", name(code));
        self.span.record("seconds", self.begun.elapsed().as_secs_f64());
        self.span.record("bytes", self.outcome.bytes);
        match self.pool {
            Pool::Free => tracing::debug!(target: ACCESS, parent: &self.span, "answered"),
            _ => tracing::info!(target: ACCESS, parent: &self.span, "answered"),
        }
        #[cfg(feature = "otel")]
        otlp::end(&self.span, code);
    }
}

async fn seen(State(methods): State<Methods>, request: Request, next: Next) -> Response {
    let method = methods.of(request.uri().path());
    let span = open(method.name);
    if let Some(path) = request.uri().path_and_query() {
        span.record("path", path.as_str());
    }
    let parent = parent(request.headers());
    if let Some(peer) = Link::of(request.extensions()).and_then(|link| link.remote) {
        span.record("peer", display(peer));
    }
    let trace = exported(&span, parent).unwrap_or_else(|| parent.map_or_else(Trace::begin, Trace::child));
    span.record("trace", display(format_args!("{:032x}", trace.id)));
    let call =
        Call { span: span.clone(), trace, pool: method.pool, begun: Instant::now(), outcome: Outcome::default() };
    let response = within(trace, next.run(request)).instrument(span).await;
    attended(response, call)
}

/// The span of a call. The exporter interprets names that begin with `otel` and does not export them as fields.
#[cfg(feature = "otel")]
fn open(method: &'static str) -> Span {
    tracing::info_span!(
        target: ACCESS,
        "call",
        method,
        path = Empty,
        peer = Empty,
        trace = Empty,
        epoch = Empty,
        code = Empty,
        seconds = Empty,
        bytes = Empty,
        otel.name = method,
        otel.kind = "server"
    )
}

/// The span of a call.
#[cfg(not(feature = "otel"))]
fn open(method: &'static str) -> Span {
    tracing::info_span!(
        target: ACCESS,
        "call",
        method,
        path = Empty,
        peer = Empty,
        trace = Empty,
        epoch = Empty,
        code = Empty,
        seconds = Empty,
        bytes = Empty
    )
}

/// The position that an exporter gives to a span: `None`, because there is no exporter.
#[cfg(not(feature = "otel"))]
fn exported(_: &Span, _: Option<Trace>) -> Option<Trace> {
    None
}

fn parent(headers: &HeaderMap) -> Option<Trace> {
    let mut values = headers.get_all(TRACEPARENT).iter();
    let trace = Trace::parse(values.next()?.to_str().ok()?);
    // Two headers are invalid.
    if values.next().is_some() { None } else { trace }
}

#[cfg(test)]
mod tests;
