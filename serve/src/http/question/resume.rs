//! `resume_key`: the position where the next page of an HTTP answer begins, and the seed of a random sample.
//! [`crate::protocol::resume`] defines the content of a key, and when a key is refused.

use tonic::Status;
use webstrata_layers::{Place, Uid};

use super::params::Params;
use crate::protocol::resume::{Fingerprint, resumed, token};

/// A position among the values of an answer, which are in order of UIDs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::http) struct PagePosition {
    /// All values of lower UIDs have been sent.
    pub(in crate::http) uid: Uid,
    /// The number of values of this UID that have been sent.
    pub(in crate::http) sent: usize,
}

/// Where an answer begins: the epoch (0: the current epoch) and the position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::http) struct Start {
    pub(in crate::http) epoch: u64,
    /// The position; `None` without a key: the beginning.
    pub(in crate::http) position: Option<PagePosition>,
    /// The seed of a random sample that continues.
    pub(in crate::http) seed: Option<u64>,
    question: Fingerprint,
}

impl Start {
    /// Reads `epoch` and `resume_key`, which `/cdx` calls `resumeKey` like other CDX servers.
    pub(in crate::http) fn of(store: &str, path: &str, params: &Params) -> Result<Self, Status> {
        let question = params.fingerprint(path).of_store(store);
        let epoch = params.epoch()?;
        let name = if params.knows("resumeKey") { "resumeKey" } else { "resume_key" };
        let Some(key) = params.get(name)? else {
            return Ok(Self { epoch, position: None, seed: None, question });
        };
        let (epoch, [uid, sent, seed]) = resumed(name, key, question, epoch)?;
        let position = PagePosition { uid: Uid(uid), sent: usize::try_from(sent).unwrap_or(usize::MAX) };
        Ok(Self { epoch, position: Some(position), seed: Some(seed), question })
    }

    /// The place of the last row, for an answer with an order other than UIDs; `None` at the beginning.
    pub(in crate::http) fn place(&self) -> Option<Place> {
        let PagePosition { uid, sent } = self.position?;
        Some(Place([uid.0, sent as u64, self.seed?]))
    }

    /// The key for the rows after a place.
    pub(in crate::http) fn key_after(&self, epoch: u64, Place(place): Place) -> String {
        token(epoch, place, self.question)
    }

    /// The first UID of the answer.
    pub(in crate::http) fn first_uid(&self) -> Uid {
        self.position.unwrap_or_default().uid
    }

    /// The key for a position.
    pub(in crate::http) fn key(&self, epoch: u64, position: PagePosition) -> String {
        token(epoch, [position.uid.0, position.sent as u64, self.seed.unwrap_or(0)], self.question)
    }
}

#[cfg(test)]
mod tests {
    use super::super::parameter::Parameter;
    use super::super::parameters::{EPOCH, LIMIT, RESUME_KEY, URL};
    use super::*;
    use crate::protocol::status::Reason;

    const KNOWN: &[Parameter] = &[URL, LIMIT, EPOCH, RESUME_KEY];

    fn start(query: &str) -> Result<Start, Status> {
        Start::of("a store", "/v1/links", &Params::of(Some(query), KNOWN)?)
    }

    #[test]
    fn keys_are_of_one_question_and_one_epoch() {
        let position = PagePosition { uid: Uid(17), sent: 3 };
        let key = start("url=a&limit=1").unwrap().key(7, position);
        let again = start(&format!("url=a&limit=2&resume_key={key}")).unwrap();
        assert_eq!((again.epoch, again.position), (7, Some(position)));
        assert_eq!(start(&format!("url=a&epoch=7&resume_key={key}")).unwrap(), again);
        for other in [format!("url=b&resume_key={key}"), format!("url=a&epoch=8&resume_key={key}")] {
            assert_eq!(Reason::of(&start(&other).unwrap_err()), Some(Reason::BadRequest), "{other}");
        }
        let status = start("url=a&resume_key=x").unwrap_err();
        assert!(status.message().starts_with("resume_key: "), "{status}");
    }
}
