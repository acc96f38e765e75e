//! The file below a writer of Parquet.

use std::io::{self, Write};

/// A file that a writer of Parquet has until it is taken back.
///
/// `into_inner` of the writers turns an error of the last write into text, and a full disk could no longer be told from
/// damage. Their `finish` keeps the error, but not the file, so the file is taken from where it is.
///
/// ```
/// use parquet::file::properties::WriterProperties;
/// use parquet::{file::writer::SerializedFileWriter, schema::parser::parse_message_type};
/// use std::sync::Arc;
/// use webstrata_layers::Lent;
///
/// let schema = Arc::new(parse_message_type("message empty {}")?);
/// let mut writer = SerializedFileWriter::new(Lent::new(Vec::new()), schema, Arc::new(WriterProperties::new()))?;
/// writer.finish()?;
/// let bytes = writer.inner_mut().take()?;
/// assert!(bytes.ends_with(b"PAR1"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Lent<W>(Option<W>);

impl<W> Lent<W> {
    /// Lends a file.
    pub fn new(file: W) -> Self {
        Self(Some(file))
    }

    /// Takes the file back. Call it when the writer is finished: what is written later fails.
    ///
    /// # Errors
    /// If the file was taken back before.
    pub fn take(&mut self) -> io::Result<W> {
        self.0.take().ok_or_else(taken)
    }
}

impl<W: Write> Write for Lent<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.as_mut().ok_or_else(taken)?.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.as_mut().map_or(Ok(()), W::flush)
    }
}

fn taken() -> io::Error {
    io::Error::other("the file was taken back from its writer")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system_error;
    use arrow_array::{ArrayRef, RecordBatch, UInt64Array};
    use parquet::arrow::ArrowWriter;
    use parquet::errors::ParquetError;
    use std::sync::Arc;

    /// A disk that has room for so many bytes.
    struct Disk(usize);

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Writes a table on a disk; returns the bytes that are left.
    fn write(room: usize) -> Result<usize, ParquetError> {
        let values: ArrayRef = Arc::new(UInt64Array::from_iter_values((0..5000).map(|value| value * value * value)));
        let batch = RecordBatch::try_from_iter([("value", values)])?;
        let mut writer = ArrowWriter::try_new(Lent::new(Disk(room)), batch.schema(), None)?;
        writer.write(&batch)?;
        writer.finish()?;
        Ok(writer.inner_mut().take()?.0)
    }

    #[test]
    fn a_full_disk_is_told_wherever_it_is_full() {
        let needed = 1_000_000 - write(1_000_000).unwrap();
        assert!(needed > 20_000, "{needed}");
        assert_eq!(write(needed).unwrap(), 0);
        for room in (0..needed).step_by(97).chain([needed - 1]) {
            let error = system_error(write(room).unwrap_err()).unwrap();
            assert_eq!(error.kind(), io::ErrorKind::StorageFull, "{room}");
        }
    }
}
