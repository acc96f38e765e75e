//! The encodings of numbers in Parquet: LEB128 ([`varint`]), runs and packed bits ([`Hybrid`]: levels and keys), and
//! packed differences ([`differences`]). Source: the Parquet format, `Encodings.md`.

use std::io::{self, BufRead, Read};

/// RLE and bit-packing: numbers of up to 32 bits.
pub(super) struct Hybrid<R> {
    input: R,
    width: u32,
    /// The rest of a run: how often the number still comes, and the number.
    run: (u64, u32),
    /// The number of groups of 8 numbers that are still packed.
    groups: u64,
    unpacked: [u32; 8],
    /// How many numbers of the group at hand were handed out.
    used: usize,
}

impl<R: Read> Hybrid<R> {
    pub(super) fn new(input: R, width: u32) -> io::Result<Self> {
        if width > 32 {
            return Err(broken("numbers have more than 32 bits"));
        }
        Ok(Hybrid { input, width, run: (0, 0), groups: 0, unpacked: [0; 8], used: 8 })
    }

    /// The next number.
    #[inline]
    pub(super) fn next(&mut self) -> io::Result<u32> {
        if self.used < 8 {
            self.used += 1;
            return Ok(self.unpacked[self.used - 1]);
        }
        if self.run.0 > 0 {
            self.run.0 -= 1;
            return Ok(self.run.1);
        }
        self.refill()?;
        self.next()
    }

    /// How many of the next numbers are known to be `number` without reading on.
    #[inline]
    pub(super) fn known(&self, number: u32) -> usize {
        let group = &self.unpacked[self.used..];
        if group.is_empty() {
            return if self.run.1 == number { usize::try_from(self.run.0).unwrap_or(usize::MAX) } else { 0 };
        }
        group.iter().position(|&other| other != number).unwrap_or(group.len())
    }

    /// Passes over `count` numbers, at most as many as [`Hybrid::known`] returned.
    #[inline]
    pub(super) fn pass(&mut self, count: usize) {
        if self.used < self.unpacked.len() { self.used += count } else { self.run.0 -= count as u64 }
    }

    fn refill(&mut self) -> io::Result<()> {
        let bytes = self.width.div_ceil(8) as usize;
        if self.groups == 0 {
            let head = varint(&mut self.input)?;
            if head & 1 == 0 {
                let mut number = [0; 4];
                self.input.read_exact(&mut number[..bytes])?;
                self.run = (head >> 1, u32::from_le_bytes(number));
                return if self.run.0 > 0 { Ok(()) } else { Err(broken("a run is empty")) };
            }
            self.groups = head >> 1;
            if self.groups == 0 {
                return Err(broken("a run is empty"));
            }
        }
        self.groups -= 1;
        let mut packed = [0; 36];
        // The last group may be cut.
        let (mut read, wanted) = (0, self.width as usize);
        while read < wanted {
            match self.input.read(&mut packed[read..wanted])? {
                0 if read > 0 => break,
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                bytes => read += bytes,
            }
        }
        let mask = u64::from(u32::MAX >> (32 - self.width).min(31)) * u64::from(self.width > 0);
        for (number, out) in self.unpacked.iter_mut().enumerate() {
            let bit = number * self.width as usize;
            // At most 7 bits precede a number in its first byte, so 8 bytes contain the whole number.
            let window = packed[bit / 8..].first_chunk().copied().unwrap_or_default();
            #[expect(clippy::cast_possible_truncation, reason = "the mask has at most 32 bits")]
            let unpacked = (u64::from_le_bytes(window) >> (bit % 8) & mask) as u32;
            *out = unpacked;
        }
        self.used = 0;
        Ok(())
    }
}

/// The most numbers of a page that are held.
const HELD_MAX: u64 = 4 << 20;

/// Reads numbers that are packed differences (`DELTA_BINARY_PACKED`), and holds all of them.
pub(super) fn differences(input: &mut dyn BufRead) -> io::Result<Vec<i64>> {
    let (block, pieces, count) = (varint(input)?, varint(input)?, varint(input)?);
    let mut number = zigzag(varint(input)?);
    if count > HELD_MAX || pieces == 0 || pieces > 1 << 10 || block / pieces % 32 != 0 || block / pieces > 1 << 16 {
        return Err(broken("packed differences are too many"));
    }
    let (wanted, in_piece) = (usize::try_from(count).unwrap_or(0), block / pieces);
    let mut numbers = Vec::new();
    if wanted > 0 {
        numbers.push(number);
    }
    while numbers.len() < wanted {
        let least = zigzag(varint(input)?);
        let mut widths = vec![0; usize::try_from(pieces).unwrap_or(0)];
        input.read_exact(&mut widths)?;
        for width in widths {
            if numbers.len() == wanted {
                break;
            }
            if width > 64 {
                return Err(broken("a difference has more than 64 bits"));
            }
            let mut packed = vec![0; usize::try_from(in_piece / 8).unwrap_or(0) * usize::from(width)];
            input.read_exact(&mut packed)?;
            packed.extend([0; 16]);
            for at in 0..usize::try_from(in_piece).unwrap_or(0).min(wanted - numbers.len()) {
                let bit = at * usize::from(width);
                let mut window = [0; 16];
                window.copy_from_slice(&packed[bit / 8..bit / 8 + 16]);
                let mask = (1u128 << width) - 1;
                let difference = u64::try_from(u128::from_le_bytes(window) >> (bit % 8) & mask).unwrap_or(0);
                number = number.wrapping_add(least).wrapping_add(difference.cast_signed());
                numbers.push(number);
            }
        }
    }
    Ok(numbers)
}

/// Reads a number in LEB128.
pub(super) fn varint(input: &mut dyn Read) -> io::Result<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = byte(input)?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(number);
        }
    }
    Err(broken("a number has more than 64 bits"))
}

/// Reads one byte.
pub(super) fn byte(input: &mut dyn Read) -> io::Result<u8> {
    let mut byte = [0];
    input.read_exact(&mut byte)?;
    Ok(byte[0])
}

/// The signed number that zigzag coding made unsigned.
pub(super) fn zigzag(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -(number & 1).cast_signed()
}

/// The error for bytes that break the format.
pub(super) fn broken(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}
