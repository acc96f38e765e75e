//! Fuzzes manifests of stores; see `layers/src/probe.rs` for what the input means.

#![no_main]

use libfuzzer_sys::fuzz_target;
use webstrata_layers::probe::manifest;

fuzz_target!(|input: &[u8]| {
    manifest(input);
});
