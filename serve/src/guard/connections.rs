//! The open connections of a server: their number, their origins, and which connection is closed at the limit.
//!
//! A connection is idle while none of its calls runs or waits. A connection that is idle for too long is closed. If the
//! caller or the server is at its limit, a new connection replaces an idle connection: first the oldest that never made
//! a call, then the one that has been idle longest. If no connection is idle, the new connection is closed. A server
//! that ends can cut all connections. Memory: some hundred bytes a connection. Cost at the limit: a scan of all
//! connections for each new connection.

pub mod incoming;
pub mod origin;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::task::AtomicWaker;

use crate::guard::connections::origin::Origin;

/// The limits on connections.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionLimits {
    /// The most connections of all callers.
    pub most: usize,
    /// The most connections of one caller.
    pub of_one: usize,
    /// How long a connection may be idle.
    pub idle: Duration,
}

/// The open connections of a server. Clones share them.
#[derive(Clone, Default)]
pub struct Connections(Arc<Counted>);

#[derive(Default)]
struct Counted {
    open: Mutex<Open>,
    refused: AtomicU64,
    closed_idle: AtomicU64,
}

#[derive(Default)]
struct Open {
    next: u64,
    /// The connections by number.
    lines: HashMap<u64, (Origin, Arc<Connection>)>,
    /// The number of connections of each caller.
    of: HashMap<Origin, usize>,
    /// Whether all connections are cut, now and in future.
    cut: bool,
}

impl Open {
    fn remove(&mut self, number: u64) {
        let Some((origin, _)) = self.lines.remove(&number) else { return };
        if let Some(count) = self.of.get_mut(&origin) {
            *count -= 1;
            if *count == 0 {
                self.of.remove(&origin);
            }
        }
    }

    /// The connection to close first, of a caller or of all.
    fn first_idle(&self, of: Option<Origin>) -> Option<u64> {
        let idle = self.lines.iter().filter(|(_, (origin, line))| of.is_none_or(|of| of == *origin) && line.is_idle());
        idle.min_by_key(|(number, (_, line))| (line.used(), line.since(), **number)).map(|(number, _)| *number)
    }
}

impl Connections {
    /// The number of open connections.
    #[must_use]
    pub fn open(&self) -> usize {
        self.lock().lines.len()
    }

    /// The number of connections refused since the start because of the limits.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.0.refused.load(Ordering::Relaxed)
    }

    /// The number of idle connections closed since the start, after the idle time or for a new connection.
    #[must_use]
    pub fn closed_idle(&self) -> u64 {
        self.0.closed_idle.load(Ordering::Relaxed)
    }

    /// Cuts all connections with their calls. Later connections are cut too.
    pub fn cut(&self) {
        let mut open = self.lock();
        open.cut = true;
        open.lines.values().for_each(|(_, line)| line.cut());
    }

    /// Closes connections that have been idle for this long.
    pub fn close_idle(&self, after: Duration) {
        let mut open = self.lock();
        let stale = |line: &Connection| line.is_idle() && line.since().elapsed() >= after;
        let idle = open.lines.iter().filter(|(_, (_, line))| stale(line));
        let idle: Vec<u64> = idle.map(|(number, _)| *number).collect();
        idle.into_iter().for_each(|number| self.close(&mut open, number));
    }

    /// Adds a connection, if the limits or an idle connection allow it.
    pub(crate) fn enter(&self, origin: Origin, limits: &ConnectionLimits) -> Option<Seat> {
        let mut open = self.lock();
        let of_origin = open.of.get(&origin).copied().unwrap_or(0);
        let is_room = if open.cut {
            false
        } else if of_origin >= limits.of_one {
            open.first_idle(Some(origin)).map(|number| self.close(&mut open, number)).is_some()
        } else if open.lines.len() >= limits.most {
            open.first_idle(None).map(|number| self.close(&mut open, number)).is_some()
        } else {
            true
        };
        if !is_room {
            self.0.refused.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        let number = open.next;
        open.next += 1;
        let line = Arc::new(Connection::default());
        open.lines.insert(number, (origin, Arc::clone(&line)));
        *open.of.entry(origin).or_default() += 1;
        Some(Seat { number, line, connections: self.clone() })
    }

    fn close(&self, open: &mut Open, number: u64) {
        if let Some((_, line)) = open.lines.get(&number) {
            line.cut();
        }
        open.remove(number);
        self.0.closed_idle.fetch_add(1, Ordering::Relaxed);
    }

    /// A poisoned lock is safe to use: no code panics while it holds the lock, and every statement leaves valid state.
    fn lock(&self) -> MutexGuard<'_, Open> {
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection's membership among the open ones, until it is dropped.
pub(crate) struct Seat {
    number: u64,
    pub(crate) line: Arc<Connection>,
    connections: Connections,
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.connections.lock().remove(self.number);
    }
}

