//! The evidence for the revisits of a page: the data that finds their links again when captures are added.
//!
//! The data are the digest of each capture, which captures are revisits, and what the revisits say about the capture
//! that they refer to. A capture of several records with different payloads also has the links of each payload
//! ([`Payload`]). The layer rv holds the data (`file/evidence.rs`).

use crate::record::form::link_of;
use crate::record::page::Flaw;
use crate::record::uid::Uid;

/// A capture that refers to another capture and has its links.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Revisit<L = Uid> {
    /// Index of the capture in the page's timestamps.
    pub capture: u32,
    /// Whether the server said that nothing had changed. If so, the revisit has the links of the latest capture before
    /// it. Otherwise it has the links of the capture with its digest, or of the capture at the time that the revisit
    /// names.
    pub not_modified: bool,
    /// Whether the record of the revisit gives no status. If so, the revisit also takes the status of the capture that
    /// it refers to. Otherwise its status is 200.
    pub without_status: bool,
    /// Whether the revisit refers to a capture of another URL. If so, it has the links of all captures with its digest,
    /// of any URL, resolved against the URL of the revisit. The links found so far are stored with the page.
    pub elsewhere: bool,
    /// The time of the capture that the revisit refers to, in seconds, if the revisit names a capture of the same URL.
    pub referred: Option<i64>,
    /// The own links of the revisit record, in addition to the links of other captures: UIDs, rising, each once.
    pub links: Vec<L>,
}

/// Orders the revisits of one capture, if several records say that it is one: the least is the revisit of the capture.
/// A record that names no original, as lines of indexes do, comes after all others, and a record that names the time
/// of its original comes before one that does not. The statuses of the records count apart from their order.
pub fn revisit_order<L>(revisit: &Revisit<L>, digest: u64) -> impl Ord + use<L> {
    let Revisit { not_modified, elsewhere, referred, .. } = *revisit;
    let names_nothing = !not_modified && digest == 0 && referred.is_none();
    (names_nothing, not_modified, digest, referred.is_none(), referred, elsewhere)
}

/// The links of the records that have one digest in one second. A capture of these and of other records has the links
/// of all of them, but a revisit of the digest has only the links of the payload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Payload<L = Uid> {
    /// Index of the capture in the page's timestamps.
    pub capture: u32,
    /// 64 bits of the digest, never 0.
    pub digest: u64,
    /// The links with their forms ([`crate::record::form::formed`]), rising, each once. The capture has all of them.
    pub links: Vec<L>,
}

impl<L: Ord> Payload<L> {
    /// Joins the payloads of one digest and one capture into one payload, and sorts payloads by capture and digest.
    pub fn unite(payloads: &mut Vec<Self>) {
        payloads.sort_by_key(|payload| (payload.capture, payload.digest));
        payloads.dedup_by(|next, first| {
            let is_same = (next.capture, next.digest) == (first.capture, first.digest);
            if is_same {
                first.links.append(&mut next.links);
            }
            is_same
        });
        for payload in payloads.iter_mut().filter(|payload| !payload.links.is_sorted_by(|one, other| one < other)) {
            payload.links.sort_unstable();
            payload.links.dedup();
        }
    }

    /// Whether the payloads of one capture, united, say more than the digest of the capture says: there are several, or
    /// the only one has fewer links than the capture.
    pub fn say_more(payloads: &[Self], links_of_capture: usize) -> bool {
        match payloads {
            [] => false,
            [only] => only.links.len() < links_of_capture,
            _ => true,
        }
    }
}

/// The evidence of a page: one record of rv.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Evidence<L = Uid> {
    /// For each capture, 64 bits of the digest of its payload, the least digest if it has several; for a revisit, of
    /// the payload that it refers to. 0 for a capture without a digest. Empty if no capture has a digest.
    pub digests: Vec<u64>,
    /// The payloads of the captures whose links are not the links of one digest, by capture and digest. Such a capture
    /// has a payload for each of its digests. In all other captures, the digest has the links of the capture.
    pub payloads: Vec<Payload<L>>,
    /// The captures that are revisits, in order.
    pub revisits: Vec<Revisit<L>>,
    /// The forms of the links, see [`crate::record::form`]. Empty if all forms are 0, and beside a formed page.
    pub forms: Vec<u8>,
}

