//! The protocol: messages ([`proto`]), the encoding of lists of links ([`gaps`]), errors ([`status`]), backlinks
//! ([`backlinks`]), and the tokens that continue paged answers (`resume`).

pub mod backlinks;
pub mod gaps;
pub mod proto;
pub(crate) mod resume;
pub mod status;
