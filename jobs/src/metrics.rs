//! `--metrics ADDR`: how far a build is, for Prometheus, as plain text over HTTP for as long as the build runs.
//!
//! Every request is answered with all figures, whatever it asks for, one after the other.

use anyhow::Context;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;
use webstrata_pipeline::{Progress, StageReport};

/// How long a client may take to ask.
const REQUEST_MAX: Duration = Duration::from_secs(2);

/// Answers from now on, in a thread of its own; returns the address that it listens at.
pub(crate) fn serve(address: &str, progress: &Progress) -> anyhow::Result<std::net::SocketAddr> {
    let listener = TcpListener::bind(address).with_context(|| format!("--metrics {address}"))?;
    let bound = listener.local_addr()?;
    let progress = progress.clone();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A client that goes away is no concern of the build.
            let _ = answer(stream, &progress);
        }
    });
    Ok(bound)
}

fn answer(stream: TcpStream, progress: &Progress) -> std::io::Result<()> {
    stream.set_read_timeout(Some(REQUEST_MAX))?;
    for line in BufReader::new(&stream).lines() {
        if line?.is_empty() {
            break;
        }
    }
    let body = text(progress);
    let length = body.len();
    write!(
        &stream,
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}

/// All figures in the text format of Prometheus.
fn text(progress: &Progress) -> String {
    let moment = progress.moment();
    let mut text = String::new();
    let mut one = |name: &str, kind: &str, help: &str, value: f64| {
        let _ =
            writeln!(text, "# HELP webstrata_{name} {help}\n# TYPE webstrata_{name} {kind}\nwebstrata_{name} {value}");
    };
    one("captures_total", "counter", "Captures read.", moment.captures as f64);
    one("inputs_done", "gauge", "Inputs read to their end.", moment.inputs_done as f64);
    one("inputs", "gauge", "Inputs of this process.", moment.inputs_all as f64);
    one("input_bytes_total", "counter", "Bytes of inputs read.", moment.bytes_done as f64);
    one("input_bytes", "gauge", "Bytes of all inputs of this process.", moment.bytes_all as f64);
    one("spilled_bytes_total", "counter", "Bytes written to temporary files.", moment.spilled_bytes as f64);
    one("memory_bytes", "gauge", "Memory held.", moment.memory_bytes as f64);
    one("stages_done", "gauge", "Stages that are done.", moment.stages_done as f64);
    one("stage_part", "gauge", "How much of the stage's input is read, 0 to 1.", moment.part.unwrap_or(0.0));
    let stages = progress.stages();
    let mut by_stage = |name: &str, help: &str, value: fn(&StageReport) -> f64| {
        let _ = writeln!(text, "# HELP webstrata_{name} {help}\n# TYPE webstrata_{name} gauge");
        for stage in &stages {
            let _ = writeln!(text, "webstrata_{name}{{stage=\"{}\"}} {}", stage.stage, value(stage));
        }
    };
    by_stage("stage_seconds", "Wall time of a stage that is done.", |stage| stage.seconds);
    by_stage("stage_cpu_seconds", "CPU time of a stage that is done.", |stage| stage.cpu_seconds);
    by_stage("stage_records_out", "Records that a stage left.", |stage| stage.records_out as f64);
    by_stage("stage_peak_memory_bytes", "The most memory held in a stage.", |stage| stage.peak_memory_bytes as f64);
    if !moment.stage.is_empty() {
        let _ = writeln!(text, "# HELP webstrata_stage The stage that the build is in.\n# TYPE webstrata_stage gauge");
        let _ = writeln!(text, "webstrata_stage{{stage=\"{}\"}} 1", moment.stage);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn a_request_is_answered_with_all_figures() {
        let address = serve("127.0.0.1:0", &Progress::default()).unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert!(answer.contains("\n# TYPE webstrata_captures_total counter\nwebstrata_captures_total 0\n"), "{answer}");
    }
}
