//! URLs: references and their length limit ([`reference`]), how references depend on their page ([`form`]), and
//! fingerprints ([`interner`]).

pub(crate) mod form;
pub(crate) mod interner;
pub(crate) mod reference;
