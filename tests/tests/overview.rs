//! Compares the overview of a store with the oracle. The overview is kept beside its epoch, and removed with its epoch.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use webstrata_analysis::{Fold, overview};
use webstrata_engine::{Progress, RunOptions};
use webstrata_layers::gc::collect;
use webstrata_layers::overview::{Lives, Numbers, Overview};
use webstrata_layers::{Location, RangeLength, Store, format_time};
use webstrata_tests::oracle::{Ending, Oracle, Time};
use webstrata_tests::rows::{Rows, Shape};

const SHAPE: Shape = Shape { rows: 3, pages: 14, captures: 50, links: 6, in_order: false };

fn year(time: Time) -> i32 {
    format_time(time)[..4].parse().unwrap()
}

/// Counts by name and year, and counts of links by age: links that went at this age, and links whose observation ended
/// at this age.
#[derive(Clone, Debug, Default, PartialEq)]
struct Expected {
    years: BTreeMap<(&'static str, i32), u64>,
    ages: BTreeMap<u64, [u64; 2]>,
    pages: u64,
    links: u64,
}

impl Expected {
    fn count(&mut self, name: &'static str, time: Time) {
        *self.years.entry((name, year(time))).or_default() += 1;
    }

    fn add_page(&mut self, oracle: &Oracle, page: &str) {
        let captures: Vec<(Time, bool, u16)> =
            oracle.captures(page).into_iter().zip(oracle.statuses(page)).map(|((t, known), s)| (t, known, s)).collect();
        if captures.is_empty() {
            return;
        }
        self.pages += 1;
        let years: BTreeSet<i32> = captures.iter().map(|capture| year(capture.0)).collect();
        years.into_iter().for_each(|year| *self.years.entry(("pages", year)).or_default() += 1);
        let (mut was_there, mut is_lost) = (false, false);
        for &(time, _, status) in &captures {
            self.count("captures", time);
            if status >= 400 {
                self.count("failed_captures", time);
            }
            if !Ending::Gone.counts(status) {
                continue;
            }
            match (status >= 400, was_there, is_lost) {
                (true, true, false) => {
                    self.count("pages_died", time);
                    is_lost = true;
                }
                (false, _, true) => {
                    self.count("pages_returned", time);
                    is_lost = false;
                }
                (false, ..) => was_there = true,
                _ => {}
            }
        }
        let tells = |&&(_, known, status): &&(Time, bool, u16)| Ending::Gone.counts(status) && (known || status >= 400);
        let last = captures.iter().rfind(tells).map_or(0, |capture| capture.0);
        for link in oracle.urls() {
            let all = oracle.backlinks(&BTreeSet::from([link]));
            let Some(stays) = all.get(page) else { continue };
            self.links += 1;
            self.count(if stays[0].3 == "found" { "links_found" } else { "links_gained" }, stays[0].0);
            if let Some(gone) = stays[stays.len() - 1].2 {
                self.count("links_lost", gone);
            }
            for &(first, _, gone, _) in stays.iter().filter(|stay| stay.3 != "found") {
                let age = (gone.unwrap_or(last) - first) / (30 * 86_400);
                self.ages.entry(age.unsigned_abs()).or_default()[usize::from(gone.is_none())] += 1;
            }
        }
    }

