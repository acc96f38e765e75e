//! One suite for all encodings of links. Each encoding gives the lists back, in order and in any other order, for any
//! graph. Damaged bytes give an error or other lists, and nothing worse.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod graphs;

use bytes::Bytes;
use graphs::{clustered, lists, uniform};
use proptest::prelude::*;
use std::time::{Duration, Instant};
use webstrata_cells::bench::Random;
use webstrata_cells::links::codec::LinkCodec;
use webstrata_cells::links::lists::Lists;
use webstrata_cells::links::scratch::StoreScratch;
use webstrata_codecs::codec::{self, CodecTag, snode};

/// Panics at the first list that differs.
fn compare(name: &str, codec: &dyn LinkCodec, lists: &Lists) {
    assert_eq!(codec.nodes(), lists.nodes(), "{name}");
    let (mut scratch, mut links) = (StoreScratch::default(), vec![1, 2, 3]);
    let mut order: Vec<usize> = (0..lists.nodes()).collect();
    Random::new(7).shuffle(&mut order);
    for node in order {
        codec.list(node, &mut scratch, &mut links).unwrap_or_else(|damage| panic!("{name}, node {node}: {damage}"));
        assert!(links == lists.list(node), "{name}, node {node}: {links:?} is not {:?}", lists.list(node));
        assert_eq!(codec.degree(node).unwrap(), links.len(), "{name}, node {node}");
    }
    let mut next = 0;
    codec
        .scan(&mut |node, links| {
            assert_eq!(node, next, "{name}");
            assert!(links == lists.list(node), "{name}, node {node} in order");
            next += 1;
        })
        .unwrap_or_else(|damage| panic!("{name}: {damage}"));
    assert_eq!(next, lists.nodes(), "{name}");
    assert!(codec.list(lists.nodes(), &mut scratch, &mut links).is_err(), "{name}");
    assert!(codec.degree(usize::MAX).is_err(), "{name}");
}

