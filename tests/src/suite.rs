//! One suite for every way to ask a graph: random questions of all kinds, with the answers of the oracle and the
//! layers.
//!
//! Reads a [`Way`]. Compares with the [`Oracle`], which shares no code with the code under test. Where the oracle has
//! no answer (ranges, samples, records), the suite compares with the layers. Seeded: the same seed gives the same
//! questions. Cost: some calls a question.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use webstrata_cells::Cells;
use webstrata_layers::record::key::{host_of, host_prefix, key_of};
use webstrata_layers::{
    AsOf, Backlinks, Batch, Began, Changed, ChangedLinks, Direction, Error, First, LastKnown, Linking, LinkingPage,
    Links, Precision, Reader, Sample, Sampling, Scope, Stay, Uid, Unknown, Window, answer_of,
};
use webstrata_serve::clerk::Remote;

use crate::clusters::Cluster;
use crate::crawls::Random;
use crate::oracle::{Ending, Oracle, When};
use crate::stores::{uids_in, window, windows};

/// A graph with the questions of several steps. A way that has calls of its own for them replaces the programs.
pub trait Asked: Links {
    /// The answer to [`Unknown`].
    ///
    /// # Errors
    /// See [`Links::url`], as in all methods.
    fn unknown(&self, uid: Uid, direction: Direction, window: Window) -> Result<Vec<Uid>, Error> {
        Ok(answer_of(self, Unknown::new(&[uid], direction, window))?.into_values())
    }

    /// The answer to [`LastKnown`].
    ///
    /// # Errors
    /// See [`Asked::unknown`].
    fn last_known(&self, uid: Uid, as_of: AsOf) -> Result<Vec<Uid>, Error> {
        Ok(answer_of(self, LastKnown::new(&[uid], as_of))?.into_values())
    }

    /// The answer to [`Changed`].
    ///
    /// # Errors
    /// See [`Asked::unknown`].
    fn changed(&self, uid: Uid, is_inward: bool, dates: [AsOf; 2]) -> Result<ChangedLinks, Error> {
        Ok(answer_of(self, Changed::new(&[uid], is_inward, dates))?.pop().unwrap_or_default())
    }

    /// The answer to [`First`].
    ///
    /// # Errors
    /// See [`Asked::unknown`].
    fn first(&self, uid: Uid) -> Result<Vec<(i64, Uid)>, Error> {
        Ok(answer_of(self, First::new(&[uid]))?.pop().unwrap_or_default())
    }

    /// The answer to [`Backlinks`], for all pages.
    ///
    /// # Errors
    /// See [`Asked::unknown`].
    fn backlinks(&self, target: &[Range<Uid>]) -> Result<Vec<LinkingPage>, Error> {
        answer_of(self, Backlinks::new(target, &Scope::default()))
    }
}

impl Asked for Reader {}
impl Asked for Cells {}
impl Asked for Remote {}

/// A way to ask.
pub struct Way<'a> {
    /// The name, for messages.
    pub name: &'a str,
    /// The graph that answers.
    pub links: &'a dyn Asked,
    /// Whether the way gives records of in-links and URLs by key prefix, which not every protocol has.
    pub has_records: bool,
}

/// The sources of the right answers.
pub struct Known<'a> {
    /// The oracle, which answers in texts.
    pub oracle: &'a Oracle,
    /// The layers, which answer in UIDs.
    pub layers: &'a dyn Links,
}

/// All directions and precisions.
pub const DIRECTIONS: [Direction; 3] =
    [Direction::Out, Direction::In(Precision::Exact), Direction::In(Precision::Range)];

