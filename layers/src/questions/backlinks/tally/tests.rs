//! Compares counts of pages that arrive row by row with counts of all pages at once.

use super::*;
use crate::record::backlink::Began;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// The hosts of a test, in the order of their keys.
const NAMES: [&str; 7] =
    ["", "example.com", "s3.example.com", "a.s3.example.com", "www.example.com", "example.org", "www.example.org"];

/// Maps hosts to domains; one domain is inside another one.
fn domain_of(host: &str) -> &str {
    match host {
        "a.s3.example.com" => host,
        _ if host.ends_with("example.com") => "example.com",
        _ if host.ends_with("example.org") => "example.org",
        _ => host,
    }
}

fn ranking(unit: Unit, order: Order) -> Ranking {
    let (event, interval) = (Event::Any, (i64::MIN, i64::MAX));
    Ranking { unit, domain_of, period: RangeLength::Year, event, interval, order, after: None, limit: usize::MAX }
}

/// Rows of pages, each in order: the index of a host in [`NAMES`], and a stay.
fn rows() -> impl Strategy<Value = Vec<Vec<(usize, Stay)>>> {
    let began = prop::sample::select(vec![Began::Found, Began::New]);
    let stay = (0..40_i64, 1..9_i64, any::<bool>(), began).prop_map(|(first, length, is_lost, began)| {
        let until = is_lost.then_some(first + length);
        Stay { first, last: first + length / 2, until, began }
    });
    let row = prop::collection::vec((0..NAMES.len(), stay), 0..12).prop_map(|mut row| {
        row.sort_by_key(|page| page.0);
        row
    });
    prop::collection::vec(row, 1..4)
}

fn backlink(stay: Stay) -> Backlink {
    Backlink { stays: vec![stay], unknown: Vec::new(), targets: 1 + stay.first.unsigned_abs() % 3 }
}

/// The answer if each row gives `step` pages at a time.
fn tallied(ranking: Ranking, rows: &[Vec<(usize, Stay)>], step: usize) -> Ranked {
    let mut tally = Tally::new(ranking, rows.len());
    let mut sent = vec![0; rows.len()];
    while let Some(row) = tally.needs() {
        let (end, first_uid) = ((sent[row] + step).min(rows[row].len()), 100 * row as u64);
        let batch = sent[row]..end;
        let pages = batch.clone().map(|at| (Uid(first_uid + at as u64), backlink(rows[row][at].1)));
        let hosts = rows[row][batch].chunk_by(|one, other| one.0 == other.0);
        tally.feed(row, pages, hosts.map(|pages| (NAMES[pages[0].0].to_owned(), pages.len() as u64)));
        sent[row] = end;
    }
    tally.finish()
}

