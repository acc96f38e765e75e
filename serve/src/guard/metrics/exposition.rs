//! The two formats of metrics: OpenMetrics for callers that accept it, and the older text format of Prometheus for all
//! other callers.
//!
//! In OpenMetrics, the type and the help of a counter have the name of the counter without `_total`. In the older
//! format they have the name of its samples, and there are neither units nor an end mark.

use std::collections::HashSet;

use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};

pub(super) const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Answers with metrics in the format that the caller accepts. `metrics` is OpenMetrics.
pub(super) fn answer(headers: &HeaderMap, metrics: String) -> Response {
    let accepted = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let (format, text) = match accepted.contains("application/openmetrics-text") {
        true => (OPEN_METRICS, metrics),
        false => (TEXT, older(&metrics)),
    };
    ([(header::CONTENT_TYPE, format), (header::VARY, "accept")], text).into_response()
}

/// Converts OpenMetrics to the older text format.
fn older(metrics: &str) -> String {
    let typed = |line: &str| Some(line.strip_prefix("# TYPE ")?.strip_suffix(" counter")?.to_owned());
    let counters: HashSet<String> = metrics.lines().filter_map(typed).collect();
    let mut text = String::with_capacity(metrics.len());
    for line in metrics.lines().filter(|line| !line.starts_with("# UNIT ") && *line != "# EOF") {
        let mut words = line.splitn(4, ' ');
        let [mark, kind, name] = [(); 3].map(|()| words.next().unwrap_or_default());
        match words.next() {
            Some(rest) if mark == "#" && counters.contains(name) => {
                text += &format!("{mark} {kind} {name}_total {rest}\n");
            }
            _ => text += &format!("{line}\n"),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_have_one_name_in_the_older_format() {
        let metrics = "# HELP a_bytes Bytes of a.\n# TYPE a_bytes counter\n# UNIT a_bytes bytes\n\
                       a_bytes_total{b=\"# c\"} 1\n# HELP d Level.\n# TYPE d gauge\nd 2\n# EOF\n";
        let expected = "# HELP a_bytes_total Bytes of a.\n# TYPE a_bytes_total counter\na_bytes_total{b=\"# c\"} 1\n\
                        # HELP d Level.\n# TYPE d gauge\nd 2\n";
        assert_eq!(older(metrics), expected);
    }
}
