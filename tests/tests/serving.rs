//! Every way to ask a server gives the answers of the oracle: one server through the clerk, a cluster through the
//! clerk, and any single server of a cluster through the public protocol.
//!
//! The stores have one row with one or with many partitions, or several rows whose captures overlap in time, or epochs
//! after updates and merges. `WEBSTRATA_QUESTIONS` sets the number of questions in each way and test; the default is
//! some hundreds. With more questions, the test makes more stores of several rows.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;
use tonic::{Code, Status};
use webstrata_cells::Encoding;
use webstrata_cells::image::label::partitions;
use webstrata_cells::links::encoding::STRATA_THIN;
use webstrata_engine::Progress;
use webstrata_layers::record::key::{domain_prefix, host_prefix, key_of, url_prefix};
use webstrata_layers::{Direction, Links, Precision, RangeLength, Reader, Sample, Sampling, Store, Uid, Window};
use webstrata_pipeline::{MergeOptions, build, merge};
use webstrata_serve::guard::limits::Limits;
use webstrata_serve::protocol::proto::{
    Counts, GetLinksRequest, GetLinksResponse, ListUidsRequest, Match, RelinquishRequest, RequestRequest,
    TopologyRequest, TranslateUidsRequest,
};
use webstrata_serve::protocol::status::Reason;
use webstrata_serve::protocol::values::direction_to;
use webstrata_tests::clusters::{Cluster, Shape};
use webstrata_tests::crawls::{Crawl, Random, Size};
use webstrata_tests::number;
use webstrata_tests::oracle::Oracle;
use webstrata_tests::raw::Raw;
use webstrata_tests::rows::{self, Rows, Said};
use webstrata_tests::stores::{cells_of, options, reader, run_options};
use webstrata_tests::suite::{DIRECTIONS, Known, Way, batches};

/// The number of questions for each way in a test that asks `default` questions by default.
fn questions(default: u64) -> u64 {
    number("WEBSTRATA_QUESTIONS", default)
}

/// A store and the right answers.
struct Right {
    store: PathBuf,
    oracle: Oracle,
    layers: Reader,
    _dir: TempDir,
}

/// Builds a crawl into partitions of `partition_urls` URLs.
fn built(seed: u64, size: Size, partition_urls: u64) -> Right {
    let dir = tempfile::tempdir().unwrap();
    let crawl = Crawl::random(seed, size);
    let (input, store) = (dir.path().join("crawl.jsonl"), dir.path().join("store"));
    fs::write(&input, crawl.json_lines().join("\n")).unwrap();
    let mut options = options(&store, vec![input]);
    options.partition_urls = Some(partition_urls);
    build(&options, &Progress::default()).unwrap();
    Right { layers: reader(&store), oracle: crawl.oracle(), store, _dir: dir }
}

/// A store of random rows that have different data about the same pages and times.
fn overlapping(seed: u64) -> Right {
    let dir = tempfile::tempdir().unwrap();
    let mut random = Random(seed);
    let shape = rows::Shape {
        rows: 2 + usize::try_from(random.below(4)).unwrap(),
        pages: 4 + random.below(20),
        captures: 10 + random.below(60),
        links: 8,
        in_order: random.once_in(5),
    };
    let rows = Rows::random(seed, shape).with_cut(seed);
    let partitions = 1 + u32::try_from(random.below(5)).unwrap();
    let in_range = if random.once_in(2) { RangeLength::Month } else { RangeLength::Days(10) };
    let store = dir.path().join("store");
    rows.write(&store, partitions, in_range);
    Right { layers: reader(&store), oracle: rows.oracle(), store, _dir: dir }
}

