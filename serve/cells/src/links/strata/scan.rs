//! Lists in order, all or some that are near one another: each record is decoded once.
//!
//! References are at most [`WINDOW_MAX`] records away. A list that is needed again is therefore among the lists of some
//! hundred records around the current one, which a ring keeps. Memory: the lists of the ring.

use crate::error::Damage;
use crate::links::scratch::bytes_of;

use super::{Level, RecordAt, Strata, WINDOW_MAX, links};

/// The lists of records around the current one, indexed by record modulo the number of lists.
#[derive(Default)]
pub(crate) struct Ring {
    /// The record, and its links.
    lists: Vec<(usize, Vec<u64>)>,
    level: Level,
    /// The place of the strata with these records in memory; 0 if there are none.
    owner: usize,
}

impl Ring {
    /// Forgets all lists. The ring may go on with other strata.
    pub(crate) fn forget(&mut self) {
        self.owner = 0;
    }

    /// Makes this the ring of these strata. While other strata with lists here may have gone, the caller must have
    /// called [`Ring::forget`].
    pub(super) fn begin(&mut self, strata: &Strata) {
        let owner = std::ptr::from_ref(strata).addr();
        if self.owner == owner {
            return;
        }
        self.owner = owner;
        // No two records of a chain share a slot.
        let slots = (WINDOW_MAX * (usize::from(strata.depth_max) + 2)).next_power_of_two();
        self.lists.resize_with(slots, Default::default);
        self.lists.iter_mut().for_each(|(record, _)| *record = usize::MAX);
    }

    /// The approximate bytes of memory that the lists take.
    pub(crate) fn bytes(&self) -> usize {
        self.lists.iter().map(|(_, links)| bytes_of(links)).sum()
    }

    /// The links of a record. Decodes the record, and the records that it refers to, unless the ring has them.
    pub(super) fn list(&mut self, strata: &Strata, record: RecordAt) -> Result<&[u64], Damage> {
        self.decode(strata, record, 0)?;
        Ok(&self.lists[record.index % self.lists.len()].1)
    }

    fn decode(&mut self, strata: &Strata, record: RecordAt, depth: usize) -> Result<(), Damage> {
        let slots = self.lists.len();
        let slot = record.index % slots;
        if self.lists[slot].0 == record.index {
            return Ok(());
        }
        let Level { list, events, .. } = &mut self.level;
        let (mut head, _) = strata.head(record, list, events)?;
        // After damage, no list may be taken for that of a record.
        let mut links = std::mem::replace(&mut self.lists[slot], (usize::MAX, Vec::new())).1;
        links.clear();
        let reference = strata.reference(&mut head, depth)?;
        if let Some((reference, all)) = reference {
            self.decode(strata, reference, depth + 1)?;
            links.extend_from_slice(&self.lists[reference.index % slots].1);
            if !all {
                links::read_copies(&strata.tables, &mut head.bits, &mut links);
            }
        }
        let (rest, bits) = (&mut self.level.rest, &mut head.bits);
        links::read_rest(
            &strata.tables,
            bits,
            head.end,
            head.node_number,
            reference.is_some(),
            strata.links_max,
            rest,
        )?;
        links::merge(&mut links, rest);
        self.lists[slot] = (record.index, links);
        Ok(())
    }
}
