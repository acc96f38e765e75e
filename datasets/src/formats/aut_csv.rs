//! The web graph of the Archives Unleashed Toolkit and of ARCH as CSV, with commas or tabs. Each row is a link.
//!
//! The header is `crawl_date,src,dest,anchor` or `crawl_date, source, target, anchor_text`. Spaces and order do not
//! matter. Spark leaves the header out: then the columns are date, source, destination. Crawl dates have 8 or 14
//! digits. Consecutive rows with one source and date form one capture. The offset of damage counts bytes of the
//! uncompressed text.
//!
//! Memory: three fields of a row, each cut after [`TEXT_BYTES_MAX`] bytes. The reader passes over the other fields.

use crate::capture::date::{self, Date};
use crate::capture::meaning::Seen;
use crate::files::head::Head;
use crate::files::lines::broken;
use crate::url::reference::{TEXT_BYTES_MAX, cut_to_text};
use crate::{Capture, CaptureReader, Error, Finding, Tally};
use csv_core::ReadFieldResult;
use std::borrow::Cow;
use std::io::{self, BufRead};
use std::path::{Path, PathBuf};
use webstrata_url::spelt;

pub(crate) fn open(text: Box<dyn BufRead + Send>, path: &Path) -> Box<dyn CaptureReader> {
    let mut text = text;
    // An error comes again when the rows are read.
    let delimiter = text.fill_buf().map_or(b',', delimiter);
    let rows = Rows::new(text, delimiter);
    Box::new(WebgraphCsv { rows, path: path.to_owned(), columns: None, is_held: false, ended: false })
}

struct WebgraphCsv {
    rows: Rows<Box<dyn BufRead + Send>>,
    path: PathBuf,
    /// The columns of date, source and destination; `None` before the first row.
    columns: Option<[usize; 3]>,
    /// Whether the row at hand belongs to the next capture.
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
            match self.rows.row.link(columns) {
                Ok((date, source, link)) => {
                    if !is_begun {
                        is_begun = true;
                        capture.url.push_str(&source);
                        capture.time = date.counted(tally);
                    } else if capture.time != date.seconds() || capture.url != source {
                        self.is_held = true;
                        return Ok(Seen::links().settle(false, capture, tally));
                    }
                    capture.links.push(&link);
                }
                Err((finding, detail)) => self.damage(finding, detail, tally),
            }
        }
    }
}

impl WebgraphCsv {
    /// Reads the next row that is not empty. Returns `false` at the end, and also where the compression is broken.
    fn read_row(&mut self, tally: &mut Tally) -> Result<bool, Error> {
        if self.ended {
            return Ok(false);
        }
        match self.rows.read(self.columns.as_ref()) {
            Ok(more) => self.ended = !more,
            Err(error) => {
                self.ended = true;
                match broken(&error) {
                    Some(finding) => self.damage(finding, error.to_string(), tally),
                    None => return Err(Error::io(&self.path, error)),
                }
            }
        }
        Ok(!self.ended)
    }

    /// Learns the columns from the first row that has them. Returns the columns if that row is a link, and `None` if it
    /// is a header.
    fn begin(&mut self, tally: &mut Tally) -> Option<[usize; 3]> {
        let Some((columns, is_header)) = self.rows.row.columns() else {
            self.damage(Finding::BadRow, "the row is neither a header nor a link".to_owned(), tally);
            return None;
        };
        self.columns = Some(columns);
        Some(columns).filter(|_| !is_header)
    }

    fn damage(&self, finding: Finding, detail: String, tally: &mut Tally) {
        tally.damage(finding, &self.path, self.rows.row.offset, detail);
    }
}

/// Rows of CSV as a stream, one row at a time.
struct Rows<R> {
    text: R,
    parser: csv_core::Reader,
    row: Row,
    /// The number of bytes that were read of the text.
    offset: u64,
}

/// The kept fields of a row.
#[derive(Default)]
struct Row {
    bytes: Vec<u8>,
    /// Where each kept field ends in `bytes`.
    ends: Vec<usize>,
    /// The number of all fields, kept or not.
    fields: usize,
    /// Where the row begins in the text.
    offset: u64,
}

/// The date, the source and the destination of a row.
type Link<'a> = (Date, Cow<'a, str>, Cow<'a, str>);

/// The number of fields that are kept of a row while the columns are unknown. A header names the columns among them.
const FIELDS_MAX: usize = 64;
/// The number of bytes that are kept of each field after the first three: more than the name of a column has.
const NAME_BYTES_MAX: usize = 32;
/// The most bytes of a field that are parsed at once.
const PIECE_BYTES: usize = 8 << 10;

impl<R: BufRead> Rows<R> {
    fn new(text: R, delimiter: u8) -> Self {
        let parser = csv_core::ReaderBuilder::new().delimiter(delimiter).build();
        Rows { text, parser, row: Row::default(), offset: 0 }
    }

    /// Reads the next row that is not empty, and returns `false` at the end. Keeps the fields of the columns, or the
    /// first [`FIELDS_MAX`] fields if the columns are unknown.
    fn read(&mut self, columns: Option<&[usize; 3]>) -> io::Result<bool> {
        let Rows { text, parser, row, offset } = self;
        row.clear(*offset);
        let mut piece = [0; PIECE_BYTES];
        loop {
            let input = text.fill_buf()?;
            let (result, read, written) = parser.read_field(input, &mut piece);
            text.consume(read);
            *offset += read as u64;
            let kept_max = match columns {
                Some(columns) if columns.contains(&row.fields) => TEXT_BYTES_MAX,
                None if row.fields < 3 => TEXT_BYTES_MAX,
                None if row.fields < FIELDS_MAX => NAME_BYTES_MAX,
                _ => 0,
            };
            row.append(&piece[..written], kept_max);
            match result {
                ReadFieldResult::InputEmpty | ReadFieldResult::OutputFull => {}
                ReadFieldResult::Field { record_end } => {
                    row.end_field(columns);
                    if record_end {
                        return Ok(true);
                    }
                }
                ReadFieldResult::End => return Ok(false),
            }
        }
    }
}

