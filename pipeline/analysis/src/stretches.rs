//! The links of a page in a window of time, with the captures that have them.
//!
//! A *stretch* is a run of captures that have a link, cut to the window: its first and its last capture, both known.
//! Between two stretches of a link lies a known capture without it. Cost: links and changes of the page.

use crate::Error;
use std::ops::Range;
use webstrata_layers::record::presence;
use webstrata_layers::{Page, Uid, Window, captures_in};

/// The first and the last capture of a stretch, as indexes of the page's timestamps.
pub(crate) type Stretch = (u32, u32);

/// Calls `visit` with each link that is in a known capture of the window, rising, and its stretches, of which there is
/// at least one.
pub(crate) fn for_each_link(
    page: &Page,
    window: Window,
    mut visit: impl FnMut(Uid, &[Stretch]) -> Result<(), Error>,
) -> Result<(), Error> {
    let Some((first, last)) = captures_in(&page.timestamps, &page.unknown, window) else { return Ok(()) };
    let captures = u32::try_from(page.timestamps.len()).unwrap_or(u32::MAX);
    let mut changed = presence::by_link(&page.changes).peekable();
    let mut stretches = Vec::new();
    for (at, &link) in (0u32..).zip(&page.links) {
        stretches.clear();
        match changed.next_if(|(link, _)| *link == at) {
            None => stretches.push((first, last)),
            Some((_, link_changes)) => {
                let lifespans = presence::intervals(link_changes, captures).into_iter();
                stretches.extend(lifespans.filter_map(|ends| known_ends(page, ends.0.max(first), ends.1.min(last))));
            }
        }
        if !stretches.is_empty() {
            visit(link, &stretches)?;
        }
    }
    Ok(())
}

/// The first and the last known capture of `first..=last`.
fn known_ends(page: &Page, first: u32, last: u32) -> Option<Stretch> {
    let is_known = |at: &u32| page.is_known(*at);
    Some(((first..=last).find(is_known)?, (first..=last).rev().find(is_known)?))
}

/// The next known capture after one.
pub(crate) fn next_known(page: &Page, after: u32) -> Option<u32> {
    let end = u32::try_from(page.timestamps.len()).unwrap_or(u32::MAX);
    (after + 1..end).find(|&at| page.is_known(at))
}

/// How many known captures stretches have, all together.
pub(crate) fn captures_of(page: &Page, stretches: &[Stretch]) -> u64 {
    stretches.iter().map(|&(first, last)| page.known_between(first, last)).sum()
}

/// How many known captures of the page the window selects.
pub(crate) fn captures_known(page: &Page, window: Window) -> u64 {
    captures_in(&page.timestamps, &page.unknown, window).map_or(0, |(first, last)| page.known_between(first, last))
}

/// The captures of the page that the window selects, their links known or not.
pub(crate) fn captures_selected(page: &Page, window: Window) -> Range<usize> {
    match window {
        Window::Seen { from, to } => {
            let first = page.timestamps.partition_point(|&time| time < from);
            first..page.timestamps.partition_point(|&time| time <= to).max(first)
        }
        Window::AsOf(at) => {
            let end = page.timestamps.partition_point(|&time| time <= at);
            end.saturating_sub(1)..end
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use webstrata_layers::Change;

    /// Captures 0 to 5, of which 0 and 3 are unknown; link 7 is in 1 and 2, and in 5; link 9 in all.
    fn page() -> Page {
        let change = |capture| Change { link: 0, capture };
        Page {
            uid: Uid(1),
            timestamps: vec![10, 20, 30, 40, 50, 60],
            unknown: vec![0, 3],
            links: [7, 9].map(Uid).to_vec(),
            changes: vec![change(4), change(5)],
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
        assert_eq!(stretches(Window::AsOf(45)), []);
        assert_eq!(stretches(Window::AsOf(35)), [(7, vec![(2, 2)]), (9, vec![(2, 2)])]);
    }

    #[test]
    fn captures_are_counted_where_links_are_known() {
        assert_eq!(captures_of(&page(), &[(1, 4), (5, 5)]), 4);
        assert_eq!(captures_known(&page(), Window::Seen { from: 0, to: 45 }), 2);
        assert_eq!(captures_selected(&page(), Window::Seen { from: 0, to: 45 }), 0..4);
        assert_eq!(captures_selected(&page(), Window::Seen { from: 45, to: 0 }), 4..4);
        assert_eq!(captures_selected(&page(), Window::AsOf(45)), 3..4);
        assert_eq!(captures_selected(&page(), Window::AsOf(5)), 0..0);
        assert_eq!([next_known(&page(), 2), next_known(&page(), 5)], [Some(4), None]);
    }
}
