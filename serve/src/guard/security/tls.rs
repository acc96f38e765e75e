//! TLS of a server, by rustls with ring: HTTP/2 for clerks, and HTTP/1.1 for clients without HTTP/2.
//!
//! Promises: a handshake that fails or takes too long ends its connection, and no other connection waits for it. A
//! replaced certificate is used from the next handshake on. Open connections stay open.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use futures_util::{Stream, StreamExt};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::client::verify_server_cert_signed_by_trust_anchor;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use tokio_rustls::rustls::server::{NoServerSessionStorage, ParsedCertificate, WebPkiClientVerifier};
use tokio_rustls::rustls::{CertificateError, Error, RootCertStore, ServerConfig};
use tokio_rustls::server::TlsStream;

/// The longest time for one side of a handshake.
pub(crate) const HANDSHAKE_MAX: Duration = Duration::from_secs(10);
/// Concurrent handshakes; further connections wait for their handshake.
const AT_ONCE: usize = 1024;

/// The error of a TLS library.
pub(crate) type Why = Box<dyn std::error::Error + Send + Sync>;

/// The TLS configuration of a server, which can be replaced while the server runs. Clones share it.
#[derive(Clone)]
pub struct ServerTls(Arc<ArcSwap<ServerConfig>>);

/// When a certificate is valid: the first second and the last one, since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Validity {
    pub(crate) first: u64,
    pub(crate) last: u64,
}

impl Validity {
    /// The validity of the first certificate in a PEM file.
    pub(crate) fn of(pem: &str) -> Option<Self> {
        Self::of_all(pem).into_iter().next()
    }

    /// The validity of each certificate in a PEM file.
    pub(crate) fn of_all(pem: &str) -> Vec<Self> {
        certificates(pem).unwrap_or_default().iter().filter_map(Self::of_one).collect()
    }

    /// The dates come from the verifier: it refuses every certificate at a time outside its validity, with an error
    /// that names the first or the last second.
    fn of_one(certificate: &CertificateDer<'_>) -> Option<Self> {
        let certificate = ParsedCertificate::try_from(certificate).ok()?;
        let algorithms = default_provider().signature_verification_algorithms.all;
        let verify_at = |second| {
            let (roots, time) = (RootCertStore::empty(), UnixTime::since_unix_epoch(Duration::from_secs(second)));
            verify_server_cert_signed_by_trust_anchor(&certificate, &roots, &[], time, algorithms)
        };
        let first = match verify_at(0) {
            Err(Error::InvalidCertificate(CertificateError::NotValidYetContext { not_before, .. })) => {
                not_before.as_secs()
            }
            _ => 0,
        };
        // No certificate can be valid after the end of the year 9999.
        let last = match verify_at(FOR_EVER) {
            Err(Error::InvalidCertificate(CertificateError::ExpiredContext { not_after, .. })) => not_after.as_secs(),
            _ => FOR_EVER,
        };
        Some(Self { first, last })
    }
}

/// Seconds from 1970 to the end of the year 9999.
const FOR_EVER: u64 = 253_402_300_799;

