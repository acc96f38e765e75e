//! Compares the backlinks of a target, restricted to the pages of one source, with the oracle: from layers, from cells,
//! over HTTP and over gRPC. The stores have several rows and a removal.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use tonic::Request;
use webstrata_codecs::CodecTag;
use webstrata_layers::record::key::host_of;
use webstrata_layers::{
    Backlinks, Began, Event, Links, Lookup, Match, Order, RangeLength, Ranking, Referrers, Scope, Spelled, Uid, Unit,
    answer_of, parse_time,
};
use webstrata_serve::protocol::proto;
use webstrata_serve::protocol::proto::links_server::Links as Service;
use webstrata_serve::server::LinksService;
use webstrata_tests::crawls::Random;
use webstrata_tests::oracle::{Oracle, Time};
use webstrata_tests::served::{Served, encoded};
use webstrata_tests::stores::{cells_of, reader, store_with_removal};
use webstrata_url::{domain_of, surt};

/// The stays of each page.
type Stays = BTreeMap<String, Vec<(Time, Time, Option<Time>, String)>>;

struct Question<'a> {
    target: (Match, &'a str),
    source: Option<(Match, &'a str)>,
    is_internal: bool,
}

/// Whether a URL matches another URL. This version compares texts.
fn matches(matched: Match, url: &str, other: &str) -> bool {
    let [host, name] = [url, other].map(|url| host_of(url).unwrap());
    let path = |url: &str| url.splitn(4, '/').nth(3).unwrap().to_owned();
    match matched {
        Match::Exact => url == other,
        Match::Surt => surt(url) == surt(other),
        Match::Prefix => host == name && path(url).starts_with(&path(other)),
        Match::Host => host == name,
        Match::Domain => host == name || host.ends_with(&format!(".{name}")),
    }
}

fn expected(oracle: &Oracle, question: &Question<'_>) -> Stays {
    let (matched, url) = question.target;
    let target: BTreeSet<&str> = oracle.urls().into_iter().filter(|other| matches(matched, other, url)).collect();
    let own = if matched == Match::Domain { Match::Domain } else { Match::Host };
    let counts = |page: &str| {
        question.source.is_none_or(|(matched, source)| matches(matched, page, source))
            && (question.is_internal || !matches(own, page, url))
    };
    let owned = |stay: (Time, Time, Option<Time>, &str)| (stay.0, stay.1, stay.2, stay.3.to_owned());
    let pages = oracle.backlinks(&target).into_iter().filter(|(page, _)| counts(page));
    pages.map(|(page, stays)| (page.to_owned(), stays.into_iter().map(owned).collect())).collect()
}

/// The UIDs of the URLs that match a URL.
fn uids(links: &dyn Links, (matched, url): (Match, &str)) -> Vec<Range<Uid>> {
    let found = match matched.lookup(url).unwrap() {
        Lookup::Keys(prefix) => return links.with_prefix(&prefix).unwrap(),
        Lookup::Url => links.uid(url).unwrap().into_iter().collect(),
        Lookup::Spellings => links.spellings(&Spelled::new(url, surt)).unwrap(),
    };
    found.into_iter().map(|uid| uid..uid + 1).collect()
}

/// The answer of layers or cells. The two ways to ask, `backlinks` and `referrers`, must agree.
fn asked(links: &dyn Links, question: &Question<'_>) -> Stays {
    let (matched, url) = question.target;
    let target = uids(links, question.target);
    let except = match matched.own_pages(url) {
        _ if question.is_internal => Vec::new(),
        Some(prefix) => links.with_prefix(&prefix).unwrap(),
        None => target.clone(),
    };
    let scope = Scope { within: question.source.map(|source| uids(links, source)), except };
    let ranking = Ranking {
        unit: Unit::Page,
        domain_of,
        period: RangeLength::Month,
        event: Event::Any,
        interval: (i64::MIN, i64::MAX),
        order: Order::Key,
        after: None,
        limit: usize::MAX,
    };
    let ranked = answer_of(links, Referrers::new(&target, &scope, ranking)).unwrap();
    let began = |began: Began| json!(began).as_str().unwrap().to_owned();
    let mut stays = Stays::new();
    for (page, backlink) in answer_of(links, Backlinks::new(&target, &scope)).unwrap() {
        let all = backlink.stays.iter().map(|stay| (stay.first, stay.last, stay.until, began(stay.began))).collect();
        stays.insert(links.url(page).unwrap(), all);
    }
    let rows: BTreeSet<String> = ranked.rows.iter().map(|row| links.url(row.page).unwrap()).collect();
    assert!(rows.iter().eq(stays.keys()) && ranked.pages == rows.len() as u64, "{rows:?}");
    stays
}

/// The answer over HTTP, put together from parts. Checks the totals, too.
async fn over_http(served: &Served, question: &Question<'_>, right: &Stays) -> Stays {
    let (matched, url) = question.target;
    let internal = question.is_internal;
    let mut path = format!("/v1/backlinks?url={}&match={}&internal={internal}", encoded(url), matched.name());
    if let Some((matched, source)) = question.source {
        path += &format!("&source={}&source_match={}", encoded(source), matched.name());
    }
    let answer = served.get(&format!("{path}&limit=1")).await;
    let sum = |list: &Value, name: &str| -> u64 {
        let count = |value: &Value| if name.is_empty() { value } else { &value[name] }.as_u64().unwrap();
        list.as_array().unwrap().iter().map(count).sum()
    };
    let pages = right.len() as u64;
    assert_eq!([&answer["pages"], &answer["rows_total"]], [&json!(pages), &json!(pages)], "{path}");
    assert_eq!(sum(&answer["hosts"], "pages"), pages, "{path}");
    let began: u64 = ["found", "new", "returned"].map(|name| sum(&answer[name], "")).iter().sum();
    let stays = right.values().flatten();
    assert_eq!((began, sum(&answer["lost"], "")), (stays.clone().count() as u64, ends(stays)), "{path}");
    let time = |value: &Value| value.as_str().map(|text| parse_time(text, false).unwrap());
    let stay = |stay: &Value| {
        let [first, last, gone] = ["first", "last", "until"].map(|name| time(&stay[name]));
        (first.unwrap(), last.unwrap(), gone, stay["began"].as_str().unwrap().to_owned())
    };
    let row = |row: &Value| {
        let stays = row["stays"].as_array().unwrap().iter().map(stay).collect();
        (row["page"].as_str().unwrap().to_owned(), stays)
    };
    let rows = served.all(&format!("{path}&limit=3"), "rows").await.0;
    assert_eq!(rows.len(), right.len(), "{path}");
    rows.iter().map(row).collect()
}

fn ends<'a>(stays: impl Iterator<Item = &'a (Time, Time, Option<Time>, String)>) -> u64 {
    stays.filter(|stay| stay.2.is_some()).count() as u64
}

