//! How servers are reached: connections that are opened when they are first used, kept alive, and let in.

use std::sync::Arc;
use std::time::Duration;

use tonic::Status;
use tonic::transport::{Channel, ClientTlsConfig, Endpoint};

use crate::guard::Caller;
use crate::guard::security::Tokens;

/// Makes the channel of an endpoint; another one than TCP's for tests.
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
    /// With TLS, and with a token: the first of these.
    #[must_use]
    pub fn secured(self, tls: Option<ClientTlsConfig>, tokens: Tokens) -> Self {
        Self { tls, caller: Caller::new(tokens), ..self }
    }

    /// Over something else than TCP.
    #[must_use]
    pub fn over(self, connect: Connect) -> Self {
        Self { connect, ..self }
    }

    /// The channel to an address (host:port). It connects when it is used, and again when it has to.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for what is no address.
    pub fn dial(&self, address: &str) -> Result<Channel, Status> {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let wrong = |error: tonic::transport::Error| {
            Status::invalid_argument(format!("{address}: not an address, host:port is ({error})"))
        };
        let mut endpoint = Endpoint::from_shared(format!("{scheme}://{address}"))
            .map_err(wrong)?
            .connect_timeout(Duration::from_secs(1))
            .tcp_nodelay(true)
            // Without these a connection over a cut that heals does not come back.
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

    /// What calls carry.
    pub fn caller(&self) -> Caller {
        self.caller.clone()
    }
}
