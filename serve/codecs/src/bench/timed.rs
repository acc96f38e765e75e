//! Encodings of a store's links with time: the tables of a graph, and the size of each encoding as a link store of a
//! cell.
//!
//! All partitions of the store are one cell here, in memory, and the records of several rows are joined. The union of
//! links over all captures is measured like a graph. Then every encoding holds the records with their times too (see
//! [`webstrata_cells::links::encoding`]), and must give back each record as in the layers before its bytes are counted.

use std::fmt::Debug;

use webstrata_layers::read::scan;
use webstrata_layers::record::join;
use webstrata_layers::{InLinks, Layer, Page, Store, Uid};

use crate::codec::CodecTag;
use webstrata_cells::disk::load::keys_of;
use webstrata_cells::links::encoding::{CellShape, Records};
use webstrata_cells::links::lists::Lists;
use webstrata_cells::{Damage, Error, Node, Number};

use super::{BenchError, Step, Table, Tell, measure};

/// Measures all encodings on the links of a store and on its in-links.
///
/// # Errors
/// Layers that cannot be read, and an encoding that fails or answers wrongly.
pub fn measure_store(name: &str, store: &Store, tell: Tell<'_>) -> Result<[Table; 2], BenchError> {
    let counts = store.manifest().counts;
    let nodes = usize::try_from(counts.urls).unwrap_or(usize::MAX);
    let partitions = || store.manifest().rows.iter().flat_map(|row| &row.partitions);
    let with = |layer| partitions().filter(move |partition| partition.file(layer).is_some_and(|file| file.rows > 0));
    let pages = with(Layer::Ol).flat_map(|partition| scan::pages(store, partition));
    let pages = pages.collect::<Result<Vec<_>, _>>().map_err(Error::from)?;
    let pages = together(pages, |page| page.uid, |rows| join::pages(rows).map(|joined| joined.page));
    // All URLs are in one cell, so each UID is its own number.
    let pages: Vec<_> = pages.into_iter().map(|page| page.renumbered(|uid| Number(uid.0))).collect();
    let sources = with(Layer::Il).flat_map(|partition| scan::in_links(store, partition));
    let sources = sources.collect::<Result<Vec<_>, _>>().map_err(Error::from)?;
    let sources = together(sources, |record| record.uid, join::in_links);
    let sources: Vec<_> = sources.into_iter().map(|record| record.renumbered(|uid| Number(uid.0))).collect();

    let keys = partitions().filter(|partition| partition.urls > 0).flat_map(|partition| keys_of(store, partition));
    // With several rows, keys are in order within each row only.
    let keys = (store.manifest().rows.len() == 1).then(|| keys.collect::<Result<Vec<_>, _>>()).transpose()?;
    let keys = keys.as_deref();
    let shape = CellShape { first: Number(0), nodes, keys };

    let lists = union(nodes, pages.iter().map(|page| (page.uid, &page.links[..])));
    let mut forward = measure(&format!("{name}, forward"), &lists, keys, tell)?;
    let again = || -> Records<'_, Page<Number>> { Box::new(pages.iter().cloned().map(Ok)) };
    let encode = |tag: CodecTag| tag.encoding().encode_forward(shape, (pages.len(), &again));
    let compare = |tag: CodecTag, bytes: Vec<u8>| {
        let links = tag.encoding().open_forward(&bytes.into(), Number(0), nodes)?;
        differing(nodes, pages.iter().map(|page| (page.uid, page)), |node| links.page(node))
    };
    with_time(&mut forward, counts.occurrences, encode, compare, tell)?;

    let lists = union(nodes, sources.iter().map(|record| (record.uid, &record.sources[..])));
    let mut backward = measure(&format!("{name}, backward"), &lists, keys, tell)?;
    let again = || -> Records<'_, InLinks<Number>> { Box::new(sources.iter().cloned().map(Ok)) };
    let encode = |tag: CodecTag| tag.encoding().encode_backward(shape, (sources.len(), &again));
    let compare = |tag: CodecTag, bytes: Vec<u8>| {
        let links = tag.encoding().open_backward(&bytes.into(), Number(0), nodes)?;
        differing(nodes, sources.iter().map(|record| (record.uid, record)), |node| links.record(node))
    };
    with_time(&mut backward, counts.occurrences, encode, compare, tell)?;
    Ok([forward, backward])
}

/// Joins the records of each URL. Records come by row, the oldest row first; the result is in order of UIDs.
fn together<T>(mut records: Vec<T>, uid: impl Fn(&T) -> Uid, join: impl Fn(&[&T]) -> Option<T>) -> Vec<T> {
    if records.is_sorted_by(|one, other| uid(one) < uid(other)) {
        return records;
    }
    records.sort_by_key(|record| uid(record));
    let of_one = records.chunk_by(|one, other| uid(one) == uid(other));
    of_one.filter_map(|rows| join(&rows.iter().collect::<Vec<_>>())).collect()
}

/// The lists of all nodes.
fn union<'a>(nodes: usize, records: impl Iterator<Item = (Number, &'a [Number])>) -> Lists {
    let mut lists = Lists::default();
    for (Number(node), links) in records {
        while (lists.nodes() as u64) < node {
            lists.push(&[]);
        }
        lists.push(&links.iter().copied().map(u64::from).collect::<Vec<_>>());
    }
    while lists.nodes() < nodes {
        lists.push(&[]);
    }
    lists
}

/// The first node with a record that differs from the expected one.
fn differing<'a, T: PartialEq + Debug + 'a>(
    nodes: usize,
    records: impl Iterator<Item = (Number, &'a T)>,
    record: impl Fn(Node) -> Result<Option<T>, Damage>,
) -> Result<Option<usize>, Damage> {
    let mut records = records.peekable();
    for (node, number) in (0..nodes).zip((0u64..).map(Number)) {
        let expected = records.next_if(|&(at, _)| at == number).map(|(_, record)| record);
        if record(Node(node))?.as_ref() != expected {
            return Ok(Some(node));
        }
    }
    Ok(None)
}

/// Adds to a table the bytes of each of its encodings with time.
fn with_time(
    table: &mut Table,
    occurrences: u64,
    encode: impl Fn(CodecTag) -> Result<Vec<u8>, Error>,
    compare: impl Fn(CodecTag, Vec<u8>) -> Result<Option<usize>, Damage>,
    tell: Tell<'_>,
) -> Result<(), BenchError> {
    table.occurrences = Some(occurrences);
    let tagged = table.rows.iter_mut().filter_map(|row| Some((CodecTag::from_name(&row.codec)?, row)));
    let tagged: Vec<_> = tagged.collect();
    let count = tagged.len();
    for (number, (tag, row)) in (1..).zip(tagged) {
        tell(Step { graph: &table.graph, codec: &row.codec, with_time: true, number, count });
        let bytes = encode(tag)?;
        row.timed_bytes = Some(bytes.len() as u64);
        let differs = compare(tag, bytes).map_err(|source| BenchError::Damage { codec: row.codec.clone(), source })?;
        if let Some(node) = differs {
            return Err(BenchError::Differs { codec: row.codec.clone(), node });
        }
    }
    Ok(())
}
