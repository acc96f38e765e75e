//! The alphabets of the strata codec: what each Huffman code covers, and how numbers become symbols.
//!
//! A number is a symbol and raw bits ([`crate::coding::magnitudes`], with `D` = 4). Lists of links are coded as gaps,
//! runs and an end (`GAPS`), and so are steps of visits; all other numbers as numbers with an end (`NUMBERS`).
//!
//! Each [`Context`] has one code. The context of a link that is not copied depends on whether the record has a
//! reference, and on the gap before ([`step_after`]): far links follow far links. The context of an opening depends on
//! the opening of the record before in the group, if a reader that passes over records reads that opening: similar
//! records follow one another.

use std::sync::OnceLock;

use crate::coding::bits::{BitReader, BitWriter};
use crate::coding::huffman::{Code, Decoder};
use crate::coding::magnitudes::{number_of, symbol_of, symbols};
use crate::error::Damage;

use super::presence::EXCEPTIONS;

/// Numbers of up to this many bits are symbols themselves: see [`crate::coding::magnitudes`].
pub(super) const DIRECT_BITS: u32 = 4;
/// The number of symbols for numbers of up to 64 bits.
pub(super) const NUMBERS: usize = symbols::<DIRECT_BITS>(64);
/// The first symbol of runs. Their lengths are numbers again, of up to 32 bits.
const RUNS: usize = NUMBERS;
/// The symbol that ends a list, in alphabets of gaps.
const GAP_END: usize = RUNS + symbols::<DIRECT_BITS>(32);
/// The number of symbols of an alphabet of gaps.
const GAPS: usize = GAP_END + 1;
/// The number of symbols of openings: two without a reference, and four for each symbol of a slot below 128.
const OPENINGS: usize = 2 + 4 * symbols::<DIRECT_BITS>(7);
/// The number of symbols of heads: all shapes for each symbol of the place of a list.
const HEADS: usize = SHAPES * symbols::<DIRECT_BITS>(PLACE_BITS);
/// The most bits of the place of a list, so that the symbols are fewer than 256.
pub(super) const PLACE_BITS: u32 = 27;
/// The number of shapes.
pub(super) const SHAPES: usize = 4;
/// The symbol that ends a list of numbers.
const NUMBER_END: usize = NUMBERS;
/// The longest code in bits, so that all tables of a cell stay in the first-level cache.
const BITS_MAX: u32 = 11;
/// The longest code in contexts of numbers, in bits. Their tables are larger, and few of their symbols are frequent.
const NUMBER_BITS_MAX: u32 = 10;
/// The number of patterns of [`NUMBER_BITS_MAX`] bits.
const ENTRIES: usize = 1 << NUMBER_BITS_MAX;

/// The number of contexts of links that are not copied: as many without a reference as with one.
const STEPS: usize = 6;
/// The steps of the first and the second of these links.
pub(super) const FIRST: usize = 0;
pub(super) const SECOND: usize = 1;

/// The step of the link after a gap. A run counts as a gap of 0.
#[inline]
pub(super) fn step_after(gap: u64) -> usize {
    2 + usize::from(gap > 0) + usize::from(gap > 7) + usize::from(gap > 63)
}

/// Which code writes a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Context {
    /// Without a reference: the first link relative to the number of the node, the second link, and the next ones,
    /// after gaps of 0, up to 7, up to 63, and more: see [`step_after`].
    FirstAlone,
    SecondAlone,
    RowAlone,
    NearAlone,
    FarAlone,
    FarthestAlone,
    /// With a reference: the same for the links that are not copied.
    FirstCopying,
    SecondCopying,
    RowCopying,
    NearCopying,
    FarCopying,
    FarthestCopying,
    /// How the links of a record begin. `Opening`: of the first record of a group, and after a record that is not
    /// still. The others: after a record without links, without a reference, that copies a part of its reference, and
    /// that copies all of it.
    Opening,
    AfterNone,
    AfterAlone,
    AfterPart,
    AfterAll,
    /// The number of links of the reference that are copied at first, and turns: see `links`.
    Copied,
    Turn,
    /// What numbers of a turn have more than it can say.
    TurnMore,
    /// How presence is stored, and the place of the list of timestamps: [`Shape`] + 4 (symbol of the place, see
    /// `times`).
    Head,
    /// For explicit lists: the number of captures, the form, and the number of blank captures.
    TimesCount,
    /// Differences of explicit timestamps: of indexes in the table of times, and of units of time.
    TimesIndex,
    TimesUnits,
    /// The gaps of the table of times.
    TableGaps,
    /// The gaps and the lengths of visits, the steps from visit to visit, and how places in visits move: see `visits`.
    Visits,
    VisitSteps,
    PlaceMoves,
    /// Eight flags that say which captures change a link.
    Events,
    /// The next link with another presence than predicted: of the copied links, and of the others. See `presence`.
    ExceptionCopied,
    ExceptionOwn,
    /// What the number of links before an exception has more than a symbol can say.
    ExceptionMore,
    /// By columns: eight flags of the first capture's links, and the gaps of the links that an event changes.
    Initial,
    Column,
    /// The length of a record that is not still, from the captures on, in bits.
    Length,
}

