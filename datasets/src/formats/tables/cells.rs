//! Reads columns of a batch as texts and as times.
//!
//! [`super::metadata`] ignores the Arrow schema in the file, so the types are the types of the Parquet schema: large,
//! view and dictionary types do not occur.

use crate::Finding;
use crate::capture::date::{self, Date};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use arrow_array::{Array, ArrayRef, Int64Array, StringArray};
use arrow_schema::{DataType, TimeUnit};

/// Seconds of a day.
const DAY: i64 = 24 * 60 * 60;

/// A column of strings; `None` where the column holds something else. Bytes that are no UTF-8 are null.
pub(super) fn texts(column: &ArrayRef) -> Option<StringArray> {
    match column.data_type() {
        DataType::Utf8 => column.as_string_opt().cloned(),
        DataType::Binary => {
            let bytes = column.as_binary_opt::<i32>()?;
            let some_are_none = |_| bytes.iter().map(|bytes| std::str::from_utf8(bytes?).ok()).collect();
            Some(StringArray::try_from_binary(bytes.clone()).unwrap_or_else(some_are_none))
        }
        _ => None,
    }
}

/// A column of integers; `None` where the column holds something else. Those beyond 64 bits with a sign are null.
pub(super) fn integers(column: &ArrayRef) -> Option<Int64Array> {
    match column.data_type() {
        DataType::Int64 => column.as_primitive_opt().cloned(),
        DataType::Int32 => integers_of::<Int32Type>(column),
        DataType::Int16 => integers_of::<Int16Type>(column),
        DataType::Int8 => integers_of::<Int8Type>(column),
        DataType::UInt64 => integers_of::<UInt64Type>(column),
        DataType::UInt32 => integers_of::<UInt32Type>(column),
        DataType::UInt16 => integers_of::<UInt16Type>(column),
        DataType::UInt8 => integers_of::<UInt8Type>(column),
        _ => None,
    }
}

/// A column of integers of a type.
fn integers_of<T: ArrowPrimitiveType<Native: TryInto<i64>>>(column: &ArrayRef) -> Option<Int64Array> {
    Some(column.as_primitive_opt::<T>()?.unary_opt(|number| number.try_into().ok()))
}

/// A column of times of a unit, as their numbers.
fn units<T: ArrowPrimitiveType<Native = i64>>(column: &ArrayRef) -> Option<Int64Array> {
    Some(column.as_primitive_opt::<T>()?.reinterpret_cast::<Int64Type>())
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
        match column.data_type() {
            DataType::Timestamp(TimeUnit::Second, _) => Some(Times::Numbers(units::<TimestampSecondType>(column)?, 1)),
            DataType::Timestamp(TimeUnit::Millisecond, _) => {
                Some(Times::Numbers(units::<TimestampMillisecondType>(column)?, 1_000))
            }
            DataType::Timestamp(TimeUnit::Microsecond, _) => {
                Some(Times::Numbers(units::<TimestampMicrosecondType>(column)?, 1_000_000))
            }
            DataType::Timestamp(TimeUnit::Nanosecond, _) => {
                Some(Times::Numbers(units::<TimestampNanosecondType>(column)?, 1_000_000_000))
            }
            DataType::Date32 => {
                let days = column.as_primitive_opt::<Date32Type>()?;
                Some(Times::Numbers(days.unary(|day| i64::from(day) * DAY), 1))
            }
            _ => match integers(column) {
                Some(numbers) => Some(Times::Plain(numbers)),
                None => Some(Times::Texts(texts(column)?)),
            },
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
        let null = || (Finding::BadRow, "the date is null".to_owned());
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

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{
        BinaryArray, BooleanArray, Date32Array, Int8Array, Int32Array, LargeStringArray, TimestampNanosecondArray,
        UInt16Array, UInt64Array,
    };
    use std::sync::Arc;

    fn seconds(column: ArrayRef) -> Vec<Option<i64>> {
        let times = Times::new(&column).unwrap();
        (0..column.len()).map(|row| times.get(row).ok().map(Date::seconds)).collect()
    }

    #[test]
    fn times_of_every_type() {
        let second = 1_209_588_506;
        assert_eq!(
            seconds(Arc::new(Date32Array::from(vec![Some(14_000), None, Some(i32::MAX)]))),
            [Some(1_209_600_000), None, None]
        );
        assert_eq!(seconds(Arc::new(Int32Array::from(vec![Some(1_209_588_506), None]))), [Some(second), None]);
        let unsigned = UInt64Array::from(vec![1_209_588_506_000, 20_080_430_204_826, u64::MAX]);
        assert_eq!(seconds(Arc::new(unsigned)), [Some(second), Some(second), None]);
        assert_eq!(seconds(Arc::new(Int8Array::from(vec![1]))), [None]);
        assert_eq!(seconds(Arc::new(UInt16Array::from(vec![2008]))), [None]);
        let nanoseconds = TimestampNanosecondArray::from(vec![Some(1_209_588_506_000_000_000), None]);
        assert_eq!(seconds(Arc::new(nanoseconds)), [Some(second), None]);
        assert_eq!(seconds(Arc::new(BinaryArray::from(vec![&b"20080430204826"[..], b"\xff"]))), [Some(second), None]);
        assert!(Times::new(&(Arc::new(BooleanArray::from(vec![true])) as ArrayRef)).is_none());
    }

    #[test]
    fn bytes_that_are_no_text_are_null() {
        let bytes: ArrayRef = Arc::new(BinaryArray::from(vec![Some(&b"a"[..]), Some(b"\xc3"), None, Some(b"")]));
        assert_eq!(texts(&bytes).unwrap(), StringArray::from(vec![Some("a"), None, None, Some("")]));
        assert!(texts(&(Arc::new(LargeStringArray::from(vec!["a"])) as ArrayRef)).is_none());
    }
}
