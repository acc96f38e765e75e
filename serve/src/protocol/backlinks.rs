//! Backlinks in messages: stays and unknown intervals of many pages, in columns.

use webstrata_layers::{Backlink, Began, Stay, TIMES};

use super::proto::{self, BacklinkLists};

/// The number of how a stay began, in messages.
pub fn began_to(began: Began) -> proto::Began {
    match began {
        Began::Found => proto::Began::Found,
        Began::New => proto::Began::New,
        Began::Returned => proto::Began::Returned,
    }
}

fn began_of(number: i32) -> Option<Began> {
    Some(match proto::Began::try_from(number).ok()? {
        proto::Began::Found => Began::Found,
        proto::Began::New => Began::New,
        proto::Began::Returned => Began::Returned,
    })
}

/// A message with room for the backlinks of pages, most of which have one stay.
pub(crate) fn room_for_backlinks(pages: usize) -> BacklinkLists {
    BacklinkLists {
        stay_counts: Vec::with_capacity(pages),
        targets: Vec::with_capacity(pages),
        firsts: Vec::with_capacity(pages),
        lasts: Vec::with_capacity(pages),
        gone_after: Vec::with_capacity(pages),
        began: Vec::with_capacity(pages),
        ..BacklinkLists::default()
    }
}

/// Appends the backlink of page number `at` to a message.
pub(crate) fn put_backlink(lists: &mut BacklinkLists, at: u32, backlink: &Backlink) {
    lists.stay_counts.push(u32::try_from(backlink.stays.len()).unwrap_or(u32::MAX));
    lists.targets.push(backlink.targets);
    for stay in &backlink.stays {
        lists.firsts.push(stay.first);
        lists.lasts.push(stay.last);
        lists.gone_after.push(stay.until.map_or(0, |until| until.abs_diff(stay.last)));
        lists.began.push(began_to(stay.began).into());
    }
    for &(first, last) in &backlink.unknown {
        lists.unknown_pages.push(at);
        lists.unknown_firsts.push(first);
        lists.unknown_lasts.push(last.min(*TIMES.end()));
    }
}

/// The backlinks in a message, one for each page; `None` if its columns do not fit together.
pub(crate) fn take_backlinks(lists: &BacklinkLists) -> Option<Vec<Backlink>> {
    let BacklinkLists { stay_counts, firsts, lasts, gone_after, began, targets, .. } = lists;
    let total: usize = stay_counts.iter().map(|&count| count as usize).sum();
    let lengths = [firsts.len(), lasts.len(), gone_after.len(), began.len()];
    if lengths.iter().any(|&length| length != total) || targets.len() != stay_counts.len() {
        return None;
    }
    let mut at = 0;
    let mut backlinks = Vec::with_capacity(stay_counts.len());
    for (&count, &targets) in stay_counts.iter().zip(targets) {
        let end = at + count as usize;
        let stay = |at: usize| {
            let until = (gone_after[at] > 0).then(|| lasts[at].saturating_add_unsigned(gone_after[at]));
            Some(Stay { first: firsts[at], last: lasts[at], until, began: began_of(began[at])? })
        };
        // With its exact size: `collect` into an option would begin with room for four.
        let mut stays = Vec::with_capacity(end - at);
        for at in at..end {
            stays.push(stay(at)?);
        }
        backlinks.push(Backlink { stays, unknown: Vec::new(), targets });
        at = end;
    }
    let intervals = lists.unknown_firsts.iter().zip(&lists.unknown_lasts);
    for (&page, (&first, &last)) in lists.unknown_pages.iter().zip(intervals) {
        let last = if last >= *TIMES.end() { i64::MAX } else { last };
        backlinks.get_mut(page as usize)?.unknown.push((first, last));
    }
    Some(backlinks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backlinks_come_back() {
        let stay = |first, last, until, began| Stay { first, last, until, began };
        let backlinks = [
            Backlink::default(),
            Backlink {
                stays: vec![stay(-5, 7, Some(9), Began::Found), stay(20, 20, None, Began::Returned)],
                unknown: vec![(8, 8), (21, i64::MAX)],
                targets: 3,
            },
            Backlink { stays: vec![stay(1, 2, None, Began::New)], unknown: vec![], targets: 1 },
        ];
        let mut lists = BacklinkLists::default();
        (0..).zip(&backlinks).for_each(|(at, backlink)| put_backlink(&mut lists, at, backlink));
        assert_eq!(take_backlinks(&lists).as_deref(), Some(&backlinks[..]));
        lists.firsts.pop();
        assert_eq!(take_backlinks(&lists), None);
    }
}