impl ServerTls {
    /// A configuration from a certificate with its chain, the key, and the CA of callers, all in PEM.
    pub(crate) fn of(cert: &str, key: &str, client_ca: Option<&str>) -> Result<Self, Why> {
        let builder = ServerConfig::builder_with_provider(Arc::new(default_provider()));
        let builder = builder.with_safe_default_protocol_versions()?;
        let builder = match client_ca {
            None => builder.with_no_client_auth(),
            Some(pem) => {
                let mut roots = RootCertStore::empty();
                for cert in certificates(pem)? {
                    roots.add(cert)?;
                }
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(roots.into(), Arc::new(default_provider())).build()?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes())?;
        let mut config = builder.with_single_cert(certificates(cert)?, key)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        if client_ca.is_some() {
            // A resumed session would be accepted after the certificate of its caller has expired.
            config.session_storage = Arc::new(NoServerSessionStorage {});
            config.send_tls13_tickets = 0;
        }
        Ok(Self(Arc::new(ArcSwap::from_pointee(config))))
    }

    /// Takes over the configuration of another, from the next handshake on.
    pub(crate) fn become_like(&self, other: &Self) {
        self.0.store(other.0.load_full());
    }

    /// Does the handshakes, and yields the connections that succeed.
    pub fn accept<C, E>(
        self,
        incoming: impl Stream<Item = Result<C, E>> + Send + 'static,
    ) -> impl Stream<Item = io::Result<TlsStream<C>>> + Send + 'static
    where
        C: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        E: Into<Why> + Send + 'static,
    {
        let shaken = incoming.map(move |connection| {
            let acceptor = TlsAcceptor::from(self.0.load_full());
            async move {
                let connection =
                    connection.map_err(|error| tracing::debug!(error = %error.into(), "no connection for TLS")).ok()?;
                match timeout(HANDSHAKE_MAX, acceptor.accept(connection)).await {
                    Ok(Ok(stream)) => return Some(Ok(stream)),
                    Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed"),
                    Err(_) => tracing::debug!("TLS handshake timed out"),
                }
                None
            }
        });
        shaken.buffer_unordered(AT_ONCE).filter_map(std::future::ready)
    }
}

pub(super) fn certificates(pem: &str) -> Result<Vec<CertificateDer<'static>>, Why> {
    Ok(CertificateDer::pem_slice_iter(pem.as_bytes()).collect::<Result<_, _>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard::trial::{Tardy, http_over, router, serve};
    use rcgen::{CertificateParams, CertifiedKey, KeyPair};
    use tokio::net::TcpStream;
    use tokio_rustls::TlsConnector;
    use tokio_rustls::rustls::ClientConfig;

    #[tokio::test]
    async fn whoever_speaks_http_1_is_answered() {
        let signing_key = KeyPair::generate().expect("a key");
        let cert = CertificateParams::new(vec!["peer.example".to_owned()]).expect("a name");
        let made = CertifiedKey { cert: cert.self_signed(&signing_key).expect("a certificate"), signing_key };
        let tls = ServerTls::of(&made.cert.pem(), &made.signing_key.serialize_pem(), None).expect("an identity");
        let address = serve(router(&Tardy::default()), Some(tls)).await;
        // These connections send nothing, and no other connection waits for them.
        let _silent = (TcpStream::connect(address).await, TcpStream::connect(address).await);
        for protocols in [&["http/1.1"][..], &[]] {
            let mut roots = RootCertStore::empty();
            roots.add(made.cert.der().clone()).expect("a certificate");
            let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()));
            let builder = builder.with_safe_default_protocol_versions().expect("versions");
            let mut config = builder.with_root_certificates(roots).with_no_client_auth();
            config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
            let stream = TcpStream::connect(address).await.expect("a connection");
            let name = "peer.example".try_into().expect("a name");
            let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.expect("a handshake");
            let answer = http_over(stream, "/v1/plain", "").await;
            assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("plain"), "{protocols:?}: {answer}");
        }
    }

    #[test]
    fn certificates_tell_when_they_are_valid() {
        let key = KeyPair::generate().expect("a key");
        for is_ca in [false, true] {
            let mut params = CertificateParams::new(vec!["peer.example".to_owned()]).expect("a name");
            params.not_before = rcgen::date_time_ymd(2020, 2, 29);
            params.not_after = rcgen::date_time_ymd(2031, 1, 1);
            if is_ca {
                params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
            }
            let pem = params.self_signed(&key).expect("a certificate").pem();
            let expected = Validity { first: 1_582_934_400, last: 1_924_992_000 };
            assert_eq!(Validity::of(&pem), Some(expected));
        }
        let ever = CertificateParams::new(vec![]).expect("no names").self_signed(&key).expect("a certificate");
        let valid = Validity::of(&ever.pem()).expect("a certificate");
        assert!(valid.first < 1_000_000_000 && valid.last > 60_000_000_000, "{valid:?}");
        assert_eq!(Validity::of(""), None);
    }

    #[test]
    fn a_signer_must_be_one() {
        let key = KeyPair::generate().expect("a key");
        let cert = CertificateParams::new(vec![]).expect("no names").self_signed(&key).expect("a certificate");
        let of = |cert: &str, key: &str, ca: Option<&str>| ServerTls::of(cert, key, ca).map(drop);
        of(&cert.pem(), &key.serialize_pem(), Some(&cert.pem())).expect("an identity");
        of(&cert.pem(), &key.serialize_pem(), Some("")).expect_err("nobody signs");
        of("", &key.serialize_pem(), None).expect_err("no certificate");
        of(&cert.pem(), &KeyPair::generate().expect("a key").serialize_pem(), None).expect_err("another key");
    }
}
