//! The links of a page to pages that are gone as of a time.
//!
//! A link is dead if the capture of its URL that decides then is a failure. Cost: the captures and links of the page,
//! and the captures of each link.

use super::{Ask, Direction, Facts, Given, Program, Question, Rest};
use crate::record::capture::{CaptureTime, deciding, ended_by, is_unknown};
use crate::record::time::{AsOf, Window};
use crate::record::uid::Uid;

/// The question, about one page.
#[derive(Debug)]
pub struct DeadLinkSearch {
    page: Uid,
    as_of: AsOf,
    links: Option<Rest>,
    /// Whether the captures of the page were asked for, if they are needed.
    is_begun: bool,
    found: DeadLinks,
}

/// The links of a page to pages that are gone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeadLinks {
    /// The dead links, in order.
    pub dead: Vec<DeadLink>,
    /// The number of links of the page.
    pub links: usize,
    /// The number of links to URLs without a capture that decides.
    pub unknown: usize,
    /// Whether the capture of the page that decides leaves links unknown.
    pub is_open: bool,
}

/// A link to a page that is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeadLink {
    /// The URL of the link.
    pub link: Uid,
    /// The failure that ended the page.
    pub ended_by: CaptureTime,
    /// The failure that decides.
    pub last: CaptureTime,
}

impl DeadLinkSearch {
    /// Asks about a page.
    pub fn new(page: Uid, as_of: AsOf) -> Self {
        Self { page, as_of, links: None, is_begun: false, found: DeadLinks::default() }
    }
}

impl Program for DeadLinkSearch {
    fn asks(&mut self, facts: Facts) -> Option<Ask<'_>> {
        if facts.has_unknown && !self.is_begun {
            return Some(Ask::Captures(std::slice::from_ref(&self.page)));
        }
        let Some(links) = &self.links else {
            return Some(Ask::Links(std::slice::from_ref(&self.page), Direction::Out, Window::AsOf(self.as_of)));
        };
        (!links.is_done()).then(|| Ask::Captures(links.items()))
    }

    fn take(&mut self, given: Given) {
        match (given, &mut self.links) {
            (Given::Lists(lists), links) => {
                self.found.links = lists.values().len();
                *links = Some(Rest::of(lists.values().to_vec()));
            }
            (Given::Captures(captures), None) => {
                self.is_begun = true;
                self.found.is_open = is_unknown(captures.values(), Window::AsOf(self.as_of));
            }
            (Given::Captures(captures), Some(links)) => {
                for (&link, captures) in links.done(captures.len()).iter().zip(captures.iter()) {
                    match deciding(captures, self.as_of) {
                        None => self.found.unknown += 1,
                        Some(last) if last.status.is_failure() => {
                            let ended_by = ended_by(captures, self.as_of).unwrap_or(last);
                            self.found.dead.push(DeadLink { link, ended_by, last });
                        }
                        Some(_) => {}
                    }
                }
            }
            _ => {}
        }
    }

    fn bytes(&self) -> usize {
        let links = self.links.as_ref().map_or(0, |links| links.items.len());
        size_of::<Uid>() * links + size_of_val(&*self.found.dead)
    }
}

impl Question for DeadLinkSearch {
    type Answer = DeadLinks;

    fn answer(self) -> DeadLinks {
        self.found
    }
}
