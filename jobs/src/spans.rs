//! The log of a process, and the export of its spans to an OpenTelemetry collector.

use clap::ValueEnum;
use std::io;
use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;

/// The filter of the log. A level applies to this program; dependencies log warnings and errors at most, and calls are
/// not logged. `NAME=LEVEL` sets the level of all targets with names that begin with `NAME`.
pub(crate) fn filter(text: &str) -> Result<Targets, String> {
    let invalid = || {
        format!(
            "not a log filter: {text:?}; write off, error, warn, info, debug or trace, or a list such as info,h2=trace"
        )
    };
    let mut targets = Targets::new();
    for directive in text.split(',') {
        let (name, level) = directive.split_once('=').unwrap_or(("", directive));
        // The parser accepts an empty text as a level.
        let level: LevelFilter =
            Some(level).filter(|level| !level.is_empty()).ok_or_else(invalid)?.parse().map_err(|_| invalid())?;
        targets = match name {
            "" => targets.with_default(level.min(LevelFilter::WARN)).with_target("webstrata", level),
            name => targets.with_target(name, level),
        };
    }
    Ok(targets)
}

/// How lines of the log are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    Text,
    /// One JSON object a line
    Json,
}

impl Format {
    fn layer<S>(self, targets: Targets) -> Box<dyn Layer<S> + Send + Sync>
    where
        S: Subscriber + for<'span> LookupSpan<'span>,
    {
        let log = tracing_subscriber::fmt::layer().with_writer(io::stderr);
        match self {
            Self::Text => log.with_filter(targets).boxed(),
            Self::Json => log.json().flatten_event(true).with_span_list(false).with_filter(targets).boxed(),
        }
    }
}

/// The running log and exporter; [`Spans::end`] stops the exporter.
pub(crate) struct Spans {
    #[cfg(feature = "otel")]
    exporter: Option<webstrata_serve::guard::spans::Exporter>,
}

#[cfg(not(feature = "otel"))]
impl Spans {
    /// Starts the log.
    pub(crate) fn start(format: Format, targets: Targets) -> Spans {
        // If there is a log already, that log continues.
        let _ = tracing_subscriber::registry().with(format.layer(targets)).try_init();
        Spans {}
    }

    pub(crate) async fn end(self) {}
}

#[cfg(feature = "otel")]
impl Spans {
    /// Starts the log, and the export of spans if there is a collector.
    pub(crate) fn start(format: Format, targets: Targets, otlp: Option<&str>) -> anyhow::Result<Spans> {
        let (layer, exporter) = match otlp {
            Some(endpoint) => {
                let (layer, exporter) = webstrata_serve::guard::spans::exporter(endpoint, "webstrata")?;
                (Some(layer), Some(exporter))
            }
            None => (None, None),
        };
        let _ = tracing_subscriber::registry().with(layer).with(format.layer(targets)).try_init();
        Ok(Spans { exporter })
    }

    /// Sends the remaining spans.
    pub(crate) async fn end(self) {
        if let Some(exporter) = self.exporter {
            exporter.end(std::time::Duration::from_secs(5)).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing::Level;
    use webstrata_serve::guard::spans::ACCESS;

    #[test]
    fn a_level_is_of_this_program() {
        let shows = |text: &str, target: &str, level| filter(text).unwrap().would_enable(target, &level);
        assert!(shows("debug", "webstrata_serve::clerk", Level::DEBUG) && shows("debug", "webstrata", Level::DEBUG));
        assert!(!shows("debug", "h2::codec", Level::INFO) && shows("debug", "h2::codec", Level::WARN));
        assert!(
            shows("info,h2=trace", "h2::codec", Level::TRACE) && !shows("info,h2=trace", "webstrata", Level::DEBUG)
        );
        assert!(!shows("error", "h2", Level::WARN) && !shows("off", "webstrata_serve", Level::ERROR));
        assert!(!shows("debug", ACCESS, Level::INFO) && shows("warn,access=info", ACCESS, Level::INFO));
        assert!(!shows("h2=debug", "webstrata_serve", Level::ERROR), "the filter names no other target");
        for wrong in ["", "loud", "h2=", "info,", "h2=loud"] {
            assert!(filter(wrong).is_err(), "{wrong}");
        }
    }
}
