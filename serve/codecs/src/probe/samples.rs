//! Small sound bytes of every kind, for probes to damage: a cell of 80 URLs with links from and to other cells.

use std::sync::OnceLock;

use webstrata_layers::record::key::key;
use webstrata_layers::{Change, InLinks, Page, RangeLength, Uid};

use crate::codec::{self, CodecTag};
use webstrata_cells::bench::Random;
use webstrata_cells::image::label::Label;
use webstrata_cells::image::{self, Counts};
use webstrata_cells::links::encoding::{CellRecords, CellShape, Encoding, Records, STRATA_THIN, Tag};
use webstrata_cells::links::lists::Lists;
use webstrata_cells::numbers;
use webstrata_cells::url_store;
use webstrata_cells::{Error, Number};

pub(super) const FIRST: u64 = 1000;
pub(super) const NODES: usize = 80;
/// The prefix of all keys.
pub(super) const DOMAIN: &[u8] = b"org,example,";

/// The sound bytes of each kind, by tag; of cells also with thin in-links, last.
pub(super) struct Samples {
    pub(super) urls: Vec<u8>,
    pub(super) lists: Vec<Vec<u8>>,
    pub(super) forward: Vec<Vec<u8>>,
    pub(super) backward: Vec<Vec<u8>>,
    pub(super) cells: Vec<Vec<u8>>,
}

/// The samples, made once; `None` if an encoder fails.
pub(super) fn samples() -> Option<&'static Samples> {
    static SAMPLES: OnceLock<Option<Samples>> = OnceLock::new();
    SAMPLES.get_or_init(|| make().ok()).as_ref()
}

fn make() -> Result<Samples, Error> {
    let (pages, sources) = (pages(), in_links());
    let mut lists = Lists { first: FIRST, ..Lists::default() };
    for number in (FIRST..).take(NODES) {
        let page = pages.iter().find(|page| page.uid == number);
        lists.push(page.map_or(&[], |page| &page.links[..]));
    }
    let mut keys: Vec<Vec<u8>> = (0..NODES).map(url_key).collect();
    keys.sort_unstable();
    let visit = |visit: &mut dyn FnMut(&[u8]) -> Result<(), webstrata_cells::UrlsError>| {
        keys.iter().try_for_each(|key| visit(key)).map_err(Error::from)
    };
    let urls = url_store::encode(visit, url_store::Options::default())?;
    let again =
        || -> Records<'_, Page<Number>> { Box::new(pages.iter().cloned().map(|page| Ok(page.renumbered(Number)))) };
    let back = || -> Records<'_, InLinks<Number>> {
        Box::new(sources.iter().cloned().map(|record| Ok(record.renumbered(Number))))
    };
    let all = |encode: &dyn Fn(CodecTag) -> Result<Vec<u8>, Error>| {
        CodecTag::ALL.into_iter().map(encode).collect::<Result<Vec<_>, _>>()
    };
    let shape = CellShape { first: Number(FIRST), nodes: NODES, keys: Some(&keys) };
    let forward = all(&|tag| tag.encoding().encode_forward(shape, (pages.len(), &again)))?;
    let backward = all(&|tag| tag.encoding().encode_backward(shape, (sources.len(), &back)))?;
    let sides = forward.iter().cloned().zip(backward.iter().cloned()).map(|(forward, backward)| [forward, backward]);
    let records = CellRecords { pages: (pages.len(), &again), in_links: (sources.len(), &back) };
    let thin = STRATA_THIN.encode(shape, records)?;
    let encodings = CodecTag::ALL.into_iter().map(|tag| tag.encoding().tag()).chain([STRATA_THIN.tag()]);
    let cell = |(at, (encoding, [forward, backward])): (usize, (Tag, [Vec<u8>; 2]))| {
        // Every other cell is of a later row, in which one UID in three has a record.
        let every = if at % 2 == 0 { 1 } else { 3 };
        let interval = Uid(FIRST)..Uid(FIRST + every * NODES as u64);
        let uids: Vec<Uid> = Uid::each(interval.clone()).step_by(usize::from(every == 3) * 2 + 1).collect();
        let label = Label {
            row: 1,
            partition: 0,
            encoding,
            first_uid: Uid(FIRST),
            urls: NODES as u64,
            first_record: interval.start,
            end_record: interval.end,
            in_range: RangeLength::Days(10),
            source: 0,
        };
        image::bytes_of(
            &label,
            &Counts::default(),
            [&urls, &numbers::encode(&uids, &interval), &forward, &backward, &[]],
        )
    };
    Ok(Samples {
        lists: all(&|tag| Ok(codec::encode(tag, &lists, Some(&keys))?))?,
        cells: encodings.zip(sides.chain([thin])).enumerate().map(cell).collect(),
        urls,
        forward,
        backward,
    })
}

