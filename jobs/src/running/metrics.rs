//! `--metrics ADDR`: the progress of a build for Prometheus, as OpenMetrics text over HTTP while the build runs.
//!
//! Every request gets all figures. Each client has a thread, and two seconds to ask and to read the answer. If there
//! are too many clients at once, the oldest client is dropped, so that silent clients cannot keep others out.

use anyhow::Context;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread;
use std::time::{Duration, Instant};
use webstrata_engine::{Progress, StageReport};

/// The longest time that a client may take.
const CLIENT_MAX: Duration = Duration::from_secs(2);
/// The most clients at once.
const CLIENTS_MAX: usize = 16;
/// The most bytes of a request.
const REQUEST_MAX: usize = 16 << 10;

/// Answers from now on, in separate threads. Returns the address of the listener.
pub(crate) fn serve(address: &str, progress: &Progress) -> anyhow::Result<std::net::SocketAddr> {
    let listener = TcpListener::bind(address).with_context(|| format!("--metrics {address}"))?;
    let bound = listener.local_addr()?;
    let progress = progress.clone();
    thread::spawn(move || {
        let mut clients: VecDeque<Arc<TcpStream>> = VecDeque::new();
        for stream in listener.incoming().flatten() {
            // If only this list holds a client, the thread of the client has ended.
            clients.retain(|client| Arc::strong_count(client) > 1);
            if clients.len() >= CLIENTS_MAX
                && let Some(oldest) = clients.pop_front()
            {
                let _ = oldest.shutdown(Shutdown::Both);
            }
            let (stream, progress) = (Arc::new(stream), progress.clone());
            clients.push_back(Arc::clone(&stream));
            // A client that goes away or finds no thread does not concern the build.
            let _ = thread::Builder::new().spawn(move || {
                let _ = answer(&stream, &progress);
                // The list of clients still holds the stream.
                stream.shutdown(Shutdown::Both)
            });
        }
    });
    Ok(bound)
}

fn answer(mut stream: &TcpStream, progress: &Progress) -> io::Result<()> {
    let end = Instant::now() + CLIENT_MAX;
    let rest_time = || Some(end.saturating_duration_since(Instant::now()).max(Duration::from_millis(1)));
    let (mut request, mut piece) = (Vec::new(), [0; 1024]);
    while !ends(&request) {
        stream.set_read_timeout(rest_time())?;
        let count = stream.read(&mut piece)?;
        if count == 0 || request.len() > REQUEST_MAX || Instant::now() >= end {
            return Ok(());
        }
        request.extend_from_slice(&piece[..count]);
    }
    let body = text(progress);
    let length = body.len();
    let answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/openmetrics-text; version=1.0.0; \
         charset=utf-8\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    let mut rest = answer.as_bytes();
    while !rest.is_empty() && Instant::now() < end {
        stream.set_write_timeout(rest_time())?;
        rest = &rest[stream.write(rest)?..];
    }
    Ok(())
}

/// Whether a request has arrived up to its empty line.
fn ends(request: &[u8]) -> bool {
    request.windows(4).any(|end| end == b"\r\n\r\n") || request.windows(2).any(|end| end == b"\n\n")
}

/// The label of a stage.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByStage {
    stage: &'static str,
}

/// All figures in the format OpenMetrics 1.0.
fn text(progress: &Progress) -> String {
    let (moment, stages) = (progress.moment(), progress.stages());
    let mut all = Registry::with_prefix("webstrata");
    let mut count = |name: &str, help: &str, value: u64| {
        let counter: Counter = Counter::default();
        counter.inc_by(value);
        all.register(name, help, counter);
    };
    count("captures", "Captures read", moment.input_records);
    count("input_bytes_read", "Bytes of inputs read", moment.bytes_done);
    count("spilled_bytes", "Bytes written to temporary files", moment.spilled_bytes);
    let mut level = |name: &str, help: &str, value: f64| {
        let gauge: Gauge<f64, AtomicU64> = Gauge::default();
        gauge.set(value);
        all.register(name, help, gauge);
    };
    level("inputs_done", "Inputs that are completely read", moment.inputs_done as f64);
    level("inputs", "Inputs of this process", moment.inputs_all as f64);
    level("input_bytes", "Bytes of all inputs of this process", moment.bytes_all as f64);
    level("memory_bytes", "Memory in use", moment.memory_bytes as f64);
    level("stages_done", "Finished stages", moment.stages_done as f64);
    level("stage_part", "Fraction of the stage's input that is read, 0 to 1", moment.part.unwrap_or(0.0));
    let mut by_stage = |name: &str, help: &str, value: fn(&StageReport) -> f64| {
        let family = Family::<ByStage, Gauge<f64, AtomicU64>>::default();
        for stage in &stages {
            family.get_or_create(&ByStage { stage: stage.stage }).set(value(stage));
        }
        all.register(name, help, family);
    };
    by_stage("stage_seconds", "Wall time of a finished stage", |stage| stage.seconds);
    by_stage("stage_cpu_seconds", "CPU time of a finished stage", |stage| stage.cpu_seconds);
    by_stage("stage_records_out", "Records that a stage wrote", |stage| stage.records_out as f64);
    by_stage("stage_peak_memory_bytes", "Peak memory of a stage", |stage| stage.peak_memory_bytes as f64);
    if !moment.stage.is_empty() {
        let family = Family::<ByStage, Gauge>::default();
        family.get_or_create(&ByStage { stage: moment.stage }).set(1);
        all.register("stage", "The current stage of the build", family);
    }
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = encode(&mut text, &all);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(address: std::net::SocketAddr) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn silent_clients_keep_nobody_out() {
        let address = serve("127.0.0.1:0", &Progress::default()).unwrap();
        let silent: Vec<TcpStream> = (0..100).map(|_| TcpStream::connect(address).unwrap()).collect();
        let begun = Instant::now();
        for _ in 0..5 {
            assert!(asked(address).starts_with("HTTP/1.1 200 OK\r\n"));
        }
        assert!(begun.elapsed() < CLIENT_MAX, "{:?}", begun.elapsed());
        // A client that sends a byte now and then sends no request either.
        let mut slow = TcpStream::connect(address).unwrap();
        let closed = (0..20).any(|_| {
            thread::sleep(CLIENT_MAX / 10);
            slow.write_all(b"G").is_err()
        });
        assert!(closed, "it is not closed");
        drop(silent);
    }

    #[test]
    fn a_request_is_answered_with_all_figures() {
        let address = serve("127.0.0.1:0", &Progress::default()).unwrap();
        let answer = asked(address);
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert!(answer.contains("\n# TYPE webstrata_captures counter\nwebstrata_captures_total 0\n"), "{answer}");
        assert!(answer.ends_with("# EOF\n"), "{answer}");
    }
}
