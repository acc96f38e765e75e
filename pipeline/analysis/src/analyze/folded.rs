//! The graph of hosts, domains or paths by period: the groups that link to each other, and how much.
//!
//! Reads the known captures of a window. The result has one row for each period and pair of groups with at least one
//! link in a capture of that period, in the order of periods and names:
//!
//! | column | meaning |
//! |---|---|
//! | `period` | its first second |
//! | `src`, `dst` | names of the groups ([`crate::hosts`]); links inside a group are included |
//! | `pages` | distinct pages of `src` that linked to `dst` |
//! | `links` | distinct pairs of a page and a URL |
//! | `captures` | captures of these pages that had such a link |
//! | `occurrences` | links in captures: a link in three captures counts three times |
//!
//! If a capture links to a URL twice, this is one link, as everywhere in a store. One pass over the pages. Memory: 60
//! bytes for each row of the result in a worker, and again in worker 0 with the names. Each process has the names of
//! groups.

use super::exchange::{Number, exchange};
use super::survey::{History, each};
use super::{AnalysisContext, Fact, Found, Sheet, SheetColumn};
use crate::hosts::Fold;
use std::collections::{HashMap, HashSet};
use webstrata_engine::Stopped;
use webstrata_layers::{Page, RangeLength, Uid, Window};

/// The period, the source group and the target group.
type Pair = (i64, u32, u32);
/// The numbers of pages, links, captures and occurrences.
type Weights = [u64; 4];

pub(super) fn folded(
    context: &mut AnalysisContext<'_>,
    fold: Fold,
    length: RangeLength,
    window: Window,
) -> Result<Found, Stopped> {
    let groups = context.groups(fold)?;
    let mut pairs: HashMap<Pair, Weights> = HashMap::new();
    let (mut near_page, mut near_link) = (0, 0);
    let mut stretches: Vec<GroupStretch> = Vec::new();
    each(context, window, |_, page: &Page, history: &History| {
        if history.stretches.is_empty() {
            return Ok(());
        }
        let source = groups.of(page.uid, &mut near_page);
        stretches.clear();
        stretches.extend(history.runs().iter().map(|stretch| GroupStretch {
            target: groups.of(stretch.link, &mut near_link),
            link: stretch.link,
            first: stretch.first,
            last: stretch.last,
        }));
        add_page(source, &history.times, length, &mut stretches, &mut pairs);
        Ok(())
    })?;
    let all = gather(context, pairs)?;
    if context.worker.index() > 0 {
        return Ok(Found::of_all());
    }
    let mut rows: Vec<(Pair, Weights)> = all.into_iter().collect();
    rows.sort_unstable_by_key(|&((period, source, target), _)| (period, groups.name(source), groups.name(target)));
    let mut periods: Vec<i64> = rows.iter().map(|(pair, _)| pair.0).collect();
    let names =
        |of: fn(&Pair) -> u32| rows.iter().map(|(pair, _)| groups.name(of(pair)).to_owned()).collect::<Vec<_>>();
    let mut columns = vec![
        ("period", SheetColumn::Times(periods.clone())),
        ("src", SheetColumn::Texts(names(|pair| pair.1))),
        ("dst", SheetColumn::Texts(names(|pair| pair.2))),
    ];
    for (at, name) in ["pages", "links", "captures", "occurrences"].into_iter().enumerate() {
        columns.push((name, SheetColumn::Counts(rows.iter().map(|(_, weights)| weights[at]).collect())));
    }
    periods.dedup();
    let parts: HashSet<u32> = rows.iter().flat_map(|(pair, _)| [pair.1, pair.2]).collect();
    let facts = vec![
        Fact::new(&format!("parts, by {fold}"), parts.len() as f64),
        Fact::new("periods", periods.len() as f64),
        Fact::new("pairs", rows.len() as f64),
    ];
    Ok(Found::of_all().and(facts).with_sheet(Some(Sheet::new("links between parts", true, columns))))
}

/// A stretch of captures that have a link: the group of the link, the link, the first and the last capture.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct GroupStretch {
    target: u32,
    link: Uid,
    first: usize,
    last: usize,
}

/// Adds the links of a page to the counts.
fn add_page(
    source: u32,
    times: &[i64],
    length: RangeLength,
    stretches: &mut [GroupStretch],
    pairs: &mut HashMap<Pair, Weights>,
) {
    stretches.sort_unstable();
    let periods: Vec<i64> = times.iter().map(|&time| length.start(time)).collect();
    for target_stretches in stretches.chunk_by(|a, b| a.target == b.target) {
        let target = target_stretches[0].target;
        // The captures that have any of the links, as steps up and down.
        let mut steps = vec![0i64; times.len() + 1];
        for link in target_stretches.chunk_by(|a, b| a.link == b.link) {
            let mut counted = None;
            for &GroupStretch { first, last, .. } in link {
                steps[first] += 1;
                steps[last + 1] -= 1;
                for captures in periods[first..=last].chunk_by(|a, b| a == b) {
                    let weights = pairs.entry((captures[0], source, target)).or_default();
                    weights[3] += captures.len() as u64;
                    // Stretches of a link rise, so a period in which the link was counted before is the last one.
                    weights[1] += u64::from(counted.replace(captures[0]) != Some(captures[0]));
                }
            }
        }
        let (mut depth, mut counted) = (0, None);
        for (&period, step) in periods.iter().zip(steps) {
            depth += step;
            if depth > 0 {
                let weights = pairs.entry((period, source, target)).or_default();
                weights[2] += 1;
                weights[0] += u64::from(counted.replace(period) != Some(period));
            }
        }
    }
}

/// Adds up the counts of all workers, at worker 0.
fn gather(
    context: &mut AnalysisContext<'_>,
    my_pairs: HashMap<Pair, Weights>,
) -> Result<HashMap<Pair, Weights>, Stopped> {
    let mut outgoing = vec![Vec::new(); context.worker.peers()];
    let mut all = my_pairs;
    if context.worker.index() > 0 {
        for ((period, source, target), weights) in all.drain() {
            period.put(&mut outgoing[0]);
            source.put(&mut outgoing[0]);
            target.put(&mut outgoing[0]);
            weights.into_iter().for_each(|weight| weight.put(&mut outgoing[0]));
        }
    }
    for bytes in exchange(context, outgoing)? {
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let pair = (i64::take(&mut rest), u32::take(&mut rest), u32::take(&mut rest));
            let sum = all.entry(pair).or_default();
            sum.iter_mut().for_each(|sum| *sum += u64::take(&mut rest));
        }
    }
    Ok(all)
}
