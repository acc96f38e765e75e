//! Round trips and questions, compared with a slow model: captures as a map, with every answer computed by definition.
//!
//! Plain loops turn random captures into pages and in-links, which are written as a store of several partitions and
//! read back. Then the reader and the model answer every question about every URL.

mod small_store;

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use small_store::{Captures, Model};
use webstrata_layers::check;
use webstrata_layers::{CaptureTime, Lifespan, Links, Precision, RangeLength, Reader, Status, Store, Uid, Window};

/// The links in a window by definition: the links of the known captures in the window, or of the capture that counts.
fn links_in(captures: &Captures, page: u64, window: Window) -> BTreeSet<u64> {
    let own = || captures.iter().filter(|((uid, _), _)| *uid == page);
    let empty = BTreeSet::new();
    match window {
        Window::Seen { from, to } => own()
            .filter(|((_, time), _)| from <= *time && *time <= to)
            .flat_map(|(_, links)| links.as_ref().unwrap_or(&empty).iter().copied())
            .collect(),
        Window::AsOf(at) => {
            own().rfind(|((_, time), _)| *time <= at.time).and_then(|(_, links)| links.clone()).unwrap_or_default()
        }
    }
}

/// Lifespans by definition: in the order of known captures, a lifespan ends at the first capture without the link.
fn lifespans(captures: &Captures, page: u64) -> Vec<Lifespan> {
    let known: Vec<(i64, &BTreeSet<u64>)> = captures
        .iter()
        .filter(|((uid, _), _)| *uid == page)
        .filter_map(|((_, time), links)| Some((*time, links.as_ref()?)))
        .collect();
    let mut spans: Vec<Lifespan> = Vec::new();
    for link in known.iter().flat_map(|(_, links)| links.iter().copied()).collect::<BTreeSet<u64>>() {
        let mut had = false;
        for (time, links) in &known {
            let has = links.contains(&link);
            match spans.last_mut() {
                Some(span) if has && had => span.last = *time,
                _ if has => spans.push(Lifespan { link: Uid(link), first: *time, last: *time }),
                _ => {}
            }
            had = has;
        }
    }
    spans
}

const URLS: u64 = 9;

fn captures() -> impl Strategy<Value = Captures> {
    let links = proptest::option::weighted(0.8, proptest::collection::btree_set(0..URLS, 0..6));
    // Times are around the ends of months, so that windows cut ranges.
    let time =
        (0i64..6, -2i64..2).prop_map(|(month, second)| RangeLength::Days(30).start(month * 30 * 86_400) + second);
    proptest::collection::btree_map((0..URLS, time), links, 0..40)
}

