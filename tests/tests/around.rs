//! Compares the surroundings of a page, and paths between pages, with the oracle: from layers, from cells, over HTTP
//! and over gRPC.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use tonic::Request;
use webstrata_codecs::CodecTag;
use webstrata_layers::record::key::host_of;
use webstrata_layers::{
    AsOf, Links, NeighbourhoodQuestion, NeighbourhoodSearch, RangeLength, Uid, WaySearch, answer_of, format_digits,
};
use webstrata_serve::protocol::proto;
use webstrata_serve::protocol::proto::links_server::Links as Service;
use webstrata_serve::server::LinksService;
use webstrata_tests::oracle::{Ending, Oracle, When};
use webstrata_tests::rows::{Rows, Shape};
use webstrata_tests::served::{Served, encoded};
use webstrata_tests::stores::{cells_of, reader};
use webstrata_url::domain_of;

/// A link: source, target, start and end of a stretch in which the link stood, and since when the link is unknown.
type Edge = (String, String, i64, Option<i64>, Option<i64>);

/// All links of the graph, one edge per stretch.
fn edges_of(oracle: &Oracle) -> Vec<Edge> {
    let mut edges = Vec::new();
    for target in oracle.urls() {
        for (source, stays) in oracle.backlinks(&BTreeSet::from([target])) {
            if source != target {
                let stretch = |&(first, _, gone, _)| (source.to_owned(), target.to_owned(), first, gone, None);
                edges.extend(stays.iter().map(stretch));
            }
        }
    }
    edges
}

/// The time since which it is unknown whether a page has a link, as of a date.
fn unknown_since(oracle: &Oracle, (page, link): (&str, &str), at: i64) -> Option<i64> {
    let captures = oracle.captures(page).into_iter().zip(oracle.statuses(page)).rev();
    let counting = captures.filter(|((time, _), status)| *time <= at && Ending::Gone.counts(*status));
    let is_unknown = |time: i64| {
        let then = When::Seen(time, time);
        oracle.is_unknown(page, then) && !oracle.out_links(page, then).contains(link)
    };
    counting.map(|((time, _), _)| time).take_while(|&time| is_unknown(time)).last()
}

fn with_unknown(edge: &Edge, unknown: Option<i64>) -> Edge {
    let (source, target, from, until, _) = edge.clone();
    (source, target, from, until, unknown)
}

/// The links that stand or are unknown at a date, or the links of all time without a date.
fn standing(oracle: &Oracle, edges: &[Edge], at: Option<i64>) -> Vec<Edge> {
    let mut standing = Vec::new();
    for stretches in edges.chunk_by(|one, next| (&one.0, &one.1) == (&next.0, &next.1)) {
        let unknown = unknown_since(oracle, (&stretches[0].0, &stretches[0].1), at.unwrap_or(i64::MAX));
        let Some(date) = at else {
            // The last stretch has the time since which the link is unknown until now.
            let (last, before) = stretches.split_last().unwrap();
            standing.extend(before.iter().map(|edge| with_unknown(edge, None)));
            standing.push(with_unknown(last, unknown));
            continue;
        };
        if unknown.is_some() {
            let begun = stretches.iter().rfind(|edge| edge.2 <= date).unwrap_or(&stretches[0]);
            standing.push(with_unknown(begun, unknown));
        } else {
            let stands = |edge: &&Edge| edge.2 <= date && edge.3.is_none_or(|until| date < until);
            standing.extend(stretches.iter().filter(stands).cloned());
        }
    }
    standing
}

/// The links around a page, computed slowly.
fn around(oracle: &Oracle, edges: &[Edge], centre: &str, is_wide: bool, at: Option<i64>) -> BTreeSet<Edge> {
    let edges = standing(oracle, edges, at);
    let mut near = BTreeSet::from([centre]);
    for edge in &edges {
        if edge.0 == centre || edge.1 == centre {
            near.extend([edge.0.as_str(), edge.1.as_str()]);
        }
    }
    let is_shown = |edge: &&Edge| near.contains(edge.0.as_str()) && (is_wide || near.contains(edge.1.as_str()));
    edges.iter().filter(is_shown).cloned().collect()
}