proptest! {
    #[test]
    fn rows_are_those_of_all_pages_at_once(rows in rows(), step in 1..5_usize, limit in 0..9_usize) {
        for unit in [Unit::Page, Unit::Host, Unit::Domain] {
            for order in Order::ALL {
                let mut groups: BTreeMap<String, Vec<(Uid, Backlink)>> = BTreeMap::new();
                for (row, pages) in rows.iter().enumerate() {
                    for (at, &(host, stay)) in pages.iter().enumerate() {
                        let uid = Uid(100 * row as u64 + at as u64);
                        let name = match unit {
                            Unit::Page => uid.to_string(),
                            Unit::Host => NAMES[host].to_owned(),
                            Unit::Domain => domain_of(NAMES[host]).to_owned(),
                        };
                        groups.entry(name).or_default().push((uid, backlink(stay)));
                    }
                }
                let row = |(name, pages): (&String, &Vec<(Uid, Backlink)>)| {
                    let mut united = United::default();
                    pages.iter().for_each(|(_, backlink)| united.add(backlink));
                    let first = pages.iter().map(|(uid, backlink)| (backlink.first(), *uid)).min();
                    Referrer {
                        page: first.unwrap().1,
                        name: (unit != Unit::Page).then(|| name.clone()),
                        pages: pages.len() as u64,
                        backlink: united.backlink(),
                    }
                };
                let mut all: Vec<Referrer> = groups.iter().map(row).collect();
                all.sort_by_key(|row| order.place(row));
                let whole = tallied(ranking(unit, order), &rows, step);
                prop_assert_eq!(&whole.rows, &all);
                let counts = (rows.iter().map(Vec::len).sum::<usize>() as u64, all.len() as u64);
                prop_assert_eq!((whole.pages, whole.total, whole.selected), (counts.0, counts.1, counts.1));
                prop_assert_eq!(whole.left, 0);
                let mut series = Series::new(RangeLength::Year);
                all.iter().for_each(|row| series.add(&row.backlink));
                prop_assert_eq!(&whole.periods, &series.periods());
                prop_assert_eq!(whole.hosts.iter().map(|host| host.pages).sum::<u64>(), counts.0);
                prop_assert!(whole.hosts.is_sorted_by(|one, other| one.pages >= other.pages && one.host != other.host));
                // The pages of the answer, joined, are the whole answer.
                let (mut after, mut found) = (None, Vec::new());
                loop {
                    let part = tallied(Ranking { after, limit, ..ranking(unit, order) }, &rows, step);
                    prop_assert_eq!(part.rows.len() + found.len() + usize::try_from(part.left).unwrap(), all.len());
                    found.extend(part.rows);
                    after = found.last().map(|row| order.place(row));
                    if part.left == 0 || limit == 0 {
                        break;
                    }
                }
                prop_assert_eq!(&found[..], if limit == 0 { &[][..] } else { &all[..] });
            }
        }
    }
}

#[test]
fn rows_with_an_event_are_selected() {
    let stay = |first, until| Stay { first, last: first, until, began: Began::New };
    let rows = [vec![(1, stay(50, Some(60))), (1, stay(10, Some(20))), (4, stay(15, None)), (5, stay(30, None))]];
    let with = |event, interval| {
        let ranking = Ranking { event, interval, ..ranking(Unit::Host, Order::First) };
        tallied(ranking, &rows, 10).selected
    };
    assert_eq!(with(Event::Any, (i64::MIN, i64::MAX)), 3);
    assert_eq!((with(Event::Returned, (50, 50)), with(Event::New, (50, 50))), (1, 0));
    assert_eq!((with(Event::Lost, (0, 30)), with(Event::Gained, (0, 30)), with(Event::Standing, (0, 55))), (1, 3, 3));
    let hosts = tallied(ranking(Unit::Page, Order::First), &rows, 1).hosts;
    let first = ReferringHost { host: "example.com".to_owned(), pages: 2, standing: 0, first: 10 };
    assert_eq!((hosts.len(), &hosts[0]), (3, &first));
}

#[test]
fn memory_is_for_the_rows_that_are_asked_for() {
    let ranking = |unit| Ranking { limit: 10, ..ranking(unit, Order::Most) };
    for unit in [Unit::Page, Unit::Host, Unit::Domain] {
        let mut tally = Tally::new(ranking(unit), 2);
        let mut largest = 0;
        for number in 0..100_000_i64 {
            for row in 0..2 {
                let stay = Stay { first: number, last: number, until: None, began: Began::New };
                let page = (Uid(200_000 * row as u64 + number.unsigned_abs()), backlink(stay));
                // Each page has its own host.
                tally.feed(row, [page], [(format!("h{number:09}.example"), 1)]);
            }
            largest = largest.max(tally.bytes());
        }
        (0..2).for_each(|row| tally.feed(row, [], []));
        let answer = tally.finish();
        assert!(largest < 10_000, "{largest} bytes for {unit:?}");
        assert_eq!((answer.pages, answer.rows.len(), answer.hosts.len()), (200_000, 10, 50));
    }
}
