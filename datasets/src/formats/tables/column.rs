//! One column of a row group, value by value.
//!
//! Texts are cut after [`TEXT_BYTES_MAX`] bytes. A longer text is not a URL that is kept; the caller counts it as too
//! long. So neither a long text, nor its repetition, nor a large page takes memory.
//!
//! Memory: buffers of the pages ([`super::pages`]); the dictionary of the column, at most [`DICTIONARY_BYTES_MAX`].

use super::numbers::{Hybrid, broken, differences};
use super::pages::{Chunk, Page, Pages, Stream, pass};
use crate::capture::dictionary::Dictionary;
use crate::url::reference::{TEXT_BYTES_MAX, cut_to_text};
use arrow_array::builder::StringBuilder;
use parquet::basic::Type;
use std::io::{self, Cursor, ErrorKind, Read};
use std::sync::Arc;
use webstrata_url::spelt;

/// The most bytes of a dictionary. Each text counts 24 bytes beside its length.
const DICTIONARY_BYTES_MAX: usize = 24 << 20;

/// The levels of one entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Levels {
    pub(super) repetition: u32,
    pub(super) definition: u32,
}

/// A column of a row group, read value by value.
pub(super) struct Column {
    pages: Pages,
    physical: Type,
    max: Levels,
    page: Option<Open>,
    texts: Option<Arc<Dictionary>>,
    numbers: Vec<i64>,
    /// The next entry, if [`Column::peek`] has read it.
    ahead: Option<Levels>,
}

/// A page that is being read.
struct Open {
    /// The number of entries that are still to come.
    left: u32,
    repetition: Option<Hybrid<Cursor<Vec<u8>>>>,
    definition: Option<Hybrid<Cursor<Vec<u8>>>>,
    values: Values,
}

enum Values {
    Keys(Hybrid<Stream>),
    Plain(Stream),
    /// Texts after all their lengths: the length of the prefix shared with the text before, and the length of the rest.
    Lengths {
        prefixes: Option<Vec<i64>>,
        lengths: Vec<i64>,
        next: usize,
        last: Vec<u8>,
        stream: Stream,
    },
    Numbers {
        numbers: Vec<i64>,
        next: usize,
    },
    /// Booleans as numbers of one bit.
    Flags(Hybrid<Stream>),
    /// Plain booleans: the byte at hand, and how many of its bits are left.
    Bits {
        stream: Stream,
        byte: u8,
        left: u32,
    },
}

/// A text: as a key of the dictionary, or spelt in the buffer.
pub(super) enum Text {
    Key(u64),
    Spelt,
}

fn width_of(max: i16) -> u32 {
    u16::BITS - max.unsigned_abs().leading_zeros()
}

impl Column {
    pub(super) fn new(chunk: Chunk, physical: Type) -> Self {
        let max = Levels {
            repetition: chunk.max_repetition.unsigned_abs().into(),
            definition: chunk.max_definition.unsigned_abs().into(),
        };
        Column { pages: Pages::new(chunk), physical, max, page: None, texts: None, numbers: Vec::new(), ahead: None }
    }

    /// The largest levels.
    pub(super) fn levels_max(&self) -> Levels {
        self.max
    }

    /// The dictionary of texts, after a page with a dictionary was read.
    pub(super) fn dictionary(&self) -> Option<&Arc<Dictionary>> {
        self.texts.as_ref()
    }

    /// Whether an entry has a value.
    pub(super) fn has_value(&self, levels: Levels) -> bool {
        levels.definition == self.max.definition
    }

    /// The levels of the next entry, without passing over the entry; `None` at the end.
    pub(super) fn peek(&mut self) -> io::Result<Option<Levels>> {
        if self.ahead.is_none() {
            self.ahead = self.levels()?;
        }
        Ok(self.ahead)
    }

    /// The levels of the next entry. If the entry has a value, the caller must read the value before the next entry.
    pub(super) fn next(&mut self) -> io::Result<Option<Levels>> {
        match self.ahead.take() {
            Some(levels) => Ok(Some(levels)),
            None => self.levels(),
        }
    }

    fn levels(&mut self) -> io::Result<Option<Levels>> {
        loop {
            if let Some(page) = self.page.as_mut().filter(|page| page.left > 0) {
                page.left -= 1;
                let of = |levels: &mut Option<Hybrid<_>>, max| levels.as_mut().map_or(Ok(max), Hybrid::next);
                let repetition = of(&mut page.repetition, 0)?;
                return Ok(Some(Levels { repetition, definition: of(&mut page.definition, self.max.definition)? }));
            }
            let Some(page) = self.pages.next()? else { return Ok(None) };
            if page.is_dictionary {
                self.read_dictionary(page)?;
            } else {
                self.page = Some(self.open(page)?);
            }
        }
    }