/// The node of a URL in this test: its directory, host or domain.
fn node(unit: &str, url: &str) -> String {
    let parts: Vec<&str> = url.splitn(5, '/').collect();
    let host = host_of(url).unwrap();
    match (unit, parts.len()) {
        ("page", _) => url.to_owned(),
        ("directory", 5) => format!("{}/{}/", parts[2], parts[3]),
        ("directory", _) => format!("{}/", parts[2]),
        ("host", _) => host.to_owned(),
        _ => domain_of(host).to_owned(),
    }
}

/// The links of all time, cut to the times when their source is around. A source is around while it has a link with the
/// centre, in either direction. The links of the centre itself are not cut.
fn while_around(edges: &BTreeSet<Edge>, centre: &str) -> BTreeSet<Edge> {
    let moments = |edge: &Edge| [Some(edge.2), edge.3, edge.4];
    let mut turns: BTreeSet<i64> = edges.iter().flat_map(moments).flatten().collect();
    turns.insert(i64::MAX);
    let turns: Vec<i64> = turns.into_iter().collect();
    let stands = |edge: &Edge, time: i64| edge.2 <= time && edge.3.is_none_or(|until| time < until);
    let is_unknown = |edge: &Edge, time: i64| edge.4.is_some_and(|since| since <= time);
    let is_around = |page: &str, time: i64| {
        let joins = |edge: &&Edge| (edge.0 == page && edge.1 == centre) || (edge.0 == centre && edge.1 == page);
        edges.iter().filter(joins).any(|edge| stands(edge, time) || is_unknown(edge, time))
    };
    let mut counting = BTreeSet::new();
    for edge in edges {
        if edge.0 == centre || edge.1 == centre {
            counting.insert(edge.clone());
            continue;
        }
        let around = |turn: &&[i64]| is_around(&edge.0, turn[0]);
        let mut stretches: Vec<(i64, i64)> = Vec::new();
        for turn in turns.windows(2).filter(around).filter(|turn| stands(edge, turn[0])) {
            match stretches.last_mut() {
                Some(last) if last.1 == turn[0] => last.1 = turn[1],
                _ => stretches.push((turn[0], turn[1])),
            }
        }
        // The link is unknown until now if its source is around until now.
        let unsure = turns.windows(2).rev().take_while(around).take_while(|turn| is_unknown(edge, turn[0])).last();
        if let (Some(unsure), true) = (unsure, stretches.is_empty()) {
            stretches.push((unsure[0], i64::MAX));
        }
        let count = stretches.len();
        counting.extend(stretches.into_iter().enumerate().map(|(at, (from, until))| {
            let unknown = unsure.map(|turn| turn[0]).filter(|_| at + 1 == count);
            (edge.0.clone(), edge.1.clone(), from, (until < i64::MAX).then_some(until), unknown)
        }));
    }
    counting
}

/// The links between groups of URLs, computed at each second of a change.
fn between(edges: &BTreeSet<Edge>, has_date: bool, unit: &str) -> BTreeSet<Edge> {
    let host = |url: &str| node(unit, url);
    let mut pairs = BTreeMap::<(String, String), Vec<(i64, i64, Option<i64>)>>::new();
    for (source, target, from, until, unknown) in edges {
        let pair = (host(source), host(target));
        if pair.0 != pair.1 {
            pairs.entry(pair).or_default().push((*from, until.unwrap_or(i64::MAX), *unknown));
        }
    }
    let mut united = BTreeSet::new();
    for ((source, target), mut spans) in pairs {
        // As of a date, one page with a known link is enough.
        if has_date && spans.iter().any(|span| span.2.is_none()) {
            spans.retain(|span| span.2.is_none());
        }
        // Without a date, links that never stood for certain only count for the unknown time, if there are certain
        // links.
        let is_certain = |span: &&(i64, i64, Option<i64>)| has_date || span.2.is_none_or(|since| span.0 < since);
        let certain: Vec<(i64, i64, Option<i64>)> = spans.iter().filter(is_certain).copied().collect();
        if certain.is_empty() {
            let since = spans.iter().filter_map(|span| span.2).min();
            united.insert((source, target, since.unwrap(), None, since));
            continue;
        }
        let turns: BTreeSet<i64> = certain.iter().flat_map(|&(from, until, _)| [from, until]).collect();
        let stands = |time: i64| certain.iter().any(|&(from, until, _)| from <= time && time < until);
        // The group's link is unknown from the first time after which no link is known to stand and some link is
        // unknown.
        let known_at = |time: i64, span: &(i64, i64, Option<i64>)| {
            span.0 <= time && time < span.1 && span.2.is_none_or(|since| time < since)
        };
        let is_unknown = |time: i64| {
            spans.iter().any(|span| span.2.is_some_and(|since| since <= time))
                && !spans.iter().any(|span| known_at(time, span))
        };
        let moments =
            |&(from, until, unknown): &(i64, i64, Option<i64>)| [Some(from), Some(until.min(i64::MAX - 1)), unknown];
        let moments: BTreeSet<i64> = spans.iter().flat_map(moments).flatten().collect();
        let unknown = moments.iter().rev().take_while(|moment| is_unknown(**moment)).last().copied();
        let last = turns.last().copied();
        let mut since = None;
        for turn in turns {
            match (since, stands(turn)) {
                (None, true) => since = Some(turn),
                (Some(from), false) => {
                    let until = (turn < i64::MAX).then_some(turn);
                    united.insert((
                        source.clone(),
                        target.clone(),
                        from,
                        until,
                        unknown.filter(|_| has_date || Some(turn) == last),
                    ));
                    since = None;
                }
                _ => {}
            }
        }
    }
    united
}

