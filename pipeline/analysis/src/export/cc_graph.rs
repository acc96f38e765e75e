//! A host or domain graph in the files of Common Crawl's web graphs.
//!
//! ```text
//! OUT/vertices.txt.gz    id, tab, name with its labels reversed; in a graph of domains, a tab and the number of hosts
//! OUT/edges.txt.gz       id of a page's group, tab, id of a link's group
//! OUT/ranks.txt.gz       harmonic centrality and PageRank of each vertex ([`super::ranks`])
//! ```
//!
//! Ids are numbers from 0, in the byte order of the reversed names. A vertex is a host or a domain of a node
//! ([`crate::nodes`]), and the hosts of a domain are those of its nodes. Edges are sorted by both ids, each once. Links
//! inside a group are no edges. [`super::hosts`] folds the links. Common Crawl leaves out addresses and names of one
//! label; here they are vertices. The file has no times: another window needs another export.
//!
//! Memory: all pairs of groups, about 100 bytes each, the names, and the ranks.

use super::hosts::folded;
use super::parts::Directory;
use super::{Export, ExportReport, ranks};
use crate::Error;
use crate::hosts::{Fold, UrlGroups};
use crate::outlet::{Outlet, Target};
use std::io::Write;
use webstrata_layers::{Draft, Links, Uid};
use webstrata_url::reversed;

/// Writes the files.
pub(super) fn write(export: &Export<'_>) -> Result<ExportReport, Error> {
    let Target::File(out) = &export.options.target else {
        return Err(Error::Internal("a web graph of several files to a stream"));
    };
    let directory = Directory::create(out, 3)?;
    let inside = Draft::directory_of(out);
    let (groups, pairs) = folded(export)?;
    let hosts = hosts_of(export, &groups)?;
    let mut vertices: Vec<(String, u32)> =
        (0u32..).zip(&hosts).filter(|(_, hosts)| **hosts > 0).map(|(at, _)| (reversed(groups.name(at)), at)).collect();
    vertices.sort_unstable();
    let has_counts = export.options.fold == Some(Fold::Domain);
    let mut file = Outlet::file(&inside.join("vertices.txt.gz"))?;
    let mut ids = vec![0usize; groups.len()];
    for (id, (name, group)) in (0..).zip(&vertices) {
        export.job.go_on()?;
        ids[*group as usize] = id;
        let written = match has_counts {
            true => writeln!(file, "{id}\t{name}\t{}", hosts[*group as usize]),
            false => writeln!(file, "{id}\t{name}"),
        };
        written.map_err(|source| file.failed(source))?;
    }
    file.finish()?;
    let ends = pairs.iter().map(|((from, to), _)| (ids[*from as usize], ids[*to as usize]));
    let mut edges: Vec<(usize, usize)> = ends.filter(|(from, to)| from != to).collect();
    edges.sort_unstable();
    let mut file = Outlet::file(&inside.join("edges.txt.gz"))?;
    for (from, to) in &edges {
        export.job.go_on()?;
        writeln!(file, "{from}\t{to}").map_err(|source| file.failed(source))?;
    }
    file.finish()?;
    drop(pairs);
    let names: Vec<&str> = vertices.iter().map(|(_, group)| groups.name(*group)).collect();
    let counts = |id: usize| has_counts.then(|| hosts[vertices[id].1 as usize]);
    ranks::write(export, &inside.join("ranks.txt.gz"), &names, &edges, counts)?;
    directory.keep()?;
    Ok(ExportReport { epoch: export.reader.epoch(), records: edges.len() as u64, nodes: vertices.len() as u64 })
}

/// Returns the number of hosts of each group that have a node. A group without nodes has none.
fn hosts_of(export: &Export<'_>, groups: &UrlGroups) -> Result<Vec<u64>, Error> {
    let by_host = match export.options.fold {
        Some(Fold::Domain) => Some(UrlGroups::read(export.reader, Fold::Host, export.job)?),
        _ => None,
    };
    let of_host = by_host.as_ref().unwrap_or(groups);
    let (mut is_counted, mut hosts) = (vec![false; of_host.len()], vec![0; groups.len()]);
    let (mut near_group, mut near_host) = (0, 0);
    for uid in 0..export.reader.urls() {
        let uid = Uid(uid);
        if !export.is_node(uid) {
            continue;
        }
        let host = of_host.of(uid, &mut near_host) as usize;
        if !std::mem::replace(&mut is_counted[host], true) {
            hosts[groups.of(uid, &mut near_group) as usize] += 1;
        }
    }
    Ok(hosts)
}
