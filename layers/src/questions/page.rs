//! The links of one page with several spellings ([`Spelled`](crate::Spelled) finds them).
//!
//! As of a date, the latest capture of any spelling that counts decides. Pages that link to any spelling link to the
//! page.

use super::unknown::Unknown;
use super::{Ask, Direction, Facts, Given, Precision, Program, Question, Rest};
use crate::record::batch::Batch;
use crate::record::capture::{self, CaptureTime};
use crate::record::time::{AsOf, Window};
use crate::record::uid::{Uid, in_order};

/// The captures of a page, in order of time, each with the place of its spelling; from the captures of each spelling.
pub fn captures_of_page<'a>(captures: impl IntoIterator<Item = &'a [CaptureTime]>) -> Vec<(CaptureTime, usize)> {
    let spellings = captures.into_iter().enumerate();
    let mut all: Vec<_> =
        spellings.flat_map(|(spelling, list)| list.iter().map(move |&capture| (capture, spelling))).collect();
    all.sort_by_key(|(capture, spelling)| (capture.time, *spelling));
    all
}

/// The spellings whose captures decide as of a time, and whether they leave links unknown: none of the captures is
/// whole. These are the spellings with
/// the latest capture that counts. If several captures are in one second, failures do not count beside other captures.
pub(crate) fn deciding<'a>(captures: impl IntoIterator<Item = &'a [CaptureTime]>, as_of: AsOf) -> (Vec<usize>, bool) {
    let of_each = captures.into_iter().enumerate();
    let decide: Vec<(usize, CaptureTime)> =
        of_each.filter_map(|(spelling, list)| Some((spelling, capture::deciding(list, as_of)?))).collect();
    let latest = decide.iter().map(|(_, capture)| capture.time).max();
    let is_latest = |(_, capture): &&(usize, CaptureTime)| Some(capture.time) == latest;
    let good = decide.iter().filter(is_latest).any(|(_, capture)| !capture.status.is_failure());
    let decide = decide.iter().filter(is_latest).filter(|(_, capture)| !good || !capture.status.is_failure());
    let unknown = good && decide.clone().all(|(_, capture)| !capture.is_whole());
    (decide.map(|(spelling, _)| *spelling).collect(), unknown)
}

/// The question.
#[derive(Debug)]
pub struct PageLinks {
    direction: Direction,
    window: Window,
    spellings: Vec<Uid>,
    step: Step,
    links: Vec<Uid>,
    unknown: Vec<Uid>,
}

#[derive(Debug)]
enum Step {
    /// The captures of the spellings as of a date, to find the spellings that decide.
    Deciding(AsOf, Rest, Batch<CaptureTime>),
    /// The pages of which it is unknown whether they link.
    Unknown(Unknown),
    /// The links of the spellings that decide.
    Links(Rest),
}

impl PageLinks {
    /// Asks for the links of a page, given its spellings.
    pub fn new(spellings: &[Uid], direction: Direction, window: Window) -> Self {
        let all = || Rest::of(spellings.to_vec());
        let step = match (direction, window) {
            (Direction::Out, Window::AsOf(as_of)) => Step::Deciding(as_of, all(), Batch::default()),
            _ => Step::Unknown(Unknown::new(spellings, direction, window)),
        };
        let spellings = spellings.to_vec();
        Self { direction, window, spellings, step, links: Vec::new(), unknown: Vec::new() }
    }
}

impl Program for PageLinks {
    fn asks(&mut self, facts: Facts) -> Option<Ask<'_>> {
        let is_done = match &mut self.step {
            Step::Deciding(_, rest, _) => rest.is_done(),
            Step::Unknown(program) => program.asks(facts).is_none(),
            Step::Links(_) => false,
        };
        if is_done {
            let all = Step::Links(Rest::of(self.spellings.clone()));
            match std::mem::replace(&mut self.step, all) {
                Step::Deciding(as_of, _, captures) => {
                    let (decide, is_unknown) = deciding(captures.iter(), as_of);
                    let decide: Vec<Uid> = decide.into_iter().map(|spelling| self.spellings[spelling]).collect();
                    self.unknown = if is_unknown { decide.clone() } else { Vec::new() };
                    self.step = Step::Links(Rest::of(decide));
                }
                Step::Unknown(program) => self.unknown = program.answer().into_values(),
                Step::Links(_) => {}
            }
        }
        match &mut self.step {
            Step::Deciding(_, rest, _) => Some(Ask::Captures(rest.items())),
            Step::Unknown(program) => program.asks(facts),
            Step::Links(rest) => (!rest.is_done()).then(|| Ask::Links(rest.items(), self.direction, self.window)),
        }
    }

    fn take(&mut self, given: Given) {
        match (&mut self.step, given) {
            (Step::Deciding(_, rest, all), Given::Captures(captures)) => {
                captures.iter().for_each(|captures| all.push(captures));
                rest.done(captures.len());
            }
            (Step::Unknown(program), given) => program.take(given),
            (Step::Links(rest), Given::Lists(links)) => {
                self.links.extend_from_slice(links.values());
                rest.done(links.len());
            }
            _ => {}
        }
    }

    fn bytes(&self) -> usize {
        let inner = if let Step::Unknown(program) = &self.step { program.bytes() } else { 0 };
        inner + size_of::<Uid>() * (self.links.len() + self.unknown.len())
    }
}

impl Question for PageLinks {
    /// The links, and the pages with unknown links: for out-links the spellings, as of a date those that decide; for
    /// in-links pages that may link. Both lists rise.
    type Answer = (Vec<Uid>, Vec<Uid>);

    fn answer(self) -> Self::Answer {
        let (links, mut unknown) = (in_order(self.links), in_order(self.unknown));
        if self.direction == Direction::In(Precision::Exact) {
            // A page that may link to one spelling may be known to link to another.
            unknown.retain(|page| links.binary_search(page).is_err());
        }
        (links, unknown)
    }
}
