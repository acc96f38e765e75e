//! Encodings of the links of a cell without time: for each node of the cell, a rising list of UIDs.
//!
//! Nodes are `0..nodes`; node `i` is the URL with UID `first + i`, where `first` is the first UID of the cell; links are UIDs
//! of any cell. An encoder reads [`Lists`] and gives bytes, whose first part is the codec's own header; [`open`] reads them
//! again, from a mapped image or from memory, without a copy. All codecs give the same answers.
//!
//! A codec reads bytes that may be damaged: it gives [`Damage`], and never panics, reads outside, or takes time or memory out of
//! proportion to the bytes.

pub mod bv;
pub mod bv_files;
pub mod csr;
mod escaped;
pub mod iir7;
pub mod link1;
pub mod link2;
pub mod link3;
mod nybble;
pub(crate) mod parts;
mod referenced;
pub mod shs;
pub mod snode;
mod starts;
pub mod strata;

use bytes::Bytes;

use crate::error::{Damage, EncodeError};

/// Lists of links, one a node, one after the other: what encoders read, and the slow form that others are compared with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lists {
    /// UID of node 0.
    pub first: u64,
    /// Where each list ends in `links`.
    pub ends: Vec<usize>,
    /// The lists, each rising, without repeats.
    pub links: Vec<u64>,
}

impl Lists {
    /// Number of nodes.
    pub fn nodes(&self) -> usize {
        self.ends.len()
    }

    /// The list of a node. Panics when there is no such node.
    pub fn list(&self, node: usize) -> &[u64] {
        let start = node.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.links[start..self.ends[node]]
    }

    /// Appends the list of the next node.
    pub fn push(&mut self, list: &[u64]) {
        self.links.extend_from_slice(list);
        self.ends.push(self.links.len());
    }
}

/// Bytes of an encoding, by use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Links themselves.
    pub data: u64,
    /// What leads from a node to its list.
    pub index: u64,
    /// Header, tables of codes and the like.
    pub tables: u64,
}

/// Encoded lists, ready to answer.
pub trait LinkCodec: Send + Sync {
    /// Number of nodes.
    fn nodes(&self) -> usize;

    /// Replaces the contents of `links` by the list of a node, rising.
    ///
    /// # Errors
    /// A node outside the cell, and damaged bytes.
    fn list(&self, node: usize, links: &mut Vec<u64>) -> Result<(), Damage>;

    /// Length of a node's list; where the encoding does not hold it, the list is decoded.
    ///
    /// # Errors
    /// See [`LinkCodec::list`].
    fn degree(&self, node: usize) -> Result<usize, Damage> {
        let mut links = Vec::new();
        self.list(node, &mut links)?;
        Ok(links.len())
    }

    /// Calls `visit` with each node and its list, in order of nodes; encodings that gain from order override it.
    ///
    /// # Errors
    /// Damaged bytes.
    fn scan(&self, visit: &mut dyn FnMut(usize, &[u64])) -> Result<(), Damage> {
        let mut links = Vec::new();
        for node in 0..self.nodes() {
            self.list(node, &mut links)?;
            visit(node, &links);
        }
        Ok(())
    }

    /// Where the bytes are.
    fn sizes(&self) -> Sizes;
}

/// The tag of an encoding in the header of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum CodecTag {
    /// [`csr`]: plain ends and links, 64 bits each.
    Csr = 0,
    /// [`link1`]: plain, 32 bits where they fit.
    Link1 = 1,
    /// [`link2`]: gaps in nybbles.
    Link2 = 2,
    /// [`link3`]: changes of lists before, in nybbles.
    Link3 = 3,
    /// [`link3`] with Huffman coded adds.
    Link3Huff = 4,
    /// [`shs`] in bytes.
    ShsByte = 5,
    /// [`shs`] in nybbles.
    ShsNybble = 6,
    /// [`iir7`]: changes of one of seven rows before.
    Iir7 = 7,
    /// [`snode`]: supernodes and small graphs.
    Snode = 8,
    /// [`bv`]: WebGraph's format, by its own crate.
    Bv = 9,
    /// [`strata`], small.
    Strata = 16,
    /// [`strata`], fast.
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

    /// The name that users know the encoding by.
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

    /// Whether its encoder goes by the keys of URLs; all others need none.
    pub const fn reads_keys(self) -> bool {
        matches!(self, CodecTag::Snode)
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

/// Encodes lists with the defaults of an encoding; `keys`, if there are any, are the URL keys of the nodes, in order, of use
/// where [`CodecTag::reads_keys`].
///
/// # Errors
/// Lists that the encoding cannot hold.
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
        CodecTag::Bv => bv::encode(lists, &bv::Options::default())?,
        CodecTag::Strata => strata::encode_lists(lists, strata::Profile::ARCHIVE),
        CodecTag::StrataSpeed => strata::encode_lists(lists, strata::Profile::SPEED),
    })
}

/// Opens what the encoder of `tag` wrote.
///
/// # Errors
/// Bytes whose header is not the codec's.
pub fn open(tag: CodecTag, bytes: Bytes) -> Result<Box<dyn LinkCodec>, Damage> {
    Ok(match tag {
        CodecTag::Csr | CodecTag::Link1 => Box::new(csr::Csr::open(bytes)?),
        CodecTag::Link2 => Box::new(link2::Link2::open(bytes)?),
        CodecTag::Link3 | CodecTag::Link3Huff | CodecTag::Iir7 => Box::new(referenced::Referenced::open(bytes)?),
        CodecTag::ShsByte | CodecTag::ShsNybble => Box::new(shs::Shs::open(bytes)?),
        CodecTag::Snode => Box::new(snode::Snode::open(bytes)?),
        CodecTag::Bv => Box::new(bv::Bv::open(bytes)?),
        CodecTag::Strata | CodecTag::StrataSpeed => Box::new(strata::Strata::open(bytes)?),
    })
}

/// Opens whatever it is given and walks it, in order and not, as far as it goes: what a fuzzer calls. How many links it met.
///
/// # Errors
/// The first damage.
pub fn probe(tag: CodecTag, bytes: Bytes) -> Result<u64, Damage> {
    let codec = open(tag, bytes)?;
    let (mut links, mut met) = (Vec::new(), 0);
    let step = codec.nodes() / 64 + 1;
    let random = (0..codec.nodes()).rev().step_by(step).try_for_each(|node| {
        codec.degree(node)?;
        codec.list(node, &mut links)
    });
    codec.scan(&mut |_, list| met += list.len() as u64)?;
    random.map(|()| met)
}
