//! Connections to servers: opened at the first use, kept alive, with TLS and a token if required.

use std::sync::Arc;
use std::time::Duration;

use tonic::Status;
use tonic::transport::{Channel, ClientTlsConfig, Endpoint};

use crate::guard::Caller;
use crate::guard::security::Tokens;

/// Makes the channel to an endpoint. Tests use another transport than TCP.
pub type Connect = Arc<dyn Fn(Endpoint) -> Channel + Send + Sync>;

/// Opens connections to servers.
#[derive(Clone)]
pub struct Dialer {
    tls: Option<ClientTlsConfig>,
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
    pub fn secured(self, tls: Option<ClientTlsConfig>, tokens: Tokens) -> Self {
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
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let host_port = host_port(address, self.tls.is_some()).map_err(Status::invalid_argument)?;
        let wrong = |error: tonic::transport::Error| Status::invalid_argument(format!("{NO_ADDRESS} ({error})"));
        let mut endpoint = Endpoint::from_shared(format!("{scheme}://{host_port}"))
            .map_err(wrong)?
            .connect_timeout(Duration::from_secs(1))
            .tcp_nodelay(true)
            // Without keepalive, a connection does not recover after a network partition heals.
            .http2_keep_alive_interval(Duration::from_secs(2))
            .keep_alive_timeout(Duration::from_secs(2))
            .keep_alive_while_idle(true)
            .initial_stream_window_size(1 << 20)
            .initial_connection_window_size(8 << 20);
        if let Some(tls) = &self.tls {
            endpoint = endpoint.tls_config(tls.clone()).map_err(wrong)?;
        }
        Ok((self.connect)(endpoint))
    }

    /// The interceptor that adds the token and the trace to calls.
    pub fn caller(&self) -> Caller {
        self.caller.clone()
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
