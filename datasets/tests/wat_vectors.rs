//! The link extraction test of Common Crawl's WAT extractor: the same links from the same WARC.

#[cfg(test)]
mod reading;
#[cfg(test)]
#[path = "../../tests/src/shared.rs"]
mod shared;

use reading::read_all;
use shared::shared;
use webstrata_datasets::LinkKinds;

const ALL: LinkKinds = LinkKinds { anchors: true, redirects: true, embeds: true, outlinks: true, via: true };
const ANCHORS: [&str; 4] = ["A@/href", "AREA@/href", "FRAME@/src", "IFRAME@/src"];

#[test]
#[ignore = "needs the shared test data: WEBSTRATA_SHARED=DIR cargo test --test wat_vectors -- --ignored"]
fn links_of_every_record() {
    let (list, file) =
        (shared("data/vectors/wat_link_extraction.json"), shared("data/vectors/warc/link-extraction-test.warc"));
    let list: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(list).unwrap()).unwrap();
    let (anchors, _) = read_all(&file, LinkKinds::default());
    let (all, _) = read_all(&file, ALL);
    let records = list["records"].as_array().unwrap();
    assert_eq!((records.len(), anchors.len(), all.len()), (9, 9, 9));
    for ((record, anchors), all) in records.iter().zip(&anchors).zip(&all) {
        let links = record["links"].as_array().unwrap().iter();
        let links: Vec<_> = links.map(|link| (link["path"].as_str().unwrap(), link["url"].as_str().unwrap())).collect();
        let of = |wanted: &dyn Fn(&str) -> bool| -> Vec<&str> {
            links.iter().filter(|(path, _)| wanted(path)).map(|(_, url)| *url).collect()
        };
        let name = &record["name"];
        assert_eq!(anchors.links.iter().collect::<Vec<_>>(), of(&|path| ANCHORS.contains(&path)), "{name}");
        assert_eq!(all.base, of(&|path| path == "__base__").concat(), "{name}");
        // Scripts and style sheets are not read.
        let unread = |path: &str| path.ends_with("@/onclick") || path == "STYLE/#text" || path == "__base__";
        let mut expected = of(&|path| !unread(path));
        let mut found: Vec<_> = all.links.iter().collect();
        expected.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, expected, "{name}");
    }
}
