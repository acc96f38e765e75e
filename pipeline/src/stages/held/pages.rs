//! Adds held links to their page, beside the links of the layers, and takes them out again.
//!
//! An update joins a page with all its links, including held links, so that a repeated capture and a revisit of an
//! earlier capture have these links. Then the links that are still held are taken out of the page that is written.

use crate::stages::held::links::HeldLink;
use std::collections::BTreeMap;
use webstrata_layers::record::form::each_link;
use webstrata_layers::record::presence::intervals;
use webstrata_layers::{Change, Evidence, Page, Payload, Uid};

/// Returns the captures of a page with known links.
fn known(page: &Page) -> Vec<u32> {
    (0u32..).zip(&page.timestamps).map(|(at, _)| at).filter(|&at| !page.is_blank(at)).collect()
}

/// Returns the changes of the presence of a link that is in these stretches of captures.
fn changes_of(times: &[i64], page: &Page, known: &[u32]) -> Vec<Change> {
    let mut changes = Vec::new();
    let mut set = |at: usize| changes.extend(known.get(at).map(|&capture| Change { link: 0, capture }));
    // Before the first known capture a link counts as present.
    let mut absent_from = 0;
    let mut is_in_all_so_far = true;
    for stretch in times.chunks(2) {
        let (first, last) = (stretch[0], stretch[stretch.len() - 1]);
        let index = |time: i64, after: bool| {
            let capture = page.timestamps.partition_point(|&other| other < time || after && other == time);
            known.partition_point(|&at| (at as usize) < capture)
        };
        let (begin, end) = (index(first, false), index(last, true));
        if begin == end {
            continue;
        }
        if begin > absent_from {
            set(absent_from);
            set(begin);
        }
        (absent_from, is_in_all_so_far) = (end, false);
    }
    if absent_from < known.len() || is_in_all_so_far {
        set(absent_from);
    }
    changes
}

/// Returns the page with the held links added.
pub(crate) fn put_in((page, mut evidence): (Page, Evidence), links: &[HeldLink]) -> (Page, Evidence) {
    let known = known(&page);
    let of_captures = links.iter().filter(|held| !held.of_revisits && held.digest == 0);
    let added: Vec<(Uid, Vec<Change>)> =
        of_captures.map(|held| (held.link, changes_of(&held.times, &page, &known))).collect();
    let mut all = each_link(&page);
    all.extend(added.iter().map(|(link, changes)| (*link, &changes[..])));
    all.sort_by_key(|&(link, _)| link);
    all.dedup_by_key(|&mut (link, _)| link);
    let (mut all_links, mut changes) = (Vec::with_capacity(all.len()), Vec::new());
    for (number, (link, own)) in (0u32..).zip(&all) {
        all_links.push(*link);
        changes.extend(own.iter().map(|change| Change { link: number, ..*change }));
    }
    for held in links.iter().filter(|held| held.of_revisits) {
        for time in &held.times {
            let Ok(capture) = page.timestamps.binary_search(time) else { continue };
            let revisits = &mut evidence.revisits;
            let Ok(at) = revisits.binary_search_by_key(&capture, |revisit| revisit.capture as usize) else { continue };
            if let Err(place) = revisits[at].links.binary_search(&held.link) {
                revisits[at].links.insert(place, held.link);
            }
        }
    }
    for held in links.iter().filter(|held| held.digest != 0) {
        for time in &held.times {
            let Ok(capture) = page.timestamps.binary_search(time) else { continue };
            let payloads = &mut evidence.payloads;
            let key = |payload: &Payload| (payload.capture as usize, payload.digest);
            let Ok(at) = payloads.binary_search_by_key(&(capture, held.digest), key) else { continue };
            if let Err(place) = payloads[at].links.binary_search(&held.link) {
                payloads[at].links.insert(place, held.link);
            }
        }
    }
    (Page { links: all_links, changes, ..page }, evidence)
}

