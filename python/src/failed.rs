//! Errors as exceptions of the package, with the words of the command line.

use pyo3::prelude::*;
use webstrata_jobs::Failed;

/// The exception of an error.
pub(crate) fn exception(py: Python<'_>, failed: &Failed) -> PyErr {
    let name = match failed {
        Failed::Usage(_) => "UsageError",
        Failed::NotInStore(_) => "NotInStore",
        Failed::Other(_) => "Error",
    };
    let made = py.import("webstrata._errors").and_then(|errors| errors.getattr(name)?.call1((failed.to_string(),)));
    made.map_or_else(|error| error, PyErr::from_value)
}
