//! The pages of a column of a row group, as streams: no page is held, whatever its size.
//!
//! Reads page headers (Thrift, compact protocol) and the bytes after them. Gives the levels of a page, and its values
//! as a stream of decompressed bytes. Only the bytes that are read are decompressed.
//!
//! Memory: the levels of a page, at most [`LEVEL_BYTES_MAX`]; buffers of 64 KiB; the window of a decompressor, at most
//! 16 MiB. Source: the Parquet format, `README.md` and `src/main/thrift/parquet.thrift`.

use super::numbers::{broken, byte, varint, zigzag};
use super::snappy::Snappy;
use crate::files::source::Source;
use parquet::basic::Compression;
use std::io::{self, BufRead, BufReader, Error, ErrorKind, Read};

/// The most bytes of the levels of a page: a few bits a value.
const LEVEL_BYTES_MAX: usize = 16 << 20;
/// Base 2 logarithm of the largest window of Zstandard.
const WINDOW_LOG_MAX: u32 = 24;
const BUFFER_BYTES: usize = 64 << 10;
/// The number of bytes that are read to find a page header. Only headers with long statistics are longer.
const HEADER_BYTES: u64 = 4 << 10;

/// The decompressed bytes of a page.
pub(super) type Stream = Box<dyn BufRead + Send>;

/// The place of a column of a row group in a file, its compression, and its largest levels.
pub(super) struct Chunk {
    pub(super) source: Source,
    pub(super) start: u64,
    pub(super) bytes: u64,
    pub(super) compression: Compression,
    /// The largest levels of the values.
    pub(super) max_repetition: i16,
    pub(super) max_definition: i16,
}

/// A page of values.
pub(super) struct Page {
    pub(super) is_dictionary: bool,
    /// The number of values, including nulls.
    pub(super) values: u32,
    pub(super) encoding: i64,
    /// The repetition levels; empty if all of them are 0.
    pub(super) repetition: Vec<u8>,
    pub(super) definition: Vec<u8>,
    pub(super) stream: Stream,
}

/// The pages of a chunk, in order.
pub(super) struct Pages {
    chunk: Chunk,
    /// Offset of the next page header.
    next: u64,
}

/// The fields of a page header that are used here.
#[derive(Default)]
struct Header {
    kind: i64,
    compressed: i64,
    values: i64,
    encoding: i64,
    /// The bytes of the levels, in pages of version 2.
    definition_bytes: i64,
    repetition_bytes: i64,
    is_plain: bool,
}

const DATA: i64 = 0;
const DICTIONARY: i64 = 2;
const DATA_2: i64 = 3;

impl Pages {
    pub(super) fn new(chunk: Chunk) -> Self {
        Pages { next: chunk.start, chunk }
    }

    /// The next page with values; `None` at the end of the chunk.
    pub(super) fn next(&mut self) -> io::Result<Option<Page>> {
        let end = self.chunk.start.saturating_add(self.chunk.bytes);
        while self.next < end {
            let source = self.chunk.source.clone();
            let mut input = At { source, at: self.next, end, buffer: Vec::new(), used: 0, fill: HEADER_BYTES };
            let header = Header::read(&mut input)?;
            let bytes = u64::try_from(header.compressed).map_err(|_| broken("a page has no length"))?;
            let body = input.offset();
            self.next = body.checked_add(bytes).filter(|&next| next <= end).ok_or_else(|| broken("a page is cut"))?;
            input.end = self.next;
            let values = u32::try_from(header.values).map_err(|_| broken("a page has no number of values"))?;
            if matches!(header.kind, DATA | DATA_2 | DICTIONARY) {
                return self.page(&header, values, input).map(Some);
            }
        }
        Ok(None)
    }

    fn page(&self, header: &Header, values: u32, mut input: At) -> io::Result<Page> {
        let Chunk { compression, max_repetition, max_definition, .. } = self.chunk;
        let (mut repetition, mut definition) = (Vec::new(), Vec::new());
        if header.kind == DATA_2 {
            repetition = levels(&mut input, header.repetition_bytes)?;
            definition = levels(&mut input, header.definition_bytes)?;
        }
        let compression =
            if header.kind == DATA_2 && header.is_plain { Compression::UNCOMPRESSED } else { compression };
        let mut stream = decompressed(compression, input)?;
        if header.kind == DATA {
            for (max, levels_of) in [(max_repetition, &mut repetition), (max_definition, &mut definition)] {
                if max > 0 {
                    let mut length = [0; 4];
                    stream.read_exact(&mut length)?;
                    *levels_of = levels(&mut stream, u32::from_le_bytes(length).into())?;
                }
            }
        }
        let is_dictionary = header.kind == DICTIONARY;
        Ok(Page { is_dictionary, values, encoding: header.encoding, repetition, definition, stream })
    }
}

fn levels(input: &mut dyn Read, bytes: i64) -> io::Result<Vec<u8>> {
    let bytes = usize::try_from(bytes).ok().filter(|&bytes| bytes <= LEVEL_BYTES_MAX);
    let mut levels = Vec::new();
    let wanted = bytes.ok_or_else(|| broken("the levels of a page are too long"))?;
    input.take(wanted as u64).read_to_end(&mut levels)?;
    if levels.len() == wanted { Ok(levels) } else { Err(ErrorKind::UnexpectedEof.into()) }
}

