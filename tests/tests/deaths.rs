//! Compares the deaths of pages, and the pages that still link to dead pages, with the oracle: from layers, from cells,
//! from a clerk, over HTTP and over gRPC. The stores have several rows, and half of the stores have a removal.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use serde_json::{Value, json};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;
use tonic::Request;
use webstrata_codecs::CodecTag;
use webstrata_layers::record::key::{host_of, host_prefix, key_of};
use webstrata_layers::{
    DeathSearch, DeathsAsked, Links, Order, RangeLength, Reader, Status, StillLinking, Uid, answer_of, format_digits,
    parse_time,
};
use webstrata_serve::clerk::{ClerkOptions, Remote};
use webstrata_serve::dial::Dialer;
use webstrata_serve::protocol::proto;
use webstrata_serve::protocol::proto::links_server::Links as Service;
use webstrata_serve::server::LinksService;
use webstrata_tests::crawls::Random;
use webstrata_tests::oracle::{Ending, Oracle, Time, When};
use webstrata_tests::rows::{Rows, Said, Shape};
use webstrata_tests::served::{Served, encoded};
use webstrata_tests::stores::{cells_of, reader, store_with_removal};

/// A death: page, time, status, last seen, returned; the number of pages that still link, the number of pages for which
/// this is unknown, and the pages that link.
type Row = (String, Time, u16, Option<Time>, Option<Time>, u64, u64, BTreeSet<String>);

struct Question {
    host: Option<String>,
    interval: (Time, Time),
    missing: bool,
    still: bool,
    status: Option<u16>,
    order: Order,
}

/// The window as of now.
const NOW: When = When::AsOfBy(Time::MAX, Time::MAX, Ending::Gone);

/// All deaths of the pages that a question is about, or all of these pages that were never there.
fn all(oracle: &Oracle, question: &Question) -> Vec<Row> {
    let hosts = |url: &&&str| question.host.as_deref().is_none_or(|host| host_of(url) == Some(host));
    let mut rows = Vec::new();
    for page in oracle.urls().iter().filter(hosts) {
        let linking: BTreeSet<String> = oracle.in_links(page, NOW).into_iter().map(str::to_owned).collect();
        let unknown = oracle.unknown(page, true, NOW).len() as u64;
        let deaths = oracle.deaths(page).into_iter().map(|(died, status, seen, back)| (died, status, Some(seen), back));
        let missing = oracle.missing(page).into_iter().map(|(failed, status)| (failed, status, None, None));
        for (died, status, seen, returned) in
            if question.missing { missing.collect() } else { deaths.collect::<Vec<_>>() }
        {
            let count = linking.len() as u64;
            rows.push(((*page).to_owned(), died, status, seen, returned, count, unknown, linking.clone()));
        }
    }
    rows
}

fn selected(all: &[Row], question: &Question) -> Vec<Row> {
    let (from, to) = question.interval;
    let is_selected = |row: &&Row| {
        (from..=to).contains(&row.1)
            && (!question.still || row.4.is_none())
            && question.status.is_none_or(|status| status == row.2)
    };
    let mut rows: Vec<Row> = all.iter().filter(is_selected).cloned().collect();
    match question.order {
        Order::First => rows.sort_by_key(|row| row.1),
        Order::Last => rows.sort_by_key(|row| Reverse(row.1)),
        Order::Most => rows.sort_by_key(|row| (Reverse(row.5), row.1)),
        Order::Key => rows.sort_by_key(|row| (key_of(&row.0), row.1)),
    }
    rows
}

/// By year: the deaths, the returns, and the pages that are gone at the end of the year.
fn years(all: &[Row]) -> BTreeMap<String, [u64; 3]> {
    let year = |time: Time| format_digits(time)[..4].to_owned();
    let times = || all.iter().flat_map(|row| [Some(row.1), row.4]).flatten().map(year);
    let numbers = || times().map(|year| year.parse::<u32>().unwrap());
    let Some((first, last)) = numbers().min().zip(numbers().max()) else { return BTreeMap::new() };
    let count = |is: &dyn Fn(&Row) -> bool| all.iter().filter(|row| is(row)).count() as u64;
    let of_year = |name: String| {
        let died = count(&|row| year(row.1) == name);
        let returned = count(&|row| row.4.map(year).as_ref() == Some(&name));
        let gone = count(&|row| year(row.1) <= name && row.4.is_none_or(|time| year(time) > name));
        (name, [died, returned, gone])
    };
    (first..=last).map(|year| of_year(format!("{year:04}"))).collect()
}

