//! Fuzzes compressed crawl files; see `datasets/src/probe.rs` for what the input means.

#![no_main]

use libfuzzer_sys::fuzz_target;
use webstrata_datasets::probe::gzip;

fuzz_target!(|input: &[u8]| {
    gzip(input);
});