    fn open(&self, page: Page) -> io::Result<Open> {
        let levels = |max: u32, bytes: Vec<u8>| {
            let width = width_of(i16::try_from(max).unwrap_or(i16::MAX));
            (max > 0).then(|| Hybrid::new(Cursor::new(bytes), width)).transpose()
        };
        let mut stream = page.stream;
        let is_text = self.physical == Type::BYTE_ARRAY;
        let is_flag = self.physical == Type::BOOLEAN;
        let values = match page.encoding {
            0 if is_flag => Values::Bits { stream, byte: 0, left: 0 },
            3 if is_flag => {
                // The number of bytes comes first. A page that has only nulls may have no values at all.
                pass(&mut stream, 4).or_else(|error| match error.kind() {
                    ErrorKind::UnexpectedEof => Ok(()),
                    _ => Err(error),
                })?;
                Values::Flags(Hybrid::new(stream, 1)?)
            }
            0 => Values::Plain(stream),
            2 | 8 => {
                let mut width = [0];
                // A page that has only nulls may have no values at all.
                if stream.read(&mut width)? == 0 {
                    width = [0];
                }
                Values::Keys(Hybrid::new(stream, width[0].into())?)
            }
            5 if !is_text => Values::Numbers { numbers: differences(&mut stream)?, next: 0 },
            6 if is_text => {
                let lengths = differences(&mut stream)?;
                Values::Lengths { prefixes: None, lengths, next: 0, last: Vec::new(), stream }
            }
            7 if is_text => {
                let prefixes = Some(differences(&mut stream)?);
                let lengths = differences(&mut stream)?;
                Values::Lengths { prefixes, lengths, next: 0, last: Vec::new(), stream }
            }
            other => return Err(broken(&format!("the encoding {other} of a page is not read"))),
        };
        let (repetition, definition) =
            (levels(self.max.repetition, page.repetition)?, levels(self.max.definition, page.definition)?);
        Ok(Open { left: page.values, repetition, definition, values })
    }

    fn read_dictionary(&mut self, page: Page) -> io::Result<()> {
        let (mut stream, mut bytes) = (page.stream, 0);
        if self.physical != Type::BYTE_ARRAY {
            if page.values as usize > DICTIONARY_BYTES_MAX / size_of::<i64>() {
                return Err(broken("a dictionary is too large"));
            }
            self.numbers = (0..page.values).map(|_| plain(self.physical, &mut stream)).collect::<io::Result<_>>()?;
            return Ok(());
        }
        let (mut texts, mut text) = (StringBuilder::new(), Vec::new());
        for _ in 0..page.values {
            plain_text(&mut stream, &mut text)?;
            let text = spelt(&text);
            bytes += text.len() + 24;
            if bytes > DICTIONARY_BYTES_MAX {
                return Err(broken("a dictionary is too large"));
            }
            texts.append_value(text);
        }
        self.texts = Some(Arc::new(Dictionary::new(texts.finish())));
        Ok(())
    }

    /// Reads the next entries of the list at hand while they are keys of texts, and as many as are known without
    /// reading on: most entries of a long list. The caller must read the entries after them one by one.
    #[inline]
    pub(super) fn keys(&mut self, most: usize, out: &mut Vec<u64>) -> io::Result<()> {
        let Some(page) = self.page.as_mut().filter(|_| self.ahead.is_none()) else {
            return Ok(());
        };
        let Values::Keys(keys) = &mut page.values else { return Ok(()) };
        let Some(repetition) = &mut page.repetition else { return Ok(()) };
        let mut count = repetition.known(self.max.repetition).min(page.left as usize).min(most);
        if let Some(definition) = &mut page.definition {
            count = count.min(definition.known(self.max.definition));
            definition.pass(count);
        }
        repetition.pass(count);
        page.left -= u32::try_from(count).unwrap_or(0);
        let length = self.texts.as_ref().map_or(0, |texts| texts.len());
        for _ in 0..count {
            out.push(key_within(keys.next()?, length)?);
        }
        Ok(())
    }

