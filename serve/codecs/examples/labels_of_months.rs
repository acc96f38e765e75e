//! Writes the links of a store in WebGraph's BV format with a label each, the captures of a year in which the page has
//! the link, and compares all lists and labels that the files give back: `cargo run --release --features webgraph
//! --example labels_of_months STORE`.
//!
//! The store has one row, whose captures have at most twelve times. Lists are compressed as `z(16,3)`. A label is a
//! mask of twelve bits in a Huffman code of all masks of the store, in the bit stream of labels of the crate. Files of
//! `.ef` have the places of lists and of labels, which random access needs. Prints sizes in bits a link. Memory: the
//! graph as arrays.

#![expect(clippy::print_stdout, reason = "an example prints what it finds")]

use std::collections::{BTreeSet, HashMap};
use std::fs::metadata;
use std::path::Path;

use dsi_bitstream::prelude::{BE, BitRead, BitWrite};
use dsi_progress_logger::no_logging;
use webgraph::graphs::bvgraph::{BvCompConf, BvCompZ, BvGraph, CompFlags, store_ef_with_data};
use webgraph::graphs::vec_graph::LabeledVecGraph;
use webgraph::labels::{BitStreamLabeling, BitStreamStoreLabelsConf};
use webgraph::traits::{BitDeserializer, BitSerializer, RandomAccessLabeling};
use webstrata_cells::coding::bits::{BitReader, BitWriter};
use webstrata_cells::coding::huffman::{BITS_MAX, Code, SYMBOLS_MAX};
use webstrata_layers::record::presence;
use webstrata_layers::{Links, Reader, Store};

type Failed = Box<dyn std::error::Error>;

/// A code of masks: the bits of each mask, the first bit highest, and their number.
#[derive(Clone)]
struct Masks {
    codes: Vec<(u64, u32)>,
    masks: HashMap<(u64, u32), u16>,
}

impl Masks {
    /// The best code for masks that occur this often, and the bits that its own table takes.
    fn fit(counts: &[u64]) -> (Self, usize) {
        let code = Code::fit(counts, BITS_MAX);
        let mut codes = vec![(0, 0); counts.len()];
        let mut masks = HashMap::new();
        for mask in (0u16..).zip(counts).filter(|&(_, &count)| count > 0).map(|(mask, _)| mask) {
            let mut out = BitWriter::default();
            code.write(mask.into(), &mut out);
            let count = code.bits(mask.into());
            let bytes = out.into_bytes();
            let mut bits = BitReader::new(&bytes, 0);
            let word = (0..count).fold(0, |word, _| word << 1 | bits.read(1));
            codes[usize::from(mask)] = (word, count);
            masks.insert((word, count), mask);
        }
        let mut table = BitWriter::default();
        code.store(&mut table);
        (Masks { codes, masks }, table.into_bytes().len() * 8)
    }
}

impl<W: BitWrite<BE>> BitSerializer<BE, W> for Masks {
    type SerType = u16;

    fn serialize(&self, mask: &u16, bits: &mut W) -> Result<usize, W::Error> {
        let (word, count) = self.codes[usize::from(*mask)];
        bits.write_bits(word, count as usize)
    }

    fn name(&self) -> String {
        "Masks".to_owned()
    }
}

impl<R: BitRead<BE>> BitDeserializer<BE, R> for Masks {
    type DeserType = u16;

    fn deserialize(&self, bits: &mut R) -> Result<u16, R::Error> {
        let (mut word, mut count) = (0, 0);
        while count < BITS_MAX {
            word = word << 1 | bits.read_bits(1)?;
            count += 1;
            if let Some(&mask) = self.masks.get(&(word, count)) {
                return Ok(mask);
            }
        }
        Ok(0)
    }

    fn name(&self) -> String {
        "Masks".to_owned()
    }
}