fn conforms(lists: &Lists) {
    for tag in CodecTag::ALL {
        let bytes = codec::encode(tag, lists, None).unwrap();
        assert_eq!(bytes, codec::encode(tag, lists, None).unwrap(), "{}: same lists, same bytes", tag.name());
        let length = bytes.len() as u64;
        let codec = codec::open(tag, bytes.into()).unwrap_or_else(|damage| panic!("{}: {damage}", tag.name()));
        compare(tag.name(), &*codec, lists);
        // BV stores offsets of lists, and reads them into an index of another size.
        let sizes = codec.sizes();
        if tag != CodecTag::Bv {
            assert_eq!(sizes.data + sizes.index + sizes.tables, length, "{}: {sizes:?}", tag.name());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn random_graphs(first in prop_oneof![Just(0u64), 0u64..1 << 41], lists in lists()) {
        let mut all = Lists { first, ..Lists::default() };
        lists.iter().for_each(|list| all.push(list));
        conforms(&all);
    }

    #[test]
    fn graphs_whose_lists_are_copied(seed: u64, nodes in 1usize..300, first in prop_oneof![Just(0u64), Just(1 << 40)]) {
        conforms(&clustered(seed, nodes, first));
    }
}

#[test]
fn no_nodes_and_no_links() {
    conforms(&Lists::default());
    conforms(&Lists { first: 5, ends: vec![0; 100], links: Vec::new() });
    let mut self_loops = Lists { first: 3, ..Lists::default() };
    (3..40).for_each(|uid| self_loops.push(&[uid]));
    conforms(&self_loops);
}

#[test]
fn a_list_of_a_million_links() {
    let mut lists = Lists { first: 9, ..Lists::default() };
    let mut random = Random::new(3);
    for node in 0..40u64 {
        let length = if node == 20 || node == 22 { 1_000_000 } else { node };
        let mut uid = random.below(1 << 30);
        let list: Vec<u64> = (0..length)
            .map(|_| {
                uid += 1 + random.below(9);
                uid
            })
            .collect();
        lists.push(&list);
    }
    conforms(&lists);
}

#[test]
fn an_s_node_knows_the_supernodes_of_a_domain() {
    let lists = clustered(8, 900, 1 << 33);
    let key = |node: usize| format!("com,site{:02},www,)/{}/{}/page{node:04} http", node / 200, node / 60, node / 20);
    let keys: Vec<Vec<u8>> = (0..900).map(|node| key(node).into_bytes()).collect();
    let options = snode::Options { pages_max: 40, pages_min: 10, clustered: true };
    let node = snode::Snode::open(snode::encode(&lists, Some(&keys), &options).into()).unwrap();
    compare("snode with keys", &node, &lists);
    let mut seen = Vec::new();
    for site in 0..5 {
        let supernodes = node.domain(format!("com,site{site:02},").as_bytes()).unwrap();
        let mut nodes: Vec<usize> = supernodes.iter().flat_map(|&number| node.nodes_of(number).unwrap()).collect();
        nodes.sort_unstable();
        assert!(nodes.iter().copied().eq((0..900).filter(|node| node / 200 == site)), "{site}: {nodes:?}");
        assert!(supernodes.len() > 2);
        seen.extend(supernodes);
    }
    assert!(seen.iter().all(|&supernode| supernode < node.supernodes()));
    assert!(node.domain(b"com,site99,").unwrap().is_empty());
}

#[test]
fn domains_of_one_page_share_a_supernode() {
    let lists = clustered(9, 300, 7);
    let keys: Vec<Vec<u8>> = (0..300).map(|node| format!("com,site{node:03},)/ http").into_bytes()).collect();
    let options = snode::Options { pages_max: 40, pages_min: 20, clustered: false };
    let node = snode::Snode::open(snode::encode(&lists, Some(&keys), &options).into()).unwrap();
    compare("snode with many domains", &node, &lists);
    let supernodes = node.domain(b"com,site045,").unwrap();
    assert_eq!(supernodes.len(), 1);
    assert_eq!(node.nodes_of(supernodes[0]).unwrap(), (40..60).collect::<Vec<_>>());
}

#[test]
fn names_and_numbers_lead_to_tags() {
    for tag in CodecTag::ALL {
        assert_eq!(CodecTag::from_name(tag.name()), Some(tag));
        assert_eq!(CodecTag::from_number(tag as u8), Some(tag));
    }
    assert_eq!(CodecTag::from_name("zip"), None);
}

/// The bytes with some bytes changed, removed or moved, by a seed.
fn damaged(bytes: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let at = |random: &mut Random, length: usize| random.index(length.max(1));
    match random.below(6) {
        0 => bytes.truncate(at(random, bytes.len())),
        // The header and the index are small, and most decisions depend on them.
        1 => (0..3).for_each(|_| {
            let at = at(random, bytes.len().min(80));
            bytes[at] ^= 1 << random.below(8);
        }),
        2 => {
            let at = at(random, bytes.len() / 8) * 8;
            bytes[at..at + 8].copy_from_slice(&random.next().to_le_bytes());
        }
        3 => {
            let at = at(random, bytes.len());
            let end = (at + 40).min(bytes.len());
            bytes[at..end].fill(0xff);
        }
        4 => {
            let at = at(random, bytes.len());
            let end = (at + 40).min(bytes.len());
            bytes[at..end].fill(0);
        }
        _ => (0..=random.below(8)).for_each(|_| {
            let at = at(random, bytes.len());
            bytes[at] ^= 1 << random.below(8);
        }),
    }
    bytes
}

#[test]
fn damaged_bytes_are_errors_or_other_lists() {
    let graphs = [clustered(1, 300, 0), clustered(2, 90, 1 << 40), uniform(3, 100, 0), Lists::default()];
    let mut random = Random::new(11);
    for tag in CodecTag::ALL {
        let (mut refused, mut slowest) = (0, Duration::ZERO);
        for lists in &graphs {
            let bytes = codec::encode(tag, lists, None).unwrap();
            assert_eq!(codec::probe(tag, bytes.clone().into()), Ok(lists.links.len() as u64), "{}", tag.name());
            for _ in 0..500 {
                let bytes = damaged(&bytes, &mut random);
                let start = Instant::now();
                refused += usize::from(codec::probe(tag, Bytes::from(bytes)).is_err());
                slowest = slowest.max(start.elapsed());
            }
        }
        assert!(refused > 100, "{}: {refused} of 2000 were refused", tag.name());
        assert!(slowest < Duration::from_secs(5), "{}: {slowest:?}", tag.name());
    }
}

#[test]
fn bytes_of_one_encoding_are_no_trouble_to_another() {
    let lists = clustered(5, 200, 7);
    for written in CodecTag::ALL {
        let bytes = Bytes::from(codec::encode(written, &lists, None).unwrap());
        for tag in CodecTag::ALL {
            let _ = codec::probe(tag, bytes.clone());
        }
    }
}
