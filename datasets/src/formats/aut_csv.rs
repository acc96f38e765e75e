//! The web graph of the Archives Unleashed Toolkit and of ARCH as CSV. Each row is a link.
//!
//! The header is `crawl_date,src,dest,anchor` or `crawl_date, source, target, anchor_text`. Spaces and order do not
//! matter. Spark leaves the header out: then the columns are date, source, destination. Crawl dates have 8 or 14
//! digits. Consecutive rows with one source and date form one capture. The offset of damage counts bytes of the
//! uncompressed text.

use crate::capture::date::{self, Date};
use crate::capture::meaning::Seen;
use crate::files::detect::Head;
use crate::files::lines::broken;
use crate::{Capture, CaptureReader, Error, Finding, Tally};
use csv::{ByteRecord, ErrorKind, ReaderBuilder};
use std::io::BufRead;
use std::path::{Path, PathBuf};

pub(crate) fn open(text: Box<dyn BufRead + Send>, path: &Path) -> Box<dyn CaptureReader> {
    let rows = ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text);
    Box::new(WebgraphCsv {
        rows,
        path: path.to_owned(),
        columns: None,
        row: ByteRecord::new(),
        is_held: false,
        ended: false,
    })
}

struct WebgraphCsv {
    rows: csv::Reader<Box<dyn BufRead + Send>>,
    path: PathBuf,
    /// Where date, source and destination stand; none before the first row.
    columns: Option<[usize; 3]>,
    row: ByteRecord,
    /// `row` belongs to the next capture.
    is_held: bool,
    ended: bool,
}

impl CaptureReader for WebgraphCsv {
    fn read(&mut self, capture: &mut Capture, tally: &mut Tally) -> Result<bool, Error> {
        capture.clear();
        let mut is_begun = false;
        loop {
            if !std::mem::take(&mut self.is_held) && !self.read_row(tally)? {
                return Ok(is_begun && Seen::links().settle(false, capture, tally));
            }
            let Some(columns) = self.columns.or_else(|| self.begin(tally)) else { continue };
            match link(&self.row, columns) {
                Ok((date, source, link)) => {
                    if !is_begun {
                        is_begun = true;
                        capture.url.push_str(source);
                        capture.time = date.counted(tally);
                    } else if capture.time != date.seconds() || capture.url != source {
                        self.is_held = true;
                        return Ok(Seen::links().settle(false, capture, tally));
                    }
                    capture.links.push(link);
                }
                Err((finding, detail)) => self.damage(finding, detail, tally),
            }
        }
    }
}

impl WebgraphCsv {
    /// The next row that is not empty; `false` at the end, which a break in the compression also is.
    fn read_row(&mut self, tally: &mut Tally) -> Result<bool, Error> {
        if self.ended {
            return Ok(false);
        }
        match self.rows.read_byte_record(&mut self.row) {
            Ok(more) => self.ended = !more,
            Err(error) => {
                self.ended = true;
                match error.into_kind() {
                    ErrorKind::Io(error) => match broken(&error) {
                        Some(finding) => self.damage(finding, error.to_string(), tally),
                        None => return Err(Error::io(&self.path, error)),
                    },
                    other => self.damage(Finding::BadRow, format!("{other:?}"), tally),
                }
            }
        }
        Ok(!self.ended)
    }

    /// Learns the columns from the first row that has them. They are returned only where that row is no header but a
    /// link.
    fn begin(&mut self, tally: &mut Tally) -> Option<[usize; 3]> {
        let Some((columns, is_header)) = columns_of(&self.row) else {
            self.damage(Finding::BadRow, "the row is neither a header nor a link".to_owned(), tally);
            return None;
        };
        self.columns = Some(columns);
        Some(columns).filter(|_| !is_header)
    }

    fn damage(&self, finding: Finding, detail: String, tally: &mut Tally) {
        let position = self.row.position().map_or_else(|| self.rows.position().byte(), csv::Position::byte);
        tally.damage(finding, &self.path, position, detail);
    }
}

