//! `locality`: the number of links of each page that stay inside its host, and inside its domain.
//!
//! One pass over the links, one over the URLs for hosts, and one over the URLs for domains. Memory: 24 bytes per URL,
//! and the hosts and their names.

use super::exchange::sums;
use super::slice::Slice;
use super::{AnalysisContext, Fact, Found};
use crate::hosts::{Fold, UrlGroups};
use webstrata_engine::Stopped;
use webstrata_layers::Uid;

pub(super) fn locality(context: &mut AnalysisContext<'_>, slice: &Slice) -> Result<Found, Stopped> {
    let groups = [context.groups(Fold::Host)?, context.groups(Fold::Domain)?];
    let mirrors = groups.each_ref().map(|groups| of_mirrors(groups, slice));
    let mut inside = [0; 2].map(|_| vec![0u64; slice.graph.urls()]);
    let mut near = [0; 2];
    for (at, &page) in slice.graph.pages.iter().enumerate() {
        for by in 0..2 {
            let group = groups[by].of(slice.graph.uids.start + u64::from(page), &mut near[by]);
            let links = slice.graph.links_of(at).iter().filter(|&&link| mirrors[by][link.index()] == group);
            inside[by][page as usize] = links.count() as u64;
        }
    }
    let totals = inside.each_ref().map(|counts| counts.iter().sum::<u64>() as f64);
    let [links, in_host, in_domain] = sums(context, [slice.graph.links.len() as f64, totals[0], totals[1]])?;
    let share = |inside: f64| if links > 0.0 { inside / links } else { 0.0 };
    let facts = vec![
        Fact::new("links", links),
        Fact::new("inside the host", in_host),
        Fact::new("share inside the host", share(in_host)),
        Fact::new("inside the domain", in_domain),
        Fact::new("share inside the domain", share(in_domain)),
    ];
    let [in_host, in_domain] = inside;
    Ok(Found::of_worker()
        .with("links", slice.graph.out_degrees())
        .with("in_host", in_host)
        .with("in_domain", in_domain)
        .and(facts))
}

/// Returns the group of each mirror.
fn of_mirrors(groups: &UrlGroups, slice: &Slice) -> Vec<u32> {
    let mut near = 0;
    slice.mirrors.uids.iter().map(|&uid| groups.of(Uid(uid.into()), &mut near)).collect()
}