fn to_proto(matched: Match) -> i32 {
    let matched = match matched {
        Match::Exact => proto::Match::Exact,
        Match::Surt => proto::Match::Surt,
        Match::Prefix => proto::Match::Prefix,
        Match::Host => proto::Match::Host,
        Match::Domain => proto::Match::Domain,
    };
    matched.into()
}

async fn over_grpc(service: &LinksService, question: &Question<'_>) -> Stays {
    let ((matched, url), source) = (question.target, question.source);
    let request = proto::GetBacklinksRequest {
        url: url.to_owned(),
        r#match: to_proto(matched),
        source: source.map(|(_, source)| source.to_owned()).unwrap_or_default(),
        source_match: source.map(|(matched, _)| to_proto(matched)).unwrap_or_default(),
        internal: question.is_internal,
        ..Default::default()
    };
    let answer = service.get_backlinks(Request::new(request)).await.unwrap().into_inner();
    let began = |stay: &proto::Stay| stay.began().as_str_name().trim_start_matches("BEGAN_").to_lowercase();
    let stay = |stay: &proto::Stay| (stay.first, stay.last, stay.until, began(stay));
    answer.rows.iter().map(|row| (row.page.clone(), row.stays.iter().map(stay).collect())).collect()
}

#[test]
fn only_pages_of_the_source_count() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (mut rows, mut left_out, mut empty, mut own) = (0, 0, 0, 0);
    for seed in 0..3 {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("store");
        let oracle = store_with_removal(&store, seed);
        let (layers, cells) = (reader(&store), cells_of(&store, CodecTag::Strata));
        let served = runtime.block_on(Served::start(&store, 1 << 24));
        let service = LinksService::new(served.server.shared().clone());
        let mut random = Random(seed);
        let urls: Vec<&str> = oracle.urls().into_iter().collect();
        let absent = ["http://example-a.org/d1/1.html", "http://nobody.example/", "http://a.example/nothing"];
        for _ in 0..150 {
            let target = (*random.pick(&Match::ALL), *random.pick(&urls));
            let from = if random.once_in(10) { *random.pick(&absent) } else { *random.pick(&urls) };
            let matched = *random.pick(&[Match::Host, Match::Domain, Match::Prefix, Match::Exact, Match::Surt]);
            let source = (!random.once_in(8)).then_some((matched, from));
            let question = Question { target, source, is_internal: random.once_in(2) };
            let right = expected(&oracle, &question);
            let name = format!("{target:?} from {source:?}, internal {}", question.is_internal);
            assert_eq!(asked(&layers, &question), right, "layers: {name}");
            assert_eq!(asked(&cells, &question), right, "cells: {name}");
            runtime.block_on(async {
                // The second answer comes from the memory of the server.
                for _ in 0..2 {
                    assert_eq!(over_http(&served, &question, &right).await, right, "HTTP: {name}");
                }
                assert_eq!(over_grpc(&service, &question).await, right, "gRPC: {name}");
            });
            let everybody = expected(&oracle, &Question { source: None, ..question });
            let inside = expected(&oracle, &Question { is_internal: true, ..question });
            rows += right.len();
            left_out += everybody.len() - right.len();
            empty += usize::from(right.is_empty() && !everybody.is_empty());
            own += inside.len() - right.len();
        }
        runtime.block_on(async {
            let (status, reason, message) = served.refused("/v1/backlinks?url=a.example&source_match=host").await;
            assert_eq!((status, &*reason, &*message), (400, "BAD_REQUEST", "source_match: needs source"));
            let (status, _, message) = served.refused("/v1/backlinks?url=a.example&source=http://").await;
            assert!(status == 400 && message.starts_with("source: "), "{message}");
            let request = proto::GetBacklinksRequest { url: urls[0].to_owned(), source_match: 2, ..Default::default() };
            let refused = service.get_backlinks(Request::new(request)).await.unwrap_err();
            assert_eq!(refused.message(), "source_match: needs source");
        });
    }
    assert!(rows > 500 && left_out > 500 && empty > 50 && own > 50, "{rows}, {left_out}, {empty}, {own}");
}