impl Right {
    /// Asks `questions` questions in each way, and batches.
    fn asked(&self, questions: u64, seed: u64) {
        let known = Known { oracle: &self.oracle, layers: &self.layers };
        let times: Vec<i64> = self.oracle.times().into_iter().collect();
        let one = Cluster::start(&self.store, Shape::default());
        let through = one.clerk();
        Way { name: "one server through the clerk", links: &through, has_records: true }
            .answers(&known, questions, seed);
        batches(&one, &through, &self.layers, &times, seed);
        drop((through, one));
        if seed % 3 != 1 {
            // The servers take these cells. Pages on other servers then decide which sources link.
            drop(cells_of(&self.store, &STRATA_THIN as &dyn Encoding));
        }
        let five = Cluster::start(&self.store, Shape { servers: 5, ..Shape::default() });
        let through = five.clerk();
        Way { name: "a cluster through the clerk", links: &through, has_records: true }
            .answers(&known, questions, seed);
        batches(&five, &through, &self.layers, &times, seed + 1);
        let mut raw = Raw::connect(&five.addresses()[usize::try_from(seed % 5).unwrap()]);
        for limit in [0, 1 + u32::try_from(seed % 7).unwrap()] {
            raw.limit = limit;
            let name = if limit == 0 { "a server for its cluster" } else { "a server for its cluster, page by page" };
            Way { name, links: &raw, has_records: false }.answers(&known, questions / 2, seed + u64::from(limit));
        }
        self.listed(&raw);
        self.counted(&raw, 5);
        self.paged(&mut raw, seed);
    }

    /// Checks listings of the URLs that match, and listings of intervals.
    fn listed(&self, raw: &Raw) {
        let every = Uid::each(Uid::below(self.layers.urls()));
        let urls: Vec<String> = every.clone().map(|uid| self.layers.url(uid).unwrap()).collect();
        let times: Vec<i64> = self.oracle.times().into_iter().collect();
        let (early, late) = (times[times.len() / 3], times[times.len() / 2]);
        let host = |url: &str| url.split("://").nth(1).unwrap().split(['/', ':']).next().unwrap().to_owned();
        for url in urls.iter().step_by(urls.len() / 12 + 1) {
            let host = host(url);
            let half = url[..url.len() - url.len() / 4].to_owned();
            let asked: [(Match, &str, Vec<u8>); 6] = [
                (Match::Exact, url, key_of(url)),
                (Match::Prefix, url, url_prefix(url)),
                (Match::Prefix, &half, url_prefix(&half)),
                (Match::Host, url, host_prefix(&host).unwrap()),
                (Match::Host, &host, host_prefix(&host).unwrap()),
                (Match::Domain, url, domain_prefix(&host).unwrap()),
            ];
            for (way, text, prefix) in asked {
                for (from, to) in [(None, None), (Some(early), Some(late)), (Some(early), None), (None, Some(late))] {
                    let seen = |url: &str| {
                        let mut captures = self.oracle.captures(url).into_iter().map(|capture| capture.0);
                        captures.any(|time| from.unwrap_or(i64::MIN) <= time && time <= to.unwrap_or(i64::MAX))
                    };
                    let all = from.is_none() && to.is_none();
                    let right = every.clone().zip(&urls);
                    let right = right.filter(|(_, url)| key_of(url).starts_with(&prefix) && (all || seen(url)));
                    let right: Vec<Uid> = right.map(|(uid, _)| uid).collect();
                    let mut request = ListUidsRequest { from, to, url: text.to_owned(), ..ListUidsRequest::default() };
                    request.set_match(way);
                    assert_eq!(raw.list(request.clone()).unwrap(), right, "{request:?}");
                    let first = right.get(right.len() / 2).copied().unwrap_or(Uid(3));
                    let right: Vec<Uid> = right.into_iter().filter(|&uid| uid >= first).take(2).collect();
                    let request = ListUidsRequest { first_uid: first.0, limit: 2, ..request };
                    assert_eq!(raw.list(request.clone()).unwrap(), right, "{request:?}");
                }
            }
        }
        assert_eq!(raw.list(ListUidsRequest::default()).unwrap(), every.collect::<Vec<_>>());
        let nothing = ListUidsRequest { first_uid: u64::MAX, ..ListUidsRequest::default() };
        assert_eq!(raw.list(nothing).unwrap(), Vec::<Uid>::new());
        let backwards = ListUidsRequest { from: Some(late), to: Some(late - 1), ..ListUidsRequest::default() };
        refused(raw.list(backwards), Reason::BadRequest);
        for url in ["", "http://"] {
            let mut strange = ListUidsRequest { url: format!("{url}?"), ..ListUidsRequest::default() };
            strange.set_match(Match::Host);
            refused(raw.list(strange), Reason::BadRequest);
        }
    }

