//! Strata: all of a page in one record.

mod blocks;
mod encode;
mod links;
mod references;
mod symbols;

use std::cell::RefCell;

use bytes::Bytes;

use crate::bits::BitReader;
use crate::codec::{LinkCodec, Sizes};
use crate::error::Damage;

use blocks::Blocks;
use symbols::{Context, Tables};

pub use encode::{Profile, encode};

/// Farthest neighbour that may be a reference.
const WINDOW_MAX: usize = 32;
const PART: &str = "strata";

/// Encoded lists without time.
pub struct Strata {
    bytes: Bytes,
    first: u64,
    nodes: usize,
    depth_max: u8,
    links_max: usize,
    tables: Tables,
    blocks: Blocks,
    pointers: usize,
    data: usize,
}

#[derive(Default)]
struct Scratch {
    rest: Vec<u64>,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

impl Strata {
    /// Opens what [`encode`] wrote.
    pub fn open(bytes: Bytes) -> Result<Self, Damage> {
        let mut header = BitReader::new(&bytes, 0);
        let first = header.read_wide(64);
        let [nodes, links_max, depth_max, tables_bytes, pointers_bytes] = [(); 5].map(|()| header.read_wide(64));
        let size = |value: u64| {
            usize::try_from(value)
                .ok()
                .filter(|&value| value <= bytes.len().saturating_mul(64))
                .ok_or(Damage::Outside { part: PART, value, bound: bytes.len() as u64 })
        };
        let (nodes, links_max) = (size(nodes)?, usize::try_from(links_max).unwrap_or(usize::MAX));
        let pointers = 48 + size(tables_bytes)?;
        let data = pointers + size(pointers_bytes)?;
        if data > bytes.len() {
            return Err(Damage::Ends { part: PART });
        }
        let tables = Tables::load(&mut header)?;
        let blocks = Blocks::load(&mut header, nodes, data - pointers)?;
        let depth_max = u8::try_from(depth_max).unwrap_or(0);
        Ok(Self { first, nodes, depth_max, links_max, tables, blocks, pointers, data, bytes })
    }

    fn list_into(&self, node: usize, depth: u8, links: &mut Vec<u64>, scratch: &mut Scratch) -> Result<(), Damage> {
        let (start, end) = self.blocks.locate(node, &self.bytes[self.pointers..self.data], &self.bytes[self.data..])?;
        if start == end {
            return Ok(());
        }
        let mut bits = BitReader::new(&self.bytes[self.data..], start);
        let symbol = self.tables.plain(Context::Reference).read(&mut bits);
        if let Some(symbol) = symbol.checked_sub(1) {
            let reference = references::neighbour(node, symbol / 2, self.nodes).filter(|_| depth < self.depth_max);
            let Some(reference) = reference else {
                return Err(Damage::Outside { part: PART, value: symbol as u64, bound: 0 });
            };
            self.list_into(reference, depth + 1, links, scratch)?;
            if symbol % 2 == 0 {
                links::read_copies(&self.tables, &mut bits, links);
            }
            links::read_rest(
                &self.tables,
                &mut bits,
                end,
                self.first + node as u64,
                true,
                self.links_max,
                &mut scratch.rest,
            )?;
            links::merge(links, &scratch.rest);
            return Ok(());
        }
        links::read_rest(&self.tables, &mut bits, end, self.first + node as u64, false, self.links_max, links)
    }
}

impl LinkCodec for Strata {
    fn nodes(&self) -> usize {
        self.nodes
    }

    fn list(&self, node: usize, links: &mut Vec<u64>) -> Result<(), Damage> {
        links.clear();
        SCRATCH.with_borrow_mut(|scratch| self.list_into(node, 0, links, scratch))
    }

    fn sizes(&self) -> Sizes {
        Sizes {
            data: (self.bytes.len() - self.data) as u64,
            index: (self.data - self.pointers) as u64,
            tables: self.pointers as u64,
        }
    }
}