/// Takes links out of a page, and returns these links in no particular order.
pub(crate) fn take_out(page: &mut Page, evidence: &mut Evidence, is_out: impl Fn(Uid) -> bool) -> Vec<HeldLink> {
    let (known, captures) = (known(page), u32::try_from(page.timestamps.len()).unwrap_or(u32::MAX));
    let (mut taken, mut links, mut changes) = (Vec::new(), Vec::new(), Vec::new());
    for (link, own) in each_link(page) {
        if !is_out(link) {
            let number = u32::try_from(links.len()).unwrap_or(u32::MAX);
            changes.extend(own.iter().map(|change| Change { link: number, ..*change }));
            links.push(link);
            continue;
        }
        let mut times = Vec::new();
        for (first, last) in intervals(own, captures) {
            let from = known.partition_point(|&at| at < first);
            let to = known.partition_point(|&at| at <= last);
            if from < to {
                times.extend([from, to - 1].map(|at| page.timestamps[known[at] as usize]));
            }
        }
        if !times.is_empty() {
            taken.push(HeldLink { link, of_revisits: false, digest: 0, times });
        }
    }
    (page.links, page.changes) = (links, changes);
    let mut of_revisits = BTreeMap::<Uid, Vec<i64>>::new();
    for revisit in &mut evidence.revisits {
        let time = page.timestamps[revisit.capture as usize];
        revisit.links.iter().filter(|&&link| is_out(link)).for_each(|&link| {
            of_revisits.entry(link).or_default().push(time);
        });
        revisit.links.retain(|&link| !is_out(link));
    }
    taken.extend(of_revisits.into_iter().map(|(link, times)| HeldLink { link, of_revisits: true, digest: 0, times }));
    let mut of_payloads = BTreeMap::<(Uid, u64), Vec<i64>>::new();
    for Payload { capture, digest, links } in &mut evidence.payloads {
        let time = page.timestamps[*capture as usize];
        links.iter().filter(|&&link| is_out(link)).for_each(|&link| {
            of_payloads.entry((link, *digest)).or_default().push(time);
        });
        links.retain(|&link| !is_out(link));
    }
    let held = |((link, digest), times)| HeldLink { link, of_revisits: false, digest, times };
    taken.extend(of_payloads.into_iter().map(held));
    taken
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use webstrata_layers::Revisit;

    proptest! {
        /// Links that are taken out come back at the same captures, with unknown captures between them.
        #[test]
        fn links_go_out_and_come_back(
            captures in prop::collection::vec(
                prop::option::weighted(0.8, prop::collection::btree_set(0u64..9, 0..6)), 1..14
            ),
            out in prop::collection::btree_set(0u64..9, 0..9),
        ) {
            let (mut page, mut evidence) = (Page::default(), Evidence::default());
            for (at, links) in (0u32..).zip(&captures) {
                page.timestamps.push(i64::from(at) * 10 + 1);
                if links.is_none() {
                    page.blank.push(at);
                    let links = Uid::slice(&[u64::from(at) % 9]).to_vec();
                    evidence.revisits.push(Revisit { capture: at, links, ..Revisit::default() });
                }
            }
            for link in (0..9).filter(|link| captures.iter().flatten().any(|links| links.contains(link))) {
                let number = u32::try_from(page.links.len()).unwrap();
                page.links.push(Uid(link));
                let mut before = true;
                for (at, links) in (0u32..).zip(&captures) {
                    let Some(links) = links else { continue };
                    if links.contains(&link) != before {
                        page.changes.push(Change { link: number, capture: at });
                        before = !before;
                    }
                }
            }
            prop_assert_eq!(page.flaw(), None);
            let whole = (page.clone(), evidence.clone());
            let held = take_out(&mut page, &mut evidence, |link| out.contains(&link.0));
            prop_assert_eq!(page.flaw(), None);
            prop_assert!(page.links.iter().all(|link| !out.contains(&link.0)));
            prop_assert_eq!(put_in((page, evidence), &held), whole);
        }
    }
}
