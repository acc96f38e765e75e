//! The protocol: messages ([`proto`]) and their memory (`measure`), the values in them ([`values`], [`backlinks`]), the
//! encoding of lists of links ([`gaps`]), errors ([`status`]) in the protocol of the caller ([`refusal`]), and the
//! tokens that continue paged answers (`resume`).

pub mod backlinks;
pub mod gaps;
pub(crate) mod measure;
pub mod proto;
pub mod refusal;
pub(crate) mod resume;
pub mod status;
pub mod values;
