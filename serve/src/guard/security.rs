//! Security: certificates of a server and its peers, and bearer tokens of callers.
//!
//! PEM files are read at the start, on reload, and when they have changed ([`renewal`]). Handshakes of the listening
//! side ([`tls`]) and of calls to peers ([`outgoing`]) use what was read last. The token file is read again at most
//! once a second while calls come. Promises: an unusable file and a certificate that is not valid today are refused at
//! the start, with the path of the file. A reload that fails changes nothing. If the token file becomes unreadable,
//! the earlier tokens stay valid. The time of a token comparison depends only on the lengths. No token is ever logged.
//! A server calls its peers with the same certificate and with its first token.
//!
//! A token file has one token a line. Empty lines and lines that begin with `#` are ignored. All tokens are valid. To
//! replace a token, put the new token second on all servers, then first on all servers, then remove the old token.
//! Costs of a call: a look-up and a comparison with each token. Memory: the files.

pub mod outgoing;
pub mod renewal;
pub mod tls;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use arc_swap::ArcSwap;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use subtle::{Choice, ConstantTimeEq};
use tonic::metadata::{Ascii, MetadataValue};
use webstrata_layers::format_time;
use xxhash_rust::xxh3::xxh3_64;

use crate::guard::connections::origin::TokenHash;
use crate::guard::methods::Methods;
use crate::guard::security::outgoing::ClientTls;
use crate::guard::security::renewal::Expiry;
use crate::guard::security::tls::{ServerTls, Validity, Why};
use crate::protocol::refusal::{answer, is_grpc};
use crate::protocol::status::{Reason, refuse};

/// How old the known contents of the token file may be.
const TOKENS_AGE_MAX: Duration = Duration::from_secs(1);
/// The largest file that is read here, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The security files of a server or a clerk. Without any, connections are plain text and everybody may call.
#[derive(Clone, Debug, Default)]
pub struct SecurityOptions {
    /// The certificate with its chain, in PEM. A server with a certificate accepts only TLS.
    pub cert: Option<PathBuf>,
    /// The private key of the certificate, in PEM.
    pub key: Option<PathBuf>,
    /// The CA of the callers' certificates, in PEM. If set, callers without a certificate of this CA are refused.
    pub client_ca: Option<PathBuf>,
    /// The CA of the servers' certificates, in PEM. If set, servers are called over TLS.
    pub server_ca: Option<PathBuf>,
    /// The token file. If set, callers without a token are refused.
    pub tokens: Option<PathBuf>,
}

/// An error in the options, or in a file of certificates, keys or tokens.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SecurityError {
    /// A file cannot be read.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// An option needs another option.
    #[error("{given} needs {lacks}")]
    Lacks {
        /// The given option.
        given: &'static str,
        /// The missing option.
        lacks: &'static str,
    },
    /// The certificate is not valid today.
    #[error(
        "{path}: the certificate is valid from {first} to {last}, and it is {now}: renew it, or set the clock",
        path = path.display(), first = format_time(*first), last = format_time(*last), now = format_time(*now)
    )]
    Expired {
        /// The file.
        path: PathBuf,
        /// The first valid second, since 1970.
        first: i64,
        /// The last valid second, since 1970.
        last: i64,
        /// The time of this machine, in seconds since 1970.
        now: i64,
    },
    /// A file does not hold the expected kind of PEM block.
    #[error(
        "{path} holds no {what} in PEM (expected a line \"-----BEGIN ... {what}-----\")",
        path = path.display()
    )]
    Pem {
        /// The file.
        path: PathBuf,
        /// The expected kind.
        what: &'static str,
    },
    /// The contents of a file cannot be used for TLS.
    #[error("{path}: cannot be used for TLS", path = path.display())]
    Tls {
        /// The file.
        path: PathBuf,
        /// Why.
        source: Why,
    },
    /// The key does not belong to the certificate, or one of them is damaged.
    #[error(
        "{cert} and {key} do not match: the key must belong to the first certificate",
        cert = cert.display(), key = key.display()
    )]
    Identity {
        /// The file of the certificate.
        cert: PathBuf,
        /// The file of the key.
        key: PathBuf,
        /// Why.
        source: Why,
    },
    /// A line of the token file is not a token.
    #[error(
        "{path}, line {line}: not a token (expected letters, digits and -._~+/, with = only at the end, or a \
         comment after #)",
        path = path.display()
    )]
    Token {
        /// The file.
        path: PathBuf,
        /// The number of the line, from 1.
        line: usize,
    },
    /// The token file has no token.
    #[error("{path} has no token, so every call would be refused: write one a line", path = path.display())]
    NoToken {
        /// The file.
        path: PathBuf,
    },
}