impl Context {
    pub(super) const COUNT: usize = 35;
    pub(super) const ALL: [Self; Self::COUNT] = [
        Self::FirstAlone,
        Self::SecondAlone,
        Self::RowAlone,
        Self::NearAlone,
        Self::FarAlone,
        Self::FarthestAlone,
        Self::FirstCopying,
        Self::SecondCopying,
        Self::RowCopying,
        Self::NearCopying,
        Self::FarCopying,
        Self::FarthestCopying,
        Self::Opening,
        Self::AfterNone,
        Self::AfterAlone,
        Self::AfterPart,
        Self::AfterAll,
        Self::Copied,
        Self::Turn,
        Self::TurnMore,
        Self::Head,
        Self::TimesCount,
        Self::TimesIndex,
        Self::TimesUnits,
        Self::TableGaps,
        Self::Visits,
        Self::VisitSteps,
        Self::PlaceMoves,
        Self::Events,
        Self::ExceptionCopied,
        Self::ExceptionOwn,
        Self::ExceptionMore,
        Self::Initial,
        Self::Column,
        Self::Length,
    ];

    /// The context of a link that is not copied: [`FIRST`], [`SECOND`], or the one after a gap.
    #[inline]
    pub(super) fn gap(copying: bool, step: usize) -> Self {
        Self::ALL[STEPS * usize::from(copying) + step]
    }

    /// The longest code in bits.
    fn bits_max(self) -> u32 {
        // Flags and turns have many rare symbols, which would take room from the frequent ones.
        match self {
            Self::Turn | Self::Events | Self::Initial | Self::Head | Self::ExceptionCopied | Self::ExceptionOwn => {
                BITS_MAX
            }
            _ => NUMBER_BITS_MAX,
        }
    }

    /// The number of symbols of the context.
    pub(super) fn symbols(self) -> usize {
        match self {
            _ if (self as usize) < 2 * STEPS => GAPS,
            Self::VisitSteps | Self::PlaceMoves => GAPS,
            Self::Opening | Self::AfterNone | Self::AfterAlone | Self::AfterPart | Self::AfterAll => OPENINGS,
            Self::Turn | Self::Events | Self::Initial => 256,
            Self::Head => HEADS,
            Self::ExceptionCopied | Self::ExceptionOwn => EXCEPTIONS,
            _ => NUMBERS + 1,
        }
    }
}

/// A receiver of symbols and raw bits: a writer, a counter that fits codes, or a sum of costs. A record is therefore
/// described in one place.
pub(super) trait Sink {
    fn symbol(&mut self, context: Context, symbol: usize);
    fn raw(&mut self, value: u64, bits: u32);

    /// The codes that symbols are written with, if they are written.
    fn codes(&self) -> Option<&Model> {
        None
    }

    #[inline]
    fn number(&mut self, context: Context, number: u64) {
        let (symbol, bits) = symbol_of::<DIRECT_BITS>(number);
        self.symbol(context, symbol);
        self.raw(number & ((1u64 << bits) - 1), bits);
    }

    /// Ends a list of numbers.
    #[inline]
    fn number_end(&mut self, context: Context) {
        self.symbol(context, NUMBER_END);
    }

    /// Writes `count` consecutive links, at least 2.
    #[inline]
    fn run(&mut self, context: Context, count: u64) {
        let (symbol, bits) = symbol_of::<DIRECT_BITS>(count - 2);
        self.symbol(context, RUNS + symbol);
        self.raw((count - 2) & ((1u64 << bits) - 1), bits);
    }

