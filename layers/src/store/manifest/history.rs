//! The history in a manifest: for each earlier epoch, its number of URLs, and how its UIDs became UIDs of the next
//! epoch.
//!
//! Pure data, which each manifest copies from the manifest before. An epoch can therefore be told from any other, and
//! its UIDs can be translated, after its manifest is gone. The rows of a commit show what the commit does:
//!
//! - All rows of the epoch before are still there, in front: UIDs stay.
//! - A [`TranslationEntry`] comes with the commit: a merge replaced UIDs.
//! - Neither: the store was built from scratch, and UIDs have a new meaning.
//!
//! Invariants: epochs rise by one from 1, and the last is the epoch before the manifest's own.

use serde::{Deserialize, Serialize};

use crate::error::manifest::ManifestFlaw;
use crate::identity::{Digest, EpochId};
use crate::record::uid::Uid;
use crate::store::manifest::{Manifest, NewEpoch, is_plain};

/// The file that says how a merge replaced UIDs; see [`crate::Translation`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TranslationEntry {
    /// UIDs below this UID stay the same: the first UID of the merged rows.
    pub below: Uid,
    /// Path relative to the store, with `/`.
    pub path: String,
    /// The number of rows of the Parquet file.
    pub rows: u64,
    /// The size of the file in bytes.
    pub bytes: u64,
    /// XXH3-64 of the file, 16 hexadecimal digits.
    pub checksum: String,
}

/// An epoch before the manifest's own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastEpoch {
    /// The number of the epoch.
    pub epoch: u64,
    /// The digest of its manifest.
    pub digest: Digest,
    /// The number of its URLs.
    pub urls: u64,
    /// How its UIDs became UIDs of the next epoch; `None`, and not written, if UIDs stayed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub translation: Option<TranslationEntry>,
    /// Whether the next epoch was built from scratch, so that its UIDs are unrelated to these; not written if false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rebuilt: bool,
}

impl PastEpoch {
    /// The identity of the epoch.
    pub fn id(&self) -> EpochId {
        EpochId { epoch: self.epoch, digest: self.digest }
    }
}

/// The name of the translation of the merge that makes a row, in the store. Only the writer of the row has this name.
pub(crate) fn translation_name(row: u32) -> String {
    format!("{TRANSLATIONS}/{row:06}.parquet")
}

/// The row in the name of a translation, given without its directory; `None` for other names.
pub(crate) fn row_of_translation(name: &str) -> Option<u32> {
    let row = name.strip_suffix(".parquet")?.parse().ok()?;
    (translation_name(row) == format!("{TRANSLATIONS}/{name}")).then_some(row)
}

/// The directory of translations.
pub(crate) const TRANSLATIONS: &str = "translations";

/// The history of the epoch that follows the epoch `id` with the manifest `previous`.
pub(crate) fn history_after(
    previous: Option<(EpochId, Manifest)>,
    new: &NewEpoch,
) -> Result<Vec<PastEpoch>, ManifestFlaw> {
    let Some((EpochId { epoch, digest }, previous)) = previous else {
        return if new.translation.is_some() { Err(ManifestFlaw::History) } else { Ok(Vec::new()) };
    };
    let pairs = previous.rows.iter().zip(&new.rows);
    let kept: Vec<_> = pairs.take_while(|(old, new)| old.row == new.row).map(|(old, _)| old).collect();
    let kept_urls: u64 = kept.iter().map(|row| row.urls).sum();
    if let Some(entry) = &new.translation
        && (entry.below.0 > kept_urls
            || !new.rows[kept.len()..].iter().any(|row| entry.path == translation_name(row.row)))
    {
        return Err(ManifestFlaw::History);
    }
    let rebuilt = new.translation.is_none() && kept.len() < previous.rows.len();
    let urls = previous.urls();
    let mut history = previous.history;
    history.push(PastEpoch { epoch, digest, urls, translation: new.translation.clone(), rebuilt });
    Ok(history)
}

impl Manifest {
    /// The number of URLs of the epoch.
    pub fn urls(&self) -> u64 {
        self.rows.iter().map(|row| row.urls).sum()
    }

    /// The identity of an earlier epoch.
    pub fn past(&self, epoch: u64) -> Option<EpochId> {
        self.history.iter().find(|past| past.epoch == epoch).map(PastEpoch::id)
    }

    /// The earlier epochs whose UIDs can be translated: the epochs since the last build from scratch, oldest first.
    pub fn lineage(&self) -> &[PastEpoch] {
        let first = self.history.iter().rposition(|past| past.rebuilt).map_or(0, |at| at + 1);
        &self.history[first..]
    }

    /// The translations from epochs of the lineage to this epoch, oldest first.
    pub fn translations(&self) -> impl Iterator<Item = &TranslationEntry> {
        self.lineage().iter().filter_map(|past| past.translation.as_ref())
    }

    /// How the epoch follows from the epoch before.
    pub fn origin(&self) -> Origin {
        match self.history.last() {
            None | Some(PastEpoch { rebuilt: true, .. }) => Origin::Built,
            Some(PastEpoch { translation: Some(_), .. }) => Origin::Merged,
            Some(_) if self.rows.last().is_some_and(|row| row.removes) => Origin::Removed,
            Some(_) => Origin::Updated,
        }
    }

