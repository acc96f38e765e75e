//! Repeats requests until they are answered.
//!
//! The library itself repeats a request after answers 408, 429 and 5xx, and if there is no connection. Here it is
//! repeated after all other failures that may pass: a body that breaks off, a wrong range, a connection that is reset.

use std::error::Error as _;
use std::io::{self, ErrorKind};
use std::iter;
use std::time::{Duration, Instant};

use object_store::Error as StoreError;

use crate::{Address, Failure};

/// The time until a request that always fails is given up.
const PATIENCE: Duration = Duration::from_secs(180);
/// The first pause before a request is repeated. Each further pause is twice as long.
const PAUSE: Duration = Duration::from_millis(200);

/// Why a request has no usable answer, and whether another attempt may have one.
pub(crate) enum Unanswered {
    ForGood(io::Error),
    ForNow(io::Error),
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

/// Repeats a request until it is answered, or the patience ends.
pub(crate) async fn patiently<T, F: Future<Output = Result<T, Unanswered>>>(request: impl Fn() -> F) -> io::Result<T> {
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
/// repeated both as often as it makes sense. Only the text tells the status.
fn is_lasting(error: &StoreError) -> bool {
    let text = error.to_string();
    let has = |status: &str| text.contains(&format!("status code: {status}"));
    let is_refused = has("4") && !["408", "425", "429"].into_iter().any(has);
    is_refused || causes(error).any(|cause| cause.to_string().contains("(Connect)"))
}
