//! The bodies of fuzz targets, which tests call too. A probe damages sound bytes as its input says, opens them, and
//! asks all questions.
//!
//! The first byte of the input selects an encoding of links. Then each six bytes are an edit: a place (24 bits, modulo
//! the length), an operation (8 bits), and a value (16 bits). A fuzzer therefore needs no corpus, and its findings are
//! short. Only a panic, a hang or memory out of proportion is a failure. Answers from damaged bytes are errors, or
//! other answers.

mod samples;

use std::ops::ControlFlow;

use bytes::Bytes;
use webstrata_layers::{Batch, Direction, Links, Precision, Sample, Sampling, Uid, Window};

use crate::ENCODINGS;
use crate::codec::snode::Snode;
use crate::codec::{self, CodecTag};
use samples::{FIRST, NODES, samples};
use webstrata_cells::image;
use webstrata_cells::links::backward::Wanted;
use webstrata_cells::links::scratch::StoreScratch;
use webstrata_cells::url_store::UrlStore;
use webstrata_cells::{Cells, Node, Number};

/// A kind of bytes that can be damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A URL store.
    Urls,
    /// Lists of links of any encoding.
    Lists,
    /// A forward store of any encoding.
    Forward,
    /// A backward store of any encoding.
    Backward,
    /// The image of a cell of any encoding, with checksums recomputed after the damage.
    Cell,
}

impl Target {
    /// All targets.
    pub const ALL: [Target; 5] = [Target::Urls, Target::Lists, Target::Forward, Target::Backward, Target::Cell];
}

/// Damages a sample of a target and asks it all questions. Returns whether it opened.
pub fn probe(target: Target, input: &[u8]) -> bool {
    let Some((samples, (&pick, edits))) = samples().zip(input.split_first()) else { return false };
    let tag = CodecTag::ALL[usize::from(pick) % CodecTag::ALL.len()];
    let sample = |samples: &[Vec<u8>]| edited(&samples[usize::from(pick) % samples.len()], edits);
    match target {
        Target::Urls => urls(edited(&samples.urls, edits).into()),
        Target::Lists => lists(tag, sample(&samples.lists).into()),
        Target::Forward => forward(tag, sample(&samples.forward).into()),
        Target::Backward => backward(tag, sample(&samples.backward).into()),
        Target::Cell => cell(sample(&samples.cells)),
    }
}

/// The bytes after the edits.
fn edited(bytes: &[u8], edits: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for edit in edits.as_chunks::<6>().0 {
        let [a, b, c, what, low, high] = *edit;
        let position = u32::from_le_bytes([a, b, c, 0]) as usize;
        let Some(at) = position.checked_rem(bytes.len()) else { break };
        let value = [low, high];
        match what % 6 {
            0 => bytes[at] = low,
            1 => bytes[at] ^= 1 << (low & 7),
            // Headers and indexes are words.
            2 => bytes[at & !7..].iter_mut().zip(value).for_each(|(byte, value)| *byte = value),
            3 => bytes[at..].iter_mut().take(usize::from(low)).for_each(|byte| *byte = high),
            4 => bytes.truncate(at),
            _ => bytes.extend_from_slice(&value),
        }
    }
    bytes
}

/// Some of the numbers below `count`, among them the first and the last.
fn some(count: u64) -> impl Iterator<Item = u64> {
    (0..count).step_by(usize::try_from(count / 16 + 1).unwrap_or(usize::MAX)).chain(count.checked_sub(1))
}

const WINDOWS: [Window; 5] = [
    Window::ALWAYS,
    Window::Seen { from: 86_400 * 3, to: 86_400 * 9 },
    Window::Seen { from: 86_400 * 70, to: i64::MAX },
    Window::as_of(86_400 * 5),
    Window::as_of(i64::MAX),
];

fn urls(bytes: Bytes) -> bool {
    let Ok(urls) = UrlStore::open(bytes) else { return false };
    let (mut key, mut url) = (Vec::new(), String::new());
    for at in some(urls.len()) {
        let _ = urls.url(at, &mut url);
        if urls.key(at, &mut key).is_ok() {
            let _ = urls.find(&key);
            let _ = urls.lower_bound(&key[..key.len() / 2]);
            let _ = urls.prefix(&key[..key.len() / 3]);
        }
    }
    true
}

fn lists(tag: CodecTag, bytes: Bytes) -> bool {
    if let Some(snode) = Some(tag).filter(|tag| tag.reads_keys()).and_then(|_| Snode::open(bytes.clone()).ok()) {
        let found = snode.domain(samples::DOMAIN).unwrap_or_default();
        for supernode in found.into_iter().chain([0, snode.supernodes()]) {
            let _ = snode.nodes_of(supernode);
        }
    }
    codec::probe(tag, bytes).is_ok()
}