/// The links that are there at a time, each with whether it is unknown.
fn there(edges: &BTreeSet<Edge>, time: i64) -> BTreeSet<(&str, &str, bool)> {
    let is_unknown = |edge: &Edge| edge.4.is_some_and(|since| since <= time);
    let stands = |edge: &Edge| edge.2 <= time && edge.3.is_none_or(|until| time < until);
    let there = edges.iter().filter(|edge| stands(edge) || is_unknown(edge));
    there.map(|edge| (edge.0.as_str(), edge.1.as_str(), is_unknown(edge))).collect()
}

fn numbers(value: &Value) -> Vec<Option<i64>> {
    value.as_array().unwrap().iter().map(Value::as_i64).collect()
}

/// The links of an answer over HTTP, and the centre.
fn edges_in(answer: &Value) -> (BTreeSet<Edge>, String) {
    let node = |place: Option<i64>| answer["nodes"][usize::try_from(place.unwrap()).unwrap()].as_str().unwrap();
    let column = |name: &str| numbers(&answer["links"][name]);
    let [sources, targets, from, until] = ["source", "target", "from", "until"].map(column);
    let unknown = answer["links"].get("unknown").map_or_else(|| vec![None; sources.len()], numbers);
    let edge = |at: usize| {
        let ends = [sources[at], targets[at]].map(|place| node(place).to_owned());
        let [source, target] = ends;
        (source, target, from[at].unwrap(), until[at], unknown[at])
    };
    let edges: BTreeSet<Edge> = (0..sources.len()).map(edge).collect();
    assert_eq!(edges.len(), sources.len(), "each once");
    let ends: BTreeSet<Option<i64>> =
        sources.iter().chain(&targets).copied().chain([answer["centre"].as_i64()]).collect();
    assert_eq!(ends.len(), answer["nodes"].as_array().unwrap().len(), "no node without a link");
    (edges, node(answer["centre"].as_i64()).to_owned())
}