    /// Compares the server's data about itself and about other servers with the manifest.
    fn counted(&self, raw: &Raw, servers: usize) {
        let store = Store::open(self.store.as_path()).unwrap();
        let (manifest, parts) =
            (store.manifest(), partitions(&store).map(|(_, partition)| partition).collect::<Vec<_>>());
        let stats = raw.stats().unwrap();
        let total = stats.total.unwrap();
        let sum =
            |of: fn(&webstrata_layers::Counts) -> u64| manifest.rows.iter().map(|row| of(&row.counts)).sum::<u64>();
        assert_eq!(total.urls, manifest.counts.urls);
        assert_eq!(
            [total.pages, total.captures, total.links],
            [sum(|own| own.pages), sum(|own| own.captures), sum(|own| own.links)]
        );
        assert_eq!(stats.cells.len(), parts.len());
        assert_eq!(stats.servers.len(), servers);
        let added = |of: fn(&Counts) -> u64, counts: &[Option<Counts>]| counts.iter().flatten().map(of).sum::<u64>();
        let (by_cell, by_server): (Vec<Option<Counts>>, Vec<Option<Counts>>) =
            (stats.cells.iter().map(|own| own.counts).collect(), stats.servers.iter().map(|own| own.counts).collect());
        let all: [fn(&Counts) -> u64; 5] =
            [|own| own.urls, |own| own.pages, |own| own.captures, |own| own.links, |own| own.bytes];
        for of in all {
            assert_eq!(added(of, &by_cell), of(&total));
            assert_eq!(added(of, &by_server), 2 * of(&total), "each cell is on two servers");
        }
        // The maximum degrees are per row. With one row, they are the maximum degrees of the graph.
        let degree = |direction| {
            let degrees = Uid::each(Uid::below(self.layers.urls()))
                .map(|uid| self.layers.degree(uid, direction, Window::ALWAYS).unwrap());
            degrees.max().unwrap() as u64
        };
        if manifest.rows.len() == 1 {
            let own = [total.max_out_degree, total.max_in_degree];
            assert_eq!(own, [degree(Direction::Out), degree(Direction::In(Precision::Range))]);
        }
        for (cell, partition) in stats.cells.iter().zip(parts) {
            let of_urls = partition.first_uid..partition.first_uid + partition.urls;
            assert!(of_urls.is_empty() == (cell.max_uid < cell.min_uid), "{cell:?}, UIDs {of_urls:?}");
            assert!(
                of_urls.is_empty() || (Uid(cell.min_uid)..Uid(cell.max_uid + 1)) == of_urls,
                "{cell:?}, UIDs {of_urls:?}"
            );
        }
        let topology = raw.topology();
        assert_eq!((topology.current, topology.servers.len()), (manifest.epoch, servers));
        let mut cells = topology.rows.iter().flat_map(|row| &row.cells);
        assert!(cells.all(|cell| cell.servers.len() == servers.min(2)), "{topology:?}");
        let version = topology.version;
        let again = raw.call(|mut client| async move { client.topology(TopologyRequest { after: version + 1 }).await });
        assert_eq!(again.unwrap().current, manifest.epoch);
    }

    /// Checks batches of lists in pages of any size, and tokens that the server did not issue.
    fn paged(&self, raw: &mut Raw, seed: u64) {
        let mut random = Random(seed);
        for limit in [0, 1, 2, 7, 1000] {
            raw.limit = limit;
            let uids: Vec<Uid> = (0..1 + random.below(60)).map(|_| Uid(random.below(self.layers.urls()))).collect();
            for direction in DIRECTIONS {
                let right: Vec<_> =
                    uids.iter().map(|&uid| self.layers.links(uid, direction, Window::ALWAYS).unwrap()).collect();
                assert_eq!(
                    raw.lists(&uids, direction, Window::ALWAYS).unwrap(),
                    right,
                    "{limit} {direction:?} {uids:?}"
                );
            }
        }
    }
}

