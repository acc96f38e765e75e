//! Compares accumulated pages with their captures, in memory and on disk.

use super::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use webstrata_layers::{Cut, Payload};

fn payload(kind: u8, digest: u128, referred: Option<i64>, links: &[u128]) -> Vec<u8> {
    let mut payload = vec![kind];
    if kind == kind::LENT {
        payload.extend(Status::OK.number().to_be_bytes());
    }
    payload.extend(digest.to_be_bytes());
    if kind != kind::LINKS && kind != kind::LENT {
        payload.extend(referred.map_or([0; 8], wire::time_key));
        payload.push(0);
    }
    let links: BTreeSet<_> = links.iter().collect();
    payload.extend(links.into_iter().flat_map(|link| link.to_be_bytes()));
    payload
}

fn accumulate(captures: &[(i64, Vec<u8>)]) -> AccumulatedPage {
    accumulate_within(captures, 1 << 20, VALUES_MAX)
}

fn accumulate_within(captures: &[(i64, Vec<u8>)], bytes_max: usize, values_max: usize) -> AccumulatedPage {
    let directory = tempfile::tempdir().unwrap();
    let mut accumulator =
        PageAccumulator { values_max, ..PageAccumulator::new(bytes_max, &Scratch::temporary(directory.path())) };
    let mut page = AccumulatedPage::default();
    // The first page must leave nothing for the next page.
    for _ in 0..2 {
        captures.iter().for_each(|(time, payload)| accumulator.add(*time, payload).unwrap());
        accumulator.finish(7, &mut page).unwrap();
    }
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    page
}

/// Returns the links of every capture, computed from the changes one by one; `None` if the links are unknown.
fn links_by_capture(page: &AccumulatedPage) -> Vec<(i64, Option<BTreeSet<u128>>)> {
    let mut present = vec![true; page.links.len()];
    (0u32..)
        .zip(&page.timestamps)
        .map(|(capture, &time)| {
            for change in page.changes.iter().filter(|change| change.capture == capture) {
                present[change.link as usize] ^= true;
            }
            let links = page.links.iter().zip(&present).filter(|(_, here)| **here).map(|(link, _)| *link).collect();
            (time, (!page.blank.contains(&capture)).then_some(links))
        })
        .collect()
}

proptest! {
    #[test]
    fn accumulation_keeps_every_capture(
        captures in prop::collection::vec((0i64..12, prop::collection::vec(0u128..9, 0..6)), 1..20),
    ) {
        let mut expected = BTreeMap::<i64, BTreeSet<u128>>::new();
        for (time, links) in &captures {
            expected.entry(*time).or_default().extend(links);
        }
        let mut records: Vec<_> =
            captures.iter().map(|(time, links)| (*time, payload(kind::LINKS, 0, None, links))).collect();
        records.sort();
        let page = accumulate(&records);
        prop_assert!(page.links.is_sorted_by(|a, b| a < b));
        prop_assert!(page.changes.is_sorted_by(|a, b| a < b));
        let all: BTreeSet<u128> = expected.values().flatten().copied().collect();
        prop_assert_eq!(&page.links, &all.into_iter().collect::<Vec<_>>());
        let expected: Vec<_> = expected.into_iter().map(|(time, links)| (time, Some(links))).collect();
        prop_assert_eq!(links_by_capture(&page), expected);
    }
}

fn links_at(page: &AccumulatedPage, time: i64) -> Option<Vec<u128>> {
    let (_, links) = links_by_capture(page).into_iter().find(|(at, _)| *at == time).unwrap();
    links.map(|links| links.into_iter().collect())
}

