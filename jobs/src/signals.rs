//! Signals of the system. SIGINT and SIGTERM end a server, and SIGHUP makes a server read its files again. All three
//! end a job.
//!
//! A thread that lives as long as the process receives the signals. Systems without SIGHUP never reload files.

use std::io;
use std::sync::Arc;
use tokio::sync::Notify;

/// The requests of signals. A request is kept until somebody waits for it.
#[derive(Default)]
pub(crate) struct Signals {
    /// The process should end.
    pub(crate) end: Notify,
    /// The server should read its files again.
    pub(crate) reload: Notify,
}

/// Receives signals from now on.
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

/// Receives signals from now on.
#[cfg(not(unix))]
pub(crate) fn watch(signals: &Arc<Signals>) -> io::Result<()> {
    let signals = Arc::clone(signals);
    ctrlc::set_handler(move || signals.end.notify_one()).map_err(io::Error::other)
}

/// Calls `stop` each time the system asks the process to end. Only the first call of this function has an effect,
/// because a process has one job.
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

/// Calls `stop` each time the system asks the process to end. Only the first call of this function has an effect,
/// because a process has one job.
#[cfg(not(unix))]
pub(crate) fn on_end(stop: impl FnMut() + Send + 'static) -> io::Result<()> {
    ctrlc::set_handler(stop).map_err(io::Error::other)
}
