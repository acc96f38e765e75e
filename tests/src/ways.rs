//! Runs the same suite over every way to ask a store: its layers, its cells, a server, a cluster of five, HTTP.
//!
//! Reads a store directory and its oracle, and writes cells beside the layers. Cost: some calls a question.

use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use webstrata_cells::Encoding;
use webstrata_cells::links::encoding::STRATA_THIN;
use webstrata_codecs::CodecTag;
use webstrata_layers::Uid;

use crate::clusters::{Cluster, Shape};
use crate::crawls::Random;
use crate::oracle::Oracle;
use crate::served::{Served, parameters};
use crate::stores::{cells_of, reader, windows};
use crate::suite::{Known, Way};

/// Asks a store in every way.
///
/// # Panics
/// At the first answer that differs.
pub fn ask(name: &str, store: &Path, oracle: &Oracle, questions: u64, seed: u64) {
    let layers = reader(store);
    let known = Known { oracle, layers: &layers };
    Way { name: &format!("{name}: layers"), links: &layers, has_records: true }.answers(&known, questions, seed);
    let cells = cells_of(store, CodecTag::Strata);
    Way { name: &format!("{name}: cells"), links: &cells, has_records: true }.answers(&known, questions, seed);
    let one = Cluster::start(store, Shape::default());
    Way { name: &format!("{name}: a server"), links: &one.clerk(), has_records: true }.answers(
        &known,
        questions,
        seed + 1,
    );
    drop(one);
    let cells = cells_of(store, &STRATA_THIN as &dyn Encoding);
    let thin = Way { name: &format!("{name}: thin cells"), links: &cells, has_records: true };
    thin.answers(&known, questions, seed + 3);
    // The servers take the cells beside the layers, so pages on other servers decide about thin in-links.
    let five = Cluster::start(store, Shape { servers: 5, ..Shape::default() });
    Way { name: &format!("{name}: a cluster"), links: &five.clerk(), has_records: true }.answers(
        &known,
        questions,
        seed + 2,
    );
    drop(five);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(over_http(name, store, &known, questions, seed));
}

/// Asks over HTTP with question lines, up to 1,000 at a time.
async fn over_http(name: &str, store: &Path, known: &Known<'_>, questions: u64, seed: u64) {
    let served = Served::start(store, 1 << 24).await;
    let mut random = Random(seed + 4);
    let mut left = questions;
    while left > 0 {
        let count = left.min(1000);
        left -= count;
        let (mut text, mut right) = (String::new(), Vec::new());
        for id in 0..count {
            let url = known.layers.url(Uid(random.below(known.layers.urls()))).expect("layers");
            let all = windows(known.oracle, &url);
            let when = *random.pick(&all);
            let is_in = random.once_in(2);
            let mut question =
                json!({"id": id, "op": "links", "url": url, "direction": if is_in { "in" } else { "out" }});
            if let (Some(fields), Value::Object(window)) = (question.as_object_mut(), parameters(when).1) {
                fields.extend(window);
            }
            text.push_str(&format!("{question}\n"));
            let links = if is_in { known.oracle.in_links(&url, when) } else { known.oracle.out_links(&url, when) };
            right.push((links, !is_in && known.oracle.is_unknown(&url, when), question));
        }
        let answers = served.query(text).await;
        assert_eq!(answers.len(), right.len());
        for (answer, (links, unknown, question)) in answers.iter().zip(right) {
            let own: BTreeSet<&str> =
                answer["links"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            assert_eq!((own, answer["unknown"] == json!(true)), (links, unknown), "{name}: HTTP: {question}");
        }
    }
}
