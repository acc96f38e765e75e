//! Finds the links of revisits, and the captures of a page that an update has to write.
//!
//! Reads the new captures of a page with their [`Evidence`], and the captures that the store has. Returns the page as
//! the new row must contain it. A revisit takes the links of the capture that it refers to: the capture with its digest
//! (the latest before the revisit, else the first after it), else the capture at the time that the revisit names. A
//! `304 Not Modified` refers to the latest known capture before it. If no such capture exists, the links of the revisit
//! are unknown. A revisit without a status in its record also takes the status of the capture, which may be a failure.
//! Any other revisit has the status 200 and refers to a capture with that status. A revisit of a cut capture is cut. A
//! revisit of another URL has the links that were lent to it ([`crate::stages::ingest`]), now and before. Once it has
//! links, other revisits may refer to it. If a capture of a second has several payloads, a revisit that finds it by
//! digest has the links of the payload, and any other revisit has the links of the capture.
//!
//! A page of a store is always as if all its captures had arrived at once. If a new capture gives links or other links
//! to a revisit of the store, the revisit is written again. A capture that the store already has is not written again.
//! The newest of several rows with a capture is therefore right. Cost: the captures of the page, and the links of
//! captures that are both in the store and new.

use crate::stages::large_pages::{self, VALUES_MAX};
use crate::stages::page_links::links_at;
use std::collections::HashMap;
use webstrata_layers::record::join::{self, Contribution, Weave};
use webstrata_layers::record::{form, precedence, presence};
use webstrata_layers::{Evidence, Page, Payload, Revisit, Status, Uid, push_status};

/// The captures that a page adds to a store.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Added {
    /// The captures to write; `None` if nothing is written.
    pub(crate) page: Option<(Page, Evidence)>,
    /// The number of new captures that the store already has.
    pub(crate) stored: u64,
    /// Whether links that were lent to a revisit, of the store or new, are lost: another record displaces it.
    pub(crate) displaces: bool,
    /// All captures of the page as they are now; only if the caller asked for them.
    pub(crate) whole: Option<(Page, Evidence)>,
}

/// A capture of the page, which the store, the new captures, or both may have.
struct Moment {
    time: i64,
    digest: u64,
    /// The status; for a revisit, the status of the capture that it refers to.
    status: Status,
    /// The payloads, if the digest does not have the links of the capture ([`Payload`]); never of a revisit. Their
    /// captures are not numbered yet.
    payloads: Vec<Payload>,
    /// `None` if a capture of that second is not a revisit.
    revisit: Option<Revisit>,
    /// Whether the links were left out: then the capture is not a revisit, and its links stay unknown.
    is_left_out: bool,
    /// The index in the stored page, and in the new page.
    stored: Option<u32>,
    new: Option<u32>,
    links: Option<Links>,
}

impl Moment {
    /// Whether a revisit may refer to this capture: the capture is not a revisit, or has links that were lent to it.
    fn is_original(&self) -> bool {
        self.revisit.is_none() || self.borrows()
    }

    /// Whether this is a revisit with links that a capture of another URL lent to it.
    fn borrows(&self) -> bool {
        self.revisit.as_ref().is_some_and(|revisit| revisit.elsewhere && self.links.is_some())
    }

    /// The digests, without 0.
    fn digests(&self) -> Vec<u64> {
        match &self.payloads[..] {
            [] => [self.digest].into_iter().filter(|&digest| digest != 0).collect(),
            payloads => payloads.iter().map(|payload| payload.digest).collect(),
        }
    }

    /// The links of the records with a digest of this capture.
    fn links_of(&self, digest: u64) -> Option<Links> {
        let payload = self.payloads.iter().find(|payload| payload.digest == digest);
        let of_payload = |payload: &Payload| Links { owners: Vec::new(), revisit_links: payload.links.clone() };
        payload.map(of_payload).or_else(|| self.links.clone())
    }
}

/// A record of a capture in one version: its revisit, if it is one, its digest, and its status.
type Record<'a> = (Option<&'a Revisit>, u64, Status);

/// The places of the links of a capture: in captures of the two versions of the page, and in revisits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Links {
    owners: Vec<(usize, u32)>,
    revisit_links: Vec<Uid>,
}

