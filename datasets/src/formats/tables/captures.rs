//! The capture table: `url`, `ts`, and the optional columns.
//!
//! Links of a column with a dictionary stay keys, up to [`KEYS_MAX`] a capture. Other links are texts, and
//! [`Capture::links`] bounds their memory.

use super::Columns;
use super::cells::{Flags, Numbers, Texts, Times};
use super::column::{Column, Text};
use crate::capture::date::Date;
use crate::capture::digest::digest_of;
use crate::capture::meaning::{ReferredTo, Seen};
use crate::capture::method::Other;
use crate::formats::record;
use crate::{Capture, CaptureReader, Cut, Error, Finding, Tally};
use arrow_schema::DataType;
use std::io;
use webstrata_url::spelt;

/// The columns that may be missing.
pub(super) const OPTIONAL: [&str; 7] = ["links", "status", "digest", "revisit", "redirect", "cut", "method"];
/// The most keys of links that are held of one capture.
const KEYS_MAX: usize = 1 << 18;

pub(super) struct Captures {
    columns: Columns,
    urls: Texts,
    times: Times,
    links: Option<Lists>,
    statuses: Option<Numbers>,
    digests: Option<Texts>,
    revisits: Option<Revisits>,
    targets: Option<Texts>,
    cuts: Option<Cuts>,
    methods: Option<Texts>,
    /// Whether redirects are links.
    redirects: bool,
}

/// A column of lists of links.
struct Lists {
    column: Column,
    /// The smallest definition level of an entry that is an item of a list.
    of_link: u32,
    keys: Vec<u64>,
    text: Vec<u8>,
}

/// Whether a row has a list, and the number of its null links.
#[derive(Default)]
struct List {
    is_there: bool,
    null_links: u64,
}

impl Lists {
    fn new(column: Column, data_type: &DataType) -> Option<Lists> {
        let DataType::List(item) = data_type else { return None };
        if !matches!(item.data_type(), DataType::Utf8 | DataType::Binary) {
            return None;
        }
        let of_link = column.levels_max().definition.checked_sub(u32::from(item.is_nullable()))?;
        Some(Lists { column, of_link, keys: Vec::new(), text: Vec::new() })
    }

    /// Reads the links of the next row into `capture`.
    fn read(&mut self, capture: &mut Capture) -> io::Result<List> {
        let mut list = List::default();
        let mut levels = self.column.next()?.ok_or(io::ErrorKind::UnexpectedEof)?;
        list.is_there = levels.definition + 1 >= self.of_link;
        self.keys.clear();
        let mut are_keys = true;
        loop {
            if self.column.has_value(levels) {
                match self.column.text(&mut self.text)? {
                    Text::Key(key) if are_keys && self.keys.len() < KEYS_MAX => self.keys.push(key),
                    Text::Key(key) => {
                        self.spell(capture);
                        are_keys = false;
                        capture.links.push(self.column.text_of(key));
                    }
                    Text::Spelt => {
                        self.spell(capture);
                        are_keys = false;
                        capture.links.push(&spelt(&self.text));
                    }
                }
            } else if levels.definition >= self.of_link {
                list.null_links += 1;
            }
            if are_keys {
                self.column.keys(KEYS_MAX.saturating_sub(self.keys.len()), &mut self.keys)?;
            }
            match self.column.peek()? {
                Some(next) if next.repetition > 0 => levels = next,
                _ => break,
            }
            self.column.next()?;
        }
        if let Some(dictionary) = self.column.dictionary().filter(|_| !self.keys.is_empty()) {
            capture.links.set_keys(dictionary, &self.keys);
        }
        Ok(list)
    }

    /// Turns the held keys into texts.
    fn spell(&mut self, capture: &mut Capture) {
        for key in self.keys.drain(..) {
            capture.links.push(self.column.text_of(key));
        }
    }
}

/// The columns of the struct `revisit`.
struct Revisits {
    profiles: Option<Texts>,
    urls: Option<Texts>,
    dates: Option<Times>,
    /// The smallest definition level of a row that has a revisit.
    is_there: u32,
}

impl Revisits {
    fn new(columns: &Columns, root: usize) -> Option<Revisits> {
        let field = columns.field(root);
        let DataType::Struct(fields) = field.data_type() else { return None };
        let open = |name: &str| {
            let field = fields.iter().find(|field| field.name() == name)?;
            Some((columns.leaf(root, Some(name))?, field.data_type()))
        };
        let texts = |name: &str| open(name).map_or(Some(None), |(column, of)| Texts::new(column, of).map(Some));
        let dates = open("refers_to_date").map_or(Some(None), |(column, of)| Times::new(column, of).map(Some));
        let (profiles, urls, dates) = (texts("profile")?, texts("refers_to_target_uri")?, dates?);
        let is_there = u32::from(field.is_nullable());
        Some(Revisits { profiles, urls, dates, is_there }).filter(|own| own.profiles.is_some() || own.urls.is_some())
    }

    /// Reads the revisit of the next row, if the row has one.
    fn next(&mut self) -> io::Result<Option<ReferredTo>> {
        let first = self.profiles.as_mut().or(self.urls.as_mut());
        let levels = first.map_or(Ok(None), |texts| texts.column.peek())?;
        let is_there = levels.is_some_and(|levels| levels.definition >= self.is_there);
        let text = |texts: &mut Option<Texts>| texts.as_mut().map_or(Ok(None), Texts::next);
        let (profile, url) = (text(&mut self.profiles)?, text(&mut self.urls)?);
        let date = self.dates.as_mut().map(Times::next).transpose()?.and_then(Result::ok);
        if !is_there {
            return Ok(None);
        }
        let revisit = record::revisit(profile.as_deref(), url.as_deref(), None);
        Ok(Some(ReferredTo { time: date.map(Date::seconds), ..revisit }))
    }
}

