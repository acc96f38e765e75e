//! Keeps a clerk's map up to date: one call waits at one server for the next version; where it fails, at the next
//! server.
//!
//! A server may be alone, or stopped, and not know of it. So whoever asks by the map says where it does not work, and
//! the next server is asked at once; and a server that is behind what is known already is left.

use std::error::Error;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tonic::{Code, Request, Status};

use super::{ClerkOptions, lock};
use crate::dial::Dialer;
use crate::map::Map;
use crate::protocol::proto::links_client::LinksClient;
use crate::protocol::proto::{TopologyRequest, TopologyResponse};

/// A server lets a call wait about this long when nothing changes.
pub(crate) const WAIT: Duration = Duration::from_secs(5);
/// Between attempts when no server answers.
const PAUSE: Duration = Duration::from_millis(100);
/// A server that has nothing to wait for answers by then.
const AT_ONCE: Duration = Duration::from_secs(1);

/// The task that watches. It ends when this is dropped.
pub(super) struct Watching {
    task: JoinHandle<()>,
    source: Arc<Source>,
}

/// Where the map comes from.
#[derive(Default)]
struct Source {
    address: Mutex<String>,
    doubted: Notify,
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Watching {
    /// Asks these servers until one of them answers, and watches from then on.
    pub(super) async fn start(
        seeds: Vec<String>,
        dialer: Dialer,
        options: &ClerkOptions,
    ) -> Result<(Self, watch::Receiver<Arc<Map>>), Status> {
        let begun = Instant::now();
        let deadline = begun + options.deadline;
        loop {
            let mut failed: Vec<(&String, Status)> = Vec::new();
            for seed in &seeds {
                match tokio::time::timeout_at(deadline, topology(&dialer, seed, 0)).await {
                    Ok(Ok(answer)) => {
                        let (sender, receiver) = watch::channel(Arc::new(told(answer, seed)));
                        let source = Arc::<Source>::default();
                        let task = tokio::spawn(watch(seed.clone(), seeds, dialer, sender, source.clone()));
                        return Ok((Self { task, source }, receiver));
                    }
                    Ok(Err(status)) => {
                        let is_final = matches!(status.code(), Code::Unauthenticated | Code::InvalidArgument);
                        failed.push((seed, status));
                        if is_final {
                            return Err(together(&failed));
                        }
                    }
                    Err(_) => {
                        failed.push((seed, Status::deadline_exceeded("no answer before the deadline")));
                        return Err(together(&failed));
                    }
                }
            }
            // Who answers, though with an error, may be starting; nobody is there where a connection cannot be made.
            let is_there = failed.iter().any(|(_, status)| status.source().is_none());
            let end = if is_there { deadline } else { deadline.min(begun + options.patience) };
            if Instant::now() + PAUSE >= end {
                return Err(together(&failed));
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Something is wrong with the map; or with the server of an address, which it may come from.
    pub(super) fn doubt(&self, address: Option<&str>) {
        if address.is_none_or(|address| *lock(&self.source.address) == address) {
            self.source.doubted.notify_one();
        }
    }
}

async fn topology(dialer: &Dialer, address: &str, after: u64) -> Result<TopologyResponse, Status> {
    let client = LinksClient::with_interceptor(dialer.dial(address)?, dialer.caller());
    let mut request = Request::new(TopologyRequest { after });
    request.set_timeout(2 * WAIT);
    Ok(client.max_decoding_message_size(usize::MAX).topology(request).await?.into_inner())
}

/// What all of the servers said, or why they could not.
fn together(failed: &[(&String, Status)]) -> Status {
    let Some((_, last)) = failed.last() else {
        return Status::unavailable("no server to connect to; give at least one address, HOST:PORT");
    };
    let said: Vec<String> = failed.iter().map(|(seed, status)| format!("{seed}: {}", cause(status))).collect();
    Status::new(last.code(), said.join("; "))
}

/// The map that a server tells which is reached at an address. A server that is alone may not know where it is reached,
/// and says that it is at an unspecified address: it is at this one.
fn told(mut topology: TopologyResponse, reached: &str) -> Map {
    for server in &mut topology.servers {
        if server.address.parse().is_ok_and(|address: SocketAddr| address.ip().is_unspecified()) {
            reached.clone_into(&mut server.address);
        }
    }
    Map::of(topology)
}

/// What is at the bottom of a failure.
fn cause(status: &Status) -> String {
    let causes = std::iter::successors(status.source(), |error| (*error).source());
    causes.last().map_or_else(
        || status.message().to_owned(),
        |cause| format!("{cause} (does `webstrata serve` listen there, and do both sides use TLS or neither?)"),
    )
}

/// The address to ask after this one: each of the map in turn, then each of the seeds that is not on it.
fn after(address: &str, map: &Map, seeds: &[String]) -> String {
    let mut all: Vec<&str> = map.servers.iter().map(|server| server.address.as_str()).collect();
    // Once each: where an address stood twice, those between its places would be all that is ever asked.
    for seed in seeds {
        if !all.contains(&seed.as_str()) {
            all.push(seed);
        }
    }
    let at = all.iter().position(|own| *own == address).map_or(0, |at| at + 1);
    all.get(at % all.len().max(1)).map_or_else(|| address.to_owned(), |&next| next.to_owned())
}

/// Waits for new maps as long as somebody wants them.
async fn watch(first: String, seeds: Vec<String>, dialer: Dialer, maps: watch::Sender<Arc<Map>>, source: Arc<Source>) {
    let mut address = first;
    let mut client = None;
    // Versions of different servers have nothing to do with one another.
    let mut version = 0;
    while !maps.is_closed() {
        if client.is_none() {
            lock(&source.address).clone_from(&address);
            let made = dialer.dial(&address).map(|channel| LinksClient::with_interceptor(channel, dialer.caller()));
            client = made.ok().map(|client| client.max_decoding_message_size(usize::MAX));
        }
        let answer = match &mut client {
            Some(client) => {
                let mut request = Request::new(TopologyRequest { after: version });
                request.set_timeout(2 * WAIT);
                // Doubts are about a map that is there; they must not keep a new one from coming.
                let is_new = version == 0;
                let most = if is_new { AT_ONCE } else { 2 * WAIT };
                tokio::select! {
                    answer = tokio::time::timeout(most, client.topology(request)) => answer.ok().and_then(Result::ok),
                    () = source.doubted.notified(), if !is_new => None,
                }
            }
            None => None,
        };
        if let Some(answer) = answer {
            let map = told(answer.into_inner(), &address);
            version = map.version;
            // A server that has just come, or was cut off, may not know of the newest epoch.
            let is_new = maps.send_if_modified(|old| {
                // UIDs of another store are none of the callers'.
                let is_same = old.store.is_empty() || map.store == old.store;
                let is_new = is_same && map.current >= old.current && !map.servers.is_empty();
                if is_new {
                    *old = Arc::new(map);
                }
                is_new
            });
            if is_new {
                continue;
            }
        }
        tracing::debug!(address, "asking the next server for the map");
        // The next one: of the map first, since seeds may be long gone.
        (client, version) = (None, 0);
        address = after(&address, &maps.borrow().clone(), &seeds);
        tokio::time::sleep(PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::proto::Server;

    #[test]
    fn all_that_could_not_be_reached_are_named() {
        let seeds = ["a:1", "b:2"].map(str::to_owned);
        let failed = [(&seeds[0], Status::unavailable("gone")), (&seeds[1], Status::invalid_argument("wrong"))];
        let status = together(&failed);
        assert_eq!((status.code(), status.message()), (Code::InvalidArgument, "a:1: gone; b:2: wrong"));
        assert_eq!(together(&[]).code(), Code::Unavailable);
    }

    #[test]
    fn every_address_has_its_turn() {
        let server = |at: &str| Server { name: format!("server {at}"), address: at.to_owned() };
        let map = Map { servers: ["a", "b", "c"].map(server).into(), ..Map::default() };
        let seeds = ["gone", "c", "also gone", "a"].map(str::to_owned);
        for first in ["a", "b", "c", "gone", "also gone", "never heard of"] {
            let mut address = first.to_owned();
            let mut turns: Vec<String> = Vec::new();
            for _ in 0..5 {
                address = after(&address, &map, &seeds);
                turns.push(address.clone());
            }
            turns.sort_unstable();
            assert_eq!(turns, ["a", "also gone", "b", "c", "gone"], "from {first}");
        }
        assert_eq!(after("a", &Map::default(), &[]), "a", "nobody else is known");
    }
}
