//! Timestamps of records. Frequent lists have a place in a dictionary; other lists are in the record.
//!
//! ```text
//! stored      the first time in seconds, the unit in seconds, and the last time in units after the first (64 bits
//!             each); whether any capture is blank (1 bit); the numbers of times in the table and of lists in the
//!             dictionary (32 bits each); the gaps of the table in units; visits; the lists of the dictionary, explicit
//! list        its place in the head of a record: 0 if the list is explicit, 1 if it is the list of the record before
//!             in the group, or 2 + place in the dictionary
//! explicit    number of captures, number of blank captures (if the cell has any), form (1 bit), then positions, and
//!             blank captures: the first index, gaps less 1
//! positions   form 0: units of time after the cell's first time, below the span
//!             form 1: indexes in the table of times
//!             the first, and gaps less 1; or, if they have visits, as in `visits`
//! ```
//!
//! The unit is the longest in which all times of the cell are whole: a second, or a day if captures have dates only.
//! The table holds times, rising: the times that several lists have, all times, or none. The positions in the table, or
//! units if it is empty, may have visits. Tables and visits are those that take the least room. Dictionary, table and
//! visits are expanded when a cell is opened.

use std::collections::{BTreeMap, HashMap};

use crate::coding::bits::BitReader;
use crate::coding::magnitudes::{number_of, symbol_of};
use crate::error::Damage;
use webstrata_layers::Captures;
use xxhash_rust::xxh3::Xxh3;

use super::symbols::{Context, Cost, DIRECT_BITS, Model, PLACE_BITS, SHAPES, Sink, Tables, Token, read_below};
use super::visits::Visits;

/// A list that occurs at least this often is in the dictionary.
const OFTEN: u32 = 2;
/// The most lists in the dictionary, so that the head of a record can name the place of each.
const PLACES_MAX: usize = (1 << PLACE_BITS) - 2;
/// The most times in the lists of the dictionary together. A run of visits is a few bits, and eight bytes for each of
/// its times when a cell is opened.
pub(super) const DICTIONARY_TIMES_MAX: usize = 1 << 22;
/// The number of lists, approximately, by which tables and visits are chosen.
const WEIGHED: usize = 1 << 14;
/// The seconds after a capture that a visit may still have another one, if times have visits: an hour, a day, a week.
const APART: [u64; 3] = [3600, 24 * 3600, 7 * 24 * 3600];
const PART: &str = "strata times";

/// The captures of a record: rising times, and the indexes of blank captures.
pub(super) type List = (Vec<i64>, Vec<u32>);

/// Counts the lists of a cell.
#[derive(Default)]
pub(super) struct TimesCounter {
    lists: HashMap<List, u32>,
}

impl TimesCounter {
    pub(super) fn add(&mut self, list: &List) {
        match self.lists.get_mut(list) {
            Some(count) => *count += 1,
            None => {
                self.lists.insert(list.clone(), 1);
            }
        }
    }

    /// Chooses the dictionary, and the table and the visits that take the least room.
    pub(super) fn finish(self) -> TimesWriter {
        let (mut first, mut last, mut any_blank) = (i64::MAX, i64::MIN, false);
        let mut lists_of: BTreeMap<i64, u32> = BTreeMap::new();
        for (times, blank) in self.lists.keys() {
            any_blank |= !blank.is_empty();
            times.iter().for_each(|&time| *lists_of.entry(time).or_default() += 1);
            first = times.first().map_or(first, |&time| first.min(time));
            last = times.last().map_or(last, |&time| last.max(time));
        }
        if first > last {
            (first, last) = (0, 0);
        }
        let lists = self.lists.into_iter().map(|(list, count)| (count, list));
        let (mut often, seldom): (Vec<_>, Vec<_>) = lists.partition(|&(count, _)| count >= OFTEN);
        often.sort_unstable_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        let mut times_of_lists = 0;
        let mut fits = |list: &List| {
            times_of_lists += list.0.len();
            times_of_lists <= DICTIONARY_TIMES_MAX
        };
        let lists = often.into_iter().take(PLACES_MAX).map(|(_, list)| list);
        let dictionary: Vec<List> = lists.take_while(&mut fits).collect();
        let places = dictionary.iter().cloned().zip(0u64..).collect();
        let (table, visits) = (Vec::new(), Visits::default());
        let unit = lists_of.keys().map(|time| time.abs_diff(first)).fold(0, gcd).max(1);
        let span = last.abs_diff(first) / unit;
        let mut writer = TimesWriter { first, unit, span, any_blank, table, visits, dictionary, places };
        writer.choose(&lists_of, &seldom);
        writer
    }
}

