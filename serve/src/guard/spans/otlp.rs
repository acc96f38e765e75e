//! Spans that leave the process, by OTLP over gRPC, to whom collects them.
//!
//! [`exporter`] gives a layer for the subscriber of a program. Spans of this project alone are sent, in batches, by a
//! thread of its own; where they come faster than they go, some are lost, and calls never wait. Memory: 2,048 spans at
//! most. How many traces are kept is said by `OTEL_TRACES_SAMPLER`, as for all programs that do this; all, where it
//! says nothing.

use std::time::Duration;

use opentelemetry::trace::{SpanContext, SpanId, TraceContextExt, TraceFlags, TraceId, TraceState, TracerProvider};
use opentelemetry::{Context, trace};
use opentelemetry_otlp::{ExporterBuildError, SpanExporter, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tonic::Code;
use tracing::{Span, Subscriber};
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::registry::LookupSpan;

use super::Trace;

/// Why spans cannot be sent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExporterError {
    /// It is no address of a collector.
    #[error("not a span collector: {endpoint} (expected http://HOST:PORT, such as http://localhost:4317)")]
    Endpoint {
        /// What was given.
        endpoint: String,
    },
    /// The exporter cannot be made.
    #[error("cannot send spans to {endpoint}")]
    Build {
        /// The collector.
        endpoint: String,
        /// Why.
        source: ExporterBuildError,
    },
}

/// The sender of spans; to be ended when the server ends, or its last spans are lost.
pub struct Exporter(SdkTracerProvider);

impl Exporter {
    /// Sends what there is, for at most so long, and ends. What is lost is logged.
    pub async fn end(self, patience: Duration) {
        let ended = tokio::task::spawn_blocking(move || self.0.shutdown_with_timeout(patience)).await;
        match ended {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "the last spans may be lost"),
            Err(error) => tracing::warn!(%error, "the last spans are lost"),
        }
    }
}

/// A layer that sends spans to the collector at `http://HOST:PORT`, as those of a service of this name. Called inside a
/// runtime of tokio, which must live as long as spans are to be sent. The collector need not be there yet.
///
/// # Errors
/// What is no endpoint.
pub fn exporter<S>(
    endpoint: &str,
    service: &str,
) -> Result<(impl Layer<S> + Send + Sync + use<S>, Exporter), ExporterError>
where
    S: Subscriber + for<'a> LookupSpan<'a> + Send + Sync,
{
    if endpoint.strip_prefix("http://").is_none_or(str::is_empty) {
        return Err(ExporterError::Endpoint { endpoint: endpoint.to_owned() });
    }
    let built = SpanExporter::builder().with_tonic().with_endpoint(endpoint).build();
    let exporter = built.map_err(|source| ExporterError::Build { endpoint: endpoint.to_owned(), source })?;
    let resource = Resource::builder().with_service_name(service.to_owned()).build();
    let provider = SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build();
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("webstrata"));
    // Others have spans of what the exporter itself does: to send those would make more of them.
    let ours = filter_fn(|metadata| metadata.target().starts_with("webstrata"));
    Ok((layer.with_filter(ours), Exporter(provider)))
}

/// Makes a span a part of the trace that it came with; its own place in it, where there is an exporter.
pub(super) fn begin(span: &Span, parent: Option<Trace>) -> Option<Trace> {
    if let Some(parent) = parent {
        let flags = if parent.sampled { TraceFlags::SAMPLED } else { TraceFlags::default() };
        let (id, at) = (TraceId::from(parent.id), SpanId::from(parent.span));
        let remote = SpanContext::new(id, at, flags, true, TraceState::default());
        // It fails where there is no exporter.
        let _ = span.set_parent(Context::new().with_remote_span_context(remote));
    }
    trace_of(span)
}

/// The place of a span in its trace, where there is an exporter.
pub(super) fn trace_of(span: &Span) -> Option<Trace> {
    let context = span.context();
    let own = context.span();
    let own = own.span_context();
    own.is_valid().then(|| Trace {
        id: u128::from_be_bytes(own.trace_id().to_bytes()),
        span: u64::from_be_bytes(own.span_id().to_bytes()),
        sampled: own.is_sampled(),
    })
}

/// Marks the calls that failed because of the server.
pub(super) fn end(span: &Span, code: Code) {
    if matches!(
        code,
        Code::Unknown
            | Code::DeadlineExceeded
            | Code::Unimplemented
            | Code::Internal
            | Code::Unavailable
            | Code::DataLoss
    ) {
        span.set_status(trace::Status::error(""));
    }
}