/// The state of a connection: whether it is cut, and its calls.
#[derive(Debug)]
pub(crate) struct Connection {
    cut: AtomicBool,
    task: AtomicWaker,
    calls: AtomicUsize,
    opened: Instant,
    /// When the last call ended, in milliseconds since the connection was opened.
    last: AtomicU64,
    used: AtomicBool,
}

impl Default for Connection {
    fn default() -> Self {
        let (cut, task, calls) = (AtomicBool::default(), AtomicWaker::new(), AtomicUsize::default());
        Self { cut, task, calls, opened: Instant::now(), last: AtomicU64::default(), used: AtomicBool::default() }
    }
}

impl Connection {
    /// Whether the connection is cut. If not, a later cut wakes the task.
    pub(crate) fn is_cut(&self, task: &std::task::Waker) -> bool {
        // Registered first, so that no cut is missed.
        self.task.register(task);
        self.cut.load(Ordering::Acquire)
    }

    fn cut(&self) {
        self.cut.store(true, Ordering::Release);
        self.task.wake();
    }

    fn is_idle(&self) -> bool {
        self.calls.load(Ordering::Relaxed) == 0
    }

    fn used(&self) -> bool {
        self.used.load(Ordering::Relaxed)
    }

    /// Since when the connection is idle, if it is idle.
    fn since(&self) -> Instant {
        self.opened + Duration::from_millis(self.last.load(Ordering::Relaxed))
    }

    /// Marks the begin of a call.
    pub(crate) fn busy(self: &Arc<Self>) -> Busy {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.used.store(true, Ordering::Relaxed);
        Busy(Arc::clone(self))
    }
}

/// A call of a connection, until it is dropped.
pub(crate) struct Busy(Arc<Connection>);

impl Drop for Busy {
    fn drop(&mut self) {
        let now = u64::try_from(self.0.opened.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.0.last.store(now, Ordering::Relaxed);
        self.0.calls.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Waker;

    #[test]
    fn the_idle_make_room_in_their_order() {
        let (connections, room) =
            (Connections::default(), ConnectionLimits { most: 4, of_one: 3, idle: Duration::MAX });
        let origin = |last: u8| Origin::of([10, 0, 0, last].into());
        let enter = |last: u8| connections.enter(origin(last), &room).expect("room");
        let is_cut = |seat: &Seat| seat.line.is_cut(Waker::noop());
        let [busy, used, fresh] = [enter(1), enter(1), enter(1)];
        let call = busy.line.busy();
        drop(used.line.busy());
        // A caller has at most its share, even if connections are left for others.
        let newer = enter(1);
        assert!(is_cut(&fresh) && !is_cut(&used), "that which made no call goes first");
        let newest = enter(1);
        assert!(is_cut(&newer) && !is_cut(&used));
        let other = enter(2);
        assert_eq!((connections.open(), connections.closed_idle()), (4, 2));
        let third = enter(3);
        assert!(is_cut(&newest) && !is_cut(&other), "the oldest");
        let fourth = enter(3);
        assert!(is_cut(&other) && !is_cut(&third));
        let fifth = enter(3);
        assert!(is_cut(&third) && !is_cut(&fourth));
        drop((call, fourth, fifth));
        assert!(!is_cut(&used) && !is_cut(&busy));
    }

    #[test]
    fn nobody_is_sent_away_in_the_middle_of_a_call() {
        let (connections, room) =
            (Connections::default(), ConnectionLimits { most: 4, of_one: 3, idle: Duration::MAX });
        let enter = |last: u8| connections.enter(Origin::of([10, 0, 0, last].into()), &room);
        let seats: Vec<Seat> = [1, 1, 1, 2].map(|last| enter(last).expect("room")).into();
        let calls: Vec<Busy> = seats.iter().map(|seat| seat.line.busy()).collect();
        assert!(enter(1).is_none(), "its share");
        assert!(enter(3).is_none(), "all are busy");
        assert_eq!((connections.refused(), connections.closed_idle()), (2, 0));
        connections.close_idle(Duration::ZERO);
        assert_eq!(connections.open(), 4);
        drop(calls);
        connections.close_idle(Duration::from_secs(60));
        assert_eq!(connections.open(), 4);
        connections.close_idle(Duration::ZERO);
        assert_eq!((connections.open(), connections.closed_idle()), (0, 4));
        drop(seats);
        assert!(connections.lock().of.is_empty() && connections.lock().lines.is_empty());
    }
}
