//! The [`Overview`] of an epoch: captures, pages, URLs and links by year and by host, the lifetimes of links, and the
//! most linked domains.
//!
//! Links and lifetimes are defined as in `mortality` and `growth`. There are two passes over the pages and one over the
//! URLs. The first pass finds the hosts with the most captures, and only these have sums of their own. Memory: 4 bytes
//! per link, 40 per URL, 16 per host and worker, and the names of all hosts.

use super::adjacency;
use super::exchange::{Number, exchange};
use super::growth::when_first_known;
use super::survey::{History, fates, span};
use super::{AnalysisContext, NodeRule, ProcessState, fits, from_bytes, to_bytes};
use crate::Error;
use crate::hosts::Fold;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;
use webstrata_engine::{Progress, RunOptions, Stopped, gather, work_together};
use webstrata_layers::overview::{HostOverview, Linked, Lives, Numbers, Overview};
use webstrata_layers::record::capture::fate::Fate;
use webstrata_layers::{Page, RangeLength, Reader, Store, Uid, Window, format_time};
use webstrata_url::domain_of;

/// The maximum number of hosts in an overview.
const HOSTS: usize = 50;
/// The maximum number of domains in an overview.
const DOMAINS: usize = 20;
/// The seconds of a month, the unit of ages.
const MONTH: i64 = 30 * 86_400;

/// Sums over pages, by index in the list of years and by age.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Sums {
    years: BTreeMap<usize, [u64; 9]>,
    ages: BTreeMap<u64, [u64; 2]>,
    pages: u64,
    links: u64,
}

/// The columns of a year, in the order of [`Numbers::columns`].
#[derive(Clone, Copy)]
enum Column {
    Captures,
    Failed,
    Pages,
    Urls,
    Found,
    Came,
    Went,
    Lost,
    Returned,
}

impl Sums {
    fn count(&mut self, year: usize, column: Column) {
        self.years.entry(year).or_default()[column as usize] += 1;
    }

    /// Adds a page. `history` covers all its captures.
    fn add_page(&mut self, page: &Page, history: &History, year: impl Fn(i64) -> usize) {
        self.pages += 1;
        let mut before = None;
        for capture in page.captures().iter() {
            let at = year(capture.time);
            if before.replace(at) != Some(at) {
                self.count(at, Column::Pages);
            }
            self.count(at, Column::Captures);
            if capture.status.is_failure() {
                self.count(at, Column::Failed);
            }
        }
        for (time, fate) in fates(page) {
            match fate {
                Fate::Died { .. } => self.count(year(time), Column::Lost),
                Fate::Returned => self.count(year(time), Column::Returned),
                Fate::Born => {}
            }
        }
        let last = history.times.last().copied().unwrap_or(0);
        for stretches in history.stretches.chunk_by(|one, next| one.link == next.link) {
            self.links += 1;
            let (birth, end) = (&stretches[0], history.end(&stretches[stretches.len() - 1]));
            let column = if history.has_come(birth) { Column::Came } else { Column::Found };
            self.count(year(history.times[birth.first]), column);
            if let Some(end) = end {
                self.count(year(end), Column::Went);
            }
            for stretch in stretches.iter().filter(|stretch| history.has_come(stretch)) {
                let end = history.end(stretch);
                let age = end.unwrap_or(last).saturating_sub(history.times[stretch.first]) / MONTH;
                self.ages.entry(age.unsigned_abs()).or_default()[usize::from(end.is_none())] += 1;
            }
        }
    }

    fn add(&mut self, other: &Sums) {
        for (&year, row) in &other.years {
            let sums = self.years.entry(year).or_default();
            sums.iter_mut().zip(row).for_each(|(sum, number)| *sum += number);
        }
        for (&age, row) in &other.ages {
            let sums = self.ages.entry(age).or_default();
            sums.iter_mut().zip(row).for_each(|(sum, number)| *sum += number);
        }
        self.pages += other.pages;
        self.links += other.links;
    }

    /// The numbers of a span of years, which has all years of these sums.
    fn numbers(&self, span: &Range<usize>) -> Numbers {
        let mut numbers = Numbers::of_years(span.len());
        self.years.iter().for_each(|(&year, &row)| numbers.add(year - span.start, row));
        numbers
    }

    fn lives(&self) -> Lives {
        Lives::of(self.ages.iter().map(|(&age, &row)| (age, row)))
    }
}

/// Computes the overview of the current epoch of a store, on the same kind of workers as [`analyze`](super::analyze).
/// In a cluster, all processes return the overview. Nothing is written.
///
/// # Errors
/// As [`analyze`](super::analyze).
pub fn overview(run: &RunOptions, progress: &Progress) -> Result<Overview, Error> {
    let store = Store::open(&run.store)?;
    let id = store.id();
    fits(run, store.manifest(), (4, 56))?;
    let job = run.job(progress)?;
    let reader = Arc::new(Reader::new(store, 32 << 20).for_scans(run.workers.max(1)));
    let ranges = reader.ranges(run.workers.max(1) * run.processes())?;
    let (own_job, shared) = (job.clone(), ProcessState::default());
    let done = work_together(run, &job, "overview", &id.to_string(), move |worker| {
        let (job, store, ranges, shared) = (&own_job, &*reader, &ranges, &shared);
        let reports = worker.index().is_multiple_of(job.workers());
        let pages = store.store().manifest().counts.pages;
        if reports {
            // The pages are read twice.
            job.progress().enter("overview", 2 * pages * job.workers() as u64 / ranges.len() as u64);
        }
        let nodes = NodeRule::All;
        let mut context = AnalysisContext { worker, job, store, ranges, shared, nodes, round: 0, stage: "overview" };
        let found = find(&mut context)?;
        if reports {
            job.progress().leave();
        }
        let found = gather(worker, job, None, &found)?;
        found.into_iter().flatten().next().ok_or(Stopped)
    });
    done.map_err(Error::without_state)
}

