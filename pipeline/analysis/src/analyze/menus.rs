//! `menus`: links that occur together on most pages of a directory.
//!
//! A directory is a URL up to a slash. Its pages are the URLs that begin with it and have no further slash in their
//! path. Links that are on exactly the same pages of a directory are a group. A group is a menu if it has at least two
//! links and is on at least the given share of the pages, and if the directory has at least the given number of pages.
//! Avcular & Suel 2011, section 8, name menus as a way to better compression. The result has one row for each link of a
//! menu.
//!
//! The pages that have a link are not kept. They are summed up as the exclusive or of their hashes (64 bits), so two
//! groups are taken for one with a probability of about 1e-19 per pair. Passes: one over the links, one over the URLs
//! of pages. Memory: 24 bytes for each distinct pair of a directory and a link, twice.

use super::adjacency::{Adjacency, low};
use super::exchange::{Number, exchange};
use super::{AnalysisContext, Fact, Found, Sheet, SheetColumn};
use crate::Error;
use std::collections::{BTreeMap, HashMap};
use webstrata_engine::Stopped;
use webstrata_layers::Uid;
use xxhash_rust::xxh3::xxh3_64;

/// The number of pages of a directory that have a link, and the exclusive or of the hashes of these pages.
type PageSet = (u32, u64);

/// A directory: the number of its pages, and its links.
#[derive(Default)]
struct Directory {
    pages: u64,
    links: HashMap<u32, PageSet>,
}

pub(super) fn menus(
    context: &mut AnalysisContext<'_>,
    graph: &Adjacency,
    share: f64,
    pages_min: u64,
) -> Result<Found, Stopped> {
    let my_directories = read(context, graph);
    let my_directories = context.job.check(my_directories)?;
    let directories = share_out(context, my_directories)?;
    let mut found: Vec<(String, u64, Vec<Menu>)> = Vec::new();
    for (name, directory) in directories.into_iter().filter(|(_, directory)| directory.pages >= pages_min.max(2)) {
        let menus = menus_of(&directory, share);
        if !menus.is_empty() {
            found.push((name, directory.pages, menus));
        }
    }
    let mut all: Vec<_> = context.gather_values(&found)?.into_iter().flatten().collect();
    if context.worker.index() > 0 {
        return Ok(Found::of_all());
    }
    all.sort_unstable();
    let count = all.iter().map(|(_, _, menus)| menus.len()).sum::<usize>();
    let facts = vec![Fact::new("directories with menus", all.len() as f64), Fact::new("menus", count as f64)];
    Ok(Found::of_all().and(facts).with_sheet(Some(sheet(all))))
}

/// A group of links: the number of pages that have them, and the links.
type Menu = (u32, Vec<u32>);

/// Reads the directories of this worker's pages.
fn read(context: &AnalysisContext<'_>, graph: &Adjacency) -> Result<BTreeMap<String, Directory>, Error> {
    let mut directories: BTreeMap<String, Directory> = BTreeMap::new();
    let mut next = 0;
    for row in 0..context.store.rows() {
        let mut urls = context.store.row_urls(row, graph.uids.clone(), false);
        while let Some((uid, url, _)) = urls.next_url()? {
            let page_index = low(uid - graph.uids.start);
            if graph.pages.get(next) != Some(&page_index) {
                continue;
            }
            let path = url.find(['?', '#']).map_or(url, |end| &url[..end]);
            let name = path.rfind('/').map_or(path, |slash| &path[..=slash]);
            if !directories.contains_key(name) {
                context.job.go_on()?;
                directories.insert(name.to_owned(), Directory::default());
            }
            if let Some(directory) = directories.get_mut(name) {
                directory.pages += 1;
                let page = xxh3_64(&uid.0.to_le_bytes());
                for &link in graph.links_of(next) {
                    let page_set = directory.links.entry(link).or_default();
                    *page_set = (page_set.0 + 1, page_set.1 ^ page);
                }
            }
            next += 1;
        }
    }
    Ok(directories)
}

/// Brings all data about a directory to one of the workers.
fn share_out(
    context: &mut AnalysisContext<'_>,
    mut directories: BTreeMap<String, Directory>,
) -> Result<BTreeMap<String, Directory>, Stopped> {
    let peers = context.worker.peers();
    if peers == 1 {
        return Ok(directories);
    }
    let mut outgoing = vec![Vec::new(); peers];
    let to = |name: &str| usize::try_from(xxh3_64(name.as_bytes()) % peers as u64).unwrap_or(0);
    let index = context.worker.index();
    directories.retain(|name, directory| {
        let to = to(name);
        if to == index {
            return true;
        }
        let out = &mut outgoing[to];
        low(name.len() as u64).put(out);
        out.extend_from_slice(name.as_bytes());
        directory.pages.put(out);
        low(directory.links.len() as u64).put(out);
        for (&link, &(count, page_set)) in &directory.links {
            link.put(out);
            count.put(out);
            page_set.put(out);
        }
        false
    });
    for bytes in exchange(context, outgoing)? {
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let length = u32::take(&mut rest) as usize;
            let (name, after) = rest.split_at(length.min(rest.len()));
            rest = after;
            let directory = directories.entry(String::from_utf8_lossy(name).into_owned()).or_default();
            directory.pages += u64::take(&mut rest);
            for _ in 0..u32::take(&mut rest) {
                let page_set = directory.links.entry(u32::take(&mut rest)).or_default();
                *page_set = (page_set.0 + u32::take(&mut rest), page_set.1 ^ u64::take(&mut rest));
            }
        }
    }
    Ok(directories)
}

/// Returns the menus of a directory, sorted by the number of pages, the highest first.
fn menus_of(directory: &Directory, share: f64) -> Vec<Menu> {
    let mut groups: HashMap<PageSet, Vec<u32>> = HashMap::new();
    for (&link, &page_set) in &directory.links {
        if f64::from(page_set.0) >= share * directory.pages as f64 {
            groups.entry(page_set).or_default().push(link);
        }
    }
    let mut menus: Vec<Menu> = groups
        .into_iter()
        .filter(|(_, links)| links.len() > 1)
        .map(|((count, _), mut links)| {
            links.sort_unstable();
            (count, links)
        })
        .collect();
    menus.sort_unstable_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    menus
}

fn sheet(all: Vec<(String, u64, Vec<Menu>)>) -> Sheet {
    let (mut directories, mut numbers, mut links) = (Vec::new(), Vec::new(), Vec::new());
    let [mut pages, mut with] = [0; 2].map(|_| Vec::new());
    for (directory, count, menus) in all {
        for (number, (with_menu, menu_links)) in (0u64..).zip(menus) {
            for link in menu_links {
                directories.push(directory.clone());
                numbers.push(number);
                pages.push(count);
                with.push(u64::from(with_menu));
                links.push(Uid(link.into()));
            }
        }
    }
    let columns = vec![
        ("directory", SheetColumn::Texts(directories)),
        ("menu", SheetColumn::Counts(numbers)),
        ("pages", SheetColumn::Counts(pages)),
        ("pages_with", SheetColumn::Counts(with)),
        ("link", SheetColumn::Urls(links)),
    ];
    Sheet::new("links of menus", true, columns)
}
