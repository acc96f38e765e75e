//! Compares changes between two dates, and the first links to a URL, with the oracle: from layers and from cells, in
//! stores of several rows.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::collections::BTreeSet;
use std::path::Path;
use webstrata_cells::Cells;
use webstrata_cells::disk::load::{Options, write_cell};
use webstrata_cells::image::Residence;
use webstrata_cells::image::label::{directory, partitions};
use webstrata_cells::url_store;
use webstrata_codecs::{CodecTag, ENCODINGS};
use webstrata_layers::record::key::{domain_prefix, host_of, host_prefix, key_of, url_prefix};
use webstrata_layers::{AsOf, DateChanges, Links, PageChange, RangeLength, Reader, Store, Uid, Window};
use webstrata_tests::crawls::Random;
use webstrata_tests::oracle::{Ending, Oracle, Time, When};
use webstrata_tests::rows::{Rows, Shape};
use webstrata_tests::stores::{reader, window};
use webstrata_tests::suite::Asked;

/// Two random dates with the same rule for failures and the same maximum age. Some dates are before or after all
/// captures, and some are equal.
fn dates(random: &mut Random, oracle: &Oracle) -> [When; 2] {
    let times: Vec<Time> = oracle.times().into_iter().collect();
    let ending = *random.pick(&[Ending::Gone, Ending::Gone, Ending::None, Ending::Each]);
    let age = *random.pick(&[Time::MAX, Time::MAX, 40 * 86_400, 0]);
    let mut date = || *random.pick(&times) + *random.pick(&[0, 0, -1, 1, 200 * 86_400, -200 * 86_400]);
    let (a, b) = (date(), date());
    [a.min(b), a.max(b)].map(|at| When::AsOfBy(at, age, ending))
}

fn as_of(dates: [When; 2]) -> [AsOf; 2] {
    dates.map(|date| match window(date) {
        Window::AsOf(as_of) => as_of,
        Window::Seen { .. } => panic!("{date:?} is no date"),
    })
}

fn names(links: &dyn Links, uids: &[Uid]) -> BTreeSet<String> {
    assert!(uids.is_sorted_by(|a, b| a < b));
    links.urls_of(uids).unwrap().into_iter().collect()
}

fn owned(urls: &BTreeSet<&str>) -> BTreeSet<String> {
    urls.iter().map(|&url| url.to_owned()).collect()
}

/// Compares the changes of one URL between two dates, outward and inward, and the first links to the URL.
fn check_url(what: &str, links: &dyn Asked, oracle: &Oracle, url: &str, dates: [When; 2]) {
    let uid = links.uid(url).unwrap().unwrap();
    let of_page = links.changed(uid, false, as_of(dates)).unwrap();
    let is_open = |page: &str| dates.iter().any(|&date| oracle.is_unknown(page, date));
    assert_eq!(!of_page.unknown.is_empty(), is_open(url), "{what}");
    let want = oracle.changed(url, dates).map(|urls| owned(&urls));
    assert_eq!([names(links, &of_page.gained), names(links, &of_page.lost)], want, "{what}");

    let to_url = links.changed(uid, true, as_of(dates)).unwrap();
    let [before, after] = dates.map(|date| oracle.in_links(url, date));
    // A page is known to lack the link at a date only if the capture that decides then is whole.
    let parts = |urls: BTreeSet<&str>, lacks: When| -> [BTreeSet<String>; 2] {
        let (open, known) = urls.into_iter().partition(|page| oracle.is_unknown(page, lacks));
        [owned(&known), owned(&open)]
    };
    let [gained, mut unknown] = parts(&after - &before, dates[0]);
    let [lost, mut more] = parts(&before - &after, dates[1]);
    unknown.append(&mut more);
    let want = [gained, lost, unknown];
    let got = [&to_url.gained, &to_url.lost, &to_url.unknown].map(|uids| names(links, uids));
    assert_eq!(got, want, "{what}, in-links");

    let firsts = links.first(uid).unwrap();
    assert!(firsts.is_sorted(), "{what}");
    let got: BTreeSet<(Time, String)> = firsts.iter().map(|&(at, uid)| (at, links.url(uid).unwrap())).collect();
    assert_eq!(got, oracle.first(url).into_iter().map(|(at, url)| (at, url.to_owned())).collect(), "{what}");
}