impl Way<'_> {
    /// Asks `questions` random questions.
    ///
    /// # Panics
    /// At the first answer that differs.
    pub fn answers(&self, known: &Known<'_>, questions: u64, seed: u64) {
        let end = known.layers.urls();
        assert_eq!(self.links.urls(), end, "{}", self.name);
        assert_eq!(self.links.in_range(), known.layers.in_range(), "{}", self.name);
        let mut random = Random(seed);
        for number in 0..questions {
            let url = known.layers.url(Uid(random.below(end))).expect("layers");
            if let Err(difference) = self.question(known, &url, number, &mut random) {
                panic!("{}, seed {seed}, question {number}: {url}: {difference}", self.name);
            }
        }
        self.strangers(known);
    }

    fn question(&self, known: &Known<'_>, url: &str, number: u64, random: &mut Random) -> Result<(), String> {
        let Way { links, has_records, .. } = *self;
        let Known { oracle, layers } = *known;
        let failed = |error: webstrata_layers::Error| error.to_string();
        let uid = layers.uid(url).map_err(failed)?.ok_or("the layers do not know it")?;
        let all = windows(oracle, url);
        let when = *random.pick(&all);
        let window = window(when);
        // The layers name UIDs. Other tests compare the answers of the layers with the oracle.
        let texts = |uids: Vec<Uid>| -> Result<Vec<String>, String> {
            if !uids.is_sorted_by(|one, other| one < other) {
                return Err(format!("UIDs do not rise: {uids:?}"));
            }
            let mut texts: Vec<String> =
                uids.into_iter().map(|uid| layers.url(uid).map_err(failed)).collect::<Result<_, _>>()?;
            texts.sort();
            Ok(texts)
        };
        let direction = *random.pick(&DIRECTIONS);
        let list = || layers.links(uid, direction, window).map_err(failed);
        let what = format!("{direction:?} {window:?}");
        match number % 13 {
            0 => same("UID", &links.uid(url).map_err(failed)?, &Some(uid)),
            1 => same("URL", &links.url(uid).map_err(failed)?.as_str(), &url),
            2 => {
                let own: Vec<_> =
                    links.captures(uid).map_err(failed)?.iter().map(|own| (own.time, own.known)).collect();
                same("captures", &own, &oracle.captures(url))?;
                let statuses: Vec<u16> =
                    links.captures(uid).map_err(failed)?.iter().map(|own| own.status.code()).collect();
                same("statuses", &statuses, &oracle.statuses(url))
            }
            3 => {
                let own = texts(links.out_links(uid, window).map_err(failed)?)?;
                same(&format!("links {when:?}"), &own, &owned(oracle.out_links(url, when)))?;
                self.unknown(known, url, uid, Direction::Out, when)
            }
            4 => {
                let own = texts(links.in_links(uid, window, Precision::Exact).map_err(failed)?)?;
                same(&format!("linked from {when:?}"), &own, &owned(oracle.in_links(url, when)))?;
                self.unknown(known, url, uid, Direction::In(Precision::Exact), when)
            }
            5 => {
                let own = links.in_links(uid, window, Precision::Range).map_err(failed)?;
                same(&what, &own, &layers.in_links(uid, window, Precision::Range).map_err(failed)?)
            }
            6 => {
                same(&format!("degree {what}"), &links.degree(uid, direction, window).map_err(failed)?, &list()?.len())
            }
            7 => {
                let sampling = if random.once_in(2) { Sampling::Random } else { Sampling::Consistent };
                let count = usize::try_from(random.below(5)).expect("few");
                let sample = Sample { count, sampling, seed: random.draw() };
                let mut right = list()?;
                sample.draw(uid, &mut right);
                same(
                    &format!("{sample:?} {what}"),
                    &links.sample(uid, direction, window, sample).map_err(failed)?,
                    &right,
                )
            }
            8 => {
                let mut own = Vec::new();
                for span in links.lifespans(uid).map_err(failed)? {
                    own.push((layers.url(span.link).map_err(failed)?, span.first, span.last));
                }
                own.sort();
                let right: Vec<_> =
                    oracle.lifespans(url).into_iter().map(|(url, first, last)| (url.to_owned(), first, last)).collect();
                same("lifespans", &own, &right)
            }
            9 => {
                same("page", &links.page(uid).map_err(failed)?, &layers.page(uid).map_err(failed)?)?;
                if has_records {
                    let own = links.in_record(uid).map_err(failed)?;
                    same("in-link record", &own, &layers.in_record(uid).map_err(failed)?)?;
                }
                Ok(())
            }
            10 => self.between(known, url, uid, random),
            11 => {
                let mut own = Vec::new();
                for (first, source) in links.first(uid).map_err(failed)? {
                    own.push((first, layers.url(source).map_err(failed)?));
                }
                same("times of who linked first", &own.is_sorted_by_key(|first| first.0), &true)?;
                own.sort();
                let right: Vec<_> = oracle.first(url).into_iter().map(|(first, url)| (first, url.to_owned())).collect();
                same("who linked first", &own, &right)?;
                self.backlinks(known, url, uid)
            }
            _ => {
                let links_of = layers.out_links(uid, window).map_err(failed)?;
                let other = Uid(random.below(layers.urls()));
                let link = if random.once_in(2) { links_of.first().copied().unwrap_or(other) } else { other };
                let own = links.has_link(uid, link, window).map_err(failed)?;
                same(&format!("link {link} {what}"), &own, &links_of.contains(&link))?;
                self.interval(known, when, random)
            }
        }
    }

    /// Compares the pages for which it is unknown whether they link.
    fn unknown(&self, known: &Known<'_>, url: &str, uid: Uid, direction: Direction, when: When) -> Result<(), String> {
        let failed = |error: webstrata_layers::Error| error.to_string();
        let texts = |uids: Vec<Uid>| -> Result<Vec<String>, String> {
            let mut texts: Vec<String> =
                uids.into_iter().map(|uid| known.layers.url(uid).map_err(failed)).collect::<Result<_, _>>()?;
            texts.sort();
            Ok(texts)
        };
        let own = texts(self.links.unknown(uid, direction, window(when)).map_err(failed)?)?;
        let right = owned(known.oracle.unknown(url, direction != Direction::Out, when));
        same(&format!("unknown {direction:?} {when:?}"), &own, &right)?;
        let (Direction::Out, Window::AsOf(as_of)) = (direction, window(when)) else { return Ok(()) };
        let own = texts(self.links.last_known(uid, as_of).map_err(failed)?)?;
        same(&format!("last known {when:?}"), &own, &owned(known.oracle.last_known(url, when)))
    }

    /// Compares the changes between two dates, outward and inward.
    fn between(&self, known: &Known<'_>, url: &str, uid: Uid, random: &mut Random) -> Result<(), String> {
        let Known { oracle, layers } = *known;
        let failed = |error: webstrata_layers::Error| error.to_string();
        let times: Vec<i64> = oracle.times().into_iter().collect();
        let ending = *random.pick(&[Ending::Gone, Ending::None, Ending::Each]);
        let (one, other) = (*random.pick(&times), *random.pick(&times));
        let dates = [one.min(other), one.max(other)].map(|at| When::AsOfBy(at, i64::MAX, ending));
        let as_of = dates.map(|date| match window(date) {
            Window::AsOf(date) => date,
            Window::Seen { .. } => AsOf::new(0),
        });
        let texts = |uids: &[Uid]| -> Result<Vec<String>, String> {
            let texts = uids.iter().map(|&uid| layers.url(uid).map_err(failed)).collect::<Result<Vec<_>, _>>();
            texts.map(|mut texts| {
                texts.sort();
                texts
            })
        };
        let own = self.links.changed(uid, false, as_of).map_err(failed)?;
        let is_open = dates.iter().any(|&date| oracle.is_unknown(url, date));
        same(&format!("unknown at {dates:?}"), &own.unknown, &if is_open { vec![uid] } else { Vec::new() })?;
        let [gained, lost] = oracle.changed(url, dates).map(owned);
        same(&format!("changed {dates:?}"), &[texts(&own.gained)?, texts(&own.lost)?], &[gained, lost])?;
        let own = self.links.changed(uid, true, as_of).map_err(failed)?;
        let [before, after] = dates.map(|date| oracle.in_links(url, date));
        // A page is known to lack the link at a date only if the capture that decides then is whole.
        let only = |of: &BTreeSet<&str>, without: &BTreeSet<&str>, lacks: When| -> (Vec<String>, Vec<String>) {
            let is_unknown = |page: &&str| oracle.is_unknown(page, lacks);
            let (unknown, known) = of.difference(without).copied().partition::<BTreeSet<&str>, _>(is_unknown);
            (owned(known), owned(unknown))
        };
        let (gained, mut unknown) = only(&after, &before, dates[0]);
        let (lost, more) = only(&before, &after, dates[1]);
        unknown.extend(more);
        unknown.sort();
        let own = [texts(&own.gained)?, texts(&own.lost)?, texts(&own.unknown)?];
        same(&format!("pages that link, changed {dates:?}"), &own, &[gained, lost, unknown])
    }

    /// Compares the stays of pages that linked to the URL, and to any URL of its host.
    fn backlinks(&self, known: &Known<'_>, url: &str, uid: Uid) -> Result<(), String> {
        let Known { oracle, layers } = *known;
        let failed = |error: webstrata_layers::Error| error.to_string();
        let one = std::iter::once(uid..uid + 1).collect();
        let mut targets: Vec<(Vec<std::ops::Range<Uid>>, BTreeSet<&str>)> = vec![(one, BTreeSet::from([url]))];
        let host = host_of(url).and_then(host_prefix);
        if let (true, Some(prefix)) = (self.has_records, host) {
            let own = |other: &&str| key_of(other).starts_with(&prefix);
            targets.push((
                self.links.with_prefix(&prefix).map_err(failed)?,
                oracle.urls().into_iter().filter(own).collect(),
            ));
        }
        let times: Vec<i64> = oracle.times().into_iter().collect();
        for (uids, urls) in targets {
            let mut own = BTreeMap::new();
            for (page, backlink) in self.links.backlinks(&uids).map_err(failed)? {
                let began = |stay: &Stay| match stay.began {
                    Began::Found => "found",
                    Began::New => "new",
                    Began::Returned => "returned",
                };
                let stays = backlink.stays.iter().map(|stay| (stay.first, stay.last, stay.until, began(stay)));
                let page = layers.url(page).map_err(failed)?;
                for at in [times[times.len() / 2], times[times.len() - 1]].map(When::AsOf) {
                    let links = oracle.out_links(&page, at).into_iter().any(|link| urls.contains(link));
                    let right = match (links, oracle.is_unknown(&page, at)) {
                        (true, _) => Linking::Yes,
                        (false, true) => Linking::Unknown,
                        (false, false) => Linking::No,
                    };
                    let When::AsOf(time) = at else { continue };
                    same(&format!("whether {page} links at {time}"), &backlink.links_at(time), &right)?;
                }
                own.insert(page, stays.collect::<Vec<_>>());
            }
            let right = oracle.backlinks(&urls).into_iter().map(|(page, stays)| (page.to_owned(), stays)).collect();
            same(&format!("backlinks of {} URLs", urls.len()), &own, &right)?;
        }
        Ok(())
    }

    /// Compares the pages with captures in an interval, in a range of UIDs.
    fn interval(&self, known: &Known<'_>, when: When, random: &mut Random) -> Result<(), String> {
        let (from, to) = match when {
            When::Seen(from, to) => (from, to),
            When::AsOf(to) | When::AsOfBy(to, ..) => (i64::MIN, to),
        };
        let first = random.below(known.layers.urls());
        let range = Uid(first)..Uid(known.layers.urls() - random.below(2));
        let [own, right] = [self.links, known.layers]
            .map(|links| uids_in(links, range.clone(), (from, to)).map_err(|error| error.to_string()));
        same(&format!("pages of {range:?} in {from}..={to}"), &own?, &right?)
    }

    /// Asks about URLs and UIDs that are not in the graph, and about extreme windows.
    fn strangers(&self, known: &Known<'_>) {
        let (links, name) = (self.links, self.name);
        for url in ["http://nobody.example/", "", "http://", "no URL", "http://a.example/\0", "\u{10ffff}"] {
            assert_eq!(links.uid(url).expect("an answer"), None, "{name}: {url:?}");
        }
        for uid in [links.urls(), links.urls() + 1, u64::MAX - 1, u64::MAX].map(Uid) {
            assert!(
                links.url(uid).is_err() && links.page(uid).is_err() && links.captures(uid).is_err(),
                "{name}: {uid}"
            );
            for direction in DIRECTIONS {
                assert!(links.links(uid, direction, Window::ALWAYS).is_err(), "{name}: {uid} {direction:?}");
                assert!(links.degree(uid, direction, Window::ALWAYS).is_err(), "{name}: {uid} {direction:?}");
            }
        }
        for uid in Uid::each(Uid::below(links.urls().min(8))) {
            for direction in DIRECTIONS {
                for window in [
                    Window::as_of(i64::MIN),
                    Window::as_of(i64::MAX),
                    Window::Seen { from: i64::MIN, to: i64::MIN },
                    Window::Seen { from: i64::MAX, to: i64::MAX },
                ] {
                    let [own, right] =
                        [links, known.layers].map(|links| links.links(uid, direction, window).expect("links"));
                    assert_eq!(own, right, "{name}: {uid} {direction:?} {window:?}");
                }
            }
        }
    }
}

