//! The meaning of a capture, decided once for every format.
//!
//! A reader reports a retrieval ([`Seen`]): the status if there is one, whether links were given, the fields of a
//! revisit, and the target of a redirect. [`Seen::settle`] decides the meaning. No later code looks at a status to
//! decide about links.
//!
//! | seen | meaning |
//! |---|---|
//! | 200, 203 or no status, with links (an empty list, too) | these links |
//! | the same, but not read whole; 206 with links | *cut*: these links, and of every other link it is unknown |
//! | 200, 203, 206 or no status, and links not mentioned | the links are unknown |
//! | a revisit with 200 or no status, and any 304 | a revisit: it has the links of the capture that it refers to |
//! | the same, without a profile | a 304 says that the page was not modified, all others have an identical payload |
//! | 3xx | no links, except the target of a redirect if redirects are links |
//! | other 2xx | known to have no links |
//! | 4xx and above | a failure, which has no links |
//! | a number that is not a final status | no capture |
//!
//! Links that do not count are dropped, and their capture is counted ([`Finding::UnusedLinks`]).

use crate::{Capture, Content, Cut, Finding, Profile, Revisit, Tally};

/// What a record of a revisit says of the capture that it refers to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReferredTo {
    /// The profile. Without one, the status decides.
    pub(crate) profile: Option<Profile>,
    /// The URL, as spelt in the record.
    pub(crate) url: Option<String>,
    /// Seconds since 1970.
    pub(crate) time: Option<i64>,
}

/// The report of a reader about a retrieval. The links are in the capture already.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen<'a> {
    /// The status code, if there is one.
    pub(crate) status: Option<i64>,
    /// Whether links were given, even an empty list.
    pub(crate) has_links: bool,
    /// The fields of a revisit record.
    pub(crate) revisit: Option<ReferredTo>,
    /// The target of a redirect, if it is given apart from the links.
    pub(crate) target: Option<&'a str>,
    /// Why the body was not read whole, if it was not. A part of a page (206) is always cut.
    pub(crate) cut: Option<Cut>,
}

/// The meaning of a retrieval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// A page; its links count.
    Page,
    /// A page that had not changed.
    Revisit,
    /// A response that names another URL.
    Redirect,
    /// A response without links.
    NoLinks,
    /// Not a capture.
    Nothing,
}

