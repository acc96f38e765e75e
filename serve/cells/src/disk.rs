//! The images of cells on disk: [`load`] writes them from layers, [`shelf`] keeps those of a server, and [`check`]
//! compares those of a store with its layers. [`memory`] estimates the memory that writing a cell takes.
//! [`crate::image`] has the format of an image.

pub mod check;
pub mod load;
pub mod memory;
pub mod shelf;