/// Asserts that the call was refused for this reason.
fn refused<T: std::fmt::Debug>(answer: Result<T, Status>, reason: Reason) -> Status {
    let status = answer.expect_err("no answer");
    assert_eq!((status.code(), Reason::of(&status)), (reason.code(), Some(reason)), "{status:?}");
    status
}

#[test]
fn a_row_of_one_partition() {
    built(61, Size { pages: 60, captures: 700, links: 14 }, 1 << 19).asked(questions(300), 61);
}

#[test]
fn a_row_of_many_partitions() {
    built(62, Size { pages: 60, captures: 500, links: 14 }, 20).asked(questions(300), 62);
}

#[test]
fn rows_whose_captures_overlap_in_time() {
    let (all, each) = (questions(400), 100);
    for seed in 0..all.div_ceil(each).min(60) {
        let asked = std::panic::catch_unwind(|| overlapping(seed).asked(all.div_ceil(60).max(each), seed));
        assert!(asked.is_ok(), "seed {seed}");
    }
}

/// Adds captures to a store. Builds the store if it does not exist.
fn add(store: &Path, dir: &Path, name: &str, lines: &[String]) {
    let input = dir.join(name);
    fs::write(&input, lines.join("\n")).unwrap();
    let mut options = options(store, vec![input]);
    (options.update, options.partition_urls) = (store.exists(), Some(40));
    build(&options, &Progress::default()).unwrap();
}

