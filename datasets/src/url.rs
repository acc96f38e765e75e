//! URLs: references and their length limit ([`reference`]), and fingerprints ([`interner`]).

pub(crate) mod interner;
pub(crate) mod reference;
