//! The dataflow of a standing result: pairs (page, link) go in with differences, rows come out with theirs.
//!
//! Takes [`Pair`]s of the input at rising times; leaves the differences of [`Row`]s in an [`Outbox`] that all workers
//! of the process share, complete for a time when the probe has passed it. A row whose differences add up to nothing
//! has not changed; else they add up to -1 for what it was and +1 for what it is.
//!
//! Components: every URL proposes its own label to its neighbours and keeps the least that it has heard of. Labels are
//! hashes of URLs, so that a component has the same name whenever it is computed, and small ones set out first (as in
//! the crate's `propagate_core`): the least label of a large component has flooded it before most URLs propose theirs,
//! which then go nowhere. Memory: the pairs arranged once for counts, in both directions for components, and each
//! result once.

use super::Standing;
use differential_dataflow::VecCollection;
use differential_dataflow::algorithms::graphs::propagate::propagate_at;
use differential_dataflow::input::{Input, InputSession};
use differential_dataflow::operators::CountTotal;
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use timely::dataflow::ProbeHandle;
use timely::worker::Worker;

/// What a result is about: a URL by its lasting number ([`super::numbers`]), or a host by the number that the feed gave
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) struct Key(pub(super) u32);

/// A page and a link of it, or their hosts.
pub(super) type Pair = (Key, Key);

/// A key and its value: see [`super::Standing`]. A URL has [`ALONE`] as the second of its pair.
pub(super) type Row = (Pair, (u64, u64));

/// Stands where a row is about one URL.
pub(super) const ALONE: Key = Key(0);

/// Differences of rows.
pub(super) type Outbox = Arc<Mutex<Vec<(Row, isize)>>>;

/// The labels of URLs by their numbers; only grows, and has those of a pair before that goes in.
pub(super) type Labels = Arc<RwLock<Vec<u64>>>;

/// Which step of the run it is.
pub(super) type Time = u64;

type Pairs<'scope> = VecCollection<'scope, Time, Pair, isize>;
type Rows<'scope> = VecCollection<'scope, Time, Row, isize>;

/// One worker's part of the dataflow.
pub(super) struct Circuit {
    /// Where pairs go in, at this worker or another.
    pub(super) input: InputSession<Time, Pair, isize>,
    /// How far all workers are.
    pub(super) probe: ProbeHandle<Time>,
}

impl Circuit {
    /// Builds the dataflow on this worker; all workers build it.
    pub(super) fn build(worker: &mut Worker, standing: &Standing, labels: Labels, outbox: Outbox) -> Self {
        worker.dataflow::<Time, _, _>(|scope| {
            let (input, pairs) = scope.new_collection();
            let rows = match standing {
                Standing::Degrees => degrees(pairs),
                Standing::Top { k } => top(pairs, *k),
                Standing::Components => components(pairs, labels),
                Standing::Hosts { .. } => pairs.count_total().map(|(pair, links)| (pair, (to_count(links), 0))),
                Standing::NewLinks { .. } => pairs.map(|pair| (pair, (0, 0))),
            };
            let rows = rows.inspect_batch(move |_, batch| {
                let mut outbox = outbox.lock().unwrap_or_else(PoisonError::into_inner);
                outbox.extend(batch.iter().map(|(row, _, difference)| (*row, *difference)));
            });
            Self { input, probe: rows.probe().0 }
        })
    }
}

fn degrees(pairs: Pairs<'_>) -> Rows<'_> {
    // A difference of two numbers counts both ways in one arrangement.
    let ends = pairs.explode(|(page, link)| [(page, (1, 0)), (link, (0, 1))]);
    ends.count_total().map(|(url, (out, into)): (Key, (isize, isize))| ((url, ALONE), (to_count(out), to_count(into))))
}

fn top(pairs: Pairs<'_>, k: u64) -> Rows<'_> {
    // By number of links, the most first, as negative numbers sort.
    let by_links = pairs.map(|(_, link)| link).count_total().map(|(url, links)| (-links, url));
    // How many URLs have each number of links: few rows, whatever the graph. Those numbers count that the first k URLs
    // have.
    let top_counts = by_links.clone().map(|(links, _)| links).count_total().map(|of_links| ((), of_links));
    let top_counts = top_counts.reduce(move |(), numbers, chosen| {
        let mut seen = 0;
        for &(&(links, urls), _) in numbers {
            if seen >= k {
                break;
            }
            seen += to_count(urls);
            chosen.push((links, 1isize));
        }
    });
    by_links.semijoin(top_counts.map(|((), links)| links)).map(|(links, url)| ((url, ALONE), (to_count(-links), 0)))
}

fn components(pairs: Pairs<'_>, labels: Labels) -> Rows<'_> {
    let both_ways = pairs.flat_map(|(page, link)| [(page, link), (link, page)]);
    // Not `distinct_total`, which in differential-dataflow 0.25 does not see that the last of several goes.
    let urls = both_ways.clone().map(|(url, _)| url).distinct();
    let labelled = urls.map(move |url| {
        let labels = labels.read().unwrap_or_else(PoisonError::into_inner);
        // The number tells URLs apart that have the same hash.
        (url, (labels.get(url.0 as usize).copied().unwrap_or(u64::MAX), url))
    });
    propagate_at(both_ways, labelled, |label| label.0).map(|(url, (_, least))| ((url, ALONE), (u64::from(least.0), 0)))
}

/// A count, which is never negative: what goes out has come in.
fn to_count(count: isize) -> u64 {
    u64::try_from(count).unwrap_or(0)
}
