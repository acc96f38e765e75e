//! The parameters that several paths have.

use webstrata_layers::{Failures, Match, Precision, RangeLength, Way};

use super::parameter::{Parameter, flag, number, numbers, text, texts, words, words_of};

/// The lengths of periods, by name.
pub(in crate::http) const PERIODS: [(&str, RangeLength); 3] =
    [("month", RangeLength::Month), ("year", RangeLength::Year), ("day", RangeLength::Days(1))];

pub(in crate::http) const URL: Parameter = text(
    "url",
    "A URL in any spelling. The fragment is ignored. Without a scheme, http and https are tried. Write an & in the \
        URL as %26 and a percent sign as %25.",
)
.required()
.example(&["http://a.example/"]);
pub(in crate::http) const URL_OR_ALL: Parameter =
    text("url", "As in /v1/links. Default: all URLs of the graph.").example(&["http://a.example/"]);
pub(in crate::http) const URLS: Parameter =
    texts("url", "One or more URLs.").required().example(&["http://a.example/", "http://c.example/"]);
pub(in crate::http) const DIRECTION: Parameter =
    words("direction", "out: links of the page. in: pages that link to the URL.", words_of::<Way>).example(&["in"]);
pub(in crate::http) const PRECISION: Parameter = words(
    "precision",
    "Only with direction=in. range: at the precision of the store's time ranges, which is faster and may give too \
        many sources, never too few.",
    words_of::<Precision>,
)
.example(&["range"])
.with(&[("direction", "in")]);
pub(in crate::http) const FROM: Parameter = text(
    "from",
    "Captures from this time on. A year, month, day or second in ISO 8601 or as 4 to 14 digits (YYYYMMDDhhmmss), UTC \
        without an offset; June 2008; yesterday; now; or 30d ago. A short time means the first second of its \
        period.",
)
.example(&["200605"]);
pub(in crate::http) const TO: Parameter = text(
    "to",
    "Captures up to this time. A year, month, day or second in ISO 8601 or as 4 to 14 digits (YYYYMMDDhhmmss), UTC \
        without an offset; June 2008; yesterday; now; or 30d ago. A short time means the last second of its \
        period.",
)
.example(&["200606"]);
pub(in crate::http) const AT: Parameter = text(
    "at",
    "The latest capture not after this time. A year, month, day or second in ISO 8601 or as 4 to 14 digits \
        (YYYYMMDDhhmmss), UTC without an offset; June 2008; yesterday; now; or 30d ago. A short time means the \
        last second of its period. Cannot be combined with from or to.",
)
.example(&["200605"]);
pub(in crate::http) const MAX_AGE: Parameter = text(
    "max_age",
    "Only with at. A page whose latest capture is older than this has no links. A number and a unit: s, h, d, w or y \
        (365 days).",
)
.example(&["1y"])
.with(&[("at", "200605")]);
pub(in crate::http) const FAILURES: Parameter = words(
    "failures",
    "Only with at. Which captures with a status of 400 or above count as the latest capture, which then has no \
        links. end: 4xx except 429. ignore: none. all: all.",
    words_of::<Failures>,
)
.example(&["ignore"])
.with(&[("at", "200605")]);
pub(in crate::http) const COUNT: Parameter = flag("count", "true: the number of links instead of the links.");
pub(in crate::http) const SAMPLE: Parameter = number(
    "sample",
    "At most this many links of each URL. The sample is the same in every call, and similar for pages with similar \
        links.",
    1,
    1_000_000,
)
.example(&["1"]);
pub(in crate::http) const RANDOM: Parameter =
    flag("random", "Only with sample. true: an independent sample for each page and, without seed, for each call.")
        .with(&[("sample", "1")]);
pub(in crate::http) const SEED: Parameter = number(
    "seed",
    "Only with sample. The same seed gives the same sample. Default: 0, or a new seed for each call if random=true.",
    0,
    u64::MAX,
)
.example(&["7"])
.with(&[("sample", "1")]);
pub(in crate::http) const LIMIT: Parameter = number(
    "limit",
    "At most this many links, captures, lifespans or URLs in the answer. An answer that is very long or takes long \
        to find has fewer. If there is more, the answer has resume_key, even if the answer is empty. 0: as many as \
        one answer may have.",
    0,
    1_000_000,
)
.default(10_000)
.example(&["1"]);
pub(in crate::http) const RESUME_KEY: Parameter = text(
    "resume_key",
    "The resume_key of the previous answer, which is opaque. The answer continues exactly where the previous answer \
        ended, in the same epoch. Repeat all other parameters; only limit may differ.",
);
pub(in crate::http) const EPOCH: Parameter =
    number("epoch", "The epoch to ask. Default: the current epoch.", 1, u64::MAX).example(&["1"]);
pub(in crate::http) const MATCH: Parameter = words(
    "match",
    "exact: the URL itself. surt: the URLs with its urlkey, which are other spellings of the page; links of these \
        are one list. prefix: URLs that begin with it, with any scheme, port and user info. host: URLs of its host. \
        domain: URLs of its host and of all hosts below.",
    words_of::<Match>,
)
.example(&["host"]);
pub(in crate::http) const MATCH_OF_TARGET: Parameter = words(
    "match",
    "Without it, domain for a name without a scheme and a path, else exact. exact: the URL itself. surt: the URLs \
        with its urlkey, which are other spellings of the page. prefix: URLs that begin with it, with any scheme, \
        port and user info. host: URLs of its host. domain: URLs of its host and of all hosts below.",
    words_of::<Match>,
)
.unsaid()
.example(&["host"]);
pub(in crate::http) const MATCH_OF_URL: Parameter = words(
    "match",
    "Only with url. exact: the URL itself. surt: the URLs with its urlkey, which are other spellings of the page; \
        links of these are one list. prefix: URLs that begin with it, with any scheme, port and user info. host: \
        URLs of its host. domain: URLs of its host and of all hosts below.",
    words_of::<Match>,
)
.example(&["host"])
.with(&[("url", "http://a.example/")]);
pub(in crate::http) const UIDS: Parameter = numbers("uid", "One or more UIDs.").required().example(&["0", "2"]);
pub(in crate::http) const FROM_EPOCH: Parameter =
    number("from", "The epoch of the UIDs. Default: the current epoch.", 1, u64::MAX).example(&["1"]);
pub(in crate::http) const TO_EPOCH: Parameter =
    number("to", "The epoch to translate to. Default: the current epoch.", 1, u64::MAX).example(&["1"]);