    pub(crate) fn history_sound(&self) -> Result<(), ManifestFlaw> {
        if self.epoch.checked_sub(1) != Some(self.history.len() as u64) {
            return Err(ManifestFlaw::History);
        }
        for (epoch, past) in (1..).zip(&self.history) {
            let below = past.translation.as_ref().map_or(Uid(0), |entry| entry.below);
            if past.epoch != epoch || below.0 > past.urls || past.rebuilt && past.translation.is_some() {
                return Err(ManifestFlaw::History);
            }
        }
        match self.translations().find(|entry| !is_plain(&entry.path)) {
            Some(entry) => Err(ManifestFlaw::Path(entry.path.clone())),
            None => Ok(()),
        }
    }
}

/// How an epoch follows from the epoch before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// Built from scratch: UIDs are unrelated to UIDs of earlier epochs.
    Built,
    /// Rows were added, and UIDs stayed.
    Updated,
    /// A row was added that takes something out, and UIDs stayed.
    Removed,
    /// Rows were merged, and UIDs were replaced.
    Merged,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::page::counts::Counts;
    use crate::record::time::RangeLength;
    use crate::store::manifest::{Provenance, RowEntry};

    fn epoch(rows: &[(u32, u64)], translation: Option<TranslationEntry>) -> NewEpoch {
        let mut first_uid = 0;
        let mut row = |&(row, urls): &(u32, u64)| {
            first_uid += urls;
            RowEntry {
                row,
                first_uid: Uid(first_uid - urls),
                urls,
                updates: 1,
                removes: false,
                displaces: false,
                elsewhere: 0,
                partitions: vec![],
                counts: Counts::default(),
            }
        };
        let rows = rows.iter().map(&mut row).collect();
        NewEpoch { rows, in_range: RangeLength::Month, provenance: Provenance::default(), translation }
    }

    fn entry(below: Uid, row: u32) -> Option<TranslationEntry> {
        let path = translation_name(row);
        Some(TranslationEntry { below, path, rows: 0, bytes: 0, checksum: String::new() })
    }

    #[test]
    fn rows_tell_what_a_commit_does() {
        let mut current: Option<(EpochId, Manifest)> = None;
        let mut commit = |rows: &[(u32, u64)], translation: Option<TranslationEntry>| {
            let new = epoch(rows, translation);
            let history = history_after(current.clone(), &new)?;
            let epoch = current.as_ref().map_or(1, |(id, _)| id.epoch + 1);
            let manifest = Manifest::new(epoch, new, history);
            manifest.history_sound()?;
            let shown = manifest.lineage().iter().map(|past| (past.epoch, past.urls)).collect::<Vec<_>>();
            let origin = manifest.origin();
            let digest = Digest::of(&epoch.to_be_bytes());
            assert!(
                (1..epoch).all(|past| manifest.past(past).map(|id| id.digest) == Some(Digest::of(&past.to_be_bytes())))
            );
            current = Some((EpochId { epoch, digest }, manifest));
            Ok((origin, shown))
        };
        assert_eq!(commit(&[(1, 5)], entry(Uid(0), 1)), Err(ManifestFlaw::History));
        assert_eq!(commit(&[(1, 5)], None), Ok((Origin::Built, vec![])));
        assert_eq!(commit(&[(1, 5), (2, 0)], None), Ok((Origin::Updated, vec![(1, 5)])));
        assert_eq!(commit(&[(1, 5), (2, 0), (3, 4)], None), Ok((Origin::Updated, vec![(1, 5), (2, 5)])));
        for wrong in [entry(Uid(6), 4), entry(Uid(5), 1), entry(Uid(5), 5)] {
            assert_eq!(commit(&[(1, 5), (4, 4)], wrong), Err(ManifestFlaw::History));
        }
        let history = vec![(1, 5), (2, 5), (3, 9)];
        assert_eq!(commit(&[(1, 5), (4, 4)], entry(Uid(5), 4)), Ok((Origin::Merged, history)));
        assert_eq!(commit(&[(5, 9)], None), Ok((Origin::Built, vec![])), "no translation came with it");
        assert_eq!(commit(&[(5, 9), (6, 1)], None), Ok((Origin::Updated, vec![(5, 9)])));
    }

    #[test]
    fn histories_that_lie_are_found() {
        let new = epoch(&[(1, 5)], None);
        let flaw = |history: Vec<PastEpoch>| Manifest::new(3, new.clone(), history).history_sound();
        let digest = Digest::of(b"");
        let past = |epoch, translation| PastEpoch { epoch, digest, urls: 5, translation, rebuilt: false };
        assert_eq!(flaw(vec![past(1, entry(Uid(5), 1)), past(2, None)]), Ok(()));
        assert_eq!(flaw(vec![past(2, None)]), Err(ManifestFlaw::History));
        let both = PastEpoch { rebuilt: true, ..past(2, entry(Uid(5), 2)) };
        assert_eq!(flaw(vec![past(1, None), both]), Err(ManifestFlaw::History));
        assert_eq!(flaw(vec![past(1, None)]), Err(ManifestFlaw::History));
        assert_eq!(flaw(vec![past(2, None), past(1, None)]), Err(ManifestFlaw::History));
        assert_eq!(flaw(vec![past(1, None), past(2, entry(Uid(6), 2))]), Err(ManifestFlaw::History));
        assert_eq!(flaw((0..4).map(|epoch| past(epoch, None)).collect()), Err(ManifestFlaw::History));
        let mut outside = past(2, entry(Uid(0), 2));
        outside.translation.iter_mut().for_each(|entry| entry.path.insert_str(0, "../"));
        assert!(matches!(flaw(vec![past(1, None), outside]), Err(ManifestFlaw::Path(_))));
    }
}