#[test]
fn the_same_links_stand_in_another_record() {
    let links = payload(kind::LINKS, 1, None, &[4, 5]);
    let mut same = vec![kind::SAME];
    same.extend(2u128.to_be_bytes());
    same.extend(hash_of(&links[17..]).to_be_bytes());
    let page = accumulate(&[
        (10, same.clone()),
        (20, links),
        (30, payload(kind::LINKS, 0, None, &[6])),
        (40, payload(kind::LINKS, 0, None, &[7])),
        (40, same),
    ]);
    assert_eq!(links_at(&page, 10), Some(vec![4, 5]));
    assert_eq!(links_at(&page, 20), Some(vec![4, 5]));
    assert_eq!(links_at(&page, 30), Some(vec![6]));
    assert_eq!(links_at(&page, 40), Some(vec![4, 5, 7]), "captures of one second have the links of both");
    assert_eq!(page.evidence.digests, [2, 1, 0, 2]);
    assert_eq!(payloads_of(&page), [(3, 2, vec![4, 5])], "the digest has the links of its record");
}

/// A record with another status than 200.
fn with_status(status: u16, digest: u128, links: &[u128]) -> Vec<u8> {
    [&[kind::STATUS][..], &status.to_be_bytes(), &payload(kind::LINKS, digest, None, links)[1..]].concat()
}

/// A record without a date.
fn undated(age: &str, links: &[u128]) -> (i64, Vec<u8>) {
    let mut record = vec![kind::UNDATED];
    wire::put_falling(&mut record, age.as_bytes());
    record.extend(200u16.to_be_bytes());
    record.extend(&payload(kind::LINKS, 0, None, links)[1..]);
    (0, record)
}

#[test]
fn of_records_without_a_date_the_newest_counts() {
    let dated = (0, payload(kind::LINKS, 0, None, &[9]));
    let other = (7, payload(kind::LINKS, 0, None, &[8]));
    for (records, links, older) in [
        (vec![undated("b", &[1, 2])], vec![1, 2], 0),
        (vec![undated("a", &[1, 2]), undated("b", &[3]), undated("ab", &[4])], vec![3], 2),
        (vec![undated("b", &[3]), undated("ab", &[4]), undated("a", &[1, 2])], vec![3], 2),
        (vec![undated("b", &[3]), undated("a", &[1]), undated("b", &[4]), undated("a", &[5])], vec![3, 4], 1),
        (vec![undated("a", &[1]), undated("b", &[])], vec![], 1),
        (vec![undated("a", &[1]), dated.clone(), undated("b", &[2])], vec![9], 2),
        (vec![dated.clone(), undated("b", &[2]), dated], vec![9], 1),
    ] {
        let mut records: Vec<_> = records.into_iter().chain([other.clone()]).collect();
        records.sort();
        for bytes_max in [0, 1 << 20] {
            let directory = tempfile::tempdir().unwrap();
            let mut accumulator = PageAccumulator::new(bytes_max, &Scratch::temporary(directory.path()));
            let mut page = AccumulatedPage::default();
            records.iter().for_each(|(time, payload)| accumulator.add(*time, payload).unwrap());
            accumulator.finish(7, &mut page).unwrap();
            assert_eq!((links_at(&page, 0), links_at(&page, 7)), (Some(links.clone()), Some(vec![8])));
            assert_eq!(accumulator.older_undated, older);
        }
    }
}

#[test]
fn a_record_without_a_date_does_not_count_beside_another_of_a_page_that_is_too_large() {
    let records =
        [(0, payload(kind::IDENTICAL, 1, Some(0), &[])), (3, with_status(301, 2, &[])), (3, undated("a", &[]).1)];
    let page = accumulate_within(&records, 1 << 20, 2);
    assert!(page.is_left_out);
    assert_eq!(page.statuses, accumulate(&records).statuses);
    assert_eq!(page.statuses, [StatusChange { capture: 1, status: Status::new(301).unwrap() }]);
}

