//! The neighbourhood of a page as a graph of pages, directories, hosts or domains
//! ([`webstrata_layers::read::around::neighbourhood`] has the rule).

use tonic::Status;
use webstrata_layers::read::around::neighbourhood::Sources;
use webstrata_layers::read::spellings::in_order;
use webstrata_layers::{
    AsOf, Backlink, Direction, Edge, Folding, Grain, Near, Network, Precision, Scope, Surroundings, Uid, Window,
};
use webstrata_url::domain_of;

use crate::clerk::pinned::Pinned;
use crate::protocol::status::fits_in_parts;

/// The most pages of the first ring in one batch.
const PAGES: usize = 512;
/// If more pages than this link to the centre, its record of in-links is not fetched. The clerk asks for these pages
/// batch by batch instead.
const RECORD_SOURCES_MAX: u64 = 1 << 15;
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
        question: Near,
        grain: Grain,
        nodes_max: Option<usize>,
    ) -> Result<NeighbourhoodAnswer, Status> {
        let found = self.surroundings(question).await?;
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
        let (centre, left_out, unread) = (around.centre, around.left_out, found.unread());
        Ok(NeighbourhoodAnswer { grain, nodes, centre, edges: around.edges, left_out, unread })
    }

    /// As [`webstrata_layers::surroundings`].
    ///
    /// # Errors
    /// See [`Pinned`].
    pub async fn surroundings(&self, question: Near) -> Result<Network, Status> {
        let centre = question.centre;
        let sources = self.longest_sources(question).await?;
        let middle = [centre];
        let (lifespans, captures) = tokio::try_join!(self.lifespans(&middle), self.captures(&middle))?;
        let mut found = Surroundings::new(question, (lifespans.values(), captures.values()), sources);
        let near = found.near().to_vec();
        let (mut waiting, mut step) = (&near[..], PAGES);
        while !waiting.is_empty() && !found.is_full() {
            let (batch, others) = waiting.split_at(step.min(waiting.len()));
            match tokio::try_join!(self.lifespans(batch), self.captures(batch)) {
                Err(status) if fits_in_parts(&status) && batch.len() > 1 => {
                    step = batch.len() / 2;
                    continue;
                }
                Err(status) if fits_in_parts(&status) => found.skip(1),
                answers => {
                    let (lifespans, captures) = answers?;
                    for ((&page, lifespans), captures) in batch.iter().zip(lifespans.iter()).zip(captures.iter()) {
                        found.add(page, lifespans, captures);
                    }
                }
            }
            waiting = others;
        }
        found.skip(waiting.len());
        Ok(found.finish())
    }

    /// The pages that link to the centre, restricted to the pages whose links stood longest.
    async fn longest_sources(&self, question: Near) -> Result<Sources, Status> {
        let centre = question.centre;
        let by_range = Direction::In(Precision::Range);
        if self.degrees(&[centre], by_range, Window::ALWAYS).await?.iter().any(|&count| count > RECORD_SOURCES_MAX) {
            let (mut sources, target) = (Sources::default(), centre..centre + 1);
            let add = |page, backlink: Backlink| sources.add(page, &backlink, question);
            self.backlinks(std::slice::from_ref(&target), &Scope::default(), add).await?;
            sources.cut(question);
            return Ok(sources);
        }
        let asked = match question.at {
            Some(at) => {
                let direction = Direction::In(Precision::Exact);
                let mut asked = self.all_links(centre, direction, question.window()).await?;
                asked.extend(self.unknown(&[centre], direction, AsOf::new(at)).await?.into_values());
                Some(in_order(asked))
            }
            None => None,
        };
        let record = self.in_records(&[centre]).await?.pop().flatten();
        let sources = record.map(|record| Sources::of(&record, self.graph().in_range, asked.as_deref(), question));
        Ok(sources.unwrap_or_default())
    }
}
