//! Writes strata: fits codes, chooses references, lays out records.

use crate::bits::BitWriter;
use crate::codec::Lists;

use super::blocks::{BLOCK, BlocksWriter};
use super::links::{self, Split};
use super::references::{Costs, NEVER, choose, neighbour};
use super::symbols::{Cost, Counts, Model, Sink, Writer};

/// What an encoding is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// References of references, at most: 0 none.
    pub depth_max: u8,
    /// Farthest neighbour that may be a reference, at most 32.
    pub window: usize,
}

impl Profile {
    /// Small.
    pub const ARCHIVE: Self = Self { depth_max: 2, window: 32 };
    /// Fast.
    pub const SPEED: Self = Self { depth_max: 1, window: 16 };
}

/// Records that are looked at together; no reference leaves them.
const SEGMENT: usize = 1 << 14;

/// Encodes lists without time.
pub fn encode(lists: &Lists, profile: Profile) -> Vec<u8> {
    let nodes = lists.nodes();
    let mut model = Model::guess();
    let segments: Vec<_> = (0..nodes).step_by(SEGMENT).map(|from| from..(from + SEGMENT).min(nodes)).collect();
    for _ in 0..3 {
        let mut counts = Counts::new();
        for segment in &segments {
            let chosen = references_of(lists, segment.clone(), profile, &model);
            write_segment(lists, segment.clone(), &chosen, &mut |_, record| record(&mut counts));
        }
        model = counts.fit(false);
    }
    // Codes hold what the last choice uses; a later choice may use less only.
    let mut final_counts = Counts::new();
    let mut chosen_all = Vec::new();
    for segment in &segments {
        let chosen = references_of(lists, segment.clone(), profile, &model);
        write_segment(lists, segment.clone(), &chosen, &mut |_, record| record(&mut final_counts));
        chosen_all.push(chosen);
    }
    let model = final_counts.fit(false);
    let mut writer = Writer { model: &model, out: BitWriter::default() };
    let mut blocks = BlocksWriter::default();
    for (segment, chosen) in segments.iter().zip(&chosen_all) {
        write_segment(lists, segment.clone(), chosen, &mut |_, record| {
            let before = writer.out.len();
            record(&mut writer);
            blocks.push(u32::try_from(writer.out.len() - before).unwrap_or(u32::MAX));
        });
    }
    let records = writer.out.into_bytes();
    let layout = blocks.finish(&records);
    let mut tables = BitWriter::default();
    model.store(&mut tables);
    // The block header follows the codes bit by bit.
    let mut source = crate::bits::BitReader::new(&layout.header, 0);
    for _ in 0..16 * 37 + 4 {
        tables.write(source.read(1), 1);
    }
    let tables = tables.into_bytes();
    let links_max = (0..nodes).map(|node| lists.list(node).len()).max().unwrap_or(0);
    let mut out = Vec::new();
    for value in [
        lists.first,
        nodes as u64,
        links_max as u64,
        u64::from(profile.depth_max),
        tables.len() as u64,
        layout.pointers.len() as u64,
    ] {
        out.extend_from_slice(&value.to_le_bytes());
    }
    out.extend(tables);
    out.extend(layout.pointers);
    out.extend(layout.blocks);
    out
}

fn references_of(lists: &Lists, segment: std::ops::Range<usize>, profile: Profile, model: &Model) -> Vec<Option<u8>> {
    let window = profile.window;
    let records = segment.len();
    let mut costs = Costs { window, alone: Vec::with_capacity(records), pairs: vec![NEVER; records * 2 * window] };
    let mut split = Split::default();
    for node in segment.clone() {
        let (own, list) = (lists.first + node as u64, lists.list(node));
        let mut cost = Cost { model, bits: 0 };
        if !list.is_empty() {
            links::write(&mut cost, own, list, None, false);
        }
        let alone = cost.bits;
        costs.alone.push(alone);
        if list.is_empty() || profile.depth_max == 0 {
            continue;
        }
        let record = node - segment.start;
        for slot in 0..2 * window {
            let Some(other) = neighbour(record, slot, records) else { continue };
            let reference = lists.list(segment.start + other);
            if reference.is_empty() {
                continue;
            }
            split.set(list, reference);
            if split.copied == 0 {
                continue;
            }
            let mut cost = Cost { model, bits: if other / BLOCK == record / BLOCK { 0 } else { 2 } };
            links::write(&mut cost, own, list, Some((slot, &split, split.all(reference))), false);
            if cost.bits < alone {
                costs.pairs[record * 2 * window + slot] = cost.bits;
            }
        }
    }
    choose(&costs, profile.depth_max)
}

fn write_segment(
    lists: &Lists,
    segment: std::ops::Range<usize>,
    chosen: &[Option<u8>],
    visit: &mut dyn FnMut(usize, &mut dyn FnMut(&mut dyn Sink)),
) {
    let mut split = Split::default();
    for (record, node) in segment.clone().enumerate() {
        let (own, list) = (lists.first + node as u64, lists.list(node));
        visit(node, &mut |sink| {
            if list.is_empty() {
                return;
            }
            let reference = chosen[record]
                .and_then(|slot| Some((usize::from(slot), neighbour(record, usize::from(slot), segment.len())?)));
            match reference {
                None => links::write(&mut &mut *sink, own, list, None, false),
                Some((slot, other)) => {
                    let other = lists.list(segment.start + other);
                    split.set(list, other);
                    links::write(&mut &mut *sink, own, list, Some((slot, &split, split.all(other))), false);
                }
            }
        });
    }
}