fn forward(tag: CodecTag, bytes: Bytes) -> bool {
    let Ok(store) = tag.encoding().open_forward(&bytes.into(), Number(FIRST), NODES) else { return false };
    let (mut links, mut captures, mut lifespans) = (Vec::new(), Vec::new(), Vec::new());
    let mut scratch = StoreScratch::default();
    for node in (0..=NODES).map(Node) {
        let _ = store.window(node, WINDOWS[node.0 % WINDOWS.len()], &mut scratch, &mut links);
        for &link in links.iter().take(3).chain(links.last()) {
            let _ = store.ever_links(node, link, &mut scratch);
            let _ = store.links_in(node, link, WINDOWS[1], &mut scratch);
        }
        let _ = store.captures(node, &mut scratch, &mut captures);
        let _ = store.captured(node, (0, 86_400), &mut scratch);
        let _ = store.lifespans(node, &mut scratch, &mut lifespans);
        if node.0 % 5 == 0 {
            let all = [Number(0)..Number(u64::MAX)];
            let _ = store.lifespans_within(node, &all, &mut scratch, (&mut lifespans, &mut captures));
        }
        let _ = store.page(node);
    }
    let _ = store.sizes();
    true
}

fn backward(tag: CodecTag, bytes: Bytes) -> bool {
    let Ok(store) = tag.encoding().open_backward(&bytes.into(), Number(FIRST), NODES) else { return false };
    let mut scratch = StoreScratch::default();
    for node in (0..=NODES).map(Node) {
        let half = |ranges: &[i64]| Some(Wanted { ranges: (0, ranges.len() / 2), inner: Some((1, ranges.len() / 3)) });
        let all = |ranges: &[i64]| Some(Wanted { ranges: (0, ranges.len().checked_sub(1)?), inner: None });
        let _ = store.sources(node, &half, &mut scratch, &mut |_, _| {});
        let _ = store.sources(node, &all, &mut scratch, &mut |_, _| {});
        let _ = store.record(node);
    }
    let _ = store.sizes();
    true
}

fn cell(mut bytes: Vec<u8>) -> bool {
    image::seal(&mut bytes);
    let Ok(cells) = Cells::of_image(bytes.into(), ENCODINGS) else { return false };
    let (mut url, mut batch) = (Vec::new(), Batch::default());
    // Only some of the nodes. The targets for link stores ask about all nodes.
    let ends = [0, FIRST - 1, FIRST + 3 * NODES as u64, cells.urls()];
    let node_uids = (FIRST..FIRST + NODES as u64).step_by(7);
    let uids: Vec<Uid> =
        node_uids.clone().chain(node_uids.map(|uid| FIRST + 3 * (uid - FIRST))).chain(ends).map(Uid).collect();
    for &uid in &uids {
        if cells.url_into(uid, &mut url).is_ok() {
            let _ = cells.uid(&String::from_utf8_lossy(&url));
        }
        let _ = (cells.captures(uid), cells.lifespans(uid), cells.page(uid), cells.in_record(uid));
        for window in WINDOWS {
            for direction in [Direction::Out, Direction::In(Precision::Exact), Direction::In(Precision::Range)] {
                let _ = cells.degree(uid, direction, window);
            }
        }
        let _ = cells.has_link(uid, Uid(FIRST), WINDOWS[1]);
    }
    let sample = Sample { count: 2, sampling: Sampling::Random, seed: 1 };
    let draw = |&uid: &Uid, list: &mut Vec<Uid>| cells.sample_into(uid, Direction::Out, WINDOWS[0], sample, list);
    let _ = batch.fill(&uids, draw);
    let mut remaining = 20;
    let _ = cells.uids(Uid(FIRST - 9)..Uid(FIRST + 4 * NODES as u64), (0, 86_400), &mut |_| {
        remaining -= 1;
        if remaining > 0 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};
    use webstrata_cells::bench::Random;

    #[test]
    fn damage_of_all_kinds_is_no_more_than_errors_and_other_answers() {
        // More rounds, from another seed: WEBSTRATA_PROBES=rounds,seed.
        let wanted = std::env::var("WEBSTRATA_PROBES").ok();
        let wanted = wanted.as_deref().and_then(|text| text.split_once(','));
        let (rounds, seed) = wanted.map_or((60, 12), |(rounds, seed)| (rounds.parse().unwrap(), seed.parse().unwrap()));
        let mut random = Random::new(seed);
        for target in Target::ALL {
            let (mut opened, mut slowest) = (0, Duration::ZERO);
            for pick in 0..u8::try_from(ENCODINGS.0.len()).unwrap() {
                assert!(probe(target, &[pick]), "{target:?} {pick} is sound");
                for _ in 0..rounds {
                    let mut input = vec![pick];
                    for _ in 0..=random.below(3) {
                        // Headers are small, and most decisions depend on them.
                        let place = if random.below(2) == 0 { random.below(400) } else { random.next() };
                        let edit = [place, place >> 8, place >> 16, random.next(), random.next(), random.next()];
                        input.extend(edit.map(|value| u8::try_from(value & 0xff).unwrap()));
                    }
                    let start = Instant::now();
                    let done = std::panic::catch_unwind(|| probe(target, &input));
                    opened += usize::from(done.unwrap_or_else(|_| panic!("{target:?} {input:?}")));
                    slowest = slowest.max(start.elapsed());
                }
            }
            assert!(opened > 100, "{target:?}: {opened} opened");
            assert!(slowest < Duration::from_secs(5), "{target:?}: {slowest:?}");
        }
    }
}
