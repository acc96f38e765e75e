//! The parameters of `/cdx`: the parameters that clients of other CDX servers send, and how each is treated.
//!
//! Like all other paths, this one refuses unknown parameters: a misspelt parameter must not change the answer
//! unnoticed. Clients also send parameters that mean nothing to a store without records, or that do not change which
//! captures are listed; these are in the table too. A parameter without a value counts as not given.
//!
//! The servers of the Internet Archive and of pywb differ in the meaning of filters and of `output=json` ([`Dialect`]).
//! Most clients send parameters that only one of the two knows.

use tonic::Status;

use super::field::{FIELDS, Field};
use super::selection::{Collapse, Filter};
use super::shape::{Column, Shape};
use super::source::Reach;
use crate::http::describe::{Answer, Call};
use crate::http::question::parameter::{Parameter, flag, number, signed, text, texts, words};
use crate::http::question::parameters::EPOCH;
use crate::http::question::params::Params;
use crate::http::question::resume::Start;
use crate::protocol::status::bad;

const RESUME: Parameter = text(
    "resumeKey",
    "The resume key that followed the previous answer, which is opaque. Repeat all other parameters; only limit may \
        differ.",
);
const URL: Parameter =
    text("url", "The URL of the page, in any spelling; example.org/* means its prefix, *.example.org its domain.")
        .required()
        .example(&["a.example"]);
const MATCH_TYPE: Parameter = words(
    "matchType",
    "Whose captures: those of the page, of URLs that begin with it, of its host, of its domain, or of it and all \
        URLs after it in the order of keys. A host is meant with and without www.",
    || vec!["exact", "prefix", "host", "domain", "range"],
)
.example(&["domain"]);
const FROM: Parameter =
    text("from", "The first second of captures. Nothing lies in an interval that ends before it begins.")
        .example(&["2006"]);
const FROM_TS: Parameter = text("from_ts", "Another name for from.").example(&["2006"]);
const TO: Parameter = text("to", "The last second of captures.").example(&["200606"]);
const CLOSEST: Parameter = text("closest", "A time, to sort by how near captures are to it.").example(&["20060515"]);
const SORT: Parameter = words(
    "sort",
    "default: in order of time; reverse: from the end; closest: those nearest to closest first, which is the default \
        with closest. For several pages, closest needs limit, and reverse cannot be combined with collapse.",
    || vec!["default", "closest", "reverse"],
)
.unsaid()
.example(&["closest"]);
const REVERSE: Parameter = text("reverse", "Another name for sort=reverse.").example(&["false"]);
const LIMIT: Parameter = signed(
    "limit",
    "Lines, at most; 0 or none: as many as one answer may have, which are 131,072. A negative number asks for the \
        last lines.",
    -(LIMITS[1] as i64),
    LIMITS[0],
)
.example(&["10"]);
const OFFSET: Parameter = number("offset", "Lines to leave out before the first.", 0, u64::MAX).example(&["0"]);
const FILTER: Parameter = texts(
    "filter",
    "Only lines whose field matches a regular expression, as statuscode:2..; with ! before it, lines whose field \
        does not match; with ~ before it, lines whose field contains the text. In the dialect of pywb: status:20 \
        contains the text, =status:200 is it, ~status:2.. matches from the beginning. Repeat it for more filters.",
)
.example(&["!statuscode:404", "original:.*"]);
const COLLAPSE: Parameter = texts(
    "collapse",
    "Of adjacent lines with the same field, only the first: a field, or a field and how many of its characters are \
        compared. Repeat it for more fields.",
)
.example(&["timestamp:4"]);
const COLLAPSE_TIME: Parameter = number(
    "collapseTime",
    "Of adjacent lines with the same status and so many equal digits of the time, only the first.",
    1,
    14,
)
.example(&["4"]);
const FL: Parameter = text(
    "fl",
    "The fields of a line, between commas, by the names of the Internet Archive or of pywb. Fields of other indexes, \
        such as offset, are -.",
)
.example(&["timestamp,original"]);
const FIELDS_BY_NAME: Parameter =
    text("fields", "The same, in the dialect of pywb.").example(&["url,timestamp"]).with(&[("output", "json")]);
