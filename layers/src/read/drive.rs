//! Drives a program of [`mod@crate::questions`] with the answers of one graph, without servers.
//!
//! Memory: the answers about 256 pages, and what the program holds.

use std::ops::Range;

use super::query::Links;
use crate::error::Error;
use crate::questions::{Ask, Direction, Facts, Given, Precision, Program, Question};
use crate::record::backlink::Backlink;
use crate::record::batch::Batch;
use crate::record::capture::lifespan::{Spans, times_of};
use crate::record::key::host_of;
use crate::record::time::Window;
use crate::record::uid::{Uid, in_order};

/// The most items about which one answer tells, so that the answers stay in the caches of a processor.
const ITEMS: usize = 256;
/// The most items of answers that are moved into the program: backlinks and hosts.
const MOVED: usize = 1024;
/// The number of UIDs that are searched for failures in one step.
const STEP: u64 = 1 << 16;

/// The answer to a question.
///
/// # Errors
/// Errors of the storage, and a UID that is not in the graph.
pub fn answer_of<Q: Question>(links: &(impl Links + ?Sized), mut question: Q) -> Result<Q::Answer, Error> {
    links.drive(&mut question)?;
    Ok(question.answer())
}

/// Takes a program through its steps, asking `links` for each item.
///
/// # Errors
/// See [`answer_of`].
pub(crate) fn drive<L: Links + ?Sized>(links: &L, program: &mut dyn Program) -> Result<(), Error> {
    let facts = Facts { has_unknown: links.has_unknown(), in_range: links.in_range() };
    while let Some(ask) = program.asks(facts) {
        let given = given(links, ask)?;
        program.take(given);
    }
    Ok(())
}

/// The answer about the first items.
fn given<L: Links + ?Sized>(links: &L, ask: Ask<'_>) -> Result<Given, Error> {
    let first = |items: &[Uid]| items.len().min(ITEMS);
    let captures_of = |pages: &[Uid]| {
        let mut captures = Batch::default();
        captures.fill(&pages[..first(pages)], |&page, list| links.captures_into(page, list))?;
        Ok::<_, Error>(captures)
    };
    let spans_of = |pages: &[Uid], spans: Spans| {
        let mut found = Batch::default();
        found.fill(&pages[..first(pages)], |&page, list| links.spans_into(page, spans, list))?;
        Ok::<_, Error>(found)
    };
    Ok(match ask {
        // The empty prefix selects every key.
        Ask::Rows => Given::Rows(links.with_prefix(&[])?),
        Ask::Links(items, direction, window) => {
            let mut lists = Batch::default();
            lists.fill(&items[..first(items)], |&uid, list| links.links_into(uid, direction, window, list))?;
            Given::Lists(lists)
        }
        Ask::Degrees(items, direction, window) => {
            let degrees = items.iter().map(|&uid| links.degree(uid, direction, window));
            Given::Counts(degrees.map(|degree| degree.map(|degree| degree as u64)).collect::<Result<_, _>>()?)
        }
        Ask::Begin(items, direction, window, most) => {
            let (mut lists, mut counts) = (Batch::default(), Vec::new());
            lists.fill(&items[..first(items)], |&uid, list| {
                links.links_into(uid, direction, window, list)?;
                counts.push(list.len() as u64);
                list.truncate(most);
                Ok::<_, Error>(())
            })?;
            Given::Begun(lists, counts)
        }
        Ask::Captures(pages) => Given::Captures(captures_of(pages)?),
        Ask::Lifespans(pages) => Given::Lifespans(spans_of(pages, Spans::Lifespans)?),
        Ask::Lives(pages) => Given::Lives(spans_of(pages, Spans::Runs)?, captures_of(pages)?),
        Ask::Backlinks(pages, target) => {
            let pages = &pages[..pages.len().min(MOVED)];
            Given::Backlinks(pages.len(), linking(links, pages, target)?)
        }
        Ask::Referrers(pages, target) => {
            let pages = &pages[..pages.len().min(MOVED)];
            let linking = linking(links, pages, target)?;
            let hosts = hosts(links, &linking)?;
            Given::Referrers(pages.len(), linking, hosts)
        }
        Ask::Sources(target, uids) => {
            let (mut sources, mut linking) = (Vec::new(), Vec::new());
            for url in target.iter().cloned().flat_map(Uid::each) {
                links.links_into(url, Direction::In(Precision::Range), Window::ALWAYS, &mut linking)?;
                sources.extend(linking.iter().copied().filter(|&source| source >= uids.start));
            }
            Given::Part(in_order(sources), None)
        }
        Ask::Failing(uids) => {
            let end = uids.end.min(uids.start.saturating_add(STEP));
            Given::Part(links.failing(uids.start..end)?, (end < uids.end).then_some(end))
        }
        Ask::InRecord(url) => Given::Record(links.in_record(url)?),
    })
}

/// The pages that linked to a target.
fn linking<L: Links + ?Sized>(links: &L, pages: &[Uid], target: &[Range<Uid>]) -> Result<Vec<(Uid, Backlink)>, Error> {
    let (mut runs, mut captures, mut times) = (Vec::new(), Vec::new(), Vec::new());
    let mut linking = Vec::with_capacity(pages.len());
    for &page in pages {
        links.spans_into(page, Spans::Runs, &mut runs)?;
        let targets = times_of(&runs, target, &mut times);
        if !times.is_empty() {
            links.captures_into(page, &mut captures)?;
            let mut backlink = Backlink { targets, ..Backlink::default() };
            backlink.set(captures.iter().copied(), &mut times);
            linking.push((page, backlink));
        }
    }
    linking.retain(|(_, backlink)| !backlink.stays.is_empty());
    Ok(linking)
}

/// The stretches of pages with one host.
fn hosts<L: Links + ?Sized>(links: &L, linking: &[(Uid, Backlink)]) -> Result<Vec<(String, u64)>, Error> {
    let urls = links.urls_of(&linking.iter().map(|(page, _)| *page).collect::<Vec<_>>())?;
    let mut hosts: Vec<(String, u64)> = Vec::new();
    for url in &urls {
        let host = host_of(url).unwrap_or_default();
        match hosts.last_mut() {
            Some((known, pages)) if host == known => *pages += 1,
            _ => hosts.push((host.to_owned(), 1)),
        }
    }
    Ok(hosts)
}