fn decompressed(compression: Compression, input: At) -> io::Result<Stream> {
    let buffered = |input| BufReader::with_capacity(BUFFER_BYTES, input);
    Ok(match compression {
        Compression::UNCOMPRESSED => Box::new(input),
        Compression::SNAPPY => Box::new(buffered(Box::new(Snappy::new(input)?) as Box<dyn Read + Send>)),
        Compression::ZSTD(_) => {
            let mut decoder = zstd::stream::read::Decoder::with_buffer(input)?;
            decoder.window_log_max(WINDOW_LOG_MAX)?;
            Box::new(buffered(Box::new(decoder)))
        }
        Compression::GZIP(_) => Box::new(buffered(Box::new(flate2::bufread::MultiGzDecoder::new(input)))),
        Compression::BROTLI(_) => {
            Box::new(buffered(Box::new(brotli_decompressor::Decompressor::new(input, BUFFER_BYTES))))
        }
        other => return Err(Error::other(format!("the compression {other} is not read"))),
    })
}

/// The bytes of a file from one offset to another.
struct At {
    source: Source,
    /// The offset in the file after the bytes in the buffer.
    at: u64,
    end: u64,
    buffer: Vec<u8>,
    used: usize,
    /// The number of bytes that are read at once; at first those of a header.
    fill: u64,
}

impl At {
    /// The offset of the next byte.
    fn offset(&self) -> u64 {
        self.at - (self.buffer.len() - self.used) as u64
    }
}

impl BufRead for At {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.used == self.buffer.len() {
            let wanted = self.end.saturating_sub(self.at).min(self.fill);
            self.fill = self.source.step();
            self.used = 0;
            self.source.read_into(&mut self.buffer, self.at..self.at + wanted)?;
            self.at += self.buffer.len() as u64;
        }
        // The buffer may hold bytes of the next page.
        let here = usize::try_from(self.end.saturating_sub(self.offset())).unwrap_or(usize::MAX);
        let left = &self.buffer[self.used..];
        Ok(&left[..left.len().min(here)])
    }

    fn consume(&mut self, bytes: usize) {
        self.used += bytes;
    }
}

impl Read for At {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let bytes = self.fill_buf()?.read(out)?;
        self.consume(bytes);
        Ok(bytes)
    }
}

impl Header {
    fn read(input: &mut At) -> io::Result<Header> {
        let mut header = Header::default();
        fields(input, |id, field, input| {
            match (id, field) {
                (1, Field::Number(kind)) => header.kind = kind,
                (3, Field::Number(bytes)) => header.compressed = bytes,
                (5 | 7 | 8, Field::Struct) => {
                    let outer = id;
                    fields(input, |id, field, input| {
                        match (outer, id, field) {
                            (_, 1, Field::Number(values)) => header.values = values,
                            (5 | 7, 2, Field::Number(encoding)) | (8, 4, Field::Number(encoding)) => {
                                header.encoding = encoding;
                            }
                            (8, 5, Field::Number(bytes)) => header.definition_bytes = bytes,
                            (8, 6, Field::Number(bytes)) => header.repetition_bytes = bytes,
                            (8, 7, Field::Bool(is_compressed)) => header.is_plain = !is_compressed,
                            (_, _, Field::Struct) => fields(input, skip)?,
                            _ => {}
                        }
                        Ok(())
                    })?;
                }
                (_, Field::Struct) => fields(input, skip)?,
                _ => {}
            }
            Ok(())
        })?;
        Ok(header)
    }
}

enum Field {
    Bool(bool),
    Number(i64),
    /// A structure, whose fields come next.
    Struct,
    /// A value that was passed over.
    Other,
}

/// Passes over the rest of a field: the fields of a structure.
fn skip(_: i64, field: Field, input: &mut At) -> io::Result<()> {
    if let Field::Struct = field { fields(input, skip) } else { Ok(()) }
}

/// Calls `each` with the fields of a structure.
fn fields(input: &mut At, mut each: impl FnMut(i64, Field, &mut At) -> io::Result<()>) -> io::Result<()> {
    let mut id = 0;
    loop {
        let head = byte(input)?;
        if head == 0 {
            return Ok(());
        }
        id = if head >> 4 == 0 { zigzag(varint(input)?) } else { id + i64::from(head >> 4) };
        let field = match head & 15 {
            1 => Field::Bool(true),
            2 => Field::Bool(false),
            3 => Field::Number(byte(input)?.cast_signed().into()),
            4..=6 => Field::Number(zigzag(varint(input)?)),
            7 => {
                pass(input, 8)?;
                Field::Other
            }
            8 => {
                let bytes = varint(input)?;
                pass(input, bytes)?;
                Field::Other
            }
            12 => Field::Struct,
            _ => return Err(broken("a page header is not understood")),
        };
        each(id, field, input)?;
    }
}

/// Passes over some bytes.
pub(super) fn pass(input: &mut dyn BufRead, bytes: u64) -> io::Result<()> {
    let mut left = bytes;
    while left > 0 {
        let here = usize::try_from(left).unwrap_or(usize::MAX).min(input.fill_buf()?.len());
        if here == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        input.consume(here);
        left -= here as u64;
    }
    Ok(())
}
