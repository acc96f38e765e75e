//! URLs: their [`canonical`] form, its fingerprint ([`interner`]), and the urlkey of other tools ([`surt`]).

pub(crate) mod canonical;
pub(crate) mod interner;
pub(crate) mod surt;
