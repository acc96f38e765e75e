//! The dataflow of a standing result: pairs (page, link) with differences are the input, and rows with differences are
//! the output.
//!
//! The dataflow takes [`Pair`]s at rising times. It leaves the differences of [`Row`]s in an [`Outbox`] that all
//! workers of the process share. The outbox is complete for a time when the probe has passed the time. A row whose
//! differences add up to 0 has not changed. Otherwise an old row adds up to -1, and a new row to +1.
//!
//! Components: every URL proposes its label to its neighbours and keeps the least label that it has received. Labels
//! are hashes of URLs, so a component has the same name whenever it is computed. Small labels start first (as in
//! `propagate_core` of the crate). The least label of a large component has then reached all its URLs before most URLs
//! propose their labels, which spread no further. Memory: the pairs are arranged once for counts and in both directions
//! for components, and each result is arranged once.

use super::Standing;
use differential_dataflow::VecCollection;
use differential_dataflow::algorithms::graphs::propagate::propagate_at;
use differential_dataflow::input::{Input, InputSession};
use differential_dataflow::operators::CountTotal;
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use timely::dataflow::ProbeHandle;
use timely::worker::Worker;

/// The key of a row: a URL by its lasting number ([`super::numbers`]), or a host by the number that the feed gave the
/// host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) struct Key(pub(super) u32);

/// A page and one of its links, or their hosts.
pub(super) type Pair = (Key, Key);

/// A key and its value: see [`super::Standing`]. If the key is one URL, the second member of the pair is [`ALONE`].
pub(super) type Row = (Pair, (u64, u64));

/// The second member of a key that is one URL.
pub(super) const ALONE: Key = Key(0);

/// The differences of rows.
pub(super) type Outbox = Arc<Mutex<Vec<(Row, isize)>>>;

/// The labels of URLs, by number. The list only grows, and has the labels of a pair before the pair is fed.
pub(super) type Labels = Arc<RwLock<Vec<u64>>>;

/// The number of a step of the run.
pub(super) type Time = u64;

type Pairs<'scope> = VecCollection<'scope, Time, Pair, isize>;
type Rows<'scope> = VecCollection<'scope, Time, Row, isize>;

/// The part of the dataflow on one worker.
pub(super) struct Circuit {
    /// The input for pairs. A pair may enter at any worker.
    pub(super) input: InputSession<Time, Pair, isize>,
    /// The progress of all workers.
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
    // A difference that is a pair of numbers counts both directions in one arrangement.
    let ends = pairs.explode(|(page, link)| [(page, (1, 0)), (link, (0, 1))]);
    ends.count_total().map(|(url, (out, into)): (Key, (isize, isize))| ((url, ALONE), (to_count(out), to_count(into))))
}

fn top(pairs: Pairs<'_>, k: u64) -> Rows<'_> {
    // Sorted by the number of links, the highest first, because negative numbers are used.
    let by_links = pairs.map(|(_, link)| link).count_total().map(|(url, links)| (-links, url));
    // The number of URLs with each number of links. There are few such rows, whatever the graph. Chosen are the numbers
    // of links that the first k URLs have.
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
    // Not `distinct_total`: in differential-dataflow 0.25, it does not notice when the last of several copies goes.
    let urls = both_ways.clone().map(|(url, _)| url).distinct();
    let labelled = urls.map(move |url| {
        let labels = labels.read().unwrap_or_else(PoisonError::into_inner);
        // The number distinguishes URLs with the same hash.
        (url, (labels.get(url.0 as usize).copied().unwrap_or(u64::MAX), url))
    });
    propagate_at(both_ways, labelled, |label| label.0).map(|(url, (_, least))| ((url, ALONE), (u64::from(least.0), 0)))
}

/// Converts a count. A count is never negative, because only pairs that came in can go.
fn to_count(count: isize) -> u64 {
    u64::try_from(count).unwrap_or(0)
}
