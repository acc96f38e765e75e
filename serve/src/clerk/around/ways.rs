//! The shortest ways between two pages at a date ([`webstrata_layers::read::around::ways`] has the search).

use tonic::Status;
use webstrata_layers::read::spellings::in_order;
use webstrata_layers::{AsOf, Direction, Precision, Search, Uid, Ways, Window};

use crate::clerk::pinned::Pinned;
use crate::protocol::status::Reason;

/// The most pages in one batch of questions about links.
const PAGES: usize = 1024;

impl Pinned {
    /// The shortest ways from one page to another as of a time, at most `count`, of at most `links_max` links.
    ///
    /// # Errors
    /// See [`Pinned`].
    pub async fn ways(
        &self,
        (from, to): (Uid, Uid),
        as_of: AsOf,
        links_max: usize,
        count: usize,
    ) -> Result<Ways, Status> {
        let mut search = Search::new(from, to, links_max, self.graph().has_unknown);
        'steps: while let Some((pages, is_backward)) = search.asks() {
            let direction = if is_backward { Direction::In(Precision::Exact) } else { Direction::Out };
            let pages = pages.to_vec();
            let mut lists = Vec::with_capacity(pages.len());
            for some in pages.chunks(PAGES) {
                match self.links(some, direction, Window::AsOf(as_of)).await {
                    Ok(found) => {
                        // The search remembers each page that it has seen.
                        self.charge().keep(32 * (found.values().len() + found.len())).await?;
                        lists.extend(found.iter().map(<[Uid]>::to_vec));
                    }
                    // A page with more links than an answer may have ends the search, not the call.
                    Err(status) if Reason::of(&status) == Some(Reason::AnswerTooLarge) => {
                        search.cut();
                        break 'steps;
                    }
                    Err(status) => return Err(status),
                }
            }
            search.add(lists.iter().map(Vec::as_slice));
        }
        let mut unknown = Vec::new();
        for some in search.doubts().chunks(PAGES) {
            unknown.extend(self.unknown(some, Direction::Out, as_of).await?.into_values());
        }
        Ok(Ways { unknown: in_order(unknown), ..search.ways(count) })
    }
}
