//! The record of a page in each row, as [`precedence`](crate::record::precedence) asks it.

use crate::error::Error;
use crate::read::blocks::View;
use crate::read::cached::Kind;
use crate::read::reader::{Reader, RecordRef};
use crate::record::precedence::several::{PageInRow, PageInRows, RowCaptures};
use crate::record::presence;
use crate::record::time::Window;
use crate::record::uid::Uid;

impl Reader {
    /// Asks the records of a page that may decide about the window.
    pub(super) fn page_in_rows<T>(
        &self,
        uid: Uid,
        window: Window,
        ask: impl FnOnce(PageInRows<'_, RowRecord<'_>>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let pages: Vec<_> =
            self.pages_in(uid, window)?.into_iter().map(|record| RowRecord { reader: self, record }).collect();
        ask(PageInRows { pages: &pages, overlaps: &self.overlaps })
    }
}

/// The record of a page in one row. Only what a question needs is decoded.
pub(super) struct RowRecord<'a> {
    reader: &'a Reader,
    record: RecordRef,
}

impl RowRecord<'_> {
    fn view(&self) -> View<'_> {
        let (_, block, row) = &self.record;
        block.view(*row)
    }
}

impl PageInRow for RowRecord<'_> {
    type Scratch = ();
    type Error = Error;

    fn has_statuses(&self) -> bool {
        !self.view().captures().statuses.is_empty()
    }

    fn captures(&self, _: Window, _: bool, (): &mut ()) -> Result<RowCaptures<'_>, Error> {
        Ok(RowCaptures::Held(self.view().captures()))
    }

    fn links_in(&self, windows: &[Window], (): &mut (), links: &mut Vec<Uid>) -> Result<(), Error> {
        let captures = self.view().captures();
        let stretches: Vec<_> = windows.iter().filter_map(|&window| captures.selected(window)).collect();
        links.clear();
        if !stretches.is_empty() {
            self.reader.page_of_record(&self.record)?.links_within(&stretches, links);
        }
        Ok(())
    }

    /// Decodes only the changes of the link.
    fn has_link_in(&self, link: Uid, windows: &[Window], (): &mut ()) -> Result<bool, Error> {
        let (view, captures) = (self.view(), self.view().captures());
        let Ok(number) = view.links.binary_search(&link) else { return Ok(false) };
        let mut stretches = windows.iter().filter_map(|&window| captures.selected(window)).peekable();
        if stretches.peek().is_none() {
            return Ok(false);
        }
        let changes = self.reader.decode(Kind::Out, &self.record, |view| view.changes_of(number))?;
        Ok(stretches.any(|(first, last)| presence::any_in(&changes, first, last)))
    }
}