/// The column `cut`: why the body was not read whole.
enum Cuts {
    Names(Texts),
    Flags(Flags),
}

impl Cuts {
    fn new(column: Column, data_type: &DataType) -> Option<Cuts> {
        if *data_type == DataType::Boolean {
            return Some(Cuts::Flags(Flags::new(column)));
        }
        Texts::new(column, data_type).map(Cuts::Names)
    }

    /// The reason of the next row. The error is a text that names no reason.
    fn next(&mut self) -> io::Result<Result<Option<Cut>, String>> {
        Ok(match self {
            Cuts::Flags(flags) => Ok(flags.next()?.filter(|&is_cut| is_cut).map(|_| Cut::Truncated)),
            Cuts::Names(texts) => match texts.next()?.filter(|name| !name.is_empty()) {
                Some(name) => Cut::of_text(&name).map(Some),
                None => Ok(None),
            },
        })
    }
}

/// The values of a row, except the texts of its URL and its links.
struct Row {
    has_url: bool,
    date: Result<Date, (Finding, String)>,
    list: List,
    status: Option<i64>,
    digest: Option<String>,
    revisit: Option<ReferredTo>,
    target: Option<String>,
    cut: Result<Option<Cut>, String>,
    method: Option<String>,
}

impl Captures {
    /// Opens the root columns of `url`, `ts` and the optional columns. Returns the columns if one of them has another
    /// type.
    pub(super) fn new(
        columns: Columns,
        [url, time]: [usize; 2],
        optional: [Option<usize>; OPTIONAL.len()],
        redirects: bool,
    ) -> Result<Self, Columns> {
        /// Opens a column with `open` if there is one. Returns `None` if the column has another type.
        fn opened<T>(
            columns: &Columns,
            root: Option<usize>,
            open: fn(Column, &DataType) -> Option<T>,
        ) -> Option<Option<T>> {
            let Some(root) = root else { return Some(None) };
            open(columns.leaf(root, None)?, columns.field(root).data_type()).map(Some)
        }
        let open = || {
            let [links, statuses, digests, revisits, targets, cuts, methods] = optional;
            let revisits = revisits.map_or(Some(None), |root| Revisits::new(&columns, root).map(Some));
            Some((
                opened(&columns, Some(url), Texts::new)??,
                opened(&columns, Some(time), Times::new)??,
                opened(&columns, links, Lists::new)?,
                opened(&columns, statuses, Numbers::new)?,
                opened(&columns, digests, Texts::new)?,
                revisits?,
                opened(&columns, targets, Texts::new)?,
                opened(&columns, cuts, Cuts::new)?,
                opened(&columns, methods, Texts::new)?,
            ))
        };
        let Some((urls, times, links, statuses, digests, revisits, targets, cuts, methods)) = open() else {
            return Err(columns);
        };
        Ok(Captures { columns, urls, times, links, statuses, digests, revisits, targets, cuts, methods, redirects })
    }

    /// Reads a row: a value of each column, whether or not the value is valid.
    fn row(&mut self, capture: &mut Capture) -> io::Result<Row> {
        let text = |texts: &mut Option<Texts>| texts.as_mut().map_or(Ok(None), Texts::next);
        Ok(Row {
            has_url: self.urls.read(&mut capture.url)?,
            date: self.times.next()?,
            list: self.links.as_mut().map_or(Ok(List::default()), |links| links.read(capture))?,
            status: self.statuses.as_mut().map_or(Ok(None), Numbers::next)?,
            digest: text(&mut self.digests)?,
            revisit: self.revisits.as_mut().map_or(Ok(None), Revisits::next)?,
            target: text(&mut self.targets)?,
            cut: self.cuts.as_mut().map_or(Ok(Ok(None)), Cuts::next)?,
            method: text(&mut self.methods)?,
        })
    }
}

impl CaptureReader for Captures {
    fn read(&mut self, capture: &mut Capture, tally: &mut Tally) -> Result<bool, Error> {
        while self.columns.begin_row() {
            capture.clear();
            let Row { has_url, date, list, status, digest, revisit, target, cut, method } = match self.row(capture) {
                Ok(row) => row,
                Err(error) => {
                    self.columns.give_up(&error, tally)?;
                    break;
                }
            };
            for _ in 0..list.null_links {
                self.columns.damage(Finding::BadRow, "a link is null".to_owned(), tally);
            }
            let date = if has_url { date } else { Err((Finding::BadRow, "url is null".to_owned())) };
            let cut = cut.map_err(|detail| (Finding::BadRow, detail));
            let (date, cut) = match date.and_then(|date| cut.map(|cut| (date, cut))) {
                Ok(row) => row,
                Err((finding, detail)) => {
                    self.columns.damage(finding, detail, tally);
                    continue;
                }
            };
            if let Some(method) = method.as_deref().and_then(Other::of) {
                method.count(tally);
                continue;
            }
            capture.digest = digest.as_deref().and_then(digest_of);
            let target = target.as_deref().filter(|url| !matches!(*url, "" | "-"));
            let seen = Seen { status, has_links: list.is_there, revisit, target, cut };
            if seen.settle(self.redirects, capture, tally) {
                capture.time = date.counted(tally);
                return Ok(true);
            }
        }
        capture.clear();
        Ok(false)
    }
}