/// Compares rows. Rows that are equal in an order may be in any sequence.
fn assert_in_order(question: &Question, rows: &[Row], right: &[Row], name: &str) {
    let place = |row: &Row| match question.order {
        Order::First | Order::Last => (row.1, 0, Vec::new()),
        Order::Most => (row.1, row.5, Vec::new()),
        Order::Key => (row.1, 0, key_of(&row.0)),
    };
    if question.order != Order::Key {
        assert!(rows.iter().map(place).eq(right.iter().map(place)), "{name}: {rows:?}\n{right:?}");
    }
    let [mut rows, mut right] = [rows.to_vec(), right.to_vec()];
    rows.sort();
    right.sort();
    assert_eq!(rows, right, "{name}");
}

fn pages_of(links: &dyn Links, question: &Question) -> Vec<Range<Uid>> {
    match &question.host {
        Some(host) => links.with_prefix(&host_prefix(host).unwrap()).unwrap(),
        None => std::iter::once(Uid::below(links.urls())).collect(),
    }
}

/// The answer of layers, cells or a clerk, put together from parts.
fn asked(links: &dyn Links, question: &Question, right: &[Row], years: &BTreeMap<String, [u64; 3]>) -> Vec<Row> {
    let pages = pages_of(links, question);
    let mut rows = Vec::new();
    let mut asked = DeathsAsked {
        interval: question.interval,
        missing: question.missing,
        still: question.still,
        status: question.status.and_then(Status::new),
        period: RangeLength::Year,
        order: question.order,
        after: None,
        limit: 4,
    };
    loop {
        let found = answer_of(links, DeathSearch::new(&pages, asked)).unwrap();
        let toll = |(start, toll): &(Time, webstrata_layers::Toll)| {
            (format_digits(*start)[..4].to_owned(), [toll.died, toll.returned, toll.gone])
        };
        assert_eq!(&found.periods.iter().map(toll).collect::<BTreeMap<_, _>>(), years);
        assert_eq!(found.selected, right.len() as u64);
        assert_eq!(found.statuses.iter().map(|(_, died)| died).sum::<u64>(), found.selected);
        let dead_pages: Vec<Uid> = found.rows.iter().map(|dead| dead.page).collect();
        for (dead, linkers) in
            found.rows.iter().zip(answer_of(links, StillLinking::new(&dead_pages, usize::MAX)).unwrap())
        {
            let names = links.urls_of(&linkers.pages).unwrap().into_iter().collect();
            let death = dead.death;
            let url = links.url(dead.page).unwrap();
            let (linking, unknown) = (linkers.linking, linkers.unknown);
            let row = (url, death.died, death.status.code(), death.seen, death.returned, linking, unknown, names);
            rows.push(row);
            asked.after = Some(asked.place(dead, linking));
        }
        assert_eq!(found.left, (right.len() - rows.len()) as u64);
        if found.left == 0 {
            return rows;
        }
    }
}

const WORDS: [(Order, &str, i32); 4] =
    [(Order::First, "first", 0), (Order::Last, "last", 1), (Order::Most, "most", 2), (Order::Key, "key", 3)];

async fn over_http(served: &Served, question: &Question, right: &[Row]) -> Vec<Row> {
    let (_, order, _) = WORDS.into_iter().find(|word| word.0 == question.order).unwrap();
    let mut path =
        format!("/v1/deaths?order={order}&still={}&missing={}&linkers=100", question.still, question.missing);
    let (from, to) = question.interval;
    if from > Time::MIN {
        path += &format!("&from={}&to={}", format_digits(from), format_digits(to));
    }
    if let Some(host) = &question.host {
        path += &format!("&url={}&match=host", encoded(&format!("http://{host}/")));
    }
    if let Some(status) = question.status {
        path += &format!("&status={status}");
    }
    let answer = served.get(&format!("{path}&limit=1")).await;
    assert_eq!(answer["rows_selected"], json!(right.len()), "{path}");
    let time = |value: &Value| value.as_str().map(|text| parse_time(text, false).unwrap());
    let row = |row: &Value| {
        let linkers: BTreeSet<String> = serde_json::from_value(row["linkers"].clone()).unwrap();
        let [died, seen, returned] = ["died", "seen", "returned"].map(|name| time(&row[name]));
        let [status, linking, unknown] = ["status", "linking", "unknown"].map(|name| row[name].as_u64());
        let status = u16::try_from(status.unwrap()).unwrap();
        let page = row["page"].as_str().unwrap().to_owned();
        (page, died.unwrap(), status, seen, returned, linking.unwrap(), unknown.unwrap_or(0), linkers)
    };
    served.all(&format!("{path}&limit=3"), "rows").await.0.iter().map(row).collect()
}

