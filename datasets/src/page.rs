//! A page: its [`charset`], its [`tags`] ([`html`]), and the links of the [`document`].

pub(crate) mod charset;
pub(crate) mod document;
pub(crate) mod html;
pub(crate) mod tags;
