//! The state that belongs to the cluster and not to one server: the number of replicas, and how servers see the
//! cluster.
//!
//! Each server publishes the number of replicas that it was started with. The cluster uses the number that most servers
//! have, or the larger number if two numbers are equally frequent. All servers compute it from the same gossip, so
//! there is no leader. One server with another number changes nothing. A rolling restart changes the number once: when
//! half of the servers have the new number.
//!
//! Each server also publishes its view, and compares the views of other servers with its own. Gossip needs some rounds,
//! so views count as different only after [`ROUNDS`] rounds.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use xxhash_rust::xxh3::Xxh3;

use super::members::Pairs;
use super::survey::Survey;

/// The names of the pairs.
pub(super) const REPLICAS: &str = "replicas";
pub(super) const VIEW: &str = "view";
/// The rounds of gossip after which different views count as different.
pub(super) const ROUNDS: u32 = 25;

/// The number of replicas that most servers were started with; `None` if no server publishes one.
pub(super) fn replicas(all: &Survey) -> Option<usize> {
    most(all.all_pairs().filter_map(|pairs| pairs.get(REPLICAS)?.parse().ok()))
}

/// The number that occurs most often; if two are equally frequent, the larger number.
fn most(numbers: impl Iterator<Item = usize>) -> Option<usize> {
    let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
    numbers.for_each(|number| *counts.entry(number).or_default() += 1);
    counts.into_iter().max_by_key(|&(number, count)| (count, number)).map(|(number, _)| number)
}

/// How a server sees the cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct View {
    /// The live servers: their number, and a hash of their names and addresses.
    pub(super) servers: u64,
    pub(super) members: u64,
    pub(super) replicas: u64,
    /// Cells of the current epoch that are not on all servers they are placed on.
    pub(super) unsettled: u64,
    /// The current epoch, which is published in a pair of its own.
    pub(super) current: u64,
}

impl View {
    /// The view of this server.
    pub(super) fn of(all: &Survey, replicas: u64, unsettled: u64, current: u64) -> Self {
        let mut hash = Xxh3::new();
        for (server, _) in all.live_servers() {
            hash.update(format!("{} {}\n", server.name, server.address).as_bytes());
        }
        Self { servers: all.live() as u64, members: hash.digest(), replicas, unsettled, current }
    }

    /// The view that a server publishes; `None` if the server publishes none.
    pub(super) fn published(pairs: &Pairs) -> Option<Self> {
        let view: Self = pairs.get(VIEW)?.parse().ok()?;
        Some(Self { current: pairs.get("current")?.parse().ok()?, ..view })
    }

    /// The differences between the view of another server and this view, for people; `None` if there are none.
    pub(super) fn difference(&self, other: &Self) -> Option<String> {
        let mut found = Vec::new();
        if other.servers != self.servers {
            found.push(format!("sees {} servers, this one {}", other.servers, self.servers));
        } else if other.members != self.members {
            found.push("sees other servers than this one".to_owned());
        }
        let mut differ = |what: &str, other: u64, own: u64| {
            if other != own {
                found.push(format!("has {what} {other}, this one {own}"));
            }
        };
        differ("the current epoch", other.current, self.current);
        differ("replicas", other.replicas, self.replicas);
        differ("unsettled cells", other.unsettled, self.unsettled);
        (!found.is_empty()).then(|| found.join("; "))
    }
}

impl fmt::Display for View {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { servers, members, replicas, unsettled, .. } = self;
        write!(formatter, "{servers} {members:016x} {replicas} {unsettled}")
    }
}

impl FromStr for View {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let fields: Vec<&str> = text.split(' ').collect();
        let [servers, members, replicas, unsettled] = fields[..] else { return Err(()) };
        let number = |text: &str, radix| u64::from_str_radix(text, radix).map_err(drop);
        Ok(Self {
            servers: number(servers, 10)?,
            members: number(members, 16)?,
            replicas: number(replicas, 10)?,
            unsettled: number(unsettled, 10)?,
            current: 0,
        })
    }
}

/// The disagreements in the cluster, as `/readyz` reports them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Agreement {
    /// This server's number of replicas and the cluster's, if the numbers differ.
    pub(super) other_replicas: Option<(usize, usize)>,
    /// Servers whose view of the cluster differs, each with the differences.
    pub(super) differing: Vec<(String, String)>,
    /// The server that has the name of this server, and whether that server has the right to the name.
    pub(super) namesake: Option<(std::net::SocketAddr, bool)>,
}

impl fmt::Display for Agreement {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((own, cluster)) = self.other_replicas {
            writeln!(
                formatter,
                "replicas: this server was started with --replicas {own}, most servers with {cluster}, which counts"
            )?;
        }
        for (name, what) in &self.differing {
            writeln!(formatter, "views differ: {name} {what}")?;
        }
        if let Some((address, false)) = self.namesake {
            writeln!(formatter, "names: the server at {address} was started with the name of this one and is refused")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_that_most_servers_have_counts() {
        let of = |numbers: &[usize]| most(numbers.iter().copied());
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[2, 2, 3]), Some(2), "one server changes nothing");
        assert_eq!(of(&[2, 3, 3, 2]), Some(3), "half of the servers do");
        // A rolling restart, one server down at a time, changes the number once: up, and down.
        for (old, new) in [(2, 3), (3, 2)] {
            for servers in 3..8 {
                let mut seen = Vec::new();
                for restarted in 0..=servers {
                    let counts = [(new, restarted), (old, servers - restarted)];
                    let numbers = |counts: [(usize, usize); 2]| {
                        most(counts.into_iter().flat_map(|(number, count)| std::iter::repeat_n(number, count)))
                    };
                    seen.extend(numbers(counts));
                    if restarted < servers {
                        seen.extend(numbers([counts[0], (old, servers - restarted - 1)]));
                    }
                }
                seen.dedup();
                assert_eq!(seen, [old, new], "{servers} servers");
            }
        }
    }

    #[test]
    fn views_say_what_differs() {
        let own = View { servers: 4, members: 7, replicas: 2, unsettled: 0, current: 9 };
        let read: View = own.to_string().parse().expect("a view");
        assert_eq!(View { current: 9, ..read }, own);
        assert_eq!(own.difference(&own), None);
        let other = View { servers: 3, replicas: 3, current: 8, ..own };
        let said = own.difference(&other).expect("a difference");
        assert_eq!(said, "sees 3 servers, this one 4; has the current epoch 8, this one 9; has replicas 3, this one 2");
        assert!(own.difference(&View { members: 8, ..own }).expect("a difference").contains("other servers"));
        for text in ["", "1", "1 2 3", "1 2 3 x", "1 2 3 4 5"] {
            assert!(text.parse::<View>().is_err(), "{text}");
        }
    }
}