#[test]
fn revisits_are_kept_with_all_that_they_say() {
    let page = accumulate(&[
        (10, payload(kind::LINKS, 9, None, &[4])),
        (20, payload(kind::IDENTICAL, 7, Some(10), &[6, 5])),
        (20, payload(kind::IDENTICAL, 8, None, &[6, 3])),
        (30, payload(kind::NOT_MODIFIED, 0, None, &[])),
    ]);
    assert_eq!((links_at(&page, 20), links_at(&page, 30)), (None, None));
    assert_eq!((&page.blank, &page.revisit_links), (&vec![1, 2], &vec![3, 5, 6]));
    assert_eq!(page.links, [4], "links of a revisit are not yet links of the page");
    let revisit = |capture, not_modified, referred, links: &[u64]| Revisit {
        capture,
        not_modified,
        referred,
        links: links.iter().copied().map(RevisitLink).collect(),
        ..Revisit::default()
    };
    let revisits = vec![revisit(1, false, Some(10), &[0, 1, 2]), revisit(2, true, None, &[])];
    assert_eq!(page.evidence, Evidence { digests: vec![9, 7, 0], revisits, ..Evidence::default() });
}

#[test]
fn failures_count_only_where_nothing_else_is() {
    let page = accumulate(&[
        (10, with_status(503, 4, &[])),
        (10, with_status(404, 5, &[])),
        (20, payload(kind::LINKS, 3, None, &[6])),
        (20, with_status(404, 1, &[])),
        (30, payload(kind::IDENTICAL, 2, None, &[])),
        (30, with_status(500, 1, &[])),
        (40, with_status(301, 9, &[7])),
    ]);
    let change = |capture, code| StatusChange { capture, status: Status::new(code).unwrap() };
    assert_eq!(page.statuses, [change(0, 404), change(1, 200), change(3, 301)]);
    assert_eq!(page.blank, [0, 2]);
    assert_eq!([20, 40].map(|time| links_at(&page, time)), [Some(vec![6]), Some(vec![7])]);
    assert_eq!(page.evidence.digests, [5, 3, 2, 9]);
    assert_eq!(page.evidence.revisits.len(), 1);
}

#[test]
fn a_capture_and_a_revisit_in_one_second_are_one_capture() {
    let page = accumulate(&[
        (10, payload(kind::LINKS, 1, None, &[4])),
        (20, payload(kind::LINKS, 2, None, &[6])),
        (20, payload(kind::IDENTICAL, 1, None, &[7])),
    ]);
    assert_eq!(links_at(&page, 20), Some(vec![6, 7]));
    // The link of the revisit is a link of the capture, and not of its digest.
    let payloads = payloads_of(&page);
    assert_eq!(payloads, [(1, 2, vec![6])]);
    assert_eq!((&page.evidence.digests, &page.evidence.revisits), (&vec![1, 2], &vec![]));
}

/// Returns the payloads of a page: capture, digest, links.
fn payloads_of(page: &AccumulatedPage) -> Vec<(u32, u64, Vec<u128>)> {
    let links = |payload: &Payload<RevisitLink>| {
        payload.links.iter().map(|link| page.links[usize::try_from(link.0).unwrap()]).collect()
    };
    page.evidence.payloads.iter().map(|payload| (payload.capture, payload.digest, links(payload))).collect()
}

