//! TLS of calls to servers, by rustls with ring.
//!
//! ```text
//! files --> [security] --> ClientTls --> each handshake, with the files as they were read last
//!                              \--> Trust: the servers that TLS keeps from being called, and why
//! ```
//!
//! Promises: every handshake uses the certificate and the CA that were read last, even if a connection is opened again
//! after years. No session is resumed, so every handshake checks the certificate. In TLS 1.3 a server says that it
//! refuses a caller's certificate only after the caller's side of the handshake. Such an alert counts as a failed
//! handshake.

use std::collections::BTreeMap;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use arc_swap::ArcSwap;
use axum::http::Uri;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::client::Resumption;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, Error, RootCertStore};
use tonic::transport::{Channel, Endpoint};

use super::tls::{Why, certificates};

/// How long a failed handshake counts. Gossip calls every server that it knows more often.
const RECENT: Duration = Duration::from_secs(30);
/// Servers that are remembered.
const KNOWN_MAX: usize = 1000;

/// The TLS configuration of calls, which can be replaced while calls are made. Clones share it.
#[derive(Clone)]
pub struct ClientTls {
    config: Arc<ArcSwap<ClientConfig>>,
    /// How often the configuration was replaced.
    version: Arc<AtomicU64>,
    trust: Trust,
    /// The name in the certificates of the servers.
    name: String,
}

impl ClientTls {
    /// A configuration with the CA of the servers and the caller's own certificate and key, all in PEM.
    pub(crate) fn of(server_ca: &str, identity: Option<(&str, &str)>) -> Result<Self, Why> {
        let mut roots = RootCertStore::empty();
        for cert in certificates(server_ca)? {
            roots.add(cert)?;
        }
        let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()));
        let builder = builder.with_safe_default_protocol_versions()?.with_root_certificates(roots);
        let mut config = match identity {
            None => builder.with_no_client_auth(),
            Some((cert, key)) => {
                builder.with_client_auth_cert(certificates(cert)?, PrivateKeyDer::from_pem_slice(key.as_bytes())?)?
            }
        };
        config.alpn_protocols = vec![b"h2".to_vec()];
        config.resumption = Resumption::disabled();
        let config = Arc::new(ArcSwap::from_pointee(config));
        Ok(Self { config, version: Arc::default(), trust: Trust::default(), name: "localhost".to_owned() })
    }

    /// The same configuration for servers with another name in their certificates.
    pub(crate) fn named(self, name: &str) -> Self {
        Self { name: name.to_owned(), ..self }
    }

    /// Takes over the configuration of another, from the next handshake on.
    pub(crate) fn become_like(&self, other: &Self) {
        self.config.store(other.config.load_full());
        self.version.fetch_add(1, Ordering::Release);
    }

    /// A number that changes when the configuration is replaced.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// The servers that TLS keeps from being called.
    #[must_use]
    pub fn trust(&self) -> &Trust {
        &self.trust
    }

    /// The channel to an endpoint, which must have no TLS of its own. The channel connects at the first use, and again
    /// when necessary.
    #[must_use]
    pub fn channel(&self, endpoint: &Endpoint) -> Channel {
        let tls = self.clone();
        endpoint.connect_with_connector_lazy(tower::service_fn(move |uri: Uri| tls.clone().connect(uri)))
    }

    async fn connect(self, uri: Uri) -> io::Result<TokioIo<Checked>> {
        let (host, port) = (uri.host().unwrap_or_default(), uri.port_u16().unwrap_or_default());
        let stream = TcpStream::connect((host.trim_start_matches('[').trim_end_matches(']'), port)).await?;
        stream.set_nodelay(true)?;
        let name = ServerName::try_from(self.name).map_err(io::Error::other)?;
        let mark = Mark { trust: self.trust, address: format!("{host}:{port}") };
        match TlsConnector::from(self.config.load_full()).connect(name, stream).await {
            Ok(stream) => Ok(TokioIo::new(Checked { stream, mark, is_known: false })),
            Err(error) => {
                mark.failed(&error);
                Err(error)
            }
        }
    }
}

/// The servers that TLS keeps from being called, and why. Clones share them.
#[derive(Clone, Default)]
pub struct Trust(Arc<Mutex<BTreeMap<String, Distrust>>>);

struct Distrust {
    why: String,
    last: Instant,
}

impl Trust {
    /// The addresses of the servers with failed handshakes in the last seconds, each with the reason.
    #[must_use]
    pub fn failures(&self) -> Vec<(String, String)> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let recent = known.iter().filter(|(_, distrust)| distrust.last.elapsed() < RECENT);
        recent.map(|(address, distrust)| (address.clone(), distrust.why.clone())).collect()
    }
}

/// Records the outcomes of handshakes with an address.
struct Mark {
    trust: Trust,
    address: String,
}

impl Mark {
    /// Records a failure if TLS caused it. Each reason is logged once.
    fn failed(&self, error: &io::Error) {
        let Some(error) = error.get_ref().and_then(|error| error.downcast_ref::<Error>()) else { return };
        let why = match error {
            Error::InvalidCertificate(error) => format!("its certificate is not accepted here: {error}"),
            Error::AlertReceived(alert) => format!("it does not accept the certificate of this side: {alert:?}"),
            other => other.to_string(),
        };
        let mut known = self.trust.0.lock().unwrap_or_else(PoisonError::into_inner);
        let last = Instant::now();
        if known.get(&self.address).is_none_or(|before| before.why != why || before.last.elapsed() >= RECENT) {
            tracing::error!(address = self.address, why, "cannot call this server over TLS");
        }
        known.retain(|_, distrust| distrust.last.elapsed() < RECENT);
        if known.len() < KNOWN_MAX {
            known.insert(self.address.clone(), Distrust { why, last });
        }
    }

    fn succeeded(&self) {
        let mut known = self.trust.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.remove(&self.address).is_some() {
            tracing::warn!(address = self.address, "this server can be called over TLS again");
        }
    }
}

/// A connection that records whether the server accepts the caller's certificate.
struct Checked {
    stream: TlsStream<TcpStream>,
    mark: Mark,
    /// Whether the server has accepted the certificate.
    is_known: bool,
}

impl AsyncRead for Checked {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, to: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let Self { stream, mark, is_known } = self.get_mut();
        let before = to.filled().len();
        let read = ready!(Pin::new(stream).poll_read(context, to));
        match &read {
            Err(error) => mark.failed(error),
            Ok(()) if !*is_known && to.filled().len() > before => {
                *is_known = true;
                mark.succeeded();
            }
            Ok(()) => {}
        }
        Poll::Ready(read)
    }
}

impl Checked {
    /// If a connection breaks during a write, an alert that gives the reason may still be read.
    fn why<T>(&mut self, context: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if matches!(written, Poll::Ready(Err(_))) && !self.is_known {
            let mut scratch = [0; 1024];
            let _ = Pin::new(&mut *self).poll_read(context, &mut ReadBuf::new(&mut scratch));
        }
        written
    }
}

impl AsyncWrite for Checked {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, from);
        self.why(context, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.why(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
