//! `HOST:PORT` on the command line, where the host may be a name.
//!
//! A name is looked up when a server starts, not when its options are read. If a scheduler starts the servers of a
//! cluster, a server may run before its name has an address.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::str::FromStr;
use std::time::Duration;

/// The time after which a name without an address is looked up again.
const AGAIN: Duration = Duration::from_secs(1);
/// The longest time for which a name may be without an address.
const UNKNOWN_MAX: Duration = Duration::from_secs(60);

const EXPECTED: &str = "expected HOST:PORT, [IPV6]:PORT, :PORT for all addresses, or PORT";

/// An address of this machine (`127.0.0.1:7400`, `[::1]:7400`), a name with a port (`localhost:7400`), or a port of
/// all addresses of this machine (`:7400`) or of this machine only (`7400`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    /// An address in numbers.
    Known(SocketAddr),
    /// A name that must be looked up, and the port.
    Named(String, u16),
}

impl Address {
    /// Whether this address means every address of the machine.
    pub(crate) fn is_every(&self) -> bool {
        matches!(self, Self::Known(address) if address.ip().is_unspecified())
    }

    /// The address in numbers. A name without an address is looked up again each second for at most a minute, and the
    /// log says so once. If a name has several addresses, the first IPv4 address is taken.
    pub(crate) async fn known(&self) -> anyhow::Result<SocketAddr> {
        self.known_within(UNKNOWN_MAX).await
    }

    async fn known_within(&self, longest: Duration) -> anyhow::Result<SocketAddr> {
        let (host, port) = match self {
            Self::Known(address) => return Ok(*address),
            Self::Named(host, port) => (host.as_str(), *port),
        };
        let (begun, mut waits) = (tokio::time::Instant::now(), false);
        loop {
            let why = match tokio::net::lookup_host((host, port)).await {
                Ok(found) => {
                    let found: Vec<SocketAddr> = found.collect();
                    match found.iter().find(|address| address.is_ipv4()).or(found.first()) {
                        Some(address) => return Ok(*address),
                        None => "the name has none".to_owned(),
                    }
                }
                Err(error) => error.to_string(),
            };
            if begun.elapsed() >= longest {
                anyhow::bail!("no address of {host}: {why}");
            }
            if !std::mem::replace(&mut waits, true) {
                let seconds = longest.as_secs();
                tracing::warn!(why, "no address of {host} yet: it is looked up again for {seconds} s");
            }
            tokio::time::sleep(AGAIN).await;
        }
    }
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let port = |text: &str| text.parse::<u16>().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()));
        if let Some(port) = port(text) {
            return Ok(Self::Known((Ipv4Addr::LOCALHOST, port).into()));
        }
        if let Some(port) = text.strip_prefix(':').and_then(port) {
            return Ok(Self::Known((Ipv4Addr::UNSPECIFIED, port).into()));
        }
        if let Ok(address) = text.parse() {
            return Ok(Self::Known(address));
        }
        let (host, number) = text.rsplit_once(':').ok_or_else(|| format!("no port: {text:?} ({EXPECTED})"))?;
        let is_name = |host: &str| host.split('.').all(|label| !label.is_empty()) && host.bytes().all(is_of_name);
        match port(number) {
            Some(port) if is_name(host.trim_end_matches('.')) => Ok(Self::Named(host.to_owned(), port)),
            _ => Err(format!("not an address: {text:?} ({EXPECTED})")),
        }
    }
}

/// In networks of containers, names of machines may contain underscores.
fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.')
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(address) => address.fmt(formatter),
            Self::Named(host, port) => write!(formatter, "{host}:{port}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_numbers_or_names() {
        let known = |text: &str| Address::Known(text.parse().unwrap());
        let named = |host: &str| Address::Named(host.to_owned(), 7400);
        for (text, address) in [
            ("7400", known("127.0.0.1:7400")),
            (":7400", known("0.0.0.0:7400")),
            ("[::1]:7400", known("[::1]:7400")),
            ("localhost:7400", named("localhost")),
            ("a-1.b_c.:7400", named("a-1.b_c.")),
        ] {
            assert_eq!(text.parse(), Ok(address), "{text}");
        }
        for wrong in ["", "a", "a:", "a:b", "a:+1", "a:65536", "::1:7400", "a b:1", "a..b:1", "http://a:1", "[a]:1"] {
            assert!(wrong.parse::<Address>().is_err(), "{wrong}");
        }
    }

    #[tokio::test]
    async fn a_name_is_looked_up() {
        let address = "localhost:7400".parse::<Address>().unwrap().known().await.unwrap();
        assert!(address.ip().is_loopback() && address.port() == 7400);
    }

    #[tokio::test]
    async fn a_name_that_stays_unknown_is_an_error() {
        let address = "none.invalid:7400".parse::<Address>().unwrap();
        let error = address.known_within(Duration::ZERO).await.unwrap_err();
        assert!(error.to_string().starts_with("no address of none.invalid: "), "{error}");
    }
}
