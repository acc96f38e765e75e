//! Connections to servers: opened at the first use, kept alive, with TLS and a token if required.
//!
//! All calls of a process to servers go through a [`Dialer`]. A connection that is kept is a `Peer`. It connects
//! again after the certificates were read again.

use std::sync::Arc;
use std::time::Duration;

use axum::http::uri::InvalidUri;
use tonic::Status;
use tonic::transport::{Channel, Endpoint};

use crate::guard::Caller;
use crate::guard::security::Tokens;
use crate::guard::security::outgoing::ClientTls;

pub(crate) mod first;

/// Makes the channel to an endpoint. Tests use another transport than TCP.
pub type Connect = Arc<dyn Fn(Endpoint) -> Channel + Send + Sync>;

/// Opens connections to servers.
#[derive(Clone)]
pub struct Dialer {
    tls: Option<ClientTls>,
    caller: Caller,
    connect: Connect,
}

impl Default for Dialer {
    fn default() -> Self {
        Self { tls: None, caller: Caller::default(), connect: Arc::new(|endpoint| endpoint.connect_lazy()) }
    }
}

impl Dialer {
    /// Sets TLS, and the tokens; the first token is sent.
    #[must_use]
    pub fn secured(self, tls: Option<ClientTls>, tokens: Tokens) -> Self {
        Self { tls, caller: Caller::new(tokens), ..self }
    }

    /// Sets another transport than TCP.
    #[must_use]
    pub fn over(self, connect: Connect) -> Self {
        Self { connect, ..self }
    }

    /// The channel to an address: `host:port`, with or without `http://` or `https://` before it. The channel connects
    /// at the first use, and reconnects when necessary.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for text that is not an address, and for a scheme that does not match the use of TLS.
    pub fn dial(&self, address: &str) -> Result<Channel, Status> {
        let host_port = host_port(address, self.tls.is_some()).map_err(Status::invalid_argument)?;
        let wrong = |error: &dyn std::fmt::Display| Status::invalid_argument(format!("{NO_ADDRESS} ({error})"));
        // The connection speaks TLS below what tonic sees.
        let endpoint = Endpoint::from_shared(format!("http://{host_port}"))
            .map_err(|error| wrong(&error))?
            .connect_timeout(Duration::from_secs(1))
            .tcp_nodelay(true)
            // Without keepalive, a connection does not recover after a network partition heals.
            .http2_keep_alive_interval(Duration::from_secs(2))
            .keep_alive_timeout(Duration::from_secs(2))
            .keep_alive_while_idle(true)
            .initial_stream_window_size(1 << 20)
            .initial_connection_window_size(8 << 20);
        let Some(tls) = &self.tls else { return Ok((self.connect)(endpoint)) };
        let origin = format!("https://{host_port}").parse().map_err(|error| wrong(&error as &InvalidUri))?;
        Ok(tls.channel(&endpoint.origin(origin)))
    }

    /// A connection that is kept.
    ///
    /// # Errors
    /// See [`Dialer::dial`].
    pub(crate) fn peer(&self, address: &str) -> Result<Peer, Status> {
        Ok(Peer { address: address.to_owned(), version: self.version(), channel: self.dial(address)? })
    }

    fn version(&self) -> u64 {
        self.tls.as_ref().map_or(0, ClientTls::version)
    }

    /// The servers that TLS keeps from being called, each with the reason.
    pub(crate) fn distrusted(&self) -> Vec<(String, String)> {
        self.tls.as_ref().map(|tls| tls.trust().failures()).unwrap_or_default()
    }

    /// The interceptor that adds the token and the trace to calls.
    pub fn caller(&self) -> Caller {
        self.caller.clone()
    }
}

/// A connection that is kept. It is replaced after the certificates were read again. Running calls end on the earlier
/// connection.
pub(crate) struct Peer {
    address: String,
    version: u64,
    channel: Channel,
}

impl Peer {
    pub(crate) fn channel(&mut self, dialer: &Dialer) -> Result<Channel, Status> {
        if self.version != dialer.version() {
            *self = dialer.peer(&self.address)?;
        }
        Ok(self.channel.clone())
    }
}

/// The message for text that is not an address.
const NO_ADDRESS: &str = "not the address of a server; write HOST:PORT, such as 127.0.0.1:7400";

/// The host and the port of an address.
fn host_port(address: &str, with_tls: bool) -> Result<&str, &'static str> {
    let (scheme, rest) = address.split_once("://").map_or((None, address), |(scheme, rest)| (Some(scheme), rest));
    match (scheme, with_tls) {
        (None, _) | (Some("http"), false) | (Some("https"), true) => {}
        (Some("https"), false) => {
            return Err("https:// needs --tls-ca, the CA that signs the servers' certificates");
        }
        (Some("http"), true) => {
            return Err("http:// is without TLS, but --tls-ca was given; write https:// or HOST:PORT");
        }
        (Some(_), _) => return Err(NO_ADDRESS),
    }
    let rest = rest.strip_suffix('/').filter(|_| scheme.is_some()).unwrap_or(rest);
    let port = rest.rsplit_once(':').filter(|(host, _)| !host.is_empty() && !host.contains('/')).map(|(_, port)| port);
    match port.map(str::parse::<u16>) {
        Some(Ok(_)) => Ok(rest),
        _ => Err(NO_ADDRESS),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_may_be_written_as_urls() {
        for address in ["a.example:7400", "http://a.example:7400", "http://a.example:7400/"] {
            assert_eq!(host_port(address, false), Ok("a.example:7400"), "{address}");
        }
        assert_eq!(host_port("[::1]:7400", false), Ok("[::1]:7400"));
        assert_eq!(host_port("https://a.example:7400", true), Ok("a.example:7400"));
        assert!(host_port("https://a.example:7400", false).unwrap_err().contains("--tls-ca"));
        assert!(host_port("http://a.example:7400", true).unwrap_err().contains("without TLS"));
    }

    #[test]
    fn what_is_no_address_is_told_what_one_is() {
        for text in
            ["", "a.example", ":7400", "a.example:", "a.example:http", "ftp://a.example:7", "a:7400/v1", "a:99999"]
        {
            assert_eq!(host_port(text, false), Err(NO_ADDRESS), "{text}");
        }
    }
}
