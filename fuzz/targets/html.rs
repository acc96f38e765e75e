//! Fuzzes the HTML of a page; see `datasets/src/probe.rs` for what the input means.

#![no_main]

use libfuzzer_sys::fuzz_target;
use webstrata_datasets::probe::page;

fuzz_target!(|input: &[u8]| {
    page(input);
});
