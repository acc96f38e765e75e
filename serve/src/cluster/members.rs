//! The live servers of the cluster and the key-value pairs that each server publishes. Membership is chitchat's gossip
//! (Scuttlebutt, with a phi accrual failure detector). The service `Cells` carries the messages, so that gossip uses
//! the same port, TLS and tokens as all other calls.
//!
//! A message is sent once and never awaited, because gossip repeats itself. A message is dropped if the connection to
//! the peer is busy. Each message begins with a hash of its bytes and of the cluster's name, because chitchat's decoder
//! trusts its input and would accept forged messages. The hash is not a secret: only tokens keep out a caller that
//! knows the name. A restarted server has a new generation, so that peers forget the pairs of the earlier process. If
//! several live servers have one name, [`super::names`] chooses one of them.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use chitchat::transport::{Socket, Transport};
use chitchat::{
    ChitchatConfig, ChitchatHandle, ChitchatId, ChitchatMessage, Deserializable, FailureDetectorConfig, NodeState,
    Serializable, spawn_chitchat,
};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{mpsc, watch};
use tonic::{Request, Status};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::names::{Claim, Namesake, SEAT, namesake, rightful};
use crate::dial::Dialer;
use crate::protocol::proto::GossipRequest;
use crate::protocol::proto::cells_client::CellsClient;
use crate::protocol::status::Reason;

/// Messages that may wait for the gossip task. Further messages are dropped.
const INBOX: usize = 256;
/// The number of refused servers for which the reason is kept.
const REFUSALS_MAX: usize = 100;
/// The most bytes of a message; chitchat's messages are below 64 KiB.
const MESSAGE_MAX: usize = 1 << 17;

/// How a server takes part in gossip.
#[derive(Clone, Debug)]
pub(super) struct MemberOptions {
    /// The name of the server, the same after a restart.
    pub name: String,
    /// The address that other servers can reach.
    pub address: SocketAddr,
    /// Servers to join, as host:port.
    pub seeds: Vec<String>,
    /// The name of the cluster. Servers of other clusters are refused.
    pub cluster: String,
    /// The digest of the store's first epoch. Servers of other stores are refused.
    pub store: String,
    /// The interval between rounds of gossip.
    pub interval: Duration,
}

/// The key-value pairs that a server publishes.
pub(crate) type Pairs = BTreeMap<String, String>;

/// A live server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) address: SocketAddr,
    pub(crate) pairs: Pairs,
}

/// Distinguishes messages of this cluster from all other messages.
#[derive(Clone, Copy)]
struct Seal(u64);

impl Seal {
    fn of(cluster: &str) -> Self {
        Self(xxh3_64(cluster.as_bytes()))
    }

    fn hash(self, message: &[u8]) -> [u8; 8] {
        xxh3_64_with_seed(message, self.0).to_le_bytes()
    }

    /// Encodes a message behind its hash.
    fn close(self, message: &ChitchatMessage) -> Vec<u8> {
        let mut sealed = vec![0; 8];
        message.serialize(&mut sealed);
        let hash = self.hash(&sealed[8..]);
        sealed[..8].copy_from_slice(&hash);
        sealed
    }

    /// Checks the hash and decodes the message.
    fn open(self, sealed: &[u8]) -> Result<ChitchatMessage, String> {
        let checked = sealed.split_first_chunk().filter(|(hash, message)| self.hash(message) == **hash);
        let Some((_, message)) = checked else { return Err("not from a member of this cluster".to_owned()) };
        // The decoder expects datagrams of its own version, and may panic on other datagrams.
        let read = std::panic::catch_unwind(|| ChitchatMessage::deserialize(&mut &*message));
        read.map_err(|_| "the message is cut short".to_owned())?.map_err(|error| error.to_string())
    }
}

/// The membership of this server.
pub(crate) struct Members {
    handle: ChitchatHandle,
    inbox: mpsc::Sender<(SocketAddr, ChitchatMessage)>,
    seal: Seal,
    live: watch::Receiver<BTreeMap<ChitchatId, NodeState>>,
    refusals: Refusals,
}

/// Peers that this server does not gossip with because one side refuses, with the reasons. Each peer is logged once.
#[derive(Clone, Default)]
struct Refusals(Arc<Mutex<BTreeMap<SocketAddr, String>>>);

impl Refusals {
    fn add(&self, peer: SocketAddr, why: &str) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.get(&peer).is_none_or(|known| known != why) {
            tracing::error!(%peer, why, "cannot form a cluster with this server");
            // The list is bounded, so that strangers cannot fill the memory.
            if all.len() < REFUSALS_MAX || all.contains_key(&peer) {
                all.insert(peer, why.to_owned());
            }
        }
    }

    fn remove(&self, peer: SocketAddr) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&peer);
    }

    fn first(&self) -> Option<(SocketAddr, String)> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.first_key_value().map(|(peer, why)| (*peer, why.clone()))
    }
}