/// Writes lists.
pub(super) struct TimesWriter {
    first: i64,
    /// Seconds.
    unit: u64,
    /// The last time, in units after the first.
    span: u64,
    any_blank: bool,
    table: Vec<i64>,
    visits: Visits,
    dictionary: Vec<List>,
    places: HashMap<List, u64>,
}

impl TimesWriter {
    #[cfg(test)]
    pub(super) fn visits(&self) -> &Visits {
        &self.visits
    }

    #[cfg(test)]
    pub(super) fn dictionary(&self) -> &[List] {
        &self.dictionary
    }

    /// Chooses the table and the visits. `lists_of` has the times of the cell, each with its number of different lists,
    /// and `seldom` the lists outside the dictionary, with their numbers.
    fn choose(&mut self, lists_of: &BTreeMap<i64, u32>, seldom: &[(u32, List)]) {
        // Which lists are weighed depends on the lists, and not on their order, so that a cell has always the same
        // bytes.
        let step = seldom.len().div_ceil(WEIGHED) as u64;
        let weighed: Vec<_> = seldom.iter().filter(|(_, (times, _))| hash_of(times).is_multiple_of(step)).collect();
        let bits_of = |writer: &Self| {
            let mut cost = Cost { model: Model::usual(), bits: 0 };
            writer.store(&mut cost);
            let mut bits = u64::from(cost.bits);
            for (count, (times, blank)) in &weighed {
                cost.bits = 0;
                writer.explicit(times, blank, &mut cost);
                bits += u64::from(cost.bits) * u64::from(*count) * step;
            }
            bits
        };
        let mut least = (u64::MAX, Vec::new(), Visits::default());
        for lists_min in [u32::MAX, 2, 1] {
            self.table = lists_of.iter().filter(|&(_, &lists)| lists >= lists_min).map(|(&time, _)| time).collect();
            for apart in [None].into_iter().chain(APART.map(Some)) {
                let unit = |&time: &i64| (time.abs_diff(self.first) / self.unit, time);
                self.visits = apart.map_or_else(Visits::default, |apart| match &self.table[..] {
                    [] => Visits::of(lists_of.keys().map(unit), apart),
                    table => Visits::of((0..).zip(table.iter().copied()), apart),
                });
                let bits = bits_of(self);
                if bits < least.0 {
                    least = (bits, self.table.clone(), self.visits.clone());
                }
            }
        }
        (_, self.table, self.visits) = least;
    }

    /// Writes what is stored before the records.
    pub(super) fn store<S: Sink>(&self, sink: &mut S) {
        sink.raw(self.first.cast_unsigned(), 64);
        sink.raw(self.unit, 64);
        sink.raw(self.span, 64);
        sink.raw(u64::from(self.any_blank), 1);
        sink.raw(self.table.len() as u64, 32);
        sink.raw(self.dictionary.len() as u64, 32);
        let mut before = self.first;
        for &time in &self.table {
            sink.number(Context::TableGaps, time.abs_diff(before) / self.unit);
            before = time;
        }
        self.visits.store(sink);
        self.dictionary.iter().for_each(|(times, blank)| self.explicit(times, blank, sink));
    }

    /// Writes the shape of a record, and the place of its list beside the one before (0 if explicit, or 1 + place in
    /// the dictionary). Returns this place.
    pub(super) fn head<S: Sink>(&self, shape: usize, list: &List, before: u64, sink: &mut S) -> u64 {
        let place = self.places.get(list).map_or(0, |place| place + 1);
        // Frequent lists have symbols of their own. Another symbol would make these longer.
        let has_symbol = (place + 1) >> DIRECT_BITS == 0;
        let written = match place {
            0 => 0,
            _ if place == before && !has_symbol => 1,
            _ => place + 1,
        };
        let (symbol, bits) = symbol_of::<DIRECT_BITS>(written);
        sink.symbol(Context::Head, SHAPES * symbol + shape);
        sink.raw(written & ((1 << bits) - 1), bits);
        place
    }

    /// Writes the list of a record, if it has no place.
    pub(super) fn list<S: Sink>(&self, list: &List, sink: &mut S) {
        if !self.places.contains_key(list) {
            self.explicit(&list.0, &list.1, sink);
        }
    }

