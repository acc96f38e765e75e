//! The links of a cell: the interfaces of encodings without time ([`codec`]) and with time ([`encoding`]), and the
//! encoding of this crate: [`strata`] for out-links, and [`backward`] or [`thin`] for in-links on top of strata.

pub mod backward;
pub mod codec;
pub mod encoding;
pub mod lists;
pub mod scratch;
pub mod strata;
pub mod thin;
