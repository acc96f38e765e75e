//! Takes removed data out of the held links ([`webstrata_layers::held`]): links of captures that are removed,
//! and links to URLs that are removed. Rows keep removed data until a merge, but these files are written again at once,
//! without this data.
//!
//! A revisit that names such a link stays a revisit. Cost: the held links, and the pages that rules for a period
//! select.

use crate::Error;
use crate::stages::held::{HeldRecords, write};
use timely::worker::Worker;
use webstrata_engine::{Context, Job, Stopped, gather};
use webstrata_layers::held::{HeldEntry, HeldFile, HeldLink, OF_REVISITS};
use webstrata_layers::record::key::key;
use webstrata_layers::{Links, Reader, Removal};

/// Returns the new files of this worker, if rules touch held links; `None` if the files of the store stay.
pub(super) fn held(
    worker: &mut Worker,
    context: &Context,
    store: &Reader,
    rules: &[Removal],
) -> Result<Option<Vec<HeldEntry>>, Stopped> {
    let job = &context.job;
    let all = &store.store().manifest().provenance.held;
    let (index, peers) = (worker.index(), worker.peers());
    let mine: Vec<&HeldEntry> = (0..).zip(all).filter(|(at, _)| at % peers == index).map(|(_, entry)| entry).collect();
    let (records, is_touched) = job.check(left(job, store, rules, &mine))?;
    if !gather(worker, job, None, &is_touched)?.contains(&true) {
        return Ok(None);
    }
    write(worker, job, &context.row, records).map(Some)
}

/// Returns the links of these files that stay, and whether rules touch any link.
fn left(job: &Job, store: &Reader, rules: &[Removal], files: &[&HeldEntry]) -> Result<(HeldRecords, bool), Error> {
    let mut selecting = Vec::new();
    for rule in rules {
        // No key is a prefix of another key, so a whole key as prefix selects only the URL with this key.
        selecting.push((rule.select.keys()?.0, rule));
    }
    let (mut records, mut is_touched) = (HeldRecords::new(job, 40), false);
    let (mut page_key, mut link_key) = (Vec::new(), Vec::new());
    let mut captures = Captures::default();
    for entry in files {
        let file = HeldFile::open(store.store().location(), entry)?;
        for group in 0..file.groups() {
            for mut held in file.read(group)? {
                key(&held.page, &mut page_key);
                key(&held.link, &mut link_key);
                let of = |url: &[u8], means: fn(&Removal) -> bool| -> Vec<&Removal> {
                    let selecting = selecting.iter().filter(|(prefix, rule)| url.starts_with(prefix) && means(rule));
                    selecting.map(|(_, rule)| *rule).collect()
                };
                let (of_page, of_link) = (of(&page_key, Removal::of_pages), of(&link_key, Removal::of_targets));
                if !of_page.is_empty() || !of_link.is_empty() {
                    is_touched = true;
                    held.times = captures.left(store, &held, &of_page, &of_link)?;
                }
                if !held.times.is_empty() {
                    records.push(&page_key, &link_key, (held.form, held.digest), &held.times)?;
                }
                job.go_on()?;
            }
        }
    }
    Ok((records, is_touched))
}

/// The known captures of the page that was looked up last.
#[derive(Default)]
struct Captures {
    page: String,
    times: Vec<i64>,
}

impl Captures {
    /// Returns the times at which a held link is still there.
    fn left(
        &mut self,
        store: &Reader,
        held: &HeldLink,
        of_page: &[&Removal],
        of_link: &[&Removal],
    ) -> Result<Vec<i64>, Error> {
        let covered = |rules: &[&Removal], time: i64| rules.iter().any(|rule| rule.covers(time));
        if of_page.iter().chain(of_link).any(|rule| rule.from.is_none() && rule.to.is_none()) {
            return Ok(Vec::new());
        }
        if held.form == OF_REVISITS || held.digest != 0 {
            let stay = held.times.iter().filter(|&&time| !covered(of_page, time) && !covered(of_link, time));
            return Ok(stay.copied().collect());
        }
        if self.page != held.page {
            self.page.clone_from(&held.page);
            let uid = store.uid(&held.page)?;
            let page = uid.map_or(Ok(None), |uid| store.page(uid))?.unwrap_or_default();
            let known = (0u32..).zip(&page.timestamps).filter(|&(at, _)| !page.is_blank(at));
            self.times = known.map(|(_, &time)| time).collect();
        }
        let mut stretches: Vec<i64> = Vec::new();
        let mut was_there = false;
        for &time in self.times.iter().filter(|&&time| !covered(of_page, time)) {
            let is_there = held.is_at(time) && !covered(of_link, time);
            match stretches.last_mut().filter(|_| was_there) {
                Some(last) if is_there => *last = time,
                _ if is_there => stretches.extend([time, time]),
                _ => {}
            }
            was_there = is_there;
        }
        Ok(stretches)
    }
}
