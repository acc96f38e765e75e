//! Spans: each call seen as one, in the logs of a server and across the servers that it is passed on to.
//!
//! A call runs in a span of `tracing` with its `method`, `peer`, `trace`, and, when they are known, `epoch`, `code`,
//! `seconds` and `bytes`. Its place in a [`Trace`] comes from the header `traceparent` (W3C Trace Context, level 1) and
//! goes on to whom the call asks in turn, by [`propagate`]. With the feature `otel`, spans leave the process by OTLP.
//!
//! Promises: a header that is none begins a new trace; names of methods come from a fixed list. What a call hands to
//! other tasks or threads takes its trace along by [`within`] alone. Costs of a call: a span, which is next to nothing
//! where no subscriber wants it.

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
use crate::guard::methods::Methods;
use crate::guard::refusal::name;

#[cfg(feature = "otel")]
mod otlp;
#[cfg(feature = "otel")]
use otlp::begin as exported;
#[cfg(feature = "otel")]
pub use otlp::{Exporter, ExporterError, exporter};

const TRACEPARENT: &str = "traceparent";

tokio::task_local! {
    /// Where the call that runs is.
    static TRACE: Trace;
}

/// Where in which trace something happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The trace; not 0.
    pub id: u128,
    /// The span in it; not 0.
    pub span: u64,
    /// Whether who began it keeps it.
    pub sampled: bool,
}

impl Trace {
    /// Reads what `traceparent` has. Later versions may have more, behind a `-`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.trim().splitn(5, '-');
        let mut hex = |digits: usize| {
            let part = parts.next()?;
            let lower = part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
            if part.len() == digits && lower { u128::from_str_radix(part, 16).ok() } else { None }
        };
        let (version, id, span, flags) = (hex(2)?, hex(32)?, u64::try_from(hex(16)?).ok()?, hex(2)?);
        let more = parts.next().is_some();
        let sound = id != 0 && span != 0 && version != 0xff && !(version == 0 && more);
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

/// A number that nobody else has: that names something, and keeps nothing secret.
fn random() -> u64 {
    RandomState::new().hash_one(0).max(1)
}

/// Where the call that runs is: inside the span that is current, or the call of the task.
#[must_use]
pub fn current() -> Option<Trace> {
    #[cfg(feature = "otel")]
    if let Some(trace) = otlp::trace_of(&Span::current()) {
        return Some(trace);
    }
    TRACE.try_with(|trace| *trace).ok()
}

/// Runs a part of a call in another task, as a part of its trace.
pub async fn within<F: Future>(trace: Trace, part: F) -> F::Output {
    TRACE.scope(trace, part).await
}

/// Puts the trace of the call that runs on a call to somebody else.
pub fn propagate(metadata: &mut MetadataMap) {
    if let Some(value) = current().and_then(|trace| trace.to_string().parse().ok()) {
        metadata.insert(TRACEPARENT, value);
    }
}

/// Notes the epoch of a call; called where the span of the call is current.
pub fn epoch(epoch: u64) {
    Span::current().record("epoch", epoch);
}

/// Sees calls of the router's methods as spans.
pub fn around(router: Router, methods: &Methods) -> Router {
    router.layer(from_fn_with_state(methods.clone(), seen))
}

/// A call; what is known of it is noted when it is dropped.
struct Call {
    span: Span,
    trace: Trace,
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
        #[cfg(feature = "otel")]
        otlp::end(&self.span, code);
    }
}

async fn seen(State(methods): State<Methods>, request: Request, next: Next) -> Response {
    let span = open(methods.of(request.uri().path()).name);
    let parent = parent(request.headers());
    if let Some(peer) = Link::of(request.extensions()).and_then(|link| link.remote) {
        span.record("peer", display(peer));
    }
    let trace = exported(&span, parent).unwrap_or_else(|| parent.map_or_else(Trace::begin, Trace::child));
    span.record("trace", display(format_args!("{:032x}", trace.id)));
    let call = Call { span: span.clone(), trace, begun: Instant::now(), outcome: Outcome::default() };
    let response = within(trace, next.run(request)).instrument(span).await;
    attended(response, call)
}

/// The span of a call. What begins with `otel` is taken by the exporter, and is no field of its spans.
#[cfg(feature = "otel")]
fn open(method: &'static str) -> Span {
    tracing::info_span!(
        "call",
        method,
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
        "call",
        method,
        peer = Empty,
        trace = Empty,
        epoch = Empty,
        code = Empty,
        seconds = Empty,
        bytes = Empty
    )
}

/// The place that an exporter gives to a span; there is none.
#[cfg(not(feature = "otel"))]
fn exported(_: &Span, _: Option<Trace>) -> Option<Trace> {
    None
}

fn parent(headers: &HeaderMap) -> Option<Trace> {
    let mut values = headers.get_all(TRACEPARENT).iter();
    let trace = Trace::parse(values.next()?.to_str().ok()?);
    // Two are none.
    if values.next().is_some() { None } else { trace }
}

#[cfg(test)]
mod tests;
