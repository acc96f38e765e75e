//! Snappy in Parquet: one raw block a page, decompressed as a stream.
//!
//! Writers compress pieces of 64 KiB and refer back only inside a piece, so it is enough to hold the latest output. A
//! block that refers further back than [`WINDOW_BYTES`] is damage. Source: `format_description.txt` of Snappy.

use super::numbers::{broken, varint};
use std::io::{self, BufRead, Read};

/// How far back a copy may refer.
const WINDOW_BYTES: usize = 1 << 20;
/// The most bytes that are held before the older ones are dropped.
const HELD_BYTES_MAX: usize = 4 * WINDOW_BYTES;

/// A stream of the decompressed bytes of a block.
pub(super) struct Snappy<R> {
    input: R,
    /// The number of bytes that the block still has to give.
    left: u64,
    /// The latest output, and how much of it was handed out.
    out: Vec<u8>,
    used: usize,
    /// The number of bytes of a literal that are still to come.
    literal: u64,
}

impl<R: BufRead> Snappy<R> {
    pub(super) fn new(mut input: R) -> io::Result<Self> {
        let left = if input.fill_buf()?.is_empty() { 0 } else { varint(&mut input)? };
        Ok(Snappy { input, left, out: Vec::new(), used: 0, literal: 0 })
    }

    /// Reads a number of some bytes, the least significant byte first.
    fn number(&mut self, bytes: usize) -> io::Result<usize> {
        let mut number = [0; 8];
        self.input.read_exact(&mut number[..bytes])?;
        Ok(usize::try_from(u64::from_le_bytes(number)).unwrap_or(usize::MAX))
    }

    /// Decompresses a literal, or a piece of one, or a copy.
    fn element(&mut self) -> io::Result<()> {
        if self.out.len() > HELD_BYTES_MAX && self.used > WINDOW_BYTES {
            let old = self.used - WINDOW_BYTES;
            self.out.drain(..old);
            self.used = WINDOW_BYTES;
        }
        if self.literal == 0 {
            let tag = self.number(1)?;
            let (length, offset) = match tag & 3 {
                0 => {
                    let length = match tag >> 2 {
                        short @ 0..60 => short,
                        long => self.number(long - 59)?,
                    };
                    self.literal = length as u64 + 1;
                    (0, 0)
                }
                1 => (4 + (tag >> 2 & 7), (tag >> 5) << 8 | self.number(1)?),
                2 => (1 + (tag >> 2), self.number(2)?),
                _ => (1 + (tag >> 2), self.number(4)?),
            };
            if self.literal == 0 {
                let Some(start) = self.out.len().checked_sub(offset).filter(|_| offset > 0) else {
                    return Err(broken("a copy refers to what is not at hand"));
                };
                for at in start..start + length {
                    self.out.push(self.out[at]);
                }
                return Ok(());
            }
        }
        let here = self.input.fill_buf()?;
        let count = usize::try_from(self.literal).unwrap_or(usize::MAX).min(here.len());
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.out.extend_from_slice(&here[..count]);
        self.input.consume(count);
        self.literal -= count as u64;
        Ok(())
    }
}

impl<R: BufRead> Read for Snappy<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 || out.is_empty() {
            return Ok(0);
        }
        while self.used == self.out.len() {
            self.element()?;
        }
        let count = (self.out.len() - self.used).min(out.len()).min(usize::try_from(self.left).unwrap_or(usize::MAX));
        out[..count].copy_from_slice(&self.out[self.used..self.used + count]);
        self.used += count;
        self.left -= count as u64;
        Ok(count)
    }
}
