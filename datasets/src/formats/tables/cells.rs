//! Columns of a batch as texts and as times, whatever type the writer chose.

use crate::Finding;
use crate::capture::date::{self, Date};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, Int64Array, StringArray};
use arrow_cast::cast;
use arrow_schema::{DataType, TimeUnit};

/// A column of strings; `None` where the column holds something else.
pub(super) fn texts(column: &ArrayRef) -> Option<StringArray> {
    match column.data_type() {
        DataType::Utf8 => column.as_string_opt().cloned(),
        DataType::LargeUtf8
        | DataType::Utf8View
        | DataType::Dictionary(..)
        | DataType::Binary
        | DataType::LargeBinary => cast(column, &DataType::Utf8).ok()?.as_string_opt().cloned(),
        _ => None,
    }
}

/// A column of dates.
pub(super) enum Times {
    Texts(StringArray),
    /// Numbers, and how many of them make a second.
    Numbers(Int64Array, i64),
    /// Integers without a unit: 10 digits are seconds, 13 milliseconds, 14 a date.
    Plain(Int64Array),
    /// Integers that are digits of a date, as `crawl_date` has them.
    Digits(Int64Array),
}

impl Times {
    /// `None` where the column holds something else.
    pub(super) fn new(column: &ArrayRef) -> Option<Times> {
        let numbers =
            |column: &ArrayRef| Some(cast(column, &DataType::Int64).ok()?.as_primitive_opt::<Int64Type>()?.clone());
        match column.data_type() {
            DataType::Timestamp(unit, _) => {
                let a_second = match unit {
                    TimeUnit::Second => 1,
                    TimeUnit::Millisecond => 1_000,
                    TimeUnit::Microsecond => 1_000_000,
                    TimeUnit::Nanosecond => 1_000_000_000,
                };
                Some(Times::Numbers(numbers(column)?, a_second))
            }
            DataType::Date32 | DataType::Date64 => {
                let column = cast(column, &DataType::Timestamp(TimeUnit::Second, None)).ok()?;
                Some(Times::Numbers(numbers(&column)?, 1))
            }
            data_type if data_type.is_integer() => Some(Times::Plain(numbers(column)?)),
            _ => Some(Times::Texts(texts(column)?)),
        }
    }

    /// Takes integers for 8 or 14 digits, never for seconds.
    pub(super) fn of_digits(self) -> Times {
        if let Times::Plain(numbers) = self { Times::Digits(numbers) } else { self }
    }

    /// The time in a row.
    ///
    /// # Errors
    /// [`Finding::BadRow`] for null, [`Finding::BadDate`] for what is no date; with a few words.
    #[inline]
    pub(super) fn get(&self, row: usize) -> Result<Date, (Finding, String)> {
        let bad_date = |text: &dyn std::fmt::Display| (Finding::BadDate, text.to_string());
        let null = || (Finding::BadRow, "null date".to_owned());
        match self {
            Times::Texts(texts) if texts.is_valid(row) => {
                let text = texts.value(row);
                date::parse(text).ok_or_else(|| bad_date(&text))
            }
            Times::Numbers(numbers, a_second) if numbers.is_valid(row) => {
                let number = numbers.value(row);
                date::from_units(number, *a_second).ok_or_else(|| bad_date(&number))
            }
            Times::Plain(numbers) if numbers.is_valid(row) => {
                let number = numbers.value(row);
                date::from_number(number).ok_or_else(|| bad_date(&number))
            }
            Times::Digits(numbers) if numbers.is_valid(row) => {
                let number = numbers.value(row);
                date::parse(&number.to_string()).ok_or_else(|| bad_date(&number))
            }
            _ => Err(null()),
        }
    }
}
