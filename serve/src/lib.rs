//! Serving: servers that hold cells, and the clerk (the client library) that asks the right server.
//!
//! A server holds some cells of a store and tells the other servers which cells it holds. Every server answers every
//! question: its clerk asks the servers that hold the cells. Cells themselves are in the crate `webstrata-cells`.
//!
//! ```text
//! shelf of images --> [cluster: placement, keeper] --> [held] --> [server] <-- [clerk: map, dial] <-- questions
//!                                                                 [http]  --^
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`cluster`] | which servers are alive, which cells each server holds, and how a cell gets to a server |
//! | [`held`] | answers from the cells of one server |
//! | [`map`], [`clerk`], [`dial`] | which server holds which cell; asks these servers and joins their answers |
//! | [`shared`] | the state that gRPC and HTTP share |
//! | [`server`], [`http`] | the port, its gRPC services, and the same questions over HTTP |
//! | `explorer` | the page for browsers, which asks the same questions |
//! | [`memento`] | TimeMaps, and the capture that is nearest to a date (RFC 7089) |
//! | [`protocol`] | messages, the encoding of lists of links, errors, and resume tokens of paged answers |
//! | [`answering`] | answers to many question lines together |
//! | [`guard`] | the guards around every call: limits, deadlines, TLS, tokens, metrics, spans |

pub mod answering;
pub mod clerk;
pub mod cluster;
pub mod dial;
mod explorer;
pub mod guard;
pub mod held;
pub mod http;
pub mod map;
pub mod memento;
pub mod protocol;
pub mod server;
pub mod shared;
