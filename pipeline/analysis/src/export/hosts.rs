//! Links between hosts, domains or paths: a row for each pair of groups with a link in the window from the first to the
//! second.
//!
//! | column | type | meaning |
//! |---|---|---|
//! | `src`, `dst` | string | the group of the pages, and the group of the links; they may be the same |
//! | `pages` | uint64 | pages of `src` that link to some URL of `dst` |
//! | `links` | uint64 | pairs of a page and a link |
//! | `occurrences` | uint64 | links in captures: a link in three captures counts three times |
//! | `first_seen`, `last_seen` | timestamp | the first and the last capture of the window that has such a link |
//!
//! Rows are in the order of names. For Gephi, the columns are `Source`, `Target`, `Type`, `Weight` (links), `Pages`,
//! `Occurrences` and `Time Interval`. Memory: all pairs, about 100 bytes each, and the names.

use super::table::{CHUNK, create, intervals};
use super::{Export, ExportReport, Names, Stream};
use crate::Error;
use crate::hosts::{Fold, UrlGroups};
use crate::stretches::{captures_of, for_each_link};
use crate::table::{column, time, times};
use arrow_array::{ArrayRef, StringArray, UInt64Array};
use arrow_schema::{DataType, Field};
use std::collections::HashMap;
use std::sync::Arc;
use webstrata_layers::Links;

/// The counts and times of the links from one group to another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Weights {
    pub(super) pages: u64,
    pub(super) links: u64,
    pub(super) occurrences: u64,
    pub(super) first: i64,
    pub(super) last: i64,
}

impl Weights {
    fn add(&mut self, other: &Weights) {
        self.pages += other.pages;
        self.links += other.links;
        self.occurrences += other.occurrences;
        self.first = self.first.min(other.first);
        self.last = self.last.max(other.last);
    }
}

/// The numbers of two groups, and the weights of the links from the first to the second.
pub(super) type Pair = ((u32, u32), Weights);

/// Returns the groups of the store, and the pairs of groups with links, sorted by names.
pub(super) fn folded(export: &Export<'_>) -> Result<(UrlGroups, Vec<Pair>), Error> {
    let window = export.options.window;
    let groups = UrlGroups::read(export.reader, export.options.fold.unwrap_or(Fold::Host), export.job)?;
    let mut pairs: HashMap<(u32, u32), Weights> = HashMap::new();
    let (mut from_near, mut to_near) = (0, 0);
    // The groups that one page links to. Consecutive links to one group share an entry.
    let mut targets: Vec<(u32, Weights)> = Vec::new();
    export.pages("hosts", |page| {
        let src = groups.of(page.uid, &mut from_near);
        targets.clear();
        for_each_link(page, window, |link, stretches| {
            let dst = groups.of(link, &mut to_near);
            let (first, last) = (
                page.timestamps[stretches[0].first as usize],
                page.timestamps[stretches[stretches.len() - 1].last as usize],
            );
            let link = Weights { pages: 0, links: 1, occurrences: captures_of(stretches), first, last };
            match targets.last_mut().filter(|(group, _)| *group == dst) {
                Some((_, weights)) => weights.add(&link),
                None => targets.push((dst, link)),
            }
            Ok(())
        })?;
        targets.sort_unstable_by_key(|(group, _)| *group);
        for same in targets.chunk_by(|a, b| a.0 == b.0) {
            let (dst, mut weights) = same[0];
            same[1..].iter().for_each(|(_, other)| weights.add(other));
            weights.pages = 1;
            pairs.entry((src, dst)).and_modify(|all| all.add(&weights)).or_insert(weights);
        }
        Ok(())
    })?;
    let mut pairs: Vec<_> = pairs.into_iter().collect();
    pairs.sort_unstable_by_key(|((src, dst), _)| (groups.name(*src), groups.name(*dst)));
    Ok((groups, pairs))
}

fn fields(names: Names) -> Vec<Field> {
    let text = |name| column(name, DataType::Utf8);
    let number = |name| column(name, DataType::UInt64);
    let [src, dst] = names.ends().map(text);
    if names == Names::Gephi {
        let [weight, pages, occurrences] = ["Weight", "Pages", "Occurrences"].map(number);
        return vec![src, dst, text("Type"), weight, pages, occurrences, text("Time Interval")];
    }
    let [pages, links, occurrences] = ["pages", "links", "occurrences"].map(number);
    vec![src, dst, pages, links, occurrences, column("first_seen", time()), column("last_seen", time())]
}

/// Writes the table.
pub(super) fn write(export: &Export<'_>, stream: &mut Stream) -> Result<ExportReport, Error> {
    let names = export.options.names;
    let mut table = create(export, stream, fields(names))?;
    let (groups, pairs) = folded(export)?;
    for rows in pairs.chunks(CHUNK) {
        export.job.go_on()?;
        let text = |group: fn(&(u32, u32)) -> u32| -> ArrayRef {
            Arc::new(StringArray::from_iter_values(rows.iter().map(|(pair, _)| groups.name(group(pair)))))
        };
        let number = |value: fn(&Weights) -> u64| -> ArrayRef {
            Arc::new(UInt64Array::from_iter_values(rows.iter().map(|(_, weights)| value(weights))))
        };
        let (src, dst) = (text(|pair| pair.0), text(|pair| pair.1));
        let (pages, links) = (number(|weights| weights.pages), number(|weights| weights.links));
        let occurrences = number(|weights| weights.occurrences);
        table.write(if names == Names::Gephi {
            let kinds = StringArray::from_iter_values(rows.iter().map(|_| "Directed"));
            let stretches = rows.iter().map(|(_, weights)| intervals(std::iter::once((weights.first, weights.last))));
            let stretches = StringArray::from_iter_values(stretches);
            vec![src, dst, Arc::new(kinds), links, pages, occurrences, Arc::new(stretches)]
        } else {
            let first = times(rows.iter().map(|(_, weights)| Some(weights.first)));
            vec![src, dst, pages, links, occurrences, first, times(rows.iter().map(|(_, weights)| Some(weights.last)))]
        })?;
    }
    Ok(ExportReport { epoch: export.reader.epoch(), records: table.finish()?, nodes: 0 })
}
