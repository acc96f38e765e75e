//! How long a clerk takes for one batch of questions: the links of 1,000 URLs, drawn over all UIDs, of servers that
//! are named as arguments. Prints the least of 50 rounds in microseconds, and the number of links.
//!
//!     cargo run --release -p webstrata-serve --example batch -- 127.0.0.1:7400

use std::io::Write;
use std::time::Instant;

use webstrata_layers::{Direction, Links, Uid, Window};
use webstrata_serve::clerk::{ClerkOptions, Remote};
use webstrata_serve::dial::Dialer;

const QUESTIONS: u64 = 1000;
const ROUNDS: usize = 50;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let servers: Vec<String> = std::env::args().skip(1).collect();
    let remote = Remote::connect(&servers, Dialer::default(), ClerkOptions::default())?;
    let uids: Vec<Uid> = (0..QUESTIONS).map(|at| Uid(at * remote.urls() / QUESTIONS)).collect();
    let (mut least, mut links) = (f64::INFINITY, 0);
    for _ in 0..ROUNDS {
        let begin = Instant::now();
        let found = remote.wait(remote.pinned().links(&uids, Direction::Out, Window::ALWAYS));
        links = found.map_err(|status| status.to_string())?.values().len();
        least = least.min(begin.elapsed().as_secs_f64() * 1e6);
    }
    writeln!(std::io::stdout(), "{least:.0} {links}")?;
    Ok(())
}
