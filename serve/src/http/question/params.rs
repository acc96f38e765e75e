//! The parameters of an HTTP question. Parsing is strict, so that a misspelt parameter is refused and not ignored.
//!
//! The query has `name=value` pairs between `&`, encoded like HTML forms: `+` is a space, `%2B` is a plus. Every
//! refusal is a BAD_REQUEST that begins with the name of the parameter.

use std::ops::RangeInclusive;

use tonic::Status;
use webstrata_layers::read::question::limited;
use webstrata_layers::{AsOf, Failures, Window, interval, parse_age, parse_time};
use webstrata_layers::{Word, counts_from_now};

use super::parameter::{Parameter, Shape};
use crate::http::caching::of_clock;
use crate::protocol::resume::Fingerprint;
use crate::protocol::status::bad;

/// Parameters that choose a page of the answer and are not part of the question.
const OF_PAGES: [&str; 4] = ["epoch", "limit", "resume_key", "resumeKey"];

/// The parameters of a question.
#[derive(Debug)]
pub(in crate::http) struct Params {
    known: &'static [Parameter],
    pairs: Vec<(&'static str, String)>,
}

impl Params {
    /// Parses the query of a path that knows these parameters.
    pub(in crate::http) fn of(query: Option<&str>, known: &'static [Parameter]) -> Result<Self, Status> {
        let mut pairs: Vec<(&'static str, String)> = Vec::new();
        for pair in query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let name = decoded(name).ok_or_else(|| bad(format!("{name}: the parameter name is not UTF-8")))?;
            let Some(parameter) = known.iter().find(|known| known.name == name) else {
                let names: Vec<&str> = known.iter().map(|known| known.name).collect();
                let hint = if names.contains(&"url") { "; write an & inside a URL as %26" } else { "" };
                let all = if known.is_empty() { "none".to_owned() } else { names.join(", ") };
                return Err(bad(format!("{name}: unknown parameter (expected: {all}){hint}")));
            };
            let Some(value) = decoded(value) else {
                return Err(bad(format!("{name}: the value is not UTF-8; write a percent sign as %25")));
            };
            if !parameter.repeats && pairs.iter().any(|(other, _)| *other == parameter.name) {
                return Err(bad(format!("{name}: given more than once")));
            }
            pairs.push((parameter.name, value));
        }
        Ok(Self { known, pairs })
    }

    /// The parameters that have a value.
    #[must_use]
    pub(in crate::http) fn without_empty(mut self) -> Self {
        self.pairs.retain(|(_, value)| !value.is_empty());
        self
    }

    /// Whether the path has the parameter.
    pub(in crate::http) fn knows(&self, name: &str) -> bool {
        self.known.iter().any(|known| known.name == name)
    }

    /// The values of a parameter that may be given several times.
    pub(in crate::http) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.pairs.iter().filter(move |(known, _)| *known == name).map(|(_, value)| value.as_str())
    }

    /// The value of a parameter, if it is given. An empty value is refused.
    pub(in crate::http) fn get(&self, name: &str) -> Result<Option<&str>, Status> {
        debug_assert!(self.knows(name), "{name} is not in the table of the path");
        match self.all(name).next() {
            Some("") => Err(bad(format!("{name}: empty; give a value or leave it out"))),
            value => Ok(value),
        }
    }

    /// The value of a parameter that must be given.
    pub(in crate::http) fn required(&self, name: &str) -> Result<&str, Status> {
        self.get(name)?.ok_or_else(|| bad(format!("{name}: missing (required)")))
    }

    /// One of several words; the first word is the default.
    pub(in crate::http) fn choice<T: Copy, const N: usize>(
        &self,
        name: &str,
        words: [(&str, T); N],
    ) -> Result<T, Status> {
        let value = self.get(name)?;
        let found = words.iter().find(|(word, _)| value.is_none_or(|value| value == *word));
        found.map(|(_, choice)| *choice).ok_or_else(|| {
            let words = words.map(|(word, _)| word).join(" or ");
            bad(format!("{name}: unknown value {:?} (expected {words})", value.unwrap_or_default()))
        })
    }

