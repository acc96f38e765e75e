//! The links that pages may have as of a time: the capture that decides leaves them unknown, and the last capture that
//! tells of them has them.
//!
//! Cost: the runs and captures of the pages.

use super::{Ask, Facts, Given, Program, Question, Rest};
use crate::record::batch::Batch;
use crate::record::capture::lifespan::Lifespan;
use crate::record::capture::{CaptureTime, Unclear, deciding};
use crate::record::time::AsOf;
use crate::record::uid::Uid;

/// The question, about pages of which [`Unknown`](super::unknown::Unknown) says that links are unknown.
#[derive(Debug)]
pub struct LastKnown {
    pages: Rest,
    as_of: AsOf,
    found: Batch<Uid>,
}

impl LastKnown {
    /// Asks about pages as of a time.
    pub fn new(pages: &[Uid], as_of: AsOf) -> Self {
        Self { pages: Rest::of(pages.to_vec()), as_of, found: Batch::default() }
    }
}

/// The links of a page that it may have as of a time, rising, given the runs of its links in order.
fn last_known(runs: &[Lifespan], captures: &[CaptureTime], as_of: AsOf) -> Vec<Uid> {
    let unclear = Unclear::of(captures, as_of);
    let Some(decides) = deciding(captures, as_of) else { return Vec::new() };
    let tells = |capture: &&CaptureTime| capture.is_whole() && as_of.failures.counts(capture.status);
    let latest_whole = captures.iter().filter(tells).map(|capture| capture.time).rfind(|&time| time <= decides.time);
    let of_link = runs.chunk_by(|one, next| one.link == next.link);
    let is_open = |runs: &&[Lifespan]| {
        let begun = runs.partition_point(|run| run.first <= decides.time);
        let latest = begun.checked_sub(1).map(|at| (runs[at].first, runs[at].last));
        // A whole capture after the run lacks the link.
        let is_last = |(_, last): (i64, i64)| latest_whole.is_none_or(|whole| whole <= last) && last >= as_of.since;
        latest.is_some_and(is_last) && unclear.since(latest).is_some()
    };
    of_link.filter(is_open).map(|runs| runs[0].link).collect()
}

impl Program for LastKnown {
    fn asks(&mut self, _: Facts) -> Option<Ask<'_>> {
        (!self.pages.is_done()).then(|| Ask::Lives(self.pages.items()))
    }

    fn take(&mut self, given: Given) {
        if let Given::Lives(runs, captures) = given {
            self.pages.done(runs.len());
            for (runs, captures) in runs.iter().zip(captures.iter()) {
                self.found.push(&last_known(runs, captures, self.as_of));
            }
        }
    }

    fn bytes(&self) -> usize {
        size_of_val(self.found.values())
    }
}

impl Question for LastKnown {
    /// For each page, the links, rising.
    type Answer = Batch<Uid>;

    fn answer(self) -> Batch<Uid> {
        self.found
    }
}
