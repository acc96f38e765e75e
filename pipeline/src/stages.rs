//! The stages of a build and of an update, one a file, in this order:
//!
//! | stage | reads | writes |
//! |---|---|---|
//! | `ingest` | crawl files | captures by page, URL texts |
//! | `pages` | captures | pages with all their links, requests for fingerprints |
//! | `sources` | requests | how many pages link to each URL, and which are left out |
//! | `uids` (with `partition`) | URL texts | the layer of URLs; UIDs by fingerprint |
//! | `replace` | pages and UIDs by fingerprint | pages and links as UIDs |
//! | `outlinks` | pages | out-links, times, presence; in-links on their way |
//! | `inlinks` | in-links | the layers of in-links |
//! | `held` | links that were left out | the files of held links |
//!
//! `state` defines the state of a worker after each stage. `records`, `page_record`, `held` and `large_pages` define
//! how records are written between stages. `page_links` has the links of a page capture by capture.

pub(crate) mod held;
pub(crate) mod ingest;
pub(crate) mod inlinks;
pub(crate) mod large_pages;
pub(crate) mod outlinks;
pub(crate) mod page_links;
pub(crate) mod page_record;
pub(crate) mod pages;
pub(crate) mod partition;
pub(crate) mod records;
pub(crate) mod replace;
pub(crate) mod sources;
pub(crate) mod state;
pub(crate) mod uids;