    /// Ends a list of links.
    #[inline]
    fn gap_end(&mut self, context: Context) {
        self.symbol(context, GAP_END);
    }

    /// Writes a number below `bound` as truncated binary: the bits that tell `bound` numbers apart, and one bit fewer
    /// for the first numbers.
    #[inline]
    fn below(&mut self, value: u64, bound: u64) {
        let (bits, short) = truncated(bound);
        if value < short {
            self.raw(value, bits - 1);
        } else {
            // The first bits - 1 bits are the high bits of the sum; see [`read_below`].
            let value = value + short;
            self.raw(value >> 1, bits - 1);
            self.raw(value & 1, 1);
        }
    }
}

/// The truncated binary code for numbers below `bound`: the bits of the longer numbers, and how many numbers have one
/// bit fewer.
#[inline]
fn truncated(bound: u64) -> (u32, u64) {
    let bits = 64 - bound.leading_zeros();
    // 2^64 is 0 here.
    (bits, 1u64.checked_shl(bits).unwrap_or(0).wrapping_sub(bound))
}

/// The number of times that each symbol occurred.
pub(super) struct Counts {
    counts: Vec<Vec<u64>>,
    /// The number of raw bits.
    pub(super) raw: u64,
}

impl Counts {
    pub(super) fn new() -> Self {
        Self { counts: Context::ALL.iter().map(|context| vec![0; context.symbols()]).collect(), raw: 0 }
    }

    /// Fits codes. With `open`, every symbol gets a code, because the counts come from a sample. Without, a context
    /// that is too rare to pay for a separate code takes the code of [`Model::usual`].
    pub(super) fn fit(&self, open: bool) -> Model {
        let usual = (!open).then(Model::usual);
        let fit = |(counts, context): (&Vec<u64>, usize)| {
            // Lengths of records change with the codes, so lengths that were not counted may be written.
            let open = open || context == Context::Length as usize;
            let fitted = fit_code(counts, Context::ALL[context].bits_max(), open);
            let usual = usual.and_then(|usual| usual.codes.get(context)).map(|(code, _)| code);
            let mut stored = BitWriter::default();
            fitted.store(&mut stored);
            let cost = |code: &Code| -> u64 {
                counts
                    .iter()
                    .enumerate()
                    .filter(|(_, count)| **count > 0)
                    .map(|(at, &count)| count * u64::from(code.bits(at)))
                    .sum()
            };
            match usual {
                Some(usual) if cost(usual) < cost(&fitted) + stored.len() => (usual.clone(), false),
                _ => (fitted, true),
            }
        };
        Model::of(self.counts.iter().zip(0..).map(fit).collect())
    }
}

fn fit_code(counts: &[u64], bits_max: u32, open: bool) -> Code {
    let scaled: Vec<u64> = counts.iter().map(|&count| if open { count * 64 + 1 } else { count }).collect();
    let used = scaled.iter().rposition(|&count| count > 0).map_or(1, |last| last + 1);
    Code::fit(&scaled[..used], bits_max)
}

impl Sink for Counts {
    #[inline]
    fn symbol(&mut self, context: Context, symbol: usize) {
        self.counts[context as usize][symbol] += 1;
    }

    #[inline]
    fn raw(&mut self, _: u64, bits: u32) {
        self.raw += u64::from(bits);
    }
}

/// Codes for writing, and the cost of each symbol.
pub(super) struct Model {
    /// The code of each context, and whether the cell stores it.
    codes: Vec<(Code, bool)>,
    /// Bits by context and symbol.
    bits: Box<[[u8; SYMBOLS]; Context::COUNT]>,
}

/// The largest number of symbols of a context.
const SYMBOLS: usize = 256;

impl Model {
    fn of(codes: Vec<(Code, bool)>) -> Self {
        let mut bits = Box::new([[0; SYMBOLS]; Context::COUNT]);
        for ((code, _), bits) in codes.iter().zip(bits.iter_mut()) {
            for (symbol, bits) in bits.iter_mut().enumerate() {
                // A choice that other choices make expensive may need a symbol without a code. Such a symbol costs more
                // than any code.
                let symbol_bits = if code.has(symbol) { code.bits(symbol) } else { BITS_MAX + 2 };
                *bits = u8::try_from(symbol_bits).unwrap_or(u8::MAX);
            }
        }
        Self { bits, codes }
    }

