//! Origins: callers whose calls and connections count together, so that one caller cannot use up a server.
//!
//! An origin is an IP address (for IPv6 the /64 network, which one host has for itself) and, if the server has tokens,
//! the token of the call. Tokens therefore separate callers behind one proxy, and a caller with several tokens has
//! several shares. All callers of one origin have one share. Connections without an address, as in tests, are one
//! origin.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use axum::http::Extensions;
use tonic::transport::server::TlsConnectInfo;

use crate::guard::connections::Connection;

/// The bits of an IPv6 address that name a network.
const NETWORK: u128 = !0 << 64;

/// The origin of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Origin {
    address: Option<IpAddr>,
    /// The hash of the token of the call.
    token: Option<u64>,
}

impl Origin {
    /// The origin of a connection from an address.
    #[must_use]
    pub fn of(address: IpAddr) -> Self {
        let address = match address.to_canonical() {
            IpAddr::V6(host) => IpAddr::V6(Ipv6Addr::from_bits(host.to_bits() & NETWORK)),
            host @ IpAddr::V4(_) => host,
        };
        Self { address: Some(address), token: None }
    }

    /// The origin of a call, from the connection and the token hash in its extensions.
    #[must_use]
    pub(crate) fn of_call(extensions: &Extensions) -> Self {
        let address = Link::of(extensions).and_then(|link| link.remote);
        let token = extensions.get::<TokenHash>().map(|hash| hash.0);
        Self { token, ..address.map_or_else(Self::default, |address| Self::of(address.ip())) }
    }
}

/// The hash of the valid token of a call, among its extensions.
#[derive(Clone, Copy)]
pub(crate) struct TokenHash(pub(crate) u64);

/// The connection of a call, among its extensions.
#[derive(Clone, Debug)]
pub struct Link {
    /// The address of the caller.
    pub(crate) remote: Option<SocketAddr>,
    /// The state of the connection.
    pub(crate) line: Arc<Connection>,
}

impl Link {
    /// The connection of a call, over TLS or not.
    pub(crate) fn of(extensions: &Extensions) -> Option<&Self> {
        extensions.get::<Self>().or_else(|| extensions.get::<TlsConnectInfo<Self>>().map(TlsConnectInfo::get_ref))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_one_origin_whatever_its_address_is_written_as() {
        let of = |text: &str| Origin::of(text.parse().expect("an address"));
        assert_eq!(of("10.0.0.1"), of("::ffff:10.0.0.1"));
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1"), "one host has 64 bits for itself");
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_ne!(of("10.0.0.1"), of("10.0.0.2"));
    }
}