async fn over_grpc(service: &LinksService, question: &Question) -> Vec<Row> {
    let (_, _, order) = WORDS.into_iter().find(|word| word.0 == question.order).unwrap();
    let (from, to) = question.interval;
    let is_bounded = from > Time::MIN;
    let request = proto::GetDeathsRequest {
        url: question.host.as_ref().map(|host| format!("http://{host}/")).unwrap_or_default(),
        r#match: proto::Match::Host.into(),
        from: is_bounded.then_some(from),
        to: is_bounded.then_some(to),
        missing: question.missing,
        still: question.still,
        status: question.status.unwrap_or(0).into(),
        order,
        linkers: 100,
        ..Default::default()
    };
    let first = service.get_deaths(Request::new(proto::GetDeathsRequest { limit: 2, ..request.clone() }));
    let (first, rest) =
        (first.await, service.get_deaths(Request::new(proto::GetDeathsRequest { offset: 2, ..request })));
    let (first, rest) = (first.unwrap().into_inner(), rest.await.unwrap().into_inner());
    assert_eq!(first.rows_selected, (first.rows.len() + rest.rows.len()) as u64);
    let row = |row: proto::DeadPage| {
        let status = u16::try_from(row.status).unwrap();
        let linkers = row.linkers.into_iter().collect();
        (row.page, row.died, status, row.seen, row.returned, row.linking, row.unknown, linkers)
    };
    first.rows.into_iter().chain(rest.rows).map(row).collect()
}

/// Names the first pages that link to each dead page, over HTTP and gRPC: the rows of a store are joined before the
/// list is cut. Returns the number of lists that are cut.
async fn few_linkers(served: &Served, service: &LinksService, layers: &Reader) -> usize {
    let mut named = 0;
    for most in [1_u32, 2, 3] {
        let answer = served.get(&format!("/v1/deaths?order=key&limit=0&linkers={most}")).await;
        let request = proto::GetDeathsRequest { order: 3, linkers: most, ..Default::default() };
        let of_grpc = service.get_deaths(Request::new(request)).await.unwrap().into_inner().rows;
        let of_http = answer["rows"].as_array().unwrap();
        assert_eq!(of_http.len(), of_grpc.len());
        for (row, of_grpc) in of_http.iter().zip(of_grpc) {
            let page = layers.uid(row["page"].as_str().unwrap()).unwrap().unwrap();
            let right = answer_of(layers, StillLinking::new(&[page], most as usize)).unwrap().remove(0);
            let names = layers.urls_of(&right.pages).unwrap();
            let found: Vec<String> = serde_json::from_value(row["linkers"].clone()).unwrap();
            assert_eq!((&found, &of_grpc.linkers), (&names, &names), "{most} names of {row}");
            named += usize::from(right.linking > u64::from(most));
        }
    }
    named
}

/// Builds a store. Every other store has captures with unknown links, and captures that several rows have.
fn store_of(store: &Path, seed: u64) -> Oracle {
    if seed.is_multiple_of(2) {
        return store_with_removal(store, seed);
    }
    let shape = Shape { rows: 3, pages: 40, captures: 300, links: 8, in_order: false };
    let rows = Rows::random(seed, shape).with_cut(seed);
    rows.write(store, 3, RangeLength::Month);
    rows.oracle()
}

