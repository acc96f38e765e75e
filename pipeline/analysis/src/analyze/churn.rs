//! `churn`: links that a page gained and lost from one known capture to the next.
//!
//! By page: the known captures, the pairs of consecutive captures whose links differ, and the links gained and lost.
//! Also the mean similarity (Jaccard) of two consecutive captures, which is 1 for a page with fewer than two captures.
//! Nodes are the pages with a capture in the window that tells. One pass over the pages. Memory: 40 bytes per URL.

use super::exchange::sums;
use super::shared_nodes::SharedNodes;
use super::survey::each;
use super::{AnalysisContext, Fact, Found};
use webstrata_engine::Stopped;
use webstrata_layers::Window;

pub(super) fn churn(context: &mut AnalysisContext<'_>, window: Window) -> Result<Found, Stopped> {
    let urls = context.my_urls();
    let [mut captures, mut changed, mut gained, mut lost] = [0; 4].map(|_| vec![0u64; urls]);
    let mut similarity = vec![1.0; urls];
    // By capture: the change of the number of links, the links gained, and the links lost since the capture before.
    let mut by_capture: Vec<[i64; 3]> = Vec::new();
    let (mut pairs_all, mut similar_all) = (0.0, 0.0);
    let mut pages = Vec::new();
    each(context, window, |index, page, history| {
        let history = history.of_whole_captures();
        pages.extend((!history.times.is_empty()).then_some(page.uid));
        captures[index] = history.times.len() as u64;
        by_capture.clear();
        by_capture.resize(history.times.len() + 1, [0; 3]);
        for stretch in &history.stretches {
            by_capture[stretch.first][0] += 1;
            by_capture[stretch.last + 1][0] -= 1;
            by_capture[stretch.first][1] += i64::from(stretch.first > 0);
            by_capture[stretch.last + 1][2] += i64::from(stretch.last + 1 < history.times.len());
        }
        let (mut present, mut similar) = (0, 0.0);
        for (at, &[step, begun, ended]) in by_capture[..history.times.len()].iter().enumerate() {
            present += step;
            if at > 0 {
                // The links in at least one of the two captures. Links in both are those present that were not gained.
                let either = present + ended;
                similar += if either == 0 { 1.0 } else { (present - begun) as f64 / either as f64 };
                changed[index] += u64::from(begun + ended > 0);
                gained[index] += begun.unsigned_abs();
                lost[index] += ended.unsigned_abs();
            }
        }
        if history.times.len() > 1 {
            let pairs = (history.times.len() - 1) as f64;
            similarity[index] = similar / pairs;
            pairs_all += pairs;
            similar_all += similar;
        }
        Ok(())
    })?;
    let totals = [&changed, &gained, &lost].map(|values| values.iter().sum::<u64>() as f64);
    let [pairs, similar] = sums(context, [pairs_all, similar_all])?;
    let [all_changed, all_gained, all_lost] = sums(context, totals)?;
    let facts = vec![
        Fact::new("pairs of captures", pairs),
        Fact::new("pairs with other links", all_changed),
        Fact::new("links gained", all_gained),
        Fact::new("links lost", all_lost),
        Fact::new("mean similarity", if pairs > 0.0 { similar / pairs } else { 1.0 }),
    ];
    let nodes = SharedNodes::of(context, pages.into_iter(), std::iter::empty())?;
    Ok(Found::of_worker()
        .of_nodes(nodes)
        .with("changed", changed)
        .with("captures", captures)
        .with("links_gained", gained)
        .with("links_lost", lost)
        .with("similarity", similarity)
        .and(facts))
}
