//! A graph at one date in the memory of one worker, for algorithms that walk the graph.
//!
//! Worker 0 gets the links of all workers. Memory there: 4 bytes per link and 8 per URL of the store.

use super::AnalysisContext;
use super::adjacency::{Adjacency, low};
use super::exchange::{Number, exchange};
use crate::Error;
use webstrata_engine::Stopped;
use webstrata_layers::Links;

/// The links, grouped by source.
pub(super) struct WholeGraph {
    /// The index in `links` at which the links of each UID begin, and the length of `links` at the end.
    starts: Vec<u64>,
    links: Vec<u32>,
}

impl WholeGraph {
    /// Gathers the links of all workers at worker 0. The other workers get `None`.
    pub(super) fn gather(context: &mut AnalysisContext<'_>, graph: Adjacency) -> Result<Option<Self>, Stopped> {
        let (index, peers) = (context.worker.index(), context.worker.peers());
        let mut outgoing = vec![Vec::new(); peers];
        if index > 0 {
            let out = &mut outgoing[0];
            out.reserve(4 * (graph.links.len() + 2 * graph.pages.len()));
            for at in 0..graph.pages.len() {
                let links = graph.links_of(at);
                graph.uid(at).put(out);
                low(links.len() as u64).put(out);
                links.iter().for_each(|&link| link.put(out));
            }
        }
        let received = exchange(context, outgoing)?;
        if index > 0 {
            return Ok(None);
        }
        // Worker 0 has the lowest UIDs, so the links of other workers follow its links.
        let urls = usize::try_from(context.store.urls()).unwrap_or(usize::MAX);
        let mut starts = Vec::with_capacity(urls + 1);
        for (at, &start) in graph.starts.iter().take(graph.pages.len()).enumerate() {
            starts.resize(graph.uid(at) as usize + 1, start as u64);
        }
        let mut gathered = Self { starts, links: graph.links };
        gathered.links.reserve_exact(received.iter().map(Vec::len).sum::<usize>() / 4);
        for bytes in received {
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                let (page, count) = (u32::take(&mut rest), u32::take(&mut rest) as usize);
                let Some((link_bytes, after)) = rest.split_at_checked(4 * count) else {
                    context.job.check(Err(Error::Internal("links of a page that end too early")))?;
                    break;
                };
                gathered.begin(page as usize);
                gathered.links.extend(link_bytes.chunks_exact(4).map(|mut bytes| u32::take(&mut bytes)));
                rest = after;
            }
        }
        gathered.begin(urls);
        Ok(Some(gathered))
    }

    /// Begins the links of this UID; the links that are added next belong to it. UIDs rise from call to call.
    fn begin(&mut self, page: usize) {
        let end = self.links.len() as u64;
        self.starts.resize(page + 1, end);
    }

    /// Returns the number of URLs.
    pub(super) fn urls(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns the number of links.
    pub(super) fn links(&self) -> usize {
        self.links.len()
    }

    /// Returns the links of a UID, rising.
    pub(super) fn of(&self, uid: u32) -> &[u32] {
        let at = |uid: usize| usize::try_from(self.starts[uid]).unwrap_or(usize::MAX);
        &self.links[at(uid as usize)..at(uid as usize + 1)]
    }

    /// Returns the graph of the links that pass a test.
    pub(super) fn only(&self, keep: impl Fn(u32, u32) -> bool) -> WholeGraph {
        let mut kept = WholeGraph { starts: Vec::with_capacity(self.starts.len()), links: Vec::new() };
        for uid in (0..).take(self.urls()) {
            kept.starts.push(kept.links.len() as u64);
            kept.links.extend(self.of(uid).iter().filter(|&&link| keep(uid, link)));
        }
        kept.starts.push(kept.links.len() as u64);
        kept
    }

    /// Returns the undirected graph: each link under both of its ends, without loops and duplicates.
    pub(super) fn undirected(&self) -> WholeGraph {
        let urls = self.urls();
        let mut starts = vec![0u64; urls + 1];
        let pairs = || (0..).zip(0..urls).flat_map(|(uid, _)| self.of(uid).iter().map(move |&link| (uid, link)));
        let pairs = || pairs().filter(|(uid, link)| uid != link);
        for (uid, link) in pairs() {
            starts[uid as usize + 1] += 1;
            starts[link as usize + 1] += 1;
        }
        (0..urls).for_each(|at| starts[at + 1] += starts[at]);
        let mut next = starts.clone();
        let mut links = vec![0; usize::try_from(starts[urls]).unwrap_or(usize::MAX)];
        let mut put = |from: u32, to: u32| {
            let next = &mut next[from as usize];
            links[usize::try_from(*next).unwrap_or(usize::MAX)] = to;
            *next += 1;
        };
        for (uid, link) in pairs() {
            put(uid, link);
            put(link, uid);
        }
        let mut both = WholeGraph { starts: Vec::with_capacity(urls + 1), links: Vec::with_capacity(links.len()) };
        for bounds in starts.windows(2) {
            let [from, to] = [bounds[0], bounds[1]].map(|at| usize::try_from(at).unwrap_or(usize::MAX));
            both.starts.push(both.links.len() as u64);
            let url_links = &mut links[from..to];
            url_links.sort_unstable();
            let distinct = url_links.iter().enumerate().filter(|&(at, link)| at == 0 || url_links[at - 1] != *link);
            both.links.extend(distinct.map(|(_, &link)| link));
        }
        both.starts.push(both.links.len() as u64);
        both
    }
}
