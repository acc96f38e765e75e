//! URLs: their form as [`reference`]s, its fingerprint ([`interner`]), and the urlkey of other tools ([`surt`]).

pub(crate) mod interner;
pub(crate) mod reference;
pub(crate) mod surt;
