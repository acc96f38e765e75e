//! The pages of which it is unknown as of a date whether they link ([`Linking`](crate::Linking) has the rule).
//!
//! For out-links: the page itself, if its links are unknown then. For in-links: the pages that ever linked to the URL
//! and have unknown links then. Cost: the captures of these pages; nothing if no capture has unknown links.

use super::{Ask, Direction, Facts, Given, Precision, Program, Question, Rest};
use crate::record::batch::Batch;
use crate::record::capture::is_unknown;
use crate::record::time::{AsOf, Window};
use crate::record::uid::{Uid, in_order};

/// The question, about several items.
#[derive(Debug)]
pub struct Unknown {
    /// For in-links, the dated items whose sources are needed, and their places among all items.
    targets: Rest,
    places: Vec<(usize, AsOf)>,
    /// The number of targets with an answer.
    found: usize,
    /// For each item, links that are known, so that no capture is needed.
    known: Vec<Vec<Uid>>,
    /// Pages, each with the place of the item that it is asked for and the date; in order once all are there.
    asked: Vec<(Uid, usize, AsOf)>,
    next: usize,
    pages: Option<Rest>,
    unknown: Vec<Vec<Uid>>,
}

impl Unknown {
    /// Asks about UIDs as of one date.
    pub fn new(uids: &[Uid], direction: Direction, as_of: AsOf) -> Self {
        let items: Vec<_> = uids.iter().map(|&uid| (uid, Window::AsOf(as_of))).collect();
        Self::in_windows(&items, direction, None)
    }

    /// Asks about items with a window each. Of an interval, nothing is unknown. `links`: the links of each item in its
    /// window, if the caller has them; the captures of pages that are known to link are then not asked for.
    pub fn in_windows(items: &[(Uid, Window)], direction: Direction, links: Option<&Batch<Uid>>) -> Self {
        let known = |item: usize| links.map_or(&[][..], |links| links.get(item));
        let dated = items.iter().enumerate().filter_map(|(item, &(uid, window))| match window {
            Window::AsOf(as_of) => Some((item, uid, as_of)),
            Window::Seen { .. } => None,
        });
        let mut program = Self {
            targets: Rest::default(),
            places: Vec::new(),
            found: 0,
            known: Vec::new(),
            asked: Vec::new(),
            next: 0,
            pages: None,
            unknown: vec![Vec::new(); items.len()],
        };
        match direction {
            Direction::Out => {
                let empty = dated.filter(|(item, ..)| known(*item).is_empty());
                program.asked = empty.map(|(item, uid, as_of)| (uid, item, as_of)).collect();
            }
            Direction::In(precision) => {
                let mut targets = Vec::new();
                for (item, uid, as_of) in dated {
                    targets.push(uid);
                    program.places.push((item, as_of));
                    // In-links of range precision may name pages that do not link.
                    let known = if precision == Precision::Exact { known(item) } else { &[] };
                    program.known.push(known.to_vec());
                }
                program.targets = Rest::of(targets);
            }
        }
        program
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
        if self.pages.is_none() {
            self.asked.sort_unstable_by_key(|&(page, item, _)| (page, item));
            self.pages = Some(Rest::of(in_order(self.asked.iter().map(|&(page, ..)| page).collect())));
        }
        self.pages.as_ref().filter(|pages| !pages.is_done()).map(|pages| Ask::Captures(pages.items()))
    }

    fn take(&mut self, given: Given) {
        match (given, &mut self.pages) {
            (Given::Lists(sources), _) => {
                for sources in sources.iter() {
                    let (item, as_of) = self.places[self.found];
                    let known = std::mem::take(&mut self.known[self.found]);
                    let open = sources.iter().filter(|source| known.binary_search(source).is_err());
                    self.asked.extend(open.map(|&source| (source, item, as_of)));
                    self.found += 1;
                }
                self.targets.done(sources.len());
            }
            (Given::Captures(captures), Some(pages)) => {
                for (&page, captures) in pages.done(captures.len()).iter().zip(captures.iter()) {
                    while let Some(&(_, item, as_of)) = self.asked.get(self.next).filter(|asked| asked.0 == page) {
                        self.unknown[item].extend(is_unknown(captures, as_of).then_some(page));
                        self.next += 1;
                    }
                }
            }
            _ => {}
        }
    }

    fn bytes(&self) -> usize {
        let known: usize = self.known.iter().map(Vec::len).sum();
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