    fn explicit<S: Sink>(&self, times: &[i64], blank: &[u32], sink: &mut S) {
        sink.number(Context::TimesCount, times.len() as u64);
        if self.any_blank {
            sink.number(Context::TimesCount, blank.len() as u64);
        }
        let indexes: Option<Vec<u64>> =
            times.iter().map(|time| self.table.binary_search(time).ok().map(|index| index as u64)).collect();
        sink.raw(u64::from(indexes.is_some()), 1);
        let (positions, bound, context) = match indexes {
            Some(indexes) => (indexes, self.table.len() as u64, Context::TimesIndex),
            None => {
                let units = times.iter().map(|time| time.abs_diff(self.first) / self.unit).collect();
                (units, self.span.saturating_add(1), Context::TimesUnits)
            }
        };
        if has_visits(&self.visits, &self.table, context) {
            self.visits.write(&positions, context, sink);
        } else {
            rising(&positions, bound, context, sink);
        }
        let blank: Vec<u64> = blank.iter().map(|&at| u64::from(at)).collect();
        rising(&blank, times.len() as u64, Context::TimesIndex, sink);
    }
}

/// Whether positions have visits.
#[inline]
fn has_visits(visits: &Visits, table: &[i64], context: Context) -> bool {
    visits.len() > 0 && table.is_empty() == (context == Context::TimesUnits)
}

