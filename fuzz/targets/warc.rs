//! Fuzzes crawl files as they are; see `datasets/src/probe.rs` for what the input means.

#![no_main]

use libfuzzer_sys::fuzz_target;
use webstrata_datasets::probe::crawl;

fuzz_target!(|input: &[u8]| {
    crawl(input);
});
