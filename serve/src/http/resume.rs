//! Resume keys: where an answer that did not say everything goes on.
//!
//! A key is text of digits and points: the epoch, the UID to go on at, how many of its values were given, and the fingerprint of
//! the question; of a random sample also its seed. Since epochs do not change, what follows a key is exactly what was left out, however often it is asked; a key
//! of an epoch that is no longer answered fails as the epoch does, and one of another question is refused.

use tonic::Status;

use super::params::Params;
use crate::status::bad;

/// A place in a question's values, which stand in order of UIDs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    /// Those of lower UIDs were given,
    pub(super) uid: u64,
    /// and so many of this one.
    pub(super) given: usize,
}

/// What a question is about, but for what it asks: its epoch (0: the current one), and where to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Start {
    pub(super) epoch: u64,
    /// The beginning, where there is no key.
    pub(super) place: Option<Place>,
    /// The seed of a random sample that goes on.
    pub(super) seed: Option<u64>,
    fingerprint: u64,
}

impl Start {
    /// From `epoch` and `resumeKey` of a path.
    pub(super) fn of(path: &str, params: &Params) -> Result<Self, Status> {
        let fingerprint = params.fingerprint(path);
        let epoch = params.number("epoch", 1..=u64::MAX)?;
        let Some(key) = params.get("resumeKey")? else {
            return Ok(Self { epoch: epoch.unwrap_or(0), place: None, seed: None, fingerprint });
        };
        let (of_key, place, question, seed) =
            read(key).ok_or_else(|| bad("resumeKey: it is not one that an answer gave"))?;
        if question != fingerprint {
            return Err(bad(
                "resumeKey: it was given for another question; all parameters but limit must be as they were",
            ));
        }
        match epoch {
            Some(epoch) if epoch != of_key => {
                Err(bad(format!("epoch: it is {epoch}, and that of resumeKey is {of_key}; leave one of them out")))
            }
            _ => Ok(Self { epoch: of_key, place: Some(place), seed, fingerprint }),
        }
    }

    /// The key of a place.
    pub(super) fn key(&self, epoch: u64, place: Place) -> String {
        let seed = self.seed.map_or(String::new(), |seed| format!(".{seed}"));
        format!("{epoch}.{}.{}.{:016x}{seed}", place.uid, place.given, self.fingerprint)
    }
}

fn read(key: &str) -> Option<(u64, Place, u64, Option<u64>)> {
    let mut parts = key.split('.');
    let mut next = || parts.next();
    let epoch = next()?.parse().ok().filter(|&epoch| epoch > 0)?;
    let place = Place { uid: next()?.parse().ok()?, given: next()?.parse().ok()? };
    let question = u64::from_str_radix(next()?, 16).ok()?;
    let seed = next().map(|seed| seed.parse().ok());
    // A seed that is there is a number.
    (next().is_none() && seed != Some(None)).then_some((epoch, place, question, seed.flatten()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::Reason;
    use proptest::prelude::*;

    const KNOWN: &[&str] = &["url", "limit", "epoch", "resumeKey"];

    fn start(query: &str) -> Result<Start, Status> {
        Start::of("/v1/links", &Params::of(Some(query), KNOWN, &[])?)
    }

    #[test]
    fn keys_are_of_one_question_and_one_epoch() {
        let place = Place { uid: 17, given: 3 };
        let key = start("url=a&limit=1").unwrap().key(7, place);
        let again = start(&format!("url=a&limit=2&resumeKey={key}")).unwrap();
        assert_eq!((again.epoch, again.place), (7, Some(place)));
        assert_eq!(start(&format!("url=a&epoch=7&resumeKey={key}")).unwrap(), again);
        for other in [format!("url=b&resumeKey={key}"), format!("url=a&epoch=8&resumeKey={key}")] {
            assert_eq!(Reason::of(&start(&other).unwrap_err()), Some(Reason::BadRequest), "{other}");
        }
        for key in ["", "7", "0.1.1.0", "7.1.1", "7.1.1.x", "7.1.1.0.x", "7.1.1.0.0.0", "7.-1.1.0", "x"] {
            let status = start(&format!("url=a&resumeKey={key}")).unwrap_err();
            assert!(status.message().starts_with("resumeKey: "), "{key}: {status}");
        }
    }

    proptest! {
        #[test]
        fn places_come_back(epoch in 1..=u64::MAX, uid: u64, given: usize, seed: Option<u64>) {
            let place = Place { uid, given };
            let key = Start { seed, ..start("url=a").unwrap() }.key(epoch, place);
            let again = start(&format!("resumeKey={key}&url=a")).unwrap();
            prop_assert_eq!((again.epoch, again.place, again.seed), (epoch, Some(place), seed));
        }

        #[test]
        fn no_key_panics(key in "[0-9a-f.]{0,30}") {
            let _ = read(&key);
        }
    }
}
