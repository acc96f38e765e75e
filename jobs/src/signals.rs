//! Signals of the system. To a server: SIGINT and SIGTERM ask it to end, SIGHUP to read its files again. To a job: all
//! three ask it to end.
//!
//! They are noted by a thread that lives as long as the process. Where there is no SIGHUP, nothing asks for that.

use std::io;
use std::sync::Arc;
use tokio::sync::Notify;

/// What was asked for by signals. Who waits for it hears of what was asked for before.
#[derive(Default)]
pub(crate) struct Signals {
    /// To end.
    pub(crate) end: Notify,
    /// To read files again.
    pub(crate) reload: Notify,
}

/// Notes signals from now on.
#[cfg(unix)]
pub(crate) fn watch(signals: &Arc<Signals>) -> io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let mut received = signal_hook::iterator::Signals::new([SIGHUP, SIGINT, SIGTERM])?;
    let signals = Arc::clone(signals);
    std::thread::spawn(move || {
        for signal in received.forever() {
            if signal == SIGHUP { signals.reload.notify_one() } else { signals.end.notify_one() }
        }
    });
    Ok(())
}

/// Notes signals from now on.
#[cfg(not(unix))]
pub(crate) fn watch(signals: &Arc<Signals>) -> io::Result<()> {
    let signals = Arc::clone(signals);
    ctrlc::set_handler(move || signals.end.notify_one()).map_err(io::Error::other)
}

/// Calls `stop` each time the system asks the process to end. Only the first to call this is heard: a process has one
/// job.
#[cfg(unix)]
pub(crate) fn on_end(mut stop: impl FnMut() + Send + 'static) -> io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use std::sync::atomic::{AtomicBool, Ordering};
    static HEARD: AtomicBool = AtomicBool::new(false);
    if HEARD.swap(true, Ordering::Relaxed) {
        return Ok(());
    }
    let mut received = signal_hook::iterator::Signals::new([SIGHUP, SIGINT, SIGTERM])?;
    std::thread::spawn(move || received.forever().for_each(|_| stop()));
    Ok(())
}

/// Calls `stop` each time the system asks the process to end. Only the first to call this is heard: a process has one
/// job.
#[cfg(not(unix))]
pub(crate) fn on_end(stop: impl FnMut() + Send + 'static) -> io::Result<()> {
    ctrlc::set_handler(stop).map_err(io::Error::other)
}
