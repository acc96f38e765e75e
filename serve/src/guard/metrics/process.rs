//! Metrics of this process, under the names that Prometheus clients use, and of the disk that holds its data. They are
//! read at each scrape, from `/proc` on Linux. Other systems give fewer metrics.

use std::fmt;
use std::fs;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

/// The number of ticks in a second in `/proc`, on every architecture.
const TICKS: f64 = 100.0;

/// This process.
#[derive(Debug)]
pub(super) struct Process {
    /// The start of the process, in seconds since 1970.
    started: f64,
}

impl Process {
    pub(super) fn new() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { started: since.as_secs_f64() }
    }
}

/// A number in `/proc/self/status`. A number in kB is converted to bytes.
fn status(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    let number: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(if line.ends_with("kB") { number << 10 } else { number })
}

/// The processor time in seconds, from `/proc/self/stat`. The fields begin after the name of the program, which may
/// contain spaces.
fn cpu_seconds(text: &str) -> Option<f64> {
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |at: usize| fields.get(at)?.parse::<f64>().ok();
    Some((ticks(11)? + ticks(12)?) / TICKS)
}

/// The limit of open files, from `/proc/self/limits`.
fn open_files_max(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix("Max open files"))?.split_whitespace().next()?.parse().ok()
}

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let read = |name: &str| fs::read_to_string(format!("/proc/self/{name}")).unwrap_or_default();
        let started = ConstGauge::new(self.started);
        let help = "Start of the process, in seconds since 1970";
        started.encode(encoder.encode_descriptor("process_start_time_seconds", help, None, MetricType::Gauge)?)?;
        if let Some(seconds) = cpu_seconds(&read("stat")) {
            let help = "Seconds of processors that the process took";
            let counter = ConstCounter::new(seconds);
            counter.encode(encoder.encode_descriptor("process_cpu_seconds", help, None, MetricType::Counter)?)?;
        }
        let (state, limits) = (read("status"), read("limits"));
        let open = fs::read_dir("/proc/self/fd").ok().map(|open| open.count() as u64);
        for (name, help, value) in [
            ("process_resident_memory_bytes", "Memory in use", status(&state, "VmRSS")),
            ("process_virtual_memory_bytes", "Addresses in use", status(&state, "VmSize")),
            ("process_threads", "Threads", status(&state, "Threads")),
            ("process_open_fds", "Open files and connections", open),
            ("process_max_fds", "Most files and connections that may be open", open_files_max(&limits)),
        ] {
            if let Some(value) = value {
                let level = ConstGauge::new(value);
                level.encode(encoder.encode_descriptor(name, help, None, MetricType::Gauge)?)?;
            }
        }
        Ok(())
    }
}

/// The disk that holds a directory.
#[derive(Debug)]
pub(super) struct Disk(pub(super) PathBuf);

impl Collector for Disk {
    #[cfg(unix)]
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let Ok(disk) = rustix::fs::statvfs(&self.0) else { return Ok(()) };
        for (name, help, blocks) in [
            ("data_free_bytes", "Free space on the disk of the data directory", disk.f_bavail),
            ("data_disk_bytes", "Size of the disk of the data directory", disk.f_blocks),
        ] {
            let level = ConstGauge::new(blocks.saturating_mul(disk.f_frsize));
            level.encode(encoder.encode_descriptor(name, help, None, MetricType::Gauge)?)?;
        }
        Ok(())
    }

    #[cfg(not(unix))]
    fn encode(&self, _: DescriptorEncoder<'_>) -> fmt::Result {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_system_are_read() {
        assert_eq!(status("Name:\tx\nVmRSS:\t   12 kB\nThreads:\t3\n", "VmRSS"), Some(12 << 10));
        assert_eq!(status("VmRSS:\t12 kB\nThreads:\t3\n", "Threads"), Some(3));
        let stat = "7 (a b) c) S 1 2 3 4 5 6 7 8 9 10 150 250 0 0";
        assert_eq!(cpu_seconds(stat), Some(4.0));
        assert_eq!(
            open_files_max("Limit Soft Hard Units\nMax open files            1024    4096   files\n"),
            Some(1024)
        );
    }
}
