//! `growth`: the size of an archive by period: captures, pages, URLs and links, those seen for the first time and those
//! present. Also the pages that died, that returned, and that are there at the end of the period.
//!
//! A link (a pair of a page and a URL) is first seen in the first known capture that has the link. A URL
//! is first seen when it is first captured or first linked. At the end of a period, links and living pages are those of
//! the graph as of its last second. As in all answers as of a time, the latest capture that counts decides
//! ([`deciding`]). While that capture leaves links unknown, the page counts as an unknown page. None of its links is
//! counted then, except for those that a cut capture has.
//!
//! The result has one row for each period from the first capture to the last. `when_first_known` returns when each URL
//! was first known. Passes over the pages: two. Memory: 4 bytes per link and 24 per URL.
//!
//! [`deciding`]: webstrata_layers::record::capture::deciding

use super::adjacency::{self, Timed};
use super::slice::TimedSlice;
use super::survey::{History, each, fates, span};
use super::{AnalysisContext, Found, Sheet, SheetColumn};
use webstrata_engine::Stopped;
use webstrata_layers::record::capture::fate::Fate;
use webstrata_layers::{CaptureTime, Failures, Page, RangeLength, Window};

/// The columns of the result, in order, summed by period. The last three columns sum steps up and down, which `sheet`
/// accumulates.
const COLUMNS: [&str; 10] = [
    "captures",
    "pages",
    "first_seen_pages",
    "first_seen_urls",
    "first_seen_links",
    "pages_died",
    "pages_returned",
    "living_pages",
    "unknown_pages",
    "links",
];
const CAPTURES: usize = 0;
const PAGES: usize = 1;
const FIRST_SEEN_PAGES: usize = 2;
const FIRST_SEEN_URLS: usize = 3;
const FIRST_SEEN_LINKS: usize = 4;
const DIED: usize = 5;
const RETURNED: usize = 6;
const LIVING: usize = 7;
const UNKNOWN: usize = 8;
const LINKS: usize = 9;

pub(super) fn growth(context: &mut AnalysisContext<'_>, length: RangeLength) -> Result<Found, Stopped> {
    let counts = context.store.store().manifest().counts;
    let starts = counts.periods(length);
    let period = |time: i64| starts.partition_point(|&start| start <= time).saturating_sub(1);
    let mut sums = vec![[0i64; COLUMNS.len()]; starts.len()];
    let links = adjacency::read(context, &[Window::ALWAYS])?;
    let first_known = when_first_known(context, links, |page, history| {
        let periods = page.timestamps.iter().map(|&time| period(time));
        let mut before = None;
        for period in periods {
            sums[period][CAPTURES] += 1;
            sums[period][PAGES] += i64::from(before.replace(period) != Some(period));
        }
        sums[period(page.timestamps[0])][FIRST_SEEN_PAGES] += 1;
        for (time, fate) in fates(page) {
            let sums = &mut sums[period(time)];
            sums[DIED] += i64::from(matches!(fate, Fate::Died { .. }));
            sums[RETURNED] += i64::from(fate == Fate::Returned);
            sums[LIVING] += if matches!(fate, Fate::Died { .. }) { -1 } else { 1 };
        }
        let whole = history.of_whole_captures();
        for (after, since) in runs_after(page, &whole.times, |capture| !capture.is_whole()) {
            sums[period(since)][UNKNOWN] += 1;
            if let Some(&until) = whole.times.get(after) {
                sums[period(until)][UNKNOWN] -= 1;
            }
        }
        let unknown = runs_after(page, &history.times, |capture| !capture.known);
        let mut last = None;
        for stretch in history.runs() {
            let time = history.times[stretch.first];
            sums[period(time)][FIRST_SEEN_LINKS] += i64::from(last.replace(stretch.link) != Some(stretch.link));
            sums[period(time)][LINKS] += 1;
            // If the links are unknown after a capture of the stretch, the link ends there. The link is counted again
            // from the next capture that tells, if that capture has the link.
            let within = |&&(after, _): &&(usize, i64)| (stretch.first + 1..=stretch.last + 1).contains(&after);
            let mut is_open = true;
            for &(after, since) in unknown.iter().filter(within) {
                sums[period(since)][LINKS] -= 1;
                is_open = after <= stretch.last;
                if is_open {
                    sums[period(history.times[after])][LINKS] += 1;
                }
            }
            // After the run, a capture lacks the link, or is cut and does not tell of it.
            if let Some(&end) = history.times.get(stretch.last + 1).filter(|_| is_open) {
                sums[period(end)][LINKS] -= 1;
            }
        }
    })?;
    for &time in first_known.iter().filter(|&&time| time < i64::MAX) {
        sums[period(time)][FIRST_SEEN_URLS] += 1;
    }
    let mut all = vec![[0i64; COLUMNS.len()]; starts.len()];
    for worker_sums in context.gather_values(&sums)? {
        all.iter_mut().zip(worker_sums).for_each(|(sum, added)| (0..COLUMNS.len()).for_each(|at| sum[at] += added[at]));
    }
    let span = span((0..all.len()).filter(|&at| all[at][CAPTURES] > 0));
    let sheet = (context.worker.index() == 0).then(|| sheet(starts[span.clone()].to_vec(), all[span].to_vec()));
    Ok(Found::of_worker().with_sheet(sheet))
}

