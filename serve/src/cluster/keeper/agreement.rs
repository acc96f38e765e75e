//! The keeper's part of [`Agreement`]: the number of replicas, the views of other servers, and servers with the same
//! name.

use std::time::Duration;

use tokio::time::{Instant, timeout};
use tonic::Request;

use super::super::agreement::{Agreement, REPLICAS, ROUNDS, VIEW, View, replicas};
use super::super::members::Pairs;
use super::super::names::{Namesake, ROUNDS as SEAT_ROUNDS, SEAT};
use super::super::survey::Survey;
use super::Keeper;
use crate::protocol::proto::TopologyRequest;
use crate::protocol::proto::links_client::LinksClient;

/// How long a server with the same name has to show that it is alive.
const ALIVE: Duration = Duration::from_secs(1);

impl Keeper {
    /// Takes over the number of replicas that the cluster has.
    pub(super) fn agree(&mut self, survey: &Survey) {
        let own = self.cluster.options.replicas;
        let agreed = replicas(survey).unwrap_or(own);
        if agreed != self.replicas {
            tracing::info!(replicas = agreed, "the number of replicas changed");
            self.replicas = agreed;
        }
        let other = (agreed != own).then_some((own, agreed));
        let is_new = self.cluster.agreement.borrow().other_replicas != other;
        if let (Some((own, agreed)), true) = (other, is_new) {
            tracing::warn!(
                "most servers of the cluster were started with --replicas {agreed}, which counts; this server was \
                 started with {own}: restart it with --replicas {agreed}, or restart the others with {own}"
            );
        }
        self.change(|agreement| agreement.other_replicas = other);
        self.counts.replicas = agreed as u64;
    }

    fn view(&self, survey: &Survey) -> View {
        let current = self.cluster.state().current;
        View::of(survey, self.counts.replicas, self.counts.unsettled_now, current)
    }

    /// The pairs that this server publishes about the cluster.
    pub(super) fn pairs(&self, survey: &Survey) -> Pairs {
        let mut pairs = Pairs::from([
            (REPLICAS.to_owned(), self.cluster.options.replicas.to_string()),
            (VIEW.to_owned(), self.view(survey).to_string()),
        ]);
        if self.has_seat {
            pairs.insert(SEAT.to_owned(), "1".to_owned());
        }
        pairs
    }

    /// Compares the views of other servers with the view of this one.
    pub(super) fn compare(&mut self, survey: &Survey) {
        let (own, now) = (self.view(survey), Instant::now());
        let name = &self.cluster.options.name;
        let others = survey.live_servers().filter(|(server, _)| server.name != *name);
        let found: Vec<(String, String)> = others
            .filter_map(|(server, pairs)| Some((server.name.clone(), own.difference(&View::published(pairs)?)?)))
            .collect();
        self.differing.retain(|name, _| found.iter().any(|(other, _)| other == name));
        let rounds = ROUNDS * self.cluster.options.gossip;
        let mut lasting = Vec::new();
        for (name, what) in found {
            let since = *self.differing.entry(name.clone()).or_insert(now);
            if now.duration_since(since) >= rounds {
                lasting.push((name, what));
            }
        }
        self.counts.differing = lasting.len() as u64;
        self.change(|agreement| {
            let is_known = |name: &String| agreement.differing.iter().any(|(known, _)| known == name);
            for (name, what) in lasting.iter().filter(|(name, _)| !is_known(name)) {
                tracing::warn!(server = name, what, "a server sees the cluster otherwise than this server");
            }
            agreement.differing = lasting;
        });
    }

    fn seat_time(&self) -> Duration {
        SEAT_ROUNDS * self.cluster.options.gossip
    }

    /// Looks for another live server that has the name of this server. If the other server has the right to the name,
    /// this server ends.
    pub(super) async fn look_for_namesakes(&mut self) {
        let found = self.cluster.members.namesake().await;
        let Some(Namesake { address, is_rightful }) = found else {
            self.namesake = None;
            self.has_seat |= self.begun.elapsed() >= self.seat_time();
            self.change(|agreement| agreement.namesake = None);
            return;
        };
        self.change(|agreement| agreement.namesake = Some((address, is_rightful)));
        let since = self.namesake.filter(|(known, _)| *known == address).map_or_else(Instant::now, |(_, since)| since);
        if self.namesake.replace((address, since)).is_none() {
            let name = &self.cluster.options.name;
            tracing::error!(%name, %address, "another server has this name: give each its own --name");
        }
        // An earlier process of this name may seem alive for some rounds after its death.
        if is_rightful && since.elapsed() >= self.seat_time() && self.answers(&address.to_string()).await {
            let name = &self.cluster.options.name;
            self.cluster.exchanged.send_replace(Some(format!(
                "the server at {address} has the name {name} already: give each server its own --name, or end that \
                 server first"
            )));
        }
    }

    /// Whether a server answers at an address.
    async fn answers(&self, address: &str) -> bool {
        let dialer = &self.cluster.dialer;
        let Ok(channel) = dialer.dial(address) else { return false };
        let mut client = LinksClient::with_interceptor(channel, dialer.caller());
        let answer = timeout(ALIVE, client.topology(Request::new(TopologyRequest { after: 0 }))).await;
        answer.is_ok_and(|answer| answer.is_ok())
    }

    fn change(&self, change: impl FnOnce(&mut Agreement)) {
        self.cluster.agreement.send_if_modified(|agreement| {
            let before = agreement.clone();
            change(agreement);
            *agreement != before
        });
    }
}