const OUTPUT: Parameter = words(
    "output",
    "Lines of text; one JSON array with an array for each line, of which the first has the names of the fields, or \
        in the dialect of pywb a JSON object a line; CDXJ; or the captures as mementos in link format.",
    || vec!["text", "json", "cdxj", "link"],
)
.example(&["cdxj"]);
const PAGE: Parameter = number(
    "page",
    "Only the captures of one page of the URLs that match; the first is 0. A page may be empty; one after the last \
        is refused.",
    0,
    u64::MAX,
)
.example(&["0"]);
const PAGE_SIZE: Parameter =
    number("pageSize", "Blocks of 3,000 URLs in a page.", 1, 1_000_000).default(BLOCKS).example(&["50"]);
const SHOW_NUM_PAGES: Parameter =
    flag("showNumPages", "Only the number of pages; in the dialect of pywb an object with pages, pageSize and blocks.");
const SHOW_RESUME_KEY: Parameter = flag(
    "showResumeKey",
    "Whether an answer that the limit ends is followed by an empty line and a resume key. An answer that ends before \
        its limit always is.",
);
const GZIP: Parameter =
    flag("gzip", "Without effect; Accept-Encoding says how an answer is compressed.").example(&["false"]).repeated();
const RESOLVE_REVISITS: Parameter =
    flag("resolveRevisits", "Without effect; revisits were resolved when the store was built.").repeated();
const FAST_LATEST: Parameter = flag("fastLatest", "Without effect.").repeated();
const ALLOW_FUZZY: Parameter =
    flag("allowFuzzy", "Without effect, but for the dialect, which is that of pywb.").example(&["false"]).repeated();
const CRAWL: Parameter = text("crawl", "Without effect; a store is one collection.").example(&["all"]).repeated();

/// A parameter that asks for columns or lines that no store has. It is refused unless its value means no.
const fn lacking(name: &'static str) -> Parameter {
    flag(name, "Refused unless false: a store has no such lines.").example(&["false"])
}

/// All parameters. Some have no effect here: `gzip`, since Accept-Encoding selects the compression of an answer;
/// `resolveRevisits`, since revisits had the links of the captures that they refer to when the store was built;
/// `fastLatest`, since it only asks for speed; `allowFuzzy`, since captures of other URLs are not captures of this one;
/// `crawl`, since a store is one collection.
const PARAMETERS: &[Parameter] = &[
    URL,
    MATCH_TYPE,
    FROM,
    FROM_TS,
    TO,
    CLOSEST,
    SORT,
    REVERSE,
    LIMIT,
    OFFSET,
    FILTER,
    COLLAPSE,
    COLLAPSE_TIME,
    FL,
    FIELDS_BY_NAME,
    OUTPUT,
    PAGE,
    PAGE_SIZE,
    SHOW_NUM_PAGES,
    SHOW_RESUME_KEY,
    RESUME,
    EPOCH,
    GZIP,
    RESOLVE_REVISITS,
    FAST_LATEST,
    ALLOW_FUZZY,
    CRAWL,
    lacking("showPagedIndex"),
    lacking("showDupeCount"),
    lacking("showSkipCount"),
    lacking("showGroupCount"),
    lacking("lastSkipTimestamp"),
];

/// The parameters that are refused unless their value means no.
const LACKING: [&str; 5] = ["showPagedIndex", "showDupeCount", "showSkipCount", "showGroupCount", "lastSkipTimestamp"];

pub(in crate::http) const CDX: Call = Call {
    id: "cdx",
    summary: "Captures, as a CDX server lists them.",
    about: Some(
        "A line has the fields urlkey, timestamp, original, mimetype, statuscode, digest and length; mimetype, \
            digest and length are -, since a store has links and not records. Captures of a page are in order of \
            time, those of several pages in order of UIDs. An answer has at most 131,072 lines, and looks for lines \
            for five seconds; if more may follow, it ends with an empty line and a resume key. A URL that is \
            not in the store has no captures. The dialect is that of pywb if the question has fields, from_ts, \
            collapseTime, allowFuzzy or output=cdxj, a field named url, mime or status, or a filter that begins \
            with =, != or !~; else it is that of the Internet Archive. In the shapes of pywb, an answer without \
            captures is 404.",
    ),
    parameters: PARAMETERS,
    answer: Answer::Text(&[
        "text/plain",
        "text/x-ndjson",
        "text/x-cdxj",
        "application/link-format",
        "application/json",
    ]),
};