/// Returns the runs of captures that count and for which `is_open` holds, between two captures at `times`. For each
/// run: the number of times before the run, and the time of the first capture of the run. Cost: the captures of the
/// page, if any is blank or cut.
fn runs_after(page: &Page, times: &[i64], is_open: impl Fn(&CaptureTime) -> bool) -> Vec<(usize, i64)> {
    let mut runs: Vec<(usize, i64)> = Vec::new();
    if page.blank.is_empty() && !page.captures().has_cut() {
        return runs;
    }
    let counts = |capture: &CaptureTime| is_open(capture) && Failures::End.counts(capture.status);
    for capture in page.captures().iter().filter(counts) {
        let before = times.partition_point(|&time| time < capture.time);
        if runs.last().is_none_or(|run| run.0 != before) {
            runs.push((before, capture.time));
        }
    }
    runs
}

/// Visits each page of this worker, and returns when each of its URLs was first captured or linked to. The time is
/// `i64::MAX` for a URL that was never captured and that no known capture links to. `links` has all links of the pages.
pub(super) fn when_first_known(
    context: &mut AnalysisContext<'_>,
    links: Timed,
    mut visit: impl FnMut(&Page, &History),
) -> Result<Vec<i64>, Stopped> {
    let slice = TimedSlice::of(context, links)?.into_at(0);
    let mut first_linked = vec![i64::MAX; slice.mirrors.uids.len()];
    let mut first_known = vec![i64::MAX; slice.graph.urls()];
    // The slice has exactly the pages with links, in the same order, and their links in the same order.
    let mut linked = 0;
    each(context, Window::ALWAYS, |index, page, history| {
        first_known[index] = page.timestamps[0];
        let links = if page.links.is_empty() { &[] } else { slice.graph.links_of(linked) };
        linked += usize::from(!page.links.is_empty());
        // Each link of a page is in a known capture, so each link has a stretch.
        let by_link = history.stretches.chunk_by(|one, next| one.link == next.link);
        for (stretches, mirror) in by_link.zip(links) {
            let first = &mut first_linked[mirror.index()];
            *first = (*first).min(history.times[stretches[0].first]);
        }
        visit(page, history);
        Ok(())
    })?;
    let linked = slice.settle(context, &first_linked, i64::MAX, i64::min)?;
    first_known.iter_mut().zip(linked).for_each(|(first, linked)| *first = (*first).min(linked));
    Ok(first_known)
}

fn sheet(starts: Vec<i64>, mut sums: Vec<[i64; COLUMNS.len()]>) -> Sheet {
    for column in [LIVING, UNKNOWN, LINKS] {
        (1..sums.len()).for_each(|at| sums[at][column] += sums[at - 1][column]);
    }
    let mut columns = vec![("period", SheetColumn::Times(starts))];
    for (at, name) in COLUMNS.into_iter().enumerate() {
        columns.push((name, SheetColumn::Counts(sums.iter().map(|sums| sums[at].unsigned_abs()).collect())));
    }
    Sheet::new("by period", true, columns)
}
