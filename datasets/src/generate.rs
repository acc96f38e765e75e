//! Generates crawls of any size from a seed, for demonstrations, tests and measurements.
//!
//! ```text
//! "uk:occurrences=100000000,seed=9" -> GenerateOptions -> inputs: many parts -> Generator -> captures -> files
//! ```
//!
//! The same options give the same captures on every machine. A crawl consists of hosts, and each host is generated
//! independently. A crawl is therefore split into shares that start at once: some hosts with about
//! `SHARE_OCCURRENCES` link occurrences. The size of a host follows from the requested number of occurrences and from
//! the average of the model, so that the crawl has about the requested number without a count.
//!
//! | file | what |
//! |---|---|
//! | this one | options, the sizes of hosts, shares |
//! | `model` | one host after the other: pages, captures, links over time |
//! | `profiles` | the differences between profiles |
//! | `names` | the URLs |
//! | `write`, `write_parquet` | a crawl as JSON lines, WARC, Parquet |
//! | `write_graph` | the months of a crawl as web graphs |

mod model;
mod names;
mod profiles;
mod random;
mod write;
mod write_graph;
mod write_parquet;

use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

pub use model::Generator;
pub use write::{write_jsonl, write_warc};
pub use write_graph::MonthGraph;
pub use write_parquet::write_parquet;

/// The most months of a crawl.
pub const MONTHS_MAX: u32 = 1200;
/// The largest [`GenerateOptions::deaths`]: all pages die.
pub const DEATHS_MAX: u32 = 10_000;
/// The approximate number of link occurrences of a share.
const SHARE_OCCURRENCES: u64 = 1_000_000;
/// The average number of pages of a host, and the most pages and link occurrences of a host: the URLs of a host are in
/// memory, and a host must not make a share much larger.
const HOST_PAGES: u64 = 60;
const HOST_PAGES_MAX: u64 = 8_000;
const HOST_OCCURRENCES_MAX: u64 = 1_500_000;
/// The number of hosts of even a small crawl, if it has enough pages.
const HOSTS_MIN: u64 = 5;
/// The bytes that a link occurrence adds to the size of an input.
const OCCURRENCE_BYTES: u64 = 64;

/// The kind of a crawl.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Profile {
    /// Monthly, with much in common between neighbours, like the crawls of the UK in 2006 and 2007.
    Uk,
    /// Monthly, with links that are less alike and live shorter.
    Hard,
    /// 1 to 50 captures a page, at any second; links as in `Hard`.
    Irregular,
}

impl Profile {
    const ALL: [Profile; 3] = [Profile::Uk, Profile::Hard, Profile::Irregular];

    /// The name of the profile in options.
    pub fn name(self) -> &'static str {
        match self {
            Profile::Uk => "uk",
            Profile::Hard => "hard",
            Profile::Irregular => "irregular",
        }
    }
}

/// The options of a generated crawl; as text `uk:occurrences=100000,seed=1,months=12`, where every part except the
/// profile is optional.
///
/// ```
/// use webstrata_datasets::{Capture, CaptureReader, GenerateOptions, Generator, Tally};
///
/// let options: GenerateOptions = "uk:occurrences=2000,seed=7,months=3".parse()?;
/// let mut crawl = Generator::new(options);
/// let (mut capture, mut captures, mut links) = (Capture::default(), 0, 0);
/// while crawl.read(&mut capture, &mut Tally::default())? {
///     captures += 1;
///     links += capture.links.len();
/// }
/// assert!(captures > 0 && links > 1000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GenerateOptions {
    /// The kind of the crawl.
    pub profile: Profile,
    /// The approximate number of links of all captures together.
    pub occurrences: u64,
    /// The seed. Another seed gives another crawl.
    pub seed: u64,
    /// The length of the crawl in months, 1 to [`MONTHS_MAX`].
    pub months: u32,
    /// The first and the last month whose captures are generated, counted from 1; `None` for all months. The captures
    /// of a month are the same with and without this option.
    pub only: Option<(u32, u32)>,
    /// How many of ten thousand pages die at a capture, 0 to [`DEATHS_MAX`]. From then on, the captures of a page are
    /// failures without links, until a few of the pages come back. In addition, a quarter as many captures are failures
    /// of the server.
    pub deaths: u32,
}

