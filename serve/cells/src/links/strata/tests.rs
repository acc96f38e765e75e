//! Compares strata with the pages that they encode, and opens damaged strata.

use std::convert::Infallible;

use bytes::Bytes;
use proptest::prelude::*;
use webstrata_layers::record::presence;
use webstrata_layers::{Change, Page, Window};

use super::{Profile, Strata, encode_lists, encode_pages};
use crate::bench::Random;
use crate::links::codec::LinkCodec;
use crate::links::encoding::ForwardStore;
use crate::links::lists::Lists;
use crate::links::scratch::StoreScratch;
use crate::numbers::{Node, Number};

const FIRST: u64 = 1000;
const NODES: usize = 600;

fn index(random: &mut Random, end: usize) -> usize {
    usize::try_from(random.below(end as u64)).unwrap()
}

/// Pages that share links with their neighbours, with up to `captures` captures.
fn pages(seed: u64, captures: u32) -> Vec<Page<u64>> {
    let mut random = Random::new(seed);
    let mut all: Vec<Page<u64>> = Vec::new();
    for node in 0..NODES as u64 {
        if random.below(3) == 0 {
            continue;
        }
        let monthly = random.below(2) == 0;
        let count = 1 + u32::try_from(random.below(u64::from(captures))).unwrap();
        let step = |random: &mut Random| if monthly { 2_600_000 } else { 1 + random.below(5_000_000) };
        let mut timestamps = vec![1_100_000_000 + if monthly { 0 } else { random.below(1 << 28) as i64 }];
        while timestamps.len() < count as usize {
            timestamps.push(timestamps[timestamps.len() - 1] + step(&mut random) as i64);
        }
        let blank: Vec<u32> =
            if random.below(4) == 0 { (0..count).filter(|_| random.below(3) == 0).collect() } else { Vec::new() };
        let known: Vec<u32> = (0..count).filter(|at| !blank.contains(at)).collect();
        let mut links: Vec<u64> = match all.last().filter(|_| random.below(4) > 0) {
            Some(before) => before.links.iter().copied().filter(|_| random.below(5) > 0).collect(),
            None => Vec::new(),
        };
        for _ in 0..random.below(12) {
            let far = if random.below(20) == 0 { 1 << 40 } else { 700 };
            links.push(FIRST + random.below(far));
        }
        let run = FIRST + random.below(500);
        links.extend((run..).take(index(&mut random, 9)));
        links.sort_unstable();
        links.dedup();
        let mut changes = Vec::new();
        if known.is_empty() {
            links.clear();
        }
        for link in (0u32..).take(links.len()) {
            let mut present = true;
            let mut own = Vec::new();
            let mut seen = false;
            for &capture in &known {
                let now = if random.below(6) == 0 { !present } else { present };
                if now != present {
                    own.push(Change { link, capture });
                }
                present = now;
                seen |= now;
            }
            if seen {
                changes.extend(own);
            }
        }
        let page = Page { uid: FIRST + node, timestamps, blank, links, changes, statuses: Vec::new() };
        assert_eq!(page.flaw(), None, "{page:?}");
        all.push(page);
    }
    all
}

fn encode(pages: &[Page<u64>], profile: Profile) -> Bytes {
    let again =
        || -> Box<dyn Iterator<Item = Result<Page<u64>, Infallible>>> { Box::new(pages.iter().cloned().map(Ok)) };
    match encode_pages(FIRST, (NODES, pages.len()), &again, profile) {
        Ok(bytes) => Bytes::from(bytes),
        Err(never) => match never {},
    }
}

/// The links of a window, computed from the page in the simple way.
fn window_of(page: &Page<u64>, window: Window) -> Vec<u64> {
    let Some((first, last)) = page.captures().selected(window) else { return Vec::new() };
    let present = presence::in_any(&page.changes, page.links.len(), first, last);
    present.into_iter().map(|at| page.links[at as usize]).collect()
}

