//! The images of cells on disk: [`load`] writes them from layers, [`shelf`] keeps those of a server, and [`check`]
//! compares those of a store with its layers. [`memory`] says how much memory a cell takes to write. [`crate::image`] has
//! the format of an image.

pub mod check;
pub mod load;
pub mod memory;
pub mod shelf;