impl GenerateOptions {
    /// The months whose captures are generated, counted from 1.
    pub fn selected(&self) -> std::ops::RangeInclusive<u32> {
        let (first, last) = self.only.unwrap_or((1, self.months));
        first..=last
    }
}

impl Default for GenerateOptions {
    fn default() -> Self {
        GenerateOptions { profile: Profile::Uk, occurrences: 100_000, seed: 1, months: 12, only: None, deaths: 0 }
    }
}

/// Why a text is not valid as [`GenerateOptions`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OptionsError {
    /// The text before the colon is not the name of a profile.
    #[error(
        "unknown profile {0:?} (expected uk, hard or irregular; \
         for example uk:occurrences=1000000,seed=9,months=12)"
    )]
    Profile(String),
    /// The text before an equals sign is not the name of an option.
    #[error(
        "unknown option {0:?} (expected occurrences=N, seed=N, months=N, from=N, to=N or deaths=N, separated by commas)"
    )]
    Option(String),
    /// An option is given twice.
    #[error("{0} is given twice")]
    Twice(&'static str),
    /// The text after an equals sign is not a number in range.
    #[error("{option}={value}: {source}")]
    Number {
        /// The option.
        option: &'static str,
        /// The text after the equals sign.
        value: String,
        /// Why the text is not a number.
        source: ParseIntError,
    },
    /// The number of months is out of range.
    #[error("months={0}: a crawl has 1 to {MONTHS_MAX} months")]
    Months(u64),
    /// `from` and `to` are not months of the crawl in this order.
    #[error("from={0},to={1}: expected months of the crawl, 1 to {2}, with from not after to")]
    Only(u64, u64, u32),
    /// More deaths than pages.
    #[error("deaths={0}: 0 to {DEATHS_MAX} of {DEATHS_MAX} pages can die at a capture")]
    Deaths(u64),
}

impl FromStr for GenerateOptions {
    type Err = OptionsError;

    fn from_str(text: &str) -> Result<Self, OptionsError> {
        const OPTIONS: [&str; 6] = ["occurrences", "seed", "months", "from", "to", "deaths"];
        let (profile, rest) = text.split_once(':').map_or((text, None), |(profile, rest)| (profile, Some(rest)));
        let is_it = |candidate: &Profile| candidate.name() == profile;
        let Some(profile) = Profile::ALL.into_iter().find(is_it) else {
            return Err(OptionsError::Profile(profile.to_owned()));
        };
        let mut values = [None; OPTIONS.len()];
        for setting in rest.into_iter().flat_map(|rest| rest.split(',')) {
            let (name, value) = setting.split_once('=').unwrap_or((setting, ""));
            let Some(index) = OPTIONS.iter().position(|&option| option == name) else {
                return Err(OptionsError::Option(name.to_owned()));
            };
            let option = OPTIONS[index];
            let number = |source| OptionsError::Number { option, value: value.to_owned(), source };
            if values[index].replace(value.parse().map_err(number)?).is_some() {
                return Err(OptionsError::Twice(option));
            }
        }
        let [occurrences, seed, months, from, to, deaths] = values;
        let default = GenerateOptions::default();
        let months = match months {
            None => default.months,
            Some(months) => match u32::try_from(months) {
                Ok(number) if (1..=MONTHS_MAX).contains(&number) => number,
                _ => return Err(OptionsError::Months(months)),
            },
        };
        let [occurrences, seed] = [occurrences.unwrap_or(default.occurrences), seed.unwrap_or(default.seed)];
        let (first, last) = (from.unwrap_or(1), to.unwrap_or(months.into()));
        let selected = u32::try_from(first).ok().zip(u32::try_from(last).ok());
        let selected = selected.filter(|&(first, last)| 0 < first && first <= last && last <= months);
        let selected = selected.ok_or(OptionsError::Only(first, last, months))?;
        let only = (selected != (1, months)).then_some(selected);
        let deaths = deaths.unwrap_or(0);
        let in_range = u32::try_from(deaths).ok().filter(|&number| number <= DEATHS_MAX);
        let deaths = in_range.ok_or(OptionsError::Deaths(deaths))?;
        Ok(GenerateOptions { profile, occurrences, seed, months, only, deaths })
    }
}