#[test]
fn a_second_has_the_links_of_each_digest() {
    let same = |digest: u128, links: &[u128]| {
        let links = payload(kind::LINKS, 0, None, links);
        [&[kind::SAME][..], &digest.to_be_bytes(), &hash_of(&links[17..]).to_be_bytes()].concat()
    };
    let records = [
        // Several digests, one of them in two records; and a record without a digest.
        (10, payload(kind::LINKS, 0, None, &[9])),
        (10, payload(kind::LINKS, 1, None, &[4])),
        (10, payload(kind::LINKS, 1, None, &[5])),
        (10, payload(kind::LINKS, 2, None, &[6])),
        // The links are those of the digest.
        (20, payload(kind::LINKS, 0, None, &[4])),
        (20, payload(kind::LINKS, 3, None, &[4, 5])),
        (20, with_status(404, 7, &[])),
        // The links are known by hash only.
        (30, payload(kind::LINKS, 0, None, &[5])),
        (30, same(3, &[4, 5])),
        (40, payload(kind::LINKS, 0, None, &[6])),
        (40, same(3, &[4, 5])),
        // Only the digests of the least status count; failures have no links.
        (50, payload(kind::LINKS, 3, None, &[4])),
        (50, with_status(301, 8, &[7])),
        (60, with_status(404, 5, &[])),
        (60, with_status(404, 6, &[])),
        (60, with_status(503, 4, &[])),
    ];
    for bytes_max in [0, 1 << 20] {
        let page = accumulate_within(&records, bytes_max, VALUES_MAX);
        assert_eq!(page.evidence.digests, [1, 3, 3, 3, 3, 5]);
        let expected =
            [(0, 1, vec![4, 5]), (0, 2, vec![6]), (3, 3, vec![4, 5]), (4, 3, vec![4]), (5, 5, vec![]), (5, 6, vec![])];
        assert_eq!(payloads_of(&page), expected);
        assert_eq!([10, 40, 50].map(|time| links_at(&page, time).unwrap().len()), [4, 3, 2]);
    }
}

#[test]
fn a_revisit_of_another_url_has_what_it_was_lent() {
    let page = accumulate(&[
        (10, payload(kind::ELSEWHERE, 1, None, &[4])),
        (10, payload(kind::LENT, 1, None, &[6, 7])),
        (10, payload(kind::LENT, 2, None, &[8])),
        (20, payload(kind::LINKS, 3, None, &[5])),
        (20, payload(kind::ELSEWHERE, 1, None, &[])),
        (20, payload(kind::LENT, 1, None, &[6, 7])),
        (30, payload(kind::IDENTICAL, 1, None, &[])),
        (30, payload(kind::ELSEWHERE, 2, None, &[])),
        (30, payload(kind::LENT, 2, None, &[6])),
    ]);
    assert_eq!(links_at(&page, 10), Some(vec![4, 6, 7]), "with its own, and not what is of another digest");
    assert_eq!(links_at(&page, 20), Some(vec![5]), "what has links is lent none");
    assert_eq!(links_at(&page, 30), None, "the least revisit counts");
    assert_eq!(page.evidence.digests, [1, 3, 1]);
    let revisits = &page.evidence.revisits;
    assert_eq!(revisits.iter().map(|own| (own.capture, own.elsewhere)).collect::<Vec<_>>(), [(0, true), (2, false)]);
}

#[test]
fn a_revisit_is_cut_if_all_that_lend_to_it_are_cut() {
    let lent = |status: Status, link| {
        let links = payload(kind::LENT, 1, None, &[link]).split_off(3);
        [&[kind::LENT], &status.number().to_be_bytes()[..], &links].concat()
    };
    let [short, partial] = [Status::cut(200, Cut::Short).unwrap(), Status::cut(206, Cut::Partial).unwrap()];
    let page = accumulate(&[
        (10, payload(kind::ELSEWHERE, 1, None, &[])),
        (10, lent(short, 4)),
        (10, lent(partial, 5)),
        (20, payload(kind::ELSEWHERE, 1, None, &[])),
        (20, lent(Status::OK, 4)),
        (20, lent(short, 5)),
    ]);
    assert_eq!([10, 20].map(|time| links_at(&page, time)), [Some(vec![4, 5]), Some(vec![4, 5])]);
    let changes = [(0, short), (1, Status::OK)].map(|(capture, status)| StatusChange { capture, status });
    assert_eq!(page.statuses, changes);
}