    fn assert_same(&self, what: &str, first_year: i32, numbers: &Numbers, lives: &Lives) {
        let mut found = BTreeMap::new();
        for (name, column) in numbers.columns() {
            let years = (first_year..).zip(column).filter(|(_, number)| **number > 0);
            found.extend(years.map(|(year, &number)| ((name, year), number)));
        }
        assert_eq!(found, self.years, "{what}");
        // The share of links that reach each age (Kaplan-Meier), from the links at risk and the links that went.
        let mut share = 1.0;
        for (&age, &[went, _]) in &self.ages {
            let at_risk: u64 = self.ages.range(age..).map(|(_, [went, watched])| went + watched).sum();
            share -= share * went as f64 / at_risk as f64;
            let Some(at) = lives.age.iter().position(|&other| other == age) else {
                assert_eq!(went, 0, "{what}: age {age}");
                continue;
            };
            assert_eq!(lives.at_risk[at], at_risk, "{what}: age {age}");
            assert!((lives.surviving[at] - share).abs() < 1e-12, "{what}: age {age}");
        }
        assert_eq!(lives.age.last(), self.ages.keys().next_back(), "{what}");
    }
}

fn check(what: &str, store: &Path, oracle: &Oracle, workers: usize) -> Overview {
    let run = RunOptions { workers, ..RunOptions::new(store) };
    let found = overview(&run, &Progress::default()).unwrap();
    let (mut all, mut hosts) = (Expected::default(), BTreeMap::<String, Expected>::new());
    let mut domains: BTreeMap<String, u64> = BTreeMap::new();
    for url in oracle.urls() {
        let host = hosts.entry(Fold::Host.name_of(url).into_owned()).or_default();
        let linked = oracle.first(url);
        let first = oracle.captures(url).first().map(|capture| capture.0).into_iter();
        for expected in [&mut all, host] {
            expected.add_page(oracle, url);
            if let Some(first) = first.clone().chain(linked.iter().map(|link| link.0)).min() {
                expected.count("urls", first);
            }
        }
        *domains.entry(Fold::Domain.name_of(url).into_owned()).or_default() += linked.len() as u64;
    }
    all.assert_same(what, found.first_year, &found.all, &found.lives);
    let captured: BTreeMap<_, _> = hosts.into_iter().filter(|(_, host)| host.pages > 0).collect();
    assert_eq!(found.hosts_captured, captured.len() as u64, "{what}");
    assert_eq!(found.hosts.len(), captured.len(), "{what}");
    let sum = |column: &[u64]| column.iter().sum::<u64>();
    assert!(
        found.hosts.is_sorted_by(|one, next| sum(&one.numbers.captures) >= sum(&next.numbers.captures)),
        "{what}: order"
    );
    for host in &found.hosts {
        let expected = &captured[&host.host];
        expected.assert_same(&format!("{what}: {}", host.host), found.first_year, &host.numbers, &host.lives);
        assert_eq!((host.pages, host.links), (expected.pages, expected.links), "{what}: {}", host.host);
    }
    domains.retain(|_, links| *links > 0);
    let linked: BTreeMap<_, _> = found.domains.iter().map(|linked| (linked.domain.clone(), linked.links)).collect();
    assert_eq!(linked, domains, "{what}");
    found
}

#[test]
fn every_number_is_that_of_the_oracle() {
    for seed in 0..12 {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("store");
        let rows = Rows::random(seed, Shape { in_order: seed % 2 == 0, ..SHAPE });
        rows.write(&store, 3, RangeLength::Month);
        let oracle = rows.oracle();
        let found: Vec<Overview> =
            [1, 3].map(|workers| check(&format!("seed {seed}, {workers} workers"), &store, &oracle, workers)).into();
        assert_eq!(found[0], found[1]);
        assert!(found[0].lives.age.len() > 1, "links that came and went");
    }
}

#[test]
fn nothing_and_one_capture() {
    for captures in [0, 1] {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("store");
        let mut rows = Rows::random(1, Shape { rows: 1, pages: 1, captures: 1, ..SHAPE });
        if captures == 0 {
            rows.rows[0].clear();
        }
        rows.write(&store, 1, RangeLength::Month);
        let found = check("little", &store, &rows.oracle(), 1);
        assert_eq!(found.all.captures, vec![1; captures]);
        assert_eq!((found.lives, found.first_year == 0), (Lives::default(), captures == 0));
    }
}

#[test]
fn an_overview_belongs_to_its_epoch() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, seed: u64| {
        let store = dir.path().join(name);
        Rows::random(seed, SHAPE).write(&store, 1, RangeLength::Month);
        Location::from(store)
    };
    let (one, other) = (write("one", 1), write("other", 2));
    let open = |store: &Location| Store::open(store).unwrap();
    assert_eq!(Overview::read(&open(&one)).unwrap(), None);
    let found = overview(&RunOptions::new(&one), &Progress::default()).unwrap();
    found.write(&one).unwrap();
    assert_eq!(Overview::read(&open(&one)).unwrap(), Some(found.clone()));
    // An epoch of the same number, in another store.
    found.write(&other).unwrap();
    assert_eq!(Overview::read(&open(&other)).unwrap(), None);

    let epoch = found.of.epoch;
    let path = |epoch: u64| dir.path().join(format!("one/overviews/{epoch:06}.json"));
    assert!(path(epoch).is_file());
    // The next garbage collection removes the overview of an epoch that does not exist, such as a removed epoch.
    fs::copy(path(epoch), path(epoch + 7)).unwrap();
    collect(&one, "test", usize::MAX).unwrap();
    assert!(path(epoch).is_file() && !path(epoch + 7).exists());

    for damage in ["", "{}", "{\"of\":3}"] {
        fs::write(path(epoch), damage).unwrap();
        let message = Overview::read(&open(&one)).unwrap_err().to_string();
        assert!(message.contains("000001.json") && message.contains("`webstrata overview STORE`"), "{message}");
    }
    let mut uneven = found;
    uneven.all.links_lost.push(0);
    uneven.write(&one).unwrap();
    let message = Overview::read(&open(&one)).unwrap_err().to_string();
    assert!(message.contains("columns are not of one length"), "{message}");
}