/// Where date, source and destination stand by a first row, and whether that row is a header.
fn columns_of(row: &ByteRecord) -> Option<([usize; 3], bool)> {
    let fields: Vec<String> =
        row.iter().map(|field| String::from_utf8_lossy(field).trim().to_ascii_lowercase()).collect();
    let index_of = |name: &str| fields.iter().position(|field| field.trim_start_matches('\u{feff}') == name);
    let indices =
        [index_of("crawl_date"), index_of("src").or(index_of("source")), index_of("dest").or(index_of("target"))];
    if let [Some(date), Some(source), Some(link)] = indices {
        return Some(([date, source, link], true));
    }
    let is_link = fields.len() >= 3 && date::parse(&fields[0]).is_some() && fields[1].contains("://");
    is_link.then_some(([0, 1, 2], false))
}

/// Whether a text begins with rows of such a table.
pub(crate) fn is_own(head: &Head<'_>) -> bool {
    let mut rows = ReaderBuilder::new().has_headers(false).flexible(true).from_reader(head.text);
    let mut row = ByteRecord::new();
    (0..ROWS_MAX).any(|_| rows.read_byte_record(&mut row).is_ok_and(|more| more && columns_of(&row).is_some()))
}

/// Rows that [`is_own`] looks at.
const ROWS_MAX: usize = 3;

/// Date, source and destination of a row.
fn link(row: &ByteRecord, columns: [usize; 3]) -> Result<(Date, &str, &str), (Finding, String)> {
    let field = |column: usize| {
        let field = row
            .get(columns[column])
            .ok_or_else(|| (Finding::BadRow, format!("the row has only {} fields", row.len())))?;
        std::str::from_utf8(field).map(str::trim).map_err(|error| (Finding::BadRow, error.to_string()))
    };
    let [date, source, link] = [field(0)?, field(1)?, field(2)?];
    let date = date::parse(date).ok_or_else(|| (Finding::BadDate, date.to_owned()))?;
    if source.is_empty() {
        return Err((Finding::BadRow, "no source".to_owned()));
    }
    Ok((date, source, link))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn read_all(text: &str) -> (Vec<String>, Tally) {
        let mut reader = open(Box::new(Cursor::new(text.as_bytes().to_vec())), Path::new("x.csv"));
        let (mut captures, mut capture, mut tally) = (Vec::new(), Capture::default(), Tally::default());
        while reader.read(&mut capture, &mut tally).unwrap() {
            let links: Vec<&str> = capture.links.iter().collect();
            captures.push(format!("{} {} {}", capture.url, capture.time, links.join("|")));
        }
        (captures, tally)
    }

    #[test]
    fn headers_of_both_tools_and_none() {
        let rows = "20080430204826,http://a/,x,\"an \"\"anchor\"\", long\"\n20080430204826,http://a/,\"y,z\",\n\
            20080501,http://a/,x,\n20080501,http://b/,x,\n";
        for header in ["crawl_date,src,dest,anchor\n", "crawl_date, source, target, anchor_text\r\n", ""] {
            let (captures, tally) = read_all(&format!("{header}{rows}"));
            assert_eq!(captures, ["http://a/ 1209588506 x|y,z", "http://a/ 1209600000 x", "http://b/ 1209600000 x"]);
            assert_eq!((tally.of(Finding::CoarserDate), tally.counts().count()), (2, 1));
        }
        assert_eq!(read_all("dest,crawl_date,src\nx,20080501,http://a/").0, ["http://a/ 1209600000 x"]);
    }

    #[test]
    fn damage_is_counted_where_it_stands() {
        let (captures, tally) = read_all(
            "crawl_date,src,dest\n20080501,http://a/,x\n20080501,http://a/\n\
             soon,http://a/,y\n20080501,,y\n20080501,http://a/,z\n",
        );
        assert_eq!(captures, ["http://a/ 1209600000 x|z"]);
        assert_eq!((tally.of(Finding::BadRow), tally.of(Finding::BadDate), tally.damaged()), (2, 1, 3));
        let offsets: Vec<u64> = tally.examples().iter().map(|example| example.offset).collect();
        assert_eq!(offsets, [60, 41, 77]);
        let (captures, tally) = read_all("crawl_data,src,dest\n20080501,http://a/,x\n");
        assert_eq!((captures.len(), tally.of(Finding::BadRow), tally.damaged()), (1, 1, 1));
    }
}
