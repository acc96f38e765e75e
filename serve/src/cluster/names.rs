//! Decides which one of several live servers with the same name has the right to the name.
//!
//! A server takes its *seat* when it has run for [`ROUNDS`] rounds of gossip without meeting another server of its
//! name. A server with a seat comes before one without, so that a newcomer never takes the place of a server that is
//! there, whatever the clocks of their machines say. Among equals the one that was started first has the name. A
//! process at the address of an earlier process is a restart of the same server: two processes cannot listen at one
//! address. A server that restarts at another address has the name as soon as the earlier process counts as dead.

use std::net::SocketAddr;

use chitchat::ChitchatId;

/// The pair of a server that has its seat.
pub(super) const SEAT: &str = "seat";
/// Rounds of gossip until a server has its seat. An earlier process counts as dead after fewer rounds.
pub(super) const ROUNDS: u32 = 20;

/// A live process with a name.
#[derive(Clone, Debug)]
pub(super) struct Claim {
    pub(super) id: ChitchatId,
    pub(super) has_seat: bool,
}

/// Another server with the name of this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Namesake {
    /// Its address.
    pub(crate) address: SocketAddr,
    /// Whether that server has the right to the name.
    pub(crate) is_rightful: bool,
}

/// The process that has the right to a name, among all live processes with the name.
pub(super) fn rightful(claims: &[Claim]) -> Option<&Claim> {
    let at = |address: SocketAddr| claims.iter().filter(move |claim| claim.id.gossip_advertise_addr == address);
    let is_newest = |claim: &&Claim| {
        at(claim.id.gossip_advertise_addr).all(|other| other.id.generation_id <= claim.id.generation_id)
    };
    // A restarted process has the seat of the process before.
    let rank = |claim: &&Claim| {
        let has_seat = at(claim.id.gossip_advertise_addr).any(|other| other.has_seat);
        (!has_seat, claim.id.generation_id, claim.id.gossip_advertise_addr)
    };
    claims.iter().filter(is_newest).min_by_key(rank)
}

/// The server with the name of `own`, if there is one at another address.
pub(super) fn namesake(own: &ChitchatId, claims: &[Claim]) -> Option<Namesake> {
    let is_other = |claim: &&Claim| claim.id.gossip_advertise_addr != own.gossip_advertise_addr;
    let other = claims.iter().find(is_other)?;
    let first = rightful(claims).filter(is_other);
    let address = first.unwrap_or(other).id.gossip_advertise_addr;
    Some(Namesake { address, is_rightful: first.is_some() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(generation: u64, port: u16, has_seat: bool) -> Claim {
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        Claim { id: ChitchatId::new("one".to_owned(), generation, address), has_seat }
    }

    #[test]
    fn who_is_there_keeps_its_name() {
        let first = |claims: &[Claim]| rightful(claims).map(|claim| claim.id.generation_id);
        assert_eq!(first(&[]), None);
        // A newcomer with a clock that is ahead, and one with a clock that is behind.
        assert_eq!(first(&[claim(50, 1, true), claim(90, 2, false)]), Some(50));
        assert_eq!(first(&[claim(50, 1, true), claim(10, 2, false)]), Some(50));
        // Two servers that were started at the same time, and two servers that a network partition kept apart.
        assert_eq!(first(&[claim(50, 1, false), claim(51, 2, false)]), Some(50));
        assert_eq!(first(&[claim(51, 2, true), claim(50, 1, true)]), Some(50));
        // A restart at the same address, with a second server of the same name.
        assert_eq!(first(&[claim(50, 1, true), claim(90, 1, false)]), Some(90));
        assert_eq!(first(&[claim(50, 1, true), claim(90, 1, false), claim(60, 2, false)]), Some(90));
    }

    #[test]
    fn namesakes_are_at_other_addresses() {
        let (own, other) = (claim(50, 1, true), claim(90, 2, false));
        let of = |own: &Claim, claims: &[Claim]| namesake(&own.id, claims).map(|other| other.is_rightful);
        assert_eq!(of(&own, std::slice::from_ref(&own)), None);
        assert_eq!(of(&own, &[own.clone(), claim(40, 1, true)]), None, "an earlier process of this server");
        let both = [own.clone(), other.clone()];
        assert_eq!((of(&own, &both), of(&other, &both)), (Some(false), Some(true)));
    }
}
