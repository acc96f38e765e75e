//! A summary of a cell: its hosts, and the pages with the most captures. A search field shows them.
//!
//! Both lists are computed on first use, and stay with the cell. Cost, once: a search in the URL store for each host,
//! and reading the captures of each page. Memory: the names of the hosts, and 16 bytes for each.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use webstrata_layers::record::key;
use webstrata_layers::{Error as LayersError, Uid};

use super::Cell;
use crate::scratch::Scratch;

/// The largest number of pages in [`Cell::busiest`].
pub const BUSIEST: usize = 32;

/// A host of a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostUrls {
    /// The name of the host, as its URLs have it.
    pub host: Box<str>,
    /// The UID of the host's first URL.
    pub first: Uid,
    /// The number of URLs of the host in the cell.
    pub urls: u64,
}

/// The hosts of a cell, and its pages with the most captures.
pub(super) struct Summary {
    hosts: Vec<HostUrls>,
    busiest: Vec<Uid>,
}

impl Cell {
    /// The hosts of the cell's URLs, in order of their keys. URLs without a host, such as `mailto:`, are left out.
    ///
    /// # Errors
    /// A damaged image.
    pub fn hosts(&self) -> Result<&[HostUrls], LayersError> {
        Ok(&self.summary()?.hosts)
    }

    /// The [`BUSIEST`] pages with the most captures in this cell, those with more captures first.
    ///
    /// # Errors
    /// A damaged image.
    pub fn busiest(&self) -> Result<&[Uid], LayersError> {
        Ok(&self.summary()?.busiest)
    }

    fn summary(&self) -> Result<&Summary, LayersError> {
        if let Some(known) = self.summary.get() {
            return Ok(known);
        }
        // Two threads may compute this at the same time. Both results are equal, and one is kept.
        let found = Summary { hosts: self.find_hosts()?, busiest: self.find_busiest()? };
        Ok(self.summary.get_or_init(|| found))
    }

    fn find_hosts(&self) -> Result<Vec<HostUrls>, LayersError> {
        let end = self.label.first_uid + self.label.urls;
        let (mut hosts, mut url, mut uid) = (Vec::new(), String::new(), self.label.first_uid);
        while uid < end {
            let (host, next) = self.host(uid, &mut url)?;
            if !host.is_empty() {
                hosts.push(HostUrls { host: host.into(), first: uid, urls: next.0 - uid.0 });
            }
            uid = next;
        }
        Ok(hosts)
    }

    /// The host that the URL of a UID counts for, and the UID after the host's last URL in this cell. URLs that count
    /// for no host are together, too, and their host is empty. `url` is a buffer.
    ///
    /// # Errors
    /// A damaged image, and a UID of another cell.
    pub fn host<'a>(&self, uid: Uid, url: &'a mut String) -> Result<(&'a str, Uid), LayersError> {
        self.url(uid, url)?;
        let host = key::host_of(url).unwrap_or_default();
        let end = self.urls.prefix_end(&key::counted_prefix(host)).map_err(|damage| self.damaged(damage))?;
        // The URL has the prefix, so the search continues after it.
        Ok((host, (self.label.first_uid + end).max(uid + 1)))
    }

    fn find_busiest(&self) -> Result<Vec<Uid>, LayersError> {
        let mut most = BinaryHeap::with_capacity(BUSIEST + 1);
        let mut captures = Vec::new();
        Scratch::lend(|scratch| {
            for uid in Uid::each(self.label.first_record..self.label.end_record) {
                let Some(node) = self.node(uid) else { continue };
                self.captures(node, scratch, &mut captures)?;
                if !captures.is_empty() {
                    most.push(Reverse((captures.len(), Reverse(uid))));
                    if most.len() > BUSIEST {
                        most.pop();
                    }
                }
            }
            Ok::<_, LayersError>(())
        })?;
        Ok(most.into_sorted_vec().into_iter().map(|Reverse((_, Reverse(uid)))| uid).collect())
    }
}
