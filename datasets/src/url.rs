//! URLs: references and their length limit ([`reference`]), fingerprints ([`interner`]), and urlkeys ([`surt`]).

pub(crate) mod interner;
pub(crate) mod reference;
pub(crate) mod surt;
