//! Addresses on this machine for the processes of a test.

use std::net::TcpListener;
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

/// So many addresses at which nobody listens, no two the same in this test program.
///
/// They are not of the ports that the system gives to connections: one of another test would take such a port before
/// the process that is to listen there has started.
pub(crate) fn addresses(count: usize) -> Vec<String> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let next = || 10_000 + (process::id() * 64 + NEXT.fetch_add(1, Ordering::Relaxed)) % 20_000;
    let free = |address: &String| TcpListener::bind(address).is_ok();
    std::iter::repeat_with(|| format!("127.0.0.1:{}", next())).filter(free).take(count).collect()
}