#[test]
fn epochs_come_and_go() {
    let dir = tempfile::tempdir().unwrap();
    let crawl = Crawl::random(71, Size { pages: 60, captures: 500, links: 12 });
    let (lines, store) = (crawl.json_lines(), dir.path().join("store"));
    let half: BTreeSet<usize> = (0..lines.len() / 2).collect();
    add(&store, dir.path(), "old", &lines[..half.len()]);
    let cluster = Cluster::start(&store, Shape { servers: 3, grace: Duration::from_secs(4), ..Shape::default() });
    let mut raw = Raw::connect(&cluster.addresses()[1]);
    let (layers_of, mut epochs) =
        (|epoch| Reader::new(Store::open_epoch(store.as_path(), epoch).unwrap(), 64 << 20), Vec::new());
    let first = raw.epoch;
    epochs.push(layers_of(first));
    let (old, all) = (crawl.oracle_of(&half), crawl.oracle());
    Way { name: "the first epoch", links: &raw, has_records: false }.answers(
        &Known { oracle: &old, layers: &epochs[0] },
        questions(60),
        1,
    );
    add(&store, dir.path(), "new", &lines[half.len()..]);
    cluster.ready();
    let second = Store::open(store.as_path()).unwrap().manifest().epoch;
    epochs.push(layers_of(second));
    for epoch in [first, second] {
        let (mut own, layers) = (Raw::connect(&cluster.addresses()[2]), &epochs[usize::from(epoch == second)]);
        own.epoch = epoch;
        let oracle = if epoch == first { &old } else { &all };
        Way { name: "an epoch beside another", links: &own, has_records: false }.answers(
            &Known { oracle, layers },
            // The older epoch is answered only for a while.
            questions(60).min(500),
            epoch,
        );
    }
    let options = MergeOptions { partition_urls: Some(40), ..MergeOptions::new(run_options(&store)) };
    merge(&options, &Progress::default()).unwrap();
    cluster.ready();
    let third = Store::open(store.as_path()).unwrap().manifest().epoch;
    epochs.push(layers_of(third));
    assert!(first < second && second < third);
    raw.epoch = third;
    let known = Known { oracle: &all, layers: &epochs[2] };
    Way { name: "the merged epoch", links: &Raw::connect(&cluster.addresses()[0]), has_records: false }.answers(
        &known,
        questions(60).min(500),
        3,
    );
    Way { name: "the merged epoch through the clerk", links: &cluster.clerk(), has_records: true }.answers(
        &known,
        questions(60).min(500),
        4,
    );
    let translate = |from, to, uids: Vec<u64>| {
        let request = TranslateUidsRequest { from, to, uids };
        raw.call(|mut client| async move { client.translate_uids(request).await })
    };
    let numbers = [first, second, third];
    let compare = |pairs: &[(usize, usize)]| {
        for &(from, to) in pairs {
            let uids: Vec<u64> = (0..epochs[from].urls()).rev().collect();
            let right = uids
                .iter()
                .map(|&uid| epochs[to].uid(&epochs[from].url(Uid(uid)).unwrap()).unwrap().map_or(0, |uid| uid.0 + 1));
            let named = |at: usize| if numbers[at] == third && at == to { 0 } else { numbers[at] };
            let answer = translate(named(from), named(to), uids.clone()).unwrap();
            assert_eq!((answer.from, answer.to), (numbers[from], numbers[to]));
            assert_eq!(answer.uids_plus_one, right.collect::<Vec<_>>(), "{from} to {to}");
        }
    };
    compare(&[(0, 2), (1, 2), (2, 1), (2, 0), (2, 2), (0, 1), (1, 0)]);
    for (from, to) in [(first, third), (third, first), (third, third)] {
        let urls = epochs[numbers.iter().position(|&epoch| epoch == from).unwrap()].urls();
        for uid in [urls, u64::MAX] {
            refused(translate(from, to, vec![uid]), Reason::UnknownUid);
        }
    }
    refused(translate(third + 1, 0, vec![0]), Reason::EpochUnknown);
    refused(translate(0, u64::MAX, vec![0]), Reason::EpochUnknown);
    // The older epochs are refused after their grace, and not before. Their UIDs can be translated forever.
    cluster.until("old epochs are retired", || {
        cluster.addresses().iter().all(|address| Raw::connect(address).topology().epochs.len() == 1)
    });
    for epoch in [first, second] {
        let mut own = Raw::connect(&cluster.addresses()[0]);
        own.epoch = epoch;
        let status = refused(own.lists(&[Uid(0)], Direction::Out, Window::ALWAYS), Reason::EpochRetired);
        assert_eq!(status.code(), Code::FailedPrecondition);
        let told = tonic_types::StatusExt::get_details_error_info(&status).unwrap().metadata;
        let told = ["epoch", "oldest", "current"].map(|name| told[name].parse::<u64>().unwrap());
        assert_eq!(told, [epoch, third, third]);
        refused(own.stats(), Reason::EpochRetired);
    }
    refused(translate(first, second, vec![0]), Reason::EpochRetired);
    compare(&[(0, 2), (1, 2), (2, 1)]);
}

