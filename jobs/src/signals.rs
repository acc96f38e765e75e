//! Signals of the system to a server: SIGINT and SIGTERM ask it to end, SIGHUP to read its files again.
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
    let mut came = signal_hook::iterator::Signals::new([SIGHUP, SIGINT, SIGTERM])?;
    let signals = Arc::clone(signals);
    std::thread::spawn(move || {
        for signal in came.forever() {
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
