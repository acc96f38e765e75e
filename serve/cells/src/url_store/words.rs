//! Numbers at any place of an image. Reading stays inside the bytes; beyond their end are zeros.

/// The width in bits for values up to `max`, at most 32.
pub(super) fn width_for(max: usize) -> u8 {
    u8::try_from(usize::BITS - max.leading_zeros()).map_or(32, |bits| bits.min(32))
}

/// Value `index` of a column with this start in bits and this width, at most 32.
#[inline]
pub(super) fn field(bytes: &[u8], (start, width): (usize, u32), index: usize) -> usize {
    let bit = start + index * width as usize;
    #[expect(clippy::cast_possible_truncation, reason = "the mask leaves at most 32 bits")]
    let value = (word(bytes, bit >> 3) >> (bit & 7) & ((1 << width) - 1)) as usize;
    value
}

/// The eight bytes from `at` on.
#[inline]
pub(super) fn word(bytes: &[u8], at: usize) -> u64 {
    match bytes.get(at..).and_then(|rest| rest.first_chunk()) {
        Some(word) => u64::from_le_bytes(*word),
        None => word_at_end(bytes, at),
    }
}

#[cold]
fn word_at_end(bytes: &[u8], at: usize) -> u64 {
    let rest = bytes.get(at..).unwrap_or_default();
    let mut word = [0; 8];
    word[..rest.len()].copy_from_slice(rest);
    u64::from_le_bytes(word)
}
