//! What tools for web archives ask: captures as a CDX server lists them (`/cdx`), and mementos (`/timemap/...`,
//! `/timegate/...`). Both mean a page by any spelling of its URL, as archives do.

pub(super) mod cdx;
pub(super) mod memento;