/// Asks about hundreds of UIDs at a time, in several batches, with duplicates and in any order. Each answer must be
/// equal to the answer of the layers.
///
/// # Panics
/// At the first answer that differs.
pub fn batches(cluster: &Cluster, remote: &Remote, layers: &dyn Links, times: &[i64], seed: u64) {
    let mut random = Random(seed);
    for count in [0, 1 + random.below(400), 400] {
        let mut uids: Vec<Uid> = (0..count).map(|_| Uid(random.below(layers.urls()))).collect();
        if random.once_in(2) {
            uids.sort_unstable();
        }
        let mut time = || *random.pick(times);
        let (one, other) = (time(), time());
        let windows = [
            Window::ALWAYS,
            Window::Seen { from: one.min(other), to: one.max(other) },
            Window::Seen { from: one, to: i64::MAX },
            Window::Seen { from: i64::MIN, to: one },
            Window::Seen { from: one, to: one },
            Window::Seen { from: one.max(other) + 1, to: one.min(other) },
            Window::as_of(one),
            Window::as_of(other - 1),
            Window::as_of(i64::MAX),
        ];
        let count = usize::try_from(random.below(4)).expect("few");
        let sampling = if random.once_in(2) { Sampling::Random } else { Sampling::Consistent };
        let sample = Sample { count, sampling, seed: random.draw() };
        cluster.wait(Asking { remote, layers, uids, windows, sample }.compare());
    }
}