fn hash_of(times: &[i64]) -> u64 {
    let mut hash = Xxh3::new();
    times.iter().for_each(|time| hash.update(&time.to_le_bytes()));
    hash.digest()
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Writes rising numbers below `bound`: the first raw, then gaps less 1.
fn rising<S: Sink>(values: &[u64], bound: u64, context: Context, sink: &mut S) {
    let Some(&first) = values.first() else { return };
    sink.below(first, bound);
    values.windows(2).for_each(|pair| sink.number(context, pair[1] - pair[0] - 1));
}

/// Reads lists.
pub(super) struct Times {
    first: i64,
    unit: u64,
    span: u64,
    any_blank: bool,
    table: Vec<i64>,
    visits: Visits,
    /// The ends of each list of the dictionary in `times` and in `blank`.
    ends: Vec<(usize, usize)>,
    times: Vec<i64>,
    blank: Vec<u32>,
    captures_max: usize,
}

impl Times {
    /// Reads the lists that [`TimesWriter::store`] wrote. Lists have at most `captures_max` captures.
    pub(super) fn load(tables: &Tables, bits: &mut BitReader<'_>, captures_max: usize) -> Result<Self, Damage> {
        let first = bits.read_wide(64).cast_signed();
        let unit = bits.read_wide(64);
        let span = bits.read_wide(64);
        let any_blank = bits.read(1) == 1;
        let (table, lists) = (bits.read_wide(32), bits.read_wide(32));
        let mut times = Self {
            first,
            unit,
            span,
            any_blank,
            table: Vec::new(),
            visits: Visits::default(),
            ends: Vec::new(),
            times: Vec::new(),
            blank: Vec::new(),
            captures_max,
        };
        let mut at = 0u64;
        for number in 0..table {
            let gap = tables.numbers(Context::TableGaps).number(bits);
            at = at.checked_add(gap).filter(|_| gap > 0 || number == 0).ok_or(Damage::Ends { part: PART })?;
            let time = at.checked_mul(unit).and_then(|seconds| first.checked_add_unsigned(seconds));
            times.table.push(time.filter(|_| !bits.overran()).ok_or(Damage::Ends { part: PART })?);
        }
        let positions = if times.table.is_empty() { span.saturating_add(1) } else { table };
        times.visits = Visits::load(tables, bits, positions)?;
        let (mut list_times, mut blank) = (Vec::new(), Vec::new());
        for _ in 0..lists {
            times.explicit(tables, bits, &mut list_times, &mut blank)?;
            times.times.extend_from_slice(&list_times);
            times.blank.extend_from_slice(&blank);
            times.ends.push((times.times.len(), times.blank.len()));
            let (value, bound) = (times.times.len(), DICTIONARY_TIMES_MAX);
            if value > bound {
                return Err(Damage::Outside { part: PART, value: value as u64, bound: bound as u64 });
            }
            if bits.overran() {
                return Err(Damage::Ends { part: PART });
            }
        }
        Ok(times)
    }

    /// Reads the shape of a record, and the place of its list: see [`TimesWriter::head`].
    #[inline]
    pub(super) fn head(tables: &Tables, bits: &mut BitReader<'_>, before: u64) -> (usize, u64) {
        let symbol = tables.plain(Context::Head).read(bits);
        let (high, raw) = number_of::<DIRECT_BITS>(symbol / SHAPES);
        let place = match high << raw | bits.read(raw) {
            0 => 0,
            1 => before,
            written => written - 1,
        };
        (symbol % SHAPES, place)
    }

    /// Reads the list of a record: the list of a place, or a list that is decoded into `scratch`. Statuses are stored
    /// elsewhere.
    #[inline]
    pub(super) fn list<'a>(
        &'a self,
        tables: &Tables,
        bits: &mut BitReader<'_>,
        place: u64,
        scratch: &'a mut List,
    ) -> Result<Captures<'a>, Damage> {
        let Some(position) = place.checked_sub(1) else {
            self.explicit(tables, bits, &mut scratch.0, &mut scratch.1)?;
            return Ok(Captures { times: &scratch.0, blank: &scratch.1, statuses: &[] });
        };
        let at = usize::try_from(position).unwrap_or(usize::MAX);
        let Some(&(time_end, blank_end)) = self.ends.get(at) else {
            return Err(Damage::Outside { part: PART, value: position, bound: self.ends.len() as u64 });
        };
        let (time, blank) = at.checked_sub(1).map_or((0, 0), |before| self.ends[before]);
        let (times, blank) = (&self.times[time..time_end], &self.blank[blank..blank_end]);
        Ok(Captures { times, blank, statuses: &[] })
    }

    fn explicit(
        &self,
        tables: &Tables,
        bits: &mut BitReader<'_>,
        times: &mut Vec<i64>,
        blank: &mut Vec<u32>,
    ) -> Result<(), Damage> {
        times.clear();
        blank.clear();
        let count = tables.numbers(Context::TimesCount).number(bits);
        let blank_count = if self.any_blank { tables.numbers(Context::TimesCount).number(bits) } else { 0 };
        if count > self.captures_max as u64 || blank_count > count {
            return Err(Damage::Outside { part: PART, value: count, bound: self.captures_max as u64 });
        }
        let by_table = bits.read(1) == 1;
        let context = if by_table { Context::TimesIndex } else { Context::TimesUnits };
        // Positions are checked against their bounds, so that times rise in damaged lists too.
        let in_table = |position: u64| usize::try_from(position).ok().and_then(|at| self.table.get(at)).copied();
        let time_of = |position: u64| self.first.checked_add_unsigned(position.checked_mul(self.unit)?);
        match (has_visits(&self.visits, &self.table, context), by_table) {
            (true, true) => self.visits.read(tables, bits, (count, context), times, in_table),
            (true, false) => self.visits.read(tables, bits, (count, context), times, time_of),
            (false, true) => {
                let bound = self.table.len() as u64;
                read_rising(tables, bits, (count, bound), context, &mut |at| times.extend(in_table(at)));
            }
            (false, false) => {
                let bound = self.span.saturating_add(1);
                read_rising(tables, bits, (count, bound), context, &mut |at| times.extend(time_of(at)));
            }
        }
        let mut index = |at: u64| blank.extend(u32::try_from(at));
        read_rising(tables, bits, (blank_count, count), Context::TimesIndex, &mut index);
        // A symbol other than a gap, and a position outside, ends a list early.
        if (times.len() as u64, blank.len() as u64) == (count, blank_count) {
            Ok(())
        } else {
            Err(Damage::Ends { part: PART })
        }
    }
}

/// Reads the numbers that [`rising`] wrote. Stops before a number that is not below `bound`.
fn read_rising(
    tables: &Tables,
    bits: &mut BitReader<'_>,
    (count, bound): (u64, u64),
    context: Context,
    visit: &mut dyn FnMut(u64),
) {
    // A gap takes at least one bit.
    if count == 0 || bound == 0 || count - 1 > bits.left() {
        return;
    }
    let mut value = read_below(bits, bound);
    visit(value);
    let gaps = tables.numbers(context);
    for _ in 1..count {
        let Token::Gap(gap) = gaps.read(bits) else { return };
        match value.checked_add(gap).and_then(|value| value.checked_add(1)).filter(|&value| value < bound) {
            Some(next) => value = next,
            None => return,
        }
        visit(value);
    }
}
