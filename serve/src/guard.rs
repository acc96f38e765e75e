//! The guards around every call of a server, in their order, and the credentials of the server's calls to peers.
//!
//! ```text
//! call -> spans -> metrics -> panics -> host -> tokens -> deadline -> admission -> drain -> method
//! ```
//!
//! This order has three effects. Refused calls are traced and counted. A call without a token does not wait in a queue.
//! The time of a call includes its wait in the queue. Unknown paths are refused here, in the caller's protocol.
//!
//! Map: [`spans`] tracing; [`metrics`] counters; [`host`] the name by which a caller calls the server; [`security`]
//! tokens and certificates, with `tls`; `deadline` the caller's deadline; [`limits`] how many calls run and wait;
//! [`memory`] the memory that calls hold; [`connections`] and `incoming` how many connections are open; `origin`
//! the caller that shares both limits; [`drain`] shutdown; [`methods`] the list of methods; `attend` state that lives
//! until a call ends; `pace` limits for slow callers; `panics` the end of a call that panics.

use axum::Router;
use axum::extract::Request;
use axum::middleware::from_fn;
use axum::response::Response;
use tonic::Status;
use tonic::service::Interceptor;

use self::drain::Drain;
use self::host::Hosts;
use self::limits::Admission;
use self::methods::Methods;
use self::metrics::Metrics;
use self::security::Tokens;
use crate::protocol::refusal::{answer, is_grpc};
use crate::protocol::status::{Reason, refuse};

mod attend;
pub mod connections;
mod deadline;
pub mod drain;

pub mod host;
pub mod limits;
pub mod memory;
pub mod methods;
pub mod metrics;
pub(crate) mod panics;

pub mod security;
pub mod spans;

#[cfg(test)]
mod trial;

/// The guards of a server. Clones share all state.
#[derive(Clone)]
pub struct Guard {
    /// The methods that exist.
    pub methods: Methods,
    /// The host names by which the server may be called.
    pub hosts: Hosts,
    /// The bearer tokens that callers need.
    pub tokens: Tokens,
    /// The limit on concurrent calls.
    pub admission: Admission,
    /// The metrics.
    pub metrics: Metrics,
    /// The shutdown of the server.
    pub drain: Drain,
}

impl Guard {
    /// The routes of the admin port: metrics, liveness and readiness, without tokens and limits.
    pub fn beside(&self) -> Router {
        self.metrics.routes().merge(self.drain.routes())
    }

    /// Puts the guards around a router, and adds `/metrics`, `/readyz` and `/livez`. Replaces the router's fallback.
    pub fn around(&self, router: Router) -> Router {
        let methods = &self.methods;
        let router = router.merge(self.beside()).fallback(unknown);
        let router = self.drain.around(router, methods);
        let router = self.admission.around(router, methods);
        let router = deadline::around(router);
        let router = self.tokens.around(router, methods);
        let router = self.hosts.around(router);
        let router = router.layer(from_fn(panics::guarded));
        let router = self.metrics.around(router, methods);
        spans::around(router, methods)
    }
}

async fn unknown(request: Request) -> Response {
    let grpc = is_grpc(request.headers());
    let message = format!("no such path: {}", request.uri().path());
    let status = if grpc { Status::unimplemented(message) } else { refuse(Reason::NoSuchPath, message, &[]) };
    answer(status, grpc)
}

/// An interceptor for calls to peers: adds the first token, and the trace of the current call.
#[derive(Clone, Default)]
pub struct Caller {
    tokens: Tokens,
}

impl Caller {
    /// An interceptor that sends the first of these tokens.
    #[must_use]
    pub fn new(tokens: Tokens) -> Self {
        Self { tokens }
    }
}

impl Interceptor for Caller {
    fn call(&mut self, mut request: tonic::Request<()>) -> Result<tonic::Request<()>, Status> {
        if let Some(header) = self.tokens.header() {
            request.metadata_mut().insert("authorization", header);
        }
        spans::propagate(request.metadata_mut());
        Ok(request)
    }
}