impl Evidence {
    /// The digest of a capture; 0 without one.
    pub fn digest(&self, capture: usize) -> u64 {
        self.digests.get(capture).copied().unwrap_or(0)
    }

    /// The payloads of a capture; none if the digest of the capture has the links of the capture.
    pub fn payloads_of(&self, capture: u32) -> &[Payload] {
        let first = self.payloads.partition_point(|payload| payload.capture < capture);
        let count = self.payloads[first..].partition_point(|payload| payload.capture == capture);
        &self.payloads[first..first + count]
    }

    /// The revisit at a capture.
    pub fn revisit(&self, capture: u32) -> Option<&Revisit> {
        let at = self.revisits.binary_search_by_key(&capture, |revisit| revisit.capture).ok()?;
        self.revisits.get(at)
    }

    /// Keeps only what finds the links of `blank` captures, the captures with unknown links: their revisits, and the
    /// digests of these. All other captures are no longer revisits, except for revisits that need no digest: a later
    /// capture may change their links. Payloads and forms go: other URLs find links by the digests that go.
    pub fn forget_settled(&mut self, blank: &[u32]) {
        let Self { digests, revisits, .. } = self;
        let is_blank = |capture: u32| blank.binary_search(&capture).is_ok();
        revisits.retain(|Revisit { capture, not_modified, referred, .. }| {
            let digest = digests.get(*capture as usize).copied().unwrap_or(0);
            is_blank(*capture) || *not_modified || digest == 0 && referred.is_some()
        });
        for (capture, digest) in (0u32..).zip(&mut *digests) {
            let is_revisit = revisits.binary_search_by_key(&capture, |revisit| revisit.capture).is_ok();
            if !is_revisit || !is_blank(capture) {
                *digest = 0;
            }
        }
        if digests.iter().all(|&digest| digest == 0) {
            digests.clear();
        }
        self.payloads.clear();
        self.forms.clear();
    }

    /// The first flaw of the evidence beside a page of `captures` captures; `None` if there is no flaw.
    pub fn flaw(&self, captures: usize) -> Option<Flaw> {
        if !self.digests.is_empty()
            && (self.digests.len() != captures || self.digests.iter().all(|&digest| digest == 0))
        {
            return Some(Flaw::Digests(self.digests.len()));
        }
        let disorder = self.revisits.windows(2).find(|pair| pair[0].capture >= pair[1].capture);
        let last = self.revisits.last().filter(|last| last.capture as usize >= captures);
        let wrong = disorder.map(|pair| &pair[1]).or(last);
        let links = |revisit: &&Revisit| !revisit.links.is_sorted_by(|one, other| one < other);
        let wrong = wrong.or_else(|| self.revisits.iter().find(links)).map(|revisit| Flaw::Revisit(revisit.capture));
        wrong.or_else(|| self.payload_flaw(captures))
    }

    /// The first payload with a link that is not among the links of the page; `None` if there is none.
    pub(crate) fn foreign_payload(&self, links: &[Uid]) -> Option<Flaw> {
        let is_foreign = |link: &Uid| links.binary_search(&link_of(*link)).is_err();
        let foreign = self.payloads.iter().find(|payload| payload.links.iter().any(is_foreign));
        foreign.map(|payload| Flaw::Payload(payload.capture))
    }

    fn payload_flaw(&self, captures: usize) -> Option<Flaw> {
        let mut last = None;
        let mut is_wrong = |Payload { capture, digest, links }: &&Payload| {
            let before = last.replace((*capture, *digest));
            let is_first = before.is_none_or(|(before, _)| before != *capture);
            let is_least = !is_first || self.digest(*capture as usize) == *digest;
            let is_revisit = || self.revisit(*capture).is_some();
            before >= last
                || *digest == 0
                || !is_least
                || *capture as usize >= captures
                || is_revisit()
                || !links.is_sorted_by(|one, other| one < other)
        };
        self.payloads.iter().find(|payload| is_wrong(payload)).map(|payload| Flaw::Payload(payload.capture))
    }
}
