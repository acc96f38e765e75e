//! Failures to read, apart from damage in the bytes that were read.

use std::io::{self, ErrorKind};
use std::sync::Arc;

/// Why a server gave no answer that can be used. Always inside of an [`io::Error`].
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct Failure(Arc<str>);

impl Failure {
    /// An error of reading or writing, with a description.
    pub(crate) fn error(kind: ErrorKind, text: String) -> io::Error {
        io::Error::new(kind, Failure(text.into()))
    }
}

/// Whether an error comes from the operating system or from a server, and not from the bytes that were read. Readers
/// report such an error; everything else is damage, which they count.
pub fn is_failure(error: &io::Error) -> bool {
    error.raw_os_error().is_some() || error.get_ref().is_some_and(|inner| inner.is::<Failure>())
}

/// Makes an error again that is a failure ([`is_failure`]); `None` for other errors.
pub fn again(error: &io::Error) -> Option<io::Error> {
    if let Some(code) = error.raw_os_error() {
        return Some(io::Error::from_raw_os_error(code));
    }
    let failure = error.get_ref()?.downcast_ref::<Failure>()?;
    Some(io::Error::new(error.kind(), failure.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_not_damage() {
        let failure = Failure::error(ErrorKind::TimedOut, "the server is silent".to_owned());
        assert!(is_failure(&failure) && is_failure(&io::Error::from_raw_os_error(5)));
        let copy = again(&failure).unwrap();
        assert_eq!((copy.kind(), copy.to_string()), (ErrorKind::TimedOut, "the server is silent".to_owned()));
        assert!(is_failure(&copy));
        assert_eq!(again(&io::Error::from_raw_os_error(5)).unwrap().raw_os_error(), Some(5));
        let damage = io::Error::new(ErrorKind::InvalidData, "no gzip");
        assert!(!is_failure(&damage) && again(&damage).is_none());
    }
}