/// Captures of all kinds, in order of time, as records of links, of hashes of links and of revisits.
fn records() -> impl Strategy<Value = Vec<(i64, Vec<u8>)>> {
    let capture = (0i64..9, 0u8..5, 0u128..3, prop::collection::vec(0u128..7, 0..5));
    prop::collection::vec(capture, 1..24).prop_map(|captures| {
        let sets: Vec<_> = captures.iter().map(|capture| payload(kind::LINKS, 0, None, &capture.3)).collect();
        let record = |(number, (time, kind, digest, links)): (usize, &(i64, u8, u128, Vec<u128>))| {
            let payload = match kind {
                // Failures, which say nothing beside a good capture, and redirects, which say something.
                0 if *digest == 2 => with_status(404 + 99 * u16::from(links.is_empty()), *digest, &[]),
                1 if *digest == 2 => with_status(301, *digest, &links[..links.len().min(1)]),
                0 => payload(kind::IDENTICAL, *digest, Some(*time), &links[..links.len().min(2)]),
                1 => payload(kind::NOT_MODIFIED, *digest, None, &[]),
                3 if *digest == 2 => undated(["a", "b", "bc"][number % 3], links).1,
                2 if captures[number / 2].1 > 2 => {
                    let hash = hash_of(&sets[number / 2][17..]).to_be_bytes();
                    [&[kind::SAME][..], &digest.to_be_bytes(), &hash].concat()
                }
                4 if *digest == 1 => payload(kind::ELSEWHERE, *digest, None, &links[..links.len().min(2)]),
                4 if *digest == 2 => payload(kind::LENT, 1, None, links),
                _ => payload(kind::LINKS, *digest, None, links),
            };
            (*time, payload)
        };
        let mut records: Vec<_> = captures.iter().enumerate().map(record).collect();
        records.sort();
        records
    })
}

proptest! {
    #[test]
    fn disk_and_memory_accumulate_alike(records in records(), values_max in 1usize..60) {
        let in_memory = accumulate_within(&records, 1 << 20, VALUES_MAX);
        prop_assert_eq!(&accumulate_within(&records, 0, VALUES_MAX), &in_memory);
        let small = accumulate_within(&records, 1 << 20, values_max);
        prop_assert_eq!(&accumulate_within(&records, 0, values_max), &small);
        prop_assert_eq!(&accumulate_within(&records, 100, values_max), &small);
        let AccumulatedPage { links, statuses, changes, evidence, .. } = &in_memory.clone();
        let revisit_values: usize = evidence.revisits.iter().map(|revisit| REVISIT_VALUES + revisit.links.len()).sum();
        let payload_values: usize = evidence.payloads.iter().map(|own| REVISIT_VALUES + own.links.len()).sum();
        let fits = links.len() + changes.len() + revisit_values + payload_values <= values_max;
        prop_assert!(!in_memory.is_left_out);
        let expected = if fits { in_memory } else { left_out(&records, statuses.clone()) };
        prop_assert_eq!(small, expected);
    }
}

/// Returns the page that is kept of a page that is too large: all its captures.
fn left_out(records: &[(i64, Vec<u8>)], statuses: Vec<StatusChange>) -> AccumulatedPage {
    let mut timestamps: Vec<i64> = records.iter().map(|record| record.0).collect();
    timestamps.dedup();
    let blank = (0..u32::try_from(timestamps.len()).unwrap()).collect();
    AccumulatedPage { fingerprint: 7, timestamps, blank, statuses, is_left_out: true, ..AccumulatedPage::default() }
}

#[test]
fn no_number_of_captures_is_too_large() {
    let record = |time: i64| (time, payload(kind::LINKS, 0, None, &[1, 2]));
    for bytes_max in [0, 1 << 20] {
        let page = accumulate_within(&(0..1000).map(record).collect::<Vec<_>>(), bytes_max, 2);
        assert_eq!((page.timestamps.len(), page.blank.len(), page.is_left_out), (1000, 0, false));
        assert_eq!(page.links, [1, 2]);
    }
}

#[test]
fn many_captures_of_one_second_are_one_in_little_memory() {
    let record = |number: u128| (5, payload(kind::LINKS, 0, None, &[1, 1000 + number % 500]));
    let page = accumulate_within(&(0..20_000).map(record).collect::<Vec<_>>(), 10_000, VALUES_MAX);
    assert_eq!((page.timestamps.len(), page.links.len(), page.changes.len()), (1, 501, 0));
}
