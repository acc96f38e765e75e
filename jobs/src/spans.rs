//! What a server says while it runs: its log, and its spans for a collector.

use tracing::level_filters::LevelFilter;

#[cfg(feature = "otel")]
pub(crate) use with_otlp::start;
#[cfg(not(feature = "otel"))]
pub(crate) use without_otlp::start;

/// Ends what was started.
pub(crate) struct Spans {
    #[cfg(feature = "otel")]
    exporter: Option<webstrata_serve::guard::spans::Exporter>,
}

#[cfg(not(feature = "otel"))]
mod without_otlp {
    use super::{LevelFilter, Spans};
    use crate::cli::Usage;
    use std::io;

    /// Starts the log.
    pub(crate) fn start(level: LevelFilter, otlp: Option<&str>) -> anyhow::Result<Spans> {
        if otlp.is_some() {
            let built =
                "this program was built without OTLP; build it with `cargo install --path jobs --features otel`";
            return Err(Usage(built).into());
        }
        let _ = tracing_subscriber::fmt().with_max_level(level).with_writer(io::stderr).try_init();
        Ok(Spans {})
    }

    impl Spans {
        pub(crate) async fn end(self) {}
    }
}

#[cfg(feature = "otel")]
mod with_otlp {
    use super::{LevelFilter, Spans};
    use std::io;
    use std::time::Duration;
    use tracing_subscriber::layer::{Layer, SubscriberExt};
    use tracing_subscriber::util::SubscriberInitExt;

    /// Starts the log, and the sending of spans.
    pub(crate) fn start(level: LevelFilter, otlp: Option<&str>) -> anyhow::Result<Spans> {
        let log = tracing_subscriber::fmt::layer().with_writer(io::stderr);
        let log = log.with_filter(level);
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
        /// Sends what there is left.
        pub(crate) async fn end(self) {
            if let Some(exporter) = self.exporter {
                exporter.end(Duration::from_secs(5)).await;
            }
        }
    }
}