    /// A word of a type; the first word is the default.
    pub(in crate::http) fn word<T: Word>(&self, name: &str) -> Result<T, Status> {
        let Some(value) = self.get(name)? else { return Ok(T::VALUES[0]) };
        T::of_word(value).ok_or_else(|| {
            let words = T::VALUES.iter().map(|value| value.word()).collect::<Vec<_>>().join(" or ");
            bad(format!("{name}: unknown value {value:?} (expected {words})"))
        })
    }

    /// `true` or `false` (the default).
    pub(in crate::http) fn flag(&self, name: &str) -> Result<bool, Status> {
        self.choice(name, [("false", false), ("true", true)])
    }

    /// A whole number in the bounds of its parameter; without one, the default of the parameter.
    pub(in crate::http) fn number(&self, name: &str) -> Result<Option<u64>, Status> {
        let (bounds, default) = self.bounds(name);
        self.get(name)?.map(|text| number(name, text, &bounds)).transpose().map(|given| given.or(default))
    }

    /// `limit`. 0 means all that one answer has room for: the largest number allowed.
    pub(in crate::http) fn limit(&self) -> Result<usize, Status> {
        let most = *self.bounds("limit").0.end();
        let limit = limited(self.number("limit")?.unwrap_or(most), most);
        Ok(usize::try_from(limit).unwrap_or(usize::MAX))
    }

    /// `epoch`; 0 if it is not given: the current epoch.
    pub(in crate::http) fn epoch(&self) -> Result<u64, Status> {
        Ok(self.number("epoch")?.unwrap_or(0))
    }

    /// The bounds and the default of a number.
    fn bounds(&self, name: &str) -> (RangeInclusive<u64>, Option<u64>) {
        let shape = self.known.iter().find(|known| known.name == name).map(|known| known.shape);
        match shape {
            Some(Shape::Number { least, most, default }) => (least..=most, default),
            _ => (0..=u64::MAX, None),
        }
    }

    /// Several whole numbers.
    pub(in crate::http) fn numbers(&self, name: &str) -> Result<Vec<u64>, Status> {
        self.all(name).map(|text| number(name, text, &(0..=u64::MAX))).collect()
    }

    /// The closed interval of `from` and `to`; `None` if neither is given.
    pub(in crate::http) fn interval(&self) -> Result<Option<(i64, i64)>, Status> {
        let (from, to) = (self.time("from", false)?, self.time("to", true)?);
        if from.is_none() && to.is_none() {
            return Ok(None);
        }
        interval(from, to).map(Some).map_err(|error| bad(error.to_string()))
    }

    /// The window of `from` and `to`, or of `at`, `max_age` and `failures`.
    pub(in crate::http) fn window(&self) -> Result<Window, Status> {
        match (self.interval()?, self.dated()?) {
            (None, Some(as_of)) => Ok(Window::AsOf(as_of)),
            (Some(_), Some(_)) => Err(bad("at: cannot be combined with from or to")),
            (Some((from, to)), None) => Ok(Window::Seen { from, to }),
            (None, None) => Ok(Window::ALWAYS),
        }
    }

    /// The time `at`, with `max_age` and `failures`; without a time, the latest captures.
    pub(in crate::http) fn as_of(&self) -> Result<AsOf, Status> {
        Ok(self.dated()?.unwrap_or(AsOf::new(i64::MAX)))
    }

    fn dated(&self) -> Result<Option<AsOf>, Status> {
        let at = self.time("at", true)?;
        let (age, failures) = self.counting()?;
        for name in ["max_age", "failures"] {
            if at.is_none() && self.get(name)?.is_some() {
                return Err(bad(format!("{name}: needs at")));
            }
        }
        Ok(at.map(|at| AsOf { failures, ..AsOf::new(at).within(age) }))
    }

    /// The dates `from_date` and `to_date`, with `max_age` and `failures`; a short date means its last second.
    pub(in crate::http) fn dates(&self) -> Result<[AsOf; 2], Status> {
        let date = |name| self.time(name, true)?.ok_or_else(|| bad(format!("{name}: missing (required)")));
        let (from, to) = (date("from_date")?, date("to_date")?);
        interval(Some(from), Some(to)).map_err(|error| bad(format!("from_date: {error}")))?;
        let (age, failures) = self.counting()?;
        Ok([from, to].map(|time| AsOf { failures, ..AsOf::new(time).within(age) }))
    }