#[test]
fn deaths_are_as_the_captures_tell() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (mut rows, mut returned, mut linked, mut unknown, mut named) = (0, 0, 0, 0, 0);
    for seed in 0..4 {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("store");
        let oracle = store_of(&store, seed);
        let (layers, cells) = (reader(&store), cells_of(&store, CodecTag::Strata));
        let served = runtime.block_on(Served::start(&store, 1 << 24));
        let service = LinksService::new(served.server.shared().clone());
        let servers = [served.server.address().to_string()];
        let remote = Remote::connect(&servers, Dialer::default(), ClerkOptions::default()).unwrap();
        let mut random = Random(seed);
        let times: Vec<Time> = oracle.times().into_iter().collect();
        let hosts: Vec<String> = oracle.urls().iter().filter_map(|url| host_of(url)).map(str::to_owned).collect();
        for number in 0..40 {
            let (one, other) = (*random.pick(&times), *random.pick(&times));
            let bounds = if random.once_in(3) { (Time::MIN, Time::MAX) } else { (one.min(other), one.max(other)) };
            let question = Question {
                host: (number > 8 && random.once_in(2)).then(|| random.pick(&hosts).clone()),
                interval: bounds,
                missing: number % 5 == 0,
                still: random.once_in(3),
                status: random.once_in(4).then(|| *random.pick(&[404, 410, 403])),
                order: WORDS[number % 4].0,
            };
            let all = all(&oracle, &question);
            let (right, years) = (selected(&all, &question), years(&all));
            let name = format!("{:?} {bounds:?} {:?}", question.host, question.order);
            let ways: [(&str, &dyn Links); 3] = [("layers", &layers), ("cells", &cells), ("clerk", &remote)];
            for (way, links) in ways {
                assert_in_order(&question, &asked(links, &question, &right, &years), &right, &format!("{way}: {name}"));
            }
            // If the answer may have only a few names, it has the first names.
            let pages: BTreeSet<Uid> = right.iter().map(|row| layers.uid(&row.0).unwrap().unwrap()).collect();
            let pages: Vec<Uid> = pages.into_iter().collect();
            let whole = answer_of(&layers, StillLinking::new(&pages, usize::MAX)).unwrap();
            for most in [0, 1, 2] {
                for (links, name) in [(&layers as &dyn Links, "layers"), (&cells, "cells"), (&remote, "clerk")] {
                    for (few, all) in answer_of(links, StillLinking::new(&pages, most)).unwrap().iter().zip(&whole) {
                        let first = &all.pages[..all.pages.len().min(most)];
                        let right = (all.linking, all.unknown, first);
                        assert_eq!((few.linking, few.unknown, &few.pages[..]), right, "{name}, {most} names");
                    }
                }
            }
            runtime.block_on(async {
                let found = over_http(&served, &question, &right).await;
                assert_in_order(&question, &found, &right, &format!("HTTP: {name}"));
                assert_in_order(&question, &over_grpc(&service, &question).await, &right, &format!("gRPC: {name}"));
            });
            rows += right.len();
            returned += right.iter().filter(|row| row.4.is_some()).count();
            linked += right.iter().filter(|row| row.5 > 0).count();
            unknown += right.iter().filter(|row| row.6 > 0).count();
        }
        named += runtime.block_on(few_linkers(&served, &service, &layers));
    }
    assert!(rows > 300 && returned > 50 && linked > 100 && unknown > 20, "{rows}, {returned}, {linked}, {unknown}");
    assert!(named > 20, "{named}");
}

/// A page that only ever failed has no death. It is missing, with its first failure in whichever row.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_only_ever_failed_is_missing() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    let [first, second] = ["20080101000000", "20090101000000"].map(|text| parse_time(text, false).unwrap());
    let never = "http://a.example/never";
    let links = || Said::Links(BTreeSet::from([never.to_owned()]));
    let row = |time: Time, said: [(&str, Said); 4]| {
        said.into_iter().map(|(page, said)| ((format!("http://a.example/{page}"), time), said)).collect()
    };
    let failed = Said::Failure;
    let rows = Rows {
        rows: vec![
            row(second, [("never", failed(410)), ("late", links()), ("gone", failed(404)), ("busy", failed(503))]),
            row(first, [("never", failed(404)), ("late", failed(404)), ("gone", links()), ("busy", failed(503))]),
        ],
        bare: vec![BTreeSet::new(); 2],
    };
    rows.write(&store, 1, RangeLength::Month);
    let question = Question {
        host: None,
        interval: (Time::MIN, Time::MAX),
        missing: true,
        still: false,
        status: None,
        order: Order::First,
    };
    let all = all(&rows.oracle(), &question);
    let linker = BTreeSet::from(["http://a.example/late".to_owned()]);
    assert_eq!(all, [(never.to_owned(), first, 404, None, None, 1, 0, linker)]);
    assert_eq!(asked(&reader(&store), &question, &all, &years(&all)), all);
    let served = Served::start(&store, 1 << 24).await;
    assert_eq!(over_http(&served, &question, &all).await, all);
    assert_eq!(over_grpc(&LinksService::new(served.server.shared().clone()), &question).await, all);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_makes_no_sense_is_refused() {
    let (_dir, served) = Served::example().await;
    for (path, message) in [
        ("/v1/deaths?match=host", "match: needs url"),
        ("/v1/deaths?status=99", "status: \"99\" is not a number from 100 to 999"),
        ("/v1/deaths?linkers=101", "linkers: \"101\" is not a number from 0 to 100"),
    ] {
        let (status, reason, said) = served.refused(path).await;
        assert_eq!((status, &*reason, &*said), (400, "BAD_REQUEST", message), "{path}");
    }
    let (status, reason, _) = served.refused("/v1/deaths?url=nobody.example").await;
    assert_eq!((status, &*reason), (404, "NOT_IN_STORE"));
    let answer = served.get("/v1/deaths").await;
    assert_eq!(
        answer,
        json!({"epoch": 1, "rows_total": 0, "rows_selected": 0, "periods": [], "died": [],
               "replay": "https://web.archive.org/web/",
                              "returned": [], "gone": [], "statuses": [], "rows": []})
    );
}
