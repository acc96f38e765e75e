//! Visits of a crawler: stretches of time with captures, far apart.
//!
//! A crawler comes back to a site after a while, and fetches its pages in nearly the same order as before. The captures
//! of a page are then in one visit after another, at nearly the same place in each. Places say more than gaps do: in
//! a gap, the place of one capture is subtracted from that of another, and the days between visits are added.
//!
//! Times are *positions* here: indexes in the table of times, or units of time (`times`). A visit is an interval of
//! positions.
//!
//! ```text
//! visits      their number (32 bits); of each, the gap after the one before, and its length less 1
//! list        the visit of the first capture, below the number of visits; the step to the visit of each next capture:
//!             0 to the next one, 1 to the same, n to the n-th next; runs of steps to the next;
//!             the place of the first capture in its visit, below the length of the visit; for each next capture, in
//!             the same visit the gap less 1, else its move from the place of the first capture in the visit before
//!             (0, -1, 1, -2, ... as 0, 1, 2, 3, ...), with runs of no move
//! ```

use crate::coding::bits::BitReader;
use crate::error::Damage;

use super::links::{unzigzag, zigzag};
use super::symbols::{Context, Sink, Tables, Token, read_below};

const PART: &str = "strata visits";

/// Positions from `start` on.
#[derive(Clone, Copy)]
struct Visit {
    start: u64,
    length: u64,
}

/// Visits, rising.
#[derive(Clone, Default)]
pub(super) struct Visits(Vec<Visit>);

impl Visits {
    /// The visits of rising captures, each a position and a time. A visit ends where the next capture is more than
    /// `apart` seconds later.
    pub(super) fn of(captures: impl Iterator<Item = (u64, i64)>, apart: u64) -> Self {
        let mut visits: Vec<Visit> = Vec::new();
        let mut last = None;
        for (position, time) in captures {
            match visits.last_mut() {
                Some(visit) if last.is_some_and(|last| time.abs_diff(last) <= apart) => {
                    visit.length = position - visit.start + 1;
                }
                _ => visits.push(Visit { start: position, length: 1 }),
            }
            last = Some(time);
        }
        Self(visits)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Writes the visits.
    pub(super) fn store<S: Sink>(&self, sink: &mut S) {
        sink.raw(self.0.len() as u64, 32);
        let mut end = 0;
        for visit in &self.0 {
            sink.number(Context::Visits, visit.start - end);
            sink.number(Context::Visits, visit.length - 1);
            end = visit.start + visit.length;
        }
    }

    /// Reads the visits that [`Visits::store`] wrote, of positions below `bound`.
    pub(super) fn load(tables: &Tables, bits: &mut BitReader<'_>, bound: u64) -> Result<Self, Damage> {
        let mut visits = Self::default();
        let mut end = 0u64;
        for _ in 0..bits.read_wide(32) {
            let mut number = || tables.numbers(Context::Visits).number(bits);
            let visit = (end.checked_add(number()), number().checked_add(1));
            let (Some(start), Some(length)) = visit else { return Err(Damage::Ends { part: PART }) };
            let is_inside = |end: &u64| *end <= bound && !bits.overran();
            end = start.checked_add(length).filter(is_inside).ok_or(Damage::Ends { part: PART })?;
            visits.0.push(Visit { start, length });
        }
        Ok(visits)
    }

    /// Writes rising positions, each of which is in a visit. `inside` is the context of gaps in a visit.
    pub(super) fn write<S: Sink>(&self, positions: &[u64], inside: Context, sink: &mut S) {
        let visit = |position: &u64| self.0.partition_point(|visit| visit.start <= *position).saturating_sub(1);
        let visits: Vec<usize> = positions.iter().map(visit).collect();
        let (Some(&first), Some(&position)) = (visits.first(), positions.first()) else { return };
        sink.below(first as u64, self.0.len() as u64);
        let steps = visits.windows(2).map(|pair| match pair[1] - pair[0] {
            0 => 1,
            1 => 0,
            step => step as u64,
        });
        with_runs(steps, Context::VisitSteps, sink);
        sink.below(position - self.0[first].start, self.0[first].length);
        let place = |visit: usize, position: u64| position - self.0[visit].start;
        let mut first_place = place(first, position);
        let mut moves = Vec::new();
        for (visit, position) in visits.windows(2).zip(positions.windows(2)) {
            if visit[0] == visit[1] {
                with_runs(moves.drain(..), Context::PlaceMoves, sink);
                sink.number(inside, position[1] - position[0] - 1);
            } else {
                let next = place(visit[1], position[1]);
                moves.push(zigzag(next.wrapping_sub(std::mem::replace(&mut first_place, next))));
            }
        }
        with_runs(moves.drain(..), Context::PlaceMoves, sink);
    }

    /// Reads the positions that [`Visits::write`] wrote, as numbers: their visits first, and then what `time` makes of
    /// each position. Fewer come back from damaged bytes.
    pub(super) fn read(
        &self,
        tables: &Tables,
        bits: &mut BitReader<'_>,
        (count, inside): (u64, Context),
        times: &mut Vec<i64>,
        time: impl Fn(u64) -> Option<i64>,
    ) {
        if count == 0 || self.0.is_empty() {
            return;
        }
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        // Every visit of a run exists, and a step that is not in a run takes a bit. So the list is no longer than the
        // cell has visits and bits.
        let mut visit = read_below(bits, self.0.len() as u64);
        times.push(visit.cast_signed());
        let steps = tables.numbers(Context::VisitSteps);
        while times.len() < count {
            let (step, run) = match steps.read(bits) {
                Token::Gap(0) => (1, 1),
                Token::Gap(1) => (0, 1),
                Token::Gap(step) => (step, 1),
                Token::Run(run) => (1, run),
                Token::End => return,
            };
            for _ in 0..run.min((count - times.len()) as u64) {
                visit = visit.saturating_add(step);
                if visit >= self.0.len() as u64 || bits.overran() {
                    return times.clear();
                }
                times.push(visit.cast_signed());
            }
        }
        let found = self.places(tables, bits, inside, times, time);
        times.truncate(found);
    }

    /// Replaces visits by times. Returns how many were replaced.
    fn places(
        &self,
        tables: &Tables,
        bits: &mut BitReader<'_>,
        inside: Context,
        times: &mut [i64],
        time: impl Fn(u64) -> Option<i64>,
    ) -> usize {
        let (gaps, moves) = (tables.numbers(inside), tables.numbers(Context::PlaceMoves));
        let (mut place, mut first_place, mut before, mut still) = (0u64, 0u64, None, 0);
        for (at, slot) in times.iter_mut().enumerate() {
            let Some(&visit) = usize::try_from(*slot).ok().and_then(|visit| self.0.get(visit)) else { return at };
            if before == Some(*slot) {
                place = place.saturating_add(gaps.number(bits)).saturating_add(1);
            } else {
                if before.is_none() {
                    first_place = read_below(bits, visit.length);
                } else if still > 0 {
                    still -= 1;
                } else {
                    match moves.read(bits) {
                        Token::Gap(moved) => first_place = first_place.wrapping_add(unzigzag(moved)),
                        Token::Run(run) => still = run - 1,
                        Token::End => return at,
                    }
                }
                place = first_place;
            }
            before = Some(*slot);
            let position = Some(visit.start.wrapping_add(place)).filter(|_| place < visit.length);
            match position.and_then(&time) {
                Some(time) => *slot = time,
                None => return at,
            }
        }
        times.len()
    }
}

/// Writes numbers, and runs of zeros.
fn with_runs<S: Sink>(numbers: impl Iterator<Item = u64>, context: Context, sink: &mut S) {
    let mut zeros = 0;
    let end_run = |zeros: &mut u64, sink: &mut S| {
        match *zeros {
            0 => {}
            1 => sink.number(context, 0),
            run => sink.run(context, run),
        }
        *zeros = 0;
    };
    for number in numbers {
        if number == 0 {
            zeros += 1;
        } else {
            end_run(&mut zeros, sink);
            sink.number(context, number);
        }
    }
    end_run(&mut zeros, sink);
}

#[cfg(test)]
mod tests {
    use super::super::symbols::{Counts, Writer};
    use super::super::times::{DICTIONARY_TIMES_MAX, List, Times, TimesCounter, TimesWriter};
    use super::*;
    use crate::bench::Random;
    use crate::coding::bits::BitWriter;

