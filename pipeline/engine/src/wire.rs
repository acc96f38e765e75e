//! The encoding of numbers in records between stages: LEB128, and fixed-length big-endian where byte order must be
//! number order.
//!
//! Records never leave the job that wrote them, so a broken record is a fault of this program, not of the input. For
//! the same reason, a number that was written from a `u32` or a `usize` fits into that type when it is read.

use webstrata_layers::Uid;

/// Appends a number in LEB128: seven bits a byte, least significant bits first.
pub fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(low_seven_bits(number) | 0x80);
        number >>= 7;
    }
    out.push(low_seven_bits(number));
}

fn low_seven_bits(number: u64) -> u8 {
    (number & 0x7f) as u8
}

/// Takes a LEB128 number from the front of `bytes`.
#[inline]
pub fn take(bytes: &mut &[u8]) -> u64 {
    let (mut number, mut shift) = (0, 0);
    while let Some((&byte, rest)) = bytes.split_first() {
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
        shift += 7;
    }
    number
}

/// Appends a signed number; small absolute values take few bytes.
pub fn put_signed(out: &mut Vec<u8>, number: i64) {
    put(out, (number << 1 ^ number >> 63).cast_unsigned());
}

/// Takes a number that [`put_signed`] wrote from the front of `bytes`.
pub fn take_signed(bytes: &mut &[u8]) -> i64 {
    let number = take(bytes);
    (number >> 1).cast_signed() ^ -(number & 1).cast_signed()
}

/// Like [`take`], for a number that was written from a `u32`.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "it was a u32 when it was put")]
pub fn take_u32(bytes: &mut &[u8]) -> u32 {
    take(bytes) as u32
}

/// Like [`take`], for a number that was written from a `usize`.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "it was a usize when it was put")]
pub fn take_usize(bytes: &mut &[u8]) -> usize {
    take(bytes) as usize
}

/// Takes a UID of eight bytes from the front of `bytes`.
#[inline]
pub fn take_uid(bytes: &mut &[u8]) -> Uid {
    Uid(u64::from_be_bytes(take_array(bytes)))
}

/// Takes `N` bytes from the front of `bytes`; zeros if fewer bytes are left.
#[inline]
pub fn take_array<const N: usize>(bytes: &mut &[u8]) -> [u8; N] {
    match bytes.split_first_chunk::<N>() {
        Some((first, rest)) => {
            *bytes = rest;
            *first
        }
        None => {
            *bytes = &[];
            [0; N]
        }
    }
}

/// Appends `bytes` in a form that sorts in descending order, where a string comes after the strings that it is a prefix
/// of.
pub fn put_falling(out: &mut Vec<u8>, bytes: &[u8]) {
    for &byte in bytes {
        out.push(!byte);
        if byte == 0 {
            out.push(0);
        }
    }
    out.extend([u8::MAX; 2]);
}

/// Takes the bytes that [`put_falling`] wrote, in the written form, from the front of `bytes`.
pub fn take_falling<'a>(bytes: &mut &'a [u8]) -> &'a [u8] {
    let mut at = 0;
    while let Some(&[one, other]) = bytes.get(at..at + 2) {
        match (one, other) {
            (u8::MAX, u8::MAX) => break,
            (u8::MAX, _) => at += 2,
            _ => at += 1,
        }
    }
    let (taken, rest) = bytes.split_at((at + 2).min(bytes.len()));
    *bytes = rest;
    taken
}

/// A record: its key and its payload.
pub type Record<'a> = (&'a [u8], &'a [u8]);

/// The maximum length of the part of a record before its key: two lengths.
pub(crate) const HEADER_BYTES_MAX: usize = 20;

/// Appends a record: length of the key, length of the payload, both in LEB128, key, payload.
#[inline]
pub(crate) fn append(block: &mut Vec<u8>, key: &[u8], payload: &[u8]) {
    put(block, key.len() as u64);
    put(block, payload.len() as u64);
    block.extend_from_slice(key);
    block.extend_from_slice(payload);
}

/// Takes the first record from the front of `bytes`. Returns key and payload together, and the length of the key.
#[inline]
pub(crate) fn split<'a>(bytes: &mut &'a [u8]) -> (&'a [u8], usize) {
    let key_length = take_usize(bytes);
    let payload_length = take_usize(bytes);
    let (record, rest) = bytes.split_at(key_length + payload_length);
    *bytes = rest;
    (record, key_length)
}

/// The number of bytes that [`first_bytes`] takes.
pub(crate) const FIRST_BYTES: usize = 24;

/// Returns the first bytes of a record, as numbers in the order of the bytes. A shorter record is padded with zeros.
#[inline]
pub(crate) fn first_bytes(record: &[u8]) -> (u128, u64) {
    let mut bytes = [0; FIRST_BYTES];
    match record.first_chunk() {
        Some(first) => bytes = *first,
        None => bytes[..record.len()].copy_from_slice(record),
    }
    let mut rest = &bytes[..];
    (u128::from_be_bytes(take_array(&mut rest)), u64::from_be_bytes(take_array(&mut rest)))
}

/// Calls `each` with every record of a block.
pub fn for_each(block: &[u8], mut each: impl FnMut(&[u8], &[u8])) {
    let mut rest = block;
    while !rest.is_empty() {
        let (record, key_length) = split(&mut rest);
        let (key, payload) = record.split_at(key_length);
        each(key, payload);
    }
}

/// Returns a time as eight bytes that sort in the order of times, also before 1970.
pub fn time_key(time: i64) -> [u8; 8] {
    (time.cast_unsigned() ^ (1 << 63)).to_be_bytes()
}

/// Returns the time from the bytes of [`time_key`].
pub fn key_time(key: [u8; 8]) -> i64 {
    (u64::from_be_bytes(key) ^ (1 << 63)).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_come_back(numbers in prop::collection::vec(any::<u64>(), 0..20)) {
            let mut bytes = Vec::new();
            numbers.iter().for_each(|&number| put(&mut bytes, number));
            let mut rest = &bytes[..];
            let back: Vec<u64> = numbers.iter().map(|_| take(&mut rest)).collect();
            prop_assert_eq!(back, numbers);
            prop_assert!(rest.is_empty());
        }

        #[test]
        fn signed_numbers_come_back(number: i64) {
            let mut bytes = Vec::new();
            put_signed(&mut bytes, number);
            prop_assert_eq!(take_signed(&mut &bytes[..]), number);
        }

        #[test]
        fn falling_bytes_are_in_falling_order(
            one in prop::collection::vec(prop_oneof![Just(0u8), Just(1), Just(255), any::<u8>()], 0..9),
            other in prop::collection::vec(prop_oneof![Just(0u8), Just(1), Just(255), any::<u8>()], 0..9),
            after in prop::collection::vec(any::<u8>(), 0..4),
        ) {
            let put = |bytes: &[u8]| {
                let mut out = Vec::new();
                put_falling(&mut out, bytes);
                out
            };
            prop_assert_eq!(put(&one).cmp(&put(&other)), other.cmp(&one));
            let both = [&put(&one)[..], &after].concat();
            let mut rest = &both[..];
            prop_assert_eq!(take_falling(&mut rest), &put(&one)[..]);
            prop_assert_eq!(rest, &after[..]);
        }

        #[test]
        fn time_keys_keep_the_order(a: i64, b: i64) {
            prop_assert_eq!(time_key(a).cmp(&time_key(b)), a.cmp(&b));
            prop_assert_eq!(key_time(time_key(a)), a);
        }
    }
}