/// Checked certificates and tokens. The default is plain text, without tokens. Clones share everything, so that a
/// reload reaches the listening side and all calls.
#[derive(Clone, Default)]
pub struct Security {
    server: Option<ServerTls>,
    client: Option<ClientTls>,
    tokens: Tokens,
    expiries: Arc<ArcSwap<Vec<Expiry>>>,
}

impl Security {
    /// Reads all files, and logs a warning for each secret that other users can read.
    ///
    /// # Errors
    /// A file that cannot be read or has the wrong contents, and an option that needs another option.
    pub fn open(options: &SecurityOptions) -> Result<Self, SecurityError> {
        let lacks = |given, lacks| Err(SecurityError::Lacks { given, lacks });
        match (&options.cert, &options.key) {
            (Some(_), None) => return lacks("--tls-cert", "--tls-key (the private key of the certificate)"),
            (None, Some(_)) => return lacks("--tls-key", "--tls-cert (the certificate of the key)"),
            (None, _) if options.client_ca.is_some() => {
                return lacks("--tls-client-ca", "--tls-cert and --tls-key (the server's own certificate)");
            }
            _ => {}
        }
        let identity = match (&options.cert, &options.key) {
            (Some(cert), Some(key)) => Some(Pair::open(cert, key)?),
            _ => None,
        };
        let mut expiries = Vec::new();
        let mut server = identity.as_ref().map(|pair| pair.tls.clone());
        if let (Some(pair), Some(path)) = (&identity, &options.cert) {
            expiries.extend(Expiry::own(path, &pair.cert));
        }
        if let (Some(Pair { cert, key, .. }), Some(path)) = (&identity, &options.client_ca) {
            let ca = pem(path, "CERTIFICATE")?;
            let tls = ServerTls::of(cert, key, Some(&ca));
            server = Some(tls.map_err(|source| SecurityError::Tls { path: path.clone(), source })?);
            expiries.extend(Expiry::of_signers(path, &ca));
        }
        let client = match &options.server_ca {
            None => None,
            Some(path) => {
                let ca = pem(path, "CERTIFICATE")?;
                let tls = ClientTls::of(&ca, identity.as_ref().map(|pair| (&*pair.cert, &*pair.key)));
                expiries.extend(Expiry::of_signers(path, &ca).filter(|_| options.client_ca.as_ref() != Some(path)));
                Some(tls.map_err(|source| SecurityError::Tls { path: path.clone(), source })?)
            }
        };
        if options.tokens.is_some() && client.is_none() && server.is_none() {
            tracing::warn!(
                "tokens travel in plain text: use --tls-cert and --tls-key unless you trust the whole network"
            );
        }
        let tokens = options.tokens.as_deref().map(TokenFile::open).transpose()?;
        let expiries = Arc::new(ArcSwap::from_pointee(expiries));
        Ok(Self { server, client, tokens: Tokens(tokens.map(Arc::new)), expiries })
    }

    /// Reads all files again and uses them from the next connection on, in both directions. Calls to other servers then
    /// open new connections.
    ///
    /// # Errors
    /// As [`Security::open`]; nothing changes then.
    pub fn reload(&self, options: &SecurityOptions) -> Result<(), SecurityError> {
        let new = Self::open(options)?;
        if let (Some(old), Some(new)) = (&self.server, &new.server) {
            old.become_like(new);
        }
        if let (Some(old), Some(new)) = (&self.client, &new.client) {
            old.become_like(new);
        }
        self.expiries.store(new.expiries.load_full());
        if let (Some(old), Some(new)) = (&self.tokens.0, &new.tokens.0) {
            old.known.store(new.known.load_full());
        }
        Ok(())
    }

