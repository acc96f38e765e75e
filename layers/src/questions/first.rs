//! The pages that ever linked to a URL, each with the time of its first capture with the link.
//!
//! Cost: the lifespans of each of these pages.

use super::{Ask, Direction, Facts, Given, Precision, Program, Question, Rest};
use crate::record::time::Window;
use crate::record::uid::{Uid, in_order};

/// The question, about several URLs.
#[derive(Debug)]
pub struct First {
    uids: Rest,
    urls: Vec<Uid>,
    sources: Vec<Uid>,
    pages: Option<Rest>,
    firsts: Vec<Vec<(i64, Uid)>>,
}

impl First {
    /// Asks about URLs.
    pub fn new(urls: &[Uid]) -> Self {
        let uids = Rest::of(urls.to_vec());
        Self { uids, urls: urls.to_vec(), sources: Vec::new(), pages: None, firsts: vec![Vec::new(); urls.len()] }
    }
}

impl Program for First {
    fn asks(&mut self, _: Facts) -> Option<Ask<'_>> {
        if !self.uids.is_done() {
            return Some(Ask::Links(self.uids.items(), Direction::In(Precision::Exact), Window::ALWAYS));
        }
        let pages = self.pages.get_or_insert_with(|| Rest::of(in_order(std::mem::take(&mut self.sources))));
        (!pages.is_done()).then(|| Ask::Lifespans(pages.items()))
    }

    fn take(&mut self, given: Given) {
        match (given, &mut self.pages) {
            (Given::Lists(sources), _) => {
                self.sources.extend_from_slice(sources.values());
                self.uids.done(sources.len());
            }
            (Given::Lifespans(lifespans), Some(pages)) => {
                for (&source, lifespans) in pages.done(lifespans.len()).iter().zip(lifespans.iter()) {
                    for (&url, firsts) in self.urls.iter().zip(&mut self.firsts) {
                        let begin = lifespans.partition_point(|lifespan| lifespan.link < url);
                        let first = lifespans.get(begin).filter(|lifespan| lifespan.link == url);
                        firsts.extend(first.map(|lifespan| (lifespan.first, source)));
                    }
                }
            }
            _ => {}
        }
    }

    fn bytes(&self) -> usize {
        let pages = self.pages.as_ref().map_or(self.sources.len(), |pages| pages.items.len());
        let found: usize = self.firsts.iter().map(Vec::len).sum();
        size_of::<Uid>() * pages + size_of::<(i64, Uid)>() * found
    }
}

impl Question for First {
    /// For each URL, the pages, ordered by time, then by UID.
    type Answer = Vec<Vec<(i64, Uid)>>;

    fn answer(mut self) -> Self::Answer {
        self.firsts.iter_mut().for_each(|firsts| firsts.sort_unstable());
        self.firsts
    }
}