const STORED: usize = 0;
const NEW: usize = 1;
/// A revisit without evidence.
static NO_EVIDENCE: Revisit = Revisit {
    capture: 0,
    not_modified: false,
    without_status: false,
    elsewhere: false,
    referred: None,
    links: Vec::new(),
};

/// Returns all captures in order of time. Revisits have no links yet, except for lent links.
fn moments(versions: [(&Page, &Evidence); 2]) -> Vec<Moment> {
    let (mut moments, mut counted) = (Vec::new(), Vec::<(usize, u32, Record<'_>)>::new());
    precedence::for_each_time(&versions.map(|(page, _)| &page.timestamps[..]), |time, captures| {
        let index = u32::try_from(moments.len()).unwrap_or(u32::MAX);
        let records = captures.iter().map(|&(version, at)| {
            let (page, evidence) = versions[version];
            let without_evidence = || (!page.is_known(at)).then_some(&NO_EVIDENCE);
            (evidence.revisit(at).or_else(without_evidence), evidence.digest(at as usize), page.status(at))
        });
        let (digest, mut revisit, mut status) = join::one_capture(index, records.clone());
        let counts = join::counting(records.clone());
        let numbered = captures.iter().zip(records).map(|(&(version, at), record)| (version, at, record));
        counted.clear();
        counted.extend(numbered.filter(|&(.., (of, _, status))| counts(of, status)));
        // The links of a redirect beside a revisit are links of the revisit's own.
        let beside = counted.iter().filter(|(.., (of, ..))| of.is_none());
        let beside = beside.flat_map(|&(version, at, _)| links_at(versions[version].0, at));
        let targets: Vec<Uid> = if revisit.is_some() { beside.map(form::link_of).collect() } else { Vec::new() };
        if let Some(revisit) = revisit.as_mut().filter(|_| !targets.is_empty()) {
            revisit.links.extend(&targets);
            revisit.links.sort_unstable();
            revisit.links.dedup();
        }
        let of = |version| captures.iter().find(|capture| capture.0 == version).map(|capture| capture.1);
        let mut links = None;
        if revisit.is_none() {
            let mut all = Links::default();
            for &(version, at, (revisit, _, of_record)) in &counted {
                match revisit {
                    None if of_record.is_failure() => {}
                    None => all.owners.push((version, at)),
                    Some(revisit) => all.revisit_links.extend(&revisit.links),
                }
            }
            links = Some(all);
        } else if revisit.as_ref().is_some_and(|revisit| revisit.elsewhere) {
            let mut all = Links::default();
            for &(version, at, (revisit, of_record, _)) in &counted {
                let has_links = of_record == digest && !versions[version].0.is_blank(at);
                match revisit {
                    // The links of the revisit's record are among the links of the capture.
                    Some(revisit) if revisit.elsewhere && has_links => all.owners.push((version, at)),
                    revisit => all.revisit_links.extend(revisit.iter().flat_map(|revisit| &revisit.links)),
                }
            }
            all.revisit_links.extend(targets);
            all.revisit_links.sort_unstable();
            all.revisit_links.dedup();
            // What was lent may be cut.
            status = all.owners.iter().map(|&(version, at)| versions[version].0.status(at)).min().unwrap_or(status);
            links = Some(all).filter(|all| !all.owners.is_empty());
        }
        let has_no_links = |&(version, at): &(usize, u32)| {
            !versions[version].0.is_known(at) && versions[version].1.revisit(at).is_none()
        };
        let is_left_out = revisit.is_some() && captures.iter().any(has_no_links);
        let payloads = if revisit.is_none() { payloads_of(&versions, &counted, status) } else { Vec::new() };
        let (stored, new) = (of(STORED), of(NEW));
        moments.push(Moment { time, digest, status, payloads, revisit, is_left_out, stored, new, links });
    });
    moments
}

/// Returns the payloads of a capture that is no revisit and has this status, given its records that count.
fn payloads_of(
    versions: &[(&Page, &Evidence); 2],
    counted: &[(usize, u32, Record<'_>)],
    status: Status,
) -> Vec<Payload> {
    let said = |version: usize, at| {
        versions[version].1.payloads_of(at).iter().map(|payload| Payload { capture: 0, ..payload.clone() })
    };
    if let &[(version, at, _)] = counted {
        return said(version, at).collect();
    }
    let (mut payloads, mut all) = (Vec::new(), Vec::<Uid>::new());
    for &(version, at, (revisit, digest, of_record)) in counted {
        let (page, before) = (versions[version].0, payloads.len());
        if let Some(revisit) = revisit {
            all.extend(&revisit.links);
            continue;
        }
        let links = if page.is_blank(at) { Vec::new() } else { links_at(page, at) };
        all.extend(&links);
        if of_record == status {
            payloads.extend(said(version, at));
            if payloads.len() == before && digest != 0 {
                payloads.push(Payload { capture: 0, digest, links });
            }
        }
    }
    all.sort_unstable();
    all.dedup();
    Payload::unite(&mut payloads);
    // A failure has no links, whatever revisits name beside it.
    let links = if status.is_failure() { 0 } else { all.len() };
    if Payload::say_more(&payloads, links) { payloads } else { Vec::new() }
}

/// Gives revisits the links of the captures that they refer to.
fn resolve(moments: &mut [Moment]) {
    let mut digests: HashMap<u64, Vec<usize>> = HashMap::new();
    for (number, moment) in moments.iter().enumerate().filter(|(_, moment)| moment.is_original()) {
        for digest in moment.digests() {
            digests.entry(digest).or_default().push(number);
        }
    }
    let mut latest_known: Option<usize> = None;
    for number in 0..moments.len() {
        let revisit = moments[number].revisit.as_ref().filter(|revisit| !revisit.elsewhere);
        if let Some(revisit) = revisit.filter(|_| !moments[number].is_left_out) {
            let digest = moments[number].digest;
            let with_links = |number: usize| Some((number, moments[number].links.clone()));
            let referred = if revisit.not_modified {
                latest_known.and_then(with_links)
            } else {
                let fits = |&index: &usize| revisit.without_status || moments[index].status.has_page();
                let same = digests.get(&digest).map_or(&[][..], |same| same);
                let (before, after) = same.split_at(same.partition_point(|&index| index < number));
                let by_digest = before.iter().copied().rfind(fits).or_else(|| after.iter().copied().find(fits));
                by_digest.map(|found| (found, moments[found].links_of(digest))).or_else(|| {
                    let found = moments.binary_search_by_key(&revisit.referred?, |moment| moment.time).ok()?;
                    (moments[found].is_original() && fits(&found)).then(|| with_links(found))?
                })
            };
            let status = referred.as_ref().map_or(Status::OK, |(referred, _)| moments[*referred].status);
            let mut links = referred.and_then(|(_, links)| links);
            if let Some(links) = links.as_mut().filter(|_| !revisit.links.is_empty()) {
                links.revisit_links.extend(&revisit.links);
                links.revisit_links.sort_unstable();
                links.revisit_links.dedup();
            }
            (moments[number].links, moments[number].status) = (links, status);
        }
        if moments[number].links.is_some() && moments[number].status.has_page() {
            latest_known = Some(number);
        }
    }
}

/// Simplifies the places of links without changing the links. If the stored or the new capture has all links of the
/// other capture, only this capture is named; links of revisits that are also in a capture are dropped.
fn simplify(moments: &mut [Moment], stored: &Page, new: &Page) {
    for moment in moments {
        let (Some(old), Some(at), Some(links)) = (moment.stored, moment.new, &mut moment.links) else { continue };
        let (old_links, new_links) = (links_at(stored, old), links_at(new, at));
        let is_in = |one: &[Uid], other: &[Uid]| one.iter().all(|link| other.binary_search(link).is_ok());
        let is_old = links.owners.contains(&(STORED, old));
        if links.owners.len() == 2 && is_in(&new_links, &old_links) {
            links.owners = vec![(STORED, old)];
        } else if links.owners.len() == 2 && is_in(&old_links, &new_links) {
            links.owners = vec![(NEW, at)];
        }
        let has = if is_old { &old_links } else { &new_links };
        links.revisit_links.retain(|link| has.binary_search(link).is_err());
    }
}

/// Compares new captures of a page with the stored captures, and returns the captures to write.
pub(crate) fn add(stored: Option<(&Page, &Evidence)>, new: (&Page, &Evidence)) -> Added {
    add_released(stored, new, &[])
}

/// Like [`add`], for a stored page with links that were held and are no longer held (`released`, ascending): captures
/// that have these links are written again. Also returns all captures of the page.
pub(crate) fn add_and_release(stored: Option<(&Page, &Evidence)>, new: (&Page, &Evidence), released: &[Uid]) -> Added {
    let mut added = add_released(stored, new, released);
    let no_page = (&Page::default(), &Evidence::default());
    let versions = [stored.unwrap_or(no_page), new];
    let mut moments = moments(versions);
    simplify(&mut moments, versions[STORED].0, versions[NEW].0);
    resolve(&mut moments);
    let all: Vec<&Moment> = moments.iter().collect();
    added.whole = Some(write(versions[NEW].0.uid, versions.map(|(page, _)| page), &all));
    added
}

/// Returns for each capture of a stored page whether the capture has a released link.
fn with_released(page: &Page, released: &[Uid]) -> Vec<bool> {
    let captures = u32::try_from(page.timestamps.len()).unwrap_or(u32::MAX);
    let mut found = vec![false; page.timestamps.len()];
    for (_, changes) in form::each_link(page).into_iter().filter(|(link, _)| released.binary_search(link).is_ok()) {
        for (first, last) in presence::intervals(changes, captures) {
            found[first as usize..=last as usize].fill(true);
        }
    }
    found
}

fn add_released(stored: Option<(&Page, &Evidence)>, new: (&Page, &Evidence), released: &[Uid]) -> Added {
    let no_page = (&Page::default(), &Evidence::default());
    let versions = [stored.unwrap_or(no_page), new];
    let mut moments = moments(versions);
    simplify(&mut moments, versions[STORED].0, versions[NEW].0);
    resolve(&mut moments);
    let before = stored.map(|stored| {
        let mut before = self::moments([stored, no_page]);
        resolve(&mut before);
        before
    });
    let before_of = |moment: &Moment| Some(&before.as_ref()?[moment.stored? as usize]);
    let is_same = |moment: &Moment| {
        before_of(moment).is_some_and(|before| {
            let revisits = [&before.revisit, &moment.revisit].map(|revisit| revisit.as_ref().map(reference_of));
            let is_left_out = before.is_left_out == moment.is_left_out;
            let is_same =
                before.digest == moment.digest && before.status == moment.status && before.links == moment.links;
            is_same && revisits[0] == revisits[1] && is_left_out && before.payloads == moment.payloads
        })
    };
    let with_released = if released.is_empty() { Vec::new() } else { with_released(versions[STORED].0, released) };
    let is_released = |moment: &Moment| {
        let is_one = |link: &Uid| released.binary_search(link).is_ok();
        let of_capture =
            |&(version, at): &(usize, u32)| version == STORED && with_released.get(at as usize) == Some(&true);
        moment
            .links
            .as_ref()
            .is_some_and(|links| links.owners.iter().any(of_capture) || links.revisit_links.iter().any(is_one))
            || moment.revisit.as_ref().is_some_and(|revisit| revisit.links.iter().any(is_one))
    };
    let count = |selects: &dyn Fn(&Moment) -> bool| moments.iter().filter(|moment| selects(moment)).count();
    let stored = count(&|moment| moment.new.is_some() && is_same(moment)) as u64;
    let kept: Vec<&Moment> = moments.iter().filter(|moment| !is_same(moment) || is_released(moment)).collect();
    let lost = |moment: &Moment| {
        let lent = [(STORED, moment.stored), (NEW, moment.new)].map(|(of, at)| lent_digest(versions[of], at?));
        lent.into_iter().flatten().any(|digest| !moment.borrows() || moment.digest != digest)
    };
    let displaces = moments.iter().any(lost);
    if kept.is_empty() {
        return Added { stored, displaces, ..Added::default() };
    }
    let page = write(versions[NEW].0.uid, versions.map(|(page, _)| page), &kept);
    Added { page: Some(page), stored, displaces, whole: None }
}

/// The digest of the captures of other URLs that lent links to a capture, if it is a revisit that has such links.
fn lent_digest((page, evidence): (&Page, &Evidence), capture: u32) -> Option<u64> {
    let borrows = evidence.revisit(capture).is_some_and(|revisit| revisit.elsewhere) && !page.is_blank(capture);
    borrows.then(|| evidence.digest(capture as usize))
}

fn reference_of(revisit: &Revisit) -> (bool, bool, bool, Option<i64>, &[Uid]) {
    let Revisit { not_modified, without_status, elsewhere, referred, links, .. } = revisit;
    (*not_modified, *without_status, *elsewhere, *referred, links)
}

/// Returns a page with these captures, and its evidence.
fn write(uid: Uid, pages: [&Page; 2], kept: &[&Moment]) -> (Page, Evidence) {
    let (mut page, mut evidence) = (Page { uid, ..Page::default() }, Evidence::default());
    let (mut weave, mut contributions) = (Weave::default(), pages.map(Contribution::from).to_vec());
    let mut last_links: &[Uid] = &[];
    for (index, moment) in (0u32..).zip(kept) {
        page.timestamps.push(moment.time);
        evidence.digests.push(moment.digest);
        evidence.payloads.extend(moment.payloads.iter().map(|payload| Payload { capture: index, ..payload.clone() }));
        let revisit = moment.revisit.iter().filter(|_| !moment.is_left_out);
        evidence.revisits.extend(revisit.map(|revisit| Revisit { capture: index, ..revisit.clone() }));
        push_status(&mut page.statuses, index, moment.status);
        let known = moment.links.as_ref().filter(|_| !moment.status.is_failure());
        let Some(Links { owners, revisit_links }) = known else {
            page.blank.push(index);
            continue;
        };
        let mut owners = owners.clone();
        if !revisit_links.is_empty() {
            if revisit_links != last_links {
                last_links = revisit_links;
                contributions.push(Contribution::always(revisit_links));
            }
            owners.push((contributions.len() - 1, 0));
        }
        weave.push(index, &owners);
    }
    if evidence.digests.iter().all(|&digest| digest == 0) {
        evidence.digests.clear();
    }
    match weave.links_within(&contributions, VALUES_MAX) {
        Some(links) => (page.links, page.changes) = links,
        None => large_pages::leave_out(&mut page, &mut evidence),
    }
    (page, evidence)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};
    use webstrata_layers::Change;

    /// A capture: its time and digest, and its links or its reference.
    #[derive(Clone, Debug)]
    struct Capture {
        time: i64,
        digest: u64,
        links: BTreeSet<Uid>,
        /// Whether the revisit is a 304, and the time that the revisit names.
        revisit: Option<(bool, Option<i64>)>,
    }

    fn capture() -> impl Strategy<Value = Capture> {
        let links = prop::collection::btree_set((0u64..8).prop_map(Uid), 0..4);
        let revisit = prop::option::of((any::<bool>(), prop::option::of(0i64..14)));
        (0i64..14, 0u64..4, links, revisit).prop_map(|(time, digest, links, revisit)| {
            // Most revisits have no links in their records.
            let links = if revisit.is_some() && digest > 0 { BTreeSet::new() } else { links };
            Capture { time, digest, links, revisit }
        })
    }

    /// Accumulates captures as [`crate::stages::pages::accumulator`] does.
    fn accumulate(captures: &[Capture]) -> (Page, Evidence) {
        let mut by_time = BTreeMap::<i64, Vec<&Capture>>::new();
        captures.iter().for_each(|capture| by_time.entry(capture.time).or_default().push(capture));
        let (mut page, mut evidence) = (Page { uid: Uid(3), ..Page::default() }, Evidence::default());
        let mut sets = Vec::new();
        for (index, (&time, own)) in (0u32..).zip(&by_time) {
            page.timestamps.push(time);
            let links: BTreeSet<Uid> = own.iter().flat_map(|capture| &capture.links).copied().collect();
            let real = own.iter().filter(|capture| capture.revisit.is_none());
            let mut digests: Vec<u64> = real.clone().map(|capture| capture.digest).filter(|&own| own != 0).collect();
            digests.sort_unstable();
            let fields = |capture: &&Capture| capture.revisit.map(|(modified, time)| (modified, capture.digest, time));
            // A revisit that names no original is the last, and one that names a time comes before one that does not.
            let key = |capture: &&&Capture| {
                fields(capture).map(|(modified, digest, time)| {
                    let names = modified || digest > 0 || time.is_some();
                    (!names, modified, digest, time.is_none(), time)
                })
            };
            if real.count() > 0 {
                evidence.digests.push(digests.first().copied().unwrap_or(0));
                digests.dedup();
                let of = |digest| own.iter().filter(move |it| it.revisit.is_none() && it.digest == digest);
                let of = |digest| of(digest).flat_map(|it| &it.links).copied().collect::<BTreeSet<Uid>>();
                let payload = |&digest| Payload { capture: index, digest, links: of(digest).into_iter().collect() };
                let payloads: Vec<Payload> = digests.iter().map(payload).collect();
                if payloads.len() > 1 || payloads.iter().any(|payload| payload.links.len() < links.len()) {
                    evidence.payloads.extend(payloads);
                }
                sets.push(Some(links));
            } else if let Some((not_modified, digest, referred)) = own.iter().min_by_key(key).and_then(fields) {
                evidence.digests.push(digest);
                let links = links.into_iter().collect();
                evidence.revisits.push(Revisit { capture: index, not_modified, referred, links, ..Revisit::default() });
                page.blank.push(index);
                sets.push(None);
            }
        }
        if evidence.digests.iter().all(|&digest| digest == 0) {
            evidence.digests.clear();
        }
        let links: BTreeSet<Uid> = sets.iter().flatten().flatten().copied().collect();
        page.links = links.into_iter().collect();
        for (link, uid) in (0..).zip(&page.links) {
            let mut before = true;
            for (capture, links) in (0..).zip(&sets) {
                let Some(links) = links else { continue };
                if links.contains(uid) != before {
                    page.changes.push(Change { link, capture });
                    before = !before;
                }
            }
        }
        (page, evidence)
    }

    fn joined(rows: &[(Page, Evidence)]) -> Option<(Page, Evidence)> {
        let page = join::pages(&rows.iter().map(|row| &row.0).collect::<Vec<_>>())?.page;
        Some((page, join::evidence(&rows.iter().map(|row| (&row.0, &row.1)).collect::<Vec<_>>())))
    }

    proptest! {
        #[test]
        fn batches_in_any_order_come_to_the_same(
            captures in prop::collection::vec((capture(), 0usize..4), 1..24),
            repeated in prop::collection::vec((0usize..24, 0usize..4), 0..4),
        ) {
            let mut batches = vec![Vec::new(); 4];
            captures.iter().for_each(|(capture, batch)| batches[*batch].push(capture.clone()));
            for (capture, batch) in repeated {
                batches[batch].push(captures[capture % captures.len()].0.clone());
            }
            let mut rows: Vec<(Page, Evidence)> = Vec::new();
            for batch in batches.iter().filter(|batch| !batch.is_empty()) {
                let (page, evidence) = accumulate(batch);
                let stored = joined(&rows);
                let stored = stored.as_ref().map(|(page, evidence)| (page, evidence));
                if let Some((page, evidence)) = add(stored, (&page, &evidence)).page {
                    prop_assert_eq!((page.flaw(), evidence.flaw(page.timestamps.len())), (None, None), "{:?}", page);
                    rows.push((page, evidence));
                }
                let stored = joined(&rows);
                let stored = stored.as_ref().map(|(page, evidence)| (page, evidence));
                let again = add(stored, (&page, &evidence));
                prop_assert_eq!(again, Added { stored: page.timestamps.len() as u64, ..Added::default() });
            }
            let all: Vec<Capture> = captures.into_iter().map(|(capture, _)| capture).collect();
            let (page, evidence) = accumulate(&all);
            prop_assert_eq!(joined(&rows), add(None, (&page, &evidence)).page);
        }
    }

    fn real(time: i64, digest: u64, links: &[u64]) -> Capture {
        Capture { time, digest, links: Uid::slice(links).iter().copied().collect(), revisit: None }
    }

    fn revisit(time: i64, digest: u64, not_modified: bool, referred: Option<i64>) -> Capture {
        Capture { time, digest, links: BTreeSet::new(), revisit: Some((not_modified, referred)) }
    }

    /// Returns the links at a time if all captures arrive at once; `None` if the links are unknown.
    fn at(captures: &[Capture], time: i64) -> Option<Vec<u64>> {
        let (page, evidence) = accumulate(captures);
        let (page, _) = add(None, (&page, &evidence)).page.unwrap();
        let capture = u32::try_from(page.timestamps.binary_search(&time).unwrap()).unwrap();
        page.is_known(capture).then(|| Uid::into_numbers(links_at(&page, capture)))
    }

    #[test]
    fn a_revisit_takes_the_links_of_its_digest() {
        let captures = [
            real(10, 1, &[4, 5]),
            real(20, 2, &[6]),
            revisit(30, 1, false, Some(20)),
            revisit(40, 3, false, Some(20)),
            revisit(50, 3, false, None),
            revisit(60, 0, false, None),
        ];
        assert_eq!(at(&captures, 30), Some(vec![4, 5]), "the digest decides, not the date");
        assert_eq!(at(&captures, 40), Some(vec![6]), "without the digest the date decides");
        assert_eq!(at(&captures, 50), None, "with neither its links are unknown");
        assert_eq!(at(&captures, 60), None, "no digest is no digest that another capture has");
        let early = [revisit(10, 1, false, None), real(20, 1, &[4]), real(30, 1, &[5])];
        assert_eq!(at(&early, 10), Some(vec![4]), "the first after it where there is none before");
    }

    #[test]
    fn a_revisit_takes_the_links_of_its_payload() {
        let captures = [
            real(10, 1, &[4]),
            real(10, 2, &[5]),
            real(10, 0, &[6]),
            revisit(20, 1, false, None),
            revisit(30, 2, false, Some(20)),
            revisit(40, 3, false, Some(10)),
            revisit(50, 0, true, None),
        ];
        assert_eq!(at(&captures, 10), Some(vec![4, 5, 6]));
        assert_eq!((at(&captures, 20), at(&captures, 30)), (Some(vec![4]), Some(vec![5])), "each digest counts");
        assert_eq!(at(&captures, 40), Some(vec![4, 5, 6]), "by time, the links of all records");
        assert_eq!(at(&captures, 50), Some(vec![4, 5, 6]), "a 304 has the links of the latest capture");
    }

    #[test]
    fn not_modified_takes_the_latest_earlier_links() {
        let captures = [
            revisit(5, 0, true, None),
            real(10, 0, &[4]),
            revisit(20, 0, true, None),
            real(30, 0, &[6]),
            revisit(40, 0, true, None),
        ];
        assert_eq!(at(&captures, 5), None);
        assert_eq!(at(&captures, 20), Some(vec![4]));
        assert_eq!(at(&captures, 40), Some(vec![6]));
    }

    #[test]
    fn a_later_original_fills_in_what_the_store_does_not_know() {
        let (old, old_evidence) =
            accumulate(&[real(10, 1, &[4]), revisit(20, 2, false, None), revisit(40, 0, true, None)]);
        let (old, old_evidence) = add(None, (&old, &old_evidence)).page.unwrap();
        let (new, new_evidence) = accumulate(&[real(30, 2, &[6]), real(10, 1, &[4])]);
        let added = add(Some((&old, &old_evidence)), (&new, &new_evidence));
        assert_eq!(added.stored, 1);
        let (page, evidence) = added.page.unwrap();
        assert_eq!((&page.timestamps[..], &page.blank[..]), (&[20, 30, 40][..], &[][..]));
        assert_eq!(page.links, [Uid(6)], "all three have the links of the new capture");
        assert_eq!(evidence.revisits.iter().map(|own| own.capture).collect::<Vec<_>>(), [0, 2]);
    }
}
