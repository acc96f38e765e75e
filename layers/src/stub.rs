//! Stand-in until the layers land.
use crate::*;
use chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error("{}: not a store (no CURRENT in it)", path.display())]
    NotAStore { path: PathBuf },
    #[error("{}: store of format {got}, this program reads {expected}", path.display())]
    Format { path: PathBuf, got: u32, expected: u32 },
}
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    Seen { from: i64, to: i64 },
    AsOf(i64),
}
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    Exact,
    Range,
}
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeLength {
    Month,
    Year,
    Days(u32),
}
impl fmt::Display for RangeLength {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            RangeLength::Month => f.write_str("month"),
            RangeLength::Year => f.write_str("year"),
            RangeLength::Days(n) => write!(f, "{n}"),
        }
    }
}
impl std::str::FromStr for RangeLength {
    type Err = String;
    fn from_str(s: &str) -> Result<Self, String> {
        match s {
            "month" => Ok(RangeLength::Month),
            "year" => Ok(RangeLength::Year),
            "day" => Ok(RangeLength::Days(1)),
            n => n.parse().map(RangeLength::Days).map_err(|_| "month, day, year or a number of days".into()),
        }
    }
}
impl RangeLength {
    pub fn start(self, time: i64) -> i64 {
        let d = DateTime::from_timestamp(time, 0).unwrap();
        match self {
            RangeLength::Month => NaiveDate::from_ymd_opt(d.year(), d.month(), 1),
            RangeLength::Year => NaiveDate::from_ymd_opt(d.year(), 1, 1),
            RangeLength::Days(n) => return time.div_euclid(86400 * n as i64) * 86400 * n as i64,
        }
        .unwrap()
        .and_hms_opt(0, 0, 0)
        .unwrap()
        .and_utc()
        .timestamp()
    }
}
pub fn format_time(seconds: i64) -> String {
    DateTime::from_timestamp(seconds, 0).map(|t| t.format("%Y%m%d%H%M%S").to_string()).unwrap_or_default()
}
pub fn parse_time(text: &str, end: bool) -> Option<i64> {
    if let Ok(t) = DateTime::parse_from_rfc3339(text) {
        return Some(t.timestamp());
    }
    if !(4..=14).contains(&text.len()) || text.len() % 2 == 1 || !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let fill = if end { "9999" } else { "0000" };
    let _ = fill;
    let padded = format!("{text}{}", &"00000101000000"[text.len()..]);
    let start = NaiveDateTime::parse_from_str(&padded, "%Y%m%d%H%M%S").ok()?;
    if !end {
        return Some(start.and_utc().timestamp());
    }
    let after = match text.len() {
        4 => start.with_year(start.year() + 1)?,
        6 => start.checked_add_months(chrono::Months::new(1))?,
        8 => start + chrono::Duration::days(1),
        10 => start + chrono::Duration::hours(1),
        12 => start + chrono::Duration::minutes(1),
        _ => start + chrono::Duration::seconds(1),
    };
    Some(after.and_utc().timestamp() - 1)
}
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    pub urls: u64,
    pub pages: u64,
    pub captures: u64,
    pub unknown_captures: u64,
    pub links: u64,
    pub occurrences: u64,
    pub first_time: Option<i64>,
    pub last_time: Option<i64>,
}
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Layer {
    Url,
}
impl Layer {
    pub fn name(self) -> &'static str {
        "url"
    }
}
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FileEntry {
    pub layer: Layer,
    pub partition: u32,
    pub path: String,
    pub rows: u64,
    pub bytes: u64,
    pub checksum: String,
}
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PartitionEntry {
    pub partition: u32,
    pub first_uid: u64,
    pub urls: u64,
    pub first_key: String,
    pub files: Vec<FileEntry>,
}
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RowEntry {
    pub row: u32,
    pub first_uid: u64,
    pub urls: u64,
    pub partitions: Vec<PartitionEntry>,
    pub counts: Counts,
}
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Manifest {
    pub format: u32,
    pub epoch: u64,
    pub rows: Vec<RowEntry>,
    #[serde(skip, default = "month")]
    pub in_range: RangeLength,
    pub counts: Counts,
    pub provenance: BTreeMap<String, String>,
    pub urls: Vec<String>,
    pub pages: BTreeMap<u64, Vec<(i64, Option<Vec<u64>>)>>,
}
fn month() -> RangeLength {
    RangeLength::Month
}
pub struct Store(Manifest);
impl Store {
    pub fn open(dir: &Path) -> Result<Store, Error> {
        let io = |path: &Path| {
            let path = path.to_owned();
            move |source| Error::Io { path, source }
        };
        std::fs::metadata(dir).map_err(io(dir))?;
        let Ok(n) = std::fs::read_to_string(dir.join("CURRENT")) else {
            return Err(Error::NotAStore { path: dir.into() });
        };
        let path = dir.join(format!("epochs/{:06}.json", n.trim().parse::<u64>().unwrap()));
        let text = std::fs::read(&path).map_err(io(&path))?;
        let value: serde_json::Value = serde_json::from_slice(&text).unwrap();
        if value["format"] != 1 {
            return Err(Error::Format { path: dir.into(), got: value["format"].as_u64().unwrap() as u32, expected: 1 });
        }
        Ok(Store(serde_json::from_value(value).unwrap()))
    }
    pub fn manifest(&self) -> &Manifest {
        &self.0
    }
}
pub fn write(dir: &Path, mut m: Manifest) -> Result<u64, Error> {
    let io = |source| Error::Io { path: dir.to_owned(), source };
    std::fs::create_dir_all(dir.join("epochs")).map_err(io)?;
    m.epoch = std::fs::read_to_string(dir.join("CURRENT")).map_or(0, |t| t.trim().parse::<u64>().unwrap()) + 1;
    std::fs::write(dir.join(format!("epochs/{:06}.json", m.epoch)), serde_json::to_vec(&m).unwrap()).map_err(io)?;
    std::fs::write(dir.join("CURRENT.new"), format!("{}\n", m.epoch)).map_err(io)?;
    std::fs::rename(dir.join("CURRENT.new"), dir.join("CURRENT")).map_err(io)?;
    Ok(m.epoch)
}
#[derive(Debug)]
pub struct Problem {
    pub path: PathBuf,
    pub row: Option<u64>,
    pub detail: String,
}
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.detail)
    }
}
pub struct CheckReport {
    pub epoch: u64,
    pub files: u64,
    pub problems: Vec<Problem>,
}
pub fn check(dir: &Path) -> Result<CheckReport, Error> {
    Ok(CheckReport { epoch: Store::open(dir)?.0.epoch, files: 0, problems: vec![] })
}
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CaptureTime {
    pub time: i64,
    pub known: bool,
}
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifespan {
    pub link: u64,
    pub first: i64,
    pub last: i64,
}
pub struct Reader(Store);
impl Reader {
    pub fn new(store: Store, _memory_max: usize) -> Reader {
        Reader(store)
    }
}
pub trait Links {
    fn epoch(&self) -> u64;
    fn uid(&self, url: &str) -> Result<Option<u64>, Error>;
    fn url(&self, uid: u64) -> Result<String, Error>;
    fn page(&self, uid: u64) -> Result<Option<Arc<Page>>, Error>;
    fn in_record(&self, uid: u64) -> Result<Option<Arc<InLinks>>, Error>;
    fn in_range(&self) -> RangeLength;
    fn caps(&self, uid: u64) -> Vec<(i64, Option<Vec<u64>>)>;
    fn captures(&self, uid: u64) -> Result<Vec<CaptureTime>, Error> {
        Ok(self.caps(uid).iter().map(|c| CaptureTime { time: c.0, known: c.1.is_some() }).collect())
    }
    fn out_links(&self, uid: u64, window: Window) -> Result<Vec<u64>, Error> {
        let caps = self.caps(uid);
        let mut all: Vec<u64> = match window {
            Window::Seen { from, to } => {
                caps.iter().filter(|c| from <= c.0 && c.0 <= to).flat_map(|c| c.1.clone().unwrap_or_default()).collect()
            }
            Window::AsOf(t) => caps.iter().filter(|c| c.0 <= t).last().and_then(|c| c.1.clone()).unwrap_or_default(),
        };
        all.sort();
        all.dedup();
        Ok(all)
    }
    fn in_links(&self, uid: u64, window: Window, _p: Precision) -> Result<Vec<u64>, Error> {
        let Some(r) = self.in_record(uid)? else { return Ok(vec![]) };
        Ok(r.sources.iter().copied().filter(|&s| self.out_links(s, window).unwrap().contains(&uid)).collect())
    }
    fn lifespans(&self, uid: u64) -> Result<Vec<Lifespan>, Error> {
        let caps: Vec<_> = self.caps(uid).into_iter().filter_map(|(t, l)| Some((t, l?))).collect();
        let mut all = vec![];
        for link in self.out_links(uid, Window::Seen { from: i64::MIN, to: i64::MAX })? {
            let mut open: Option<Lifespan> = None;
            for (time, links) in &caps {
                if links.contains(&link) {
                    open.get_or_insert(Lifespan { link, first: *time, last: *time }).last = *time;
                } else {
                    all.extend(open.take());
                }
            }
            all.extend(open);
        }
        Ok(all)
    }
}
impl Links for Reader {
    fn epoch(&self) -> u64 {
        self.0.0.epoch
    }
    fn uid(&self, url: &str) -> Result<Option<u64>, Error> {
        Ok(self.0.0.urls.binary_search_by(|u| u.as_str().cmp(url)).ok().map(|i| i as u64))
    }
    fn url(&self, uid: u64) -> Result<String, Error> {
        Ok(self.0.0.urls[uid as usize].clone())
    }
    fn page(&self, uid: u64) -> Result<Option<Arc<Page>>, Error> {
        let Some(caps) = self.0.0.pages.get(&uid) else { return Ok(None) };
        let links = self.out_links(uid, Window::Seen { from: i64::MIN, to: i64::MAX })?;
        Ok(Some(Arc::new(Page { uid, timestamps: caps.iter().map(|c| c.0).collect(), links, ..Page::default() })))
    }
    fn in_record(&self, uid: u64) -> Result<Option<Arc<InLinks>>, Error> {
        let has = |caps: &Vec<(i64, Option<Vec<u64>>)>| caps.iter().any(|c| c.1.iter().flatten().any(|&l| l == uid));
        let sources: Vec<u64> = self.0.0.pages.iter().filter(|p| has(p.1)).map(|p| *p.0).collect();
        Ok((!sources.is_empty()).then(|| Arc::new(InLinks { uid, sources, ..InLinks::default() })))
    }
    fn in_range(&self) -> RangeLength {
        RangeLength::Month
    }
    fn caps(&self, uid: u64) -> Vec<(i64, Option<Vec<u64>>)> {
        self.0.0.pages.get(&uid).cloned().unwrap_or_default()
    }
}
