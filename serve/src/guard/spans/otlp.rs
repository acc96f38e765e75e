//! Export of spans to a collector, by OTLP over gRPC.
//!
//! [`exporter`] gives a layer for the subscriber of a program. Only spans of Webstrata are sent, in batches, by a
//! separate thread. If spans come faster than they can be sent, some are lost, and calls never wait. Memory: at most
//! 2,048 spans. The variable `OTEL_TRACES_SAMPLER` sets which traces are kept, as in other programs (default: all).

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

use super::{ACCESS, Trace};

/// Why spans cannot be sent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExporterError {
    /// The endpoint is not the address of a collector.
    #[error("not a span collector: {endpoint} (expected http://HOST:PORT, such as http://localhost:4317)")]
    Endpoint {
        /// The given endpoint.
        endpoint: String,
    },
    /// The exporter cannot be created.
    #[error("cannot send spans to {endpoint}")]
    Build {
        /// The collector.
        endpoint: String,
        /// Why.
        source: ExporterBuildError,
    },
}

/// The sender of spans. End it with the server, or the last spans are lost.
pub struct Exporter(SdkTracerProvider);

impl Exporter {
    /// Sends the remaining spans for at most `patience`, and ends. A loss is logged.
    pub async fn end(self, patience: Duration) {
        let ended = tokio::task::spawn_blocking(move || self.0.shutdown_with_timeout(patience)).await;
        match ended {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "the last spans may be lost"),
            Err(error) => tracing::warn!(%error, "the last spans are lost"),
        }
    }
}

/// A layer that sends spans to the collector at `http://HOST:PORT`, under the name of a service. Call it inside a tokio
/// runtime, which must live as long as spans are sent. The collector need not run yet.
///
/// # Errors
/// The endpoint is not valid.
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
    // The exporter's own libraries make spans too: exporting these would make ever more spans.
    let ours = filter_fn(|metadata| {
        metadata.target().starts_with("webstrata") || (metadata.is_span() && metadata.target() == ACCESS)
    });
    Ok((layer.with_filter(ours), Exporter(provider)))
}

/// Makes a span part of its caller's trace. Returns its position if there is an exporter.
pub(super) fn begin(span: &Span, parent: Option<Trace>) -> Option<Trace> {
    if let Some(parent) = parent {
        let flags = if parent.sampled { TraceFlags::SAMPLED } else { TraceFlags::default() };
        let (id, span_id) = (TraceId::from(parent.id), SpanId::from(parent.span));
        let remote = SpanContext::new(id, span_id, flags, true, TraceState::default());
        // Fails if there is no exporter.
        let _ = span.set_parent(Context::new().with_remote_span_context(remote));
    }
    trace_of(span)
}

/// The position of a span in its trace, if there is an exporter.
pub(super) fn trace_of(span: &Span) -> Option<Trace> {
    let context = span.context();
    let current = context.span();
    let position = current.span_context();
    position.is_valid().then(|| Trace {
        id: u128::from_be_bytes(position.trace_id().to_bytes()),
        span: u64::from_be_bytes(position.span_id().to_bytes()),
        sampled: position.is_sampled(),
    })
}

/// Marks calls that failed because of the server.
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
