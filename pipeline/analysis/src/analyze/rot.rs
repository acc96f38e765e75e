//! `rot`: pages that are gone as of a time, and links that lead to them.
//!
//! | number | counts |
//! |---|---|
//! | pages | pages with a capture that counts as of the time, including failures |
//! | gone | of these pages: a failure has ended the page, which was there before |
//! | missing | of these pages: never there, every capture that counts is a failure |
//! | back | of these pages: there again, after a failure had ended the page |
//! | hosts, hosts gone | hosts with pages; hosts that have a page that is gone and no page that is there |
//! | links | pairs of a page that is there and a URL that it links to |
//! | dead links | of these links: to a page that is gone or missing |
//! | unknown links | of these links: to a URL without a capture that counts; the archive cannot tell |
//! | linking pages | pages that are there and have links |
//! | broken pages | of these pages: with a dead link |
//!
//! The question says which failures end a page ([`webstrata_layers::Failures`]). A page is unknown, not gone, if its
//! latest capture is older than the requested maximum age. The share `broken pages / linking pages` is the measure of
//! Pew Research Center, "When Online Content Disappears" (2024): a link is broken if its target can no longer be
//! reached. The share `dead links / (links - unknown links)` is link rot as Zittrain, Albert & Lessig define it for
//! Perma.cc ("Perma: Scoping and Addressing the Problem of Link and Reference Rot in Legal Citations", 2014).
//!
//! One pass over the links. Memory: 40 bytes per URL, 4 per mirror, 90 per host.

use super::exchange::{Number, exchange, sums};
use super::found::Found;
use super::slice::Slice;
use super::{AnalysisContext, Fact, Sheet, SheetColumn};
use crate::hosts::{Fold, UrlGroups};
use std::collections::BTreeMap;
use webstrata_engine::Stopped;
use webstrata_layers::{PageState, Uid};

/// The counts of the pages of a group, in order.
const COLUMNS: [&str; 9] =
    ["pages", "gone", "missing", "back", "links", "dead_links", "unknown_links", "linking_pages", "broken_pages"];
const PAGES: usize = 0;
const GONE: usize = 1;
const MISSING: usize = 2;
const BACK: usize = 3;
const LINKS: usize = 4;
const DEAD: usize = 5;
const UNKNOWN: usize = 6;
const LINKING: usize = 7;
const BROKEN: usize = 8;
type Counts = [u64; COLUMNS.len()];

/// The states of a URL as the target of a link.
const NOT_CAPTURED: u32 = 0;
const THERE: u32 = 1;
const FAILED: u32 = 2;

