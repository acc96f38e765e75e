//! The neighbourhood of a page as a graph of pages, directories, hosts or domains
//! (`questions::neighbourhood` of `webstrata_layers` has the question and its steps).

use tonic::Status;
use webstrata_layers::{Edge, Folding, Grain, Neighbourhood, NeighbourhoodQuestion, NeighbourhoodSearch, Uid};
use webstrata_url::domain_of;

use super::pinned::Pinned;

/// The most URLs in one batch of look-ups of URLs or captures.
const URLS: usize = 4096;

/// A neighbourhood with the names of its nodes.
#[derive(Clone, Debug)]
pub struct NeighbourhoodAnswer {
    /// The grain of the nodes.
    pub grain: Grain,
    /// The nodes, in order of UIDs: URLs, directories, hosts or domains.
    pub nodes: Vec<Node>,
    /// The index of the centre in `nodes`.
    pub centre: usize,
    /// The links between nodes, in order of the indexes of the nodes.
    pub edges: Vec<Edge>,
    /// The number of nodes that are not in the answer.
    pub left_out: usize,
    /// The number of pages of the first ring whose links are not in the answer.
    pub unread: usize,
    /// The number of pages in the centre and in the first ring that may have more links.
    pub unknown_pages: usize,
}

/// A node of a neighbourhood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// The URL, directory, host or domain.
    pub name: String,
    /// The number of URLs of the node that were found.
    pub urls: usize,
    /// Whether the URL was ever captured. Always true for directories, hosts and domains: their captures are not looked
    /// up.
    pub is_captured: bool,
}

impl Pinned {
    /// The neighbourhood of a page, with nodes of a grain. With `nodes_max`, the grain is the finest one from `grain`
    /// on that gives at most `nodes_max` nodes ([`Folding`]).
    ///
    /// # Errors
    /// See [`Pinned`].
    pub async fn neighbourhood(
        &self,
        question: NeighbourhoodQuestion,
        grain: Grain,
        nodes_max: Option<usize>,
    ) -> Result<NeighbourhoodAnswer, Status> {
        let found = self.answer(NeighbourhoodSearch::new(question)).await?;
        let uids = found.nodes();
        let is_by_page = grain == Grain::Page && nodes_max.is_none_or(|most| uids.len() <= most);
        let (grain, around, nodes) = if is_by_page {
            let around = found.by_page();
            let kept: Vec<Uid> = around.nodes.iter().map(|&node| uids[node]).collect();
            let mut nodes = Vec::with_capacity(kept.len());
            for some in kept.chunks(URLS) {
                let (urls, captures) = tokio::try_join!(self.urls(some), self.captures(some))?;
                let node = |(name, captures): (String, &[_])| Node { name, urls: 1, is_captured: !captures.is_empty() };
                nodes.extend(urls.into_iter().zip(captures.iter()).map(node));
            }
            (grain, around, nodes)
        } else {
            let mut folding = Folding::new(grain, nodes_max, domain_of);
            for some in uids.chunks(URLS) {
                self.urls(some).await?.iter().for_each(|url| folding.add(url));
            }
            let (grain, groups) = folding.finish();
            let around = found.by_group(grain, &groups.of);
            let node = |&group: &usize| Node {
                name: groups.names[group].clone(),
                urls: groups.urls[group],
                is_captured: true,
            };
            let nodes = around.nodes.iter().map(node).collect();
            (grain, around, nodes)
        };
        let Neighbourhood { centre, edges, left_out, .. } = around;
        let (unread, unknown_pages) = (found.unread(), found.unknown().len());
        Ok(NeighbourhoodAnswer { grain, nodes, centre, edges, left_out, unread, unknown_pages })
    }
}
