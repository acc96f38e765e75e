//! Serving: servers that hold cells, and the clerk that asks the right server.
//!
//! A server holds cells of a store, tells the others which, and answers any question by its clerk, which asks the
//! servers that have the cells. Cells themselves are the crate `webstrata-cells`.
//!
//! ```text
//! shelf of images --> [cluster: placement, keeper] --> [held] --> [server] <-- [clerk: map, dial] <-- questions
//!                                                                 [http]  --^
//! ```
//!
//! | module | what |
//! |---|---|
//! | [`cluster`] | which servers are there, which cells each holds, and how a cell gets to a server |
//! | [`held`] | answers from the cells of one server |
//! | [`map`], [`clerk`], [`dial`] | which server has which cell; asks them and joins their answers |
//! | [`server`], [`http`] | the port, its gRPC services, and the same questions by HTTP |
//! | [`protocol`] | messages, how lists of links travel, errors, and where paged answers go on |
//! | [`answering`] | answers to many question lines at once |
//! | [`guard`] | what stands around every call: limits, deadlines, TLS, tokens, metrics, spans |

pub mod answering;
pub mod clerk;
pub mod cluster;
pub mod dial;
pub mod guard;
pub mod held;
pub mod http;
pub mod map;
pub mod protocol;
pub mod server;