/// The links of all pages, each with its mask of captures, by node.
fn read(store: &Path) -> Result<Vec<Vec<(usize, u16)>>, Failed> {
    let reader = Reader::new(Store::open(store)?, 1 << 30);
    let uids = reader.row_uids(0);
    let (mut pages, mut times) = (Vec::new(), BTreeSet::new());
    for record in reader.row_pages(0, uids) {
        let (page, _) = record?;
        times.extend(page.timestamps.iter().copied());
        pages.push(page);
    }
    if reader.rows() != 1 || times.len() > 12 {
        return Err(format!(
            "{} has {} rows and {} times of captures: merge its rows, and take a store with at most 12 times",
            store.display(),
            reader.rows(),
            times.len()
        )
        .into());
    }
    let times: Vec<i64> = times.into_iter().collect();
    let mut lists = vec![Vec::new(); usize::try_from(reader.urls())?];
    for page in pages {
        let mut masks = vec![0u16; page.links.len()];
        for (at, time) in (0u32..).zip(&page.timestamps) {
            let month = times.partition_point(|other| other < time);
            for link in presence::in_any(&page.changes, page.links.len(), at, at) {
                masks[link as usize] |= 1 << month;
            }
        }
        let links = page.links.iter().map(|link| usize::try_from(link.0));
        lists[usize::try_from(page.uid.0)?] =
            links.zip(masks).map(|(link, mask)| Ok((link?, mask))).collect::<Result<_, std::num::TryFromIntError>>()?;
    }
    Ok(lists)
}

fn main() -> Result<(), Failed> {
    let store = std::env::args_os().nth(1).ok_or("usage: labels_of_months STORE")?;
    let lists = read(Path::new(&store))?;
    let mut counts = vec![0; 1 << 12];
    assert!(counts.len() <= SYMBOLS_MAX, "a code of all masks");
    lists.iter().flatten().for_each(|&(_, mask)| counts[usize::from(mask)] += 1);
    let links: u64 = counts.iter().sum();
    if links == 0 {
        return Err("the store has no links to compress".into());
    }
    let a_link = |bits: u64| bits as f64 / links as f64;
    let entropy: f64 = counts
        .iter()
        .filter(|&&count| count > 0)
        .map(|&count| {
            let share = a_link(count);
            -share * share.log2()
        })
        .sum();
    let (masks, table_bits) = Masks::fit(&counts);

    let directory = tempfile::tempdir()?;
    let basename = directory.path().join("links");
    let mut graph = LabeledVecGraph::empty(lists.len());
    let arcs =
        lists.iter().enumerate().flat_map(|(page, list)| list.iter().map(move |&(link, mask)| ((page, link), mask)));
    graph.add_arcs(arcs);
    let flags = CompFlags { compression_window: 16, max_ref_count: 3, ..CompFlags::default() };
    let stored = BitStreamStoreLabelsConf::<BE, _>::new(masks.clone());
    BvCompZ::with_basename(&basename).comp_flags(flags).comp_labeled_graph::<BE, _, _>(&graph, stored)?;
    let labels = BvCompConf::default_labels_basename(&basename);
    let (graph_file, labels_file) = (basename.with_extension("graph"), labels.with_extension("labels"));
    for (basename, data) in [(&basename, &graph_file), (&labels, &labels_file)] {
        let [offsets, places] = ["offsets", "ef"].map(|extension| basename.with_extension(extension));
        store_ef_with_data(lists.len(), data, offsets, places, no_logging![])?;
    }

    let read_links = BvGraph::with_basename(&basename).endianness::<BE>().load()?;
    let read_labels = BitStreamLabeling::<BE, _, _, _>::load(&labels, masks)?;
    for (page, list) in lists.iter().enumerate() {
        let found =
            RandomAccessLabeling::labels(&read_links, page).zip(RandomAccessLabeling::labels(&read_labels, page));
        assert!(found.eq(list.iter().copied()), "other links or labels of node {page}");
    }
    let bits = |file: &Path| Ok::<u64, Failed>(8 * metadata(file)?.len());
    let (lists_bits, list_places) = (bits(&graph_file)?, bits(&basename.with_extension("ef"))?);
    let (labels_bits, label_places) = (bits(&labels_file)? + table_bits as u64, bits(&labels.with_extension("ef"))?);
    println!("{links} links, labels with an entropy of {entropy:.3} bits; bits a link:");
    println!("lists {:.3}, their places {:.3}", a_link(lists_bits), a_link(list_places));
    println!("labels {:.3}, their places {:.3}", a_link(labels_bits), a_link(label_places));
    println!("together {:.3}", a_link(lists_bits + list_places + labels_bits + label_places));
    Ok(())
}