/// The largest `limit`, and the largest `limit` for lines that are kept until all lines are known.
const LIMITS: [u64; 2] = [1_000_000_000, 100_000];
/// The default number of blocks in a page.
const BLOCKS: u64 = 50;

/// The server that the client was written for. It is pywb if the question has `fields`, `from_ts`, `collapseTime` or
/// `allowFuzzy`, the output `cdxj`, a field by a name that only pywb has (`url`, `mime`, `status`), or a filter that
/// begins with `=`, `!=` or `!~`. Otherwise it is the server of the Internet Archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    Wayback,
    Pywb,
}

impl Dialect {
    fn of(params: &Params) -> Self {
        let is_given = |name: &&str| params.all(name).next().is_some();
        let names_field = |text: &str| Field::is_of_pywb(text.split(':').next().unwrap_or_default());
        let mut filters = params.all("filter");
        let is_pywb = ["fields", "from_ts", "collapseTime", "allowFuzzy"].iter().any(is_given)
            || params.all("output").any(|output| output == "cdxj")
            || params.all("fl").flat_map(|text| text.split(',')).any(names_field)
            || params.all("collapse").any(names_field)
            || filters.any(|text| {
                ["=", "!=", "!~"].iter().any(|sign| text.starts_with(sign))
                    || names_field(text.trim_start_matches(['!', '~']))
            });
        if is_pywb { Self::Pywb } else { Self::Wayback }
    }
}

/// The order in which captures are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// The order of the store.
    Stored,
    /// From the end.
    Reverse,
    /// The captures nearest to a time first.
    Nearest(i64),
}

impl Order {
    /// With a time and without `sort`, captures are sorted by distance from the time, as in pywb. `sort=closest`
    /// without a time is the order of the store, as pywb's index client means it.
    fn of(params: &Params) -> Result<Self, Status> {
        let closest = params.time("closest", false)?;
        let nearest = closest.map_or(Self::Stored, Self::Nearest);
        if is_set(params, "reverse") {
            return Ok(Self::Reverse);
        }
        match params.get("sort")? {
            None => Ok(nearest),
            Some(_) => {
                params.choice("sort", [("default", Self::Stored), ("closest", nearest), ("reverse", Self::Reverse)])
            }
        }
    }
}

/// The number of lines that are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Limit {
    All,
    /// The first lines.
    First(u64),
    /// The last lines.
    Last(usize),
}

impl Limit {
    fn of(params: &Params) -> Result<Self, Status> {
        let [first, last] = LIMITS;
        let number = |text: &str, most| text.parse().ok().filter(|number| (1..=most).contains(number));
        let Some(text) = params.get("limit")? else { return Ok(Self::All) };
        let limit = match text.strip_prefix('-') {
            Some(text) => number(text, last).and_then(|number| usize::try_from(number).ok()).map(Self::Last),
            None if text == "0" => Some(Self::All),
            None => number(text, first).map(Self::First),
        };
        limit.ok_or_else(|| bad(format!("limit: {text:?} is not a number from 0 to {first}, or from -{last} to -1")))
    }
}

/// A question.
pub(super) struct Asked {
    pub(super) dialect: Dialect,
    pub(super) reach: Reach,
    pub(super) url: String,
    /// The closed interval of the captures; it may be empty.
    pub(super) interval: (i64, i64),
    pub(super) order: Order,
    pub(super) limit: Limit,
    /// The number of lines of the whole answer that are skipped before the first.
    pub(super) offset: u64,
    pub(super) filters: Vec<Filter>,
    pub(super) collapses: Vec<Collapse>,
    pub(super) columns: Vec<Column>,
    pub(super) shape: Shape,
    pub(super) page: Option<u64>,
    pub(super) page_size: u64,
    pub(super) shows_pages: bool,
    pub(super) shows_key: bool,
    pub(super) start: Start,
}

