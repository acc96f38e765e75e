//! What travels: the messages ([`proto`]), lists of links in them ([`gaps`]), how calls fail ([`status`]), and where
//! answers in parts go on (`resume`).

pub mod gaps;
pub mod proto;
pub(crate) mod resume;
pub mod status;