impl Row {
    fn clear(&mut self, offset: u64) {
        self.bytes.clear();
        self.ends.clear();
        (self.fields, self.offset) = (0, offset);
    }

    /// Appends a piece to the field at hand, up to `kept_max` bytes of the field.
    fn append(&mut self, piece: &[u8], kept_max: usize) {
        let kept = self.bytes.len() - self.ends.last().copied().unwrap_or(0);
        self.bytes.extend_from_slice(&piece[..piece.len().min(kept_max.saturating_sub(kept))]);
    }

    fn end_field(&mut self, columns: Option<&[usize; 3]>) {
        // Fields keep their numbers: fields before and between the columns are empty.
        if self.fields < columns.map_or(FIELDS_MAX, |columns| columns.iter().max().map_or(0, |last| last + 1)) {
            let start = self.ends.last().copied().unwrap_or(0);
            cut_to_text(&mut self.bytes, start);
            self.ends.push(self.bytes.len());
        }
        self.fields += 1;
    }

    fn field(&self, number: usize) -> Option<&[u8]> {
        let start = if number == 0 { 0 } else { *self.ends.get(number - 1)? };
        Some(&self.bytes[start..*self.ends.get(number)?])
    }

    /// The columns of date, source and destination according to a first row, and whether that row is a header.
    fn columns(&self) -> Option<([usize; 3], bool)> {
        let fields: Vec<String> = (0..self.ends.len())
            .filter_map(|number| self.field(number))
            .map(|field| String::from_utf8_lossy(field).trim().to_ascii_lowercase())
            .collect();
        let index_of = |name: &str| fields.iter().position(|field| field.trim_start_matches('\u{feff}') == name);
        let indices =
            [index_of("crawl_date"), index_of("src").or(index_of("source")), index_of("dest").or(index_of("target"))];
        if let [Some(date), Some(source), Some(link)] = indices {
            return Some(([date, source, link], true));
        }
        let is_link = fields.len() >= 3 && date::parse(&fields[0]).is_some() && fields[1].contains("://");
        is_link.then_some(([0, 1, 2], false))
    }

    /// The date, the source and the destination of the row.
    fn link(&self, columns: [usize; 3]) -> Result<Link<'_>, (Finding, String)> {
        let field = |column: usize| {
            let field = self.field(columns[column]).map(|field| spelt(field.trim_ascii()));
            field.ok_or_else(|| (Finding::BadRow, format!("the row has only {} fields", self.fields)))
        };
        let [date, source, link] = [field(0)?, field(1)?, field(2)?];
        let date = date::parse(&date).ok_or_else(|| (Finding::BadDate, date.chars().take(SHOWN_CHARS).collect()))?;
        if source.is_empty() {
            return Err((Finding::BadRow, "no source".to_owned()));
        }
        Ok((date, source, link))
    }
}

/// The most characters of a text that a message shows.
const SHOWN_CHARS: usize = 40;

/// What separates the fields of a text: the comma or the tab, whichever comes first.
fn delimiter(text: &[u8]) -> u8 {
    text.iter().copied().find(|byte| matches!(byte, b',' | b'\t')).unwrap_or(b',')
}

/// Whether a text begins with rows of a web graph table.
pub(crate) fn is_own(head: &Head<'_>) -> bool {
    let mut rows = Rows::new(head.text, delimiter(head.text));
    (0..ROWS_MAX).any(|_| rows.read(None).is_ok_and(|more| more && rows.row.columns().is_some()))
}

/// The number of rows that [`is_own`] reads.
const ROWS_MAX: usize = 3;

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
        let rows = "20080430204826\thttp://a/\tx,1\tan anchor, long\n20080430204826\thttp://a/\t\"y\tz\"\t\n";
        for header in ["crawl_date\tsrc\tdest\tanchor\n", "crawl_date\tsource\ttarget\tanchor_text\r\n", ""] {
            assert_eq!(read_all(&format!("{header}{rows}")).0, ["http://a/ 1209588506 x,1|y\tz"]);
        }
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

    #[test]
    fn long_fields_and_many_fields_are_cut() {
        let (long, many) = ("x".repeat(5 << 20), ",".repeat(1 << 20));
        let rows = format!(
            "crawl_date,src,dest{many}\n20080501,http://a/,x,{long}\n20080501,http://a/,\"y{long}\"\n\
             20080501,http://a/,z{many}\n{long},http://a/,z\n"
        );
        let mut rows = Rows::new(rows.as_bytes(), b',');
        let mut read = || rows.read(Some(&[0, 1, 2])).unwrap().then_some((rows.row.bytes.len(), rows.row.fields));
        assert_eq!(read(), Some((17, 3 + (1 << 20))));
        assert_eq!(read(), Some((18, 4)));
        assert_eq!(read(), Some((17 + TEXT_BYTES_MAX, 3)));
        assert_eq!(read(), Some((18, 3 + (1 << 20))));
        assert_eq!(read(), Some((10 + TEXT_BYTES_MAX, 3)));
        assert_eq!(read(), None);
    }
}