    /// `max_age` and `failures`: which captures count as of a time.
    fn counting(&self) -> Result<(Option<i64>, Failures), Status> {
        let age = self.get("max_age")?.map(|text| {
            parse_age(text)
                .ok_or_else(|| bad(format!("max_age: not an age: {text:?} (expected as 12h, 30d, 4w or 2y)")))
        });
        Ok((age.transpose()?, self.word::<Failures>("failures")?))
    }

    /// A time. A short time means its first second, or with `end` its last second.
    pub(in crate::http) fn time(&self, name: &str, end: bool) -> Result<Option<i64>, Status> {
        let Some(text) = self.get(name)? else { return Ok(None) };
        if counts_from_now(text) {
            of_clock();
        }
        let time = parse_time(text, end).map_err(|error| {
            let hint = if text.contains(':') && text.contains(' ') { "; write a + as %2B" } else { "" };
            bad(format!("{name}: {error}{hint}"))
        });
        time.map(Some)
    }

    /// The hash of the question, which is the same for every page of the answer.
    pub(in crate::http) fn fingerprint(&self, path: &str) -> Fingerprint {
        let mut pairs: Vec<_> = self.pairs.iter().filter(|(name, _)| !OF_PAGES.contains(name)).collect();
        pairs.sort_unstable();
        let mut text = path.to_owned();
        for (name, value) in pairs {
            // No text in a name or a value is mistaken for the border between them.
            text.push_str(&format!("\n{name}={}:{value}", value.len()));
        }
        Fingerprint::of(text.as_bytes())
    }
}

/// A whole number in bounds.
pub(in crate::http) fn number(name: &str, text: &str, bounds: &RangeInclusive<u64>) -> Result<u64, Status> {
    let number = text.parse().ok().filter(|number| bounds.contains(number) && !text.starts_with('+'));
    number.ok_or_else(|| {
        let (min, max) = (bounds.start(), bounds.end());
        bad(format!("{name}: {text:?} is not a number from {min} to {max}"))
    })
}