    /// The codes that a cell may use without storing them; they are part of the format. They assume that small numbers
    /// are frequent, and that flags come in runs.
    pub(super) fn usual() -> &'static Self {
        static USUAL: OnceLock<Model> = OnceLock::new();
        USUAL.get_or_init(|| {
            let code = |context: &Context| {
                let last = context.symbols() - 1;
                let ends = last == GAP_END || last == NUMBER_END;
                let count = |symbol: usize| match context {
                    Context::Events | Context::Initial => 1 << (8 - (symbol ^ (symbol >> 1)).count_ones()),
                    Context::Turn => 4 + 512 / ((1 + (symbol >> 4)) * (1 + (symbol & 15))) as u64,
                    Context::ExceptionCopied | Context::ExceptionOwn => {
                        4 + 512 / ((1 + (symbol >> 3)) * (1 + (symbol & 7))) as u64
                    }
                    _ if ends && symbol == last => 512,
                    _ => 4 + 512 / (symbol as u64 + 1),
                };
                let counts: Vec<u64> = (0..=last).map(count).collect();
                (fit_code(&counts, context.bits_max(), true), false)
            };
            Self::of(Context::ALL.iter().map(code).collect())
        })
    }

    /// Writes the codes, one after the other. A bit before each says whether the code is stored.
    pub(super) fn store(&self, out: &mut BitWriter) {
        for (code, is_stored) in &self.codes {
            out.write(u64::from(*is_stored), 1);
            if *is_stored {
                code.store(out);
            }
        }
    }

    /// The bits of a symbol.
    #[inline]
    pub(super) fn bits(&self, context: Context, symbol: usize) -> u32 {
        debug_assert!(symbol < SYMBOLS, "symbol {symbol}");
        u32::from(self.bits[context as usize][symbol % SYMBOLS])
    }
}

/// Writes symbols with the codes of a model.
pub(super) struct Writer<'a> {
    pub(super) model: &'a Model,
    pub(super) out: BitWriter,
}

impl Sink for Writer<'_> {
    #[inline]
    fn symbol(&mut self, context: Context, symbol: usize) {
        self.model.codes[context as usize].0.write(symbol, &mut self.out);
    }

    fn codes(&self) -> Option<&Model> {
        Some(self.model)
    }

    #[inline]
    fn raw(&mut self, value: u64, bits: u32) {
        self.out.write_wide(value, bits);
    }
}

/// Sums the bits that a model would write.
pub(super) struct Cost<'a> {
    pub(super) model: &'a Model,
    pub(super) bits: u32,
}

impl Sink for Cost<'_> {
    #[inline]
    fn symbol(&mut self, context: Context, symbol: usize) {
        self.bits = self.bits.saturating_add(self.model.bits(context, symbol));
    }

    #[inline]
    fn raw(&mut self, _: u64, bits: u32) {
        self.bits = self.bits.saturating_add(bits);
    }
}

/// The decoded beginning of a pattern of bits: bits of the code (4), shift (6), mantissa (4), kind (2), the lowest
/// first. An entry has 16 bits, so that the tables of a cell fit the first-level cache together.
#[derive(Clone, Copy)]
struct Entry(u16);

/// The next token of a list of links or numbers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Token {
    /// A gap, or a number.
    Gap(u64),
    /// Consecutive links.
    Run(u64),
    /// The end of the list.
    End,
}

const KIND_RUN: u16 = 1 << 14;
const KIND_END: u16 = 2 << 14;

/// Tables for reading.
pub(super) struct Tables {
    /// Entries by context. The length is fixed, so that an index needs no check.
    numbers: Box<[[Entry; ENTRIES]; Context::COUNT]>,
    plain: [Decoder; Context::COUNT],
}

