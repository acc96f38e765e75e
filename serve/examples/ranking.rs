//! HITS and SALSA at query time: what SHS was built for (Najork 2009, section 1; Kleinberg 1999; Lempel & Moran 2000),
//! as of a time.
//!
//! ```text
//! cargo run -p webstrata-serve --example ranking -- 127.0.0.1:7400 20070601 http://example.org/a http://example.org/b ...
//! ```
//!
//! The URLs are the results of a query. Their neighbourhood is at most 50 pages that link to each of them and 50 links
//! of each, consistent samples, so that what many share is drawn for all. Links within a host say nothing of authority
//! and are left out. Prints the authorities by both, the best first. Three batches of calls, whatever the number of
//! results.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::error::Error;
use std::io::{self, Write};

use webstrata_layers::{Direction, Precision, Sample, Sampling, Window, parse_time};
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
    let window = Window::AsOf(parse_time(time, true).ok_or(format!("not a time: {time} (expected as 20070601)"))?);
    let clerk = Clerk::connect(std::slice::from_ref(server), Dialer::default(), ClerkOptions::default()).await?;
    let graph = clerk.at(None)?;

    let found: Vec<u64> = graph.uids(results).await?.into_iter().flatten().collect();
    let outward = graph.samples(&found, Direction::Out, window, SAMPLE).await?;
    let inward = graph.samples(&found, Direction::In(Precision::Exact), window, SAMPLE).await?;
    let near: BTreeSet<u64> = found.iter().chain(outward.values()).chain(inward.values()).copied().collect();
    let near: Vec<u64> = near.into_iter().collect();
    let urls: HashMap<u64, String> = near.iter().copied().zip(graph.urls(&near).await?).collect();
    let links = graph.links(&near, Direction::Out, window).await?;
    let mut edges = Vec::new();
    for (&page, targets) in near.iter().zip(links.iter()) {
        let other = |target: &&u64| urls.get(target).is_some_and(|url| host(url) != host(&urls[&page]));
        edges.extend(targets.iter().filter(other).map(|&target| (page, target)));
    }

    let mut out = io::stdout().lock();
    for (name, scores) in [("HITS", hits(&edges)), ("SALSA", salsa(&edges))] {
        let mut best: Vec<(f64, u64)> = scores.into_iter().map(|(uid, score)| (score, uid)).collect();
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

/// Authority: the sum of the hub scores of who links, which are sums of authority.
fn hits(edges: &[(u64, u64)]) -> BTreeMap<u64, f64> {
    let mut authorities: BTreeMap<u64, f64> = edges.iter().map(|&(_, target)| (target, 1.0)).collect();
    for _ in 0..ROUNDS {
        let mut hubs = BTreeMap::<u64, f64>::new();
        edges.iter().for_each(|(page, target)| *hubs.entry(*page).or_default() += authorities[target]);
        authorities.values_mut().for_each(|score| *score = 0.0);
        edges.iter().for_each(|(page, target)| *authorities.entry(*target).or_default() += hubs[page]);
        scale(&mut authorities);
    }
    authorities
}

/// Authority: where a walk is that goes back along a link and forward along another, each by chance.
fn salsa(edges: &[(u64, u64)]) -> BTreeMap<u64, f64> {
    let (mut outward, mut inward) = (BTreeMap::<u64, f64>::new(), BTreeMap::<u64, f64>::new());
    for (page, target) in edges {
        *outward.entry(*page).or_default() += 1.0;
        *inward.entry(*target).or_default() += 1.0;
    }
    let mut authorities: BTreeMap<u64, f64> = inward.keys().map(|&target| (target, 1.0)).collect();
    scale(&mut authorities);
    for _ in 0..ROUNDS {
        let mut hubs = BTreeMap::<u64, f64>::new();
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

/// To a sum of 1.
fn scale(scores: &mut BTreeMap<u64, f64>) {
    let sum: f64 = scores.values().sum();
    scores.values_mut().for_each(|score| *score /= sum.max(f64::MIN_POSITIVE));
}
