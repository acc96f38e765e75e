//! Measures how long cells take to answer random questions from a seed.
//!
//! One thread asks. Percentiles are of the wall clock, question by question; means are of CPU time over all questions.

use std::time::{Duration, Instant};

use webstrata_layers::{Direction, Error, Links, Precision, Sample, Sampling, Uid, Window};

use crate::cells::Cells;

/// The figures of one kind of question.
#[derive(Clone, Debug)]
pub struct Figures {
    /// The kind of question.
    pub what: &'static str,
    /// The number of questions.
    pub questions: usize,
    /// The number of links, or URLs, in all answers.
    pub answers: usize,
    /// The median time of a question.
    pub p50: Duration,
    /// The 99th percentile of the time of a question.
    pub p99: Duration,
    /// The CPU time of all questions.
    pub cpu: Duration,
}

impl Figures {
    /// CPU nanoseconds per question.
    pub fn ns_a_question(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e9 / self.questions.max(1) as f64
    }

    /// Links, or URLs, of answers per CPU second.
    pub fn answers_a_second(&self) -> f64 {
        self.answers as f64 / self.cpu.as_secs_f64().max(1e-9)
    }
}

/// Asks `count` questions of each kind. A window is a quarter of the time from `first` to `last`, at a random place in
/// it.
///
/// # Errors
/// See [`Links::url`].
pub fn measure(cells: &Cells, count: usize, seed: u64, (first, last): (i64, i64)) -> Result<Vec<Figures>, Error> {
    let urls = cells.urls();
    if urls == 0 {
        return Ok(Vec::new());
    }
    let mut random = Random::new(seed);
    let span = last.abs_diff(first);
    let mut windows = Vec::with_capacity(count);
    for _ in 0..count {
        let from = first.saturating_add_unsigned(random.below(span - span / 4 + 1));
        windows.push(Window::Seen { from, to: from.saturating_add_unsigned(span / 4) });
    }
    // Pages, arbitrary URLs, and URLs in proportion to the links to them: most links lead to hubs.
    let (mut pages, mut any, mut linked, mut links) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut tries = 0u64;
    while (pages.len() < count || linked.len() < count) && tries < 100 * count as u64 {
        tries += 1;
        let uid = Uid(random.below(urls));
        any.push(uid);
        cells.links_into(uid, Direction::Out, Window::ALWAYS, &mut links)?;
        if let Some(&link) = usize::try_from(random.below(links.len().max(1) as u64)).ok().and_then(|at| links.get(at))
        {
            pages.push(uid);
            linked.push(link);
        }
    }
    [&mut pages, &mut any, &mut linked].into_iter().for_each(|list| list.truncate(count));
    let texts = any.iter().map(|&uid| cells.url(uid)).collect::<Result<Vec<_>, _>>()?;
    let list = |direction| {
        let windows = &windows;
        move |at: usize, uid: Uid, links: &mut Vec<Uid>| cells.links_into(uid, direction, windows[at], links)
    };
    let (exact, range) = (Direction::In(Precision::Exact), Direction::In(Precision::Range));
    let few = |at: usize, uid: Uid, links: &mut Vec<Uid>| {
        let sample = Sample { count: 10, sampling: Sampling::Consistent, seed };
        cells.sample_into(uid, range, windows[at], sample, links)
    };
    let url = |_: usize, uid: Uid, links: &mut Vec<Uid>| {
        links.clear();
        links.push(Uid(cells.url(uid)?.len() as u64));
        Ok(())
    };
    let uid = |at: usize, _: Uid, links: &mut Vec<Uid>| {
        links.clear();
        links.extend(cells.uid(&texts[at])?);
        Ok(())
    };
    Ok(vec![
        ask("out-links of pages", &pages, list(Direction::Out))?,
        ask("in-links of URLs, exact", &any, list(exact))?,
        ask("in-links of URLs, by range", &any, list(range))?,
        ask("in-links of link targets, exact", &linked, list(exact))?,
        ask("in-links of link targets, by range", &linked, list(range))?,
        ask("sample of 10 of them", &linked, few)?,
        ask("UID to URL", &any, url)?,
        ask("URL to UID", &any, uid)?,
    ])
}

fn ask(
    what: &'static str,
    uids: &[Uid],
    mut question: impl FnMut(usize, Uid, &mut Vec<Uid>) -> Result<(), Error>,
) -> Result<Figures, Error> {
    let mut links = Vec::new();
    let mut all = |times: Option<&mut Vec<Duration>>| -> Result<usize, Error> {
        let (mut answers, mut times) = (0, times);
        for (at, &uid) in uids.iter().enumerate() {
            let start = times.is_some().then(Instant::now);
            question(at, uid, &mut links)?;
            if let (Some(times), Some(start)) = (times.as_mut(), start) {
                times.push(start.elapsed());
            }
            answers += links.len();
        }
        Ok(answers)
    };
    all(None)?;
    let start = cpu();
    let answers = all(None)?;
    let cpu = cpu().saturating_sub(start);
    let mut times = Vec::with_capacity(uids.len());
    all(Some(&mut times))?;
    times.sort_unstable();
    let percentile = |share: usize| times.get(times.len() * share / 100).copied().unwrap_or_default();
    Ok(Figures { what, questions: uids.len(), answers, p50: percentile(50), p99: percentile(99), cpu })
}

/// The CPU time of this thread.
fn cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// A seeded random number generator (xorshift).
pub struct Random(u64);

impl Random {
    /// The generator of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// The next number.
    #[expect(clippy::should_implement_trait, reason = "it has no end")]
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A random number below `end`, which must not be 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// A random index of a list of `length` items, which must not be empty.
    pub fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap_or(0)
    }

    /// Shuffles items into random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        (1..items.len()).for_each(|at| items.swap(at, self.index(at + 1)));
    }
}
