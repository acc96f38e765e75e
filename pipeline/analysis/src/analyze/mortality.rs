//! `mortality`: links that are born and die on each page, and how long links live.
//!
//! A link is born at a known capture that has the link if the known capture before lacks it. The link dies at the next
//! known capture that lacks it. Links of the first capture of a page have an unknown age. Their deaths count by page,
//! but say nothing about lifetimes. Survival by age is the Kaplan-Meier estimate over the links with a known birth.
//! Links that still live count for as long as they were watched. Ages are in months of 30 days. A page dies at a
//! failure that ends it, together with all its links, and returns at the next capture that is not a failure. Nodes are
//! the pages with a capture in the window that tells. One pass over the pages. Memory: 40 bytes per URL.

use super::exchange::sums;
use super::shared_nodes::SharedNodes;
use super::survey::{each, fates};
use super::{Fact, Found, Ground, Sheet, SheetColumn};
use webstrata_engine::Stopped;
use webstrata_layers::Window;
use webstrata_layers::record::capture::fate::Fate;

const MONTH: i64 = 30 * 86_400;

pub(super) fn mortality(ground: &mut Ground<'_>, window: Window) -> Result<Found, Stopped> {
    let urls = ground.my_urls();
    let [mut links, mut births, mut deaths] = [0; 3].map(|_| vec![0u64; urls]);
    // By age: the links that died at this age, and the living links that were watched up to this age.
    let mut ages: Vec<[u64; 2]> = Vec::new();
    let mut pages = Vec::new();
    let [mut page_deaths, mut page_returns] = [0; 2].map(|_| vec![0u64; urls]);
    let bounds = match window {
        Window::Seen { from, to } => from..=to,
        Window::AsOf(as_of) => i64::MIN..=as_of.time,
    };
    each(ground, window, |index, page, history| {
        for (_, fate) in fates(page).iter().filter(|(time, _)| bounds.contains(time)) {
            page_deaths[index] += u64::from(matches!(fate, Fate::Died { .. }));
            page_returns[index] += u64::from(*fate == Fate::Returned);
        }
        pages.extend((!history.times.is_empty()).then_some(page.uid));
        let last = history.times.last().copied().unwrap_or(0);
        let mut before = None;
        for stretch in &history.stretches {
            links[index] += u64::from(before.replace(stretch.link) != Some(stretch.link));
            let end = history.end(stretch);
            deaths[index] += u64::from(end.is_some());
            if stretch.first > 0 {
                births[index] += 1;
                let age = end.unwrap_or(last).saturating_sub(history.times[stretch.first]) / MONTH;
                let age = usize::try_from(age).unwrap_or(0);
                if ages.len() <= age {
                    ages.resize(age + 1, [0; 2]);
                }
                ages[age][usize::from(end.is_none())] += 1;
            }
        }
        Ok(())
    })?;
    let mut all: Vec<[u64; 2]> = Vec::new();
    for worker_ages in ground.gather_values(&ages)? {
        all.resize(all.len().max(worker_ages.len()), [0; 2]);
        all.iter_mut().zip(worker_ages).for_each(|(sum, counts)| (0..2).for_each(|at| sum[at] += counts[at]));
    }
    let sheet = (ground.worker.index() == 0).then(|| survival(&all));
    let totals = [&links, &births, &deaths, &page_deaths, &page_returns];
    let totals = sums(ground, totals.map(|values| values.iter().sum::<u64>() as f64))?;
    let names = ["links", "births", "deaths", "deaths of pages", "returns of pages"];
    let facts = names.into_iter().zip(totals).map(|(name, total)| Fact::new(name, total)).collect();
    let nodes = SharedNodes::of(ground, pages.into_iter(), std::iter::empty())?;
    Ok(Found::of_worker()
        .of_nodes(nodes)
        .with("links", links)
        .with("births", births)
        .with("deaths", deaths)
        .with("page_deaths", page_deaths)
        .with("page_returns", page_returns)
        .and(facts)
        .with_sheet(sheet))
}

/// Returns, by age, the number of links that reach the age and that die at it, and the share of links that outlive it.
fn survival(ages: &[[u64; 2]]) -> Sheet {
    let mut at_risk = ages.iter().map(|[died, survived]| died + survived).sum::<u64>();
    let mut share = 1.0;
    let [mut reach, mut die] = [0; 2].map(|_| Vec::with_capacity(ages.len()));
    let mut survive = Vec::with_capacity(ages.len());
    for &[died, survived] in ages {
        if at_risk > 0 {
            share *= 1.0 - died as f64 / at_risk as f64;
        }
        reach.push(at_risk);
        die.push(died);
        survive.push(share);
        at_risk -= died + survived;
    }
    let columns = vec![
        ("age", SheetColumn::Counts((0..ages.len() as u64).collect())),
        ("at_risk", SheetColumn::Counts(reach)),
        ("died", SheetColumn::Counts(die)),
        ("surviving", SheetColumn::Reals(survive)),
    ];
    Sheet::new("links by age in months of 30 days", false, columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn survival_is_the_product_of_shares() {
        let sheet = survival(&[[1, 1], [0, 0], [1, 1]]);
        let SheetColumn::Reals(share) = &sheet.columns[3].1 else { panic!("shares are reals") };
        assert_eq!(share, &[0.75, 0.75, 0.375]);
        assert_eq!(sheet.columns[1].1, SheetColumn::Counts(vec![4, 2, 2]));
    }
}
