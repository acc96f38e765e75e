//! The protocol: messages ([`proto`]) and their memory (`measure`), the encoding of lists of links ([`gaps`]), errors
//! ([`status`]), backlinks ([`backlinks`]), and the tokens that continue paged answers (`resume`).

pub mod backlinks;
pub mod gaps;
pub(crate) mod measure;
pub mod proto;
pub(crate) mod resume;
pub mod status;
