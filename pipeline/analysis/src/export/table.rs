//! Tables of exports: how each table begins, and columns that several tables have.

use super::{Export, Format, Stream};
use crate::Error;
use crate::outlet::Outlet;
use crate::table::{TableFormat, TableWriter};
use arrow_schema::Field;
use webstrata_layers::{AsOf, Links, Window, format_time};

/// The number of rows that are written at a time, so that no column of texts becomes too long.
pub(super) const CHUNK: usize = 1 << 13;

/// Begins the table of an export.
pub(super) fn create<'a>(
    export: &Export<'_>,
    stream: &'a mut Stream,
    columns: Vec<Field>,
) -> Result<TableWriter<'a>, Error> {
    let options = export.options;
    let format = match options.format {
        Format::Csv => TableFormat::Csv,
        Format::Arrow => TableFormat::Arrow,
        _ => TableFormat::Parquet,
    };
    let about = [
        ("webstrata.what", options.what.to_string()),
        ("webstrata.epoch", export.reader.epoch().to_string()),
        ("webstrata.window", in_words(options.window)),
    ];
    TableWriter::create(Outlet::open(&options.target, stream)?, format, columns, &about)
}

/// Writes closed intervals of time in the notation of Gephi.
pub(super) fn intervals(stretches: impl Iterator<Item = (i64, i64)>) -> String {
    let stretches: Vec<_> =
        stretches.map(|(first, last)| format!("[{}, {}]", format_time(first), format_time(last))).collect();
    format!("<{}>", stretches.join("; "))
}

/// Describes a window in words.
pub(super) fn in_words(window: Window) -> String {
    match window {
        Window::AsOf(AsOf { time, .. }) => format!("as of {}", format_time(time)),
        Window::ALWAYS => "always".to_owned(),
        Window::Seen { from: i64::MIN, to } => format!("to {}", format_time(to)),
        Window::Seen { from, to: i64::MAX } => format!("from {}", format_time(from)),
        Window::Seen { from, to } => format!("from {} to {}", format_time(from), format_time(to)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_as_other_tools_write_them() {
        assert_eq!(intervals([(0, 1), (60, 60)].into_iter()).matches("; ").count(), 1);
        assert_eq!(intervals([(0, 1)].into_iter()), "<[1970-01-01T00:00:00Z, 1970-01-01T00:00:01Z]>");
        assert_eq!(in_words(Window::ALWAYS), "always");
        assert_eq!(in_words(Window::as_of(0)), "as of 1970-01-01T00:00:00Z");
    }
}
