//! All guards around the calls of a server, in their order, and what its own calls to peers carry.
//!
//! ```text
//! call -> spans -> metrics -> tokens -> deadline -> admission -> drain -> method
//! ```
//!
//! So a call that is refused is seen and counted, one without a token takes no place, and one that waits for a place is
//! timed with its wait. What no method answers is refused here, in the caller's protocol.
//!
//! Map: [`spans`] what is seen of a call, [`metrics`] what is counted; [`security`] who may call, over [`tls`] or not;
//! `deadline` how long it may take, [`limits`] how many run at once, [`incoming`] of how many [`connections`], both for
//! each [`origin`]; [`drain`] how it ends; [`methods`] what can be called; [`refusal`] what is said to who is refused,
//! in each protocol; `attend` what stays with a call to its end, `pace` how slow a caller may be.

use axum::Router;
use axum::extract::Request;
use axum::response::Response;
use tonic::Status;
use tonic::service::Interceptor;

use self::drain::Drain;
use self::limits::Admission;
use self::methods::Methods;
use self::metrics::Metrics;
use self::refusal::{answer, is_grpc};
use self::security::Tokens;
use crate::protocol::status::{Reason, refuse};

mod attend;
pub mod connections;
mod deadline;
pub mod drain;

pub mod limits;
pub mod methods;
pub mod metrics;

pub mod refusal;
pub mod security;
pub mod spans;

#[cfg(test)]
mod trial;

/// The guards of a server. Clones share them.
#[derive(Clone)]
pub struct Guard {
    /// What can be called.
    pub methods: Methods,
    /// What callers need.
    pub tokens: Tokens,
    /// How many run at once.
    pub admission: Admission,
    /// What is counted.
    pub metrics: Metrics,
    /// When the server ends.
    pub drain: Drain,
}

impl Guard {
    /// What is asked of a server by those who look after it, for a port of its own: figures, and whether it lives and
    /// is to be asked. Without tokens, places and limits.
    pub fn beside(&self) -> Router {
        self.metrics.routes().merge(self.drain.routes())
    }

    /// The router of all methods, guarded, with `/metrics`, `/readyz` and `/livez` beside them. Its fallback is
    /// replaced.
    pub fn around(&self, router: Router) -> Router {
        let methods = &self.methods;
        let router = router.merge(self.beside()).fallback(unknown);
        let router = self.drain.around(router, methods);
        let router = self.admission.around(router, methods);
        let router = deadline::around(router);
        let router = self.tokens.around(router, methods);
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

/// What calls to peers carry: the first token, and the trace of the call that they are made for. An interceptor of
/// clients.
#[derive(Clone, Default)]
pub struct Caller {
    tokens: Tokens,
}

impl Caller {
    /// With these tokens.
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
