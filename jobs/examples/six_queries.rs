//! The six queries of the S-Node paper (Raghavan & Garcia-Molina 2003, table 3) on a store with time.
//!
//! ```text
//! cargo run --example six_queries -- STORE AT|FROM-TO SET SET [SET...]
//! cargo run --example six_queries -- STORE 20070601 http://stanford.example/robots/ @berkeley.txt
//! ```
//!
//! The paper takes sets of pages from a text index. Here, a set is all URLs that begin with a URL, or the URLs in a
//! file (`@FILE`, a URL a line). The time is one date (links as of the date) or an interval (links seen in it). Asks
//! the cells of the store if it has cells, else the layers. Prints one JSON line for each query, with its milliseconds.
//!
//! | query | sets | result, the 10 greatest |
//! |---|---|---|
//! | 1 | first | domains that the set links to, without its own domains, by links |
//! | 2 | first; each other | number of links from the first set to each other set |
//! | 3 | first | size of the Kleinberg base set: the set, the URLs that it links to, the pages that link to it |
//! | 4 | first | URLs of the set, by pages of other domains that link to them |
//! | 5 | first | URLs of the set, by links from other URLs of the set |
//! | 6 | first, second | URLs of other domains that both sets link to, by links from both |

use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::error::Error;
use std::io::Write;
use std::time::Instant;
use webstrata_cells::Cells;
use webstrata_cells::image::Residence;
use webstrata_codecs::ENCODINGS;
use webstrata_layers::record::key::{host_of, url_prefix};
use webstrata_layers::{Direction, Links, Location, Precision, Reader, Store, Uid, Window, parse_time};
use webstrata_url::canonical;
use webstrata_url::domain_of;

const SHOWN: usize = 10;
const INTO: Direction = Direction::In(Precision::Exact);

type Failure = Box<dyn Error>;

struct Graph {
    links: Box<dyn Links>,
    window: Window,
}

/// UIDs, rising.
type Set = Vec<Uid>;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [store, time, first, second, others @ ..] = &arguments[..] else {
        return Err("give a store, a time (2007 or 2006-2007), and two sets or more (a URL prefix, or @FILE)".into());
    };
    let store = Store::open(Location::parse(store)?)?;
    let links: Box<dyn Links> = match Cells::open(&store, Residence::Mapped, ENCODINGS)? {
        Some(cells) => Box::new(cells),
        None => Box::new(Reader::new(store, 256 << 20)),
    };
    let parse = |text: &str, end| parse_time(text, end).map_err(|error| error.to_string());
    let window = match time.split_once('-') {
        Some((from, to)) => Window::Seen { from: parse(from, false)?, to: parse(to, true)? },
        None => Window::as_of(parse(time, true)?),
    };
    let graph = Graph { links, window };
    let sets =
        [first, second].into_iter().chain(others).map(|text| graph.set(text)).collect::<Result<Vec<Set>, _>>()?;
    let (first, second) = (&sets[0], &sets[1]);
    let run = |query: u32, answer: &dyn Fn() -> Result<Value, Failure>| -> Result<(), Failure> {
        let started = Instant::now();
        let result = answer()?;
        let milliseconds = started.elapsed().as_secs_f64() * 1000.0;
        writeln!(std::io::stdout(), "{}", json!({"query": query, "milliseconds": milliseconds, "result": result}))?;
        Ok(())
    };
    run(1, &|| graph.domains(first))?;
    run(2, &|| sets[1..].iter().map(|other| graph.between(first, other)).collect())?;
    run(3, &|| graph.base(first))?;
    run(4, &|| graph.popular(first))?;
    run(5, &|| graph.induced(first))?;
    run(6, &|| graph.common(first, second))
}

impl Graph {
    /// The URLs of a set that were captured, or linked to, at any time.
    fn set(&self, text: &str) -> Result<Set, Failure> {
        let mut uids = Set::new();
        if let Some(file) = text.strip_prefix('@') {
            for url in std::fs::read_to_string(file)?.lines() {
                uids.extend(self.links.uid(url)?);
            }
            uids.sort_unstable();
            return Ok(uids);
        }
        let url = canonical(None, text).map_err(|_| format!("{text:?} is no URL"))?;
        uids.extend(self.links.with_prefix(&url_prefix(&url))?.into_iter().flat_map(Uid::each));
        Ok(uids)
    }

    /// Calls `visit` with each of these UIDs and its links in a direction.
    fn each(&self, uids: &[Uid], direction: Direction, mut visit: impl FnMut(Uid, &[Uid])) -> Result<(), Failure> {
        let mut links = Vec::new();
        for &uid in uids {
            self.links.links_into(uid, direction, self.window, &mut links)?;
            visit(uid, &links);
        }
        Ok(())
    }

