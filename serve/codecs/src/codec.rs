//! Encodings of the links of a cell without time: for each node of the cell, a rising list of numbers.
//!
//! Nodes are `0..nodes`; node `i` has the number `first + i`; links are numbers of any URLs. An encoder reads [`Lists`]
//! and returns bytes that begin with a header of the codec. [`open`] opens these bytes, from a mapped image or from
//! memory, without a copy. All codecs give the same answers.
//!
//! A codec reads bytes that may be damaged. It returns [`Damage`] then, and never panics, reads outside, or takes time
//! or memory out of proportion to the bytes.

#[cfg(feature = "webgraph")]
pub mod bv;
#[cfg(feature = "webgraph")]
pub mod bv_files;
pub mod csr;
mod escaped;
pub mod iir7;
pub mod link1;
pub mod link2;
pub mod link3;
mod nybble;
mod referenced;
pub mod shs;
pub mod snode;
mod starts;

use bytes::Bytes;

use webstrata_cells::links::codec::LinkCodec;
use webstrata_cells::links::lists::Lists;
use webstrata_cells::links::scratch::StoreScratch;
use webstrata_cells::links::strata;
use webstrata_cells::{Absent, Damage, EncodeError};

/// The tag of an encoding in the header of an image.
///
/// ```
/// use webstrata_codecs::CodecTag;
///
/// assert_eq!(CodecTag::from_name("link3"), Some(CodecTag::Link3));
/// assert!(CodecTag::ALL.iter().all(|tag| CodecTag::from_name(tag.name()) == Some(*tag)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum CodecTag {
    /// [`csr`]: plain ends and links, 64 bits each.
    Csr = 0,
    /// [`link1`]: plain, 32 bits each if the values fit.
    Link1 = 1,
    /// [`link2`]: gaps in nybbles.
    Link2 = 2,
    /// [`link3`]: changes of earlier lists, in nybbles.
    Link3 = 3,
    /// [`link3`] with Huffman coded adds.
    Link3Huff = 4,
    /// [`shs`] in bytes.
    ShsByte = 5,
    /// [`shs`] in nybbles.
    ShsNybble = 6,
    /// [`iir7`]: changes of one of the seven rows before.
    Iir7 = 7,
    /// [`snode`]: supernodes and small graphs.
    Snode = 8,
    /// `bv`: WebGraph's format, by its crate, with the feature `webgraph`.
    Bv = 9,
    /// [`strata`], for small size.
    Strata = 16,
    /// [`strata`], for speed.
    StrataSpeed = 17,
}

impl CodecTag {
    /// All tags.
    pub const ALL: [CodecTag; 12] = [
        CodecTag::Csr,
        CodecTag::Link1,
        CodecTag::Link2,
        CodecTag::Link3,
        CodecTag::Link3Huff,
        CodecTag::ShsByte,
        CodecTag::ShsNybble,
        CodecTag::Iir7,
        CodecTag::Snode,
        CodecTag::Bv,
        CodecTag::Strata,
        CodecTag::StrataSpeed,
    ];

    /// The name of the encoding for users.
    pub const fn name(self) -> &'static str {
        match self {
            CodecTag::Csr => "csr",
            CodecTag::Link1 => "link1",
            CodecTag::Link2 => "link2",
            CodecTag::Link3 => "link3",
            CodecTag::Link3Huff => "link3-huff",
            CodecTag::ShsByte => "shs-byte",
            CodecTag::ShsNybble => "shs-nybble",
            CodecTag::Iir7 => "iir7",
            CodecTag::Snode => "snode",
            CodecTag::Bv => "bv",
            CodecTag::Strata => "strata",
            CodecTag::StrataSpeed => "strata-speed",
        }
    }

    /// Whether the encoder uses the keys of URLs; most encodings do not.
    pub const fn reads_keys(self) -> bool {
        matches!(self, CodecTag::Snode)
    }

    /// Whether this binary has the encoding. Every binary knows all names and numbers.
    ///
    /// # Errors
    /// [`Absent`] for `bv` without the feature `webgraph`.
    pub const fn present(self) -> Result<(), Absent> {
        match self {
            #[cfg(not(feature = "webgraph"))]
            CodecTag::Bv => Err(BV_ABSENT),
            _ => Ok(()),
        }
    }

    /// The tag with a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tag| tag.name() == name)
    }

    /// The tag with a number.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|&tag| tag as u8 == number)
    }
}

