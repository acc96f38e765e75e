//! Repeats requests until they are answered.
//!
//! The library itself repeats a request after answers 408, 429 and 5xx, and if there is no connection. Here it is
//! repeated after all other failures that may pass: a body that breaks off, a wrong range, a connection that is reset.

use std::error::Error as _;
use std::io::{self, ErrorKind};
use std::iter;
use std::ops::Range;
use std::time::{Duration, Instant};

use bytes::Bytes;
use object_store::path::Path as Key;
use object_store::{Error as StoreError, ObjectStore, ObjectStoreExt};

use crate::{Address, Failure};

/// The time until a request that always fails is given up.
const PATIENCE: Duration = Duration::from_secs(180);
/// The first pause before a request is repeated. Each further pause is twice as long.
const PAUSE: Duration = Duration::from_millis(200);

/// Why a request has no usable answer, and whether another attempt may have one.
pub(crate) enum Unanswered<E = io::Error> {
    ForGood(E),
    ForNow(E),
}

impl Unanswered {
    /// Turns an error of the library into a failure with an advice.
    pub(crate) fn of(error: &StoreError, address: &Address) -> Self {
        let help = address.bucket_and_key().map_or("", |_| {
            "; AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY give a name, AWS_SKIP_SIGNATURE=true asks for a public file"
        });
        let (kind, text) = match error {
            StoreError::NotFound { .. } => (ErrorKind::NotFound, "no such file".to_owned()),
            StoreError::PermissionDenied { .. } => {
                (ErrorKind::PermissionDenied, format!("the server forbids to read it (403){help}"))
            }
            StoreError::Unauthenticated { .. } => {
                (ErrorKind::PermissionDenied, format!("the server wants to know who reads it (401){help}"))
            }
            other => {
                let failure = Failure::error(ErrorKind::Other, address.without_secrets(&reason(other)));
                return if is_lasting(other) { Self::ForGood(failure) } else { Self::ForNow(failure) };
            }
        };
        Self::ForGood(Failure::error(kind, text))
    }
}

/// The bytes of a range inside an object, in one request that is repeated until it is answered.
///
/// # Errors
/// The server refuses the request, or cannot be reached for minutes.
pub async fn fetch(objects: &dyn ObjectStore, key: &Key, range: Range<u64>) -> Result<Bytes, StoreError> {
    let wanted = range.end - range.start;
    patiently(|| async {
        match objects.get_range(key, range.clone()).await {
            Ok(bytes) if bytes.len() as u64 == wanted => Ok(bytes),
            Ok(bytes) => {
                let text = format!("the server sent {} bytes instead of {wanted}", bytes.len());
                Err(Unanswered::ForNow(StoreError::Generic { store: "S3", source: text.into() }))
            }
            Err(error) if is_lasting(&error) => Err(Unanswered::ForGood(error)),
            Err(error) => Err(Unanswered::ForNow(error)),
        }
    })
    .await
}

/// Repeats a request until it is answered, or the patience ends.
pub(crate) async fn patiently<T, E, F: Future<Output = Result<T, Unanswered<E>>>>(
    request: impl Fn() -> F,
) -> Result<T, E> {
    let (begun, mut pause) = (Instant::now(), PAUSE);
    loop {
        match request().await {
            Ok(answer) => return Ok(answer),
            Err(Unanswered::ForNow(_)) if begun.elapsed() + pause < PATIENCE => {
                tokio::time::sleep(pause).await;
                pause *= 2;
            }
            Err(Unanswered::ForNow(error) | Unanswered::ForGood(error)) => return Err(error),
        }
    }
}

/// The last cause of an error, which people understand.
fn reason(error: &StoreError) -> String {
    causes(error).last().map_or_else(|| error.to_string(), ToString::to_string)
}

fn causes(error: &StoreError) -> impl Iterator<Item = &(dyn std::error::Error + 'static)> {
    iter::successors(error.source(), |&cause| cause.source())
}

/// Whether another attempt has no chance: the server refuses the request (4xx), or cannot be reached. The library has
/// repeated both as often as it makes sense. Some refusals have names; of the others, only the text tells the status.
fn is_lasting(error: &StoreError) -> bool {
    use StoreError::{NotFound, NotModified, PermissionDenied, Precondition, Unauthenticated};
    let is_named = matches!(
        error,
        NotFound { .. } | NotModified { .. } | PermissionDenied { .. } | Precondition { .. } | Unauthenticated { .. }
    );
    let text = error.to_string();
    let has = |status: &str| text.contains(&format!("status code: {status}"));
    let is_refused = has("4") && !["408", "425", "429"].into_iter().any(has);
    is_named || is_refused || causes(error).any(|cause| cause.to_string().contains("(Connect)"))
}
