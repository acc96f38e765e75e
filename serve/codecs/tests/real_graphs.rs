//! Every encoding gives the same lists as Link1 on real graphs and their transposes, and sizes are in the order that
//! the papers report. The graphs are `data/graphs` of the shared test data.

#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test says what it measures, and stops at the first surprise"
)]

#[path = "../../../tests/src/shared.rs"]
mod shared;

use shared::shared;
use std::collections::BTreeMap;
use webstrata_cells::links::codec::LinkCodec;
use webstrata_cells::links::lists::Lists;
use webstrata_cells::links::scratch::StoreScratch;
use webstrata_codecs::bench::transpose;
use webstrata_codecs::codec::{self, CodecTag, bv_files};

fn open(tag: CodecTag, lists: &Lists) -> Box<dyn LinkCodec> {
    codec::open(tag, codec::encode(tag, lists, None).unwrap().into()).unwrap()
}

/// The bits a link of each encoding.
fn sizes(name: &str, lists: &Lists) -> BTreeMap<&'static str, f64> {
    let plain = open(CodecTag::Link1, lists);
    let (mut wanted, mut links, mut bits) = (Vec::new(), Vec::new(), BTreeMap::new());
    let mut scratch = StoreScratch::default();
    for tag in CodecTag::ALL {
        let codec = open(tag, lists);
        codec
            .scan(&mut |node, links| {
                plain.list(node, &mut scratch, &mut wanted).unwrap();
                assert!(links == wanted, "{name}, {}, node {node} in order", tag.name());
            })
            .unwrap();
        // Nodes far from one another, so that no list is made from a list that was just read.
        for node in (0..lists.nodes()).map(|at| at * 7919 % lists.nodes()).step_by(7) {
            plain.list(node, &mut scratch, &mut wanted).unwrap();
            codec.list(node, &mut scratch, &mut links).unwrap();
            assert!(links == wanted, "{name}, {}, node {node}", tag.name());
        }
        let sizes = codec.sizes();
        bits.insert(tag.name(), (sizes.data + sizes.index + sizes.tables) as f64 * 8.0 / lists.links.len() as f64);
    }
    eprintln!("{name}: bits a link: {bits:.2?}");
    bits
}

fn compare(name: &str) {
    let forward = bv_files::import(&shared("data/graphs").join(name)).unwrap();
    let backward = transpose(&forward).unwrap();
    for (direction, lists) in [("forward", &forward), ("backward", &backward)] {
        let bits = sizes(&format!("{name}, {direction}"), lists);
        assert!(bits["link3"] < 6.0 && bits["link3"] < bits["link2"] && bits["link2"] < bits["link1"], "{bits:?}");
        assert!(bits["link3-huff"] < bits["link3"] && bits["shs-nybble"] < 16.0, "{bits:?}");
        assert!(bits["snode"] < 1.1 * bits["link3"], "{bits:?}");
    }
}

#[test]
#[ignore = "needs the shared test data: WEBSTRATA_SHARED=DIR cargo test --test real_graphs -- --ignored"]
fn every_encoding_gives_what_link1_gives_on_one_domain() {
    compare("cnr-2000");
}

#[test]
#[ignore = "needs the shared test data: WEBSTRATA_SHARED=DIR cargo test --test real_graphs -- --ignored"]
fn every_encoding_gives_what_link1_gives_on_many_hosts() {
    compare("uk-2007-05@100000");
}
