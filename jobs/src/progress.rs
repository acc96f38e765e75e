//! How a build shows how far it is, on standard error: a bar where that is a terminal, otherwise a line every few
//! seconds and none for a build that is done before.

use indicatif::{BinaryBytes, HumanCount, ProgressBar, ProgressStyle};
use std::io::{self, IsTerminal, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};
use webstrata_pipeline::Progress;

const BAR_EVERY: Duration = Duration::from_millis(100);
const LINE_EVERY: Duration = Duration::from_secs(5);

/// Runs `job` and shows its progress until it is done.
pub(crate) fn shown<T>(progress: &Progress, job: impl FnOnce() -> T) -> T {
    let (running, done) = channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || if io::stderr().is_terminal() { bar(progress, &done) } else { lines(progress, &done) });
        let running = running;
        let result = job();
        drop(running);
        result
    })
}

/// Waits; `false` when the job is done.
fn wait(done: &Receiver<()>, time: Duration) -> bool {
    done.recv_timeout(time) == Err(RecvTimeoutError::Timeout)
}

fn bar(progress: &Progress, done: &Receiver<()>) {
    let bar = ProgressBar::new(0);
    if let Ok(style) = ProgressStyle::with_template("{spinner} {prefix:9} [{bar:16}] {msg}") {
        bar.set_style(style.progress_chars("=> "));
    }
    let start = Instant::now();
    while wait(done, BAR_EVERY) {
        bar.set_length(progress.bytes_all().max(1));
        bar.set_position(progress.bytes_done());
        bar.set_prefix(progress.stage());
        bar.set_message(state(progress, start.elapsed()));
        bar.tick();
    }
    bar.finish_and_clear();
}

fn lines(progress: &Progress, done: &Receiver<()>) {
    let start = Instant::now();
    while wait(done, LINE_EVERY) {
        // Nobody may be there to read it: not a reason to end a build.
        let _ = writeln!(io::stderr(), "{}: {}", progress.stage(), state(progress, start.elapsed()));
    }
}

fn state(progress: &Progress, elapsed: Duration) -> String {
    let captures = progress.captures();
    let rate = u128::from(captures) * 1000 / elapsed.as_millis().max(1);
    let (inputs, all) = (progress.inputs_done(), progress.inputs_all());
    let mut text = format!("{inputs}/{all} inputs, {} captures", HumanCount(captures));
    if inputs < all {
        text += &format!(", {}/s", HumanCount(u64::try_from(rate).unwrap_or(u64::MAX)));
    }
    if progress.spilled() > 0 {
        text += &format!(", {} spilled", BinaryBytes(progress.spilled()));
    }
    text
}