impl Tables {
    /// Reads the codes that [`Model::store`] wrote.
    pub(super) fn load(stored: &mut BitReader<'_>) -> Result<Self, Damage> {
        let numbers = vec![[Entry(0); ENTRIES]; Context::COUNT].into_boxed_slice();
        let numbers = numbers.try_into().map_err(|_| Damage::Ends { part: super::PART })?;
        let mut tables = Self { numbers, plain: std::array::from_fn(|_| Decoder::default()) };
        for context in Context::ALL {
            let decoder = if stored.read(1) == 1 {
                Decoder::load(stored, context.symbols(), context.bits_max())?
            } else {
                let mut usual = BitWriter::default();
                Model::usual().codes[context as usize].0.store(&mut usual);
                Decoder::load(&mut BitReader::new(&usual.into_bytes(), 0), context.symbols(), context.bits_max())?
            };
            let gaps = context.symbols() == GAPS;
            let entries = (0u64..).zip(&mut tables.numbers[context as usize]);
            entries.for_each(|(bits, entry)| *entry = Entry::of(decoder.look(bits), gaps));
            tables.plain[context as usize] = decoder;
        }
        Ok(tables)
    }

    /// The table of a context of numbers or gaps.
    #[inline]
    pub(super) fn numbers(&self, context: Context) -> Numbers<'_> {
        Numbers(&self.numbers[context as usize])
    }

    /// The tables of the links that are not copied.
    #[inline]
    pub(super) fn gaps(&self, copying: bool) -> Gaps<'_> {
        Gaps(&self.numbers.as_chunks().0[usize::from(copying)])
    }

    /// The decoder of a context of plain symbols.
    #[inline]
    pub(super) fn plain(&self, context: Context) -> &Decoder {
        &self.plain[context as usize]
    }
}

impl Entry {
    fn of((symbol, length): (usize, u32), gaps: bool) -> Self {
        let (kind, symbol) = match symbol {
            GAP_END if gaps => (KIND_END, 0),
            NUMBER_END if !gaps => (KIND_END, 0),
            run if gaps && run >= RUNS => (KIND_RUN, run - RUNS),
            number => (0, number),
        };
        let (mantissa, shift) = number_of::<DIRECT_BITS>(symbol);
        Self(kind | u16::try_from(mantissa << 10 | u64::from(shift << 4 | length)).unwrap_or(0))
    }
}

/// The tables of links that are not copied, by step.
#[derive(Clone, Copy)]
pub(super) struct Gaps<'a>(&'a [[Entry; ENTRIES]; STEPS]);

impl<'a> Gaps<'a> {
    #[inline(always)]
    pub(super) fn at(self, step: usize) -> Numbers<'a> {
        Numbers(&self.0[step])
    }
}

/// One table of numbers.
#[derive(Clone, Copy)]
pub(super) struct Numbers<'a>(&'a [Entry; ENTRIES]);

impl Numbers<'_> {
    /// Reads the next token.
    #[inline(always)]
    pub(super) fn read(self, bits: &mut BitReader<'_>) -> Token {
        let word = bits.peek();
        let Entry(entry) = self.0[(word & ((1 << NUMBER_BITS_MAX) - 1)) as usize];
        let (length, shift) = (u32::from(entry & 15), u32::from(entry >> 4 & 63));
        let mantissa = u64::from(entry >> 10 & 15);
        let value = if shift <= 56 - NUMBER_BITS_MAX {
            bits.skip(length + shift);
            (mantissa << shift) | (word >> length & ((1u64 << shift) - 1))
        } else {
            bits.skip(length);
            (mantissa << shift) | bits.read_wide(shift)
        };
        if entry < KIND_RUN {
            return Token::Gap(value);
        }
        if entry < KIND_END { Token::Run(value.saturating_add(2)) } else { Token::End }
    }

    /// Reads a number; an end counts as 0.
    #[inline]
    pub(super) fn number(self, bits: &mut BitReader<'_>) -> u64 {
        match self.read(bits) {
            Token::Gap(value) | Token::Run(value) => value,
            Token::End => 0,
        }
    }
}

/// Reads a number below `bound` (at least 1) that [`Sink::below`] wrote.
#[inline]
pub(super) fn read_below(bits: &mut BitReader<'_>, bound: u64) -> u64 {
    let (width, short) = truncated(bound);
    let value = bits.read_wide(width - 1);
    if value < short { value } else { (value << 1 | bits.read(1)) - short }
}

impl Sink for &mut dyn Sink {
    fn symbol(&mut self, context: Context, symbol: usize) {
        (**self).symbol(context, symbol);
    }

    fn raw(&mut self, value: u64, bits: u32) {
        (**self).raw(value, bits);
    }
}