/// Decodes pluses and percent escapes. A percent sign without two hexadecimal digits after it stays a percent sign.
pub(in crate::http) fn decoded(text: &str) -> Option<String> {
    let digit =
        |byte: Option<&u8>| byte.and_then(|byte| char::from(*byte).to_digit(16)).and_then(|d| u8::try_from(d).ok());
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut index = 0;
    while let Some(&byte) = bytes.get(index) {
        match (byte, digit(bytes.get(index + 1)), digit(bytes.get(index + 2))) {
            (b'%', Some(high), Some(low)) => {
                out.push(high << 4 | low);
                index += 3;
            }
            (b'+', ..) => {
                out.push(b' ');
                index += 1;
            }
            _ => {
                out.push(byte);
                index += 1;
            }
        }
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    use super::super::parameter::number as number_of;
    use super::super::parameters::{AT, COUNT, DIRECTION, EPOCH, FAILURES, FROM, MAX_AGE, TO, UIDS, URL};
    use webstrata_layers::Way;

    const KNOWN: &[Parameter] = &[
        URL,
        FROM,
        TO,
        AT,
        MAX_AGE,
        FAILURES,
        number_of("limit", "", 0, 1000).default(3),
        COUNT,
        DIRECTION,
        EPOCH,
        UIDS,
    ];

    fn params(query: &str) -> Result<Params, Status> {
        Params::of(Some(query), KNOWN)
    }

    fn message<T: std::fmt::Debug>(result: Result<T, Status>) -> String {
        let status = result.expect_err("a refusal");
        assert_eq!(crate::protocol::status::Reason::of(&status), Some(crate::protocol::status::Reason::BadRequest));
        status.message().to_owned()
    }

    #[test]
    fn what_is_not_understood_is_refused_by_its_name() {
        for (query, name) in [
            ("form=2006", "form: "),
            ("limit=1&limit=1", "limit: "),
            ("url=http://a/?b&c=1", "c: "),
            ("url=%FF", "url: "),
        ] {
            assert!(message(params(query)).starts_with(name), "{query}");
        }
        let given = params("limit=1001&from=2006&to=2005&at=20061&count=yes&direction=up&url=").unwrap();
        assert!(message(given.number("limit")).starts_with("limit: \"1001\" is not a number from 0 to 1000"));
        assert!(message(given.window()).starts_with("from 2006"));
        assert!(message(given.time("at", true)).starts_with("at: "));
        assert!(message(given.flag("count")).starts_with("count: "));
        let direction = given.word::<Way>("direction");
        assert_eq!(message(direction), "direction: unknown value \"up\" (expected out or in)");
        assert_eq!(message(given.required("url")), "url: empty; give a value or leave it out");
        assert_eq!(message(params("").unwrap().required("url")), "url: missing (required)");
        assert!(message(params("at=2006&to=2007").unwrap().window()).starts_with("at: "));
        for number in ["", "-1", "+1", "1.0", "18446744073709551616"] {
            assert!(message(params(&format!("limit={number}")).unwrap().number("limit")).starts_with("limit: "));
        }
    }

    #[test]
    fn values_are_as_written() {
        let given =
            params("url=http%3A%2F%2Fa.example%2F%3Fx%3D1%26y&uid=1&uid=2&from=2006-05-01T14:34:56%2B02:00&&limit=5")
                .unwrap();
        assert_eq!(given.required("url").unwrap(), "http://a.example/?x=1&y");
        assert_eq!(given.numbers("uid").unwrap(), [1, 2]);
        assert_eq!(given.number("limit").unwrap(), Some(5));
        assert_eq!(given.number("epoch").unwrap(), None);
        assert_eq!((given.limit().unwrap(), params("").unwrap().limit().unwrap()), (5, 3));
        assert_eq!(params("limit=0").unwrap().limit().unwrap(), 1000);
        let from = parse_time("20060501123456", false).unwrap();
        assert_eq!(given.window().unwrap(), Window::Seen { from, to: i64::MAX });
        let written = "url=http://a/x+y%2Bz%2b%2zé=+&at=2006";
        assert_eq!(params(written).unwrap().required("url").unwrap(), "http://a/x y+z+%2zé= ");
        assert!(message(params("at=2006-05-01T14:34:56+02:00").unwrap().window()).ends_with("write a + as %2B"));
        assert_eq!(
            params("at=2006").unwrap().window().unwrap(),
            Window::as_of(parse_time("20061231235959", true).unwrap())
        );
        assert_eq!(Params::of(None, &[]).unwrap().fingerprint("/"), params("").unwrap().fingerprint("/"));
    }

    #[test]
    fn windows_run_forwards_in_the_years_that_captures_have() {
        for (query, refused) in [
            ("from=2007&to=2006", "from 2007-01-01T00:00:00Z is later than to 2006-12-31T23:59:59Z"),
            ("from=0000", "from: no such year: \"0000\""),
            ("at=1209588506000", "at: not a time: \"1209588506000\""),
        ] {
            let status = params(query).unwrap().window().unwrap_err();
            assert!(status.message().contains(refused), "{query}: {status:?}");
        }
        assert!(params("from=2006&to=2006").unwrap().window().is_ok());
    }

    #[test]
    fn other_questions_have_other_fingerprints() {
        let print = |query: &str| params(query).unwrap().fingerprint("/v1/links");
        assert_eq!(print("url=a&from=2006"), print("from=2006&limit=7&epoch=3&url=a"));
        for other in ["url=a", "url=b&from=2006", "url=a%0Afrom=4:2006", "url=a&to=2006", "url=a&from=200601"] {
            assert_ne!(print("url=a&from=2006"), print(other), "{other}");
        }
        let given = params("url=a").unwrap();
        assert_ne!(given.fingerprint("/v1/links"), given.fingerprint("/v1/captures"));
    }

    proptest! {
        #[test]
        fn everything_is_decoded_from_what_encodes_it(text in any::<String>(), all in any::<bool>()) {
            let keeps = |byte: u8| !all && byte.is_ascii_alphanumeric();
            let written =
                |byte: u8| if keeps(byte) { char::from(byte).to_string() } else { format!("%{byte:02x}") };
            let encoded: String = text.bytes().map(written).collect();
            prop_assert_eq!(decoded(&encoded), Some(text));
        }

        #[test]
        fn no_query_panics(query in "[a-z%0-9&=+\u{0}-\u{ff}]{0,40}") {
            let _ = params(&query);
        }
    }
}
