//! The table of the encodings of images: strata, and every codec of the literature with plain times beside it.

use bytes::Bytes;
use webstrata_cells::links::encoding::{
    self, BackwardStore, CellShape, Encoding, Encodings, ForwardStore, Records, Tag,
};
use webstrata_cells::{Damage, Error, Number};
use webstrata_layers::{InLinks, Page};

use crate::codec::CodecTag;
use crate::union::{self, Union};

/// All encodings, for callers that open images.
pub const ENCODINGS: Encodings = Encodings(&[
    &CodecTag::Csr,
    &CodecTag::Link1,
    &CodecTag::Link2,
    &CodecTag::Link3,
    &CodecTag::Link3Huff,
    &CodecTag::ShsByte,
    &CodecTag::ShsNybble,
    &CodecTag::Iir7,
    &CodecTag::Snode,
    &CodecTag::Bv,
    &encoding::STRATA,
    &encoding::STRATA_SPEED,
]);

impl CodecTag {
    /// The encoding of both link stores of a cell.
    pub fn encoding(self) -> &'static dyn Encoding {
        ENCODINGS.0[Self::ALL.iter().position(|&tag| tag == self).unwrap_or(0)]
    }
}

/// Encodings without time: the union of links, with times beside it.
impl Encoding for CodecTag {
    fn tag(&self) -> Tag {
        Tag(*self as u32)
    }

    fn name(&self) -> &'static str {
        CodecTag::name(*self)
    }

    fn reads_keys(&self) -> bool {
        CodecTag::reads_keys(*self)
    }

    fn encode_forward<'a>(
        &self,
        shape: CellShape<'a>,
        pages: &dyn Fn() -> Records<'a, Page<Number>>,
    ) -> Result<Vec<u8>, Error> {
        union::encode(*self, shape, pages())
    }

    fn encode_backward<'a>(
        &self,
        shape: CellShape<'a>,
        records: &dyn Fn() -> Records<'a, InLinks<Number>>,
    ) -> Result<Vec<u8>, Error> {
        let page = |InLinks::<Number> { uid, ranges, sources, changes }| Page {
            uid,
            timestamps: ranges,
            blank: Vec::new(),
            statuses: Vec::new(),
            links: sources,
            changes,
        };
        union::encode(*self, shape, records().map(|record| record.map(page)))
    }

    fn open_forward(&self, bytes: Bytes, first: Number, nodes: usize) -> Result<Box<dyn ForwardStore>, Damage> {
        Ok(Box::new(Union::open(*self, bytes, first, nodes)?))
    }

    fn open_backward(&self, bytes: Bytes, first: Number, nodes: usize) -> Result<Box<dyn BackwardStore>, Damage> {
        Ok(Box::new(Union::open(*self, bytes, first, nodes)?))
    }
}
