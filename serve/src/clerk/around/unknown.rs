//! The pages for which it is unknown, as of a time, whether they link ([`webstrata_layers::record::capture::Linking`]
//! has the rule).
//!
//! Cost: the captures of these pages. If no capture of the epoch has unknown links, there is no call.

use tonic::Status;
use webstrata_layers::record::capture::is_unknown;
use webstrata_layers::{AsOf, Batch, Direction, Precision, Uid, Window};

use crate::clerk::UidInWindow;
use crate::clerk::between::{PAGES, distinct, fitting};
use crate::clerk::pinned::Pinned;

impl Pinned {
    /// For each UID and [`Direction::Out`], the page itself if its links are unknown as of a time. For in-links, the
    /// pages that ever linked to the URL and have unknown links at that time, in increasing order.
    ///
    /// # Errors
    /// See [`Pinned`].
    pub async fn unknown(&self, uids: &[Uid], direction: Direction, as_of: AsOf) -> Result<Batch<Uid>, Status> {
        let items: Vec<UidInWindow> = uids.iter().map(|&uid| (uid, Window::AsOf(as_of))).collect();
        self.unknown_in_windows(&items, direction, None).await
    }

    /// The same, with a separate window for each item. An item with an interval as its window has no unknown pages.
    /// `links`: the links of each item in its window, if the caller has them. The clerk then does not ask about pages
    /// that are known to link.
    pub(crate) async fn unknown_in_windows(
        &self,
        items: &[UidInWindow],
        direction: Direction,
        links: Option<&Batch<Uid>>,
    ) -> Result<Batch<Uid>, Status> {
        let known = |item: usize| links.map_or(&[][..], |links| links.get(item));
        let dated = items.iter().enumerate().filter_map(|(item, &(uid, window))| match window {
            Window::AsOf(as_of) if self.graph().has_unknown => Some((item, uid, as_of)),
            _ => None,
        });
        let dated: Vec<(usize, Uid, AsOf)> = dated.collect();
        // Pages, each with the item that it is asked for and the time.
        let mut asked: Vec<(Uid, usize, AsOf)> = Vec::new();
        match direction {
            Direction::Out => {
                let empty = dated.iter().filter(|(item, ..)| known(*item).is_empty());
                asked.extend(empty.map(|&(item, uid, as_of)| (uid, item, as_of)));
            }
            Direction::In(precision) => {
                let is_exact = precision == Precision::Exact;
                let targets: Vec<Uid> = dated.iter().map(|&(_, uid, _)| uid).collect();
                let sources = self.lists(&targets, Direction::In(Precision::Exact), Window::ALWAYS).await?;
                for (&(item, _, as_of), sources) in dated.iter().zip(sources.iter()) {
                    let known = known(item);
                    // In-links of range precision may name pages that do not link.
                    let is_open = |source: &&Uid| !is_exact || known.binary_search(source).is_err();
                    asked.extend(sources.iter().filter(is_open).map(|&source| (source, item, as_of)));
                }
            }
        }
        asked.sort_unstable_by_key(|&(page, item, _)| (page, item));
        let pages = distinct(asked.iter().map(|&(page, ..)| page));
        let (mut unknown, mut asked) = (vec![Vec::new(); items.len()], asked.into_iter().peekable());
        let (mut rest, mut step) = (&pages[..], PAGES);
        while !rest.is_empty() {
            let (batch, after) = rest.split_at(step.min(rest.len()));
            let Some(captures) = fitting(self.captures(batch).await, batch, &mut step)? else { continue };
            for (&page, captures) in batch.iter().zip(captures.iter()) {
                while let Some((_, item, as_of)) = asked.next_if(|asked| asked.0 == page) {
                    unknown[item].extend(is_unknown(captures, as_of).then_some(page));
                }
            }
            rest = after;
        }
        let mut lists = Batch::default();
        unknown.iter().for_each(|pages| lists.push(pages));
        Ok(lists)
    }
}
