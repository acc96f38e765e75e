//! Words and sections of an encoding. Every header has 64-bit words, lowest byte first, with the lengths of the
//! sections that follow it.

use bytes::Bytes;

use crate::error::Damage;

/// Takes words and sections off the front of an encoding.
#[derive(Debug)]
pub struct Sections {
    rest: Bytes,
    /// The name of the part that [`Damage`] reports.
    codec: &'static str,
}

impl Sections {
    /// Starts at the first byte.
    pub fn new(bytes: Bytes, codec: &'static str) -> Self {
        Self { rest: bytes, codec }
    }

    /// The next word.
    pub fn word(&mut self) -> Result<u64, Damage> {
        let word = self.rest.first_chunk().map(|word| u64::from_le_bytes(*word));
        let word = word.ok_or(Damage::Ends { part: self.codec })?;
        let _ = self.rest.split_to(8);
        Ok(word)
    }

    /// The next word, which must not exceed `bound`.
    pub fn word_within(&mut self, bound: u64) -> Result<u64, Damage> {
        let value = self.word()?;
        if value > bound {
            return Err(Damage::Outside { part: self.codec, value, bound });
        }
        Ok(value)
    }

    /// The next word as a length in memory. Lists and sections are below 2^48.
    pub fn length(&mut self) -> Result<usize, Damage> {
        let bound = 1u64 << 48;
        let value = self.word_within(bound)?;
        usize::try_from(value).map_err(|_| Damage::Outside { part: self.codec, value, bound })
    }

    /// The next `count` items of `width` bytes.
    pub fn take(&mut self, count: usize, width: usize) -> Result<Bytes, Damage> {
        match count.checked_mul(width) {
            Some(length) if length <= self.rest.len() => Ok(self.rest.split_to(length)),
            _ => Err(Damage::Ends { part: self.codec }),
        }
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// All bytes that are left.
    pub fn rest(self) -> Bytes {
        self.rest
    }
}

/// Appends words.
pub fn push_words(out: &mut Vec<u8>, words: &[u64]) {
    words.iter().for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
}

/// The width in bytes that holds all values up to `max`: 4 or 8.
pub fn width_of(max: u64) -> usize {
    if u32::try_from(max).is_ok() { 4 } else { 8 }
}

/// Appends the `width` low bytes of a value.
pub fn push_wide(out: &mut Vec<u8>, value: u64, width: usize) {
    out.extend_from_slice(&value.to_le_bytes()[..width]);
}

/// Item `at` of an array of items of `width` bytes, 4 or 8; `None` if it is outside.
#[inline]
pub fn wide_at(array: &[u8], at: usize, width: usize) -> Option<u64> {
    let rest = array.get(at.checked_mul(width)?..)?;
    match width {
        4 => rest.first_chunk().map(|item| u64::from(u32::from_le_bytes(*item))),
        _ => rest.first_chunk().map(|item| u64::from_le_bytes(*item)),
    }
}

/// The damage of a node outside the cell.
pub fn no_such_node(node: usize, nodes: usize) -> Damage {
    Damage::Outside { part: "node", value: node as u64, bound: nodes as u64 }
}
