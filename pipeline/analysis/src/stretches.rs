//! The links of a page in a window of time, with the captures that have them.
//!
//! A *stretch* is a lifespan of a link, cut to the window. Between two stretches of a link is a capture that tells
//! ([`Page::tells`]) and lacks the link: a whole capture without the link, or a failure that ends the page. A *run*
//! also ends before a cut capture without the link ([`mod@webstrata_layers::record::capture`]). Cost: the links and
//! changes of the page.

use crate::Error;
use std::ops::Range;
use webstrata_layers::record::presence;
use webstrata_layers::{Page, Uid, Window};

/// The first and the last capture of a run, as indexes into the timestamps of the page. Neither is blank.
pub(crate) type Run = (u32, u32);

/// A lifespan of a link in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stretch {
    /// The first capture with the link, as an index into the timestamps of the page.
    pub(crate) first: u32,
    /// The last capture with the link.
    pub(crate) last: u32,
    /// The number of captures with the link.
    pub(crate) captures: u64,
    /// The number of cut captures among them.
    pub(crate) cut: u64,
}

/// Calls `visit` with each link that is in a capture of the window, and with the stretches of the link. Links rise, and
/// each has at least one stretch.
pub(crate) fn for_each_link(
    page: &Page,
    window: Window,
    mut visit: impl FnMut(Uid, &[Stretch]) -> Result<(), Error>,
) -> Result<(), Error> {
    let has_cut = page.captures().has_cut();
    let mut stretches: Vec<Stretch> = Vec::new();
    for_each_run(page, window, |link, runs| {
        stretches.clear();
        for &(first, last) in runs {
            let is_cut = |at: &u32| page.status(*at).is_cut() && !page.is_blank(*at);
            let cut = if has_cut { (first..=last).filter(is_cut).count() as u64 } else { 0 };
            let run = Stretch { first, last, captures: page.marked_between(first, last), cut };
            match stretches.last_mut().filter(|_| has_cut) {
                Some(before) if next_telling(page, before.last).is_none_or(|at| first <= at) => {
                    (before.last, before.captures) = (last, before.captures + run.captures);
                    before.cut += run.cut;
                }
                _ => stretches.push(run),
            }
        }
        visit(link, &stretches)
    })
}

/// As [`for_each_link`], with the runs of each link.
pub(crate) fn for_each_run(
    page: &Page,
    window: Window,
    mut visit: impl FnMut(Uid, &[Run]) -> Result<(), Error>,
) -> Result<(), Error> {
    let Some((first, last)) = page.captures().selected(window) else { return Ok(()) };
    let ends = page.captures().ends();
    let captures = u32::try_from(page.timestamps.len()).unwrap_or(u32::MAX);
    let mut changed = presence::by_link(&page.changes).peekable();
    let mut runs = Vec::new();
    for (at, &link) in (0u32..).zip(&page.links) {
        runs.clear();
        match changed.next_if(|(link, _)| *link == at) {
            None => alive(page, &ends, (first, last), &mut runs),
            Some((_, link_changes)) => {
                for (from, to) in presence::intervals(link_changes, captures) {
                    alive(page, &ends, (from.max(first), to.min(last)), &mut runs);
                }
            }
        }
        if !runs.is_empty() {
            visit(link, &runs)?;
        }
    }
    Ok(())
}

/// Appends the runs between captures that end the page, from the captures `first..=last` that have the link.
fn alive(page: &Page, ends: &[usize], (first, last): Run, runs: &mut Vec<Run>) {
    if first <= last {
        runs.extend(page.captures().between_ends(ends, first as usize, last as usize + 1));
    }
}

/// Returns the first capture after `after` that tells which links the page lacks.
pub(crate) fn next_telling(page: &Page, after: u32) -> Option<u32> {
    let end = u32::try_from(page.timestamps.len()).unwrap_or(u32::MAX);
    (after + 1..end).find(|&at| page.tells(at))
}

/// Returns the number of captures of all stretches that have the link.
pub(crate) fn captures_of(stretches: &[Stretch]) -> u64 {
    stretches.iter().map(|stretch| stretch.captures).sum()
}

/// Returns the number of captures that tell whether the page has a link, given the number of captures that tell of
/// every link ([`captures_telling`]): these, and the cut captures with the link.
pub(crate) fn telling_of(telling: u64, stretches: &[Stretch]) -> u64 {
    telling + stretches.iter().map(|stretch| stretch.cut).sum::<u64>()
}

/// Returns the number of captures that tell ([`Page::tells`]) among those that the window selects. The captures with a
/// link are a share of this number. A failure of the server tells nothing about a page, and neither does a capture with
/// unknown links. A cut capture tells only of the links that were found.
pub(crate) fn captures_telling(page: &Page, window: Window) -> u64 {
    let selected = captures_selected(page, window);
    let index = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
    selected.filter(|&at| page.tells(index(at))).count() as u64
}