impl Members {
    pub(crate) async fn join(options: &MemberOptions, dialer: Dialer, pairs: Pairs) -> Result<Self, Status> {
        let generation = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let id = ChitchatId::new(
            options.name.clone(),
            u64::try_from(generation.as_micros()).unwrap_or(u64::MAX),
            options.address,
        );
        let config = ChitchatConfig {
            chitchat_id: id,
            cluster_id: options.cluster.clone(),
            gossip_interval: options.interval,
            listen_addr: options.address,
            seed_nodes: options.seeds.clone(),
            failure_detector_config: FailureDetectorConfig {
                initial_interval: options.interval,
                ..FailureDetectorConfig::default()
            },
            marked_for_deletion_grace_period: Duration::from_secs(600),
            catchup_callback: None,
            extra_liveness_predicate: None,
        };
        let (inbox, receiver) = mpsc::channel(INBOX);
        let seal = Seal::of(&options.cluster);
        let refusals = Refusals::default();
        let sending =
            Sending { from: options.address, store: options.store.clone(), dialer, refusals: refusals.clone() };
        let transport = OverCells { seal, sending, receiver: Mutex::new(Some(receiver)) };
        let handle = spawn_chitchat(config, pairs.into_iter().collect(), &transport).await;
        let handle = handle.map_err(|error| Status::internal(format!("cannot join the gossip: {error}")))?;
        let live = handle.with_chitchat(|chitchat| chitchat.live_nodes_watcher()).await;
        Ok(Self { handle, inbox, seal, live, refusals })
    }

    /// Takes in a message from another server.
    pub(crate) fn take(&self, from: SocketAddr, message: &[u8]) -> Result<(), String> {
        if message.len() > MESSAGE_MAX {
            return Err(format!("{} bytes, more than the {MESSAGE_MAX} of any gossip", message.len()));
        }
        let message = self.seal.open(message)?;
        // If the inbox is full the message is lost, which gossip tolerates.
        let _ = self.inbox.try_send((from, message));
        Ok(())
    }

    /// A peer that this server refuses or that refuses this server, with the reason; `None` if there is none.
    pub(crate) fn refusal(&self) -> Option<(SocketAddr, String)> {
        self.refusals.first()
    }

    /// Records that a peer does not belong to this cluster.
    pub(crate) fn refuse(&self, peer: SocketAddr, why: &str) {
        self.refusals.add(peer, why);
    }

    /// Publishes these pairs from now on.
    pub(crate) async fn publish(&self, pairs: &Pairs) {
        self.handle
            .with_chitchat(|chitchat| {
                let state = chitchat.self_node_state();
                let old: Vec<String> = state.key_values().map(|(key, _)| key.to_owned()).collect();
                old.iter().filter(|key| !pairs.contains_key(*key)).for_each(|key| state.delete(key));
                for (key, value) in pairs {
                    if state.get(key) != Some(value) {
                        state.set(key, value);
                    }
                }
            })
            .await;
    }

    /// The live servers by name, including this server.
    pub(crate) async fn live(&self) -> Vec<Member> {
        let own = self.handle.chitchat_id().clone();
        let mut members = Vec::new();
        for (_, claims) in self.claims().await {
            // In its own view, this server has its name.
            let this_server = claims.iter().find(|(claim, _)| claim.id == own);
            let first = rightful(&claims.iter().map(|(claim, _)| claim.clone()).collect::<Vec<_>>()).cloned();
            let first = claims.iter().find(|(claim, _)| first.as_ref().is_some_and(|first| first.id == claim.id));
            let Some((Claim { id, .. }, pairs)) = this_server.or(first) else { continue };
            let (name, address) = (id.node_id.to_string(), id.gossip_advertise_addr);
            members.push(Member { name, address, pairs: pairs.clone() });
        }
        members
    }

    /// Another live server with the name of this server, if there is one.
    pub(crate) async fn namesake(&self) -> Option<Namesake> {
        let own = self.handle.chitchat_id();
        let claims = self.claims().await.remove(&*own.node_id)?;
        namesake(own, &claims.into_iter().map(|(claim, _)| claim).collect::<Vec<_>>())
    }

    /// The live processes by name, each with its published pairs.
    async fn claims(&self) -> BTreeMap<String, Vec<(Claim, Pairs)>> {
        self.handle
            .with_chitchat(|chitchat| {
                let mut claims: BTreeMap<String, Vec<(Claim, Pairs)>> = BTreeMap::new();
                for id in chitchat.live_nodes() {
                    let Some(state) = chitchat.node_state(id) else { continue };
                    let pairs: Pairs = state.key_values().map(|(key, value)| (key.into(), value.into())).collect();
                    let claim = Claim { id: id.clone(), has_seat: pairs.contains_key(SEAT) };
                    claims.entry(id.node_id.to_string()).or_default().push((claim, pairs));
                }
                claims
            })
            .await
    }