fn asked(links: &dyn Links, centre: Uid, is_wide: bool, at: Option<i64>) -> BTreeSet<Edge> {
    let question = NeighbourhoodQuestion { centre, is_wide, at, limit: usize::MAX };
    let found = answer_of(links, NeighbourhoodSearch::new(question)).unwrap();
    let (nodes, around) = (found.nodes(), found.by_page());
    assert_eq!((nodes[around.nodes[around.centre]], around.left_out, found.unread()), (centre, 0, 0));
    let url = |place: usize| links.url(nodes[around.nodes[place]]).unwrap();
    let edges = around.edges.iter();
    edges.map(|edge| (url(edge.source), url(edge.target), edge.from, edge.until, edge.unknown)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_around_a_page_is_as_the_oracle_says() {
    let (mut shown, mut unknown, mut folded) = (0, 0, BTreeSet::new());
    for seed in 0..3 {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("store");
        let rows = Rows::random(seed, Shape { rows: 3, pages: 12, captures: 60, links: 3, in_order: seed == 1 })
            .with_cut(seed);
        rows.write(&store, 2, RangeLength::Month);
        let oracle = rows.oracle();
        let edges = edges_of(&oracle);
        let times: Vec<i64> = oracle.times().into_iter().collect();
        let (layers, cells) = (reader(&store), cells_of(&store, CodecTag::Strata));
        let served = Served::start(&store, 1 << 24).await;
        let service = LinksService::new(served.server.shared().clone());
        for url in oracle.urls() {
            let uid = layers.uid(url).unwrap().unwrap();
            for at in [None, Some(times[times.len() / 2]), Some(times[times.len() - 1])] {
                for is_wide in [true, false] {
                    let expected = around(&oracle, &edges, url, is_wide, at);
                    assert_eq!(asked(&layers, uid, is_wide, at), expected, "{url} {at:?}");
                    assert_eq!(asked(&cells, uid, is_wide, at), expected, "{url} {at:?}");
                    let when = at.map_or(String::new(), |at| format!("&at={}", format_digits(at)));
                    let hops = if is_wide { 2 } else { 1 };
                    let path = format!("/v1/neighbourhood?url={}&hops={hops}{when}", encoded(url));
                    assert_eq!(edges_in(&served.get(&path).await), (expected.clone(), url.to_owned()), "{path}");
                    if is_wide {
                        let ends = || expected.iter().flat_map(|edge| [&edge.0[..], &edge.1]).chain([url]);
                        let count = |unit: &str| ends().map(|url| node(unit, url)).collect::<BTreeSet<_>>().len();
                        let counting = if at.is_some() { expected.clone() } else { while_around(&expected, url) };
                        for unit in ["directory", "host", "domain"] {
                            let answer = served.get(&format!("{path}&unit={unit}")).await;
                            let expected = between(&counting, at.is_some(), unit);
                            if at.is_none() {
                                let last = times[times.len() - 1];
                                let then = around(&oracle, &edges, url, true, Some(last));
                                assert_eq!(there(&expected, last), there(&between(&then, true, unit), last), "{path}");
                            }
                            assert_eq!(edges_in(&answer), (expected, node(unit, url)), "{path} {unit}");
                        }
                        for most in 1..=count("page") {
                            let grains = ["page", "directory", "host"].into_iter();
                            let unit = grains.clone().find(|unit| count(unit) <= most).unwrap_or("domain");
                            let answer = served.get(&format!("{path}&fold={most}")).await;
                            assert_eq!(answer["unit"], unit, "{path} {most}");
                            folded.insert(unit);
                        }
                    }
                    let narrow = !is_wide;
                    let request = proto::GetNeighbourhoodRequest { uid: uid.0, narrow, at, ..Default::default() };
                    let answer = service.get_neighbourhood(Request::new(request)).await.unwrap().into_inner();
                    assert_eq!((answer.sources.len(), answer.left_out), (expected.len(), 0));
                    assert_eq!(answer.nodes[usize::try_from(answer.centre).unwrap()], url);
                    let node = |place: u64| answer.nodes[usize::try_from(place).unwrap()].clone();
                    let unsure = answer.unknown_links.iter().map(|&place| usize::try_from(place).unwrap());
                    let unsure = unsure.zip(&answer.unknown).map(|(place, &since)| {
                        (node(answer.sources[place]), node(answer.targets[place]), answer.from[place], Some(since))
                    });
                    let unsure: BTreeSet<_> = unsure.collect();
                    let expected_unsure = expected.iter().filter(|edge| edge.4.is_some());
                    let expected_unsure = expected_unsure
                        .map(|(source, target, from, _, unknown)| (source.clone(), target.clone(), *from, *unknown));
                    assert_eq!(unsure, expected_unsure.collect(), "{path}");
                    unknown += unsure.len();
                    shown += expected.len();
                }
            }
        }
    }
    assert!(shown > 2000 && unknown > 100, "{shown}, {unknown} unknown");
    assert_eq!(folded.len(), 4, "{folded:?}");
}

/// All shortest paths, found by trying all links; at most six links.
fn tried(oracle: &Oracle, from: &str, to: &str, at: i64) -> BTreeSet<Vec<String>> {
    let mut ways = vec![vec![from.to_owned()]];
    for _ in 0..=6 {
        let there: BTreeSet<Vec<String>> = ways.iter().filter(|way| way.last().unwrap() == to).cloned().collect();
        if !there.is_empty() {
            return there;
        }
        // A path that reaches a page later than another path is not a shortest path.
        let known: BTreeSet<String> = ways.iter().flatten().cloned().collect();
        let on = |way: &Vec<String>| {
            let links = oracle.out_links(way.last().unwrap(), When::AsOf(at)).into_iter();
            links.filter(|link| !known.contains(*link)).map(|link| [&way[..], &[link.to_owned()]].concat()).collect()
        };
        ways = ways.iter().flat_map(|way| -> Vec<Vec<String>> { on(way) }).collect();
    }
    BTreeSet::new()
}

/// The pages with unknown links among all pages that `start` leads to by at most `links` links.
fn doubts(oracle: &Oracle, start: &str, links: usize, at: i64) -> BTreeSet<String> {
    let mut reached = BTreeSet::from([start.to_owned()]);
    for _ in 0..links {
        let next = |page: &String| -> Vec<String> {
            oracle.out_links(page, When::AsOf(at)).into_iter().map(str::to_owned).collect()
        };
        reached.extend(reached.iter().flat_map(next).collect::<Vec<_>>());
    }
    reached.retain(|page| !oracle.unknown(page, false, When::AsOf(at)).is_empty());
    reached
}

#[tokio::test(flavor = "multi_thread")]
async fn ways_between_pages_are_the_shortest_ones() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    let rows = Rows::random(4, Shape { rows: 3, pages: 14, captures: 50, links: 2, in_order: false });
    rows.write(&store, 2, RangeLength::Month);
    let oracle = rows.oracle();
    let served = Served::start(&store, 1 << 24).await;
    let service = LinksService::new(served.server.shared().clone());
    let layers = reader(&store);
    let times: Vec<i64> = oracle.times().into_iter().collect();
    let at = times[times.len() * 2 / 3];
    let mut lengths = BTreeMap::<usize, usize>::new();
    let mut unknown_ways = 0;
    for from in oracle.urls() {
        for to in oracle.urls() {
            let expected = tried(&oracle, from, to, at);
            let links = expected.first().map(|way| way.len() - 1);
            let path = format!("/v1/ways?url={}&target={}&limit=1000", encoded(from), encoded(to));
            let answer = served.get(&format!("{path}&at={}", format_digits(at))).await;
            assert_eq!(answer["links"], json!(links), "{from} {to}");
            let found: BTreeSet<Vec<String>> = serde_json::from_value(answer["ways"].clone()).unwrap();
            assert_eq!(found, expected, "{from} {to}");
            let ends = [from, to].map(|url| layers.uid(url).unwrap().unwrap());
            let own = answer_of(&layers, WaySearch::new((ends[0], ends[1]), AsOf::new(at), 6, 1000)).unwrap();
            assert_eq!((own.ways.len(), own.links), (expected.len(), links));
            let unknown: BTreeSet<String> = own.unknown.iter().map(|&uid| layers.url(uid).unwrap()).collect();
            let shown = answer["unknown"].as_array().map_or(&[][..], Vec::as_slice).iter();
            assert_eq!(shown.map(|url| url.as_str().unwrap().to_owned()).collect::<BTreeSet<_>>(), unknown);
            // The sixth link of a path starts at a page at most five links away.
            let doubts = if links.is_some() { BTreeSet::new() } else { doubts(&oracle, from, 5, at) };
            assert_eq!(unknown, doubts, "{from} {to}");
            unknown_ways += usize::from(!unknown.is_empty());
            let [from, to] = ends.map(|uid| uid.0);
            let request =
                proto::GetWaysRequest { uid: from, target: to, at: Some(at), limit: 1000, ..Default::default() };
            let answer = service.get_ways(Request::new(request)).await.unwrap().into_inner();
            assert_eq!(Uid::of_numbers(answer.pages), own.ways.concat());
            assert_eq!(Uid::of_numbers(answer.unknown), own.unknown);
            *lengths.entry(links.unwrap_or(99)).or_default() += 1;
        }
    }
    assert!(lengths.len() > 3 && unknown_ways > 10, "{lengths:?}, {unknown_ways} unknown");
}