/// Returns the captures of the page that the window selects, with known or unknown links.
pub(crate) fn captures_selected(page: &Page, window: Window) -> Range<usize> {
    match window {
        Window::Seen { from, to } => {
            let first = page.timestamps.partition_point(|&time| time < from);
            first..page.timestamps.partition_point(|&time| time <= to).max(first)
        }
        Window::AsOf(as_of) => page.captures().deciding(as_of).map_or(0..0, |at| at as usize..at as usize + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use webstrata_layers::{Change, Cut, Status, StatusChange};

    /// A page with captures 0 to 5, where the links of 0 and 3 are unknown. Link 7 is in captures 1, 2 and 5, link 9 in
    /// all.
    fn page() -> Page {
        let change = |capture| Change { link: 0, capture };
        Page {
            uid: Uid(1),
            timestamps: vec![10, 20, 30, 40, 50, 60],
            blank: vec![0, 3],
            links: [7, 9].map(Uid).to_vec(),
            changes: vec![change(4), change(5)],
            statuses: vec![],
        }
    }

    fn stretches(window: Window) -> Vec<(u64, Vec<Run>)> {
        stretches_of(&page(), window)
    }

    fn stretches_of(page: &Page, window: Window) -> Vec<(u64, Vec<Run>)> {
        let mut found = Vec::new();
        for_each_link(page, window, |link, stretches| {
            found.push((link.0, stretches.iter().map(|stretch| (stretch.first, stretch.last)).collect()));
            Ok(())
        })
        .unwrap();
        found
    }

    #[test]
    fn stretches_begin_and_end_at_known_captures_of_the_window() {
        assert_eq!(stretches(Window::ALWAYS), [(7, vec![(1, 2), (5, 5)]), (9, vec![(1, 5)])]);
        assert_eq!(stretches(Window::Seen { from: 25, to: 55 }), [(7, vec![(2, 2)]), (9, vec![(2, 4)])]);
        assert_eq!(stretches(Window::Seen { from: 35, to: 55 }), [(9, vec![(4, 4)])]);
        assert_eq!(stretches(Window::as_of(45)), []);
        assert_eq!(stretches(Window::as_of(35)), [(7, vec![(2, 2)]), (9, vec![(2, 2)])]);
    }

    #[test]
    fn stretches_go_on_in_cut_captures_and_runs_do_not() {
        // Captures 1 and 4 are cut. Link 7 is in captures 0, 2 and 4; link 9 is in capture 1 alone.
        let change = |link, capture| Change { link, capture };
        let cut = Status::cut(200, Cut::Short).unwrap();
        let status = |capture, status| StatusChange { capture, status };
        let changes = [(0, 1), (0, 2), (0, 5), (1, 0), (1, 1), (1, 2)];
        let page = Page {
            uid: Uid(1),
            timestamps: vec![10, 20, 30, 40, 50, 60],
            blank: vec![3],
            links: [7, 9].map(Uid).to_vec(),
            changes: changes.map(|(link, capture)| change(link, capture)).to_vec(),
            statuses: vec![status(1, cut), status(2, Status::OK), status(4, cut), status(5, Status::OK)],
        };
        assert_eq!(page.flaw(), None);
        assert_eq!(stretches_of(&page, Window::ALWAYS), [(7, vec![(0, 4)]), (9, vec![(1, 1)])]);
        let mut counted = Vec::new();
        for_each_link(&page, Window::ALWAYS, |_, stretches| {
            counted.push((captures_of(stretches), telling_of(captures_telling(&page, Window::ALWAYS), stretches)));
            Ok(())
        })
        .unwrap();
        // Captures 0, 2 and 5 are whole.
        assert_eq!(counted, [(3, 4), (1, 4)]);
        let mut runs = Vec::new();
        for_each_run(&page, Window::ALWAYS, |_, found| {
            runs.push(found.to_vec());
            Ok(())
        })
        .unwrap();
        assert_eq!(runs, [vec![(0, 0), (2, 4)], vec![(1, 1)]]);
    }

    #[test]
    fn captures_are_counted_that_tell() {
        assert_eq!(captures_telling(&page(), Window::Seen { from: 0, to: 45 }), 2);
        let status = |capture, code| StatusChange { capture, status: Status::new(code).unwrap() };
        // The third capture has unknown links, the fourth is a failure of the server, and at the fifth the page is
        // gone.
        let failing = Page {
            blank: vec![2, 3, 4],
            changes: vec![],
            statuses: vec![status(3, 503), status(4, 404), status(5, 200)],
            ..page()
        };
        assert_eq!(failing.flaw(), None);
        assert_eq!(captures_telling(&failing, Window::ALWAYS), 4);
        assert_eq!(captures_telling(&failing, Window::Seen { from: 0, to: 45 }), 2);
        assert_eq!(captures_selected(&page(), Window::Seen { from: 0, to: 45 }), 0..4);
        assert_eq!(captures_selected(&page(), Window::Seen { from: 45, to: 0 }), 4..4);
        assert_eq!(captures_selected(&page(), Window::as_of(45)), 3..4);
        assert_eq!(captures_selected(&page(), Window::as_of(5)), 0..0);
        assert_eq!([next_telling(&page(), 2), next_telling(&page(), 5)], [Some(4), None]);
    }
}