impl fmt::Display for GenerateOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let GenerateOptions { profile, occurrences, seed, months, only, deaths } = self;
        write!(f, "{}:occurrences={occurrences},seed={seed},months={months}", profile.name())?;
        only.map_or(Ok(()), |(from, to)| write!(f, ",from={from},to={to}"))?;
        if *deaths > 0 { write!(f, ",deaths={deaths}") } else { Ok(()) }
    }
}

/// Some hosts of a crawl, from the largest to the smallest. A share is generated independently of the other shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Share {
    options: GenerateOptions,
    sizes: Sizes,
    /// The hosts `first..end`.
    first: u64,
    end: u64,
}

impl Share {
    /// The share that holds a whole crawl.
    pub(crate) fn whole(options: GenerateOptions) -> Self {
        let sizes = Sizes::of(options);
        Share { options, sizes, first: 0, end: sizes.hosts }
    }

    /// Splits a crawl into shares. Returns each with the approximate number of bytes that it would have as a file.
    /// Together, the shares give the captures of a [`Generator`] of the whole crawl.
    pub(crate) fn parts(options: GenerateOptions) -> Vec<(Self, u64)> {
        let whole = Share::whole(options);
        let a_page = profiles::page_occurrences_thousandths(options);
        let (mut parts, mut first, mut pages) = (Vec::new(), 0, 0);
        for host in 0..whole.end {
            pages += whole.sizes.pages(host);
            let occurrences = pages * a_page / 1000;
            let end = host + 1;
            if end == whole.end || occurrences >= SHARE_OCCURRENCES {
                parts.push((Share { first, end, ..whole }, occurrences * OCCURRENCE_BYTES));
                (first, pages) = (end, 0);
            }
        }
        parts
    }
}

/// The number of pages of each host: host number `h` has `scale / (flat + h)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Sizes {
    hosts: u64,
    scale: u64,
    flat: u64,
}

impl Sizes {
    fn of(options: GenerateOptions) -> Self {
        let a_page = profiles::page_occurrences_thousandths(options);
        let pages_max = (HOST_OCCURRENCES_MAX * 1000 / a_page).clamp(1, HOST_PAGES_MAX);
        let pages = u128::from(options.occurrences) * 1000 / u128::from(a_page);
        let pages = u64::try_from(pages).unwrap_or(u64::MAX).max(1);
        let hosts = (pages / HOST_PAGES).max(HOSTS_MIN.min(pages / 2)).max(1);
        let mut flat = 5;
        loop {
            const ONE: u64 = 1 << 40;
            let sum: u64 = (flat..flat + hosts).map(|rank| ONE / rank).sum();
            let scale = u64::try_from(u128::from(pages) * u128::from(ONE) / u128::from(sum)).unwrap_or(u64::MAX);
            if scale / flat <= pages_max {
                return Sizes { hosts, scale, flat };
            }
            flat += flat / 2;
        }
    }

    /// The number of pages of a host, at least one.
    fn pages(&self, host: u64) -> u64 {
        let rank = self.flat + host;
        ((self.scale + rank / 2) / rank).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Capture, CaptureReader, LinkKinds, Tally, generated, open};
    use std::collections::{BTreeMap, BTreeSet};
    use webstrata_url::canonical;
    use xxhash_rust::xxh3::Xxh3;

    fn all(options: &str) -> Vec<Capture> {
        read(&mut Generator::new(options.parse().unwrap()))
    }

    fn read(reader: &mut dyn CaptureReader) -> Vec<Capture> {
        let (mut captures, mut capture, mut tally) = (Vec::new(), Capture::default(), Tally::default());
        while reader.read(&mut capture, &mut tally).unwrap() {
            captures.push(capture.clone());
        }
        assert_eq!(tally, Tally::default());
        captures
    }

    fn links(captures: &[Capture]) -> usize {
        captures.iter().map(|capture| capture.links.len()).sum()
    }

    fn host(url: &str) -> &str {
        url.split('/').nth(2).unwrap()
    }

    #[test]
    fn parts_of_a_crawl_are_its_months() {
        let whole = all("uk:occurrences=20000,months=6");
        let mut parts: Vec<Capture> = ["to=2", "from=3,to=3", "from=4"]
            .iter()
            .flat_map(|part| all(&format!("uk:occurrences=20000,months=6,{part}")))
            .collect();
        assert!(parts.len() > 100);
        parts.sort_by(|one, other| (&one.url, one.time).cmp(&(&other.url, other.time)));
        let mut sorted = whole;
        sorted.sort_by(|one, other| (&one.url, one.time).cmp(&(&other.url, other.time)));
        assert_eq!(parts, sorted);
    }

