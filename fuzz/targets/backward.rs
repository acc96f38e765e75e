//! Fuzzes `Target::Backward`; see `serve/codecs/src/probe.rs` for what the input means.

#![no_main]

use libfuzzer_sys::fuzz_target;
use webstrata_codecs::probe::{Target, probe};

fuzz_target!(|input: &[u8]| {
    probe(Target::Backward, input);
});
