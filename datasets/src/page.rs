//! Finds the links of a page: the [`charset`], the [`tags`], the open [`elements`], and the
//! attributes ([`html`]).

pub(crate) mod charset;
pub(crate) mod elements;
pub(crate) mod html;
pub(crate) mod tags;
