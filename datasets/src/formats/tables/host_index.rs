//! The host index of Common Crawl: a row for each host and crawl, with the number of fetches by result.
//!
//! A row is a capture of `http://HOST/` with unknown links, at the beginning of the week of the crawl. Its status says
//! the best that happened on the host:
//!
//! | first of these columns that is not 0 | status |
//! |---|---|
//! | `fetch_200`, `fetch_notModified` | 200 |
//! | `fetch_redirPerm`, `fetch_redirTemp`, `fetch_3xx` | 301, 302, 302 |
//! | `fetch_gone`, `fetch_4xx` | 404, 403 |
//! | `fetch_5xx` | 500 |
//!
//! Rows of hosts that were not crawled, because all of these are 0, are no captures and are counted. `www` means the
//! same as in the web graphs of the store ([`super::super::cc_graph`]). If folding makes one host of two, the captures
//! of a second are united as those of several inputs are. The name of the crawl is in the column `crawl`, or in a
//! folder of the path, `crawl=CC-MAIN-2025-13`.
//!
//! Source: the schema in the repository commoncrawl/cc-host-index.

use super::Columns;
use super::cells::{Numbers, Texts};
use crate::capture::meaning::Seen;
use crate::formats::cc_graph::names;
use crate::{Capture, CaptureReader, Error, Finding, Tally, Www};
use chrono::{NaiveDate, Weekday};
use std::io;
use std::path::Path;

/// The column with the name of the host.
pub(super) const HOST: &str = "surt_host_name";
/// The columns with numbers of fetches, and the status of a host with such fetches, the best first.
pub(super) const FETCHES: [(&str, i64); 8] = [
    ("fetch_200", 200),
    ("fetch_notModified", 200),
    ("fetch_redirPerm", 301),
    ("fetch_redirTemp", 302),
    ("fetch_3xx", 302),
    ("fetch_gone", 404),
    ("fetch_4xx", 403),
    ("fetch_5xx", 500),
];

pub(super) struct HostIndex {
    columns: Columns,
    hosts: Texts,
    crawls: Option<Texts>,
    fetches: Vec<(Numbers, i64)>,
    /// The time of the crawl that the path names.
    time: Option<i64>,
    www: Www,
    host: String,
}

/// A row as it was read: the name of the crawl, if the row has one, and the status, if the host was crawled.
type Row = Result<(Option<String>, Option<i64>), (Finding, String)>;

impl HostIndex {
    /// Opens the root columns of the host, of the crawl, and of fetches with the status that each means. Returns the
    /// columns if one of them has another type.
    pub(super) fn new(
        columns: Columns,
        host: usize,
        crawl: Option<usize>,
        fetches: &[(usize, i64)],
        www: Www,
    ) -> Result<Self, Columns> {
        let texts = |root: usize| Texts::new(columns.leaf(root, None)?, columns.field(root).data_type());
        let numbers = |root: usize| Numbers::new(columns.leaf(root, None)?, columns.field(root).data_type());
        let fetches: Option<Vec<_>> = fetches.iter().map(|&(root, status)| Some((numbers(root)?, status))).collect();
        let crawls = crawl.map_or(Some(None), |root| texts(root).map(Some));
        let (Some(hosts), Some(crawls), Some(fetches)) = (texts(host), crawls, fetches) else { return Err(columns) };
        let time = crawl_of(&columns.path).and_then(week);
        Ok(HostIndex { columns, hosts, crawls, fetches, time, www, host: String::new() })
    }

    fn read_row(&mut self) -> io::Result<Row> {
        self.host.clear();
        let is_there = self.hosts.read(&mut self.host)?;
        let crawl = self.crawls.as_mut().map_or(Ok(None), Texts::next)?;
        let mut status = None;
        for (numbers, of_column) in &mut self.fetches {
            let fetches = numbers.next()?;
            status = status.or((fetches > Some(0)).then_some(*of_column));
        }
        let null = || (Finding::BadRow, "the host is null".to_owned());
        Ok(if is_there { Ok((crawl, status)) } else { Err(null()) })
    }

    /// Fills a capture from a row. Returns whether the host was crawled.
    fn fill(&self, row: Row, capture: &mut Capture, tally: &mut Tally) -> Result<bool, (Finding, String)> {
        let (crawl, status) = row?;
        let time = crawl.as_deref().and_then(week).or(self.time);
        let time = time.ok_or_else(|| {
            let crawl = crawl.unwrap_or_default();
            (Finding::BadDate, format!("no crawl such as CC-MAIN-2025-13 in the row ({crawl:?}) or in the path"))
        })?;
        let Some(status) = status else {
            tally.count(Finding::NotCrawled);
            return Ok(false);
        };
        let host = self.host.replace(',', ".");
        capture.url = names::url(host.as_bytes(), self.www, tally)?;
        capture.time = time;
        let seen = Seen { status: Some(status), ..Seen::default() };
        Ok(seen.settle(false, capture, tally))
    }
}

/// The name of a crawl in a path: `crawl=CC-MAIN-2025-13` is a folder.
fn crawl_of(path: &Path) -> Option<&str> {
    path.iter().filter_map(|folder| folder.to_str()).find_map(|folder| folder.strip_prefix("crawl="))
}

/// The first second of the week of a crawl, `CC-MAIN-YYYY-WW`.
fn week(crawl: &str) -> Option<i64> {
    let (year, week) = crawl.strip_prefix("CC-MAIN-")?.split_once('-')?;
    let day = NaiveDate::from_isoywd_opt(year.parse().ok()?, week.parse().ok()?, Weekday::Mon)?;
    Some(day.and_hms_opt(0, 0, 0)?.and_utc().timestamp())
}

impl CaptureReader for HostIndex {
    fn read(&mut self, capture: &mut Capture, tally: &mut Tally) -> Result<bool, Error> {
        while self.columns.begin_row() {
            capture.clear();
            let row = match self.read_row() {
                Ok(row) => row,
                Err(error) => {
                    self.columns.give_up(&error, tally)?;
                    break;
                }
            };
            match self.fill(row, capture, tally) {
                Ok(true) => return Ok(true),
                Ok(false) => {}
                Err((finding, detail)) => self.columns.damage(finding, detail, tally),
            }
        }
        capture.clear();
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crawls_have_weeks() {
        for (crawl, date) in [
            ("CC-MAIN-2025-13", Some("2025-03-24")),
            ("CC-MAIN-2020-53", Some("2020-12-28")),
            ("CC-MAIN-2021-53", None),
            ("CC-MAIN-2012", None),
            ("2025-13", None),
        ] {
            let date = date.map(|date| date.parse::<NaiveDate>().unwrap().and_hms_opt(0, 0, 0).unwrap());
            assert_eq!(week(crawl), date.map(|date| date.and_utc().timestamp()), "{crawl}");
        }
        assert_eq!(crawl_of(Path::new("x/crawl=CC-MAIN-2025-13/part-0.parquet")), Some("CC-MAIN-2025-13"));
        assert_eq!(crawl_of(Path::new("https://host/x/crawl=a/b")), Some("a"));
        assert_eq!(crawl_of(Path::new("part-0.parquet")), None);
    }
}
