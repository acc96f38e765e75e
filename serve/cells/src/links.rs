//! The links of a cell: what is asked of them ([`codec`] without time, [`encoding`] with it), and the encoding that
//! this crate has: [`strata`] for out-links, [`backward`] for in-links over strata.

pub mod backward;
pub mod codec;
pub mod encoding;
pub mod lists;
pub mod strata;