    /// Writes lists as a cell does, and reads them, also damaged. Returns the number of visits and the bits of all
    /// lists.
    fn visits_and_bits(lists: &[List]) -> (usize, u64) {
        let (times, bytes, bits) = write_and_read(lists);
        damage(lists, &bytes);
        (times.visits().len(), bits)
    }

    /// Writes lists as a cell does, and reads them. Returns the bytes and the bits of all lists.
    fn write_and_read(lists: &[List]) -> (TimesWriter, Vec<u8>, u64) {
        let mut counter = TimesCounter::default();
        lists.iter().for_each(|list| counter.add(list));
        let times = counter.finish();
        let write = |sink: &mut dyn Sink| {
            let mut sink = sink;
            times.store(&mut sink);
            let mut before = 0;
            for list in lists {
                before = times.head(0, list, before, &mut sink);
                times.list(list, &mut sink);
            }
        };
        let mut counts = Counts::new();
        write(&mut counts);
        let codes = counts.fit(false);
        let mut writer = Writer { model: &codes, out: BitWriter::default() };
        codes.store(&mut writer.out);
        write(&mut writer);
        let bits = writer.out.len();
        let bytes = writer.out.into_bytes();
        let mut reader = BitReader::new(&bytes, 0);
        let tables = Tables::load(&mut reader).unwrap();
        let captures_max = lists.iter().map(|list| list.0.len()).max().unwrap_or(0);
        let read = Times::load(&tables, &mut reader, captures_max).unwrap();
        let (mut scratch, mut before) = (List::default(), 0);
        for (times, blank) in lists {
            let (shape, place) = Times::head(&tables, &mut reader, before);
            before = place;
            let captures = read.list(&tables, &mut reader, place, &mut scratch).unwrap();
            assert_eq!((shape, captures.times, captures.blank), (0, &times[..], &blank[..]));
        }
        (times, bytes, bits)
    }