    #[test]
    fn pages_die_and_nothing_else_changes() {
        let (alive, dying) = (all("uk:occurrences=50000"), all("uk:occurrences=50000,deaths=500"));
        let (mut gone, mut back, mut busy) = (0, 0, 0);
        assert_eq!(alive.len(), dying.len());
        for (before, captures) in alive.chunk_by(|a, b| a.url == b.url).zip(dying.chunk_by(|a, b| a.url == b.url)) {
            let mut was_gone = false;
            for (before, capture) in before.iter().zip(captures) {
                let status = capture.status.unwrap_or(200);
                assert!([200, 404, 410, 503].contains(&status));
                if status == 200 {
                    assert_eq!(capture, before);
                } else {
                    assert!(capture.links.is_empty());
                }
                let is_gone = status == 404 || status == 410;
                gone += usize::from(is_gone && !was_gone);
                back += usize::from(was_gone && status == 200);
                busy += usize::from(status == 503);
                was_gone = is_gone || (was_gone && status == 503);
            }
        }
        let captures = alive.len();
        assert!((captures / 40..captures / 15).contains(&gone), "{gone} of {captures}");
        assert!(back > 0 && back < gone && busy > captures / 200, "{back} {busy}");
    }

    #[test]
    fn options_are_read_as_they_are_written() {
        let options = |text: &str| text.parse::<GenerateOptions>();
        assert_eq!(options("uk"), Ok(GenerateOptions::default()));
        let profile = Profile::Irregular;
        let (occurrences, only) = (1 << 40, Some((7, 9)));
        let options_in = GenerateOptions { profile, occurrences, seed: u64::MAX, months: 1200, only, deaths: 10_000 };
        assert_eq!(options(&options_in.to_string()), Ok(options_in));
        assert_eq!(options("hard:seed=9").unwrap().to_string(), "hard:occurrences=100000,seed=9,months=12");
        for (text, fragment) in [
            ("", "\"\""),
            ("UK", "\"UK\""),
            ("uk:", "\"\""),
            ("uk:pages=3", "\"pages\""),
            ("uk:seed=1,seed=2", "seed is given twice"),
            ("uk:occurrences=", "occurrences=: cannot parse integer from empty string"),
            ("uk:occurrences=1e9", "occurrences=1e9: invalid digit"),
            ("uk:seed=-1", "seed=-1: invalid digit"),
            ("uk:from=3,to=2", "from=3,to=2"),
            ("uk:from=0", "from=0,to=12"),
            ("uk:months=3,to=4", "to=4"),
            ("uk:deaths=10001", "deaths=10001"),
            ("uk:months=0", "months=0"),
            ("uk:months=1201", "months=1201"),
        ] {
            let error = options(text).unwrap_err().to_string();
            assert!(error.contains(fragment), "{text}: {error}");
        }
    }

    #[test]
    fn shares_together_are_the_crawl() {
        for options in ["uk:occurrences=5000000", "irregular:occurrences=3000000,months=5", "hard:occurrences=10"] {
            let inputs = generated(options.parse().unwrap());
            let mut shares = Vec::new();
            for input in inputs.iter().rev() {
                assert!(input.path().to_str().unwrap().starts_with("generate:"), "{input:?}");
                let share = read(&mut *open(input, LinkKinds::default()).unwrap());
                let is_last = input == &inputs[inputs.len() - 1];
                assert!(links(&share) < 2_000_000 && (is_last || links(&share) > 500_000), "{}", links(&share));
                shares.push(share);
            }
            shares.reverse();
            let crawl = all(options);
            assert!(shares.concat() == crawl, "{options}");
            assert!(inputs.len() == links(&crawl).div_ceil(1_150_000), "{options}: {} inputs", inputs.len());
        }
    }

    #[test]
    fn shares_of_a_huge_crawl_are_small() {
        for options in
            ["uk:occurrences=3000000000", "uk:occurrences=1000000000,months=300", "irregular:occurrences=1000000000"]
        {
            let inputs = generated(options.parse().unwrap());
            let largest = inputs.iter().map(|input| input.bytes).max().unwrap() / OCCURRENCE_BYTES;
            let all: u64 = inputs.iter().map(|input| input.bytes / OCCURRENCE_BYTES).sum();
            assert!(largest <= 3 * SHARE_OCCURRENCES, "{options}: {largest}");
            let wanted = options.parse::<GenerateOptions>().unwrap().occurrences;
            assert!(all.abs_diff(wanted) < wanted / 100, "{options}: {all}");
        }
    }

