//! Reads pages one by one for statistics of how they change. Each page comes as a [`History`] of the captures in a
//! window that tell of links: whole and cut captures, and failures that end the page.
//!
//! Captures with unknown links are passed over: a link that is in the known captures on both sides of such a capture
//! was there all the time. Failures of the server are passed over, too. A failure that ends the page is a capture
//! without links. Memory: a page.

use super::AnalysisContext;
use crate::Error;
use crate::stretches::{captures_selected, for_each_link, for_each_run};
use std::borrow::Cow;
use std::ops::Range;
use webstrata_engine::Stopped;
use webstrata_layers::record::capture::fate::{self, Fate};
use webstrata_layers::{AsOf, Page, Uid, Window};

/// The captures of a page in a window that tell of links, and when they have each link.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct History {
    /// The times of these captures, rising.
    pub(super) times: Vec<i64>,
    /// The lifespans of links, given by the first and the last index in `times`. Sorted by link, then by index.
    pub(super) stretches: Vec<LinkStretch>,
    /// The runs of links in the same form, if any of the captures is cut; else they are the lifespans.
    cut_runs: Option<Vec<LinkStretch>>,
    /// Whether each capture tells which links the page lacks ([`Page::tells`]): a cut capture does not.
    tells: Vec<bool>,
}

/// A stretch of captures with a link; see [`History::stretches`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LinkStretch {
    pub(super) link: Uid,
    pub(super) first: usize,
    pub(super) last: usize,
}

impl History {
    /// Returns the time of the first capture that lacks the link after the stretch, if there is one.
    pub(super) fn end(&self, stretch: &LinkStretch) -> Option<i64> {
        (stretch.last + 1..self.times.len()).find(|&at| self.tells[at]).map(|at| self.times[at])
    }

    /// Whether a capture lacks the link before the stretch: the link has come then.
    pub(super) fn has_come(&self, stretch: &LinkStretch) -> bool {
        self.tells[..stretch.first].contains(&true)
    }

    /// The runs of links: stretches in which each capture has the link.
    pub(super) fn runs(&self) -> &[LinkStretch] {
        self.cut_runs.as_deref().unwrap_or(&self.stretches)
    }

    /// The history without cut captures, for comparisons of one capture with the next.
    pub(super) fn of_whole_captures(&self) -> Cow<'_, History> {
        if self.cut_runs.is_none() {
            return Cow::Borrowed(self);
        }
        let kept = |end: usize| self.tells[..end].iter().filter(|&&tells| tells).count();
        let moved = |stretch: &LinkStretch| {
            let (first, end) = (kept(stretch.first), kept(stretch.last + 1));
            (first < end).then(|| LinkStretch { link: stretch.link, first, last: end - 1 })
        };
        let times: Vec<i64> =
            self.times.iter().zip(&self.tells).filter(|(_, tells)| **tells).map(|(&time, _)| time).collect();
        let tells = vec![true; times.len()];
        Cow::Owned(History {
            times,
            stretches: self.stretches.iter().filter_map(moved).collect(),
            cut_runs: None,
            tells,
        })
    }

    /// Replaces this history by the history of a page in a window. A window as of a time selects all captures up to
    /// that time.
    fn set(&mut self, page: &Page, window: Window) -> Result<(), Error> {
        let window = match window {
            Window::AsOf(AsOf { time, .. }) => Window::Seen { from: i64::MIN, to: time },
            seen => seen,
        };
        self.times.clear();
        self.stretches.clear();
        let index = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        let says = |&at: &u32| page.tells(at) || (page.status(at).is_cut() && !page.is_blank(at));
        let telling: Vec<u32> = captures_selected(page, window).map(index).filter(says).collect();
        self.times.extend(telling.iter().map(|&at| page.timestamps[at as usize]));
        self.tells.clear();
        self.tells.extend(telling.iter().map(|&at| page.tells(at)));
        let capture_index = |at: u32| telling.partition_point(|&other| other < at);
        let stretch = |link, first, last| LinkStretch { link, first: capture_index(first), last: capture_index(last) };
        self.cut_runs = None;
        if self.tells.contains(&false) {
            let runs = self.cut_runs.insert(Vec::new());
            for_each_run(page, window, |link, found| {
                runs.extend(found.iter().map(|&(first, last)| stretch(link, first, last)));
                Ok(())
            })?;
        }
        for_each_link(page, window, |link, stretches| {
            self.stretches.extend(stretches.iter().map(|found| stretch(link, found.first, found.last)));
            Ok(())
        })
    }
}

/// Returns what happens to a page, in order of time ([`mod@webstrata_layers::record::capture::fate`] has the rule).
pub(super) fn fates(page: &Page) -> Vec<(i64, Fate)> {
    // Without a failure nothing happens after the first capture.
    let captures = if page.statuses.is_empty() { 1 } else { usize::MAX };
    fate::fates(page.captures().iter().take(captures))
}

/// Calls `visit` with each page of this worker: its index among the URLs of the worker, the page, and its history in
/// the window.
pub(super) fn each(
    context: &mut AnalysisContext<'_>,
    window: Window,
    mut visit: impl FnMut(usize, &Page, &History) -> Result<(), Error>,
) -> Result<(), Stopped> {
    let first = context.my_uids().start;
    let mut history = History::default();
    context.each_page(|page| {
        history.set(page, window)?;
        visit(usize::try_from(page.uid - first).unwrap_or(usize::MAX), page, &history)
    })
}

/// The range from the first to the last of these indexes of periods, which are those with captures. The periods of a
/// store's counts also cover captures that were removed, until the next merge.
pub(super) fn span(periods: impl IntoIterator<Item = usize>) -> Range<usize> {
    periods
        .into_iter()
        .fold(0..0, |span, at| if span.is_empty() { at..at + 1 } else { span.start.min(at)..span.end.max(at + 1) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use webstrata_layers::Change;

    #[test]
    fn unknown_captures_are_passed_over() {
        let changes = [(0, 2), (2, 0), (2, 1), (2, 3)].map(|(link, capture)| Change { link, capture }).to_vec();
        let page = Page {
            uid: Uid(1),
            timestamps: vec![10, 20, 30, 40],
            blank: vec![1],
            links: [5, 6, 7].map(Uid).to_vec(),
            changes,
            statuses: vec![],
        };
        let mut history = History::default();
        history.set(&page, Window::ALWAYS).unwrap();
        assert_eq!(history.times, [10, 30, 40]);
        // Link 7 is there from the second capture to the third, and the second capture has unknown links.
        let stretches =
            [(5, 0, 0), (6, 0, 2), (7, 1, 1)].map(|(link, first, last)| LinkStretch { link: Uid(link), first, last });
        assert_eq!(history.stretches, stretches);
        assert_eq!(history.end(&stretches[0]), Some(30));
        assert_eq!(history.end(&stretches[1]), None);
        history.set(&page, Window::Seen { from: 25, to: 35 }).unwrap();
        assert_eq!(history.times, [30]);
        assert_eq!(history.stretches.len(), 2);
        history.set(&page, Window::as_of(5)).unwrap();
        assert_eq!(history, History::default());
    }
}