    /// The TLS configuration of the server; `None` for plain text.
    #[must_use]
    pub fn server_tls(&self) -> Option<ServerTls> {
        self.server.clone()
    }

    /// The TLS configuration for calls to a server with this name (a host or an IP address) in its certificate.
    #[must_use]
    pub fn client_tls(&self, domain: &str) -> Option<ClientTls> {
        self.client.clone().map(|config| config.named(domain))
    }

    /// When the certificates of each file expire.
    #[must_use]
    pub fn expiries(&self) -> Arc<Vec<Expiry>> {
        self.expiries.load_full()
    }

    /// Whether callers can call this server, judged by the validity of its certificate.
    ///
    /// # Errors
    /// The certificate has expired; the message names the file.
    pub fn readiness(&self) -> Result<(), String> {
        self.expiries.load().iter().find_map(Expiry::obstacle).map_or(Ok(()), Err)
    }

    /// The tokens that callers need. The first token is sent to peers.
    #[must_use]
    pub fn tokens(&self) -> Tokens {
        self.tokens.clone()
    }
}

/// A certificate and the matching key, in PEM.
struct Pair {
    cert: String,
    key: String,
    tls: ServerTls,
}

impl Pair {
    fn open(cert: &Path, key: &Path) -> Result<Self, SecurityError> {
        warn_if_open(key);
        let (texts, paths) = ((pem(cert, "CERTIFICATE")?, pem(key, "PRIVATE KEY")?), (cert.to_owned(), key.to_owned()));
        let tls = ServerTls::of(&texts.0, &texts.1, None);
        let tls = tls.map_err(|source| SecurityError::Identity { cert: paths.0, key: paths.1, source })?;
        is_valid(cert, &texts.0, SystemTime::now())?;
        Ok(Self { cert: texts.0, key: texts.1, tls })
    }
}

/// Checks that a certificate is valid now.
fn is_valid(path: &Path, pem: &str, now: SystemTime) -> Result<(), SecurityError> {
    let Some(Validity { first, last }) = Validity::of(pem) else { return Ok(()) };
    let now = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let signed = |seconds: u64| i64::try_from(seconds).unwrap_or(i64::MAX);
    if !(first..=last).contains(&now) {
        let (first, last, now) = (signed(first), signed(last), signed(now));
        return Err(SecurityError::Expired { path: path.to_owned(), first, last, now });
    }
    Ok(())
}

/// Reads a file that has at least one PEM block of this kind.
fn pem(path: &Path, what: &'static str) -> Result<String, SecurityError> {
    let text = read(path)?;
    let begins = |line: &str| line.starts_with("-----BEGIN ") && line.trim_end().ends_with(&format!("{what}-----"));
    if text.lines().any(begins) { Ok(text) } else { Err(SecurityError::Pem { path: path.to_owned(), what }) }
}

fn read(path: &Path) -> Result<String, SecurityError> {
    let failed = |source| SecurityError::Io { path: path.to_owned(), source };
    let mut text = String::new();
    let length = File::open(path).and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text));
    if u64::try_from(length.map_err(failed)?).is_ok_and(|length| length > FILE_BYTES_MAX) {
        return Err(failed(io::Error::new(io::ErrorKind::FileTooLarge, "longer than 1 MiB; is it the right file?")));
    }
    Ok(text)
}

#[cfg(unix)]
fn warn_if_open(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    if is_open(path.metadata().map_or(0, |metadata| metadata.permissions().mode())) {
        tracing::warn!(path = %path.display(), "every user of this machine can read this secret: run chmod o-rwx");
    }
}

#[cfg(unix)]
fn is_open(mode: u32) -> bool {
    mode & 0o004 != 0
}

#[cfg(not(unix))]
fn warn_if_open(_: &Path) {}

/// The bearer tokens of a file: every caller must send one of them. Without a file, callers need none. Clones share
/// the tokens.
#[derive(Clone, Default)]
pub struct Tokens(Option<Arc<TokenFile>>);

impl Tokens {
    /// Opens a token file.
    ///
    /// # Errors
    /// The file cannot be read, has no token, or has a line that is not a token.
    pub fn open(path: &Path) -> Result<Self, SecurityError> {
        Ok(Self(Some(Arc::new(TokenFile::open(path)?))))
    }

