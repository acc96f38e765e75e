//! Writes ZIP archives for tests, whole and damaged, byte by byte and without a library.

use std::io::Read;

/// A member to write, with each field that a test may falsify.
#[derive(Clone)]
pub(crate) struct Part {
    pub(crate) name: String,
    /// The bytes in the archive.
    pub(crate) stored: Vec<u8>,
    pub(crate) bytes: u64,
    pub(crate) crc32: u32,
    pub(crate) method: u16,
    pub(crate) flags: u16,
    /// Whether sizes and offset are in zip64 fields only.
    pub(crate) is_zip64: bool,
    /// An extra field that only the local header has.
    pub(crate) local_extra: Vec<u8>,
    /// Added to the offset in the directory.
    pub(crate) offset_error: u32,
}

/// A stored member.
pub(crate) fn stored(name: &str, content: &[u8]) -> Part {
    let mut crc = flate2::Crc::new();
    crc.update(content);
    Part {
        name: name.to_owned(),
        stored: content.to_vec(),
        bytes: content.len() as u64,
        crc32: crc.sum(),
        method: 0,
        flags: 0,
        is_zip64: false,
        local_extra: Vec::new(),
        offset_error: 0,
    }
}

/// A deflated member.
pub(crate) fn deflated(name: &str, content: &[u8]) -> Part {
    let mut packed = Vec::new();
    flate2::read::DeflateEncoder::new(content, flate2::Compression::fast()).read_to_end(&mut packed).unwrap();
    Part { stored: packed, method: 8, ..stored(name, content) }
}

/// The data around the members.
#[derive(Clone, Default)]
pub(crate) struct Around {
    pub(crate) prefix: Vec<u8>,
    /// Whether the offsets count from the beginning of the file, and not from the end of the prefix.
    pub(crate) counts_prefix: bool,
    pub(crate) comment: Vec<u8>,
}

/// An archive with these members.
pub(crate) fn zip(parts: &[Part]) -> Vec<u8> {
    zip_around(parts, &Around::default())
}

/// An archive with these members, with data around them.
pub(crate) fn zip_around(parts: &[Part], around: &Around) -> Vec<u8> {
    let start = if around.counts_prefix { 0 } else { around.prefix.len() };
    let (mut out, mut directory) = (around.prefix.clone(), Vec::new());
    let is_zip64 = parts.iter().any(|part| part.is_zip64);
    for part in parts {
        let offset = u32::try_from(out.len() - start).unwrap();
        let streamed = part.flags & 8 != 0;
        let size = u32::try_from(part.stored.len()).unwrap();
        let bytes = u32::try_from(part.bytes).unwrap();
        let sizes = if part.is_zip64 { [u32::MAX; 2] } else { [size, bytes] };
        let field = |with_offset: bool| -> Vec<u8> {
            let mut values = vec![part.bytes, part.stored.len() as u64];
            values.extend(with_offset.then_some(u64::from(offset)));
            let values: Vec<u8> = values.into_iter().flat_map(u64::to_le_bytes).collect();
            let field = [&[1, 0][..], &u16::try_from(values.len()).unwrap().to_le_bytes(), &values].concat();
            if part.is_zip64 { field } else { Vec::new() }
        };
        let head = |[crc, size, bytes]: [u32; 3], extra: usize| -> Vec<u8> {
            let short = [if part.is_zip64 { 45 } else { 20 }, part.flags, part.method, 0, 0x21];
            let mut head: Vec<u8> = short.into_iter().flat_map(u16::to_le_bytes).collect();
            head.extend([crc, size, bytes].into_iter().flat_map(u32::to_le_bytes));
            head.extend(u16::try_from(part.name.len()).unwrap().to_le_bytes());
            head.extend(u16::try_from(extra).unwrap().to_le_bytes());
            head
        };
        let local = [field(false), part.local_extra.clone()].concat();
        let known = if streamed { [0; 3] } else { [part.crc32, sizes[0], sizes[1]] };
        out.extend(b"PK\x03\x04");
        out.extend(head(known, local.len()));
        out.extend(part.name.as_bytes());
        out.extend(local);
        out.extend(&part.stored);
        if streamed {
            out.extend(b"PK\x07\x08");
            out.extend([part.crc32, size, bytes].into_iter().flat_map(u32::to_le_bytes));
        }
        let extra = field(true);
        directory.extend(b"PK\x01\x02\x14\x03");
        directory.extend(head([part.crc32, sizes[0], sizes[1]], extra.len()));
        directory.extend([0; 10]);
        let offset = if part.is_zip64 { u32::MAX } else { offset + part.offset_error };
        directory.extend(offset.to_le_bytes());
        directory.extend(part.name.as_bytes());
        directory.extend(extra);
    }
    let offset = out.len() - start;
    out.extend(&directory);
    if is_zip64 {
        let record = out.len() - start;
        out.extend(b"PK\x06\x06");
        out.extend(44_u64.to_le_bytes());
        out.extend([45, 0, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        let values = [parts.len(), parts.len(), directory.len(), offset];
        out.extend(values.into_iter().flat_map(|value| (value as u64).to_le_bytes()));
        out.extend(b"PK\x06\x07\0\0\0\0");
        out.extend((record as u64).to_le_bytes());
        out.extend(1_u32.to_le_bytes());
    }
    let count = if is_zip64 { u16::MAX } else { u16::try_from(parts.len()).unwrap() };
    let ends = if is_zip64 { [u32::MAX; 2] } else { [directory.len(), offset].map(|it| u32::try_from(it).unwrap()) };
    out.extend(b"PK\x05\x06\0\0\0\0");
    out.extend([count, count].into_iter().flat_map(u16::to_le_bytes));
    out.extend(ends.into_iter().flat_map(u32::to_le_bytes));
    out.extend(u16::try_from(around.comment.len()).unwrap().to_le_bytes());
    out.extend(&around.comment);
    out
}
