//! The pages of which it is unknown in a window whether they link ([`is_unknown`] has the rule).
//!
//! For out-links: the page itself, if a capture leaves its links unknown. For in-links: the pages that ever linked to
//! the URL, are not known to link in the window, and have a capture that leaves their links unknown. As of a time, only
//! the capture that decides matters. Cost: the captures of these pages; nothing if all captures of the graph are whole.

use super::{Ask, Direction, Facts, Given, Precision, Program, Question, Rest};
use crate::record::batch::Batch;
use crate::record::capture::{CaptureTime, deciding, is_unknown};
use crate::record::time::Window;
use crate::record::uid::{Uid, in_order};

/// The question, about several items.
#[derive(Debug)]
pub struct Unknown {
    items: Vec<(Uid, Window)>,
    /// For in-links, the items whose sources are needed.
    targets: Rest,
    /// For in-links, the links of each item that are known, so that no capture is needed; `None` if the caller has
    /// none.
    known: Option<Vec<Vec<Uid>>>,
    /// Pages, each with the place of the item that it is asked for; in order once all are there.
    asked: Vec<(Uid, usize)>,
    next: usize,
    pages: Option<Rest>,
    unknown: Vec<Vec<Uid>>,
    /// Items with pages that may be known to link: their captures are not all unknown. In order.
    doubted: Vec<usize>,
    /// Items with one window, whose links in it are asked for, and their places.
    checked: (Rest, Vec<usize>),
}

impl Unknown {
    /// Asks about UIDs in one window.
    pub fn new(uids: &[Uid], direction: Direction, window: Window) -> Self {
        let items: Vec<_> = uids.iter().map(|&uid| (uid, window)).collect();
        Self::in_windows(&items, direction, None)
    }

    /// Asks about items with a window each. `links`: the links of each item in its window, if the caller has them; for
    /// in-links, the captures of pages that are known to link are then not asked for.
    pub fn in_windows(items: &[(Uid, Window)], direction: Direction, links: Option<&Batch<Uid>>) -> Self {
        let uids = || items.iter().map(|(uid, _)| *uid);
        // In-links of range precision may name pages that do not link.
        let links = links.filter(|_| direction == Direction::In(Precision::Exact));
        Self {
            targets: if direction == Direction::Out { Rest::default() } else { Rest::of(uids().collect()) },
            known: links.map(|links| links.iter().map(<[Uid]>::to_vec).collect()),
            asked: if direction == Direction::Out { uids().zip(0..).collect() } else { Vec::new() },
            next: 0,
            pages: None,
            unknown: vec![Vec::new(); items.len()],
            doubted: Vec::new(),
            checked: (Rest::default(), Vec::new()),
            items: items.to_vec(),
        }
    }

    /// Adds a page to the unknown pages of the items that it is asked for, if its captures leave links unknown.
    fn add(&mut self, page: Uid, captures: &[CaptureTime], is_inward: bool) {
        while let Some(&(_, item)) = self.asked.get(self.next).filter(|asked| asked.0 == page) {
            let window = self.items[item].1;
            if is_unknown(captures, window) {
                self.unknown[item].push(page);
                let may_link = match window {
                    Window::AsOf(as_of) => deciding(captures, as_of).is_some_and(|capture| capture.known),
                    Window::Seen { .. } => true,
                };
                if is_inward && self.known.is_none() && may_link && self.doubted.last() != Some(&item) {
                    self.doubted.push(item);
                }
            }
            self.next += 1;
        }
    }

    /// Chooses the next doubted items with one window.
    fn check_next(&mut self) {
        if !self.checked.0.is_done() {
            return;
        }
        let window = self.doubted.last().map(|&item| self.items[item].1);
        let end = self.doubted.iter().rposition(|&item| Some(self.items[item].1) != window).map_or(0, |at| at + 1);
        let places = self.doubted.split_off(end);
        self.checked = (Rest::of(places.iter().map(|&item| self.items[item].0).collect()), places);
    }
}

impl Program for Unknown {
    fn asks(&mut self, facts: Facts) -> Option<Ask<'_>> {
        if !facts.has_unknown {
            return None;
        }
        if !self.targets.is_done() {
            return Some(Ask::Links(self.targets.items(), Direction::In(Precision::Exact), Window::ALWAYS));
        }
        let pages = self.pages.get_or_insert_with(|| {
            self.asked.sort_unstable();
            Rest::of(in_order(self.asked.iter().map(|&(page, _)| page).collect()))
        });
        if !pages.is_done() {
            return self.pages.as_ref().map(|pages| Ask::Captures(pages.items()));
        }
        self.doubted.sort_unstable();
        self.doubted.dedup();
        self.check_next();
        let (checked, places) = &self.checked;
        let window = places.first().map(|&item| self.items[item].1)?;
        (!checked.is_done()).then(|| Ask::Links(checked.items(), Direction::In(Precision::Exact), window))
    }

    fn take(&mut self, given: Given) {
        match (given, &mut self.pages) {
            (Given::Lists(sources), None) => {
                let item = self.targets.done_count();
                for (item, sources) in (item..).zip(sources.iter()) {
                    let known = self.known.as_ref().map_or(&[][..], |known| &known[item]);
                    let open = sources.iter().filter(|source| known.binary_search(source).is_err());
                    self.asked.extend(open.map(|&source| (source, item)));
                }
                self.targets.done(sources.len());
            }
            (Given::Captures(captures), Some(pages)) => {
                let is_inward = !self.targets.items.is_empty();
                for (page, captures) in pages.done(captures.len()).to_vec().into_iter().zip(captures.iter()) {
                    self.add(page, captures, is_inward);
                }
            }
            (Given::Lists(links), Some(_)) => {
                let (checked, places) = &mut self.checked;
                let first = checked.done_count();
                for (&item, links) in places[first..].iter().zip(links.iter()) {
                    self.unknown[item].retain(|page| links.binary_search(page).is_err());
                }
                checked.done(links.len());
            }
            _ => {}
        }
    }

    fn bytes(&self) -> usize {
        let known: usize = self.known.iter().flatten().map(Vec::len).sum();
        size_of_val(&*self.asked) + size_of::<Uid>() * (known + self.asked.len())
    }
}

impl Question for Unknown {
    /// For each item, the pages, rising.
    type Answer = Batch<Uid>;

    fn answer(self) -> Batch<Uid> {
        let mut lists = Batch::default();
        self.unknown.iter().for_each(|pages| lists.push(pages));
        lists
    }
}
