//! The library behind the Python package `webstrata`: only the parts that need Rust. The package around it, in
//! `webstrata/`, has the names that people call, and their documentation.
//!
//! | file | content |
//! |---|---|
//! | `command` | one command of the command line, in a separate thread, with progress and Ctrl-C |
//! | `graph` | a store or servers, asked about many URLs at a time |
//! | `table` | tables that other libraries read without a copy |
//! | `failed` | errors as exceptions |
//!
//! Every long call lets other threads of Python run, and ends soon after Ctrl-C.

#![cfg(feature = "extension")]

mod command;
mod failed;
mod graph;
mod table;

use pyo3::prelude::*;

#[pymodule]
mod _webstrata {
    #[pymodule_export]
    use super::command::{main, run};
    #[pymodule_export]
    use super::graph::Graph;
    #[pymodule_export]
    use super::table::Table;
}
