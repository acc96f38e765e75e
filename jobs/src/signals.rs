//! Signals of the system. SIGINT and SIGTERM end a server, and SIGHUP makes a server read its files again. All three
//! ask a job to stop, and end every other command at once.
//!
//! One thread, which lives as long as the process, receives all signals. Code that wants to act on signals calls
//! [`on_signal`]. If no code wants to, the thread removes the drafts of the process and lets the signal have its usual
//! effect. So no command leaves a half-written file. A SIGHUP that the caller of the program ignores (`nohup`) stays
//! ignored. Systems without SIGHUP never reload files.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;
use webstrata_layers::Draft;

/// The requests of signals to a server. A request is kept until a task waits for it.
#[derive(Default)]
pub(crate) struct Signals {
    /// The process should end.
    pub(crate) end: Notify,
    /// The server should read its files again.
    pub(crate) reload: Notify,
}

/// The request of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    /// The process should end.
    End,
    /// The terminal is gone; the server should read its files again.
    HangUp,
}

type Act = Box<dyn FnMut(Signal) + Send>;

/// The function that acts on signals now.
static ACTS: Mutex<Option<Act>> = Mutex::new(None);

fn acts() -> MutexGuard<'static, Option<Act>> {
    ACTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps a function acting on signals until the value is dropped.
#[must_use]
pub(crate) struct Acting(());

impl Drop for Acting {
    fn drop(&mut self) {
        *acts() = None;
    }
}

/// Calls `act` with each signal, in place of an earlier function.
pub(crate) fn on_signal(act: impl FnMut(Signal) + Send + 'static) -> Acting {
    *acts() = Some(Box::new(act));
    Acting(())
}

/// Passes the requests of signals on to a server.
pub(crate) fn watch(signals: &Arc<Signals>) -> Acting {
    let signals = Arc::clone(signals);
    on_signal(move |signal| match signal {
        Signal::End => signals.end.notify_one(),
        Signal::HangUp => signals.reload.notify_one(),
    })
}

/// Ends the process at once, and leaves no drafts.
pub(crate) fn end_at_once() -> ! {
    Draft::forsake_all();
    std::process::exit(130)
}

/// Receives signals from now on.
#[cfg(unix)]
pub(crate) fn hear() -> io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let heard = [SIGHUP, SIGINT, SIGTERM].into_iter().filter(|&signal| signal != SIGHUP || !is_ignored(SIGHUP));
    let mut received = signal_hook::iterator::Signals::new(heard)?;
    std::thread::spawn(move || {
        for signal in received.forever() {
            if let Some(act) = &mut *acts() {
                act(if signal == SIGHUP { Signal::HangUp } else { Signal::End });
                continue;
            }
            Draft::forsake_all();
            let _ = signal_hook::low_level::emulate_default_handler(signal);
        }
    });
    Ok(())
}

/// Whether the caller of the program wants the process to ignore a signal; `false` if the system does not say.
#[cfg(unix)]
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}

/// Receives signals from now on.
#[cfg(not(unix))]
pub(crate) fn hear() -> io::Result<()> {
    let heard = || match &mut *acts() {
        Some(act) => act(Signal::End),
        None => end_at_once(),
    };
    ctrlc::set_handler(heard).map_err(io::Error::other)
}
