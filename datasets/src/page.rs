//! Finds the links of a page: the [`charset`], the [`tags`], the attributes ([`html`]), and the rules for responses
//! ([`document`]).

pub(crate) mod charset;
pub(crate) mod document;
pub(crate) mod html;
pub(crate) mod tags;
