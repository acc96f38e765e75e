//! The renewal of certificates: finds certificates that expire, and files that have changed.
//!
//! Promises: a certificate that expires soon, or has expired, is logged with the name of its file when that begins, and
//! once a day after that. A changed file is read again when two looks in succession have found it the same, so that a
//! file that is being written is not read.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use webstrata_layers::format_time;

use super::tls::Validity;
use super::{Security, SecurityError, SecurityOptions};

/// The time between two looks at the files.
pub const LOOK: Duration = Duration::from_secs(2);
/// How long before its expiry a certificate is announced, in seconds: at most `SOON_MAX`, or one `SOON_PART`-th of its
/// whole validity if that is shorter.
const SOON_MAX: u64 = 14 * 86_400;
const SOON_PART: u64 = 4;
/// How often a certificate is announced again.
const AGAIN: Duration = Duration::from_secs(86_400);

/// When the certificates of a file are valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expiry {
    /// The file.
    pub path: PathBuf,
    /// The validity of the certificate in the file. For a server's own certificate with its chain, the certificate that
    /// expires first; for CA certificates, the one that expires last.
    pub(super) validity: Validity,
    /// Whether it is the certificate of the server itself.
    pub(super) is_own: bool,
}

/// Seconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

fn date(seconds: u64) -> String {
    format_time(i64::try_from(seconds).unwrap_or(i64::MAX))
}

impl Expiry {
    pub(super) fn own(path: &Path, pem: &str) -> Option<Self> {
        let validity = Validity::of_all(pem).into_iter().min_by_key(|validity| validity.last)?;
        Some(Self { path: path.to_owned(), validity, is_own: true })
    }

    pub(super) fn of_signers(path: &Path, pem: &str) -> Option<Self> {
        let validity = Validity::of_all(pem).into_iter().max_by_key(|validity| validity.last)?;
        Some(Self { path: path.to_owned(), validity, is_own: false })
    }

    /// The last valid second, since 1970.
    #[must_use]
    pub fn last(&self) -> u64 {
        self.validity.last
    }

    /// Why a server cannot serve with the file; `None` if it can.
    pub(super) fn obstacle(&self) -> Option<String> {
        let is_over = self.is_own && now() > self.validity.last;
        is_over.then(|| {
            let (path, last) = (self.path.display(), date(self.validity.last));
            format!("{path}: the certificate of this server expired at {last}: renew it, and others can call it again")
        })
    }

    fn stage(&self, now: u64) -> Stage {
        let Validity { first, last } = self.validity;
        let soon = SOON_MAX.min(last.saturating_sub(first) / SOON_PART);
        match last {
            _ if now > last => Stage::Over,
            _ if last - now < soon => Stage::Soon,
            _ => Stage::Sound,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Sound,
    Soon,
    Over,
}

/// The time of the last change and the size of each file, to notice changes; `None` for a file that cannot be read.
type Print = Vec<Option<(SystemTime, u64)>>;

/// Watches the files of a server.
pub struct Renewal {
    security: Security,
    options: SecurityOptions,
    /// The files as they were read last, and as they were at the last look.
    read: Print,
    seen: Print,
    /// The last failure, so that it is reported once.
    failure: Option<String>,
    announced: BTreeMap<PathBuf, (Stage, u64, Instant)>,
}

impl Renewal {
    /// Watches the files that a [`Security`] was opened with.
    #[must_use]
    pub fn of(security: Security, options: SecurityOptions) -> Self {
        let read = print(&options);
        Self { security, options, seen: read.clone(), read, failure: None, announced: BTreeMap::new() }
    }

    /// Reads all files again.
    ///
    /// # Errors
    /// As [`Security::reload`].
    pub fn read(&mut self) -> Result<(), SecurityError> {
        let found = print(&self.options);
        self.seen.clone_from(&found);
        self.security.reload(&self.options)?;
        (self.read, self.failure) = (found, None);
        Ok(())
    }

    /// Looks at the files: announces certificates that expire, and reads the certificates again if a file has changed.
    /// Returns the outcome of the read. A repeated failure is returned only once.
    pub fn look(&mut self) -> Option<Result<(), SecurityError>> {
        let found = print(&self.options);
        let is_steady = found == self.seen;
        self.seen.clone_from(&found);
        let outcome = (is_steady && found != self.read).then(|| self.read());
        self.announce(now());
        match outcome? {
            Ok(()) => Some(Ok(())),
            Err(error) => {
                let is_new = self.failure.replace(error.to_string()).is_none_or(|known| known != error.to_string());
                is_new.then_some(Err(error))
            }
        }
    }

    fn announce(&mut self, now: u64) {
        for expiry in self.security.expiries().iter() {
            let (stage, last) = (expiry.stage(now), expiry.validity.last);
            let before = self.announced.get(&expiry.path);
            if before.is_some_and(|(known, of, at)| (*known, *of) == (stage, last) && at.elapsed() < AGAIN) {
                continue;
            }
            self.announced.insert(expiry.path.clone(), (stage, last, Instant::now()));
            let (file, what) = (expiry.path.display(), if expiry.is_own { "certificate" } else { "CA certificate" });
            match (stage, date(last)) {
                (Stage::Sound, _) => {}
                (Stage::Soon, last) => {
                    tracing::warn!("{file}: the {what} expires at {last}: renew the file, and the server reads it");
                }
                (Stage::Over, last) => {
                    tracing::error!("{file}: the {what} expired at {last}: renew the file, and the server reads it");
                }
            }
        }
    }
}

/// The state of the files of certificates and keys. The token file is read again separately.
fn print(options: &SecurityOptions) -> Print {
    let files = [&options.cert, &options.key, &options.client_ca, &options.server_ca];
    let of = |path: &PathBuf| path.metadata().and_then(|data| Ok((data.modified()?, data.len()))).ok();
    files.into_iter().flatten().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_expires_is_announced_in_time() {
        let of = |first, last| Expiry { path: PathBuf::new(), validity: Validity { first, last }, is_own: true };
        // The short certificate is announced a quarter of its 30 seconds before its end, the long one two weeks before.
        let (short, long) = (of(100, 130), of(0, 365 * 86_400));
        let stages = [123, 124, 130, 131].map(|now| short.stage(now));
        assert_eq!(stages, [Stage::Sound, Stage::Soon, Stage::Soon, Stage::Over]);
        let day = |day: u64| long.stage(day * 86_400);
        assert_eq!([351, 352, 365].map(day), [Stage::Sound, Stage::Soon, Stage::Soon]);
        assert!(of(0, 10).obstacle().expect("it is over").contains("1970-01-01T00:00:10Z"));
        assert!(Expiry { is_own: false, ..of(0, 10) }.obstacle().is_none(), "a CA may be out of use");
        assert!(of(0, 253_402_300_799).obstacle().is_none());
    }
}