#[test]
fn links_in_pages_are_those_of_one_epoch_though_a_merge_comes_between_two_pages() {
    let dir = tempfile::tempdir().unwrap();
    let crawl = Crawl::random(72, Size { pages: 60, captures: 500, links: 12 });
    let (lines, store) = (crawl.json_lines(), dir.path().join("store"));
    add(&store, dir.path(), "old", &lines[..lines.len() / 2]);
    add(&store, dir.path(), "new", &lines[lines.len() / 2..]);
    let cluster = Cluster::start(&store, Shape { servers: 2, grace: Duration::from_secs(4), ..Shape::default() });
    let raw = Raw::connect(&cluster.addresses()[1]);
    let before = Store::open(store.as_path()).unwrap().manifest().epoch;
    let layers = Reader::new(Store::open_epoch(store.as_path(), before).unwrap(), 64 << 20);
    // The URLs of the second row have other UIDs after the merge. The question is about the most linked URL and nine
    // others.
    let every = Uid::each(Uid::below(layers.urls()));
    let most = every.clone().max_by_key(|&uid| layers.degrees(uid).unwrap().1).unwrap();
    let uids: Vec<Uid> = std::iter::once(most).chain(every.rev().take(9)).collect();
    let ask = |epoch: u64, uids: &[Uid], direction: Direction, limit: u32, token: &str| {
        let request = GetLinksRequest {
            epoch,
            uids: Uid::numbers(uids).to_vec(),
            direction: direction_to(direction),
            limit,
            page_token: token.to_owned(),
            ..GetLinksRequest::default()
        };
        raw.call(|mut client| async move { client.get_links(request).await })
    };
    let inward = Direction::In(Precision::Exact);
    let first = ask(0, &uids, inward, 3, "").unwrap();
    let token = first.next_page_token.clone();
    assert_eq!((first.epoch, token.is_empty()), (before, false));
    let options = MergeOptions { partition_urls: Some(40), ..MergeOptions::new(run_options(&store)) };
    merge(&options, &Progress::default()).unwrap();
    cluster.ready();
    let after = Store::open(store.as_path()).unwrap().manifest().epoch;
    assert_eq!(ask(0, &uids, inward, 3, "").unwrap().epoch, after, "the merged epoch is current");

    let mut lists = vec![Vec::new(); uids.len()];
    let mut answer = first;
    loop {
        assert_eq!(answer.epoch, before);
        let mut links = answer.links.into_iter().map(Uid);
        for (list, &count) in lists.iter_mut().zip(&answer.counts) {
            list.extend(links.by_ref().take(count as usize));
        }
        if answer.next_page_token.is_empty() {
            break;
        }
        // The caller may name the epoch again, and may change the limit.
        let epoch = before * u64::from(lists[0].len() % 2 == 0);
        answer = ask(epoch, &uids, inward, 2, &answer.next_page_token).unwrap();
    }
    let right: Vec<Vec<Uid>> =
        uids.iter().map(|&uid| layers.in_links(uid, Window::ALWAYS, Precision::Exact).unwrap()).collect();
    assert_eq!(lists, right);
    assert!(right.iter().map(Vec::len).sum::<usize>() > 20);

    let message = |answer: Result<GetLinksResponse, Status>| refused(answer, Reason::BadRequest).message().to_owned();
    for (uids, direction) in [(&uids[1..], inward), (&uids[..], Direction::Out)] {
        let told = message(ask(0, uids, direction, 3, &token));
        assert!(told.starts_with("page_token: belongs to another question"), "{told}");
    }
    let told = message(ask(after, &uids, inward, 3, &token));
    assert!(told.contains(&format!("{after} differs from {before}, the epoch of page_token")), "{told}");
    assert!(message(ask(0, &uids, inward, 3, "0.7")).starts_with("page_token: not copied from an earlier answer"));
    cluster.until("the old epoch is retired", || {
        cluster.addresses().iter().all(|address| Raw::connect(address).topology().epochs.len() == 1)
    });
    refused(ask(0, &uids, inward, 3, &token), Reason::EpochRetired);
}

#[test]
fn epochs_are_wanted_in_memory_or_not() {
    let right = overlapping(3);
    let cluster = Cluster::start(&right.store, Shape { servers: 2, ..Shape::default() });
    let raw = Raw::connect(&cluster.addresses()[0]);
    let in_memory = || {
        cluster
            .addresses()
            .iter()
            .enumerate()
            .map(|(at, _)| cluster.server(at).shared().cluster.counts().borrow().cells[0])
            .sum::<u64>()
    };
    let cells = raw.stats().unwrap().cells.len() as u64;
    cluster.until("each cell is in the memory of its first server", || in_memory() == cells);
    let relinquished =
        raw.call(|mut client| async move { client.relinquish(RelinquishRequest::default()).await }).unwrap();
    assert_eq!(relinquished.epoch, raw.epoch);
    cluster.until("none is in memory", || in_memory() == 0);
    Way { name: "relinquished", links: &raw, has_records: false }.answers(
        &Known { oracle: &right.oracle, layers: &right.layers },
        44,
        1,
    );
    let wanted = raw.call(|mut client| async move { client.request(RequestRequest::default()).await }).unwrap();
    assert_eq!((wanted.epoch, u64::from(wanted.cells)), (raw.epoch, cells));
    assert_eq!(in_memory(), cells, "it returns when all are");
    let unknown =
        raw.call(|mut client| async move { client.request(RequestRequest { epoch: 999, here: false }).await });
    refused(unknown, Reason::EpochUnknown);
}

