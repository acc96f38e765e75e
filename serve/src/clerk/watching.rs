//! Keeps a clerk's map up to date. A call to one server waits for the next version of the map. If the call fails, the
//! clerk asks the next server.
//!
//! A server may be cut off or paused without knowing it. The clerk therefore reports calls that failed, and the map is
//! then read from the next server at once. The clerk also leaves a server with a map that is older than the known map.

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
use crate::dial::first::first_of;
use crate::map::Map;
use crate::protocol::proto::links_client::LinksClient;
use crate::protocol::proto::{TopologyRequest, TopologyResponse};

/// How long a server holds a call for the map if nothing changes.
pub(crate) const WAIT: Duration = Duration::from_secs(5);
/// The pause between attempts when no server answers.
const PAUSE: Duration = Duration::from_millis(100);
/// The time after which the next address is asked too.
const NEXT: Duration = Duration::from_millis(200);
/// The time within which a server sends a map that the clerk does not have yet.
const AT_ONCE: Duration = Duration::from_secs(1);

/// The task that watches the map. It ends when this value is dropped.
pub(super) struct Watching {
    task: JoinHandle<()>,
    source: Arc<Source>,
}

/// The server that the map comes from.
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
    /// Asks these servers until one answers, and watches the map from then on.
    pub(super) async fn start(
        seeds: Vec<String>,
        dialer: Dialer,
        options: &ClerkOptions,
    ) -> Result<(Self, watch::Receiver<Arc<Map>>), Status> {
        let begun = Instant::now();
        let deadline = begun + options.deadline;
        loop {
            let ask = |at: usize| {
                let (dialer, seed) = (&dialer, &seeds[at]);
                async move { topology(dialer, seed, 0).await.map(|map| (at, map)).map_err(|status| (at, status)) }
            };
            let is_final = |status: &Status| matches!(status.code(), Code::Unauthenticated | Code::InvalidArgument);
            let first = first_of(0..seeds.len(), NEXT, ask, |(_, status)| is_final(status));
            let failed: Vec<(&String, Status)> = match tokio::time::timeout_at(deadline, first).await {
                Ok(Ok((at, answer))) => {
                    let seed = seeds[at].clone();
                    let (sender, receiver) = watch::channel(Arc::new(map_of(answer, &seed)));
                    let source = Arc::<Source>::default();
                    let task = tokio::spawn(watch(seed, seeds, dialer, sender, source.clone()));
                    return Ok((Self { task, source }, receiver));
                }
                Ok(Err(failed)) => failed.into_iter().map(|(at, status)| (&seeds[at], status)).collect(),
                Err(_) => {
                    let late = Status::deadline_exceeded("no answer before the deadline");
                    let all: Vec<_> = seeds.iter().map(|seed| (seed, late.clone())).collect();
                    return Err(together(&all));
                }
            };
            if failed.iter().any(|(_, status)| is_final(status)) {
                return Err(together(&failed));
            }
            // A server that answers with an error may be starting. If no connection succeeds, no server runs there.
            let is_there = failed.iter().any(|(_, status)| status.source().is_none());
            let end = if is_there { deadline } else { deadline.min(begun + options.patience) };
            if Instant::now() + PAUSE >= end {
                return Err(together(&failed));
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Reports a problem with the map, or with the server at an address, from which the map may come.
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

/// Joins the errors of all servers.
fn together(failed: &[(&String, Status)]) -> Status {
    let Some((_, last)) = failed.last() else {
        return Status::unavailable("no server to connect to; give at least one address, HOST:PORT");
    };
    let messages: Vec<String> = failed.iter().map(|(seed, status)| format!("{seed}: {}", cause(status))).collect();
    Status::new(last.code(), messages.join("; "))
}

/// The map from a server that was reached at an address. A server without other servers may publish an unspecified
/// address, because it does not know how clients reach it; the reached address replaces that address.
fn map_of(mut topology: TopologyResponse, reached: &str) -> Map {
    for server in &mut topology.servers {
        if server.address.parse().is_ok_and(|address: SocketAddr| address.ip().is_unspecified()) {
            reached.clone_into(&mut server.address);
        }
    }
    Map::of(topology)
}

/// The root cause of a failure.
fn cause(status: &Status) -> String {
    let causes = std::iter::successors(status.source(), |error| (*error).source());
    causes.last().map_or_else(
        || status.message().to_owned(),
        |cause| format!("{cause} (does `webstrata serve` listen there, and do both sides use TLS or neither?)"),
    )
}

/// The next address to ask: the servers of the map in turn, then the seeds that are not in the map.
fn after(address: &str, map: &Map, seeds: &[String]) -> String {
    let mut all: Vec<&str> = map.servers.iter().map(|server| server.address.as_str()).collect();
    // Each address must appear once: a repeated address would make the turn skip the addresses after its second place.
    for seed in seeds {
        if !all.contains(&seed.as_str()) {
            all.push(seed);
        }
    }
    let next = all.iter().position(|known| *known == address).map_or(0, |index| index + 1);
    all.get(next % all.len().max(1)).map_or_else(|| address.to_owned(), |&address| address.to_owned())
}

/// Waits for new maps until no receiver is left.
async fn watch(first: String, seeds: Vec<String>, dialer: Dialer, maps: watch::Sender<Arc<Map>>, source: Arc<Source>) {
    let mut address = first;
    let mut client = None;
    // Versions of different servers are unrelated.
    let mut version = 0;
    while !maps.is_closed() {
        if client.is_none() {
            lock(&source.address).clone_from(&address);
            client = dialer.peer(&address).ok();
        }
        let answer = match client.as_mut().and_then(|peer| peer.channel(&dialer).ok()) {
            Some(channel) => {
                let client = LinksClient::with_interceptor(channel, dialer.caller());
                let mut client = client.max_decoding_message_size(usize::MAX);
                let mut request = Request::new(TopologyRequest { after: version });
                request.set_timeout(2 * WAIT);
                // A doubt is about a map that is known; it must not interrupt the read of a new map.
                let is_new = version == 0;
                let wait = if is_new { AT_ONCE } else { 2 * WAIT };
                tokio::select! {
                    answer = tokio::time::timeout(wait, client.topology(request)) => answer.ok().and_then(Result::ok),
                    () = source.doubted.notified(), if !is_new => None,
                }
            }
            None => None,
        };
        if let Some(answer) = answer {
            let map = map_of(answer.into_inner(), &address);
            version = map.version;
            // A server that has just started, or was cut off, may not know the newest epoch.
            let is_new = maps.send_if_modified(|old| {
                // A map of another store would give wrong UIDs.
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
        // The servers of the map come first, because the seeds may be long gone.
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