/// Returns the overview in worker 0, and `None` in the others.
fn find(context: &mut AnalysisContext<'_>) -> Result<Option<Overview>, Stopped> {
    let counts = context.store.store().manifest().counts;
    let starts = counts.periods(RangeLength::Year);
    let year = |time: i64| starts.partition_point(|&start| start <= time).saturating_sub(1);
    let hosts = context.groups(Fold::Host)?;
    let (mut near, mut linked_near) = (0, 0);
    // Only the hosts with the most captures have sums: sums of a host take a kilobyte.
    let mut captures = vec![0u64; hosts.len()];
    let links = adjacency::read_and_visit(context, &[Window::ALWAYS], |page| {
        captures[hosts.of(page.uid, &mut near) as usize] += page.timestamps.len() as u64;
    })?;
    let captures = sum_of_workers(context, captures)?;
    let mut most: Vec<u32> = (0u32..).zip(&captures).filter(|(_, count)| **count > 0).map(|(host, _)| host).collect();
    let hosts_captured = most.len() as u64;
    let order = |host: &u32| (Reverse(captures[*host as usize]), hosts.name(*host));
    if most.len() > HOSTS {
        most.select_nth_unstable_by(HOSTS, |one, other| order(one).cmp(&order(other)));
        most.truncate(HOSTS);
    }
    most.sort_unstable_by(|one, other| order(one).cmp(&order(other)));
    drop(captures);
    // Only worker 0 knows the sums.
    let most = from_first(context, &most)?;
    let mut shown: HashMap<u32, Sums> = most.iter().map(|&host| (host, Sums::default())).collect();
    let (mut rest, mut linked) = (Sums::default(), vec![0u64; hosts.len()]);
    let first_known = when_first_known(context, links, |page, history| {
        let sums = shown.get_mut(&hosts.of(page.uid, &mut near)).unwrap_or(&mut rest);
        sums.add_page(page, history, year);
        for &link in &page.links {
            linked[hosts.of(link, &mut linked_near) as usize] += 1;
        }
    })?;
    for (uid, &time) in (context.my_uids().start.0..).zip(&first_known).filter(|(_, time)| **time < i64::MAX) {
        let sums = shown.get_mut(&hosts.of(Uid(uid), &mut near)).unwrap_or(&mut rest);
        sums.count(year(time), Column::Urls);
    }
    drop(first_known);
    let linked = sum_of_workers(context, linked)?;
    let mut of_shown: HashMap<u32, Sums> = HashMap::new();
    let mut whole = Sums::default();
    let shown: Vec<(u32, Sums)> = shown.into_iter().collect();
    for (worker_rest, worker_shown) in context.gather_values(&(rest, shown))? {
        whole.add(&worker_rest);
        for (host, sums) in &worker_shown {
            whole.add(sums);
            of_shown.entry(*host).or_default().add(sums);
        }
    }
    if context.worker.index() > 0 {
        return Ok(None);
    }
    let mut domains: HashMap<&str, u64> = HashMap::new();
    for (host, &links) in (0u32..).zip(&linked).filter(|(_, links)| **links > 0) {
        *domains.entry(domain_of(hosts.name(host))).or_default() += links;
    }
    let mut domains: Vec<Linked> =
        domains.into_iter().map(|(domain, links)| Linked { domain: domain.to_owned(), links }).collect();
    domains.sort_unstable_by(|one, other| other.links.cmp(&one.links).then_with(|| one.domain.cmp(&other.domain)));
    domains.truncate(DOMAINS);
    let span = span(whole.years.keys().copied());
    let first_year = starts[span.clone()].first().and_then(|&start| format_time(start).get(..4)?.parse().ok());
    let host_of = |host: &u32| {
        let sums = of_shown.remove(host)?;
        Some(HostOverview {
            host: hosts.name(*host).to_owned(),
            links: sums.links,
            pages: sums.pages,
            numbers: sums.numbers(&span),
            lives: sums.lives(),
        })
    };
    Ok(Some(Overview {
        of: context.store.store().id(),
        first_year: first_year.unwrap_or(0),
        all: whole.numbers(&span),
        lives: whole.lives(),
        hosts_captured,
        hosts: most.iter().filter_map(host_of).collect(),
        domains,
    }))
}

/// Adds up the numbers of all workers, index by index. Worker 0 gets the sums, and the others get zeros.
fn sum_of_workers(context: &mut AnalysisContext<'_>, numbers: Vec<u64>) -> Result<Vec<u64>, Stopped> {
    let mut outgoing = vec![Vec::new(); context.worker.peers()];
    outgoing[0] = to_bytes(&numbers);
    let mut sums = numbers;
    sums.fill(0);
    for mut of_worker in exchange(context, outgoing)?.iter().map(Vec::as_slice).filter(|bytes| !bytes.is_empty()) {
        sums.iter_mut().for_each(|sum| *sum += u64::take(&mut of_worker));
    }
    Ok(sums)
}

/// Sends numbers of worker 0 to all workers.
fn from_first(context: &mut AnalysisContext<'_>, numbers: &[u32]) -> Result<Vec<u32>, Stopped> {
    let (index, peers) = (context.worker.index(), context.worker.peers());
    let bytes = if index == 0 { to_bytes(numbers) } else { Vec::new() };
    Ok(from_bytes(&exchange(context, vec![bytes; peers])?[0]))
}