#[test]
fn pages_come_back_and_windows_are_those_of_the_layers() {
    let profiles = [
        Profile::ARCHIVE,
        Profile::SPEED,
        Profile { depth_max: 0, ..Profile::SPEED },
        Profile { depth_max: 4, window: 3, group_bits: 2, ..Profile::SPEED },
    ];
    // Up to 6, and up to 200 captures: masks of phases, and more phases than a mask has.
    for (seed, captures) in [(1, 6), (2, 30), (3, 200), (4, 1)] {
        let pages = pages(seed, captures);
        for profile in profiles {
            let strata = Strata::open(encode(&pages, profile)).unwrap();
            let (mut scratch, mut links) = (StoreScratch::default(), Vec::new());
            let mut expected = pages.iter().peekable();
            for node in 0..NODES {
                let page = expected.next_if(|page| page.uid == FIRST + node as u64);
                assert_eq!(strata.page(node).unwrap().as_ref(), page, "seed {seed}, {profile:?}");
                strata.list(node, &mut scratch, &mut links).unwrap();
                assert_eq!(links, page.map_or(&[][..], |page| &page.links));
                let Some(page) = page else { continue };
                let times = &page.timestamps;
                let (first, middle, last) = (times[0], times[times.len() / 2], times[times.len() - 1]);
                let mut windows =
                    vec![Window::ALWAYS, Window::as_of(first - 1), Window::Seen { from: last, to: first - 1 }];
                for (from, to) in [(first, middle), (middle, last), (middle, middle), (first + 1, last - 1)] {
                    windows.extend([Window::Seen { from, to }, Window::as_of(to)]);
                }
                for window in windows {
                    strata.window(node, window, &mut scratch.strata, &mut links).unwrap();
                    assert_eq!(links, window_of(page, window), "{window:?} of {page:?}");
                }
            }
            // A ring that goes back and forth between groups, keeps the masks of all links of some records, and reads
            // the masks of single links of others.
            let (mut alone, mut lifespans, mut captures) = (Vec::new(), Vec::new(), Vec::new());
            for page in &pages {
                let node = usize::try_from(page.uid - FIRST).unwrap();
                for near in [node, node ^ 5, NODES - 1 - node] {
                    let Ok(at) = pages.binary_search_by_key(&(FIRST + near as u64), |page| page.uid) else { continue };
                    let (page, near) = (&pages[at], Node(near));
                    let window = Window::as_of(page.timestamps[page.timestamps.len() / 2]);
                    let there = window_of(page, window);
                    if near.0 % 5 == 0 {
                        let all = [Number(0)..Number(u64::MAX)];
                        strata.lifespans(near, &mut scratch, &mut alone).unwrap();
                        strata.lifespans_within(near, &all, &mut scratch, (&mut lifespans, &mut captures)).unwrap();
                        assert_eq!(lifespans, alone, "{page:?}");
                    }
                    for &link in page.links.iter().skip(near.0 % 4).step_by(4) {
                        assert!(strata.ever_links(near, Number(link), &mut scratch).unwrap());
                        let is_there = strata.links_in(near, Number(link), window, &mut scratch).unwrap();
                        assert_eq!(is_there, there.binary_search(&link).is_ok(), "{link} in {window:?} of {page:?}");
                    }
                    assert!(!strata.links_in(near, Number(FIRST - 1), window, &mut scratch).unwrap());
                }
            }
            assert!(strata.page(NODES).is_err());
        }
    }
}

#[test]
fn damaged_bytes_give_errors_or_other_answers() {
    let pages = pages(5, 40);
    let whole = encode(&pages, Profile::ARCHIVE);
    let mut random = Random::new(77);
    let (mut scratch, mut links) = (StoreScratch::default(), Vec::new());
    let (mut opened, mut refused) = (0, 0);
    for round in 0..3000 {
        let mut bytes = whole.to_vec();
        if round % 10 == 0 {
            bytes.truncate(index(&mut random, whole.len()));
        }
        for _ in 0..=random.below(3) {
            let at = index(&mut random, bytes.len().max(1));
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << random.below(8);
            }
        }
        let Ok(strata) = Strata::open(Bytes::from(bytes)) else {
            refused += 1;
            continue;
        };
        opened += 1;
        // Answers may be wrong or errors. Images carry checksums, so this is the second line of defense.
        for node in (0..NODES).step_by(7) {
            let _ = strata.list(node, &mut scratch, &mut links);
            let _ = strata.window(
                node,
                Window::Seen { from: 1_110_000_000, to: 1_120_000_000 },
                &mut scratch.strata,
                &mut links,
            );
            let _ = strata.page(node);
            for &link in [FIRST].iter().chain(links.iter().take(3)) {
                let _ = strata.ever_links(Node(node), Number(link), &mut scratch);
                let _ = strata.links_in(Node(node), Number(link), Window::as_of(1_110_000_000), &mut scratch);
            }
        }
    }
    assert!(opened > 300 && refused > 300, "{opened} opened, {refused} refused");
}