    /// The header `authorization` of calls to peers: the first token.
    #[must_use]
    pub fn header(&self) -> Option<MetadataValue<Ascii>> {
        self.0.as_ref().map(|file| file.current().header.clone())
    }

    /// Refuses calls without a valid token, except calls of open methods.
    pub fn around(&self, router: Router, methods: &Methods) -> Router {
        match &self.0 {
            None => router,
            Some(file) => router.layer(from_fn_with_state((Arc::clone(file), methods.clone()), check)),
        }
    }
}

async fn check(State((file, methods)): State<(Arc<TokenFile>, Methods)>, mut request: Request, next: Next) -> Response {
    if methods.of(request.uri().path()).open {
        return next.run(request).await;
    }
    let message = match bearer(request.headers()) {
        None => "the server needs a bearer token: send the header authorization: Bearer TOKEN",
        Some(token) if file.current().has(token) => {
            let hash = TokenHash(xxh3_64(token));
            request.extensions_mut().insert(hash);
            return next.run(request).await;
        }
        Some(_) => "the server does not know this bearer token: use a current one",
    };
    answer(refuse(Reason::BadToken, message, &[]), is_grpc(request.headers()))
}

/// The token of a call.
fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let value = headers.get(header::AUTHORIZATION)?.as_bytes();
    let (scheme, token) = value.split_at_checked("Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then(|| token.trim_ascii())
}

/// The tokens of a file.
struct TokenFile {
    path: PathBuf,
    opened: Instant,
    /// When the file was read last, in milliseconds since it was opened.
    read: AtomicU64,
    age_max: Duration,
    /// Whether the last read failed, so that a lasting failure is logged once.
    fails: AtomicBool,
    known: ArcSwap<Known>,
}

struct Known {
    tokens: Vec<String>,
    header: MetadataValue<Ascii>,
}

impl Known {
    /// Compares with all tokens, so that the time does not reveal which token matched.
    fn has(&self, token: &[u8]) -> bool {
        let none = Choice::from(0);
        self.tokens.iter().fold(none, |found, valid| found | valid.as_bytes().ct_eq(token)).into()
    }
}

impl TokenFile {
    fn open(path: &Path) -> Result<Self, SecurityError> {
        warn_if_open(path);
        Ok(Self {
            path: path.to_owned(),
            opened: Instant::now(),
            read: AtomicU64::new(0),
            age_max: TOKENS_AGE_MAX,
            fails: AtomicBool::new(false),
            known: ArcSwap::from_pointee(known(path)?),
        })
    }

    /// The tokens of the file, at most a second old.
    fn current(&self) -> arc_swap::Guard<Arc<Known>> {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let (now, read) = (millis(self.opened.elapsed()), self.read.load(Ordering::Relaxed));
        // One call reads the small file; other calls use the known tokens meanwhile.
        if now.saturating_sub(read) >= millis(self.age_max)
            && self.read.compare_exchange(read, now, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            let again = known(&self.path);
            let failed = self.fails.swap(again.is_err(), Ordering::Relaxed);
            match again {
                Ok(again) => self.known.store(Arc::new(again)),
                Err(error) if !failed => {
                    tracing::error!(error = &error as &dyn std::error::Error, "cannot read tokens; old ones are kept");
                }
                Err(_) => {}
            }
        }
        self.known.load()
    }
}

/// Reads a token file.
fn known(path: &Path) -> Result<Known, SecurityError> {
    let mut tokens = Vec::new();
    for (line, text) in read(path)?.lines().enumerate() {
        let text = text.trim();
        if !text.is_empty() && !text.starts_with('#') {
            if !is_token(text) {
                return Err(SecurityError::Token { path: path.to_owned(), line: line + 1 });
            }
            tokens.push(text.to_owned());
        }
    }
    let first = tokens.first().and_then(|token| MetadataValue::try_from(format!("Bearer {token}")).ok());
    let mut header = first.ok_or_else(|| SecurityError::NoToken { path: path.to_owned() })?;
    header.set_sensitive(true);
    Ok(Known { tokens, header })
}

/// Whether a text can be sent as a bearer token (RFC 6750, section 2.1).
fn is_token(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    !body.is_empty() && body.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~+/".contains(&byte))
}

#[cfg(test)]
mod tests;
