//! The requests of tools for web archives: captures as a CDX server lists them (`/cdx`), and mementos (`/timemap/...`,
//! `/timegate/...`). In both, any spelling of a URL names the page, as in archives.

pub(super) mod cdx;
pub(super) mod memento;