impl Asked {
    /// Reads a query about a store.
    ///
    /// # Errors
    /// BAD_REQUEST for parameters that are not understood, and for questions that cannot be answered.
    pub(super) fn of(store: &str, query: Option<&str>) -> Result<Self, Status> {
        let params = Params::of(query, PARAMETERS)?.without_empty();
        for name in LACKING {
            if is_set(&params, name) {
                return Err(bad(format!("{name}: a store has no such lines; leave it out")));
            }
        }
        let dialect = Dialect::of(&params);
        let (reach, url) = Reach::of(&params)?;
        let filters = params.all("filter").map(|text| Filter::parse(text, dialect)).collect::<Result<_, _>>()?;
        let mut collapses = params.all("collapse").map(Collapse::parse).collect::<Result<Vec<_>, _>>()?;
        let length = params.number("collapseTime")?.and_then(|length| usize::try_from(length).ok());
        collapses.extend(length.map(Collapse::of_time));
        let asked = Self {
            dialect,
            reach,
            url: url.to_owned(),
            interval: interval(&params)?,
            order: Order::of(&params)?,
            limit: Limit::of(&params)?,
            offset: params.number("offset")?.unwrap_or(0),
            filters,
            collapses,
            columns: columns(&params, dialect)?,
            shape: shape(&params, dialect)?,
            page: params.number("page")?,
            page_size: params.number("pageSize")?.unwrap_or(BLOCKS),
            shows_pages: is_set(&params, "showNumPages"),
            shows_key: is_set(&params, "showResumeKey"),
            start: Start::of(store, "/cdx", &params)?,
        };
        asked.checked()
    }

    /// Refuses questions that would need all lines of several pages in memory.
    fn checked(self) -> Result<Self, Status> {
        let [_, most] = LIMITS;
        if self.offset > 0 && matches!(self.limit, Limit::Last(_)) {
            return Err(bad("offset: cannot be combined with a negative limit"));
        }
        if self.reach == Reach::Page {
            return Ok(self);
        }
        match self.order {
            Order::Reverse if !self.collapses.is_empty() => {
                Err(bad("collapse: cannot be combined with sort=reverse for several pages"))
            }
            Order::Nearest(_) if self.nearest_lines().is_none() => Err(bad(format!(
                "limit: sort=closest for several pages needs one from 1 to {most}, with all lines before"
            ))),
            _ => Ok(self),
        }
    }

    /// The number of nearest lines that must be known: the skipped and sent lines, the limit, and one more line to know
    /// whether more follow.
    pub(super) fn nearest_lines(&self) -> Option<usize> {
        let [_, most] = LIMITS;
        let Limit::First(limit) = self.limit else { return None };
        let before = (self.sent() as u64).saturating_add(self.offset);
        let lines = before.saturating_add(limit);
        usize::try_from(lines).ok().filter(|_| lines <= most).map(|lines| lines + 1)
    }

    /// The number of lines that were sent, if the answer continues after a key that counts lines.
    pub(super) fn sent(&self) -> usize {
        self.start.position.map_or(0, |position| position.sent.saturating_add(1))
    }
}

/// Whether a parameter is given and its value does not mean no, as in pywb.
fn is_set(params: &Params, name: &str) -> bool {
    let is_no = |text: &str| ["0", "false", "f", "off", "no"].contains(&text.to_ascii_lowercase().as_str());
    params.all(name).next().is_some_and(|text| !is_no(text))
}

/// Reads `from` (or `from_ts`) and `to`. An interval that ends before it begins contains nothing.
fn interval(params: &Params) -> Result<(i64, i64), Status> {
    let from = match params.time("from", false)? {
        Some(from) => Some(from),
        None => params.time("from_ts", false)?,
    };
    Ok((from.unwrap_or(i64::MIN), params.time("to", true)?.unwrap_or(i64::MAX)))
}

