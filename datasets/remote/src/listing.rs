//! The objects of a bucket below a prefix, or those that a pattern matches.

use std::io::{self, ErrorKind};

use futures_util::TryStreamExt;
use glob::{MatchOptions, Pattern};
use object_store::path::Path as Key;
use object_store::{Error as StoreError, ObjectStoreExt};

use crate::patience::{Unanswered, patiently};
use crate::{Address, Failure, bucket, runtime};

/// The letters that begin a pattern.
const WILD: [char; 3] = ['*', '?', '['];
/// A `*` stays in one name, as on this machine. Hidden names are only matched by patterns that write the point.
const MATCHING: MatchOptions =
    MatchOptions { case_sensitive: true, require_literal_separator: true, require_literal_leading_dot: true };

/// The addresses of the objects that an address means, sorted. A prefix that ends with `/` and a whole bucket mean all
/// objects below, except those with a name that begins with a point. A pattern means all objects that match. `None` if
/// the address means one object, as does a pattern that is the name of an object.
///
/// # Errors
/// The server gives no list; the pattern cannot be parsed.
pub fn list(address: &Address) -> io::Result<Option<Vec<Address>>> {
    let Some((name, key)) = address.bucket_and_key() else { return Ok(None) };
    let invalid = |why: String| Failure::error(ErrorKind::InvalidInput, why);
    let is_below = key.is_empty() || key.ends_with('/');
    let pattern = if is_below || !key.contains(WILD) {
        None
    } else {
        Some(Pattern::new(key).map_err(|error| invalid(error.to_string()))?)
    };
    if !is_below && pattern.is_none() {
        return Ok(None);
    }
    let fixed = key.find(WILD).filter(|_| pattern.is_some()).map_or(key, |at| &key[..at]);
    let folder = &fixed[..fixed.rfind('/').unwrap_or(0)];
    let prefix = Key::parse(folder).map_err(|error| invalid(error.to_string()))?;
    let is_wanted = |key: &str, below: usize| match &pattern {
        Some(pattern) => pattern.matches_with(key, MATCHING),
        None => key[below..].split('/').all(|name| !name.starts_with('.')),
    };
    let server = bucket(name)?;
    // As on this machine, a name comes before a pattern.
    if let (Some(_), Ok(key)) = (&pattern, Key::parse(key)) {
        let is_there = || async {
            match server.head(&key).await {
                Err(StoreError::NotFound { .. }) => Ok(false),
                found => found.map(|_| true).map_err(|error| Unanswered::of(&error, address)),
            }
        };
        if runtime()?.block_on(patiently(is_there))? {
            return Ok(None);
        }
    }
    let keys: Vec<Key> = runtime()?.block_on(patiently(|| async {
        let objects = server.list((!folder.is_empty()).then_some(&prefix)).map_ok(|object| object.location);
        objects.try_collect().await.map_err(|error| Unanswered::of(&error, address))
    }))?;
    let mut found: Vec<String> = keys.iter().map(|key| key.as_ref().to_owned()).collect();
    found.retain(|key| is_wanted(key, folder.len()));
    found.sort_unstable();
    Ok(Some(found.iter().filter_map(|key| Address::of(&format!("s3://{name}/{key}"))).collect()))
}
