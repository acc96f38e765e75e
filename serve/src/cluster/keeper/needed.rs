//! Cells that questions wait for because no server that holds the cells answers. This server makes such cells at once,
//! from its own copy or from the layers, although they are placed elsewhere.
//!
//! A server that is cut off from all others can therefore answer every question about the store that it reads. When the
//! other servers are back, these cells are dropped like any cell that is placed elsewhere.

use std::collections::BTreeSet;

use tokio::time::Instant;

use super::{AT_ONCE, Keeper};
use webstrata_cells::image::Residence;

impl Keeper {
    /// Starts to make the cells that questions wait for.
    pub(super) fn bring_needed(&mut self) {
        let needed: BTreeSet<(u32, u32)> = std::mem::take(&mut self.cluster.state().needed);
        let (mut later, now) = (BTreeSet::new(), Instant::now());
        for name in needed {
            let is_known = self.layouts.get(&name.0).is_some_and(|row| row.partitions().any(|other| other == name.1));
            if !is_known || self.held.contains_key(&name) || self.loading.contains(&name) {
                continue;
            }
            let waits = self.failures.get(&name).is_some_and(|failure| now < failure.again);
            if waits || self.loads.len() >= 2 * AT_ONCE {
                later.insert(name);
                continue;
            }
            tracing::info!(row = name.0, partition = name.1, "no server that has this cell answers; it is made here");
            self.loading.insert(name);
            // Servers that do not answer are not asked for their images either.
            self.start(name, Residence::Mapped, Vec::new(), true);
        }
        self.cluster.state().needed.extend(later);
    }
}