/// Compares the changes between two dates of all pages, or of the pages with a prefix: of a host, a domain or a path.
fn check_pages(what: &str, reader: &Reader, oracle: &Oracle, prefix: Option<&[u8]>, dates: [When; 2]) -> DateChanges {
    let uids = match prefix {
        Some(prefix) => reader.with_prefix(prefix).unwrap(),
        None => vec![Uid::below(reader.urls())],
    };
    let has_prefix = |url: &str| prefix.is_none_or(|prefix| key_of(url).starts_with(prefix));
    let (mut sum, mut seen) = (DateChanges::default(), BTreeSet::new());
    for page in reader.between(as_of(dates), uids) {
        let page = page.unwrap();
        let url = reader.url(page.uid).unwrap();
        let alive = dates.map(|date| oracle.is_alive(&url, date));
        let change = match alive {
            [false, true] => PageChange::Gained,
            [true, false] => PageChange::Lost,
            [true, true] => PageChange::Stayed,
            [false, false] => panic!("{what}: {url} is at neither date"),
        };
        let want = oracle.changed(&url, dates);
        let is_open = dates.iter().any(|&date| oracle.is_unknown(&url, date));
        assert_eq!((page.change, page.unknown), (change, is_open), "{what}: {url}");
        let want = want.map(|urls| owned(&urls));
        assert_eq!([names(reader, &page.gained), names(reader, &page.lost)], want, "{what}: {url}");
        sum.add(&page);
        assert!(has_prefix(&url) && seen.insert(url), "{what}");
    }
    for url in oracle.urls().into_iter().filter(|url| has_prefix(url) && !seen.contains(*url)) {
        let [before, after] = dates.map(|date| oracle.is_alive(url, date));
        assert_eq!(before, after, "{what}: {url} is left out");
        assert_eq!(oracle.changed(url, dates), <[BTreeSet<&str>; 2]>::default(), "{what}: {url} is left out");
    }
    sum
}

fn cells(store: &Path) -> Cells {
    let opened = Store::open(store).unwrap();
    let options = Options { encoding: CodecTag::Strata.encoding(), urls: url_store::Options::default() };
    for (row, partition) in partitions(&opened) {
        write_cell(&opened, directory(&opened).unwrap(), row, partition, options).unwrap();
    }
    Cells::open(&opened, Residence::Mapped, ENCODINGS).unwrap().unwrap()
}

/// Compares a store with the oracle. Returns the number of questions, and the sum of the changes.
fn check(what: &str, store: &Path, oracle: &Oracle, random: &mut Random) -> (usize, DateChanges) {
    let (reader, cells) = (reader(store), cells(store));
    let urls: Vec<&str> = oracle.urls().into_iter().collect();
    let (mut asked, mut all) = (0, DateChanges::default());
    for _ in 0..6 {
        let dates = dates(random, oracle);
        let what = &format!("{what}, {dates:?}");
        for url in &urls {
            check_url(&format!("{what}, {url}, layers"), &reader, oracle, url, dates);
            check_url(&format!("{what}, {url}, cells"), &cells, oracle, url, dates);
            asked += 6;
        }
        let url = *random.pick(&urls);
        let host = host_of(url).unwrap();
        let prefixes = [None, host_prefix(host), domain_prefix(host), Some(url_prefix(url)), Some(b"zz,none".to_vec())];
        for prefix in prefixes {
            let sum = check_pages(what, &reader, oracle, prefix.as_deref(), dates);
            let [pages_gained, pages_lost] = [all.pages_gained + sum.pages_gained, all.pages_lost + sum.pages_lost];
            let [links_gained, links_lost] = [all.links_gained + sum.links_gained, all.links_lost + sum.links_lost];
            let pages_changed = all.pages_changed + sum.pages_changed;
            let pages_unknown = all.pages_unknown + sum.pages_unknown;
            all = DateChanges { pages_gained, pages_lost, pages_changed, pages_unknown, links_gained, links_lost };
            asked += 1;
        }
    }
    (asked, all)
}

#[test]
fn dates_differ_as_the_oracle_says() {
    let (mut asked, mut kinds) = (0, [0; 6]);
    for seed in 0..24 {
        let mut random = Random(seed);
        let shape = Shape {
            rows: 1 + usize::try_from(seed % 4).unwrap(),
            pages: 1 + random.below(14),
            captures: 2 + random.below(60),
            links: 6,
            in_order: random.once_in(3),
        };
        let (dir, rows) = (tempfile::tempdir().unwrap(), Rows::random(seed, shape).with_cut(seed));
        rows.write(dir.path(), 1 + u32::try_from(seed % 3).unwrap(), RangeLength::Month);
        let (count, all) = check(&format!("seed {seed}"), dir.path(), &rows.oracle(), &mut random);
        asked += count;
        let counts =
            [all.pages_gained, all.pages_lost, all.pages_changed, all.pages_unknown, all.links_gained, all.links_lost];
        kinds.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
    }
    assert!(kinds.iter().all(|&count| count > 100), "{kinds:?} of {asked} questions say too little");
    assert!(asked > 5000, "{asked}");
}
