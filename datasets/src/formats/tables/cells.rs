//! Cells of a row as texts, numbers, booleans and dates.
//!
//! [`super::metadata`] ignores the Arrow schema in the file, so the types are the types of the Parquet schema: large,
//! view and dictionary types do not occur.

use super::column::{Column, Text};
use crate::Finding;
use crate::capture::date::{self, Date};
use arrow_schema::{DataType, TimeUnit};
use std::io;
use webstrata_url::spelt;

/// The seconds of a day.
const DAY: i64 = 24 * 60 * 60;

/// A column of texts.
pub(super) struct Texts {
    pub(super) column: Column,
    buffer: Vec<u8>,
}

impl Texts {
    /// Reads a column as texts. Returns `None` if the column has another type.
    pub(super) fn new(column: Column, data_type: &DataType) -> Option<Self> {
        matches!(data_type, DataType::Utf8 | DataType::Binary).then_some(Texts { column, buffer: Vec::new() })
    }

    /// Appends the text of the next row, and returns whether the row has a text.
    pub(super) fn read(&mut self, out: &mut String) -> io::Result<bool> {
        let levels = self.column.next()?.ok_or(io::ErrorKind::UnexpectedEof)?;
        if !self.column.has_value(levels) {
            return Ok(false);
        }
        match self.column.text(&mut self.buffer)? {
            Text::Key(key) => out.push_str(self.column.text_of(key)),
            Text::Spelt => out.push_str(&spelt(&self.buffer)),
        }
        Ok(true)
    }

    /// The text of the next row.
    pub(super) fn next(&mut self) -> io::Result<Option<String>> {
        let mut text = String::new();
        Ok(self.read(&mut text)?.then_some(text))
    }
}

/// A column of integers.
pub(super) struct Numbers {
    column: Column,
    /// Whether the column has unsigned numbers, of 32 bits and of 64 bits, which are stored as signed numbers.
    is_unsigned: [bool; 2],
}

impl Numbers {
    /// Reads a column as integers. Returns `None` if the column has another type.
    pub(super) fn new(column: Column, data_type: &DataType) -> Option<Self> {
        let is_unsigned = [*data_type == DataType::UInt32, *data_type == DataType::UInt64];
        data_type.is_integer().then_some(Numbers { column, is_unsigned })
    }

    /// The number of the next row, if the row has one. An unsigned number of 2^63 or more counts as missing.
    pub(super) fn next(&mut self) -> io::Result<Option<i64>> {
        let Some(number) = number(&mut self.column)? else { return Ok(None) };
        Ok(match self.is_unsigned {
            [true, _] => Some(number & i64::from(u32::MAX)),
            [_, true] => Some(number).filter(|&number| number >= 0),
            _ => Some(number),
        })
    }
}

/// A column of booleans.
pub(super) struct Flags(Column);

impl Flags {
    /// Reads a column of the type `Boolean`.
    pub(super) fn new(column: Column) -> Self {
        Flags(column)
    }

    /// The boolean of the next row, if the row has one.
    pub(super) fn next(&mut self) -> io::Result<Option<bool>> {
        Ok(number(&mut self.0)?.map(|number| number != 0))
    }
}

fn number(column: &mut Column) -> io::Result<Option<i64>> {
    let levels = column.next()?.ok_or(io::ErrorKind::UnexpectedEof)?;
    if column.has_value(levels) { column.number().map(Some) } else { Ok(None) }
}

/// A column of dates.
pub(super) enum Times {
    Texts(Texts),
    /// Integers in a unit of time, and the number of units in a second.
    Units(Column, i64),
    Days(Column),
    /// Integers without a unit: 10 digits are seconds, 13 milliseconds, 14 a date.
    Plain(Numbers),
    /// Integers with the digits of a date, as in `crawl_date`.
    Digits(Numbers),
}

impl Times {
    /// Reads a column as dates. Returns `None` if the column has another type.
    pub(super) fn new(column: Column, data_type: &DataType) -> Option<Times> {
        let per_second = |unit: &TimeUnit| match unit {
            TimeUnit::Second => 1,
            TimeUnit::Millisecond => 1_000,
            TimeUnit::Microsecond => 1_000_000,
            TimeUnit::Nanosecond => 1_000_000_000,
        };
        match data_type {
            DataType::Timestamp(unit, _) => Some(Times::Units(column, per_second(unit))),
            DataType::Date32 => Some(Times::Days(column)),
            _ if data_type.is_integer() => Numbers::new(column, data_type).map(Times::Plain),
            _ => Texts::new(column, data_type).map(Times::Texts),
        }
    }

    /// Reads integers as 8 or 14 digits of a date, never as seconds.
    pub(super) fn of_digits(self) -> Times {
        if let Times::Plain(numbers) = self { Times::Digits(numbers) } else { self }
    }

    /// The date of the next row. The inner error has a few words and is [`Finding::BadRow`] for null, and
    /// [`Finding::BadDate`] for a value that is not a date.
    pub(super) fn next(&mut self) -> io::Result<Result<Date, (Finding, String)>> {
        let null = || (Finding::BadRow, "the date is null".to_owned());
        let of = |number: Option<i64>, date: &dyn Fn(i64) -> Option<Date>| {
            let number = number.ok_or_else(null)?;
            date(number).ok_or_else(|| (Finding::BadDate, number.to_string()))
        };
        Ok(match self {
            Times::Texts(texts) => texts.next()?.ok_or_else(null).and_then(|text| {
                date::parse(&text).ok_or_else(|| (Finding::BadDate, text.chars().take(SHOWN_CHARS).collect()))
            }),
            Times::Units(column, a_second) => of(number(column)?, &|number| date::from_units(number, *a_second)),
            Times::Days(column) => of(number(column)?, &|day| date::from_units(day.saturating_mul(DAY), 1)),
            Times::Plain(numbers) => of(numbers.next()?, &date::from_number),
            Times::Digits(numbers) => of(numbers.next()?, &|number| date::parse(&number.to_string())),
        })
    }
}

/// The most characters of a text that a message shows.
const SHOWN_CHARS: usize = 40;
