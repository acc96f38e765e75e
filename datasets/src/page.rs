//! Finds the links of a page: the [`charset`], the [`tags`], and the attributes ([`html`]).

pub(crate) mod charset;
pub(crate) mod html;
pub(crate) mod tags;