/// Counts the dead links of each URL. With `fold`, returns one row for each group of URLs instead.
pub(super) fn rot(context: &mut AnalysisContext<'_>, slice: &Slice, fold: Option<Fold>) -> Result<Found, Stopped> {
    let graph = &slice.graph;
    let mut of_url = vec![NOT_CAPTURED; graph.urls()];
    let mut counts: Vec<Counts> = vec![[0; COLUMNS.len()]; graph.urls()];
    for &page in &graph.alive {
        of_url[page as usize] = THERE;
        counts[page as usize][PAGES] = 1;
    }
    for &(page, state) in &graph.marked {
        let page = page as usize;
        counts[page][PAGES] = 1;
        match state {
            PageState::Alive => {}
            PageState::Back => counts[page][BACK] = 1,
            PageState::Gone => (of_url[page], counts[page][GONE]) = (FAILED, 1),
            PageState::Missing => (of_url[page], counts[page][MISSING]) = (FAILED, 1),
        }
    }
    let of_mirrors = slice.pull(context, &of_url)?;
    for (at, &page) in graph.pages.iter().enumerate() {
        let links = graph.links_of(at);
        let lead_to = |what: u32| links.iter().filter(|link| of_mirrors[link.index()] == what).count() as u64;
        let page_counts = &mut counts[page as usize];
        page_counts[LINKS] = links.len() as u64;
        page_counts[DEAD] = lead_to(FAILED);
        page_counts[UNKNOWN] = lead_to(NOT_CAPTURED);
        page_counts[LINKING] = 1;
        page_counts[BROKEN] = u64::from(page_counts[DEAD] > 0);
    }
    let hosts = context.groups(Fold::Host)?;
    let by_host = gather(context, &hosts, &counts)?;
    let has_page = |counts: &&Counts| counts[PAGES] > 0;
    let is_gone = |counts: &&Counts| counts[GONE] > 0 && counts[GONE] + counts[MISSING] == counts[PAGES];
    let host_counts = [by_host.values().filter(has_page).count(), by_host.values().filter(is_gone).count()];
    let [hosts_all, hosts_gone] = host_counts.map(|count| count as f64);
    let sum = |column: usize| counts.iter().map(|counts| counts[column]).sum::<u64>() as f64;
    let all = sums(context, std::array::from_fn::<f64, { COLUMNS.len() }, _>(sum))?;
    let fact = |column: usize| Fact::new(&COLUMNS[column].replace('_', " "), all[column]);
    let mut facts: Vec<Fact> = [PAGES, GONE, MISSING, BACK].map(fact).into();
    facts.extend([Fact::new("hosts", hosts_all), Fact::new("hosts gone", hosts_gone)]);
    facts.extend([LINKS, DEAD, UNKNOWN, LINKING, BROKEN].map(fact));
    if let Some(fold) = fold {
        let groups = context.groups(fold)?;
        let by_group = if fold == Fold::Host { by_host } else { gather(context, &groups, &counts)? };
        let sheet = (context.worker.index() == 0).then(|| sheet(fold, &groups, &by_group));
        return Ok(Found::of_worker().and(facts).with_sheet(sheet));
    }
    let column = |column: usize| counts.iter().map(|counts| counts[column]).collect::<Vec<u64>>();
    Ok(Found::of_worker()
        .with("dead_links", column(DEAD))
        .with("unknown_links", column(UNKNOWN))
        .with("links", column(LINKS))
        .with("gone", column(GONE))
        .with("missing", column(MISSING))
        .and(facts))
}

/// Sums the counts of all workers by group, at worker 0. The result has only groups with a page.
fn gather(
    context: &mut AnalysisContext<'_>,
    groups: &UrlGroups,
    counts: &[Counts],
) -> Result<BTreeMap<u32, Counts>, Stopped> {
    let (first, mut near) = (context.my_uids().start, 0);
    let mut all: BTreeMap<u32, Counts> = BTreeMap::new();
    for (uid, counts) in Uid::each(first..first + counts.len() as u64).zip(counts).filter(|(_, of)| of[PAGES] > 0) {
        let sums = all.entry(groups.of(uid, &mut near)).or_default();
        sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
    }
    let mut outgoing = vec![Vec::new(); context.worker.peers()];
    if context.worker.index() > 0 {
        for (group, counts) in std::mem::take(&mut all) {
            group.put(&mut outgoing[0]);
            counts.into_iter().for_each(|count| count.put(&mut outgoing[0]));
        }
    }
    for bytes in exchange(context, outgoing)? {
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let sums = all.entry(u32::take(&mut rest)).or_default();
            sums.iter_mut().for_each(|sum| *sum += u64::take(&mut rest));
        }
    }
    Ok(all)
}

fn sheet(fold: Fold, groups: &UrlGroups, by_group: &BTreeMap<u32, Counts>) -> Sheet {
    let mut rows: Vec<(&str, &Counts)> = by_group.iter().map(|(&group, counts)| (groups.name(group), counts)).collect();
    rows.sort_unstable();
    let names = rows.iter().map(|row| row.0.to_owned()).collect();
    let mut columns = vec![("group", SheetColumn::Texts(names))];
    for (at, name) in COLUMNS.into_iter().enumerate() {
        columns.push((name, SheetColumn::Counts(rows.iter().map(|row| row.1[at]).collect())));
    }
    Sheet::new(&format!("by {fold}"), true, columns)
}