/// The error in a binary without WebGraph's crate.
#[cfg(not(feature = "webgraph"))]
pub(crate) const BV_ABSENT: Absent = Absent { codec: "bv", feature: "webgraph" };

/// Encodes lists with the defaults of an encoding. `keys`, if given, are the URL keys of the nodes, in order; only
/// encodings with [`CodecTag::reads_keys`] use them.
///
/// # Errors
/// Lists that the encoding cannot hold; an encoding that is not [`present`](CodecTag::present).
pub fn encode(tag: CodecTag, lists: &Lists, keys: Option<&[Vec<u8>]>) -> Result<Vec<u8>, EncodeError> {
    Ok(match tag {
        CodecTag::Csr => csr::encode(lists),
        CodecTag::Link1 => link1::encode(lists),
        CodecTag::Link2 => link2::encode(lists),
        CodecTag::Link3 => link3::encode(lists, link3::K, link3::L, false),
        CodecTag::Link3Huff => link3::encode(lists, link3::K, link3::L, true),
        CodecTag::ShsByte => shs::encode(lists, shs::Unit::Byte, shs::STRIDE),
        CodecTag::ShsNybble => shs::encode(lists, shs::Unit::Nybble, shs::STRIDE),
        CodecTag::Iir7 => iir7::encode(lists, iir7::THRESHOLD),
        CodecTag::Snode => snode::encode(lists, keys, &snode::Options::default()),
        #[cfg(feature = "webgraph")]
        CodecTag::Bv => bv::encode(lists, &bv::Options::default())?,
        #[cfg(not(feature = "webgraph"))]
        CodecTag::Bv => return Err(BV_ABSENT.into()),
        CodecTag::Strata => strata::encode_lists(lists, strata::Profile::ARCHIVE),
        CodecTag::StrataSpeed => strata::encode_lists(lists, strata::Profile::SPEED),
    })
}

/// Opens the bytes that the encoder of `tag` wrote.
///
/// # Errors
/// Bytes with a header that is not the codec's; an encoding that is not [`present`](CodecTag::present).
pub fn open(tag: CodecTag, bytes: Bytes) -> Result<Box<dyn LinkCodec>, Damage> {
    Ok(match tag {
        CodecTag::Csr | CodecTag::Link1 => Box::new(csr::Csr::open(bytes)?),
        CodecTag::Link2 => Box::new(link2::Link2::open(bytes)?),
        CodecTag::Link3 | CodecTag::Link3Huff | CodecTag::Iir7 => Box::new(referenced::Referenced::open(bytes)?),
        CodecTag::ShsByte | CodecTag::ShsNybble => Box::new(shs::Shs::open(bytes)?),
        CodecTag::Snode => Box::new(snode::Snode::open(bytes)?),
        #[cfg(feature = "webgraph")]
        CodecTag::Bv => Box::new(bv::Bv::open(bytes)?),
        #[cfg(not(feature = "webgraph"))]
        CodecTag::Bv => return Err(Damage::Absent(BV_ABSENT)),
        CodecTag::Strata | CodecTag::StrataSpeed => Box::new(strata::Strata::open(bytes)?),
    })
}

/// Opens any bytes and reads their lists, in order and in another order, until damage. Fuzzers call this function.
/// Returns the number of links read.
///
/// # Errors
/// The first damage.
pub fn probe(tag: CodecTag, bytes: Bytes) -> Result<u64, Damage> {
    let codec = open(tag, bytes)?;
    let (mut scratch, mut links, mut met) = (StoreScratch::default(), Vec::new(), 0);
    let step = codec.nodes() / 64 + 1;
    let random = (0..codec.nodes()).rev().step_by(step).try_for_each(|node| {
        codec.degree(node)?;
        codec.list(node, &mut scratch, &mut links)
    });
    codec.scan(&mut |_, list| met += list.len() as u64)?;
    random.map(|()| met)
}