/// Reads `fields` (or `fl`). Without them, all fields, under the names of the dialect.
fn columns(params: &Params, dialect: Dialect) -> Result<Vec<Column>, Status> {
    let (parameter, text) = match params.get("fields")? {
        Some(text) => ("fields", Some(text)),
        None => ("fl", params.get("fl")?),
    };
    let Some(text) = text else {
        let name = |[wayback, pywb]: [&str; 2]| if dialect == Dialect::Pywb { pywb } else { wayback }.to_owned();
        return Ok(FIELDS.iter().map(|&(field, names)| Column { field, name: name(names) }).collect());
    };
    let column = |name: &str| Ok(Column { field: Field::parse(parameter, name)?, name: name.to_owned() });
    text.split(',').map(|name| column(name.trim())).collect()
}

fn shape(params: &Params, dialect: Dialect) -> Result<Shape, Status> {
    let json = if dialect == Dialect::Pywb { Shape::Objects } else { Shape::Arrays };
    params.choice("output", [("text", Shape::Text), ("json", json), ("cdxj", Shape::Cdxj), ("link", Shape::Link)])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(query: &str) -> Result<Asked, Status> {
        Asked::of("a store", Some(&format!("url=a.example&{query}")))
    }

    #[test]
    fn what_says_nothing_to_a_store_is_passed_over_and_a_misspelt_parameter_is_not() {
        for query in [
            "resolveRevisits=true&gzip=false&fastLatest=true&crawl=x&crawl=y",
            "closest=&from=&filter=&showDupeCount=false&showPagedIndex=False",
        ] {
            assert!(asked(query).is_ok(), "{query}");
        }
        for (query, name) in [
            ("form=2006", "form: "),
            ("showDupeCount=true", "showDupeCount: "),
            ("limit=1&limit=2", "limit: "),
            ("page=-1", "page: "),
            ("pageSize=0", "pageSize: "),
            ("sort=up", "sort: "),
            ("matchType=surt", "matchType: "),
            ("collapseTime=15", "collapseTime: "),
            ("limit=-1&offset=1", "offset: "),
            ("matchType=host&closest=2006", "limit: "),
            ("matchType=host&closest=2006&limit=99999&offset=2", "limit: "),
            ("matchType=host&sort=reverse&collapse=urlkey", "collapse: "),
        ] {
            let refused = asked(query).err().map(|status| status.message().to_owned());
            assert!(refused.as_ref().is_some_and(|message| message.starts_with(name)), "{query}: {refused:?}");
        }
    }

    #[test]
    fn the_dialect_is_that_of_the_server_that_the_client_was_written_for() {
        for query in ["", "fl=original", "filter=~urlkey:a", "filter=!statuscode:2..", "collapse=timestamp:4"] {
            assert_eq!(asked(query).unwrap().dialect, Dialect::Wayback, "{query}");
            assert_eq!(asked(&format!("{query}&output=json")).unwrap().shape, Shape::Arrays, "{query}");
        }
        for query in ["fields=urlkey", "fl=timestamp,url", "filter=status:200", "filter=!~mime:a", "filter==urlkey:a"] {
            assert_eq!(asked(query).unwrap().dialect, Dialect::Pywb, "{query}");
            assert_eq!(asked(&format!("{query}&output=json")).unwrap().shape, Shape::Objects, "{query}");
        }
        let names = |query| asked(query).unwrap().columns.into_iter().map(|column| column.name).collect::<Vec<_>>();
        assert_eq!(names("")[2..5], ["original", "mimetype", "statuscode"]);
        assert_eq!(names("output=cdxj")[2..5], ["url", "mime", "status"]);
        assert_eq!(names("fields=url,statuscode,offset"), ["url", "statuscode", "offset"]);
    }

    #[test]
    fn orders_are_those_of_the_clients() {
        let second = |text| webstrata_layers::parse_time(text, false).unwrap();
        for (query, order) in [
            ("", Order::Stored),
            ("sort=default&closest=2006", Order::Stored),
            ("sort=closest&closest=", Order::Stored),
            ("closest=2006", Order::Nearest(second("2006"))),
            ("sort=closest&closest=200605011200", Order::Nearest(second("20060501120000"))),
            ("sort=reverse", Order::Reverse),
            ("reverse=1", Order::Reverse),
            ("reverse=0", Order::Stored),
        ] {
            assert_eq!(asked(query).unwrap().order, order, "{query}");
        }
        assert_eq!(asked("from=2007&to=2006").unwrap().interval, (second("2007"), second("2007") - 1));
    }
}
