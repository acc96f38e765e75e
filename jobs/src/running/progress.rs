//! The progress of a build on standard error: one line for all workers. On a terminal the line is redrawn. Elsewhere a
//! line is printed every few seconds, and a build that ends earlier prints no line.
//!
//! Ctrl-C or another signal asks the build to stop; a second signal ends the process at once.

use crate::signals::{Acting, end_at_once, on_signal};
use indicatif::{BinaryBytes, HumanCount, HumanDuration, ProgressBar, ProgressStyle};
use std::io::{self, IsTerminal, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;
use webstrata_engine::{Missing, Moment, Progress, Waiting};

const LOOK_EVERY: Duration = Duration::from_millis(100);
/// The number of looks between two lines without a terminal.
const LINE_EVERY: u32 = 50;
/// The number of looks before the first line about missing processes without a terminal.
const PATIENCE: u32 = 10;
/// What stands for the stage before the first one: a job looks at its inputs, which may be on other machines.
const BEFORE: &str = "start";
/// The number of steps of the bar.
const STEPS: u64 = 1000;

/// Runs `job` and shows its progress until it is done.
pub(crate) fn shown<T>(progress: &Progress, job: impl FnOnce() -> T) -> T {
    let _acting = stop_when_asked(progress);
    let (running, done) = channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || show(progress, &done));
        let running = running;
        let result = job();
        drop(running);
        result
    })
}

/// Ctrl-C or another signal asks the job to stop; a second signal ends the process at once.
pub(crate) fn stop_when_asked(progress: &Progress) -> Acting {
    let cancel = progress.clone();
    on_signal(move |_| {
        if cancel.is_cancelled() {
            end_at_once();
        }
        cancel.cancel();
        let _ = writeln!(io::stderr(), "stopping; send the signal again to stop immediately");
    })
}

/// Looks at the job several times a second, also without a terminal, because each look measures the memory.
fn show(progress: &Progress, done: &Receiver<()>) {
    let bar = io::stderr().is_terminal().then(|| {
        let bar = ProgressBar::new(STEPS);
        if let Ok(style) = ProgressStyle::with_template("{spinner} {prefix:8} [{bar:12}] {msg}") {
            bar.set_style(style.progress_chars("=> "));
        }
        bar
    });
    let mut looks = 0;
    while done.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Timeout) {
        let moment = progress.moment();
        let stage = if moment.stage.is_empty() { BEFORE } else { moment.stage };
        looks += 1;
        if let Some(bar) = &bar {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 1")]
            bar.set_position((moment.part.unwrap_or(0.0) * STEPS as f64) as u64);
            bar.set_prefix(stage);
            bar.set_message(moment.waiting.as_ref().map_or_else(|| line(&moment), waiting));
            bar.tick();
        } else if let Some(missing) = &moment.waiting {
            if looks == PATIENCE || looks % LINE_EVERY == 0 {
                let _ = writeln!(io::stderr(), "{}", waiting(missing));
            }
        } else if looks % LINE_EVERY == 0 {
            let percent = moment.part.map_or(String::new(), |part| format!(" {:.0} %", part * 100.0));
            // A closed standard error must not end a build.
            let _ = writeln!(io::stderr(), "{stage}{percent}: {}", line(&moment));
        }
    }
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
}

/// The missing processes, and how much longer the job waits for them.
fn waiting(Waiting { peers, seconds_left }: &Waiting) -> String {
    let all: Vec<String> =
        peers.iter().map(|Missing { process, host }| format!("process {process} at {host}")).collect();
    format!("waiting for {}; giving up in {seconds_left} s", all.join(", "))
}

/// The text after the name of the stage: records and their rate, bytes, spilled bytes, and the remaining time.
fn line(moment: &Moment) -> String {
    let reading = moment.stage == "ingest";
    let (records, what) = if reading {
        (moment.input_records, "captures")
    } else {
        (moment.worked.max(moment.exchanged_records), "records")
    };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rounded rate")]
    let rate = (records as f64 / moment.seconds.max(0.001)) as u64;
    let mut text = format!("{} {what}", HumanCount(records));
    if rate > 0 {
        text += &format!(", {}/s", HumanCount(rate));
    }
    if reading {
        text += &format!(", {}", BinaryBytes(moment.bytes_done));
    }
    if moment.spilled_bytes > 0 {
        text += &format!(", {} spilled", BinaryBytes(moment.spilled_bytes));
    }
    if let Some(seconds) = moment.seconds_left() {
        text += &format!(", {} left", HumanDuration(Duration::from_secs_f64(seconds)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_that_have_not_come_are_named() {
        let peer = |process| Missing { process, host: format!("h{process}.example:7000") };
        let text = "waiting for process 1 at h1.example:7000, process 2 at h2.example:7000; giving up in 57 s";
        assert_eq!(waiting(&Waiting { peers: vec![peer(1), peer(2)], seconds_left: 57 }), text);
    }

    #[test]
    fn a_line_says_how_much_how_fast_and_how_long() {
        let moment = Moment {
            stage: "ingest",
            seconds: 10.0,
            part: Some(0.25),
            input_records: 2_000,
            bytes_done: 3 << 20,
            spilled_bytes: 1 << 30,
            ..Moment::default()
        };
        assert_eq!(line(&moment), "2,000 captures, 200/s, 3.00 MiB, 1.00 GiB spilled, 30 seconds left");
        let later = Moment { stage: "uids", seconds: 0.1, exchanged_records: 7, ..moment };
        assert_eq!(line(&later), "7 records, 70/s, 1.00 GiB spilled");
    }
}
