//! Addresses on this machine for the processes of a test.

use std::net::TcpListener;
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

/// Addresses at which nobody listens, each only once in this test program.
///
/// The ports are outside the range that the system gives to connections. Otherwise a connection of another test could
/// take a port before the process that is to listen there has started.
pub(crate) fn addresses(count: usize) -> Vec<String> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let next = || 10_000 + (process::id() * 64 + NEXT.fetch_add(1, Ordering::Relaxed)) % 20_000;
    let free = |address: &String| TcpListener::bind(address).is_ok();
    std::iter::repeat_with(|| format!("127.0.0.1:{}", next())).filter(free).take(count).collect()
}
