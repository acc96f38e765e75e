//! `mortality`: links that each page gained and lost, and how long links live.
//!
//! A link is gained at a known capture that has the link if the known capture before lacks it. The link is lost at the
//! next known capture that lacks it. Links of the first capture of a page have an unknown age. They count as lost by
//! page, but say nothing about lifetimes. Survival by age is the Kaplan-Meier estimate over the links that were gained.
//! Links that still live count for as long as they were watched. Ages are in months of 30 days. A page dies at a
//! failure that ends it and loses all its links. It returns at the next capture that is not a failure. Nodes are the
//! pages with a capture in the window that tells. One pass over the pages. Memory: 40 bytes per URL.

use super::exchange::sums;
use super::shared_nodes::SharedNodes;
use super::survey::{each, fates};
use super::{AnalysisContext, Fact, Found, Sheet, SheetColumn};
use webstrata_engine::Stopped;
use webstrata_layers::Window;
use webstrata_layers::record::capture::fate::Fate;

const MONTH: i64 = 30 * 86_400;

pub(super) fn mortality(context: &mut AnalysisContext<'_>, window: Window) -> Result<Found, Stopped> {
    let urls = context.my_urls();
    let [mut links, mut gained, mut lost] = [0; 3].map(|_| vec![0u64; urls]);
    // By age: the links that were lost at this age, and the living links that were watched up to this age.
    let mut ages: Vec<[u64; 2]> = Vec::new();
    let mut pages = Vec::new();
    let [mut died, mut returned] = [0; 2].map(|_| vec![0u64; urls]);
    let bounds = match window {
        Window::Seen { from, to } => from..=to,
        Window::AsOf(as_of) => i64::MIN..=as_of.time,
    };
    each(context, window, |index, page, history| {
        for (_, fate) in fates(page).iter().filter(|(time, _)| bounds.contains(time)) {
            died[index] += u64::from(matches!(fate, Fate::Died { .. }));
            returned[index] += u64::from(*fate == Fate::Returned);
        }
        pages.extend((!history.times.is_empty()).then_some(page.uid));
        let last = history.times.last().copied().unwrap_or(0);
        let mut before = None;
        for stretch in &history.stretches {
            links[index] += u64::from(before.replace(stretch.link) != Some(stretch.link));
            let end = history.end(stretch);
            lost[index] += u64::from(end.is_some());
            if history.has_come(stretch) {
                gained[index] += 1;
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
    for worker_ages in context.gather_values(&ages)? {
        all.resize(all.len().max(worker_ages.len()), [0; 2]);
        all.iter_mut().zip(worker_ages).for_each(|(sum, counts)| (0..2).for_each(|at| sum[at] += counts[at]));
    }
    let sheet = (context.worker.index() == 0).then(|| survival(&all));
    let totals = [&links, &gained, &lost, &died, &returned];
    let totals = sums(context, totals.map(|values| values.iter().sum::<u64>() as f64))?;
    let names = ["links", "links gained", "links lost", "pages died", "pages returned"];
    let facts = names.into_iter().zip(totals).map(|(name, total)| Fact::new(name, total)).collect();
    let nodes = SharedNodes::of(context, pages.into_iter(), std::iter::empty())?;
    Ok(Found::of_worker()
        .of_nodes(nodes)
        .with("links", links)
        .with("links_gained", gained)
        .with("links_lost", lost)
        .with("pages_died", died)
        .with("pages_returned", returned)
        .and(facts)
        .with_sheet(sheet))
}

/// Returns, by age, the number of links that reach the age and that are lost at it, and the share of links that outlive
/// it.
fn survival(ages: &[[u64; 2]]) -> Sheet {
    let mut at_risk = ages.iter().map(|[lost, survived]| lost + survived).sum::<u64>();
    let mut share = 1.0;
    let [mut reach, mut lose] = [0; 2].map(|_| Vec::with_capacity(ages.len()));
    let mut survive = Vec::with_capacity(ages.len());
    for &[lost, survived] in ages {
        if at_risk > 0 {
            share *= 1.0 - lost as f64 / at_risk as f64;
        }
        reach.push(at_risk);
        lose.push(lost);
        survive.push(share);
        at_risk -= lost + survived;
    }
    let columns = vec![
        ("age", SheetColumn::Counts((0..ages.len() as u64).collect())),
        ("at_risk", SheetColumn::Counts(reach)),
        ("lost", SheetColumn::Counts(lose)),
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
