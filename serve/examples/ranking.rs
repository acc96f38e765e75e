//! HITS and SALSA at query time, as of a time: the purpose of SHS (Najork 2009, section 1; Kleinberg 1999; Lempel &
//! Moran 2000).
//!
//! ```text
//! cargo run -p webstrata-serve --example ranking -- 127.0.0.1:7400 20070601 http://example.org/ http://example.com/
//! ```
//!
//! The URLs are the results of a query. Their neighbourhood has, for each result, at most 50 pages that link to it and
//! at most 50 of its links. Both are consistent samples, so that neighbours shared by many results are drawn for all.
//! Links within a host are no sign of authority and are skipped. The example prints the best authorities by both
//! rankings. It makes the same few batches of calls for any number of results.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::error::Error;
use std::io::{self, Write};

use webstrata_layers::{Direction, Precision, Sample, Sampling, Uid, Window, parse_time};
use webstrata_serve::clerk::{Clerk, ClerkOptions};
use webstrata_serve::dial::Dialer;

const SAMPLE: Sample = Sample { count: 50, sampling: Sampling::Consistent, seed: 0 };
const ROUNDS: usize = 50;
const SHOWN: usize = 10;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [server, time, results @ ..] = &arguments[..] else {
        return Err("usage: ranking HOST:PORT TIME URL...".into());
    };
    let window = Window::as_of(parse_time(time, true)?);
    let clerk = Clerk::connect(std::slice::from_ref(server), Dialer::default(), ClerkOptions::default()).await?;
    let graph = clerk.at(None)?;

    let found: Vec<Uid> = graph.uids(results).await?.into_iter().flatten().collect();
    let outward = graph.samples(&found, Direction::Out, window, SAMPLE).await?;
    let inward = graph.samples(&found, Direction::In(Precision::Exact), window, SAMPLE).await?;
    let near: BTreeSet<Uid> = found.iter().chain(outward.values()).chain(inward.values()).copied().collect();
    let near: Vec<Uid> = near.into_iter().collect();
    let urls: HashMap<Uid, String> = near.iter().copied().zip(graph.urls(&near).await?).collect();
    let links = graph.links(&near, Direction::Out, window).await?;
    let mut edges = Vec::new();
    for (&page, targets) in near.iter().zip(links.iter()) {
        let other = |target: &&Uid| urls.get(target).is_some_and(|url| host(url) != host(&urls[&page]));
        edges.extend(targets.iter().filter(other).map(|&target| (page, target)));
    }

    let mut out = io::stdout().lock();
    for (name, scores) in [("HITS", hits(&edges)), ("SALSA", salsa(&edges))] {
        let mut best: Vec<(f64, Uid)> = scores.into_iter().map(|(uid, score)| (score, uid)).collect();
        best.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1)));
        writeln!(out, "{name}: {} pages, {} links", near.len(), edges.len())?;
        for (score, uid) in best.into_iter().take(SHOWN) {
            writeln!(out, "  {score:.4} {}", urls[&uid])?;
        }
    }
    Ok(())
}

fn host(url: &str) -> &str {
    url.split('/').nth(2).unwrap_or_default()
}

/// HITS: the authority of a page is the sum of its in-links' hub scores, which are sums of authorities.
fn hits(edges: &[(Uid, Uid)]) -> BTreeMap<Uid, f64> {
    let mut authorities: BTreeMap<Uid, f64> = edges.iter().map(|&(_, target)| (target, 1.0)).collect();
    for _ in 0..ROUNDS {
        let mut hubs = BTreeMap::<Uid, f64>::new();
        edges.iter().for_each(|(page, target)| *hubs.entry(*page).or_default() += authorities[target]);
        authorities.values_mut().for_each(|score| *score = 0.0);
        edges.iter().for_each(|(page, target)| *authorities.entry(*target).or_default() += hubs[page]);
        scale(&mut authorities);
    }
    authorities
}

/// SALSA: the authority of a page is its probability in a random walk that goes back along a link and forward along
/// another.
fn salsa(edges: &[(Uid, Uid)]) -> BTreeMap<Uid, f64> {
    let (mut outward, mut inward) = (BTreeMap::<Uid, f64>::new(), BTreeMap::<Uid, f64>::new());
    for (page, target) in edges {
        *outward.entry(*page).or_default() += 1.0;
        *inward.entry(*target).or_default() += 1.0;
    }
    let mut authorities: BTreeMap<Uid, f64> = inward.keys().map(|&target| (target, 1.0)).collect();
    scale(&mut authorities);
    for _ in 0..ROUNDS {
        let mut hubs = BTreeMap::<Uid, f64>::new();
        for (page, target) in edges {
            *hubs.entry(*page).or_default() += authorities[target] / inward[target];
        }
        authorities.values_mut().for_each(|score| *score = 0.0);
        for (page, target) in edges {
            *authorities.entry(*target).or_default() += hubs[page] / outward[page];
        }
    }
    authorities
}

/// Scales the scores to a sum of 1.
fn scale(scores: &mut BTreeMap<Uid, f64>) {
    let sum: f64 = scores.values().sum();
    scores.values_mut().for_each(|score| *score /= sum.max(f64::MIN_POSITIVE));
}