    /// Returns when another server comes, goes, or publishes a change.
    pub(crate) async fn changed(&self) {
        let mut live = self.live.clone();
        live.mark_unchanged();
        if live.changed().await.is_err() {
            // Gossip has ended; there are no more changes.
            std::future::pending::<()>().await;
        }
    }

    pub(crate) async fn leave(&self) {
        let _ = self.handle.initiate_shutdown();
    }
}

/// The values that every outgoing message needs.
#[derive(Clone)]
struct Sending {
    from: SocketAddr,
    store: String,
    dialer: Dialer,
    refusals: Refusals,
}

/// The transport of gossip: calls of the service `Cells`.
struct OverCells {
    seal: Seal,
    sending: Sending,
    receiver: Mutex<Option<mpsc::Receiver<(SocketAddr, ChitchatMessage)>>>,
}

#[tonic::async_trait]
impl Transport for OverCells {
    async fn open(&self, _: SocketAddr) -> anyhow::Result<Box<dyn Socket>> {
        let receiver = self.receiver.lock().unwrap_or_else(PoisonError::into_inner).take();
        let receiver = receiver.ok_or_else(|| anyhow::anyhow!("the gossip socket is already open"))?;
        Ok(Box::new(GossipLine { seal: self.seal, sending: self.sending.clone(), receiver, peers: BTreeMap::new() }))
    }
}

struct GossipLine {
    seal: Seal,
    sending: Sending,
    receiver: mpsc::Receiver<(SocketAddr, ChitchatMessage)>,
    /// For each peer, the queue of the task that sends to it.
    peers: BTreeMap<SocketAddr, mpsc::Sender<Vec<u8>>>,
}

#[tonic::async_trait]
impl Socket for GossipLine {
    async fn send(&mut self, to: SocketAddr, message: ChitchatMessage) -> anyhow::Result<()> {
        let message = self.seal.close(&message);
        self.peers.retain(|_, peer| !peer.is_closed());
        let peer = self.peers.entry(to).or_insert_with(|| {
            let (sender, receiver) = mpsc::channel(4);
            tokio::spawn(self.sending.clone().send_to(to, receiver));
            sender
        });
        let _ = peer.try_send(message);
        Ok(())
    }

    async fn recv(&mut self) -> anyhow::Result<(SocketAddr, ChitchatMessage)> {
        self.receiver.recv().await.ok_or_else(|| anyhow::anyhow!("the server has ended"))
    }
}

impl Sending {
    /// Sends messages to one peer, one after the other. Ends after 60 s without a message.
    async fn send_to(self, to: SocketAddr, mut messages: mpsc::Receiver<Vec<u8>>) {
        let Self { from, store, dialer, refusals } = self;
        let Ok(mut peer) = dialer.peer(&to.to_string()) else { return };
        while let Ok(Some(message)) = tokio::time::timeout(Duration::from_secs(60), messages.recv()).await {
            let Ok(channel) = peer.channel(&dialer) else { return };
            let mut client = CellsClient::with_interceptor(channel, dialer.caller());
            let mut request = Request::new(GossipRequest { from: from.to_string(), message, store: store.clone() });
            request.set_timeout(Duration::from_secs(1));
            match tokio::time::timeout(Duration::from_secs(1), client.gossip(request)).await {
                Ok(Ok(_)) => refusals.remove(to),
                Ok(Err(status)) if matches!(Reason::of(&status), Some(Reason::OtherStore | Reason::BadToken)) => {
                    refusals.add(to, status.message());
                }
                Ok(Err(status)) => tracing::debug!(%to, %status, "cannot deliver gossip"),
                Err(_) => tracing::debug!(%to, "gossip timed out"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_members_alone_are_read() {
        let seal = Seal::of("webstrata");
        let sealed = seal.close(&ChitchatMessage::BadCluster);
        assert_eq!(seal.open(&sealed), Ok(ChitchatMessage::BadCluster));
        assert!(Seal::of("another").open(&sealed).is_err());
        for end in 0..sealed.len() {
            assert!(seal.open(&sealed[..end]).is_err(), "{end} bytes");
        }
        for bit in 0..8 * sealed.len() {
            let mut changed = sealed.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(seal.open(&changed).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn what_the_decoder_stumbles_over_is_refused() {
        let seal = Seal::of("webstrata");
        let whole = seal.close(&ChitchatMessage::BadCluster);
        // Each kind of message with a missing or a wrong body.
        for kind in 0..8 {
            for rest in [0, 1, 2, 3, 7, 40] {
                for byte in [0, 1, 4, 0x7f, 0xff] {
                    let mut message = whole[8..11].to_vec();
                    message.push(kind);
                    message.extend(std::iter::repeat_n(byte, rest));
                    let sealed = [&seal.hash(&message)[..], &message].concat();
                    let read = seal.open(&sealed);
                    assert!(read.is_err() || kind < 4, "{kind} {rest} {byte}: {read:?}");
                }
            }
        }
    }
}