    fn domain(&self, uid: Uid, known: &mut HashMap<Uid, String>) -> Result<String, Failure> {
        if let Some(domain) = known.get(&uid) {
            return Ok(domain.clone());
        }
        let url = self.links.url(uid)?;
        let domain = host_of(&url).map_or("", domain_of).to_owned();
        known.insert(uid, domain.clone());
        Ok(domain)
    }

    fn domains_of(&self, uids: &[Uid]) -> Result<BTreeSet<String>, Failure> {
        let mut known = HashMap::new();
        uids.iter().map(|&uid| self.domain(uid, &mut known)).collect()
    }

    /// The URLs with the greatest counts.
    fn greatest(&self, counts: impl IntoIterator<Item = (Uid, u64)>) -> Result<Value, Failure> {
        let mut counts: Vec<(Uid, u64)> = counts.into_iter().filter(|(_, count)| *count > 0).collect();
        let all = counts.len();
        counts.sort_unstable_by_key(|&(uid, count)| (std::cmp::Reverse(count), uid));
        counts.truncate(SHOWN);
        let urls = counts.into_iter().map(|(uid, count)| Ok(json!([self.links.url(uid)?, count])));
        Ok(json!({"all": all, "greatest": urls.collect::<Result<Vec<_>, Failure>>()?}))
    }

    fn domains(&self, set: &Set) -> Result<Value, Failure> {
        let mut counts: HashMap<Uid, u64> = HashMap::new();
        self.each(set, Direction::Out, |_, links| {
            links.iter().for_each(|&link| *counts.entry(link).or_default() += 1)
        })?;
        let (own, mut known) = (self.domains_of(set)?, HashMap::new());
        let mut domains: BTreeMap<String, u64> = BTreeMap::new();
        for (link, count) in counts {
            let domain = self.domain(link, &mut known)?;
            if !own.contains(&domain) {
                *domains.entry(domain).or_default() += count;
            }
        }
        let mut ranked: Vec<(&String, &u64)> = domains.iter().collect();
        ranked.sort_unstable_by_key(|&(name, count)| (std::cmp::Reverse(*count), name));
        ranked.truncate(SHOWN);
        Ok(json!({"all": domains.len(), "greatest": ranked}))
    }

    fn between(&self, from: &Set, to: &Set) -> Result<Value, Failure> {
        let mut count = 0;
        self.each(from, Direction::Out, |_, links| {
            count += links.iter().filter(|link| to.binary_search(link).is_ok()).count();
        })?;
        Ok(json!(count))
    }

    fn base(&self, set: &Set) -> Result<Value, Failure> {
        let mut base: BTreeSet<Uid> = set.iter().copied().collect();
        self.each(set, Direction::Out, |_, links| base.extend(links))?;
        self.each(set, INTO, |_, links| base.extend(links))?;
        Ok(json!(base.len()))
    }

    fn popular(&self, set: &Set) -> Result<Value, Failure> {
        let (mut sources, mut known) = (Vec::new(), HashMap::new());
        self.each(set, INTO, |uid, links| sources.push((uid, links.to_vec())))?;
        let mut counts = Vec::new();
        for (uid, links) in sources {
            let own = self.domain(uid, &mut known)?;
            let mut count = 0;
            for link in links {
                count += u64::from(self.domain(link, &mut known)? != own);
            }
            counts.push((uid, count));
        }
        self.greatest(counts)
    }

    fn induced(&self, set: &Set) -> Result<Value, Failure> {
        let mut counts: HashMap<Uid, u64> = HashMap::new();
        self.each(set, Direction::Out, |uid, links| {
            let inside = links.iter().filter(|&link| *link != uid && set.binary_search(link).is_ok());
            inside.for_each(|&link| *counts.entry(link).or_default() += 1);
        })?;
        self.greatest(counts)
    }

    fn common(&self, one: &Set, other: &Set) -> Result<Value, Failure> {
        let mut counts: HashMap<Uid, [u64; 2]> = HashMap::new();
        for (at, set) in [one, other].into_iter().enumerate() {
            self.each(set, Direction::Out, |_, links| {
                links.iter().for_each(|&link| counts.entry(link).or_default()[at] += 1)
            })?;
        }
        let mut own = self.domains_of(one)?;
        own.extend(self.domains_of(other)?);
        let (mut common, mut known) = (Vec::new(), HashMap::new());
        for (uid, [of_one, of_other]) in counts.into_iter().filter(|(_, counts)| counts.iter().all(|&count| count > 0))
        {
            if !own.contains(&self.domain(uid, &mut known)?) {
                common.push((uid, of_one + of_other));
            }
        }
        self.greatest(common)
    }
}
