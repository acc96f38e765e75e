//! All URLs within a distance in links of a URL: the example of the SHS paper (Najork 2009, section 3), as of a time.
//!
//! ```text
//! cargo run -p webstrata-serve --example neighbourhood -- 127.0.0.1:7400 http://example.org/ 2 [20070601]
//! ```
//!
//! A negative distance follows links backward. Each step is one batch with all URLs at one distance.

use std::collections::BTreeSet;
use std::error::Error;
use std::io::{self, Write};

use webstrata_layers::{Direction, Precision, Window, parse_time};
use webstrata_serve::clerk::{Clerk, ClerkOptions};
use webstrata_serve::dial::Dialer;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [server, url, distance, time @ ..] = &arguments[..] else {
        return Err("usage: neighbourhood HOST:PORT URL DISTANCE [TIME]".into());
    };
    let distance: i32 = distance.parse()?;
    let window = match time.first() {
        Some(time) => Window::as_of(parse_time(time, true)?),
        None => Window::ALWAYS,
    };
    let direction = if distance < 0 { Direction::In(Precision::Exact) } else { Direction::Out };

    let clerk = Clerk::connect(std::slice::from_ref(server), Dialer::default(), ClerkOptions::default()).await?;
    let graph = clerk.at(None)?;
    let start = graph.uids(std::slice::from_ref(url)).await?.pop().flatten().ok_or("the URL is not in the store")?;

    let mut met = BTreeSet::from([start]);
    let mut edge = vec![start];
    for _ in 0..distance.unsigned_abs() {
        let links = graph.links(&edge, direction, window).await?;
        edge = links.values().iter().copied().filter(|&link| met.insert(link)).collect();
    }
    let mut out = io::stdout().lock();
    for uids in met.into_iter().collect::<Vec<_>>().chunks(1000) {
        for url in graph.urls(uids).await? {
            writeln!(out, "{url}")?;
        }
    }
    Ok(())
}
