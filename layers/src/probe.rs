//! The body of a fuzz target, which tests call too: bytes of strangers as a manifest.

use crate::Manifest;

/// Reads bytes as a manifest, and asks a sound one everything. Returns whether the manifest is sound.
///
/// Panics if a manifest that is written and read again is another one.
pub fn manifest(bytes: &[u8]) -> bool {
    let Ok(manifest) = serde_json::from_slice::<Manifest>(bytes) else { return false };
    if manifest.flaw().is_some() {
        return false;
    }
    let again = serde_json::to_vec(&manifest).and_then(|bytes| serde_json::from_slice::<Manifest>(&bytes));
    assert_eq!(again.ok().as_ref(), Some(&manifest), "a manifest that was written and read again");
    let removals = manifest.removals();
    let _ = (removals.of(b"org,example,)/\x01"), removals.of_host("example.org"));
    let _ = (manifest.counts_are_exact(), manifest.has_retired(manifest.epoch), manifest.past(1), manifest.origin());
    let _ = (manifest.lineage().len(), manifest.urls(), manifest.files().count(), manifest.translations().count());
    for row in &manifest.rows {
        let _ = (row.digest(), row.end_uid(), row.counts.has_unknown());
        for (partition, entry) in row.partitions.iter().enumerate() {
            let _ = (row.records(partition), entry.first_key_bytes());
        }
    }
    true
}
