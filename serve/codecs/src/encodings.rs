//! The table of the encodings of images: strata, and every codec of the literature with plain times beside it.

use webstrata_cells::links::encoding::{
    self, BackwardStore, CellRecords, CellShape, EachPass, Encoding, Encodings, ForwardStore, LinkStores, SideEncoding,
    Tag,
};
use webstrata_cells::mapped::guard::Section;
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
    &encoding::STRATA_THIN,
]);

static TAGS: [CodecTag; CodecTag::ALL.len()] = CodecTag::ALL;

impl CodecTag {
    /// The encoding of both link stores of a cell.
    pub fn encoding(self) -> &'static dyn SideEncoding {
        match self {
            CodecTag::Strata => &encoding::STRATA,
            CodecTag::StrataSpeed => &encoding::STRATA_SPEED,
            _ => &TAGS[TAGS.iter().position(|&tag| tag == self).unwrap_or(0)],
        }
    }
}

impl From<CodecTag> for &'static dyn Encoding {
    fn from(tag: CodecTag) -> Self {
        tag.encoding()
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

    fn encode<'a>(&self, shape: CellShape<'a>, records: CellRecords<'a, '_>) -> Result<[Vec<u8>; 2], Error> {
        self.encode_sides(shape, records)
    }

    fn open(&self, sections: [&Section; 2], first: Number, nodes: usize) -> Result<LinkStores, Damage> {
        self.open_sides(sections, first, nodes)
    }
}

impl SideEncoding for CodecTag {
    fn encode_forward<'a>(
        &self,
        shape: CellShape<'a>,
        (_, pages): EachPass<'a, '_, Page<Number>>,
    ) -> Result<Vec<u8>, Error> {
        union::encode(*self, shape, pages())
    }

    fn encode_backward<'a>(
        &self,
        shape: CellShape<'a>,
        (_, records): EachPass<'a, '_, InLinks<Number>>,
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

    fn open_forward(&self, section: &Section, first: Number, nodes: usize) -> Result<Box<dyn ForwardStore>, Damage> {
        Ok(Box::new(Union::open(*self, section.bytes().clone(), first, nodes)?))
    }

    fn open_backward(&self, section: &Section, first: Number, nodes: usize) -> Result<Box<dyn BackwardStore>, Damage> {
        Ok(Box::new(Union::open(*self, section.bytes().clone(), first, nodes)?))
    }
}
