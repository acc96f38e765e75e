//! The log of a process, and the export of its spans to an OpenTelemetry collector.

use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;

#[cfg(feature = "otel")]
pub(crate) use with_otlp::start;
#[cfg(not(feature = "otel"))]
pub(crate) use without_otlp::start;

/// The filter of the log. A level applies to this program; dependencies log warnings and errors at most. `NAME=LEVEL`
/// sets the level of all targets whose names begin with `NAME`.
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

/// The running log and exporter; [`Spans::end`] stops the exporter.
pub(crate) struct Spans {
    #[cfg(feature = "otel")]
    exporter: Option<webstrata_serve::guard::spans::Exporter>,
}

#[cfg(not(feature = "otel"))]
mod without_otlp {
    use super::{Spans, Targets};
    use crate::args::Usage;
    use std::io;
    use tracing_subscriber::layer::SubscriberExt;
    use tracing_subscriber::util::SubscriberInitExt;

    /// Starts the log.
    pub(crate) fn start(targets: Targets, otlp: Option<&str>) -> anyhow::Result<Spans> {
        if otlp.is_some() {
            let built =
                "--otlp needs the feature otel: build webstrata with `cargo install --path jobs --features otel`";
            return Err(Usage(built.into()).into());
        }
        let log = tracing_subscriber::fmt::layer().with_writer(io::stderr);
        let _ = tracing_subscriber::registry().with(targets).with(log).try_init();
        Ok(Spans {})
    }

    impl Spans {
        pub(crate) async fn end(self) {}
    }
}

#[cfg(feature = "otel")]
mod with_otlp {
    use super::{Spans, Targets};
    use std::io;
    use std::time::Duration;
    use tracing_subscriber::layer::{Layer, SubscriberExt};
    use tracing_subscriber::util::SubscriberInitExt;

    /// Starts the log and the export of spans.
    pub(crate) fn start(targets: Targets, otlp: Option<&str>) -> anyhow::Result<Spans> {
        let log = tracing_subscriber::fmt::layer().with_writer(io::stderr);
        let log = log.with_filter(targets);
        let (layer, exporter) = match otlp {
            Some(endpoint) => {
                let (layer, exporter) = webstrata_serve::guard::spans::exporter(endpoint, "webstrata")?;
                (Some(layer), Some(exporter))
            }
            None => (None, None),
        };
        let _ = tracing_subscriber::registry().with(layer).with(log).try_init();
        Ok(Spans { exporter })
    }

    impl Spans {
        /// Sends the remaining spans.
        pub(crate) async fn end(self) {
            if let Some(exporter) = self.exporter {
                exporter.end(Duration::from_secs(5)).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing::Level;

    #[test]
    fn a_level_is_of_this_program() {
        let shows = |text: &str, target: &str, level| filter(text).unwrap().would_enable(target, &level);
        assert!(shows("debug", "webstrata_serve::clerk", Level::DEBUG) && shows("debug", "webstrata", Level::DEBUG));
        assert!(!shows("debug", "h2::codec", Level::INFO) && shows("debug", "h2::codec", Level::WARN));
        assert!(
            shows("info,h2=trace", "h2::codec", Level::TRACE) && !shows("info,h2=trace", "webstrata", Level::DEBUG)
        );
        assert!(!shows("error", "h2", Level::WARN) && !shows("off", "webstrata_serve", Level::ERROR));
        assert!(!shows("h2=debug", "webstrata_serve", Level::ERROR), "the filter names no other target");
        for wrong in ["", "loud", "h2=", "info,", "h2=loud"] {
            assert!(filter(wrong).is_err(), "{wrong}");
        }
    }
}
