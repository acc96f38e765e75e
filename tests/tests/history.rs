//! The history of links as an executable definition. The captures of an archive are a differential collection over
//! capture times. The answers of a store about any time are compared with the accumulation of this collection.
//!
//! Times of the dataflow are seconds. A capture is there from its time on. The latest capture of a page decides the
//! links of the page, and links appear (+1) and go (-1) accordingly. These few lines define `as of`, lifespans and
//! degrees at a time:
//!
//! ```text
//! latest(t)   = for each page, of its captures up to t, the last
//! links(t)    = (page, link) for each link of latest(t)
//! appears     = the times at which the difference of (page, link) is +1; goes: -1
//! ```

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use differential_dataflow::VecCollection;
use differential_dataflow::input::Input;
use differential_dataflow::operators::CountTotal;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use webstrata_layers::{Direction, Links, Precision, RangeLength, Uid, Window};
use webstrata_tests::rows::{Captures, Rows, Said, Shape};
use webstrata_tests::stores::reader;

type Pair = (String, String);
/// A page, the time of a capture, and the links of the capture; `None` if the links are unknown.
type Capture = (String, (u64, Option<BTreeSet<String>>));

/// The output of a dataflow: each difference by time and record. No pair of time and record occurs twice.
type Differences<D> = BTreeMap<(u64, D), isize>;

fn note<D: Ord + Clone>(to: &RefCell<Differences<D>>, record: &D, time: u64, difference: isize) {
    assert_eq!(to.borrow_mut().insert((time, record.clone()), difference), None);
}

/// The definition: pairs of a page and a link, from captures.
fn links_of(captures: VecCollection<'_, u64, Capture, isize>) -> VecCollection<'_, u64, Pair, isize> {
    let latest = captures.reduce(|_, captures, latest| latest.extend(captures.last().map(|last| (last.0.clone(), 1))));
    latest.flat_map(|(page, (_, links))| links.into_iter().flatten().map(move |link| (page.clone(), link)))
}

/// The differences of links over all time, and the differences of the in-degrees of URLs.
fn differences(captures: Vec<Capture>) -> (Differences<Pair>, Differences<(String, isize)>) {
    timely::execute_directly(move |worker| {
        let (links, degrees) = (Rc::default(), Rc::default());
        let (seen, counted) = (Rc::clone(&links), Rc::clone(&degrees));
        let mut input = worker.dataflow::<u64, _, _>(|scope| {
            let (input, captures) = scope.new_collection();
            let links = links_of(captures).consolidate();
            let degrees = links.clone().map(|(_, link)| link).count_total().consolidate();
            links.inspect(move |(pair, time, difference)| note(&seen, pair, *time, *difference));
            degrees.inspect(move |(degree, time, difference)| note(&counted, degree, *time, *difference));
            input
        });
        for capture in captures {
            let time = capture.1.0;
            input.update_at(capture, time, 1);
        }
        drop(input);
        while worker.step() {}
        (Rc::unwrap_or_clone(links).into_inner(), Rc::unwrap_or_clone(degrees).into_inner())
    })
}

/// The records accumulated up to a time.
fn accumulated<D: Ord + Clone>(differences: &Differences<D>, time: u64) -> BTreeSet<D> {
    let mut sums: BTreeMap<&D, isize> = BTreeMap::new();
    let until = differences.iter().take_while(|((own, _), _)| *own <= time);
    until.for_each(|((_, record), difference)| *sums.entry(record).or_default() += difference);
    let there = sums.into_iter().filter(|(_, sum)| *sum != 0);
    there.map(|(record, sum)| (assert_eq!(sum, 1), record.clone()).1).collect()
}

fn second(time: i64) -> u64 {
    u64::try_from(time).unwrap()
}

#[test]
fn a_store_answers_what_the_differences_accumulate_to() {
    let (mut went, mut spans_seen) = (0, 0);
    for seed in 0..6u64 {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("store");
        let shape = Shape { rows: 3, pages: 8, captures: 25, links: 7, in_order: seed.is_multiple_of(3) };
        let rows = Rows::random(seed, shape);
        rows.write(&store, 2, RangeLength::Month);
        let store = reader(&store);
        // If several rows have a capture, the newest row decides.
        let mut all = Captures::new();
        rows.rows.iter().for_each(|row| all.extend(row.clone()));
        let told = |((page, time), said): (&(String, i64), &Said)| {
            let links = match said {
                Said::Links(links) | Said::Cut(links) => Some(links.clone()),
                Said::Unknown => None,
                // Failures of the server are left out: the page does not change.
                Said::Failure(429 | 500..) => return None,
                Said::Failure(_) => Some(BTreeSet::new()),
            };
            Some((page.clone(), (second(*time), links)))
        };
        let captures: Vec<Capture> = all.iter().filter_map(told).collect();
        let (links, degrees) = differences(captures.clone());
        let every = Uid::each(Uid::below(store.urls()));
        let urls: Vec<String> = every.clone().map(|uid| store.url(uid).unwrap()).collect();
        let mut times: BTreeSet<u64> = captures.iter().map(|(_, (time, _))| *time).collect();
        times.extend(times.clone().iter().flat_map(|time| [time.saturating_sub(1), time + 1]));
        for time in times {
            let window = Window::as_of(i64::try_from(time).unwrap());
            let mut answered = BTreeSet::new();
            let mut counted = BTreeSet::new();
            for (uid, url) in every.clone().zip(&urls) {
                let own = store.out_links(uid, window).unwrap();
                answered
                    .extend(own.into_iter().map(|link| (url.clone(), urls[usize::try_from(link.0).unwrap()].clone())));
                let degree = store.degree(uid, Direction::In(Precision::Exact), window).unwrap();
                counted.extend((degree > 0).then(|| (url.clone(), isize::try_from(degree).unwrap())));
            }
            assert_eq!(answered, accumulated(&links, time), "seed {seed}, as of {time}");
            assert_eq!(counted, accumulated(&degrees, time), "seed {seed}, degrees as of {time}");
        }
        // Lifespans pass over captures with unknown links, so these captures are left out.
        let known: Vec<Capture> = captures.into_iter().filter(|(_, (_, links))| links.is_some()).collect();
        let (links, _) = differences(known.clone());
        let mut expected = BTreeMap::new();
        for (uid, url) in every.clone().zip(&urls) {
            for span in store.lifespans(uid).unwrap() {
                let pair = (url.clone(), urls[usize::try_from(span.link.0).unwrap()].clone());
                expected.insert((second(span.first), pair.clone()), 1);
                // A link goes with the first known capture after its lifespan.
                let after = known.iter().filter(|(page, (time, _))| page == url && *time > second(span.last));
                let gone = after.map(|(_, (time, _))| *time).min();
                went += usize::from(gone.is_some());
                expected.extend(gone.map(|time| ((time, pair), -1)));
                spans_seen += 1;
            }
        }
        assert_eq!(expected, links, "seed {seed}: lifespans are not where links appear and go");
    }
    assert!(went > 50 && spans_seen > 150, "{went} of {spans_seen} went");
}
