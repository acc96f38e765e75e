//! One reader for each format.
//!
//! - Records of crawlers: `warc`, `arc` and `wat`, which share `record`, `http` and the rules of `document`.
//! - Tables of captures or links: `jsonl`, `links_file`, `aut_csv`, `lga`, `tables`.
//! - A web graph that names hosts by number: `cc_graph`.
//! - Indexes and logs that say which captures there are, and not their links: `index`.
//! - An archive of crawl files: `wacz`.

pub(crate) mod arc;
pub(crate) mod aut_csv;
pub(crate) mod cc_graph;
pub(crate) mod document;
pub(crate) mod http;
pub(crate) mod index;
pub(crate) mod jsonl;
pub(crate) mod lga;
pub(crate) mod links_file;
pub(crate) mod record;
pub(crate) mod tables;
pub(crate) mod wacz;
pub(crate) mod warc;
pub(crate) mod wat;