    /// Lists that are cut or changed are errors or other lists, in order.
    fn damage(lists: &[List], bytes: &[u8]) {
        let captures_max = lists.iter().map(|list| list.0.len()).max().unwrap_or(0);
        let mut scratch = List::default();
        for at in (0..bytes.len()).step_by(1 + bytes.len() / 300) {
            let changed: Vec<u8> =
                bytes.iter().enumerate().map(|(byte, &value)| value ^ u8::from(byte == at) << (at % 8)).collect();
            for damaged in [&bytes[..at], &changed] {
                let mut reader = BitReader::new(damaged, 0);
                let Ok(tables) = Tables::load(&mut reader) else { continue };
                let Ok(read) = Times::load(&tables, &mut reader, captures_max) else { continue };
                for _ in lists {
                    let (_, place) = Times::head(&tables, &mut reader, 0);
                    let Ok(captures) = read.list(&tables, &mut reader, place, &mut scratch) else { continue };
                    let rises = captures.times.is_sorted_by(|a, b| a < b) && captures.blank.is_sorted_by(|a, b| a < b);
                    assert!(
                        rises && captures.times.len() <= captures_max && captures.blank.len() <= captures.times.len()
                    );
                }
            }
        }
    }

    const DAY: i64 = 24 * 3600;

    #[test]
    fn pages_of_a_site_that_is_visited_again_and_again_take_few_bits() {
        let mut random = Random::new(3);
        let mut site = |visits: i64, pages: i64, both: u64| -> Vec<List> {
            let page = |page: i64| {
                let first = random.below(visits as u64) as i64;
                let mut times = Vec::new();
                for visit in first..visits {
                    // Pages that are new push later ones back.
                    let time = 1_000_000_000 + visit * 30 * DAY + page * 2 + visit / 7 * page / 50;
                    if random.below(20) > 0 {
                        times.push(time);
                    }
                    if both > 0 && random.below(both) == 0 {
                        times.push(time + 3600);
                    }
                }
                times.push(1_000_000_000 + visits * 30 * DAY + page);
                let blank = if page % 9 == 0 { vec![0] } else { Vec::new() };
                (times, blank)
            };
            (0..pages).map(page).collect()
        };
        // Without second captures in a visit, with one in each visit, and in every fifth.
        for (both, bits_max) in [(0, 5), (1, 10), (5, 7)] {
            let lists = site(40, 300, both);
            let captures: usize = lists.iter().map(|list| list.0.len()).sum();
            let (visits, bits) = visits_and_bits(&lists);
            let each = bits / captures as u64;
            assert!(visits >= 40 && each < bits_max, "{both}: {visits} visits, {bits} bits for {captures} captures");
        }
    }

    #[test]
    fn other_times_have_no_visits() {
        let mut random = Random::new(5);
        let mut at_random = |pages: usize, seconds: u64| -> Vec<List> {
            (0..pages)
                .map(|_| {
                    let mut times: Vec<i64> = (0..1 + random.below(9)).map(|_| random.below(seconds) as i64).collect();
                    times.sort_unstable();
                    times.dedup();
                    (times, Vec::new())
                })
                .collect()
        };
        assert_eq!(visits_and_bits(&at_random(500, 1 << 30)).0, 0, "own times");
        assert_eq!(visits_and_bits(&at_random(500, 1000)).0, 0, "in one stretch");
        let months: Vec<i64> = (0..12).map(|month| month * 30 * DAY).collect();
        assert_eq!(visits_and_bits(&vec![(months, Vec::new()); 50]).0, 0, "one list");
        assert_eq!(visits_and_bits(&[(vec![7], Vec::new())]).0, 0, "one capture");
        assert_eq!(visits_and_bits(&[]).0, 0, "no list");
        let far = vec![-62_135_596_800, 0, 253_402_300_799];
        assert_eq!(visits_and_bits(&[(far, vec![1])]).0, 0, "the first and the last time");
    }

    #[test]
    fn a_dictionary_that_is_expanded_has_a_bound() {
        let captures = 1 << 14;
        let list =
            |from: i64| -> List { ((from..from + captures).map(|visit| visit * 30 * DAY).collect(), Vec::new()) };
        let lists = |count: i64| -> Vec<List> { (0..2 * count).map(|at| list(at / 2)).collect() };
        let dictionary_max = i64::try_from(DICTIONARY_TIMES_MAX).unwrap() / captures;
        // The lists beyond the bound are explicit, twice.
        let (times, ..) = write_and_read(&lists(dictionary_max + 4));
        assert_eq!(times.dictionary().len(), usize::try_from(dictionary_max).unwrap());
    }

    #[test]
    fn moves_are_small_numbers() {
        for value in [0, -1, 1, -2, i64::MAX, i64::MIN].map(i64::cast_unsigned) {
            assert_eq!(unzigzag(zigzag(value)), value);
        }
        assert_eq!([0, -1, 1, -2, 2].map(i64::cast_unsigned).map(zigzag), [0, 1, 2, 3, 4]);
    }
}