/// One batch, which is asked in every way.
struct Asking<'a> {
    remote: &'a Remote,
    layers: &'a dyn Links,
    uids: Vec<Uid>,
    windows: [Window; 9],
    sample: Sample,
}

impl Asking<'_> {
    /// Compares each answer with the answer of the layers.
    async fn compare(self) {
        let Self { remote, layers, uids, windows, sample } = self;
        let pinned = remote.pinned();
        for window in windows {
            for direction in DIRECTIONS {
                let right: Vec<Vec<Uid>> =
                    uids.iter().map(|&uid| layers.links(uid, direction, window).expect("layers")).collect();
                let what = format!("{direction:?} {window:?} of {uids:?}");
                let own = pinned.links(&uids, direction, window).await.expect("links");
                assert_eq!(lists(&own), right, "{what}");
                let degrees: Vec<u64> = right.iter().map(|list| list.len() as u64).collect();
                assert_eq!(pinned.degrees(&uids, direction, window).await.expect("degrees"), degrees, "{what}");
                let samples = pinned.samples(&uids, direction, window, sample).await.expect("samples");
                let mut drawn = right.clone();
                uids.iter().zip(&mut drawn).for_each(|(&uid, list)| sample.draw(uid, list));
                assert_eq!(lists(&samples), drawn, "{sample:?} {what}");
            }
            let pairs: Vec<(Uid, Uid)> =
                uids.iter().zip(uids.iter().rev()).map(|(&page, &link)| (page, link)).collect();
            let linked = uids.iter().filter_map(|&uid| {
                let links = layers.out_links(uid, Window::ALWAYS).expect("layers");
                links.get(usize::try_from(sample.seed % 7).expect("few")).map(|&link| (uid, link))
            });
            let pairs: Vec<(Uid, Uid)> = pairs.into_iter().chain(linked).collect();
            let right: Vec<bool> =
                pairs.iter().map(|&(page, link)| layers.has_link(page, link, window).expect("layers")).collect();
            assert_eq!(pinned.has_links(&pairs, window).await.expect("truths"), right, "{window:?} of {pairs:?}");
        }
        let each = |what: &str, own: &[String], right: Vec<String>| assert_eq!(own, right, "{what} of {uids:?}");
        let debug = |answer: &dyn std::fmt::Debug| format!("{answer:?}");
        let captures = pinned.captures(&uids).await.expect("captures");
        let right = uids.iter().map(|&uid| debug(&layers.captures(uid).expect("layers")));
        each("captures", &captures.iter().map(|own| debug(&own)).collect::<Vec<_>>(), right.collect());
        let spans = pinned.lifespans(&uids).await.expect("lifespans");
        let right = uids.iter().map(|&uid| debug(&layers.lifespans(uid).expect("layers")));
        each("lifespans", &spans.iter().map(|own| debug(&own)).collect::<Vec<_>>(), right.collect());
        let pages = pinned.pages(&uids).await.expect("pages");
        let right = uids.iter().map(|&uid| debug(&layers.page(uid).expect("layers")));
        each("pages", &pages.iter().map(|own| debug(own)).collect::<Vec<_>>(), right.collect());
        let records = pinned.in_records(&uids).await.expect("records");
        let right = uids.iter().map(|&uid| debug(&layers.in_record(uid).expect("layers")));
        each("records", &records.iter().map(|own| debug(own)).collect::<Vec<_>>(), right.collect());
        let urls = pinned.urls(&uids).await.expect("URLs");
        each("URLs", &urls, uids.iter().map(|&uid| layers.url(uid).expect("layers")).collect());
        let found = pinned.uids(&urls).await.expect("UIDs");
        assert!(found.iter().zip(&uids).all(|(own, &uid)| *own == Some(uid)), "{found:?}");
    }
}

fn lists(batch: &Batch<Uid>) -> Vec<Vec<Uid>> {
    batch.iter().map(<[Uid]>::to_vec).collect()
}

fn owned(texts: impl IntoIterator<Item = impl Into<String>>) -> Vec<String> {
    texts.into_iter().map(Into::into).collect()
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, own: &T, right: &T) -> Result<(), String> {
    if own == right { Ok(()) } else { Err(format!("{what}: {own:?}, expected {right:?}")) }
}