#[test]
fn damaged_lists_give_errors_or_other_lists_of_bounded_length() {
    let mut random = Random::new(9);
    let mut lists = Lists { first: FIRST, ..Lists::default() };
    for page in pages(6, 1) {
        while (lists.nodes() as u64) + FIRST < page.uid {
            lists.push(&[]);
        }
        lists.push(&page.links);
    }
    let whole = encode_lists(&lists, Profile::ARCHIVE);
    let (mut scratch, mut links) = (StoreScratch::default(), Vec::new());
    let mut opened = 0;
    for _ in 0..2000 {
        let mut bytes = whole.clone();
        for _ in 0..=random.below(3) {
            let at = index(&mut random, bytes.len());
            bytes[at] ^= 1 << random.below(8);
        }
        let Ok(strata) = Strata::open(Bytes::from(bytes)) else { continue };
        opened += 1;
        for node in (0..strata.nodes).step_by(5).take(NODES) {
            if strata.list(node, &mut scratch, &mut links).is_ok() {
                assert!(links.len() <= strata.links_max);
            }
        }
        let _ = strata.scan(&mut |_, links| assert!(links.len() <= strata.links_max));
    }
    assert!(opened > 300, "{opened} opened");
}

/// A list: empty, of near and far links, a row, or most of a list before it.
#[derive(Clone, Debug)]
enum Shape {
    Some(std::collections::BTreeSet<u64>),
    Row(u64, u64),
    Like(usize, u64),
}

fn shape() -> impl Strategy<Value = Shape> {
    prop_oneof![
        proptest::collection::btree_set(prop_oneof![0u64..50, 0u64..1 << 42], 0..20).prop_map(Shape::Some),
        (0u64..500, 0u64..200).prop_map(|(first, count)| Shape::Row(first, count)),
        (1usize..70, 1u64..40).prop_map(|(back, left_out)| Shape::Like(back, left_out)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn lists_come_back(
        shapes in proptest::collection::vec(shape(), 0..200),
        first in 0u64..1 << 41,
        group_bits in 0u32..=3,
    ) {
        let mut all = Lists { first, ..Lists::default() };
        for shape in shapes {
            let list = match shape {
                Shape::Some(links) => links.into_iter().collect(),
                Shape::Row(first, count) => (first..first + count).collect(),
                Shape::Like(back, left_out) => match all.nodes().checked_sub(back) {
                    Some(like) => all.list(like).iter().copied().filter(|link| link % left_out > 0).collect(),
                    None => Vec::new(),
                },
            };
            all.push(&list);
        }
        for profile in [Profile::ARCHIVE, Profile::SPEED, Profile { group_bits, ..Profile::ARCHIVE }] {
            let strata = Strata::open(Bytes::from(encode_lists(&all, profile))).unwrap();
            let (mut scratch, mut links) = (StoreScratch::default(), Vec::new());
            for node in (0..all.nodes()).rev() {
                strata.list(node, &mut scratch, &mut links).unwrap();
                prop_assert_eq!(&links, all.list(node));
            }
            let mut scanned = Lists { first, ..Lists::default() };
            strata.scan(&mut |_, links| scanned.push(links)).unwrap();
            prop_assert_eq!(&scanned, &all);
            // A ring that goes back and forth between groups.
            for node in 0..all.nodes() {
                for near in [node, node ^ 5, all.nodes() - 1 - node] {
                    let Some(record) = (near < all.nodes()).then(|| strata.find_record(near).unwrap()).flatten() else {
                        continue;
                    };
                    prop_assert_eq!(scratch.near.list(&strata, record).unwrap(), all.list(near));
                }
            }
        }
    }
}
