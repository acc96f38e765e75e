//! Writes in-links, and compares what comes back with the records, also after damage.

use super::*;
use crate::bench::Random;
use std::convert::Infallible;

const FIRST: u64 = 50;
const NODES: usize = 300;

/// In-links of half the nodes, from nodes here and elsewhere, over up to 90 ranges.
fn records() -> Vec<InLinks<Number>> {
    let mut random = Random::new(9);
    let mut all = Vec::new();
    for node in (0..NODES as u64).step_by(2) {
        let count = 1 + random.below(90);
        let ranges: Vec<i64> = (0..count).map(|range| 86_400 * i64::try_from(range * 3 + node % 3).unwrap()).collect();
        let mut sources: Vec<Number> = (0..1 + random.below(15)).map(|_| Number(random.below(500))).collect();
        sources.sort_unstable();
        sources.dedup();
        let mut changes = Vec::new();
        // The first source is in all ranges, so no range is empty.
        for link in (0u32..).take(sources.len()).skip(1) {
            let from = u32::try_from(random.below(count)).unwrap();
            if from > 0 {
                changes.push(Change { link, capture: 0 });
                changes.push(Change { link, capture: from });
            }
            if u64::from(from) + 1 < count && random.below(2) == 0 {
                changes.push(Change { link, capture: from + 1 });
            }
        }
        let record = InLinks { uid: Number(FIRST + node), ranges, sources, changes };
        assert_eq!(record.flaw(), None, "{record:?}");
        all.push(record);
    }
    all
}

/// The bytes with sets of ranges, and the bytes without.
fn encoded(records: &[InLinks<Number>]) -> [Vec<u8>; 2] {
    let again = || -> Box<dyn Iterator<Item = Result<InLinks<Number>, Infallible>>> {
        Box::new(records.iter().cloned().map(Ok))
    };
    [SETS_BYTES_MAX, 8 * NODES].map(|sets_bytes_max| {
        match encode_within(sets_bytes_max, Number(FIRST), (NODES, records.len()), &again, Profile::ARCHIVE) {
            Ok(bytes) => bytes,
            Err(never) => match never {},
        }
    })
}

#[test]
fn records_come_back_and_sources_by_range_are_theirs() {
    let records = records();
    let [loose, whole] = encoded(&records).map(|bytes| Backward::open(bytes.into(), Number(FIRST), NODES).unwrap());
    assert!(loose.words > 1 && whole.words == 0 && whole.table.is_empty());
    [loose, whole].iter().for_each(|backward| assert_answers(backward, &records));
}

fn assert_answers(backward: &Backward, records: &[InLinks<Number>]) {
    let (mut strata, mut answer) = (StrataBuffers::default(), AnswerBuffers::default());
    for record in records {
        let node = Node(usize::try_from(record.uid.0 - FIRST).unwrap());
        assert_eq!(backward.record(node).unwrap().as_ref(), Some(record));
        let last = record.ranges.len() - 1;
        for (from, to) in [(0, last), (0, 0), (last / 2, last), (last / 3, last / 2)] {
            let inner = (from, (from + to) / 2);
            let mut found = Vec::new();
            let wanted = |_: &[i64]| Some(Wanted { ranges: (from, to), inner: Some(inner) });
            backward
                .sources(node, (&mut strata, &mut answer), wanted, &mut |source, how| {
                    found.push((source, how == Found::Inner))
                })
                .unwrap();
            let bound = |at: usize| u32::try_from(at).unwrap();
            let present = |(from, to)| presence::in_any(&record.changes, record.sources.len(), bound(from), bound(to));
            let sure = present(inner);
            let present = present((from, to)).into_iter();
            let expected: Vec<(Number, bool)> =
                present.map(|at| (record.sources[at as usize], sure.contains(&at))).collect();
            assert_eq!(found, expected, "{from} to {to} of {record:?}");
        }
    }
    assert_eq!(backward.record(Node(1)).unwrap(), None);
}

#[test]
fn sources_of_several_nodes_are_those_of_each() {
    let records = records();
    for backward in encoded(&records).map(|bytes| Backward::open(bytes.into(), Number(FIRST), NODES).unwrap()) {
        // A question about many nodes visits each source in the cell once. A question about few may visit it again.
        for (nodes, is_once) in [(0..NODES, true), (10..60, true), (100..103, false), (7..8, false), (4..4, false)] {
            let mut found = Vec::new();
            let interval = Node(nodes.start)..Node(nodes.end);
            let mut visit = |source| found.push(source);
            backward.each_source_of(interval, &mut StoreScratch::default(), &mut visit).unwrap();
            let numbers = [nodes.start, nodes.end].map(|node| Number(FIRST + node as u64));
            let is_asked = |record: &&InLinks<Number>| (numbers[0]..numbers[1]).contains(&record.uid);
            let mut expected: Vec<Number> =
                records.iter().filter(is_asked).flat_map(|record| record.sources.clone()).collect();
            for list in [&mut found, &mut expected] {
                list.sort_unstable();
            }
            expected.dedup();
            let here = |list: &[Number]| {
                list.iter().filter(|Number(source)| (FIRST..FIRST + NODES as u64).contains(source)).count()
            };
            assert!(!is_once || here(&found) == here(&expected), "{nodes:?}");
            found.dedup();
            assert_eq!(found, expected, "{nodes:?}");
        }
    }
}

#[test]
fn urls_without_in_links_are_a_store_too() {
    for bytes in encoded(&[]) {
        let backward = Backward::open(bytes.into(), Number(FIRST), NODES).unwrap();
        assert!((0..NODES).all(|node| backward.record(Node(node)).unwrap().is_none()));
    }
}

#[test]
fn damaged_bytes_give_errors_or_other_answers() {
    let whole = encoded(&records());
    let mut random = Random::new(3);
    let (mut strata, mut answer) = (StrataBuffers::default(), AnswerBuffers::default());
    for round in 0..2000 {
        let mut bytes = whole[round % 2].clone();
        for _ in 0..=random.below(3) {
            // Damages heads, tables and sets most often.
            let end = if random.below(2) == 0 { 1000 } else { bytes.len() as u64 };
            let at = usize::try_from(random.below(end)).unwrap();
            bytes[at] ^= 1 << random.below(8);
        }
        let Ok(backward) = Backward::open(Bytes::from(bytes), Number(FIRST), NODES) else { continue };
        let _ = backward.each_source_of(Node(0)..Node(NODES), &mut StoreScratch::default(), &mut |_| {});
        for node in (0..NODES).step_by(6) {
            let _ = backward.record(Node(node));
            let half = |ranges: &[i64]| Some(Wanted { ranges: (0, ranges.len() / 2), inner: None });
            let _ = backward.sources(Node(node), (&mut strata, &mut answer), half, &mut |_, _| {});
        }
    }
}