fn url_key(at: usize) -> Vec<u8> {
    let mut url_key = Vec::new();
    key(&format!("http://host{}.example.org/{}/page{at:03}.html?x={}", at / 30, at / 9, at * at), &mut url_key);
    url_key
}

/// Numbers of this cell's URLs, and of some other URLs.
fn links(random: &mut Random, count: u64) -> Vec<u64> {
    let mut links: Vec<u64> = (0..count).map(|_| FIRST - 20 + random.below(NODES as u64 + 40)).collect();
    links.sort_unstable();
    links.dedup();
    links
}

/// Changes of all links but the first, at captures in `known`.
fn changes(random: &mut Random, links: usize, known: &[u32]) -> Vec<Change> {
    let mut changes = Vec::new();
    for link in (0u32..).take(links).skip(1) {
        let from = usize::try_from(random.below(2 * known.len() as u64)).unwrap_or(0);
        if let Some(&capture) = known.get(from).filter(|_| from > 0) {
            changes.extend([known[0], capture].map(|capture| Change { link, capture }));
            let gone = known.get(from + 1).filter(|_| random.below(2) == 0);
            changes.extend(gone.map(|&capture| Change { link, capture }));
        }
    }
    changes
}

fn pages() -> Vec<Page<u64>> {
    let mut random = Random::new(4);
    let mut all = Vec::new();
    for uid in (FIRST..FIRST + NODES as u64).filter(|uid| uid % 5 != 0) {
        // Some pages have more distinct captures than a mask has bits.
        let count = 1 + random.below(if uid % 9 == 0 { 150 } else { 12 });
        let step = if uid % 2 == 0 { 1 } else { 1 + random.below(5) };
        let timestamps: Vec<i64> = (0..count).map(|at| 86_400 * i64::try_from(at * step).unwrap_or(0)).collect();
        let blank: Vec<u32> = (1u32..).take(timestamps.len() - 1).filter(|_| random.below(10) == 0).collect();
        let known: Vec<u32> = (0u32..).take(timestamps.len()).filter(|at| !blank.contains(at)).collect();
        let count = random.below(if uid % 9 == 0 { 60 } else { 14 });
        let links = links(&mut random, count);
        let changes = changes(&mut random, links.len(), &known);
        all.push(Page { uid, timestamps, blank, links, changes, statuses: Vec::new() });
    }
    all
}

fn in_links() -> Vec<InLinks<u64>> {
    let mut random = Random::new(5);
    let mut all = Vec::new();
    for uid in (FIRST..FIRST + NODES as u64).filter(|uid| uid % 3 != 0) {
        let count = 1 + random.below(if uid % 7 == 0 { 90 } else { 10 });
        let ranges: Vec<i64> = (0..count).map(|at| 864_000 * i64::try_from(at).unwrap_or(0)).collect();
        let count = 1 + random.below(12);
        let sources = links(&mut random, count);
        let known: Vec<u32> = (0u32..).take(ranges.len()).collect();
        let changes = changes(&mut random, sources.len(), &known);
        all.push(InLinks { uid, ranges, sources, changes });
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_sound() {
        pages().iter().for_each(|page| assert_eq!(page.flaw(), None, "{page:?}"));
        assert!((0..NODES).all(|at| url_key(at).starts_with(DOMAIN)));
        in_links().iter().for_each(|record| assert_eq!(record.flaw(), None, "{record:?}"));
    }
}
