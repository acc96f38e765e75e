//! The links of a page in a window of time, with the captures that have them.
//!
//! A *stretch* is a run of captures that have a link, cut to the window. It is given by its first and its last capture,
//! and neither is blank. Between two stretches of a link is a capture that tells ([`Page::tells`]) and lacks the link:
//! a capture without the link, or a failure that ends the page. Cost: the links and changes of the page.

use crate::Error;
use std::ops::Range;
use webstrata_layers::record::presence;
use webstrata_layers::{Page, Uid, Window};

/// The first and the last capture of a stretch, as indexes into the timestamps of the page.
pub(crate) type Stretch = (u32, u32);

/// Calls `visit` with each link that is in a capture of the window, and with the stretches of the link. Links rise, and
/// each has at least one stretch.
pub(crate) fn for_each_link(
    page: &Page,
    window: Window,
    mut visit: impl FnMut(Uid, &[Stretch]) -> Result<(), Error>,
) -> Result<(), Error> {
    let Some((first, last)) = page.captures().selected(window) else { return Ok(()) };
    let ends = page.captures().ends();
    let captures = u32::try_from(page.timestamps.len()).unwrap_or(u32::MAX);
    let mut changed = presence::by_link(&page.changes).peekable();
    let mut stretches = Vec::new();
    for (at, &link) in (0u32..).zip(&page.links) {
        stretches.clear();
        match changed.next_if(|(link, _)| *link == at) {
            None => alive(page, &ends, (first, last), &mut stretches),
            Some((_, link_changes)) => {
                for (from, to) in presence::intervals(link_changes, captures) {
                    alive(page, &ends, (from.max(first), to.min(last)), &mut stretches);
                }
            }
        }
        if !stretches.is_empty() {
            visit(link, &stretches)?;
        }
    }
    Ok(())
}

/// Appends the stretches between captures that end the page, from the captures `first..=last` that have the link.
fn alive(page: &Page, ends: &[usize], (first, last): Stretch, stretches: &mut Vec<Stretch>) {
    if first <= last {
        stretches.extend(page.captures().between_ends(ends, first as usize, last as usize + 1));
    }
}

/// Returns the first capture after `after` that tells which links the page has.
pub(crate) fn next_telling(page: &Page, after: u32) -> Option<u32> {
    let end = u32::try_from(page.timestamps.len()).unwrap_or(u32::MAX);
    (after + 1..end).find(|&at| page.tells(at))
}

/// Returns the number of captures of all stretches that are not blank.
pub(crate) fn captures_of(page: &Page, stretches: &[Stretch]) -> u64 {
    stretches.iter().map(|&(first, last)| page.marked_between(first, last)).sum()
}

/// Returns the number of captures that tell ([`Page::tells`]) among those that the window selects. The captures with a
/// link are a share of this number. A failure of the server tells nothing about a page, and neither does a capture with
/// unknown links.
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
    use webstrata_layers::{Change, Status, StatusChange};

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

    fn stretches(window: Window) -> Vec<(u64, Vec<Stretch>)> {
        let mut found = Vec::new();
        for_each_link(&page(), window, |link, stretches| {
            found.push((link.0, stretches.to_vec()));
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
    fn captures_are_counted_that_tell() {
        assert_eq!(captures_of(&page(), &[(1, 4), (5, 5)]), 4);
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