    #[test]
    fn the_crawl_has_as_many_links_as_asked_for() {
        for options in [
            "uk:occurrences=4000000",
            "uk:occurrences=4000000,months=48,seed=2",
            "hard:occurrences=4000000,months=3",
            "irregular:occurrences=4000000",
            "irregular:occurrences=4000000,months=60,seed=5",
        ] {
            let links = links(&all(options));
            assert!(links.abs_diff(4_000_000) < 100_000, "{options}: {links}");
        }
        assert_eq!(links(&all("uk:occurrences=0,months=1")) / 100, 0);
    }

    #[test]
    fn the_crawl_is_as_described() {
        for (profile, outside, captures_a_page) in
            [("uk", 14..20, 10..12), ("hard", 17..25, 10..12), ("irregular", 17..25, 2..3)]
        {
            let captures = all(&format!("{profile}:occurrences=400000"));
            let links = links(&captures);
            let a_capture = links / captures.len();
            assert!((35..40).contains(&a_capture), "{profile}: {a_capture} links a capture");
            let leaves =
                |capture: &Capture| capture.links.iter().filter(|link| host(link) != host(&capture.url)).count();
            let left = captures.iter().map(leaves).sum::<usize>() * 100 / links;
            assert!(outside.contains(&left), "{profile}: {left} % leave the host");
            let pages: BTreeSet<&str> = captures.iter().map(|capture| capture.url.as_str()).collect();
            assert!(captures_a_page.contains(&(captures.len() / pages.len())), "{profile}: {} pages", pages.len());
            let urls: BTreeSet<&str> =
                captures.iter().flat_map(|capture| capture.links.iter()).chain(pages.iter().copied()).collect();
            let crawled = pages.len() * 100 / urls.len();
            assert!((18..28).contains(&crawled), "{profile}: {crawled} % crawled");
            assert!(urls.iter().all(|url| canonical(None, url).as_deref() == Ok(*url)));
            let mut times = BTreeMap::<&str, Vec<i64>>::new();
            for capture in &captures {
                times.entry(&capture.url).or_default().push(capture.time);
            }
            assert!(times.values().all(|times| times.is_sorted() && times.len() <= 50));
        }
    }

    #[test]
    fn links_live_as_long_as_they_should() {
        for (profile, kept_expected, same_expected) in [("uk", 980..993, 62..75), ("hard", 945..970, 30..42)] {
            let captures = all(&format!("{profile}:occurrences=400000"));
            let (mut kept, mut links, mut same, mut pairs) = (0, 0, 0, 0);
            for pair in captures.windows(2).filter(|pair| pair[0].url == pair[1].url) {
                let next: BTreeSet<&str> = pair[1].links.iter().collect();
                kept += pair[0].links.iter().filter(|link| next.contains(link)).count();
                links += pair[0].links.len();
                same += usize::from(pair[0].links == pair[1].links);
                pairs += 1;
            }
            assert!(kept_expected.contains(&(kept * 1000 / links)), "{profile}: {kept} of {links} links live on");
            assert!(same_expected.contains(&(same * 100 / pairs)), "{profile}: {same} of {pairs} are the same");
        }
    }

    /// A seed gives the same captures on every machine. A change here changes every measurement made before.
    #[test]
    fn the_same_seed_gives_the_same_crawl() {
        let hash = |profile: &str, seed: u32| {
            let mut hash = Xxh3::new();
            for capture in all(&format!("{profile}:occurrences=20000,seed={seed}")) {
                hash.update(
                    format!("{} {} {:?}\n", capture.url, capture.time, capture.links.iter().collect::<Vec<_>>())
                        .as_bytes(),
                );
            }
            hash.digest()
        };
        let hashes = ["uk", "hard", "irregular"].map(|profile| hash(profile, 7));
        assert_eq!(hashes, [15_296_200_667_826_042_233, 7_214_515_594_343_380_890, 12_896_236_733_358_970_598]);
        assert_ne!(hash("uk", 8), hashes[0]);
    }
}