    /// Reads the value of the entry that [`Column::next`] returned: a key, or the text in `out`.
    pub(super) fn text(&mut self, out: &mut Vec<u8>) -> io::Result<Text> {
        let page = self.page.as_mut().ok_or_else(|| broken("a value without a page"))?;
        match &mut page.values {
            Values::Keys(keys) => {
                let length = self.texts.as_ref().map_or(0, |texts| texts.len());
                key_within(keys.next()?, length).map(Text::Key)
            }
            Values::Plain(stream) => plain_text(stream, out).map(|()| Text::Spelt),
            Values::Lengths { prefixes, lengths, next, last, stream } => {
                let length = |lengths: &Vec<i64>| lengths.get(*next).and_then(|&length| u64::try_from(length).ok());
                let rest = length(lengths).ok_or_else(|| broken("a length is missing"))?;
                let prefix = prefixes.as_ref().map_or(Some(0), length).ok_or_else(|| broken("a length is missing"))?;
                *next += 1;
                last.truncate(usize::try_from(prefix).unwrap_or(usize::MAX));
                cut_text(stream, rest, last)?;
                out.clear();
                out.extend_from_slice(last);
                if prefixes.is_none() {
                    last.clear();
                }
                cut_to_text(out, 0);
                Ok(Text::Spelt)
            }
            Values::Numbers { .. } | Values::Flags(_) | Values::Bits { .. } => {
                Err(broken("numbers in the place of texts"))
            }
        }
    }

    /// Reads the number of the entry that [`Column::next`] returned.
    pub(super) fn number(&mut self) -> io::Result<i64> {
        let page = self.page.as_mut().ok_or_else(|| broken("a value without a page"))?;
        match &mut page.values {
            Values::Keys(keys) => {
                let key = keys.next()? as usize;
                self.numbers.get(key).copied().ok_or_else(|| broken("a key is outside its dictionary"))
            }
            Values::Plain(stream) => plain(self.physical, stream),
            Values::Numbers { numbers, next } => {
                *next += 1;
                numbers.get(*next - 1).copied().ok_or_else(|| broken("a number is missing"))
            }
            Values::Flags(flags) => flags.next().map(i64::from),
            Values::Bits { stream, byte, left } => {
                if *left == 0 {
                    stream.read_exact(std::slice::from_mut(byte))?;
                    *left = u8::BITS;
                }
                let bit = *byte & 1;
                (*byte, *left) = (*byte >> 1, *left - 1);
                Ok(bit.into())
            }
            Values::Lengths { .. } => Err(broken("texts in the place of numbers")),
        }
    }

    /// The text of a key.
    pub(super) fn text_of(&self, key: u64) -> &str {
        self.texts.as_ref().map_or("", |texts| texts.get(key))
    }
}

/// Checks that a key is inside a dictionary of `texts` texts.
fn key_within(key: u32, texts: usize) -> io::Result<u64> {
    if (key as usize) < texts { Ok(key.into()) } else { Err(broken("a key is outside its dictionary")) }
}

/// Reads a number of a physical type. Numbers of 96 bits are times, and become nanoseconds since 1970.
fn plain(physical: Type, stream: &mut Stream) -> io::Result<i64> {
    let mut bytes = [0; 12];
    let mut read = |count: usize| stream.read_exact(&mut bytes[..count]).map(|()| bytes);
    let number = |bytes: [u8; 12]| i64::from_le_bytes(bytes[..8].try_into().unwrap_or([0; 8]));
    match physical {
        Type::INT32 => read(4).map(|bytes| i32::from_le_bytes(bytes[..4].try_into().unwrap_or([0; 4])).into()),
        Type::INT64 => read(8).map(number),
        Type::INT96 => read(12).map(|bytes| {
            let day = i64::from(u32::from_le_bytes(bytes[8..].try_into().unwrap_or([0; 4]))) - JULIAN_DAY_OF_1970;
            day.saturating_mul(86_400_000_000_000).saturating_add(number(bytes))
        }),
        _ => Err(broken("the type of a column is not read")),
    }
}

const JULIAN_DAY_OF_1970: i64 = 2_440_588;

/// Reads a text after its length.
fn plain_text(stream: &mut Stream, out: &mut Vec<u8>) -> io::Result<()> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    out.clear();
    cut_text(stream, u32::from_le_bytes(length).into(), out)?;
    cut_to_text(out, 0);
    Ok(())
}

/// Appends the bytes of a text up to [`TEXT_BYTES_MAX`], and passes over the rest.
fn cut_text(stream: &mut Stream, length: u64, out: &mut Vec<u8>) -> io::Result<()> {
    let kept = length.min(TEXT_BYTES_MAX.saturating_sub(out.len()) as u64);
    let before = out.len();
    stream.take(kept).read_to_end(out)?;
    if ((out.len() - before) as u64) < kept {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    pass(stream, length - kept)
}