impl Seen<'_> {
    /// A retrieval with links and without a status.
    pub(crate) fn links() -> Self {
        Seen { has_links: true, ..Seen::default() }
    }

    /// The meaning of the status and the revisit; see the table above.
    pub(crate) fn meaning(&self) -> Meaning {
        match (self.status, &self.revisit) {
            (None | Some(200 | 203 | 206), None) => Meaning::Page,
            (None | Some(200), Some(_)) | (Some(304), _) => Meaning::Revisit,
            (Some(300..=399), _) => Meaning::Redirect,
            (Some(201..=999), _) => Meaning::NoLinks,
            _ => Meaning::Nothing,
        }
    }

    /// Gives `capture` its status and its content, and removes links that do not count. Returns `false` and counts the
    /// retrieval if it is not a capture.
    pub(crate) fn settle(self, redirects: bool, capture: &mut Capture, tally: &mut Tally) -> bool {
        let meaning = self.meaning();
        capture.status = self.status.and_then(|status| u16::try_from(status).ok());
        capture.content = Content::Links;
        capture.cut = None;
        match meaning {
            Meaning::Nothing => {
                tally.count(Finding::OtherStatus);
                return false;
            }
            Meaning::Page => {
                if self.has_links {
                    capture.cut = self.cut.or((self.status == Some(206)).then_some(Cut::Partial));
                    if let Some(cut) = capture.cut {
                        tally.count_as(Finding::CutCapture, cut.name());
                    }
                } else {
                    capture.content = Content::Unknown;
                }
                return true;
            }
            Meaning::Revisit => {
                // Both statuses say that the capture that a revisit refers to has the status 200.
                capture.status = capture.status.map(|_| 200);
                let ReferredTo { profile, url, time } = self.revisit.unwrap_or_default();
                let by_status = if self.status == Some(304) { Profile::NotModified } else { Profile::IdenticalDigest };
                capture.content = Content::Revisit(Revisit { profile: profile.unwrap_or(by_status), url, time });
            }
            Meaning::Redirect => {
                // The only link of a redirect is its target.
                let sole = capture.links.sole().filter(|_| self.target.is_none()).map(str::to_owned);
                if let Some(target) = self.target.or(sole.as_deref()) {
                    let is_other = sole.is_none() && !capture.links.is_empty();
                    tally.count_many(Finding::UnusedLinks, u64::from(is_other));
                    capture.links.clear();
                    capture.base.clear();
                    if redirects {
                        capture.links.push(target);
                    }
                    return true;
                }
            }
            Meaning::NoLinks => {}
        }
        tally.count_many(Finding::UnusedLinks, u64::from(!capture.links.is_empty()));
        capture.links.clear();
        capture.base.clear();
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Settles a status, links, a target, and perhaps a revisit. Returns the status, the content, the links, and how
    /// many captures had unused links.
    fn settled(
        status: Option<i64>,
        links: Option<&[&str]>,
        target: Option<&str>,
        is_revisit: bool,
        redirects: bool,
    ) -> Option<(Option<u16>, &'static str, Vec<String>, u64)> {
        let mut capture = Capture { links: links.into_iter().flatten().copied().collect(), ..Capture::default() };
        let profile = Some(Profile::IdenticalDigest);
        let revisit = is_revisit.then_some(ReferredTo { profile, url: None, time: Some(7) });
        let (seen, mut tally) =
            (Seen { status, has_links: links.is_some(), revisit, target, cut: None }, Tally::default());
        let is_capture = seen.settle(redirects, &mut capture, &mut tally);
        assert_eq!(tally.of(Finding::OtherStatus), u64::from(!is_capture));
        let content = match &capture.content {
            Content::Links => "links",
            Content::Unknown => "unknown",
            Content::Revisit(Revisit { profile: Profile::NotModified, .. }) => "not modified",
            Content::Revisit(_) => "revisit",
        };
        let links = capture.links.iter().map(str::to_owned).collect();
        is_capture.then_some((capture.status, content, links, tally.of(Finding::UnusedLinks)))
    }

    #[test]
    fn the_status_of_a_revisit_without_a_profile_decides() {
        for (profile, status, expected) in [
            (None, None, Profile::IdenticalDigest),
            (None, Some(200), Profile::IdenticalDigest),
            (None, Some(304), Profile::NotModified),
            (Some(Profile::IdenticalDigest), Some(304), Profile::IdenticalDigest),
            (Some(Profile::NotModified), Some(200), Profile::NotModified),
        ] {
            let (mut capture, mut tally) = (Capture::default(), Tally::default());
            let revisit = Some(ReferredTo { profile, url: Some("u".to_owned()), time: Some(7) });
            assert!(Seen { status, revisit, ..Seen::default() }.settle(true, &mut capture, &mut tally));
            let revisit = Revisit { profile: expected, url: Some("u".to_owned()), time: Some(7) };
            assert_eq!(capture.content, Content::Revisit(revisit), "{profile:?} {status:?}");
        }
    }

    #[test]
    fn the_table() {
        let both: Option<&[&str]> = Some(&["x", "y"]);
        let row = |status, content, links: &[&str], unused| {
            Some((status, content, links.iter().map(|&link| link.to_owned()).collect::<Vec<_>>(), unused))
        };
        for status in [None, Some(200)] {
            let code = status.map(|_| 200);
            assert_eq!(settled(status, both, None, false, true), row(code, "links", &["x", "y"], 0));
            assert_eq!(settled(status, Some(&[]), Some("t"), false, true), row(code, "links", &[], 0));
            assert_eq!(settled(status, None, None, false, true), row(code, "unknown", &[], 0));
            assert_eq!(settled(status, both, None, true, true), row(code, "revisit", &[], 1));
        }
        assert_eq!(settled(Some(304), Some(&[]), None, false, true), row(Some(200), "not modified", &[], 0));
        assert_eq!(settled(Some(304), None, Some("t"), true, true), row(Some(200), "revisit", &[], 0));
        for status in [204, 404, 429, 503, 999] {
            let code = u16::try_from(status).ok();
            assert_eq!(settled(Some(status), both, Some("t"), false, true), row(code, "links", &[], 1));
            assert_eq!(settled(Some(status), None, None, true, false), row(code, "links", &[], 0));
        }
        for (links, target, kept, unused) in [
            (None, Some("t"), Some("t"), 0),
            (Some(&["x"][..]), None, Some("x"), 0),
            (Some(&["x"]), Some("t"), Some("t"), 1),
            (both, Some("t"), Some("t"), 1),
            (both, None, None, 1),
            (Some(&[]), None, None, 0),
        ] {
            assert_eq!(
                settled(Some(301), links, target, false, true),
                row(Some(301), "links", kept.as_slice(), unused)
            );
            assert_eq!(settled(Some(301), links, target, false, false), row(Some(301), "links", &[], unused));
        }
        for status in [-9998, -1, 0, 1, 100, 199, 1000, i64::MAX] {
            assert_eq!(settled(Some(status), both, None, true, true), None);
        }
    }
}
