//! Checks the host that a call names. A call must name exactly one host. If the server listens on a loopback address,
//! the name must be one of the server's names.
//!
//! A page of a stranger can make a browser on this machine call this server. The stranger's own name leads to the
//! loopback address a moment after the page was loaded (DNS rebinding), so that the page may read the answers. But the
//! browser still names the stranger's host. A server that listens on a loopback address therefore refuses names that
//! are not its own. A server that listens elsewhere accepts every name that its network has for it.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::HOST;
use axum::http::uri::Authority;
use axum::http::{Uri, Version};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use tonic::Status;

use crate::protocol::refusal::{answer, is_grpc};
use crate::protocol::status::{Reason, bad, refuse};

/// The host names by which a server may be called.
#[derive(Clone, Debug, Default)]
pub struct Hosts(Option<Arc<[String]>>);

impl Hosts {
    /// The names of a server that listens at `listen`. On a loopback address, the server accepts `names` and the names
    /// of the loopback addresses; `*` accepts every name. At any other address, it accepts every name.
    #[must_use]
    pub fn of(listen: SocketAddr, names: Vec<String>) -> Self {
        let is_open = !listen.ip().is_loopback() || names.iter().any(|name| name == "*");
        Self((!is_open).then(|| names.into()))
    }

    /// Refuses calls of a router that do not name one host of this server.
    pub(crate) fn around(&self, router: Router) -> Router {
        router.layer(from_fn_with_state(self.clone(), check))
    }

    /// Checks the host of a call.
    fn admit(&self, request: &Request) -> Result<(), Status> {
        let mut fields = request.headers().get_all(HOST).into_iter();
        let (field, second) = (fields.next(), fields.next());
        let invalid = |what: &str| Err(bad(format!("Host: {what} (expected one host, as example.org:7400)")));
        let field = match field.map(|field| field.to_str().ok().and_then(|text| text.parse::<Authority>().ok())) {
            _ if second.is_some() => return invalid("more than one"),
            Some(None) => return invalid("not a host"),
            Some(Some(host)) => Some(host),
            None => None,
        };
        let named = match (request.uri().authority().cloned(), field) {
            (Some(named), Some(field)) if named != field => return invalid("not the host of the request"),
            (named, field) => named.or(field),
        };
        let Some(named) = named else {
            // Only the oldest version has calls without a host.
            return if request.version() < Version::HTTP_11 { Ok(()) } else { invalid("missing") };
        };
        match &self.0 {
            Some(names) if !is_loopback(named.host()) && !is_among(names, named.host()) => {
                let message = format!(
                    "Host: this server is not called {}; it listens on a loopback address only. If a proxy passes this \
                     name on, start the server with --host {}, or with the --public-url of the proxy",
                    named.host(),
                    named.host()
                );
                Err(refuse(Reason::OtherHost, message, &[]))
            }
            _ => Ok(()),
        }
    }
}

/// The host of a URL, as `--public-url` has it.
#[must_use]
pub fn host_of(url: &str) -> Option<String> {
    Some(url.parse::<Uri>().ok()?.host()?.to_owned())
}

fn is_among(names: &[String], host: &str) -> bool {
    let bare = |name: &str| name.trim_end_matches('.').to_ascii_lowercase();
    names.iter().any(|name| bare(name) == bare(host))
}

fn is_loopback(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    address.map_or_else(|_| is_among(&["localhost".to_owned()], host), |address| address.is_loopback())
}

async fn check(State(hosts): State<Hosts>, request: Request, next: Next) -> Response {
    match hosts.admit(&request) {
        Ok(()) => next.run(request).await,
        Err(status) => answer(status, is_grpc(request.headers())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;

    fn refused(hosts: &Hosts, fields: &[&str]) -> Option<Reason> {
        let request = fields.iter().fold(Request::get("/v1"), |request, field| request.header("host", *field));
        let refused = hosts.admit(&request.body(Body::empty()).unwrap()).err()?;
        Reason::of(&refused)
    }

    #[test]
    fn on_a_loopback_address_only_own_names_are_called() {
        let own = vec![host_of("https://archive.example.org/graph").unwrap(), "proxy".to_owned()];
        let hosts = Hosts::of(([127, 0, 0, 1], 7400).into(), own);
        let names = [
            "localhost:7400",
            "LOCALHOST",
            "127.0.0.1:7400",
            "127.0.0.2",
            "[::1]:1",
            "Archive.example.org.",
            "proxy:80",
        ];
        for name in names {
            assert_eq!(refused(&hosts, &[name]), None, "{name}");
        }
        for name in ["evil.example:7400", "localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.1", "[::2]"] {
            assert_eq!(refused(&hosts, &[name]), Some(Reason::OtherHost), "{name}");
            assert_eq!(refused(&Hosts::of(([0, 0, 0, 0], 7400).into(), Vec::new()), &[name]), None, "{name}");
            assert_eq!(refused(&Hosts::of(([127, 0, 0, 1], 1).into(), vec!["*".to_owned()]), &[name]), None, "{name}");
        }
        for fields in [&[][..], &["localhost", "localhost"], &["a b"], &[""]] {
            assert_eq!(refused(&hosts, fields), Some(Reason::BadRequest), "{fields:?}");
            assert_eq!(refused(&Hosts::default(), fields), Some(Reason::BadRequest), "{fields:?}");
        }
        let old = Request::get("/v1").version(Version::HTTP_10).body(Body::empty()).unwrap();
        assert!(hosts.admit(&old).is_ok());
        let two = Request::get("http://localhost/v1").header("host", "evil.example").body(Body::empty()).unwrap();
        assert_eq!(Reason::of(&hosts.admit(&two).unwrap_err()), Some(Reason::BadRequest));
    }
}