#[test]
fn what_is_left_of_a_cluster_answers() {
    let right = overlapping(4);
    let mut cluster = Cluster::start(&right.store, Shape { servers: 4, ..Shape::default() });
    let through = cluster.clerk();
    let known = Known { oracle: &right.oracle, layers: &right.layers };
    let ask = |seed| Way { name: "what is left", links: &through, has_records: true }.answers(&known, 66, seed);
    cluster.kill(2);
    ask(1);
    cluster.ready();
    assert_eq!(cluster.end(0), webstrata_serve::guard::drain::End::Whole);
    ask(2);
    cluster.add();
    ask(3);
    cluster.ready();
    ask(4);
}

#[test]
fn hubs_have_more_links_than_an_answer() {
    for (seed, in_order) in [(1, true), (2, false)] {
        let dir = tempfile::tempdir().unwrap();
        let shape = rows::Shape { rows: 3, pages: 400, captures: 1500, links: 6, in_order };
        let mut made = Rows::random(seed, shape);
        let mut random = Random(seed);
        let (hub, unlinked) = ("http://hub.example/", "http://unlinked.example/");
        for links in made.rows.iter_mut().flat_map(|row| row.values_mut()).filter_map(Said::links_mut) {
            if !random.once_in(4) {
                links.insert(hub.to_owned());
            }
        }
        made.bare[0].insert(unlinked.to_owned());
        let store = dir.path().join("store");
        made.write(&store, 3, RangeLength::Month);
        let (layers, oracle) = (reader(&store), made.oracle());
        let limits = Limits { answer_bytes: 64 * size_of::<u64>(), ..Limits::of_cores(2) };
        let cluster = Cluster::start(&store, Shape { servers: 3, limits, ..Shape::default() });
        let (mut raw, through) = (Raw::connect(&cluster.addresses()[0]), cluster.clerk());
        let times: Vec<i64> = oracle.times().into_iter().collect();
        let (early, late) = (times[times.len() / 3], times[2 * times.len() / 3]);
        let uids = [unlinked, hub, unlinked].map(|url| layers.uid(url).unwrap().unwrap());
        let hub = uids[1];
        let windows = [Window::ALWAYS, Window::Seen { from: early, to: late }, Window::as_of(late)];
        for (window, precision) in windows.into_iter().flat_map(|at| [(at, Precision::Exact), (at, Precision::Range)]) {
            let direction = Direction::In(precision);
            let right = layers.links(hub, direction, window).unwrap();
            assert!(right.len() > 80, "{} sources, in more answers than one", right.len());
            for limit in [7, 50, 10_000] {
                raw.limit = limit;
                assert_eq!(raw.lists(&uids, direction, window).unwrap(), [vec![], right.clone(), vec![]], "{limit}");
            }
            raw.limit = 0;
            refused(raw.lists(&uids, direction, window), Reason::AnswerTooLarge);
            assert_eq!(through.links(hub, direction, window).unwrap(), right);
            assert_eq!(through.degree(hub, direction, window).unwrap(), right.len());
            let sample = Sample { count: 5, sampling: Sampling::Consistent, seed };
            let mut drawn = (Vec::new(), Vec::new());
            layers.sample_into(hub, direction, window, sample, &mut drawn.0).unwrap();
            through.sample_into(hub, direction, window, sample, &mut drawn.1).unwrap();
            assert_eq!(drawn.0, drawn.1);
            // Each random sample is different, unless a seed is given.
            let draw = |seed| raw.sample(hub, direction, window, 20, (true, seed)).unwrap();
            assert!(draw(None) != draw(None) && draw(Some(seed)) == draw(Some(seed)));
        }
    }
}