fn windows(captures: &Captures) -> Vec<Window> {
    let mut times: Vec<i64> = captures.keys().flat_map(|(_, time)| [time - 1, *time, time + 1]).collect();
    times.sort_unstable();
    times.dedup();
    let mut windows: Vec<Window> = times.iter().map(|&time| Window::as_of(time)).collect();
    for (at, &from) in times.iter().enumerate().step_by(2) {
        windows.extend(times[at.saturating_sub(1)..].iter().step_by(3).map(|&to| Window::Seen { from, to }));
    }
    windows.extend([Window::ALWAYS, Window::as_of(i64::MIN), Window::as_of(i64::MAX)]);
    windows
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_answer_is_the_models(
        captures in captures(), partitions in 1u32..4, days in prop_oneof![Just(30u32), Just(7)]
    ) {
        let dir = tempfile::tempdir().unwrap();
        let model = Model::new(captures, URLS, RangeLength::Days(days));
        model.write(dir.path(), partitions);
        let reader = Reader::new(Store::open(dir.path()).unwrap(), 1 << 16);
        let captures = &model.captures;
        prop_assert_eq!(reader.epoch(), 1);
        for uid in 0..URLS {
            let url = Model::url(uid);
            prop_assert_eq!(reader.uid(&url).unwrap(), Some(Uid(uid)));
            prop_assert_eq!(reader.url(Uid(uid)).unwrap(), url.clone());
            prop_assert_eq!(reader.uid(&(url + "x")).unwrap(), None);
            let own = model.pages.iter().find(|page| page.uid == Uid(uid));
            let page = reader.page(Uid(uid)).unwrap();
            prop_assert_eq!(page.as_deref(), own);
            let into = model.in_links.iter().find(|record| record.uid == Uid(uid));
            let record = reader.in_record(Uid(uid)).unwrap();
            prop_assert_eq!(record.as_deref(), into);
            let times: Vec<CaptureTime> = captures.iter().filter(|((page, _), _)| *page == uid)
                .map(|((_, time), links)| (*time, links.is_some()))
                .map(|(time, known)| CaptureTime { time, known, status: Status::OK })
                .collect();
            prop_assert_eq!(reader.captures(Uid(uid)).unwrap(), times);
            prop_assert_eq!(reader.lifespans(Uid(uid)).unwrap(), lifespans(captures, uid));
        }
        for window in windows(captures) {
            let out = (0..URLS).map(|uid| (uid, links_in(captures, uid, window)));
            let out: BTreeMap<u64, BTreeSet<u64>> = out.collect();
            for uid in 0..URLS {
                let links = &out[&uid];
                let found = reader.out_links(Uid(uid), window).unwrap();
                prop_assert_eq!(found, Vec::from_iter(links.iter().copied().map(Uid)));
                for link in 0..URLS {
                    prop_assert_eq!(reader.has_link(Uid(uid), Uid(link), window).unwrap(), links.contains(&link));
                }
                let sources: BTreeSet<u64> = (0..URLS).filter(|source| out[source].contains(&uid)).collect();
                let exact = reader.in_links(Uid(uid), window, Precision::Exact).unwrap();
                prop_assert_eq!(exact, Vec::from_iter(sources.iter().copied().map(Uid)));
                let wide = reader.in_links(Uid(uid), window, Precision::Range).unwrap();
                prop_assert!(wide.is_sorted() && sources.iter().all(|&source| wide.contains(&Uid(source))));
            }
        }
        let report = check(dir.path()).unwrap();
        prop_assert!(report.problems.is_empty(), "{:?}", report.problems);
        prop_assert_eq!(report.counts, model.counts());
        let occurrences: usize = captures.values().flatten().map(BTreeSet::len).sum();
        prop_assert_eq!(report.counts.occurrences, occurrences as u64);
        prop_assert_eq!(report.counts.captures, captures.len() as u64);
    }
}

#[test]
fn range_answers_are_exact_on_whole_ranges() {
    let month = 30 * 86_400;
    let captures = Captures::from([
        ((0, 5), Some(BTreeSet::from([3]))),
        ((0, month + 5), Some(BTreeSet::new())),
        ((1, month + 9), Some(BTreeSet::from([3]))),
    ]);
    let dir = tempfile::tempdir().unwrap();
    Model::new(captures, 4, RangeLength::Days(30)).write(dir.path(), 1);
    let reader = Reader::new(Store::open(dir.path()).unwrap(), 0);
    let ask = |from, to, precision| reader.in_links(Uid(3), Window::Seen { from, to }, precision).unwrap();
    assert_eq!(ask(0, month - 1, Precision::Range), [0].map(Uid));
    assert_eq!(ask(month, 2 * month - 1, Precision::Range), [1].map(Uid));
    // For a window inside a range, the answer has too many sources with range precision, but not if it is exact.
    assert_eq!(ask(6, 7, Precision::Range), [0].map(Uid));
    assert_eq!(ask(6, 7, Precision::Exact), [] as [Uid; 0]);
    let as_of = |time, precision| reader.in_links(Uid(3), Window::as_of(time), precision).unwrap();
    assert_eq!(as_of(month + 10, Precision::Range), [0, 1].map(Uid));
    assert_eq!(as_of(month + 10, Precision::Exact), [1].map(Uid));
    assert_eq!(as_of(month + 8, Precision::Exact), [] as [Uid; 0]);
}

#[test]
fn uids_that_name_no_url_are_errors() {
    let dir = tempfile::tempdir().unwrap();
    Model::new(Captures::new(), 4, RangeLength::Month).write(dir.path(), 2);
    let reader = Reader::new(Store::open(dir.path()).unwrap(), 0);
    assert!(reader.page(Uid(3)).unwrap().is_none() && reader.in_record(Uid(3)).unwrap().is_none());
    for error in [
        reader.url(Uid(4)).unwrap_err(),
        reader.page(Uid(4)).unwrap_err(),
        reader.in_record(Uid(u64::MAX)).unwrap_err(),
    ] {
        assert!(matches!(error, webstrata_layers::Error::UnknownUid { epoch: 1, urls: 4, .. }), "{error}");
    }
    assert_eq!(reader.uid("").unwrap(), None);
    assert_eq!(reader.uid("zzz").unwrap(), None);
}
