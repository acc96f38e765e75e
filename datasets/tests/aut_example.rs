//! The Archives Unleashed Toolkit's example crawl, against links found with a tree-building HTML parser.

mod shared;

use std::collections::{BTreeMap, BTreeSet};

use shared::{read_all, shared};
use url::Url;
use webstrata_datasets::{Capture, Finding, LinkKinds};

type Edges = BTreeSet<(i64, String, String)>;

#[test]
fn dump() {
    let (Some(file), Some(links)) =
        (shared("data/vectors/warc/aut-example.warc.gz"), shared("data/vectors/aut_example_warc_links.tsv"))
    else {
        return;
    };
    let (captures, _) = read_all(&file, LinkKinds::default());
    let mut expected: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut rows: BTreeMap<String, usize> = BTreeMap::new();
    for line in std::fs::read_to_string(links).unwrap().lines().skip(1) {
        let f: Vec<&str> = line.split('\t').collect();
        expected.entry(f[1].into()).or_default().insert(f[2].to_string());
        *rows.entry(f[1].into()).or_default() += 1;
    }
    for c in &captures {
        let page = Url::parse(&c.url).unwrap();
        let base = page.join(&c.base).unwrap_or(page.clone());
        let mine: BTreeSet<String> =
            c.links.iter().map(|l| base.join(l).map_or(format!("bad {l:?}"), String::from)).collect();
        let empty = BTreeSet::new();
        let theirs: BTreeSet<String> = expected
            .get(&c.url)
            .unwrap_or(&empty)
            .iter()
            .map(|l| page.join(l).map_or(format!("bad {l:?}"), String::from))
            .collect();
        if rows.get(&c.url).copied().unwrap_or(0) != c.links.len() || mine != theirs {
            println!("{} {} rows {:?} mine {} base {:?}", c.url, c.time, rows.get(&c.url), c.links.len(), c.base);
            for x in mine.difference(&theirs).take(5) {
                println!("   + {x}");
            }
            for x in theirs.difference(&mine).take(5) {
                println!("   - {x}");
            }
        }
    }
    println!("{} {}", captures.len(), expected.len());
}
